"""The command line in this process: `flylab("env", "--json")` gives the exit code, the output and the errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flylab import settings
from flylab.cli.main import main
from tests.house.rules import ROOT


@dataclass(frozen=True)
class Done:
    """What became of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def flylab(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
           tmp_path: Path) -> Iterator[Callable[..., Done]]:
    """Runs a command in an empty folder; what it does to Python's own state is undone."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.chdir(tmp_path)
    for row in settings.ALL:
        if row.name in ("DEVICE", "ARCH", "CHECK", "NO_COLOR", "COMPILE_OPT_LEVEL"):
            for name in row.names:
                monkeypatch.delenv(name, raising=False)

    def call(*arguments: Any) -> Done:
        code = main([str(argument) for argument in arguments])
        return Done(code, *capsys.readouterr())

    yield call
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def start(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
    """`python -m flylab` as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-m", "flylab", *map(str, arguments)], text=True, env=environment, **pipes)


FILE = """\
import flylab.compiler as flyc
import flylab.expr as fx

BLOCK = 64
print("loaded")

@flyc.kernel
def scale(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    B[fx.thread_idx.x] = A[fx.thread_idx.x] * n

@flyc.kernel
def fill(A: fx.Tensor, dtype: fx.Constexpr, how: fx.Constexpr[str]):
    if how == "ones":
        A[fx.thread_idx.x] = dtype(1)

@flyc.kernel
def orphan(A: fx.Tensor):
    A[0] = 1.0

@flyc.jit
def launch_scale(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    scale(A, B, n).launch(grid=A.shape[0] // BLOCK, block=BLOCK, stream=stream)

@flyc.jit
def launch_fill(A: fx.Tensor, dtype: fx.Constexpr, how: fx.Constexpr[str] = "ones"):
    fill(A, dtype, how).launch(grid=1, block=BLOCK)
"""
EXAMPLES = """
def flylab_arguments():
    scaled, filled = {"A": "f32[64]", "B": "f32[64]", "n": 3}, {"A": "f16[64]", "dtype": fx.Float16}
    return {"launch_scale": scaled, launch_fill: filled}
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A file with three kernels and two launchers, and no examples."""
    file = tmp_path / "two_launchers.py"
    file.write_text(FILE)
    return file


@pytest.fixture
def with_examples(tmp_path: Path) -> Path:
    """The same file, which says what its launchers are called with."""
    file = tmp_path / "examples.py"
    file.write_text(FILE + EXAMPLES)
    return file
