"""Kernels in notebook cells and in files that change: run in IPython itself, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import samples

ROOT = Path(samples.__file__).resolve().parents[1]
KERNEL = """@flyc.kernel
def k(A: fx.Tensor):

    A[fx.thread_idx.x] = VALUE
@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""
IMPORTS = "import numpy as np, flylab.compiler as flyc, flylab.expr as fx; A = np.zeros(64, np.float32)"
LAUNCH = "launch(A); print('RESULT', A[:2].tolist(), (A == A[0]).all())"


def session(*cells: str) -> str:
    """Run cells in an IPython shell; what they printed, and the errors as a notebook shows them."""
    pytest.importorskip("IPython")
    script = textwrap.dedent(f"""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        for cell in {[IMPORTS, *cells]}:
            shell.run_cell(cell, store_history=True)
    """)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(text: str) -> list[str]:
    return [line.removeprefix("RESULT ") for line in text.splitlines() if line.startswith("RESULT")]


def body(value: str) -> str:
    return KERNEL.replace("VALUE", value)


def test_a_cell_edited_and_run_again() -> None:
    shown = session(body("1.0"), LAUNCH, body("2.0") + LAUNCH, LAUNCH)
    assert results(shown) == ["[1.0, 1.0] True", "[2.0, 2.0] True", "[2.0, 2.0] True"]


def test_under_cell_magics() -> None:
    shown = session(
        "%%time\n" + body("1.0") + LAUNCH,
        "%%time\n" + body("2.0"),
        "%%time\n" + body("3.0"),
        LAUNCH,
        "%%capture out\n" + body("4.0") + LAUNCH,
        "print(out.stdout)",
    )
    assert results(shown) == ["[1.0, 1.0] True", "[3.0, 3.0] True", "[4.0, 4.0] True"]


@pytest.mark.parametrize("magic", ["", "%%time\n"])
def test_errors_show_the_cells_line(magic: str) -> None:
    """Under a magic IPython counts from the line after it, as in its own tracebacks."""
    shown = session(magic + body("fx.Flot32(1.0)") + LAUNCH, "print('RESULT still alive')")
    assert "line 4, in k" in shown and "A[fx.thread_idx.x] = fx.Flot32(1.0)" in shown
    assert "fx has no name 'Flot32'" in shown and "did you mean fx.Float32" in shown
    assert results(shown) == ["still alive"]


def test_where_the_text_cannot_be_had_a_sentence_says_so() -> None:
    shown = session("exec(" + repr(body("1.0")) + ")", LAUNCH, "print('RESULT still alive')")
    assert "the source text of 'launch' cannot be found" in shown
    assert "Unexpected exception" not in shown
    assert results(shown) == ["still alive"]


def test_a_file_edited_after_its_import_runs_as_it_was_imported(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    head = "import flylab.compiler as flyc\nimport flylab.expr as fx\n"
    file.write_text(head + body("1.0"))
    script = textwrap.dedent("""
        import sys
        import numpy as np
        sys.path.insert(0, sys.argv[1])
        import edited
        path = edited.__file__
        text = open(path).read()
        open(path, "w").write("# 1\\n# 2\\n# 3\\n" + text)
        a = np.zeros(64, np.float32)
        edited.launch(a)
        print(a[0])
    """)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1.0\n"
