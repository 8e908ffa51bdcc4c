"""What all tests share.

Golden files, and `--update-golden`, which writes them anew. Hypothesis: HYPOTHESIS_PROFILE=nightly runs 10,000 examples
of each property, else 200.
"""

from __future__ import annotations

import atexit
import difflib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow machine must not fail a test, so examples have no deadline; the nightly run looks for new ones each time.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}
settings.register_profile("ordinary", max_examples=200, derandomize=True, **_COMMON)
settings.register_profile("nightly", max_examples=10_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ordinary"))

# A shell's background job ignores Ctrl-C, and so would what it starts; the tests of Ctrl-C send it to themselves.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test touches the user's caches, and none passes by what an earlier run left: compilations are not kept on disk but
# in the tests about that (`disk_cache`). Handlers of the software device are named by all that decides them, and stay.
_FOLDER = tempfile.mkdtemp(prefix="flylab-tests-")
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
os.environ["FLYLAB_RUNTIME_CACHE_DIR"] = _FOLDER
os.environ["FLYLAB_RUNTIME_ENABLE_CACHE"] = "0"
os.environ.setdefault("FLYLAB_EMULATOR_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "emulator"))

# Nor does one run on a GPU of this machine: ROCm hides all of them from the processes that tests start, and in this one
# there is no HIP library but the stand-in of the tests that ask for it (`tests.runtime.hip.standin`).
os.environ["ROCR_VISIBLE_DEVICES"] = "-1"


@pytest.fixture(autouse=True, scope="session")
def _no_hip_library() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flylab.runtime.hip.library.find", lambda: None)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files, compare none")


@pytest.fixture
def disk_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder where compilations are kept on disk, in this test and in the processes that it starts."""
    folder = tmp_path / "disk_cache"
    monkeypatch.setenv("FLYLAB_RUNTIME_CACHE_DIR", str(folder))
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", "1")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("vector_add.mlir", text)` compares a text with `golden/vector_add.mlir` beside the test's file."""
    folder = Path(str(request.path)).parent / "golden"

    def compare(name: str, text: str) -> None:
        file = folder / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif not file.is_file():
            pytest.fail(f"no golden file {file.name}: `make golden` writes it; read it before you commit it")
        elif (before := file.read_text(encoding="utf-8")) != text:
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), name, "now", lineterm="", n=2)
            pytest.fail("\n".join([f"{name} changed; `make golden` accepts it", *lines]), pytrace=False)

    return compare
