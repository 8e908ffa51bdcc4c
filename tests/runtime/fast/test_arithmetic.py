"""A host program that was simplified computes what fixed-width integers give, and computes less."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.expr as fx
from flylab.errors import TraceError
from flylab.expr.promotion import integer_range
from flylab.passes.host import NAMES, unsigned, wrap
from flylab.runtime.fast.arithmetic import Range, Simplifier
from tests.passes.test_host import ARGUMENTS, EXPRESSIONS, plan_of

RANGES: dict[str, Range | None] = {"_0": (0, (1 << 64) - 1)} | {
    f"_{n}": None if cls is fx.Boolean else integer_range(cls.dtype) for n, cls in enumerate(ARGUMENTS.values(), 1)
}


def simplified(text: str, ranges: Mapping[str, Range | None]) -> str:
    """The text of a host program whose arguments are called `_0`, `_1`, in these ranges."""
    (function,) = ast.parse(re.sub(r"\ba\[(\d+)\]", r"_\1", text)).body
    assert isinstance(function, ast.FunctionDef)
    simpler = Simplifier(ranges, function.body)
    function.args.args = [ast.arg(name) for name in ranges]
    function.body = [simpler.assignment(s) if isinstance(s, ast.Assign) else s for s in function.body]
    return ast.unparse(function)


def steps(text: str, values: list[Any]) -> list[Any]:
    space: dict[str, Any] = dict(NAMES)
    exec(text, space)
    return list(space["generate"](*values))


@settings(max_examples=250)
@given(EXPRESSIONS, st.data())
def test_results_are_those_of_fixed_width_integers(expression: str, data: st.DataObject) -> None:
    def draw(cls: Any) -> Any:
        if cls is fx.Boolean:
            return data.draw(st.booleans())
        low, high = integer_range(cls.dtype)
        return data.draw(st.one_of(st.sampled_from([low, high, 1]), st.integers(low, high)))

    values = {n: draw(c) for n, c in ARGUMENTS.items()}
    try:
        wanted = eval(expression, {"fx": fx}, {n: c(values[n]) for n, c in ARGUMENTS.items()})
        host, kinds = plan_of(expression)
    except (TraceError, ZeroDivisionError):
        return  # a division by zero
    if len(kinds) == 2:
        (launch,) = steps(simplified(host.text, RANGES), [4096, *values.values()])
        assert unsigned(launch.operands[1], 64) % 2 ** kinds[1].bits == int(wanted.value) % 2 ** kinds[1].bits


@pytest.mark.parametrize("expression", [
    "w({0}, 8)", "u({0}, 8)", "w({0} + {1}, 8)", "w(u({0}, 8), 16)", "w({0} * {1}, 16)", "w({0} << shift(3, 8), 8)",
    "({0} - div({0}, 7) * 7)", "div({0}, 7)", "({0} - div({0}, -7) * -7)", "div({0}, -7)", "u(div({0}, 5), 8)",
    "-({0} < {1})", "w(-({0} != 0) & -({1} < 0), 1)", "({0} ^ {1})", "w({0} | {1}, 8)", "w(u({0} & {1}, 4), 8)",
    "w(u(-({0} != 0), 1), 8)", "({0} if {1} else 3)", "w(max({0}, {1}), 8)", "w(min({0}, u({1}, 8)), 8)",
    "({0} >> shift(2, 8))", "w(w({0} - {1}, 8) - w({0} - {1}, 8), 8)", "w({0}, 1)", "u({0}, 1)",
])
def test_every_rule_holds_for_all_values_of_a_byte(expression: str) -> None:
    text = f"def generate(a):\n v0, v1 = a[0], a[1]\n v2 = {expression.format('v0', 'v1')}\n v3 = v2\n yield v3\n"
    ranges: dict[str, Range | None] = {"_0": (-128, 127), "_1": (-128, 127)}
    space: dict[str, Any] = dict(NAMES)
    exec(text, space)
    made: dict[str, Any] = dict(NAMES)
    exec(simplified(text, ranges), made)
    for a in range(-128, 128):
        for b in (-128, -127, -8, -7, -1, 0, 1, 2, 6, 7, 100, 127):
            assert list(made["generate"](a, b)) == list(space["generate"]([a, b])), (a, b)


def test_wraps_go_where_the_range_says_that_they_do_nothing() -> None:
    text = """def generate(a):
 v0, v1 = a[0], w(a[1], 32)
 v2 = div(v1, 256)
 v3 = (v1 - div(v1, 256) * 256)
 v4 = (v1 - div(v1, 256) * 256)
 v5 = w(v2 + 1, 32)
 v6 = w(v1 + 1, 32)
 yield Launch('k', (v5, v4), (v6,), 0, False)
"""
    assert simplified(text, {"_0": None, "_1": (0, 2**31 - 1)}).splitlines()[1:-1] == [
        "    v0, v1 = (_0, _1)",
        "    v2 = _1 // 256",
        "    v3 = _1 % 256",
        "    v4 = v3",
        "    v5 = v2 + 1",
        "    v6 = (_1 + 1 + 2147483648 & 4294967295) - 2147483648",
    ]


def test_variables_of_loops_and_branches_are_left_alone() -> None:
    text = """def generate(a):
 v0 = w(a[0], 8)
 v1 = 5
 n1, n1_by = 0, positive(1)
 while n1 < v0:
  v1 = w(v1 * 3, 8)
  n1 += n1_by
 v2 = w(v1 + 0, 8)
 v3 = w(v1 + 0, 8)
 yield v2
"""
    made = simplified(text, {"_0": (0, 9)})
    value = 5
    for count in range(9):
        assert steps(made, [count]) == [value]
        value = wrap(value * 3, 8)
