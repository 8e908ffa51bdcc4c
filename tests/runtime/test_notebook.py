"""Errors as an IPython shell shows them, and the choice of a device from one cell of a kernel to the next."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("colors", "NoColor")
for cell in sys.stdin.read().split("%%\\n"):
    shell.run_cell(cell, store_history=True)
"""
SETUP = """
import numpy as np
import flylab.compiler as flyc
import flylab.expr as fx

@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32):
    A[n] = 1.0

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    k(A, n).launch(grid=1, block=64)

@flyc.kernel
def bad(A: fx.Tensor):
    if len(A) > 0:
        A[1] = 1.0

@flyc.jit
def launch_bad(A: fx.Tensor):
    bad(A).launch(grid=1, block=64)

A = np.zeros(64, np.float32)
%%
"""


@pytest.mark.parametrize(
    "cell, expected",
    [
        ("launch([1], 2)", ["ArgumentError: cell In[2], line 1", "    launch([1], 2)", "'A' is an fx.Tensor", "hint"]),
        ("launch(A)", ["ArgumentError: cell In[2], line 1", "missing a required argument: 'n'", "hint: "]),
        (
            "layout = fx.make_layout(\n    (4, 4), (1, 2, 3))",
            ["LayoutError: cell In[2], line 1", "fx.make_layout(", "hint: "],
        ),
        ("launch_bad(A)", ["TraceError: cell In[1], line 15, in bad", "    if len(A) > 0:", "^^^", "hint: "]),
        ("launch(A, 10**6)", ["OutOfBounds: cell In[1], line 7, in k", "    A[n] = 1.0", "'A'"]),
    ],
)
def test_errors_in_a_shell(cell: str, expected: list[str]) -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SHELL], input=SETUP + cell, cwd=root, text=True, capture_output=True, check=True
    )
    shown = re.sub("\x1b\\[[0-9;]*m", "", done.stdout + done.stderr)
    for part in expected:
        assert part in shown
    assert "Unexpected exception formatting exception" not in shown
    assert "Traceback" not in shown and "flylab/runtime" not in shown


def printed_by(*cells: str) -> list[str]:
    """What each cell of a notebook prints."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    resources = {"metadata": {"path": str(Path(__file__).resolve().parents[2])}}
    nbclient.NotebookClient(notebook, resources=resources).execute()
    return ["".join(out.text for out in cell.outputs) for cell in notebook.cells]


def test_a_kernel_prints_into_the_cell_that_launches_it() -> None:
    kernel = """
import numpy as np
import flylab.compiler as flyc
import flylab.expr as fx

@flyc.kernel
def k(A: fx.Tensor):
    t = fx.thread_idx.x
    fx.printf("{}: {:.1f}", t, A[t])

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    fx.printf("{} blocks", n)
    k(A).launch(grid=n, block=2)

A = np.array([0.5, 1.5], np.float32)
"""
    assert printed_by(kernel, "launch(A, 1);", "launch(A, 2)\nprint('done')\nNone") == [
        "", "1 blocks\n0: 0.5\n1: 1.5\n", "2 blocks\n" + 2 * "0: 0.5\n1: 1.5\n" + "done\n"]


def test_a_device_holds_from_cell_to_cell() -> None:
    texts = (
        'import flylab; used = flylab.use("gfx950")',
        "print(flylab.device())",
        'with flylab.use("gfx942") as device:\n    print(device)\nprint(flylab.device())',
        "print(flylab.use(None), flylab.device())",
    )
    assert printed_by(*texts) == ["", "emulated:gfx950\n", "emulated:gfx942\nemulated:gfx950\n",
                                  "<device emulated:gfx942> emulated:gfx942\n"]
