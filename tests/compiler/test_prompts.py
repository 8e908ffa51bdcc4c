"""R07: kernels whose text is had in other ways: typed into Python's prompts, in a doctest, rewritten by pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.notebooks import ROOT, SETUP

TYPED = SETUP + """@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = 3.0

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)

A = np.zeros(64, np.float32)
_ = launch(A)
print("alive", A[0], A[63])
"""


def python(*options: str, typed: str = "", folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    return subprocess.run([sys.executable, *options], input=typed and path + typed, cwd=folder, text=True,
                          capture_output=True, timeout=120)


@pytest.mark.parametrize("options, file, keeps", [
    (["-i"], "<stdin>", sys.version_info >= (3, 13)),
    (["-c", "import code; code.interact()"], "<console>", False),
])
def test_a_prompt(options: list[str], file: str, keeps: bool) -> None:
    done = python(*options, typed=TYPED)
    assert done.returncode == 0
    if keeps:
        assert "alive 3.0 3.0" in done.stdout
        return
    assert f"TraceError: {file}, line 1, in launch\nthe source text of 'launch' cannot be found" in done.stderr
    assert "hint: this prompt keeps no text of what is typed: use IPython, a notebook cell or a file" in done.stderr
    assert "alive 0.0 0.0" in done.stdout


def test_a_program_from_a_pipe_is_refused_in_a_sentence() -> None:
    caught = "try:\n    launch(A)\nexcept flylab.errors.TraceError as error:\n    print(error)\n"
    done = python(typed=TYPED.replace("_ = launch(A)", caught))
    assert done.returncode == 0, done.stderr
    assert "the source text of 'launch' cannot be found" in done.stdout and "alive 0.0 0.0" in done.stdout


def test_a_doctest(tmp_path: Path) -> None:
    shown = "\n".join(("... " if line[:1] in ("", " ") else ">>> ") + line for line in TYPED.splitlines())
    shown = shown.replace(">>> def ", "... def ")
    (tmp_path / "shown.py").write_text(f'"""\n{shown}\nalive 3.0 3.0\n"""\n')
    script = f"import sys, doctest; sys.path[:0] = [{str(ROOT)!r}, {str(tmp_path)!r}]\nimport shown\n" \
             "result = doctest.testmod(shown); print(result); sys.exit(result.failed)"
    done = python("-c", script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed=0" in done.stdout and "attempted=0" not in done.stdout


REWRITTEN = SETUP + """from flylab.expr import const_expr

def helper(n, x):
    assert n > 1, "a plain assert, which pytest rewrites"
    return x * n

def test_kernel_with_asserts():
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Constexpr[int]):
        assert n == 4
        A[fx.thread_idx.x] = helper(n, 1.5)

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Constexpr[int]):
        assert isinstance(n, int), (n, A)
        k(A, n).launch(grid=1, block=64)

    A = np.zeros(64, np.float32)
    launch(A, 4)
    assert A.tolist() == [6.0] * 64
    try:
        launch(A, 5)
    except AssertionError as error:
        print("refused", type(error).__name__)
"""


def test_asserts_that_pytest_rewrote(tmp_path: Path) -> None:
    (tmp_path / "test_rewritten.py").write_text(REWRITTEN)
    done = python("-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(tmp_path / "test_rewritten.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused AssertionError" in done.stdout
