"""`flylab doctor`: what is there, what is missing, the command that brings it, and the exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flylab import installing
from flylab.cli.examined import ABSENT, BROKEN, EXAMINED, NOTE, OK, examination
from flylab.errors import DeviceError
from tests.house.rules import ROOT


def findings(flylab: Any, code: int = 0) -> dict[str, dict[str, Any]]:
    done = flylab("doctor", "--json")
    found = json.loads(done.out)
    assert done.code == code and found["works"] == (code == 0)
    return {row["name"]: row for row in found["findings"]}


def test_a_machine_that_works(flylab: Any) -> None:
    found = findings(flylab)
    assert list(found) == list(EXAMINED)
    assert found["numpy"]["text"] == np.__version__ and found["MLIR"]["text"] == version("xtc-mlir-python-bindings")
    assert str(ROOT) in found["flylab"]["text"] and "a checkout" in found["flylab"]["text"]
    for chip in ("gfx942", "gfx950"):
        row = found[f"{chip} (software)"]
        # 1024 elements, four a thread: 256 threads, which are 4 waves, each of them runs the whole kernel
        assert row["state"] == OK and int(row["text"].split(": ")[1].split()[0]) % 4 == 0
    assert all(row["mend"] for row in found.values() if row["state"] == BROKEN)


def test_the_table_says_it_all(flylab: Any) -> None:
    done = flylab("doctor")
    assert done.code == 0 and done.out.endswith("flylab can compile, and run on the software device\n")
    assert all(any(name in line for line in done.out.splitlines()) for name in EXAMINED)


def test_missing_packages_have_the_command_that_brings_them(flylab: Any) -> None:
    """In a process where nothing but Python's own and flylab's dependencies can be imported."""
    away = ["torch", "jupyterlab", "ipykernel", "rocm", "ziglang"]
    script = f"""
import importlib.metadata, importlib.util, json, sys
away = {away!r}
real_version, real_find = importlib.metadata.version, importlib.util.find_spec
def version(name):
    if name.split("-")[0] in away:
        raise importlib.metadata.PackageNotFoundError(name)
    return real_version(name)
importlib.metadata.version = version
importlib.util.find_spec = lambda name, *rest: None if name.split(".")[0] in away else real_find(name, *rest)
for name in away:
    sys.modules[name] = None
from flylab.cli.main import main
sys.exit(main(["doctor", "--json"]))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr + done.stdout
    found = {row["name"]: row for row in json.loads(done.stdout)["findings"]}
    python = f"{sys.executable} -m pip install "
    for name, extra in {"JupyterLab": "notebook", "HIP bindings": "hip", "ipykernel": "notebook"}.items():
        assert found[name]["state"] == ABSENT and found[name]["mend"] == f"{python}'{ROOT}[{extra}]'"
    assert found["torch"]["state"] == ABSENT
    assert found["torch"]["mend"].startswith(f"{python}torch --index-url URL (")
    if found["lld"]["state"] != OK:  # no ROCm here
        assert found["lld"]["mend"].startswith(f"{python}'{ROOT}[aot]', or install lld or ROCm")


def test_outside_of_a_checkout_packages_have_their_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """flylab is on no index: no command names it."""
    monkeypatch.setattr(installing, "ROOT", Path("/site-packages"))
    python = f"{sys.executable} -m pip install "
    assert installing.extra("notebook") == f"{python}ipykernel jupyterlab"
    assert installing.needed("numpy", anew=True) == f"{python}--force-reinstall numpy"


def test_the_packages_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {extra: [re.split(r"[<>=;]", text)[0] for text in texts]
             for extra, texts in project["optional-dependencies"].items()}
    assert {extra: tuple(names[extra]) for extra in installing.EXTRAS} == installing.EXTRAS
    needed = {re.split(r"[<>=;]", text)[0] for text in project["dependencies"]}
    assert {*installing.COMPILER, "numpy", "anywidget"} <= needed


def test_one_cause_has_one_remedy(flylab: Any) -> None:
    """Without MLIR nothing compiles on either chip; in a process that has not loaded it."""
    script = ("import sys; sys.modules['mlir'] = None\n"
              "from flylab.cli.main import main\nsys.exit(main(['doctor', *sys.argv[1:]]))")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script, "--json"], env=environment, text=True, capture_output=True)
    found = {row["name"]: row for row in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1 and found["MLIR"]["mend"].startswith(f"{sys.executable} -m pip install {ROOT}")
    for chip in ("gfx942", "gfx950"):
        row = found[f"{chip} (software)"]
        assert (row["state"], row["mend"]) == (BROKEN, None) and "not tried" in row["text"]


def test_a_variable_that_is_none_is_noted(flylab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_ARCH", "gfx950")
    row = findings(flylab)["environment"]
    assert row["state"] == NOTE and "FLYLAB_ARCH is no variable of flylab (did you mean ARCH?)" in row["text"]


def test_without_the_compiler_it_says_so_and_ends_with_1(flylab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlir", None)
    found = findings(flylab, code=1)
    assert found["MLIR"]["state"] == BROKEN and "pip install" in found["MLIR"]["mend"]


def test_a_wrong_variable_breaks_it(flylab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_DEVICE", "gfx90a")
    found = findings(flylab, code=1)
    assert found["environment"]["state"] == found["device"]["state"] == BROKEN
    assert "gfx90a" in found["environment"]["text"]
    assert found["gfx942 (software)"]["state"] == OK  # which asks for its own device


def test_wrong_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial compares: a sum that is made otherwise is not right."""
    from flylab.kernels.elementwise import vector_add as module  # type: ignore[import-not-found]

    from tests.samples import cell

    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, C: fx.Tensor):
            C[fx.thread_idx.x] = A[fx.thread_idx.x]

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, VEC: fx.Constexpr[int]):
            k(A, C).launch(grid=1, block=64)
    """)
    monkeypatch.setattr(module, "vector_add", names["launch"])
    assert examination("trial", EXAMINED["gfx950 (software)"]).state == BROKEN


def test_caches(flylab: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outer, inner = tmp_path / "cache", tmp_path / "cache" / "emulator"
    (inner / "ab").mkdir(parents=True)
    (inner / "ab" / "one.o").write_bytes(bytes(3 << 20))
    (outer / "kept" / "ab").mkdir(parents=True)
    (outer / "locks").mkdir()
    sizes = {"kept/ab/abc": 1 << 20, "kept/ab/abc.assembly": 1 << 19, "locks/00": 0, "compiled.log": 99}
    for file, size in sizes.items():
        (outer / file).write_bytes(bytes(size))
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", "1")
    monkeypatch.setenv("FLYLAB_RUNTIME_CACHE_DIR", str(outer))
    monkeypatch.setenv("FLYLAB_EMULATOR_CACHE_DIR", str(inner))
    assert EXAMINED["compilations"]()[1].startswith(f"{outer}: 1 compilation, 1.5 of 512 MiB, writable, ")
    assert EXAMINED["handlers"]()[1].startswith(f"{inner}: some are kept, writable, ")
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", "0")
    assert EXAMINED["compilations"]() == (OK, "off: FLYLAB_RUNTIME_ENABLE_CACHE=0", None)


@pytest.mark.parametrize("name, variable", [("compilations", "FLYLAB_RUNTIME_CACHE_DIR"),
                                            ("handlers", "FLYLAB_EMULATOR_CACHE_DIR")])
def test_a_folder_is_tried(name: str, variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Root may write anywhere, says the system; and still /proc takes no folder. What is made to try it goes again."""
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", "1")
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "x", Path("/proc/nope/x")):
        monkeypatch.setenv(variable, str(place))
        state, text, mend = EXAMINED[name]()
        assert state == ABSENT and text.startswith(f"{place}: nothing can be kept there (")
        assert mend == f"set {variable} to a folder that can be written"
    monkeypatch.setenv(variable, str(tmp_path / "a" / "b"))
    state, text, _ = EXAMINED[name]()
    assert state == OK and ", writable, " in text and os.listdir(tmp_path) == ["file"]


def test_gpus_are_said_as_hip_shows_them_and_tried() -> None:
    pytest.importorskip("rocm.bindings")
    from tests.runtime.hip import standin

    mine, other = standin.MI300X, standin.RADEON
    right = "hip:1 gfx942 (AMD Instinct MI300X, 192 GiB); a vector add on hip:1 is right"
    for there, state, words in (((other, mine), OK, right), ((other,), ABSENT, "flylab launches on gfx942 (MI300X)"),
                                ((), ABSENT, "no AMD GPU that this process may see")):
        with standin.standing_in(*there) as hip:
            found = EXAMINED["GPU"]()
            assert found[0] == state and words in found[1]
            assert hip.launches == (state == OK)


def test_a_gpu_that_does_not_work_is_found() -> None:
    pytest.importorskip("rocm.bindings")
    from tests.runtime.hip import standin

    with standin.standing_in(standin.MI350X) as hip:
        hip.idle = True
        state, text, mend = EXAMINED["GPU"]()
        assert state == ABSENT and "wrong numbers on hip:0" in text and "report" in str(mend)
    with standin.standing_in(standin.MI350X) as hip:
        hip.fail("hipModuleLoadData", 209)
        state, text, mend = EXAMINED["GPU"]()
        assert state == ABSENT and "a vector add does not run on hip:0: loading the code object" in text and mend


def test_hip_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from flylab.runtime.hip import devices, library

    monkeypatch.setattr(library, "find", lambda: Path("/rocm/lib/libamdhip64.so"))

    def fails() -> Any:
        raise DeviceError("HIP failed", hint="look")

    monkeypatch.setattr(devices, "attached", fails)
    assert EXAMINED["GPU"]() == (ABSENT, "HIP failed", "look")
