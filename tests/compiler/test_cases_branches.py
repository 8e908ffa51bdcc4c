"""Users' cases L01 to L03 and L10 to L16: branches. Each body gives on the device what Python gives for each thread.

A row is a program over `t` (the thread), `n`, `m` (runtime integers), `A` (integers), `X` (floats), `R` (the result).
"""

from __future__ import annotations

import pytest

from flylab.errors import FlylabError
from tests.compiler.threads import agree, by_device, each_program, line_of, refused

HELPERS = """
def below(a, b):
    return a < b

class Flags:
    shared = 3

    def __init__(self, flag):
        self.flag = flag

    @property
    def again(self):
        return self.flag

    def __call__(self):
        return self.flag

    def __getitem__(self, index):
        return self.flag

def pair(a, b):
    return a < b, a > b
"""

@each_program("branches", "L01")
def test_l01_a_condition_reached_in_any_way(head: str, body: str) -> None:
    agree(body, HELPERS + head)


@each_program("branches", "L02")
def test_l02_a_value_that_arms_define(head: str, body: str) -> None:
    agree(body, head)


ONE_SIDED = {
    "then": ("if t < n:\n    x = t\nR[t] = x  # use", "where the `if` on line {0} holds", "if t < n:"),
    "else": ("if t < n:\n    pass\nelse:\n    x = t\nR[t] = x  # use",
             "where the `if` on line {0} does not hold", "if t < n:"),
    "the middle of elif": (
        "if t < n:\n    x = 1\nelif t < 40:\n    x = 2\nR[t] = x  # use",
        "where the `if` on line {0} holds",
        "elif t < 40:",
    ),
    "a nested if": (
        "if t < n:\n    if t > 3:  # inner\n        x = t\n    R[t] = x  # use",
        "where the `if` on line {0} holds",
        "# inner",
    ),
    "in a condition": ("if t < n:\n    x = t\nif x > 3:  # use\n    R[t] = 1",
                       "where the `if` on line {0} holds", "if t < n:"),
    "in a call": ("if t < n:\n    x = t\nR[fx.max(x, 1)] = 1  # use",
                  "where the `if` on line {0} holds", "if t < n:"),
    "augmented": ("if t < n:\n    x = t\nx += 1  # use\nR[t] = x", "where the `if` on line {0} holds", "if t < n:"),
    "in a closure": ("if t < n:\n    x = t\ndef f():\n    return x  # use\nR[t] = f()",
                     "where the `if` on line {0} holds", "if t < n:"),
}


@pytest.mark.parametrize("body, words, branch", ONE_SIDED.values(), ids=ONE_SIDED)
def test_l02_a_value_of_one_arm_names_the_variable_both_lines_and_the_fix(
    body: str, words: str, branch: str
) -> None:
    line = line_of(body, branch)
    error = refused(body)
    assert error.where is not None and error.where.line == line_of(body, "# use")
    assert f"'x' has a value only {words.format(line)}" in error.message
    assert f"give 'x' a value before the `if` on line {line}, or in" in (error.hint or "")


@each_program("branches", "L03")
def test_l03_containers_that_an_arm_or_a_loop_changes(head: str, body: str) -> None:
    agree(body, HELPERS + head)


CHANGED_FORM = {
    "append in an arm": ("xs = [t]\nif t < n:\n    xs.append(1)\nR[t] = xs[0]", ("'xs'", "2", "1"), "length"),
    "a longer list bound in an arm": ("xs = [t]\nif t < n:\n    xs = [1, 2]\nR[t] = xs[0]",
                                      ("'xs'", "a list of 2", "a list of 1"), "both arms"),
    "append in a loop": ("xs = [t]\nfor i in range(n):\n    xs.append(i)\nR[t] = xs[0]",
                         ("'xs'", "1 items before", "2 after"), "length"),
    "pop in a while": ("xs = [t, 1]\nwhile xs[0] < n:\n    xs.pop()\nR[t] = xs[0]",
                       ("'xs'", "2 items before", "1 after"), "length"),
    "a longer list in a loop": ("xs = [t]\nfor i in range(n):\n    xs = xs + [i]\nR[t] = xs[0]",
                                ("'xs'", "a list of 1", "a list of 2"), ""),
    "a new entry in an arm": ("d = {'a': t}\nif t < n:\n    d['b'] = 1\nR[t] = d['a']",
                              ("'d'", "'b'", "one arm"), "before"),
    "a new attribute in a loop": (
        "ns = types.SimpleNamespace(a=t)\nfor i in range(n):\n    ns.b = i\nR[t] = ns.a",
        ("'ns'", "b"), "before"),
    "an entry lost": ("d = {'a': t, 'b': 1}\nif t < n:\n    del d['b']\nR[t] = d['a']", ("'d'", "'b'"), "before"),
    "two types of one item": ("xs = [t]\nif t < n:\n    xs[0] = 1.5\nR[t] = xs[0]", ("'xs[0]'", "1.5", "i32"),
                              "one type"),
    "a set": ("s = {1}\nif t < n:\n    s.add(2)\nR[t] = len(s)", ("'s'",), "Booleans"),
}


@pytest.mark.parametrize("body, words, hint", CHANGED_FORM.values(), ids=CHANGED_FORM)
def test_l03_a_container_that_changes_its_form_is_refused(body: str, words: tuple[str, ...], hint: str) -> None:
    error = refused(body)
    for word in words:
        assert word in error.message
    assert hint in (error.hint or "") and error.hint


@each_program("branches", "L11")
def test_l11_names_do_not_leak(head: str, body: str) -> None:
    agree(body, head)


@each_program("branches", "L13")
def test_l13_what_python_decides_has_one_arm(head: str, body: str) -> None:
    agree(body, head)


@each_program("branches", "L14")
def test_l14_choices_evaluate_what_python_evaluates(head: str, body: str) -> None:
    agree(body, head)


@each_program("branches", "L16")
def test_l16_a_helper_that_writes_what_is_around_it(head: str, body: str) -> None:
    agree(body, head)


@each_program("branches", "L16 outside")
def test_l16_a_helper_that_writes_what_is_outside_of_the_kernel(head: str, body: str) -> None:
    """Right, or refused: never for every thread."""
    try:
        agree(body, head)
    except FlylabError as error:
        assert error.where is not None and error.hint


@pytest.mark.parametrize("made, change, read", [
    ("np.zeros(2, np.int64)", "x[0] += 1", "int(x[0])"),
    ("bytearray(2)", "x[0] += 1", "x[0]"),
    ("iter([1, 2, 3])", "next(x)", "next(x)"),
])
def test_l03_what_cannot_be_merged_is_refused(made: str, change: str, read: str) -> None:
    error = refused(f"x = {made}\nif t < n:\n    {change}\nR[t] = {read}", "import numpy as np")
    assert error.hint and error.where is not None


def test_l03_a_struct_is_merged_and_carried_field_by_field() -> None:
    head = """
        @fx.struct
        class Row:
            sums: fx.Array[fx.Int32, 2]
            last: fx.Int32

        @fx.struct
        class Pair:
            rows: fx.Array[Row, 2]
            at: fx.Int32 = 0
    """
    body = """
        pair = Pair(rows=[Row(sums=[t, n], last=0), Row(sums=[n, t], last=0)])
        for i in range(n):
            first, second = pair.rows
            pair = Pair(rows=[second, Row(sums=[first.sums[1] + i, first.sums[0]], last=i)], at=i)
            if i > t:
                break
            pair.at += 100
        R[t] = pair.rows[1].sums[0] * 1000 + pair.rows[0].last * 10 + pair.at
    """

    def expected(t: int, n: int) -> int:
        rows, at = [([t, n], 0), ([n, t], 0)], 0
        for i in range(n):
            first, second = rows
            rows, at = [second, ([first[0][1] + i, first[0][0]], i)], i
            if i > t:
                break
            at += 100
        return rows[1][0][0] * 1000 + rows[0][1] * 10 + at

    for n, found in zip((0, 1, 7), by_device(body, head, bounds=(0, 1, 7)), strict=True):
        assert found == [expected(t, n) for t in range(64)]


def test_l03_a_vector_that_an_arm_gives_to_a_field_is_merged() -> None:
    head = """
        @fx.struct
        class P:
            at: fx.Array[fx.Int32, 2]
            steps: fx.Int32
    """
    body = """
        p = P(at=[t, n], steps=0)
        if t < n:
            p.at = p.at * 2 + 1
            p.steps += 3
        R[t] = p.at[0] * 100 + p.at[1] * 10 + p.steps
    """
    for n, found in zip((0, 5), by_device(body, head, bounds=(0, 5)), strict=True):
        assert found == [(2 * t + 1) * 100 + (2 * n + 1) * 10 + 3 if t < n else t * 100 + n * 10 for t in range(64)]
