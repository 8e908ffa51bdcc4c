"""Random programs of one element: the software device gives what folding gives, whatever LLVM made of them between.

Folding is the oracle of all formats; numpy that of programs in the formats which it has the arithmetic of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.expr as fx
from flylab.dtypes import DTYPES
from flylab.errors import TraceError
from tests.expr import numpy_numbers
from tests.samples import on_device

INTEGERS = ["Int8", "Uint8", "Int16", "Uint16", "Int32", "Uint32", "Int64", "Uint64"]
FLOATS = ["Float16", "BFloat16", "Float32", "Float64"]
WRAPPED = ["Int4", "Int128", "Uint128"]
SMALL = [name for name, row in DTYPES.items() if row.is_small_float]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 1e-7, 6e-8, 3e38, 1e-40, 0.1, 2.5, -3.75, 1e10]


def programs(
    leaves: list[str], operators: list[str], functions: list[str], formats: list[str], guarded: tuple[str, ...] = ()
) -> Any:
    """Expressions in `x` and `y` as text; `guarded` are operators with a right operand that is made fit for them."""

    def grow(inner: Any) -> Any:
        return st.one_of(
            st.tuples(inner, st.sampled_from(operators), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(st.sampled_from(formats), inner).map(lambda t: f"fx.{t[0]}({t[1]})" + ")" * t[0].count("(")),
            st.tuples(inner, st.sampled_from(["<", ">=", "=="]), inner, inner, inner).map(
                lambda t: f"fx.arith.select(fx.Boolean({t[0]} {t[1]} {t[2]}), {t[3]}, {t[4]})"
            ),
            st.tuples(st.sampled_from(functions), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
            *(st.tuples(inner, inner).map(lambda t, form=form: form.format(*t)) for form in guarded),
            inner.map(lambda t: f"abs(-{t})"),
        )

    return st.recursive(st.sampled_from(leaves), grow, max_leaves=10)


def array(name: str, seed: int) -> Any:
    """64 values of a format: its ends, special ones and random ones, in an order of their own for each seed."""
    dtype = getattr(fx, name).dtype.to_numpy()
    random = np.random.default_rng(seed)
    if name in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = random.integers(low, high, 64, dtype, endpoint=True)
        values[:6] = [low, high, 0, 1, 2, 3]
    else:
        with np.errstate(over="ignore"):
            values = np.array(SPECIAL * 4).astype(dtype)
    return values[random.permutation(64)]


def check(text: str, x: str, y: str, result: Any) -> None:
    def program(a: Any, b: Any) -> Any:
        return result(eval(text, {"fx": fx, "x": a, "y": b}))

    def scalar(name: str, value: Any) -> Any:
        return getattr(fx, name)(value.item() if name in INTEGERS else float(value))

    a, b = array(x, 1), array(y, 2)
    dtype = result.dtype.to_numpy()
    try:
        expected = np.array([program(scalar(x, p), scalar(y, q)).value for p, q in zip(a, b, strict=True)], dtype)
    except (TraceError, ZeroDivisionError):
        return  # a division by zero
    got = on_device(program, a, b, out=dtype)
    assert np.array_equal(got, expected, equal_nan=result.dtype.is_float)
    assert not result.dtype.is_float or np.array_equal(
        np.signbit(got) | np.isnan(got), np.signbit(expected) | np.isnan(got)
    )


RING = ["+", "-", "*", "&", "|", "^"]
# A divisor that is not 0, and shift counts that every format has.
GUARDED = ("({0} // ({1} | 1))", "({0} % ({1} | 1))", "({0} << ({1} & 3))", "({0} >> ({1} & 3))")
# Numbers pass through the small floats, which have no operators.
CONVERSIONS = [*FLOATS, *INTEGERS, *(f"Float32(fx.{name}" for name in SMALL)]


@settings(max_examples=60)
@given(
    programs(["x", "y", "3", "-1", "100"], RING, ["fx.max", "fx.min"], [*INTEGERS, *WRAPPED], GUARDED),
    st.sampled_from(INTEGERS),
    st.sampled_from(INTEGERS),
)
def test_integer_programs(text: str, x: str, y: str) -> None:
    check(text, x, y, fx.Int64)


@settings(max_examples=60)
@given(
    programs(["x", "y", "0.5", "7", "-1"], ["+", "-", "*"], ["fx.max", "fx.min", "fx.maxnumf"], CONVERSIONS),
    st.sampled_from(FLOATS),
    st.sampled_from([*FLOATS, *INTEGERS]),
)
def test_float_programs(text: str, x: str, y: str) -> None:
    check(text, x, y, fx.Float64)


@pytest.mark.parametrize(
    "text",
    [
        "fx.Uint16(x) * 2",
        "fx.Uint32(x) & 65535",
        "fx.Int8(x) + fx.Uint8(y)",
        "fx.Float32(fx.Uint16(x - y))",
        "fx.Uint64(-abs(x)) + 1",
        "fx.max(fx.Uint16(x), fx.Uint16(y))",
    ],
)
def test_conversions_out_of_range_among_other_operations(text: str) -> None:
    """LLVM may pick any result for a plain conversion out of range, and does when it narrows what surrounds it."""
    for name in FLOATS:
        check(text, name, name, fx.Float64)


MODELLED = [name for name in numpy_numbers.NAMES if name != "Boolean"]
LITERALS = ["x", "y", "3", "-1", "100"]


@pytest.mark.parametrize("floats", [False, True])
@settings(max_examples=60)
@given(data=st.data())
def test_programs_as_numpy_computes_them(floats: bool, data: st.DataObject) -> None:
    """The second oracle: numpy's arithmetic on arrays of the same formats."""
    inside = MODELLED if floats else INTEGERS
    operators, guarded = (RING[:3], ()) if floats else (RING, GUARDED)
    text = data.draw(programs(LITERALS, operators, ["fx.max", "fx.min"], inside, guarded))
    x, y = (data.draw(st.sampled_from(inside)) for _ in range(2))
    result = fx.Float64 if floats else fx.Int64
    arrays = array(x, 1), array(y, 2)
    try:
        with np.errstate(all="ignore"):
            a, b = (numpy_numbers.Model(DTYPES[name], v) for name, v in zip((x, y), arrays, strict=True))
            wanted = numpy_numbers.fx.__dict__[result.__name__](eval(text, {"fx": numpy_numbers.fx, "x": a, "y": b}))
        expected = np.broadcast_to(wanted.values, 64)
        found = on_device(lambda p, q: result(eval(text, {"fx": fx, "x": p, "y": q})), *arrays, out=expected.dtype)
    except TraceError:
        return  # a literal beside a format whose common one does not hold it
    assert np.array_equal(found, expected, equal_nan=floats), (text, x, y)
