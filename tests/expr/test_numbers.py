"""Numbers known while tracing: they compute as the machine does, which is numpy's fixed-width arithmetic here."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.dtypes import DTYPES
from flylab.errors import TraceError
from flylab.expr.numeric import CLASSES, result_bounds
from flylab.expr.promotion import integer_range, literal, promote

WIDTHS = (8, 16, 32, 64)
INTEGERS = [CLASSES[f"{sign}{bits}"] for bits in WIDTHS for sign in ("Int", "Uint")]
FLOATS = [fx.Float16, fx.BFloat16, fx.Float32, fx.Float64]
NUMBERS = [fx.Boolean, *INTEGERS, *FLOATS]
WRAPPING: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
DIVIDING: dict[str, Callable[[Any, Any], Any]] = {"//": operator.floordiv, "%": operator.mod}
SHIFTING: dict[str, Callable[[Any, Any], Any]] = {"<<": operator.lshift, ">>": operator.rshift}
COMPARING: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def values(cls: Any) -> st.SearchStrategy[int]:
    """Integers of a format, its ends and their neighbours often."""
    low, high = integer_range(cls.dtype)
    ends = [v for v in (low, low + 1, -1, 0, 1, 2, 7, high - 1, high) if low <= v <= high]
    return st.one_of(st.sampled_from(ends), st.integers(low, high))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, int, int]:
    cls = draw(st.sampled_from(INTEGERS))
    return cls, draw(values(cls)), draw(values(cls))


def as_numpy(cls: Any, value: int) -> Any:
    return np.array([value], cls.dtype.to_numpy())


@given(pairs(), st.sampled_from(sorted(WRAPPING)))
def test_integers_wrap(pair: tuple[Any, int, int], symbol: str) -> None:
    cls, a, b = pair
    expected = WRAPPING[symbol](as_numpy(cls, a), as_numpy(cls, b))[0]
    got = WRAPPING[symbol](cls(a), cls(b))
    assert type(got) is cls and got.value == expected


@given(pairs(), st.sampled_from(sorted(DIVIDING)))
def test_division_rounds_down(pair: tuple[Any, int, int], symbol: str) -> None:
    cls, a, b = pair
    if b == 0:
        with pytest.raises(TraceError, match="division by zero"):
            DIVIDING[symbol](cls(a), cls(b))
        return
    with np.errstate(over="ignore"):
        expected = DIVIDING[symbol](as_numpy(cls, a), as_numpy(cls, b))[0]
    assert DIVIDING[symbol](cls(a), cls(b)).value == expected
    quotient, rest = cls(a) // cls(b), cls(a) % cls(b)
    assert (quotient * cls(b) + rest).value == a


@given(pairs(), st.integers(-2, 70), st.sampled_from(sorted(SHIFTING)))
def test_shifts(pair: tuple[Any, int, int], count: int, symbol: str) -> None:
    cls, a, _ = pair
    if not 0 <= count < cls.dtype.bits:
        with pytest.raises(TraceError):
            SHIFTING[symbol](cls(a), count)
        return
    expected = SHIFTING[symbol](as_numpy(cls, a), as_numpy(cls, count))[0]
    assert SHIFTING[symbol](cls(a), cls(count)).value == expected


@given(pairs(), st.sampled_from(sorted(COMPARING)))
def test_comparisons(pair: tuple[Any, int, int], symbol: str) -> None:
    cls, a, b = pair
    got = COMPARING[symbol](cls(a), cls(b))
    assert type(got) is fx.Boolean and got.value == COMPARING[symbol](a, b)


@given(pairs())
def test_unary_operators(pair: tuple[Any, int, int]) -> None:
    cls, a, _ = pair
    with np.errstate(over="ignore"):
        assert (-cls(a)).value == (-as_numpy(cls, a))[0]
        assert abs(cls(a)).value == np.abs(as_numpy(cls, a))[0]
    assert (~cls(a)).value == (~as_numpy(cls, a))[0]
    assert (+cls(a)).value == a


@given(st.integers(-(2**70), 2**70), st.sampled_from(INTEGERS), st.sampled_from(INTEGERS))
def test_conversions_of_integers_keep_the_low_bits(value: int, first: Any, second: Any) -> None:
    once = first(value)
    assert once.value % 2**first.dtype.bits == value % 2**first.dtype.bits
    assert integer_range(first.dtype)[0] <= once.value <= integer_range(first.dtype)[1]
    twice = once.to(second)
    assert twice.value == np.array([once.value]).astype(second.dtype.to_numpy())[0] or first.dtype.bits == 64
    assert twice.value % 2**second.dtype.bits == once.value % 2**second.dtype.bits


@given(st.floats(width=64), st.sampled_from(FLOATS))
def test_floats_round_to_nearest_even(value: float, cls: Any) -> None:
    with np.errstate(over="ignore"):
        expected = np.array([value], np.float64).astype(cls.dtype.to_numpy()).astype(np.float64)[0]
    assert np.array_equal(cls(value).value, expected, equal_nan=True)


@given(st.floats(width=32), st.floats(width=32), st.sampled_from("+-*/"), st.sampled_from([fx.Float16, fx.Float32]))
def test_float_arithmetic(a: float, b: float, symbol: str, cls: Any) -> None:
    dtype = cls.dtype.to_numpy()
    apply = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[symbol]
    with np.errstate(all="ignore"):
        expected = apply(np.array([a]).astype(dtype), np.array([b]).astype(dtype))[0]
    got = apply(cls(a), cls(b)).value
    assert np.array_equal(np.array(got, dtype), expected, equal_nan=True)
    assert np.isnan(expected) or np.signbit(got) == np.signbit(expected)


@given(st.floats(), st.sampled_from(INTEGERS))
def test_float_to_integer_is_the_nearest_that_there_is(value: float, cls: Any) -> None:
    low, high = integer_range(cls.dtype)
    expected = 0 if value != value else low if value <= low else high if value >= high else int(value)
    assert cls(value).value == expected


@pytest.mark.parametrize(
    "made, expected",
    [
        (lambda: fx.Uint32(2**32 + 5), 5),
        (lambda: fx.Int8(200), -56),
        (lambda: fx.Uint64(2**64 - 1) + 2, 1),
        (lambda: fx.Uint8(fx.Int32(-1)), 255),
        (lambda: fx.Boolean(5), True),
        (lambda: fx.BFloat16(2.5) + 2.0, 4.5),
        (lambda: fx.BFloat16(-5.0) < -2.0, True),
        (lambda: fx.Int32(True) + fx.Boolean(True), 2),
        (lambda: -fx.Boolean(True), -1),
        (lambda: ~fx.Boolean(True), False),
        (lambda: fx.Boolean(True) * 3, 3),
        (lambda: fx.Float32(10**400), float("inf")),
        (lambda: fx.Float32(-(10**400)), float("-inf")),
        (lambda: fx.Int32(np.int64(7)), 7),
        (lambda: fx.Float32(np.array(1.5)), 1.5),
        (lambda: fx.Float32(ml_dtypes.bfloat16(1.5)), 1.5),
        (lambda: np.int32(3) + fx.Int32(4), 7),
        (lambda: fx.Int32(4) * np.float32(0.5), 2.0),
        (lambda: np.float32(3) < fx.Float32(4.0), True),
        (lambda: fx.ceildiv(fx.Int32(-7), 2), -3),
        (lambda: fx.ceildiv(fx.Uint8(255), 2), 128),
        (lambda: fx.ceildiv(fx.Int32(-(2**31)), 2), -(2**30)),
        (lambda: fx.ceildiv(-7, 2), -3),
        (lambda: fx.Float32(1.0).bitcast(fx.Int32), 0x3F800000),
        (lambda: fx.Int16(-1).bitcast(fx.Uint16), 65535),
        (lambda: fx.max(1, 2.5, fx.Int32(2)), 2.5),
        (lambda: fx.min(3), 3),
        (lambda: fx.Boolean(True).select(1, 2.0), 1.0),
    ],
)
def test_examples(made: Callable[[], Any], expected: Any) -> None:
    got = made()
    assert (got if isinstance(got, int) else got.value) == expected


@pytest.mark.parametrize(
    "name, with_nan, zeros",
    [("max", True, 0.0), ("min", True, -0.0), ("maxnumf", False, 0.0), ("minnumf", False, -0.0)],
)
def test_float_extremes(name: str, with_nan: bool, zeros: float) -> None:
    rule = getattr(fx, name)
    for a, b in ((float("nan"), 1.0), (1.0, float("nan"))):
        got = rule(fx.Float32(a), fx.Float32(b)).value
        assert (got != got) if with_nan else got == 1.0
    for a, b in ((0.0, -0.0), (-0.0, 0.0)):
        assert str(rule(fx.Float32(a), fx.Float32(b)).value) == str(zeros)


def test_promotion_is_one_symmetric_table() -> None:
    for a, b in product(NUMBERS, NUMBERS):
        common = promote(a.dtype, b.dtype)
        assert common == promote(b.dtype, a.dtype)
        assert common.bits >= max(a.dtype.bits, b.dtype.bits) or a.dtype.is_float != b.dtype.is_float
        assert common.is_float == (a.dtype.is_float or b.dtype.is_float)
        assert promote(common, a.dtype) == common == promote(common, b.dtype)
        assert promote(a.dtype, a.dtype) == a.dtype


def test_promotion_rows() -> None:
    """The rows that the rule is about, written out."""
    rows = [
        ("Int32", "Uint32", "Uint32"),
        ("Int64", "Uint32", "Int64"),
        ("Float16", "BFloat16", "Float32"),
        ("Float16", "Int64", "Float16"),
        ("Float32", "Float64", "Float64"),
        ("Boolean", "Int8", "Int8"),
        ("Boolean", "Boolean", "Boolean"),
        ("Uint8", "Int16", "Int16"),
        ("BFloat16", "Uint8", "BFloat16"),
    ]
    for a, b, common in rows:
        assert promote(DTYPES[a], DTYPES[b]).name == common


@pytest.mark.parametrize(
    "value, beside, expected",
    [
        (1, "Float16", "Float16"),
        (1.5, "BFloat16", "BFloat16"),
        (1.5, "Int8", "Float32"),
        (True, "Int8", "Boolean"),
        (5, "Boolean", "Int32"),
        (127, "Int8", "Int8"),
        (128, "Int8", "Int64"),
        (-1, "Uint8", "Int64"),
        (2**40, "Int32", "Int64"),
        (1.5, "Float64", "Float64"),
    ],
)
def test_literals(value: Any, beside: str, expected: str) -> None:
    assert literal(value, DTYPES[beside]).name == expected


class Bounded:
    """A number of the device for `result_bounds`: only its format and its bounds count."""

    is_static = False

    def __init__(self, dtype: Any, bounds: tuple[int, int]):
        self.dtype, self.bounds = dtype, bounds


@given(st.sampled_from([fx.Int8, fx.Uint8]), st.data(), st.sampled_from(["+", "-", "*", "//", "%"]))
def test_bounds_hold_every_result(cls: Any, data: st.DataObject, symbol: str) -> None:
    low, high = integer_range(cls.dtype)
    a, b, c, d = (data.draw(st.integers(low, high)) for _ in range(4))
    (a, b), (c, d) = sorted((a, b)), sorted((c, d))
    found = result_bounds(symbol, Bounded(cls.dtype, (a, b)), Bounded(cls.dtype, (c, d)), cls.dtype)  # type: ignore
    apply = (WRAPPING | DIVIDING)[symbol]
    xs, ys = range(a, b + 1, max(1, (b - a) // 20)), range(c, d + 1, max(1, (d - c) // 20))
    results = [apply(x, y) for x in {*xs, b} for y in {*ys, d} if y or symbol not in ("//", "%")]
    if found is None:
        corners = [apply(x, y) for x in (a, b) for y in (c, d) if y or symbol not in ("//", "%")]
        assert c <= 0 if symbol in ("//", "%") else not all(low <= r <= high for r in corners)
        return
    assert all(found[0] <= r <= found[1] for r in results)
    assert low <= found[0] <= found[1] <= high


@given(st.sampled_from([fx.Int8, fx.Uint8]), st.data(), st.sampled_from(["&", ">>", "<<", "min", "max"]))
def test_bounds_of_bit_operations_hold_every_result(cls: Any, data: st.DataObject, symbol: str) -> None:
    low, high = integer_range(cls.dtype)
    (a, b), (c, d) = (sorted(data.draw(st.tuples(values(cls), values(cls)))) for _ in range(2))
    if symbol in SHIFTING:
        c, d = c % 8, max(c % 8, d % 8)
    found = result_bounds(symbol, Bounded(cls.dtype, (a, b)), Bounded(cls.dtype, (c, d)), cls.dtype)  # type: ignore
    apply = {**WRAPPING, **SHIFTING, "min": min, "max": max}[symbol]
    results = [apply(x, y) for x in range(a, b + 1) for y in range(c, d + 1)]
    if found is None:
        assert symbol == "<<" and max(results) > high or min(results) < low or symbol == "&" and a < 0 and c < 0
        return
    assert found[0] <= min(results) and max(results) <= found[1]
    assert symbol == "&" or found == (min(results), max(results))


def test_bounds_are_given_where_they_matter() -> None:
    """Division of a thread id must find that nothing is negative; a sum that may wrap has no bounds."""
    tid, big = Bounded(fx.Int32.dtype, (0, 255)), Bounded(fx.Int32.dtype, (0, 2**31 - 1))
    eight = fx.Int32(8)
    assert result_bounds("//", tid, eight, fx.Int32.dtype) == (0, 31)  # type: ignore[arg-type]
    assert result_bounds("%", tid, eight, fx.Int32.dtype) == (0, 7)  # type: ignore[arg-type]
    assert result_bounds("*", tid, eight, fx.Int32.dtype) == (0, 2040)  # type: ignore[arg-type]
    assert result_bounds("+", big, tid, fx.Int32.dtype) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: fx.Int32("7"), "Int32('7'): str is not a number"),
        (lambda: fx.Int32(np.zeros(2)), "ndarray"),
        (lambda: fx.Float32(1j), "complex"),
        (lambda: range(4)[fx.Float32(1.0)], "a Float32 as an index"),
        (lambda: fx.Int32(1) / 2, "Int32 has no operator '/'"),
        (lambda: fx.Float32(1.0) & 1, "Float32 has no operator '&'"),
        (lambda: ~fx.Float32(1.0), "Float32 has no operator '~'"),
        (lambda: fx.Int32(1).bitcast(fx.Int64), "32 bits, to Int64"),
        (lambda: fx.Int32(1).to(int), "<class 'int'> is not a number format"),
        (lambda: fx.max(), "max() of nothing"),
        (lambda: fx.arith.select(fx.Int32(1), 1, 2), "the condition must be a Boolean"),
        (lambda: fx.ceildiv(1, 0), "ceildiv(1, 0)"),
        (lambda: fx.ceildiv("a", 1), "(str) and 1 (int)"),
        (lambda: fx.absf("a"), "absf of 'a' (a str)"),
    ],
)
def test_refusals(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TraceError) as caught:
        make()
    assert message in caught.value.message and caught.value.hint


NANS = [(fx.Float32, fx.Uint32, 0x7F800000), (fx.Float16, fx.Uint16, 0x7C00), (fx.BFloat16, fx.Int16, 0x7F80)]


@pytest.mark.parametrize("number, bits, infinity", [*NANS, (fx.Float64, fx.Uint64, 0x7FF << 52)])
def test_bitcasts_keep_every_bit(number: Any, bits: Any, infinity: int) -> None:
    """Signalling NaNs too, which an ordinary conversion would quieten."""
    sign = 1 << (number.dtype.bits - 1)
    for pattern in (0, sign, 1, infinity - 1, infinity, infinity + 1, sign | infinity | 5, 2 * infinity - 1 & sign - 1):
        x = bits(pattern).bitcast(number)
        assert x.bitcast(bits).value == bits(pattern).value
        assert number(x).bitcast(bits).value == bits(pattern).value
        expected = bits(pattern).value * np.ones(1, bits.dtype.to_numpy())
        with np.errstate(invalid="ignore"):
            seen = expected.view(number.dtype.to_numpy()).astype(np.float64)
        assert np.array_equal([x.value], seen, equal_nan=True)
    assert number(float("nan")).bitcast(bits).value & infinity == infinity


@pytest.mark.parametrize("number, bits, infinity", NANS)
def test_bits_reach_the_device(number: Any, bits: Any, infinity: int) -> None:
    expected = np.array([infinity + 1, infinity + 3, infinity, 1]).astype(bits.dtype.to_numpy())
    A = np.zeros(4, number.dtype.to_numpy())

    @flyc.kernel
    def k(A: fx.Tensor):
        for i in fx.range_constexpr(4):
            A[i] = bits(int(expected[i])).bitcast(number)

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=1)

    launch(A)
    assert np.array_equal(A.view(bits.dtype.to_numpy()), expected)
