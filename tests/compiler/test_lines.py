"""An error in line 18 says line 18 and shows it, wherever the kernel was written."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.errors import FlylabError
from tests.samples import cell, compile_body

A = np.zeros(64, np.float32)

HEAD = """\
import flylab.compiler as flyc
import flylab.expr as fx
"""
# The kernel's parts, with comments and blank lines between them; BAD stands in line 18 of each text.
BAD = "fx.copy(atom, fx.slice(t, (None, 0)), fx.make_rmem_tensor(8, fx.Float32))"
PLAIN = (
    HEAD
    + """

# A comment.


@flyc.kernel
def k(A: fx.Tensor):
    # Divide.

    t = fx.logical_divide(A, fx.make_layout(4, 1))

    atom = fx.make_copy_atom(
        fx.UniversalCopy(128),
        fx.Float32)

    BAD


@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""
)
DECORATED = (
    HEAD
    + """

@flyc.kernel(
    name="other",
    # Three lines of
    known_block_size=(
        64,
        1,
    ),
)
def k(A: fx.Tensor):

    t = fx.logical_divide(A, fx.make_layout(4, 1))
    atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)

    BAD


@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""
)
METHOD = (
    HEAD
    + """
class Kernels:
    \"\"\"A text
    of lines.
    \"\"\"

    width = 4

    @flyc.kernel

    def k(self, A: fx.Tensor):

        t = fx.logical_divide(A, fx.make_layout(self.width, 1))
        atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)

        BAD

    @flyc.jit
    def launch(self, A: fx.Tensor):
        self.k(A).launch(grid=1, block=64)


launch = Kernels().launch
"""
)
NESTED = (
    HEAD
    + """

def factory():
    width = 4

    @flyc.kernel
    def k(A: fx.Tensor):

        def part(t):
            return fx.slice(t, (None, 0))

        t = fx.logical_divide(A, fx.make_layout(width, 1))
        atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)


        BAD

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=64)

    return launch


launch = factory()
"""
)
HELPER = (
    HEAD
    + """

def helper(A):
    '''A plain function,
    which is not rewritten.
    '''
    t = fx.logical_divide(A, fx.make_layout(4, 1))

    atom = fx.make_copy_atom(fx.UniversalCopy(128),
                             fx.Float32)





    BAD


@flyc.kernel
def k(A: fx.Tensor):
    helper(A)


@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""
)
TEXTS = {
    name: text.replace("BAD", BAD)
    for name, text in (
        ("plain", PLAIN),
        ("decorated", DECORATED),
        ("method", METHOD),
        ("nested", NESTED),
        ("helper", HELPER),
    )
}


def module_of(file: Path, text: str) -> ModuleType:
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(launcher: Any) -> FlylabError:
    with pytest.raises(FlylabError) as caught:
        flyc.compile(launcher, A)
    return caught.value


@pytest.mark.parametrize("name", TEXTS)
def test_bad_statement_stands_in_line_18(name: str) -> None:
    assert TEXTS[name].splitlines()[17].strip() == BAD


@pytest.mark.parametrize("name", TEXTS)
def test_line_18_of_a_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "größe of kernel.py"
    error = refused(module_of(file, TEXTS[name]).launch)
    assert error.where is not None
    assert (error.where.file, error.where.line) == (str(file), 18)
    shown = str(error).splitlines()
    assert "line 18" in shown[0]
    assert shown[1].strip() == BAD
    assert "has 4 elements" in shown[3] and "8" in shown[3]


@pytest.mark.parametrize("name", TEXTS)
def test_line_18_of_a_cell(name: str) -> None:
    names = cell(TEXTS[name])
    error = refused(names["launch"])
    assert error.where is not None
    assert (error.where.file, error.where.line, error.where.text.strip()) == (names["FILE"], 18, BAD)


def test_the_failing_part_is_underlined() -> None:
    with pytest.raises(FlylabError) as caught:
        compile_body("x = 1; y = fx.slice(A, 70); z = 2")
    shown = str(caught.value).splitlines()
    assert shown[1].strip() == "x = 1; y = fx.slice(A, 70); z = 2"
    start = shown[2].index("^")
    assert shown[1][start : start + shown[2].count("^")] == "fx.slice(A, 70)"


def test_errors_of_passes_have_the_line_too() -> None:
    with pytest.raises(FlylabError) as caught:
        compile_body("""
            r = fx.make_rmem_tensor(4, fx.Float32)

            A[0] = fx.memref_load_vec(r)[0]
        """)
    assert caught.value.where is not None
    assert caught.value.where.line == 5
    assert "nothing was stored" in caught.value.message
    assert "line 3" in (caught.value.hint or "")


def test_exceptions_of_the_users_own_pass_through_with_their_line() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        compile_body("\n\nx = 1 // 0")
    frames = [f for f in caught.traceback if f.name == "k"]
    assert [f.lineno + 1 for f in frames] == [3]


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    """Python ends lines at newlines alone, `str.splitlines` at more: links must follow Python."""
    file = tmp_path / "form_feed.py"
    file.write_text(
        "import flylab.compiler as flyc\nimport flylab.expr as fx\n\n"
        "@flyc.kernel\ndef k(A: fx.Tensor):\n    text = 'a\x0cb\u2028c\x85d'\n    A[3] = A[1] * 2.0\n\n"
        "@flyc.jit\ndef launch(A: fx.Tensor):\n    k(A).launch(grid=1, block=64)\n",
        encoding="utf-8",
    )
    names = runpy.run_path(str(file))
    flyc.compile(names["launch"], np.zeros(64, np.float32))
    stages = {stage.name: stage for stage in names["k"].stages()}
    assert stages["source"].lines == (4, 5, 6, 7)
    isa = zip(stages["isa"].text.split("\n"), stages["isa"].lines, strict=True)
    assert {line for text, line in isa if "global_store" in text} == {7}
