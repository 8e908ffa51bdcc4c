"""The wheel: what is in it, and that it works from there, away from the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house.rules import ROOT, tracked

wheel_builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is in the extra `test`")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the repository's files, with a kernel added to the copy."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for file in tracked("flylab", "kernels", "pyproject.toml", "LICENSE", "README.md"):
        target = copy / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    sample = copy / "kernels/sample_domain/sample.py"
    sample.parent.mkdir(parents=True)
    sample.write_text("NUMBER = 942\n")
    return Path(next(wheel_builder.WheelBuilder(str(copy)).build(directory=str(out), versions=["standard"])))


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    found = names(wheel)
    assert len(found) == len(set(found))
    assert {name.split("/")[0].split("-")[0] for name in found} == {"flylab"}
    ours = {str(file.relative_to(ROOT)) for file in tracked("flylab")}
    assert ours <= set(found)
    assert {"flylab/py.typed", "flylab/kernels/sample_domain/sample.py"} <= set(found)
    assert any(name.endswith("/licenses/LICENSE") for name in found)


def test_it_bounds_every_dependency_on_both_sides(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(name for name in names(wheel) if name.endswith("METADATA"))).decode()
    lines = [line for line in metadata.split("\n") if line.startswith("Requires-Dist:")]
    required = [line.removeprefix("Requires-Dist:").split(";")[0] for line in lines]
    outside = [text for text in required if "flylab[" not in text]
    loose = [text for text in outside if "==" not in text and not (">=" in text and "<" in text)]
    assert len(required) > 8
    assert loose == []


def test_kernels_are_found_in_it_and_not_beside_it(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # Another project's `kernels`, where pip would put it.
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/foreign.py").write_text("")
    code = """
import importlib.util, sys
sys.path.insert(0, sys.argv[1])
import flylab.kernels.sample_domain.sample as sample
print(sample.__file__, sample.NUMBER, importlib.util.find_spec("flylab.kernels.foreign"))
"""
    done = subprocess.run([sys.executable, "-I", "-c", code, str(tmp_path)], text=True, capture_output=True)
    assert done.stdout.split() == [str(tmp_path / "flylab/kernels/sample_domain/sample.py"), "942", "None"], done.stderr


def test_kernels_are_found_in_the_checkout() -> None:
    import flylab.kernels

    assert str(ROOT / "kernels") in list(flylab.kernels.__path__)
