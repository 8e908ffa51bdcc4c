"""Users' case L26: plain helper functions with branches, and what Python calls by itself.

`head` is what stands before the kernel; a body is a program over `t`, `n`, `m`, `A`, `X` and `R` (see threads.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compiler.test_cases_places import module_of
from tests.compiler.threads import agree, each_program, line_of, refused


@each_program("helpers", "L26")
def test_l26_a_plain_helper_with_a_branch(head: str, body: str) -> None:
    agree(body, head)


def test_l26_a_helper_of_another_file(tmp_path: Path) -> None:
    module_of(tmp_path / "helpers_of_mine.py", "def clamp(t, n):\n    if t > n:\n        return n\n    return t\n")
    agree("R[t] = helpers_of_mine.clamp(t, n)", "import helpers_of_mine")


@each_program("helpers", "L26 unread")
def test_l26_a_helper_that_cannot_be_read_is_named_with_its_line(head: str, body: str) -> None:
    error = refused(body, head)
    assert "the source text of 'f' cannot be found (it was defined in '<string>')" in error.message
    assert error.where is not None and str(error.where).startswith("<string>, line ")
    assert "linecache" in (error.hint or "")


@each_program("helpers", "L26 refused")
def test_l26_what_python_itself_must_decide_is_refused_where_it_stands(head: str, body: str) -> None:
    error = refused(body, head)
    assert "device" in error.message and error.hint
    assert error.where is not None and error.where.line == line_of(body, "# use", head)


def test_l26_recursion_that_only_the_device_could_end() -> None:
    head = "def f(k):\n    return 0 if k == 0 else 1 + f(k - 1)  # use"
    error = refused("R[t] = f(t)", head)
    assert error.message == "'f' calls itself without an end while it is traced"
    assert "write a loop" in (error.hint or "")
    assert error.where is not None and error.where.line == line_of("", "# use", head)


@pytest.mark.parametrize("around", ["if t < n:", "for i in range(n):", "while t < n:"])
def test_l26_a_generator_that_yields_where_the_device_decides(around: str) -> None:
    body = f"def each(t):\n    {around}\n        yield t  # use\nacc = 0\nfor v in each(t):\n    acc += v\nR[t] = acc"
    error = refused(body)
    kind = around.split()[0]
    assert error.message == f"a `yield` in the `{kind}` on line {line_of(body, around)}, which the device decides"
    assert "make a list" in (error.hint or "")
    assert error.where is not None and error.where.line == line_of(body, "# use")
