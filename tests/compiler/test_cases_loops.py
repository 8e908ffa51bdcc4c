"""Users' cases L04 to L10: loops and exits. Each body gives on the device what Python gives for each thread.

A row is a program over `t` (the thread), `n`, `m` (runtime integers), `A` (integers), `X` (floats), `R` (the result).
"""

from __future__ import annotations

import numpy as np
import pytest

from flylab.errors import FlylabError
from tests.compiler.threads import agree, by_device, line_of, refused
from tests.samples import kernel_of

# L04, L05: values that a loop carries, found by themselves.
CARRIED = {
    "a sum": "acc = 0\nfor i in range(n):\n    acc += 1\nR[t] = acc",
    "a nested loop over the same name": (
        "acc = 0\nfor i in range(n):\n    for i in range(m):\n        acc += 1\nR[t] = acc"
    ),
    "an inner loop over the outer's bound": (
        "acc = 0\nfor i in range(n):\n    for j in range(i):\n        acc += j\nR[t] = acc + t"
    ),
    "the outer's variable after the inner loop": (
        "acc = 0\nfor i in range(n):\n    for i in range(m):\n        pass\n    acc += i\nR[t] = acc"
    ),
    "a loop in an arm over the same name": (
        "acc = 0\nfor i in range(n):\n    if t > i:\n        for i in range(2):\n            acc += i\n    acc += i\nR[t] = acc"
    ),
    "three levels": (
        "acc = 0\nfor i in range(n):\n    for j in range(m):\n        for k in range(i, j + 2):\n            acc += k - i\n"
        "R[t] = acc"
    ),
    "floats from lo to hi": "acc = 0.0\nfor k in range(m, n, 2):\n    acc += X[k % 64]\nR[t] = fx.Int32(acc * 4.0)",
    "lo, hi and step by thread": (
        "acc = 0.0\nfor k in range(t, n, m):\n    acc += X[k % 64]\nR[t] = fx.Int32(acc * 4.0)"
    ),
    "bounds from memory": "acc = 0\nfor k in range(A[t], A[t] + n):\n    acc += k\nR[t] = acc",
    "bounds of two kinds": "acc = 0\nfor k in range(fx.Int64(0), n):\n    acc += fx.Int32(k)\nR[t] = acc",
    "a range made before": "acc = 0\nr = range(5)\nfor k in r:\n    acc += k * t\nR[t] = acc",
    "a plain range": "acc = 0\nfor k in range(5):\n    acc += k * t\nR[t] = acc",
    "a plain range that does not run": "acc = t\nfor k in range(3, 1):\n    acc += k\nR[t] = acc",
    "two values swapped": "a, b = t, 1\nfor k in range(n):\n    a, b = b, a + b\n    a = a % 1000\n    b = b % 1000\nR[t] = a",
    "a running maximum": "best = A[0]\nfor k in range(n):\n    best = fx.max(best, A[(k + t) % 64])\nR[t] = best",
    "a first hit": "at = -1\nfor k in range(64):\n    if at < 0 and A[k] > t:\n        at = k\nR[t] = at",
    "a Boolean": "seen = False\nfor k in range(n):\n    seen = seen or A[k % 64] == t\nR[t] = 1 if seen else 0",
    "a value bound in the body alone": "acc = 0\nfor k in range(n):\n    x = k * t\n    acc += x\nR[t] = acc",
    "a temporary of two types": (
        "acc = 0\nfor k in range(n):\n    x = k\n    acc += x\n    x = X[t]\n    acc += fx.Int32(x * 4.0)\nR[t] = acc"
    ),
    "a while": "i, acc = t, 0\nwhile i < n:\n    acc += i\n    i += m\nR[t] = acc * 100 + i",
    "a while in a for": "acc = 0\nfor k in range(n):\n    i = k\n    while i > 0:\n        i = i // 2\n        acc += 1\nR[t] = acc + t",
    "a for in a while": "i, acc = t, 0\nwhile i < n:\n    for k in range(3):\n        acc += k\n    i += 1\nR[t] = acc",
    "a while whose test is a call": (
        "def goes(i):\n    return i < n and i < 64 and A[i] < 12\ni = t\nwhile goes(i):\n    i += 1\nR[t] = i"
    ),
    "collatz": (
        "x, steps = t + 1, 0\nwhile x != 1:\n    if x % 2 == 0:\n        x = x // 2\n    else:\n        x = 3 * x + 1\n"
        "    steps += 1\nR[t] = steps"
    ),
    "greatest common divisor": "a, b = t + 6, n\nwhile b:\n    a, b = b, a % b\nR[t] = a",
    "a value unchanged in the body": "x = t\nacc = 0\nfor k in range(n):\n    acc += x\n    x = x\nR[t] = acc + x",
    "a loop in a helper": (
        "def total(k):\n    acc = 0\n    for i in range(k):\n        acc += A[i % 64]\n    return acc\nR[t] = total(n) + total(t)"
    ),
    "recursion by Python": (
        "def power(x, k):\n    return 1 if k == 0 else x * power(x, k - 1)\nR[t] = power(A[t], 3)"
    ),
    "an unrolled loop in a runtime one": (
        "acc = 0\nfor i in range(n):\n    for j in range_constexpr(3):\n        acc += A[j] * i\nR[t] = acc"
    ),
    "a runtime loop in an unrolled one": (
        "acc = 0\nfor j in range_constexpr(3):\n    for i in range(n):\n        acc += A[j] * i\nR[t] = acc"
    ),
    "range_constexpr carries too": "acc = t\nfor i in range_constexpr(1, 10, 4):\n    acc = acc * 2 + i\nR[t] = acc",
    "over a list": "acc = t\nfor v in [n, m, 5]:\n    acc = acc * 2 + v\nR[t] = acc",
    "zip and enumerate": "acc = t\nfor i, (a, b) in enumerate(zip([n, m], [1, 2])):\n    acc += i * a + b\nR[t] = acc",
    "a name deleted": "x = t\nfor i in range(n):\n    y = i\n    del y\n    x += i\nR[t] = x",
}


@pytest.mark.parametrize("body", CARRIED.values(), ids=CARRIED)
def test_l04_l05_what_a_loop_carries_is_found(body: str) -> None:
    agree(body)


# L06: a variable whose type changes in the loop. Words of the message, of the hint; {n} is the line of mark n.
CHANGED = {
    "an integer and a float": (
        "acc = fx.Int32(0)  # 1\nfor i in range(n):\n    acc = acc + fx.Float32(1)  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "acc = fx.Float32(",
    ),
    "in a while": (
        "acc = fx.Int32(0)  # 1\nwhile acc < n:\n    acc = acc + fx.Float32(1)  # 2\nR[t] = 1",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "acc = fx.Float32(",
    ),
    "augmented": (
        "acc = fx.Int32(0)  # 1\nfor i in range(n):\n    acc += X[i]  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "acc = fx.Float32(",
    ),
    "a float and an integer": (
        "acc = X[t]  # 1\nfor i in range(n):\n    acc = t  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as f32 (line {1}) but is i32 at the end of the body (line {2})",
        "acc = fx.Float32(",
    ),
    "two widths": (
        "acc = t  # 1\nfor i in range(n):\n    acc = fx.Int64(i)  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is i64 at the end of the body (line {2})",
        "fx.Int64(",
    ),
    "in a nested loop": (
        "acc = t  # 1\nfor i in range(n):\n    for j in range(m):\n        acc = acc + X[j]  # 2\nR[t] = fx.Int32(acc)",
        "loop variable 'acc' starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "fx.Float32(",
    ),
    "in an arm of the body": (
        "acc = t  # 1\nfor i in range(n):\n    if i > 3:  # 2\n        acc = X[i]\nR[t] = fx.Int32(acc)",
        "'acc' is f32 where the `if` on line {2} holds, and i32 otherwise",
        "fx.Float32(",
    ),
    "a vector and a number": (
        "acc = t  # 1\nfor i in range(n):\n    acc = fx.Vector.filled(4, 0, fx.Int32)  # 2\nR[t] = 1 if acc else 0",
        "loop variable 'acc' starts as i32 (line {1}) but is vector<4xi32> of shape (4,) at the end of the body (line {2})",
        "start with what it becomes",
    ),
    "two lengths of vectors": (
        "acc = fx.Vector.filled(2, 0, fx.Int32)  # 1\nfor i in range(n):\n    acc = fx.Vector.filled(4, 0, fx.Int32)  # 2\n"
        "R[t] = acc[0]",
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
        "loop variable 'p'[1] starts as i32 (line {1}) but is f32 at the end of the body (line {2})",
        "fx.Float32(",
    ),
    "None and a number": (
        "best = None  # 1\nfor i in range(n):\n    best = A[i]  # 2\nR[t] = best",
        "loop variable 'best' starts as Python's None (line {1}) but is i32 at the end of the body (line {2})",
        "start with what it becomes",
    ),
    "a state of init": (
        "for i, state in range(0, n, init=[fx.Int32(0)]):\n    x = state[0] + X[i]\n    results = yield [x]\nR[t] = 1",
        "loop variable state[0] starts as i32 but is f32 at the end of the body",
        "start with what it becomes",
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


# L06, the other half: Python numbers take the format that the loop gives them.
SETTLED = {
    "0 becomes a float": "acc = 0\nfor i in range(n):\n    acc += X[(i + t) % 64]\nR[t] = fx.Int32(acc * 4.0)",
    "0 in a while": "acc, i = 0, t\nwhile i < n:\n    acc += X[i % 64]\n    i += 1\nR[t] = fx.Int32(acc * 4.0)",
    "0 in a list": "xs = [0, 0]\nfor i in range(n):\n    xs[1] = xs[1] + X[i % 64]\nR[t] = fx.Int32(xs[1] * 4.0) + xs[0]",
    "0 in nested loops": (
        "acc = 0\nfor i in range(n):\n    for j in range(m):\n        acc += X[(i + j) % 64]\nR[t] = fx.Int32(acc * 4.0)"
    ),
    "one after the other": "a = 0\nb = 0\nfor i in range(n):\n    b = a\n    a = X[i % 64]\nR[t] = fx.Int32((a + b) * 4.0)",
    "-inf as the start of a maximum": (
        "best = float('-inf')\nfor i in range(5):\n    best = fx.max(best, X[(i + t) % 64])\nR[t] = fx.Int32(best * 4.0)"
    ),
    "False and a comparison": "hit = False\nfor i in range(n):\n    hit = A[(i + t) % 64] == 3\nR[t] = 1 if hit else 0",
}


@pytest.mark.parametrize("body", SETTLED.values(), ids=SETTLED)
def test_l06_a_python_number_takes_the_format_that_the_loop_gives_it(body: str) -> None:
    agree(body)


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


# L08: the loop's variable afterwards.
AFTERWARDS = {
    "bound before": "i = 50\nfor i in range(n):\n    pass\nR[t] = i",
    "bound before, changed in the body": "i = 50\nfor i in range(n):\n    i = i * 3\nR[t] = i",
    "of a plain range": "for i in range(5):\n    pass\nR[t] = i + t",
    "of a plain range with a step": "for i in range(1, 11, 4):\n    pass\nR[t] = i + t",
    "of an unrolled loop": "for i in range_constexpr(5):\n    pass\nR[t] = i + t",
    "after a break": "i = -1\nfor i in range(64):\n    if A[i] > t // 4:\n        break\nR[t] = i",
    "after a break, not bound before": "for i in range(64):\n    if A[i] > t // 4:\n        break\nR[t] = i",
    "after counting down": "i = 99\nfor i in range(n, 0, -2):\n    pass\nR[t] = i",
    "used by a second loop": "i = 1\nfor i in range(n):\n    pass\nacc = 0\nfor j in range(i):\n    acc += j\nR[t] = acc",
    "two targets": "i = j = 7\nfor i, j in [(n, m), (t, 5)]:\n    pass\nR[t] = i + j",
    "bound in the body, zero rounds": "x = 5\nfor i in range(n):\n    x = i * 2\nR[t] = x",
    "bound in the body of a plain range": "for i in range(4):\n    x = i * t\nR[t] = x",
    "in a nested loop": "i = j = -1\nfor i in range(n):\n    for j in range(i):\n        pass\nR[t] = i * 100 + j",
}


@pytest.mark.parametrize("body", AFTERWARDS.values(), ids=AFTERWARDS)
def test_l08_the_loop_variable_afterwards(body: str) -> None:
    agree(body)


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


# L09: steps.
STEPS = {
    "-1": "acc = 0\nfor i in range(n, 0, -1):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "-2": "acc = 0\nfor i in range(n, 0, -2):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "-3 to a runtime bound": "acc = 0\nfor i in range(n, m, -3):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "down by thread": "acc = 0\nfor i in range(t, -1, -7):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "plain, down": "acc = t\nfor i in range(10, 0, -3):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "unrolled, down": "acc = t\nfor i in range_constexpr(10, 0, -3):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "a constant of the device": "acc = 0\nfor i in range(n, 0, fx.Int32(-2)):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "3, no multiple of it": "acc = 0\nfor i in range(1, n, 3):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "a runtime step": "acc = 0\nfor i in range(0, n, m):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "a Constexpr step": "acc = 0\nfor i in range(n, 0, -c):\n    acc = acc * 3 % 1000 + i\nR[t] = acc",
    "down, negative bounds": "acc = 0\nfor i in range(-n, -n - 9, -4):\n    acc = acc * 3 % 1000 + i\nR[t] = acc + t",
    "down, with a break": "acc = 0\nfor i in range(n, 0, -1):\n    if i < 4:\n        break\n    acc += i\nR[t] = acc",
}


@pytest.mark.parametrize("body", STEPS.values(), ids=STEPS)
def test_l09_steps(body: str) -> None:
    agree(body)


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
EXITS = {
    "a guard": "if t >= n:\n    return\nR[t] = 1",
    "a guard in a nested if": "if t > m:\n    if t >= n:\n        return\n    R[t] = 2\nR[t] = 1",
    "two guards": "if t >= n:\n    return\nif A[t] < 0:\n    return\nR[t] = A[t]",
    "a guard and an else": "if t >= n:\n    return\nelse:\n    R[t] = 1\nR[t] = R[t] + 5",
    "both arms return": "if t < n:\n    R[t] = 1\n    return\nelse:\n    R[t] = 2\n    return\nR[t] = 3",
    "a guard before a loop": "if t >= n:\n    return\nacc = 0\nfor i in range(t):\n    acc += i\nR[t] = acc",
    "a guard of a load outside": "if t + 40 >= 64:\n    return\nR[t] = A[t + 40]",
    "return in a loop": "for i in range(n):\n    if A[i % 64] > t:\n        R[t] = i\n        return\nR[t] = -1",
    "return in two loops": (
        "for i in range(n):\n    for j in range(m):\n        if i * j > t:\n            R[t] = i * 10 + j\n            return\n"
        "R[t] = -1"
    ),
    "return in a while": "i = 0\nwhile True:\n    if i * i >= t:\n        R[t] = i\n        return\n    i += 1",
    "break": "acc = 0\nfor i in range(n):\n    if i > t:\n        break\n    acc += i\nR[t] = acc",
    "continue": "acc = 0\nfor i in range(n):\n    if A[i % 64] < 0:\n        continue\n    acc += i\nR[t] = acc",
    "break and continue": (
        "acc = 0\nfor i in range(n):\n    if i % 3 == 0:\n        continue\n    if i > t:\n        break\n    acc += i\nR[t] = acc"
    ),
    "break in a while": "i = 0\nwhile i < n:\n    if A[i % 64] > t:\n        break\n    i += 1\nR[t] = i",
    "continue in a while": "i = acc = 0\nwhile i < n:\n    i += 1\n    if i % 2:\n        continue\n    acc += i\nR[t] = acc",
    "while True": "i = t\nwhile True:\n    i += 5\n    if i > n:\n        break\nR[t] = i",
    "break of an inner loop": (
        "acc = 0\nfor i in range(n):\n    for j in range(9):\n        if j > i:\n            break\n        acc += 1\nR[t] = acc"
    ),
    "continue of an inner loop": (
        "acc = 0\nfor i in range(n):\n    for j in range(4):\n        if j == i:\n            continue\n        acc += j\n"
        "    acc += 100\nR[t] = acc"
    ),
    "break in nested ifs": (
        "acc = 0\nfor i in range(n):\n    if i > 2:\n        if i > t:\n            break\n        acc += 10\n    acc += 1\nR[t] = acc"
    ),
    "break in an else": "acc = 0\nfor i in range(n):\n    if i <= t:\n        acc += i\n    else:\n        break\nR[t] = acc",
    "break after a change": "acc = 0\nfor i in range(n):\n    acc += i\n    if acc > t:\n        break\nR[t] = acc",
    "break without a condition": "acc = 0\nfor i in range(n):\n    acc += 7\n    break\nR[t] = acc",
    "for else": "for i in range(n):\n    if A[i % 64] > t:\n        R[t] = i\n        break\nelse:\n    R[t] = -1",
    "for else with no break": "acc = 0\nfor i in range(n):\n    acc += 1\nelse:\n    acc += 100\nR[t] = acc",
    "while else": "i = 0\nwhile i < n:\n    if A[i % 64] > t:\n        break\n    i += 1\nelse:\n    i = -1\nR[t] = i",
    "break in an unrolled loop": (
        "acc = 0\nfor i in range_constexpr(6):\n    if A[i] > t:\n        break\n    acc += i\nR[t] = acc"
    ),
    "a static break in an unrolled loop": "acc = t\nfor i in range_constexpr(9):\n    if i == c:\n        break\n    acc += i\nR[t] = acc",
    "a static break in a runtime loop": "acc = t\nfor i in range(n):\n    acc += i\n    if c == 4:\n        break\nR[t] = acc",
    "break over a list": "acc = t\nfor v in [1, n, m]:\n    if v > acc:\n        break\n    acc += v\nR[t] = acc",
    "a helper's guard": "def f(v):\n    if v >= n:\n        return -1\n    return A[v]\nR[t] = f(t)",
    "a helper with three returns": (
        "def f(v):\n    if v < m:\n        return 1\n    if v < n:\n        return v\n    return 0\nR[t] = f(t)"
    ),
    "a helper's returns in all arms": (
        "def f(v):\n    if v < m:\n        return 1\n    elif v < n:\n        return v\n    else:\n        return 0\nR[t] = f(t)"
    ),
    "a helper that returns in a loop": (
        "def find(v):\n    for i in range(64):\n        if A[i] == v:\n            return i\n    return -1\nR[t] = find(t)"
    ),
    "a helper that returns tuples": (
        "def f(v):\n    if v < n:\n        return v, 1\n    return 0, v\na, b = f(t)\nR[t] = a * 100 + b"
    ),
    "a helper that returns a list and a dict": (
        "def f(v):\n    if v < n:\n        return {'a': [v, 1]}\n    return {'a': [2, v]}\nd = f(t)\nR[t] = d['a'][0] * 100 + d['a'][1]"
    ),
    "a helper of None": "def f(v):\n    if v < n:\n        return\n    R[v] = 5\nf(t)",
    "a method with a guard": (
        "class C:\n    def at(self, v):\n        if v >= n:\n            return 0\n        return A[v]\nR[t] = C().at(t)"
    ),
    "return in a with": (
        "import contextlib\nwith contextlib.nullcontext():\n    if t >= n:\n        return\nR[t] = 1"
    ),
    "values merged behind a guard": "x = 0\nif t < n:\n    x = t\n    if t > m:\n        return\n    x += 1\nR[t] = x",
    "Python returns": "if c == 4:\n    R[t] = 1\n    return\nR[t] = fx.nothing",
}


@pytest.mark.parametrize("body", EXITS.values(), ids=EXITS)
def test_l10_exits(body: str) -> None:
    agree(body)


@pytest.mark.parametrize("name", ["a guard", "return in two loops", "break and continue", "for else"])
def test_l10_exits_on_the_other_chip(name: str) -> None:
    agree(EXITS[name], chip="gfx950")


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
    "return in a try": (
        "try:\n    if t < n:\n        return\nfinally:\n    pass\nR[t] = 1",
        "a `return` in a `try` inside of runtime control flow", "behind the `try`",
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
