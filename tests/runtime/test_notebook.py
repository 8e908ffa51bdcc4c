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


LABORATORY = """
import numpy as np
import flylab
import flylab.compiler as flyc
import flylab.expr as fx

@flyc.kernel
def k(A: fx.Tensor):
    t = fx.thread_idx.x
    s = fx.make_view(fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128]).peek().ptr, fx.make_layout(128, 1))
    s[t] = A[t]
    A[t] = s[t ^ 64]                                # with a remark

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=128)

A = np.zeros(128, np.float32)
try:
    launch(A)
except flylab.errors.CheckError as error:
    print(error)
with flylab.watch(check=None, counters=True):
    print(launch(A).counters)
session = flylab.debug(launch, A, check=None).run_to("ds_read")
print(session, session.path(1), session.listing(), session.run_back_to(line=("cell In[1]", 10)), sep="\\n")
"""


def test_the_laboratory_names_cells() -> None:
    """No file name of the notebook's own making, whatever it is that names a line."""
    (text,) = printed_by(LABORATORY)
    assert "ipykernel" not in text and "/tmp/" not in text and "\n   " in text
    error, _, rest = text.partition("hint: put gpu.barrier() between line 10 and line 11")
    assert error.count("cell In[1], line 10") >= 1 and error.startswith("cell In[1], line 11, in k")
    table, _, debugger = rest.partition("block (0, 0, 0)")
    assert "\nline of cell In[1] " in table and "\n  11  A[t] = s[t ^ 64]   " in table
    assert "(cell In[1], line 11)" in debugger and "  line 10: s[t] = A[t]" in debugger
