"""Users' cases L04 to L10: loops and exits. Each body gives on the device what Python gives for each thread.

A row is a program over `t` (the thread), `n`, `m` (runtime integers), `A` (integers), `X` (floats), `R` (the result).
"""

from __future__ import annotations

import numpy as np
import pytest

from flylab.errors import FlylabError
from tests.compiler.threads import agree, by_device, each_program, line_of, programs, refused
from tests.samples import kernel_of


@each_program("loops", "L05")
def test_l04_l05_what_a_loop_carries_is_found(head: str, body: str) -> None:
    agree(body, head)


# L06: a variable whose type changes in the loop. Words of the message, of the hint; {n} is the line of mark n.
CHANGED = {
    "an integer and a float": (
        "acc = fx.Int32(0)  # 1\nfor i in range(n):\n    acc = acc + fx.Float32(1)  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "start with acc = fx.Float32(...), or end the body with acc = fx.Int32(...)",
    ),
    "in a while": (
        "acc = fx.Int32(0)  # 1\nwhile acc < n:\n    acc = acc + fx.Float32(1)  # 2\nR[t] = 1",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "start with acc = fx.Float32(...), or end the body with acc = fx.Int32(...)",
    ),
    "augmented": (
        "acc = fx.Int32(0)  # 1\nfor i in range(n):\n    acc += X[i]  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "start with acc = fx.Float32(...), or end the body with acc = fx.Int32(...)",
    ),
    "a float and an integer": (
        "acc = X[t]  # 1\nfor i in range(n):\n    acc = t  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as f32 (line {1}) but is i32 at the end of the body (line {2})",
        "start with acc = fx.Int32(...), or end the body with acc = fx.Float32(...)",
    ),
    "two widths": (
        "acc = t  # 1\nfor i in range(n):\n    acc = fx.Int64(i)  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is i64 at the end of the body (line {2})",
        "start with acc = fx.Int64(...), or end the body with acc = fx.Int32(...)",
    ),
    "in a nested loop": (
        "acc = t  # 1\nfor i in range(n):\n    for j in range(m):\n        acc = acc + X[j]  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "start with acc = fx.Float32(...)",
    ),
    "in an arm of the body": (
        "acc = t  # 1\nfor i in range(n):\n    if i > 3:  # 2\n        acc = X[i]\nR[t] = fx.Int32(acc)",
        "'acc' is f32 where the `if` on line {2} holds, and i32 otherwise",
        "fx.Float32(",
    ),
    "a vector and a number": (
        "acc = t  # 1\nfor i in range(n):\n    acc = fx.Vector.filled(4, 0, fx.Int32)  # 2\nR[t] = 1 if acc else 0",
        "loop variable 'acc' starts as i32 (line {1}) but is vector<4xi32> of shape (4,) at the end of the body "
        "(line {2})",
        "start with what it becomes",
    ),
    "two lengths of vectors": (
        "acc = fx.Vector.filled(2, 0, fx.Int32)  # 1\nfor i in range(n):\n"
        "    acc = fx.Vector.filled(4, 0, fx.Int32)  # 2\nR[t] = acc[0]",
        "loop variable 'acc' starts as vector<2xi32> of shape (2,) (line {1}) but is vector<4xi32> of shape (4,) at",
        "start with what it becomes",
    ),
    "an item of a list": (
        "xs = [t]  # 1\nfor i in range(n):\n    xs[0] = X[i]  # 2\nR[t] = fx.Int32(xs[0])",
        "loop variable 'xs[0]' starts as i32",
        "fx.Float32(",
    ),
    "an attribute": (
        "ns = types.SimpleNamespace(a=t)  # 1\nfor i in range(n):\n    ns.a = X[i]  # 2\nR[t] = 1",
        "loop variable 'ns.a' starts as i32",
        "fx.Float32(",
    ),
    "a part of a tuple": (
        "p = (t, t)  # 1\nfor i in range(n):\n    p = (t, X[i])  # 2\nR[t] = p[0]",
        "loop variable 'p[1]' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "fx.Float32(",
    ),
    "None and a number": (
        "best = None  # 1\nfor i in range(n):\n    best = A[i]  # 2\nR[t] = best",
        "loop variable 'best' starts as Python's None (line {1}) but is i32 at the end of the body (line {2})",
        "start with what it becomes",
    ),
    "a state of init": (
        "for i, state in range(0, n, init=[fx.Int32(0)]):\n    x = state[0] + X[i]\n    results = yield [x]\nR[t] = 1",
        "loop variable 'state[0]' starts as i32 but is f32 at the end of the body",
        "start with state[0] = fx.Float32(...)",
    ),
    "states of another number": (
        "for i, state in range(0, n, init=[t, t]):\n    results = yield [state[0]]\nR[t] = 1",
        "yields 1 values, and init has 2",
        "one value for each of init",
    ),
}


def _marked(words: str, body: str) -> str:
    for mark in ("1", "2"):
        if f"{{{mark}}}" in words:
            words = words.replace(f"{{{mark}}}", str(line_of(body, f"# {mark}")))
    return words


@pytest.mark.parametrize("body, words, hint", CHANGED.values(), ids=CHANGED)
def test_l06_a_variable_whose_type_changes_in_the_loop(body: str, words: str, hint: str) -> None:
    error = refused(body)
    assert _marked(words, body) in error.message
    assert hint in (error.hint or "")
    assert error.where is not None and error.where.file.startswith("<cell")


def test_l06_the_line_that_it_names_is_the_users() -> None:
    error = refused(CHANGED["an integer and a float"][0])
    assert error.where is not None
    assert error.where.text.strip() in ("for i in range(n):", "acc = acc + fx.Float32(1)  # 2")


@each_program("loops", "L06")
def test_l06_a_python_number_takes_the_format_that_the_loop_gives_it(head: str, body: str) -> None:
    agree(body, head)


# L07: the logical shape of a vector; the kernel writes its shape's product and its sum.
V = "v = fx.Vector.filled((4, 1), 1.0, fx.Float32)\n"
SHAPES = {
    "for": "for i in range(n):\n    v = v + 1.0\n",
    "while": "i = t\nwhile i < n:\n    v = v + 1.0\n    i += 1\n",
    "if": "if t < n:\n    v = v + 1.0\n",
    "if, one arm anew": "if t < n:\n    v = fx.Vector.filled((4, 1), 5.0, fx.Float32)\n",
    "conditional expression": "v = v + 1.0 if t < n else v\n",
    "nested loops": "for i in range(n):\n    for j in range(m):\n        if j > 0:\n            v = v + 1.0\n",
    "init": "for i, (v,) in range(0, n, init=[v]):\n    (v,) = yield [v + 1.0]\n",
    "a list": "vs = [v, v]\nfor i in range(n):\n    vs[1] = vs[1] + 1.0\nv = vs[1]\n",
    "an attribute in an arm": "ns = types.SimpleNamespace(v=v)\nif t < n:\n    ns.v = ns.v + 1.0\nv = ns.v\n",
    "a break": "for i in range(n):\n    if i > 4:\n        break\n    v = v + 1.0\n",
    "a helper's return": "def f(v):\n    if t < n:\n        return v + 1.0\n    return v\nv = f(v)\n",
}
ROUNDS = {
    "for": lambda t, n: n, "while": lambda t, n: max(n - t, 0), "nested loops": lambda t, n: n * 2,
    "if, one arm anew": lambda t, n: 4 * (t < n), "init": lambda t, n: n, "a list": lambda t, n: n,
    "a break": lambda t, n: min(n, 5),
}


@pytest.mark.parametrize("name", SHAPES)
def test_l07_a_vector_keeps_its_logical_shape(name: str) -> None:
    body = V + SHAPES[name] + "assert v.shape == (4, 1), v.shape\nR[t] = fx.Int32(v[0] + v[3])"
    rounds = ROUNDS.get(name, lambda t, n: t < n)
    for n, found in zip((0, 1, 7), by_device(body, bounds=(0, 1, 7)), strict=True):
        assert found == [2 * (1 + rounds(t, n)) for t in range(64)]


def test_l07_two_shapes_of_one_length_are_two_types() -> None:
    error = refused(V + "for i in range(n):\n    v = fx.Vector.filled((2, 2), 1.0, fx.Float32)\nR[t] = fx.Int32(v[0])")
    assert "shape (4, 1)" in error.message and "shape (2, 2)" in error.message


@each_program("loops", "L08")
def test_l08_the_loop_variable_afterwards(head: str, body: str) -> None:
    agree(body, head)


NOT_BOUND = {
    "the loop's variable": ("for i in range(n):  # loop\n    pass\nR[t] = i  # use", "'i'"),
    "a name of the body": ("for i in range(n):  # loop\n    x = i\nR[t] = x  # use", "'x'"),
    "a name of a while's body": ("i = t\nwhile i < n:  # loop\n    x = i\n    i += 1\nR[t] = x  # use", "'x'"),
    "augmented": ("for i in range(n):  # loop\n    x = i\nx += 1  # use\nR[t] = x", "'x'"),
}


@pytest.mark.parametrize("body, name", NOT_BOUND.values(), ids=NOT_BOUND)
def test_l08_a_name_that_a_loop_may_not_bind_is_an_error_at_its_use(body: str, name: str) -> None:
    error = refused(body)
    assert isinstance(error, NameError)
    assert error.where is not None and error.where.line == line_of(body, "# use")
    kind = "while" if "while" in body else "for"
    loop = f"the `{kind}` on line {line_of(body, '# loop')}"
    assert error.message == f"{name} has no value where {loop} does not run"
    assert error.hint == f"give {name} a value before {loop}"


def test_l08_a_name_first_read_in_the_round_after_it_is_bound() -> None:
    body = "for i in range(n):\n    if i > 0:\n        R[t] = x  # use\n    x = i"
    error = refused(body)
    assert isinstance(error, NameError) and error.where is not None and error.where.line == line_of(body, "# use")
    assert "'x' has no value before the `for`" in error.message and "give 'x' a value before" in (error.hint or "")


@each_program("loops", "L09")
def test_l09_steps(head: str, body: str) -> None:
    agree(body, head)


@pytest.mark.parametrize("step", ["0", "fx.Int32(0)", "c - 4"])
@pytest.mark.parametrize("loop", ["range(n, 0, {})", "range(0, 9, {})", "range_constexpr(0, 9, {})"])
def test_l09_a_step_of_0_is_an_error(step: str, loop: str) -> None:
    body = f"for i in {loop.format(step)}:  # loop\n    R[t] = i"
    error = refused(body)
    assert "step" in error.message or "arg 3 must not be zero" in error.message
    assert "not 0" in (error.hint or "") and error.where is not None and error.where.line == line_of(body, "# loop")


@pytest.mark.parametrize("step", [0, -1])
def test_l09_a_runtime_step_must_be_positive(step: int) -> None:
    with pytest.raises(FlylabError, match="the step of range of the `for` on line 7 is 0 or less") as caught:
        by_device("for i in range(0, n, m):\n    R[t] = i", m=step, bounds=(5,))
    assert caught.value.where is not None and caught.value.where.line == 7


def test_l05_bounds_at_the_end_of_the_format() -> None:
    """A loop up to the largest Int32 ends: its counter does not wrap."""
    body = "acc = 0\nfor k in range(2147483640 + n, 2147483647, 3):\n    acc += 1\nR[t] = acc"
    assert [row[0] for row in by_device(body, bounds=(0, 1, 7))] == [3, 2, 0]


# L10: exits.
EXITS = programs("loops", "L10")


@each_program("loops", "L10")
def test_l10_exits(head: str, body: str) -> None:
    agree(body, head)


@pytest.mark.parametrize("name", ["a guard", "return in two loops", "break and continue", "for else"])
def test_l10_exits_on_the_other_chip(name: str) -> None:
    head, body = EXITS[name]
    agree(body, head, chip="gfx950")


EXITS_REFUSED = {
    "two types of returns": (
        "def f(v):\n    if v < n:\n        return v\n    return X[v]\nR[t] = fx.Int32(f(t))",
        "the function returns f32 on one path and i32 on another", "one type",
    ),
    "two types in arms": (
        "def f(v):\n    if v < n:\n        return v\n    else:\n        return X[v]\nR[t] = fx.Int32(f(t))",
        "the function returns i32 on one path and f32 on another", "one type",
    ),
    "tuples of two lengths": (
        "def f(v):\n    if v < n:\n        return v, v\n    return (v,)\nR[t] = f(t)[0]",
        "returns a tuple of 1 on one path and a tuple of 2 on another", "one type",
    ),
    "a value on some paths": (
        "def f(v):\n    if v < n:\n        return v\nR[t] = f(t)",
        "'f' returns a value on some paths, and nothing on others", "end the function with a `return`",
    ),
    "return in a finally": (
        "if t < n:\n    try:\n        R[t] = 2\n    finally:\n        return\nR[t] = 1",
        "a `return` in a `finally` inside of runtime control flow", "behind the `try`",
    ),
    "break with init": (
        "for i, s in range(0, n, init=[t]):\n    if i > 3:\n        break\n    r = yield [s[0]]\nR[t] = r[0]",
        "in a loop with init=", "leave out init=",
    ),
    "raise": ("if t < n:\n    raise ValueError('no')\nR[t] = 1", "a `raise` in the `if` on line", "assert"),
}


@pytest.mark.parametrize("body, words, hint", EXITS_REFUSED.values(), ids=EXITS_REFUSED)
def test_l10_exits_that_cannot_be_are_refused_with_their_line(body: str, words: str, hint: str) -> None:
    error = refused(body)
    assert words in error.message
    assert hint in (error.hint or "")
    assert error.where is not None and error.where.text.strip()


def test_l10_a_launchers_guard() -> None:
    """An early return in a launcher is the launch that does not happen."""
    names = kernel_of("A[fx.thread_idx.x] = 1.0", "A: fx.Tensor, n: fx.Int32")
    A = np.zeros(64, np.float32)
    names["launch"](A, 1)
    assert (A == 1).all()
