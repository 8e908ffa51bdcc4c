"""A runtime value means what a static one means: the same operation on the software device and in folding or numpy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab.expr as fx
from flylab.errors import TraceError
from flylab.expr.promotion import integer_range, promote
from tests.samples import compile_body, kernel_of, on_device

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "max": fx.max,
    "min": fx.min,
    "ceildiv": fx.ceildiv,
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
INTEGERS = [fx.Int8, fx.Uint8, fx.Int16, fx.Uint16, fx.Int32, fx.Uint32, fx.Int64, fx.Uint64]
FLOATS = [fx.Float16, fx.BFloat16, fx.Float32, fx.Float64]


def ends(cls: Any) -> list[int]:
    low, high = integer_range(cls.dtype)
    return sorted({low, low + 1, high - 1, high, *(v for v in (-7, -2, -1, 0, 1, 2, 3, 7) if low <= v)})


def grid(cls: Any) -> tuple[Any, Any]:
    """All pairs of the ends of a format, without those that divide by zero or overflow the division."""
    pairs = [(a, b) for a, b in product(ends(cls), ends(cls)) if b]
    dtype = cls.dtype.to_numpy()
    return np.array([a for a, _ in pairs], dtype), np.array([b for _, b in pairs], dtype)


@pytest.mark.parametrize("cls", INTEGERS, ids=lambda c: c.__name__)
def test_integer_operators(cls: Any) -> None:
    a, b = grid(cls)
    dtype = cls.dtype.to_numpy()
    for symbol, apply in OPERATORS.items():
        got = on_device(apply, a, b, out=dtype)
        folded = np.array([apply(cls(int(x)), cls(int(y))).value for x, y in zip(a, b, strict=True)], dtype)
        assert np.array_equal(got, folded), symbol
        if symbol not in ("max", "min", "ceildiv"):
            with np.errstate(over="ignore"):
                assert np.array_equal(got, apply(a, b)), symbol
    assert np.array_equal(
        on_device(operator.floordiv, a, b, out=dtype) * b + on_device(operator.mod, a, b, out=dtype), a
    )


@pytest.mark.parametrize("cls", INTEGERS, ids=lambda c: c.__name__)
def test_integer_comparisons_shifts_and_unary_operators(cls: Any) -> None:
    a, b = grid(cls)
    dtype = cls.dtype.to_numpy()

    def compared(x: Any, y: Any) -> Any:
        return sum((rule(x, y).to(fx.Int32) << i for i, rule in enumerate(COMPARISONS)), fx.Int32(0))

    expected = sum((rule(a, b).astype(np.int32) << i for i, rule in enumerate(COMPARISONS)), np.int32(0))
    assert np.array_equal(on_device(compared, a, b, out=np.int32), expected)
    for rule in (
        operator.neg,
        operator.invert,
        abs,
        lambda x: x << 3,
        lambda x: x >> 3,
        lambda x: x // 3,
        lambda x: x % -3 if cls.dtype.signed else x % 3,
    ):
        with np.errstate(over="ignore"):
            assert np.array_equal(on_device(rule, a, out=dtype), rule(a))


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS], ids=lambda c: c.__name__)
def test_conversions(source: Any) -> None:
    if source.dtype.is_float:
        numbers: Any = [
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.5,
            -1.5,
            2.5,
            127.5,
            200.0,
            -200.0,
            7e4,
            -7e4,
            3e9,
            -3e9,
            1e20,
            -1e20,
            float("inf"),
            float("-inf"),
            float("nan"),
            1.0009765625,
            65504.0,
            3.3895313892515355e38,
        ]
    else:
        numbers = ends(source)
    with np.errstate(over="ignore"):
        a = (
            np.array(numbers).astype(source.dtype.to_numpy())
            if source.dtype.is_float
            else np.array(numbers, source.dtype.to_numpy())
        )
    for target in (*INTEGERS, *FLOATS):
        dtype = target.dtype.to_numpy()
        got = on_device(lambda x, target=target: x.to(target), a, out=dtype)
        folded = np.array(
            [source(x.item() if source.dtype.kind != "float" else float(x)).to(target).value for x in a], dtype
        )
        assert got.tobytes() == folded.tobytes() or np.array_equal(
            got.astype(np.float64), folded.astype(np.float64), equal_nan=True
        ), (source, target, a, got, folded)


SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-40, -1e-40, 1e38, -3e38, float("inf"), float("-inf"), float("nan"), 0.1]


@pytest.mark.parametrize("cls", FLOATS, ids=lambda c: c.__name__)
def test_float_arithmetic_on_special_values(cls: Any) -> None:
    dtype = cls.dtype.to_numpy()
    with np.errstate(over="ignore"):
        a, b = (np.array(v).astype(dtype) for v in zip(*product(SPECIAL, SPECIAL), strict=True))
    with np.errstate(all="ignore"):
        for rule in (operator.add, operator.sub, operator.mul):
            assert np.array_equal(
                on_device(rule, a, b, out=dtype).astype(np.float64), rule(a, b).astype(np.float64), equal_nan=True
            ), rule
        for rule, expected in (
            (fx.max, np.maximum(a, b)),
            (fx.min, np.minimum(a, b)),
            (fx.maxnumf, np.fmax(a, b)),
            (fx.minnumf, np.fmin(a, b)),
        ):
            got = on_device(rule, a, b, out=dtype)
            assert np.array_equal(got.astype(np.float64), expected.astype(np.float64), equal_nan=True), rule
        for rule in (operator.neg, abs):
            got = on_device(rule, a, out=dtype)
            assert np.array_equal(np.signbit(got), np.signbit(rule(a))) or np.isnan(a).any()
            assert np.array_equal(got.astype(np.float64), rule(a).astype(np.float64), equal_nan=True)
    for rule in COMPARISONS:
        got = on_device(lambda x, y, rule=rule: rule(x, y).to(fx.Uint8), a, b, out=np.uint8)
        assert np.array_equal(got.astype(bool), rule(a.astype(np.float64), b.astype(np.float64))), rule


def test_mixed_operands_follow_the_table() -> None:
    """Every pair of formats, on the device: the format of the sum is the table's, and so is its value."""
    kinds = [*INTEGERS, fx.Float16, fx.BFloat16, fx.Float32, fx.Float64]
    for x, y in product(kinds, kinds):
        common = promote(x.dtype, y.dtype)
        seen = []

        def add(a: Any, b: Any, seen: list[Any] = seen) -> Any:
            seen.append((a + b).dtype)
            return a + b

        dtype = common.to_numpy()
        a, b = np.array([3, 100], x.dtype.to_numpy()), np.array([5, 7], y.dtype.to_numpy())
        got = on_device(add, a, b, out=dtype)
        assert seen[0] == common
        assert np.array_equal(got, (a.astype(dtype) + b.astype(dtype))), (x, y)


@pytest.mark.parametrize("cls", INTEGERS, ids=lambda c: c.__name__)
def test_a_guarded_division_keeps_its_guard(cls: Any) -> None:
    """LLVM takes a plain division as proof that its divisor is not 0, and would drop the test beside it."""
    a, b = np.array([7, 9, 100, 5], cls.dtype.to_numpy()), np.array([0, 2, 0, 5], cls.dtype.to_numpy())
    for rule, expected in ((operator.floordiv, [1, 4, 1, 1]), (operator.mod, [1, 1, 1, 0])):
        got = on_device(lambda x, y, rule=rule: (y == 0).select(1, rule(x, y)), a, b, out=a.dtype)
        assert got.tolist() == expected


def test_vectors() -> None:
    A = np.zeros(64, np.float32)
    kernel_of("""
        v = fx.Vector.from_elements([1, 2.0, fx.Float32(3.0), A[0] + 4.0], fx.Float32)
        a, b, c, d = v
        assert len(v) == 4 and list(v)[1].dtype is b.dtype
        w = v.to(fx.Int32)
        mask = v > 2.0
        rows = [v, v * 2.0, 2.0 - v, -v, abs(-v), v.to(fx.Float16).to(fx.Float32), mask.select(v, 0.0),
                fx.max(v, 2.5), (w // 2).to(fx.Float32), (w % 3).to(fx.Float32), fx.ceildiv(w, 2).to(fx.Float32),
                (mask + mask).to(fx.Float32), fx.arith.select(mask, 1.0, 2.0)]
        for i, row in enumerate(rows):
            for j in range_constexpr(4):
                A[4 * i + j] = row[j]
        A[60] = v[-1] + v[1:3][0] + v[::-1][3]
        A[61] = v.bitcast(fx.Int32)[0].bitcast(fx.Float32) + fx.Float32(v.bitcast(fx.Uint8).numel)
        A[62] = fx.Vector(v, (2, 2)).shape[1] * 1.0
    """)["launch"](A)
    v = np.array([1, 2, 3, 4], np.float32)
    expected = [
        v,
        v * 2,
        2 - v,
        -v,
        v,
        v,
        [0, 0, 3, 4],
        [2.5, 2.5, 3, 4],
        [0, 1, 1, 2],
        [1, 2, 0, 1],
        [1, 1, 2, 2],
        [0, 0, 2, 2],
        [2, 2, 1, 1],
    ]
    assert np.array_equal(A[:52].reshape(13, 4), np.array(expected, np.float32))
    assert A[60:63].tolist() == [4 + 2 + 1, 1 + 16, 2]


@pytest.mark.parametrize(
    "expression, error, message",
    [
        ("v[4]", IndexError, "index 4 of 'v', which has 4 elements"),
        ("v[-5]", IndexError, "index -5 of 'v'"),
        ("v[1.5]", TraceError, "[1.5] of 'v'"),
        ("v[2:2]", TraceError, "an empty slice of 'v'"),
        ("fx.Vector(v, (3, 2))", TraceError, "shape (3, 2) has 6 elements, the vector 4"),
        ("fx.Vector(v, dtype=fx.Int32)", TraceError, "a vector of f32 is not one of Int32"),
        ("fx.Vector(3)", TraceError, "Vector(int): not a vector"),
        ("v & 1", TraceError, "Float32 has no operator '&'"),
        ("v.select(v, v)", TraceError, "select by"),
        ("v.reduce(1)", TraceError, "reduce by 1"),
        ("fx.Vector.from_elements([], fx.Float32)", TraceError, "at least one element"),
        ("v.to(fx.Int32) // 0", TraceError, "division by zero"),
        ("fx.Vector.filled(0, 1.0, fx.Float32)", TraceError, "shape 0"),
        ("fx.Vector.filled(3, 1, fx.Int8).bitcast(fx.Int16)", TraceError, "no whole number of Int16"),
    ],
)
def test_vector_refusals(expression: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        compile_body(f"v = fx.Vector.filled(4, 1.0, fx.Float32)\nx = {expression}")
    assert message in str(caught.value)


def test_small_floats_are_copied_bit_by_bit() -> None:
    bits = np.arange(256, dtype=np.uint8)
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"):
        a = bits.view(getattr(ml_dtypes, name))
        assert np.array_equal(on_device(lambda x: x, a, out=a.dtype).view(np.uint8), bits)


@pytest.mark.parametrize("cls", INTEGERS, ids=lambda c: c.__name__)
def test_shifts_by_counts_that_the_format_does_not_have(cls: Any) -> None:
    """numpy's results: every bit is moved out, and the sign fills a signed number shifted right."""
    dtype = cls.dtype.to_numpy()
    counts = [c for c in (0, 1, cls.dtype.bits - 1, cls.dtype.bits, cls.dtype.bits + 1, 100, 127, -1, -128) if
              integer_range(cls.dtype)[0] <= c]
    pairs = list(product(ends(cls), counts))
    a, b = np.array([p[0] for p in pairs], dtype), np.array([p[1] for p in pairs], dtype)
    for rule in (operator.lshift, operator.rshift):
        assert np.array_equal(on_device(rule, a, b, out=dtype), rule(a, b)), rule
        vector = on_device(lambda x, y, rule=rule: rule(fx.Vector.filled(2, x, cls), y)[1], a, b, out=dtype)
        assert np.array_equal(vector, rule(a, b)), rule


def test_a_shift_by_a_count_known_to_be_small_is_one_operation() -> None:
    compiled = compile_body("t = fx.thread_idx.x\nA[t] = (t >> (t & 31)).to(fx.Float32)")
    assert "arith.minui" not in str(compiled.show("ir")) and "arith.shrsi" in str(compiled.show("ir"))
