"""What is known of runtime integers: every claim holds for all numbers that the facts allow."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flylab import layout as rules
from flylab.errors import LayoutError
from flylab.layout import Layout, Swizzle, parse, text, tile_text
from flylab.layout.decisions import divides, last, rounded_up, same, surely_divides, surely_less
from flylab.layout.runtime_int import MOST, RuntimeInt, Undecided, parse_runtime, remainder
from flylab.layout.runtime_leaves import map_runtime, numbers, runtime_leaves
from tests.layout.refusal import refuses

EDGES = [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, -1, -(2**31)]


@st.composite
def facts(draw: st.DrawFn, low: int = -(2**33), high: int = 2**40) -> tuple[RuntimeInt, int]:
    """Facts, and a number that they allow."""
    divisor = draw(st.sampled_from([1, 1, 2, 3, 8, 12, 128]))
    edges = [edge for edge in EDGES if low <= edge <= high]
    ends = st.one_of(st.integers(low, high), st.sampled_from(edges), st.integers(max(low, 0), 300))
    first, second = sorted([draw(ends), draw(ends)])
    least, most = -(-first // divisor), second // divisor
    assume(least <= most)
    number = draw(st.integers(least, most)) * divisor
    return RuntimeInt(first, second, divisor, draw(st.sampled_from([32, 64]))), number


def holds(claim: Any, number: int) -> bool:
    """Whether a number is as the claim, facts or an int, says; and whether the bits hold it."""
    if type(claim) is int:
        return claim == number
    ends = (-(2**31), 2**32 - 1) if claim.bits == 32 else (-(2**63), 2**63 - 1)
    # 32 bits hold a number as signed, or as unsigned where it cannot be negative.
    fits = ends[0] <= number <= (MOST[32] if claim.bits == 32 and claim.low < 0 else ends[1])
    return bool(claim.low <= number <= claim.high and number % claim.divisor == 0 and fits)


OPERATORS = [operator.add, operator.sub, operator.mul]
POSITIVE = [operator.floordiv, operator.mod, rounded_up, remainder]


@given(facts(), facts(), st.sampled_from(OPERATORS))
def test_sums_and_products(a: Any, b: Any, function: Any) -> None:
    assume(abs(function(a[1], b[1])) < 2**63)  # beyond, 64 bits wrap
    for right, number in (b, (b[1], b[1])):
        assert holds(function(a[0], right), function(a[1], number))
        assert holds(function(right, a[0]), function(number, a[1]))


@given(facts(), facts(low=1), st.sampled_from(POSITIVE))
def test_quotients(a: Any, b: Any, function: Any) -> None:
    for right, number in (b, (b[1], b[1])):
        assert holds(function(a[0], right), function(a[1], number))
        if type(right) is not int:
            assert holds(function(a[1], right), function(a[1], number))


@given(facts())
def test_one_number_is_itself(a: Any) -> None:
    known, number = a
    assert known - known == 0 and known // known == 1 and known % known == 0 and known == known
    assert holds(known * 1, number) and holds(known + 0, number) and known * 0 == 0 and holds(-known, -number)
    if number > 0:
        assert holds(known.extent(), number) and holds(last(known.extent()), number - 1)
    assert holds(known.counted(), number % 2**32 if known.bits == 32 else number % 2**63) or number < 0


@given(facts(low=0, high=2**20), st.builds(Swizzle, st.integers(0, 3), st.integers(0, 4), st.sampled_from([3, 4, -3])))
def test_swizzles(a: Any, swizzle: Swizzle) -> None:
    assert holds(a[0].swizzled(swizzle), swizzle(a[1]))


@given(facts(low=0), facts(low=0))
def test_decisions_are_right_or_none(a: Any, b: Any) -> None:
    """A number that cannot be negative counts as its divisor at least: 0 is an extent of no elements."""
    (left, x), (right, y) = a, b
    assume(x and y)
    for function in (operator.lt, operator.le, operator.gt, operator.ge, same, divides):
        for arguments, known in (((left, right), (x, y)), ((left, y), (x, y)), ((x, right), (x, y))):
            if function is divides and not known[0]:
                continue
            try:
                decided = function(*arguments)
            except Undecided as error:
                assert error.hint
                continue
            wanted = {same: operator.eq, divides: lambda p, q: q % p == 0}.get(function, function)
            assert decided == wanted(*known)
    assert not surely_less(left, right) or x < y
    assert not surely_divides(left, right) or y % x == 0


@given(facts())
def test_text_and_back(a: Any) -> None:
    known = a[0]
    again = parse_runtime(str(known))
    assert again is not None and str(again) == str(known)
    assert [getattr(again, n) for n in ("low", "high", "divisor", "bits")] == [
        getattr(known, n) for n in ("low", "high", "divisor", "bits")]


@pytest.mark.parametrize("written", [
    "(?,64):(64,1)", "(?{div=8},?{i64}):(?{signed},1)", "(?,8):(?E0,1E1)", "S<3,3,3> o ? o (64,?{<=255}):(?,1)",
    "(?,4) o (4,8):(1E0,1E1)", "8:?{i64 -8..64 div=8}",
])  # fmt: skip
def test_values_with_runtime_leaves_are_written_and_read(written: str) -> None:
    value = parse(written)
    assert str(value) == written
    assert len(runtime_leaves(value)) == written.count("?")
    assert numbers(map_runtime(lambda leaf: 7, value)) == [7 if type(n) is not int else n for n in numbers(value)]


def test_tiles_and_tuples_with_runtime_leaves() -> None:
    assert tile_text(parse("[?|(4,?):(1,?)]")) == "[?|(4,?):(1,?)]"
    assert text(parse("(?,(2,?{div=4}))")) == "(?,(2,?{div=4}))"


@pytest.mark.parametrize(("function", "message"), [
    (lambda: parse("(?{div=0},4):(4,1)"), "no integer from 0 to"),
    (lambda: parse("(?{what},4):(4,1)"), "unexpected '?' at character 1"),
    (lambda: RuntimeInt(5, 3), "no integer from 5 to 3"),
    (lambda: RuntimeInt(1, 7, 8), "a multiple of 8"),
    (lambda: parse("(?,4):(4,1)").offsets(), "the indices of (?,4):(4,1) are known only while the kernel runs"),
    (lambda: bool(RuntimeInt()), "whether ? is 0"),
    (lambda: RuntimeInt() < 8, "whether ? < 8"),
    (lambda: range(RuntimeInt()), "a number is needed before"),
    (lambda: 8 // RuntimeInt(-4), "which may be negative"),
    (lambda: rules.composition(parse("(?,?):(?,1)"), Layout(4, 2)), "whether 4:2 stays inside the outer mode ?:?"),
    (lambda: rules.right_inverse(parse("(?,?):(?,1)")), "known only while the kernel runs"),
    (lambda: rules.same_map(parse("?:1"), parse("?:1")), "same_map of ?:1 and ?:1"),
    (lambda: rules.recast_layout(parse("(4,?):(?,1)"), 8, 16), "whether 2 divides ?"),
    (lambda: rules.idx2crd(RuntimeInt(), parse("(4,?):(-8,1)")), "a layout with the stride -8"),
    (lambda: rules.idx2crd(RuntimeInt(), parse("(4,?):(1E0,1E1)")), "gives coordinates"),
])  # fmt: skip
def test_refused(function: Any, message: str) -> None:
    refuses(function, message)


# Operations on layouts of which the leaves below are runtime numbers or the numbers themselves.
PROGRAMS = {
    "zipped_divide": lambda n: rules.zipped_divide(Layout((n[0], n[1]), (n[1], 1)), (8, 16)),
    "tiled_divide": lambda n: rules.tiled_divide(Layout((n[0], n[1], 4)), (n[2], None)),
    "logical_divide": lambda n: rules.logical_divide(Layout((n[0], n[1]), (1, n[0])), (None, Layout(4, 2))),
    "composition": lambda n: rules.composition(Layout((n[0] * 8, n[1]), (n[1], 1)), Layout((4, 2), (2, 1))),
    "complement": lambda n: rules.complement(Layout((4, n[0]), (1, 8)), n[1] * 512),
    "right_inverse": lambda n: rules.right_inverse(Layout((n[0], 8), (8, 1))),
    "left_inverse": lambda n: rules.left_inverse(Layout((n[0], 8), (16, 1))),
    "blocked_product": lambda n: rules.blocked_product(Layout((4, 8), (8, 1)), Layout((n[0], n[1]), (n[1], 1))),
    "recast_layout": lambda n: rules.recast_layout(Layout((n[0], n[1] * 4), (n[1] * 4, 1)), 8, 16),
    "tile_to_shape": lambda n: rules.tile_to_shape(Layout((8, 16), (16, 1)), (n[0] * 8, n[1] * 16), (1, 0)),
    "make_ordered_layout": lambda n: rules.make_ordered_layout((n[0], (n[1], 4), n[2]), (2, (0, 1), 1)),
    "make_fragment_layout_like": lambda n: rules.make_fragment_layout_like(Layout((n[0], n[1], 4), (1, 64, 8))),
    "coshape": lambda n: rules.coshape(Layout((n[0], n[1]), (n[1], 1))),
    "coshape of coordinates": lambda n: rules.coshape(rules.make_identity_layout((n[0], (n[1], 4)))),
    "ceil_div": lambda n: rules.ceil_div((n[0], n[1] * 8), (n[2], 16)),
    "shape_div": lambda n: rules.shape_div((n[0] * 8, 4), (4, n[1] * 4)),
    "identity tiles": lambda n: rules.zipped_divide(rules.make_identity_layout((n[0], n[1])), (8, n[2])),
    "swizzled": lambda n: rules.slice(rules.make_composed_layout(Swizzle(2, 1, 3), n[0], Layout((n[1], 8), (8, 1))),
                                      (None, 3)),
    "idx2crd": lambda n: rules.idx2crd(n[2], Layout((n[0], n[1]), (n[1], 1))),
    "idx2crd of a shape": lambda n: rules.idx2crd(n[2], (n[0], (4, n[1]))),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@given(st.data())
def test_facts_of_a_result_hold_for_its_numbers(name: str, data: Any) -> None:
    leaves = [data.draw(facts(low=1, high=2**12)) for _ in range(3)]
    assume(all(number > 1 for _, number in leaves))
    claim = PROGRAMS[name]([leaf for leaf, _ in leaves])
    try:
        found = PROGRAMS[name]([number for _, number in leaves])
    except LayoutError:
        assume(False)
    # An extent that happens to be 1 has no stride in Python.
    assume(len(numbers(claim)) == len(numbers(found)) and _extents(found).count(1) == _extents(claim).count(1))
    assert all(map(holds, numbers(claim), numbers(found))), (claim, found)


def _extents(value: Any) -> list[Any]:
    return list(rules.leaves(value.shape)) if rules.is_layout(value) else []
