"""The import directions of the design, read from the files and tried in a process without the heavy packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.imports import MAY_IMPORT, ROOT, unit_of, violations
from tests.house.rules import tracked

FILES = tracked("flylab/*.py", "kernels/*.py")

# Imports every module of a package where the heavy packages cannot be found, and prints how many there are.
WITHOUT_HEAVY = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"mlir", "llvmlite", "torch", "rocm"}:
            raise ModuleNotFoundError(f"{name} was asked for by this import", name=name)

sys.meta_path.insert(0, Absent())
package = importlib.import_module(sys.argv[1])
names = [found.name for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def dotted(file: Path) -> str:
    """The name of a file's module below flylab: `viz.svg`, `kernels.elementwise`, and "" for flylab/__init__.py."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in (parts[1:] if parts[0] == "flylab" else parts) if part != "__init__")


def in_new_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, text=True, capture_output=True)


@pytest.mark.parametrize("file", FILES, ids=dotted)
def test_imports_follow_the_design(file: Path) -> None:
    assert violations(file.read_text(), dotted(file), file.name == "__init__.py") == []


def test_every_package_has_a_row() -> None:
    packages = {dotted(file).partition(".")[0] for file in FILES}
    assert packages <= set(MAY_IMPORT)


def test_the_rows_have_no_cycle() -> None:
    def reaches(unit: str, seen: tuple[str, ...]) -> None:
        assert unit not in seen, f"{' imports '.join([*seen, unit])}"
        for imported in MAY_IMPORT[unit] - {"*"}:
            reaches(imported, (*seen, unit))

    for unit in MAY_IMPORT:
        if unit:
            reaches(unit, ())


@pytest.mark.parametrize("module, text, broken", [
    ("layout.divide", "from flylab.dialect import types", "layout imports flylab.dialect.types at module level"),
    ("layout.divide", "from ..atoms import copy", "layout imports flylab.atoms.copy at module level"),
    ("layout.divide", "from .. import viz", "layout imports flylab.viz at module level"),
    ("layout.divide", "def f():\n    import flylab.expr", "layout imports flylab.expr"),
    ("emulator.wave", "from flylab.codegen import amdgpu", "emulator imports flylab.codegen.amdgpu at module level"),
    ("compiler.jit", "import flylab.runtime.launch", "compiler imports flylab.runtime.launch at module level"),
    ("runtime.launch", "import llvmlite.binding as llvm", "runtime imports llvmlite"),
    ("runtime.launch", "def f():\n    from rocm.bindings import hip", "runtime imports rocm"),
    ("runtime.tensors", "import torch", "torch must be imported inside a function"),
    ("viz.svg", "try:\n    import torch\nexcept ImportError:\n    pass", "viz imports torch"),
    ("viz.view", "class A:\n    from mlir import ir", "viz imports mlir"),
])
def test_a_wrong_import_is_found(module: str, text: str, broken: str) -> None:
    found = violations(text, module)
    assert len(found) == 1
    assert found[0].endswith(broken)


@pytest.mark.parametrize("module, text", [
    ("layout.layout", "def _repr_mimebundle_(self):\n    from flylab.viz import layout"),
    ("emulator.wave", "from flylab.codegen.isa import Isa\nimport llvmlite.binding"),
    ("compiler.jit", "def __call__(self):\n    from flylab.runtime import launch"),
    ("runtime.tensors", "def f():\n    import torch"),
    ("viz.view", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from flylab.expr import Vec"),
])
def test_a_right_import_is_let_through(module: str, text: str) -> None:
    assert violations(text, module) == []


def test_the_longest_name_is_the_unit() -> None:
    assert unit_of("codegen.isa.Isa") == "codegen.isa"
    assert unit_of("codegen.amdgpu") == "codegen"
    assert unit_of("__version__") == ""


@pytest.mark.parametrize("package", ["flylab.layout", "flylab.atoms", "flylab.viz"])
def test_works_without_the_heavy_packages(package: str) -> None:
    done = in_new_process(WITHOUT_HEAVY, package)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1


def test_the_blocking_process_blocks() -> None:
    done = in_new_process(WITHOUT_HEAVY, "llvmlite")
    assert "llvmlite was asked for by this import" in done.stderr


def test_importing_flylab_imports_little() -> None:
    code = "import sys, flylab; print(*{name.partition('.')[0] for name in sys.modules})"
    done = in_new_process(code)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "flylab" in loaded
    assert loaded.isdisjoint({"mlir", "llvmlite", "torch", "rocm", "numpy", "matplotlib", "ipywidgets", "anywidget"})
