"""Control flow where it meets the rest of Python: exits in `try`, state in closures and objects, aliases, exceptions.

Most of these programs were shrunk from those of test_control_programs.py.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.compiler.control import loops
from flylab.errors import TraceError
from flylab.expr.state import active
from tests.compiler.threads import agree, each_program, line_of, refused
from tests.samples import cell, kernel_of

MODULES = "import itertools\n"


@each_program("state", "exits")
def test_an_exit_leaves_what_it_leaves_in_python(head: str, body: str) -> None:
    agree(body, MODULES + head)


@each_program("state", "state")
def test_what_one_path_changes_only_that_path_sees(head: str, body: str) -> None:
    agree(body, MODULES + head)


@each_program("state", "formats")
def test_a_python_number_takes_the_format_that_it_gets_deep_inside(head: str, body: str) -> None:
    agree(body, head)


ALIASED = "a list is the same one under two names, or not, by what the `{kind}` on line {line} decides"
REFUSED = {
    "a list rebound, and changed under another name": (
        "xs = [t, n]\nys = xs\nif t < n:  # here\n    xs = [n, n]\nxs[0] = t\nR[t] = ys[0]", ALIASED, "ys = list(xs)"),
    "two names for one list on one path": (
        "xs, ys = [t], [n]\nif t < n:  # here\n    xs = [n]\n    ys = xs\nxs[0] += 1\nR[t] = ys[0]",
        ALIASED, "ys = list(xs)"),
    "a list rebound in a loop, and changed under another name": (
        "xs = [t, n]\nys = xs\nfor i in range(n):  # here\n    xs[0] += 5\n    xs = [xs[1], xs[0]]\nR[t] = ys[0]",
        ALIASED, "ys = list(xs)"),
    "a parameter rebound, and changed, that the caller keeps": (
        "def f(xs):\n    if t < n:  # here\n        xs = [n, n]\n    xs[0] = t\n    return xs[1]\n"
        "xs = [t, n]\nR[t] = f(xs) + xs[0]", ALIASED, "ys = list(xs)"),
    "an iterator that moves on in an arm": (
        "it = iter([1, 2])\nx = fx.Int32(next(it))\nif t < n:  # here\n    x = fx.Int32(next(it))\nR[t] = x",
        "'it' (list_iterator) changes in control flow that the device decides", "a list of numbers"),
    "a generator that moves on in an arm": (
        "def g():\n    yield 1\n    yield 2\nit = g()\nx = fx.Int32(next(it))\nif t < n:\n    x = fx.Int32(next(it))\n"
        "R[t] = x", "'it' (generator) changes", "a list of numbers"),
    "a counter that moves on in a loop": (
        "it = itertools.count()\nfor i in range(n):\n    next(it)\nR[t] = next(it)", "'it' (count) changes", "list"),
    "bytes that an arm changes": (
        "b = bytearray(4)\nif t < n:\n    b[1] = 5\nR[t] = b[1]", "'b' (bytearray) changes", "a list of numbers"),
    "an exception of one path, caught for all": (
        "x = t\ntry:\n    if t < n:  # here\n        x = {}['none']\nexcept KeyError:\n    x = n\nR[t] = x",
        "an arm of the `{kind}` on line {line} was left by KeyError: 'none', which was caught outside of it",
        "catch it where it is raised"),
    "a variable that is deleted on one path of a loop": (
        "x = t\nfor i in range(n):  # here\n    if i == t:\n        del x\nR[t] = x",
        "'x' has no value, or not on all paths, at the end of a round of the `{kind}` on line {line}", "del x"),
    "a loop over an endless iterator that the device ends": (
        "s = 0\nfor i in itertools.count():  # here\n    if i > t:\n        break\n    s += i\nR[t] = s",
        "the `{kind}` on line {line} is unrolled, and does not end", "write a `while`"),
}


@pytest.mark.parametrize("body, words, hint", REFUSED.values(), ids=REFUSED)
def test_what_no_value_can_stand_for_is_refused(body: str, words: str, hint: str) -> None:
    error = refused(body, MODULES)
    line = line_of(body, "# here", MODULES) if "# here" in body else 0
    kind = "for" if "for i in range(n):  # here" in body or "count():  # here" in body else "if"
    assert words.format(kind=kind, line=line) in error.message
    assert hint in (error.hint or "")
    assert error.where is not None and error.where.text.strip()


def test_a_list_of_two_names_that_nothing_changes_is_fine() -> None:
    agree("xs = [t, n]\nys = xs\nif t < n:\n    xs = [n, n]\nR[t] = xs[0] * 100 + ys[0]")


def test_nested_loops_are_not_traced_twice_as_often_with_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The item of the list is only found to change by a trace; each level would find that anew."""
    rounds = []
    trace_round = loops.For._round

    def counted(self: loops.For) -> Any:
        rounds.append(self)
        return trace_round(self)

    monkeypatch.setattr(loops.For, "_round", counted)
    depth = 7
    heads = "".join("    " * i + f"for i{i} in range(2):\n" for i in range(depth))
    names = kernel_of(f"z = [0]\n{heads}{'    ' * depth}z[0] += 1\nA[fx.thread_idx.x] = z[0]")
    A = np.zeros(64, np.int32)
    names["launch"](A)
    assert (2**depth == A).all()
    assert len(rounds) <= depth * (depth + 3) / 2


def test_an_error_at_the_end_of_a_region_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: loops.Loop) -> None:
        raise ValueError("no")

    monkeypatch.setattr(loops.Loop, "_end", fails)
    names = kernel_of("s = 0\nfor i in range(3):\n    s += i\nA[0] = s")
    with pytest.raises(ValueError, match="no"):
        names["launch"](np.zeros(64, np.int32))
    assert active.function is None and active.region is None
    monkeypatch.undo()
    A = np.zeros(64, np.int32)
    names["launch"](A)
    assert A[0] == 3


@pytest.mark.parametrize("body", [
    "i = t\nwhile True:\n    x = A[i % 64]\n    if x > n or i > t + 9:\n        break\n    i += 1\nR[t] = x * 100 + i",
    "for i in range(20):\n    x = A[i] + t\n    if x > 2 * n:\n        break\nR[t] = x * 100 + i",
])
def test_what_every_first_round_binds_has_a_value_behind_the_loop(body: str) -> None:
    agree(body)


def test_a_name_of_a_round_that_may_not_begin_is_refused_behind_it() -> None:
    body = "for i in range(n):\n    x = i\n    if A[i] > 3:\n        break\nelse:\n    x = -1\nR[t] = x"
    error = refused(body)
    assert "'x' has a value only where the `for ... else`" in error.message
    assert str(error.hint).startswith("give 'x' a value before the `for ... else`")
    assert error.where is not None and error.where.text.strip() == "R[t] = x"


ENDLESS = """
@flyc.kernel
def k(A: fx.Tensor):
    x = A[0]
    while {test}:
        {body}
    A[1] = x

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=1)
"""


@pytest.mark.parametrize("test, body", [("x < 1.0", "x = x * 1.0"), ("A[0] < 1.0", "pass")])
def test_a_loop_that_may_never_end_is_not_taken_out(test: str, body: str) -> None:
    names = cell(ENDLESS.format(test=test, body=body))
    compiled = flyc.compile(names["launch"], np.zeros(64, np.float32))
    jumps = [i for i in compiled.isa.kernels["k"].instructions if "branch" in i.mnemonic]
    assert jumps, "what follows would run for a thread that never gets there"


def test_a_while_of_known_numbers_is_not_unrolled_without_end() -> None:
    names = cell(ENDLESS.format(test="True", body="x = x"))
    with pytest.raises(TraceError, match="the `while` on line 4 is decided while tracing, and does not end") as caught:
        flyc.compile(names["launch"], np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 4
    assert "for i in range(n)" in str(caught.value.hint)


def test_what_a_kernel_made_is_gone_after_its_trace() -> None:
    """What traces a branch or a loop knows the frame that it stands in, and is a variable of it: no cycle may stay."""
    names = kernel_of("""
t = fx.thread_idx.x
probe = Probe()
made.append(weakref.ref(probe))
s = 0
for k in (1, 2):
    if t > k:
        s += k
    else:
        s -= k
for i in range(t):
    s += i
for i in range(0):
    s += 1
w = 0
while w < 3:
    w += 1
while s < 5:
    s += 1
A[t] = s if t < 3 else 0
""")

    class Probe:
        pass

    made: list[Any] = []
    names.update(Probe=Probe, made=made, weakref=weakref)
    gc.disable()
    try:
        names["launch"](np.zeros(64, np.int32))
        assert [each() for each in made] == [None]
    finally:
        gc.enable()
