"""Cases of users' troubles with numbers, each on the device and while tracing; and the names that numbers have."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from flylab.targets import TARGETS
from tests.samples import cell, kernel_of, on_device

chips = pytest.mark.parametrize("chip", sorted(TARGETS))


@pytest.mark.parametrize("cls", [fx.Int8, fx.Int16, fx.Int32, fx.Int64])
def test_floor_division_and_remainder_belong_together(cls: Any) -> None:
    """L15."""
    dtype = cls.dtype.to_numpy()
    a, b = np.array([7, -7, -7, 7], dtype), np.array([-2, 2, -2, 2], dtype)
    quotients, rests = (on_device(rule, a, b, out=dtype) for rule in (operator.floordiv, operator.mod))
    assert quotients.tolist() == [-4, -4, 3, 3] and rests.tolist() == [-1, 1, -1, 1]
    assert np.array_equal(quotients * b + rests, a)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert [(cls(x) // cls(y)).value for x, y in pairs] == quotients.tolist()
    assert [(cls(x) % cls(y)).value for x, y in pairs] == rests.tolist()


def test_known_integers_wrap_as_on_the_device() -> None:
    """L17."""
    made = [fx.Uint32(2**32 + 5), fx.Int8(200), fx.Uint64(2**64 - 1) + 2, fx.Uint8(fx.Int32(-1))]
    assert [x.value for x in made] == [5, -56, 1, 255]
    assert fx.Boolean(5).value is True and fx.Boolean(0.0).value is False
    wide = np.array([5, 200, 2**32 + 5, -1, 5], np.int64)
    assert on_device(lambda x: x.to(fx.Uint32), wide, out=np.uint32).tolist()[2] == 5
    assert on_device(lambda x: x.to(fx.Int8), wide, out=np.int8).tolist()[1] == -56
    assert on_device(lambda x: x.to(fx.Uint64) + 2, wide, out=np.uint64).tolist()[3] == 1
    assert on_device(lambda x: x.to(fx.Int32).to(fx.Uint8), wide, out=np.uint8).tolist()[3] == 255
    assert on_device(lambda x: x.to(fx.Boolean).to(fx.Int32), wide, out=np.int32).tolist() == [1] * 5


def test_constants_of_64_bits_reach_the_device_exactly() -> None:
    """L17: and those of 128."""
    values = [2**64 - 1, 2**63, 2**53 + 1, 0x0123456789ABCDEF]
    A = np.zeros(64, np.uint64)
    text = "\n".join(f"A[{i}] = fx.Uint64({v})" for i, v in enumerate(values))
    text += "\nwide = fx.Vector.from_elements([fx.Uint128(2**127 + 2**64 + 3)], fx.Uint128).bitcast(fx.Uint64)"
    text += "\nA[8] = wide[0]\nA[9] = wide[1]\nA[10] = fx.Int64(-(2**63)).to(fx.Uint64)"
    launch = kernel_of(text)["launch"]
    launch(A)
    assert A[: len(values)].tolist() == values and A[8:11].tolist() == [3, 2**63 + 1, 2**63]
    ir = str(flyc.compile(launch, A).show("ir"))
    assert all(f"<{v - 2**64 if v >> 63 else v}> : vector<1xi64>" in ir for v in values)


@chips
def test_bfloat16_computes_exactly_where_the_result_fits(chip: str) -> None:
    """L19."""
    a, b = np.array([2.5, -5.0, 3.0], ml_dtypes.bfloat16), np.array([2.0, -2.0, 3.0], ml_dtypes.bfloat16)
    with flylab.use(chip):
        assert on_device(operator.add, a, b, out=a.dtype).tolist() == [4.5, -7.0, 6.0]
        assert on_device(lambda x, y: (x < y).to(fx.Int32), a, b, out=np.int32).tolist() == [0, 1, 0]
        assert on_device(lambda x: x * 1.5, a, out=a.dtype).tolist() == [3.75, -7.5, 4.5]
    assert (fx.BFloat16(2.5) + 2.0).value == 4.5 and (fx.BFloat16(-5.0) < -2.0).value is True
    assert type(fx.BFloat16(2.5) * 1.5) is fx.BFloat16


def test_bfloat16_products_of_small_integers_are_exact() -> None:
    """L19: a 16x16x16 matrix product, summed in Float32."""
    rng = np.random.default_rng(0)
    A, B = (rng.integers(-4, 5, (16, 16)).astype(ml_dtypes.bfloat16) for _ in range(2))
    C = np.zeros((16, 16), np.float32)
    names = cell("""
        @flyc.kernel
        def product(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
            row, column = fx.thread_idx.x // 16, fx.thread_idx.x % 16
            total = fx.Float32(0.0)
            for k in range_constexpr(16):
                total = total + (A[row, k] * B[k, column]).to(fx.Float32)
            C[row, column] = total

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
            product(A, B, C).launch(grid=1, block=256)
    """)
    names["launch"](A, B, C)
    assert np.array_equal(C, A.astype(np.float32) @ B.astype(np.float32))


@pytest.mark.parametrize("cls", [fx.Float16, fx.BFloat16, fx.Float32, fx.Float64])
def test_extremes_of_numbers_with_nan(cls: Any) -> None:
    """L20, for numbers: max and min give NaN, maxnumf and minnumf the number; nothing raises."""
    nan, dtype = float("nan"), cls.dtype.to_numpy()
    x = np.array([nan, 6.0, nan, 8.0], dtype)
    y = np.array([6.0, nan, nan, 6.0], dtype)
    expected = {
        "max": [nan, nan, nan, 8.0], "min": [nan, nan, nan, 6.0],
        "maxnumf": [6.0, 6.0, nan, 8.0], "minnumf": [6.0, 6.0, nan, 6.0],
    }  # fmt: skip
    for name, wanted in expected.items():
        rule = getattr(fx, name)
        assert np.array_equal(on_device(rule, x, y, out=dtype).astype(float), wanted, equal_nan=True), name
        known = [rule(cls(float(a)), cls(float(b))).value for a, b in zip(x, y, strict=True)]
        assert np.array_equal(known, wanted, equal_nan=True), name
    assert fx.maxnumf(fx.maxnumf(cls(nan), 6.0), 8.0).value == 8.0


def test_a_converted_runtime_number_makes_a_layout() -> None:
    """L25: no comparison inside asks for the value of a number that only the device knows."""
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, m: fx.Int32, n: fx.Int64):
            x = fx.Int32(m)
            wide = fx.Int64(m)
            layout = fx.make_layout((x, 4), (4, 1))
            other = fx.make_layout((wide, n), (n, 1))
            t = fx.thread_idx.x
            A[t] = fx.Int32(layout((t % x, t % 4))) + fx.Int32(other((t % x, 1))) + fx.Int32(fx.size(layout))

        @flyc.jit
        def launch(A: fx.Tensor, m: fx.Int32, n: fx.Int64):
            k(A, m, n).launch(grid=1, block=64)
    """)
    A = np.zeros(64, np.int32)
    names["launch"](A, 5, 7)
    t = np.arange(64)
    assert np.array_equal(A, (t % 5) * 4 + t % 4 + (t % 5) * 7 + 1 + 20)


ARGUMENTS = {
    "Boolean": True, "Int4": -3, "Int16": -300, "Uint64": 2**64 - 2**11, "Int128": 2**100, "Uint128": 2**127 + 2**80,
    "Float16": 1.5, "BFloat16": 1.5, "Float64": 1e300, "Float8E4M3FN": 1.5, "Float8E5M2FNUZ": -2.0,
    "Float8E8M0FNU": 4.0, "Float6E2M3FN": 1.5, "Float4E2M1FN": -6.0,
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_number_of_each_kind_is_passed_to_a_kernel(name: str) -> None:
    names = cell(f"""
        @flyc.kernel
        def k(A: fx.Tensor, n: fx.{name}):
            A[0] = n.to(fx.Float64)

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.{name}):
            k(A, n).launch(grid=1, block=1)
    """)
    A = np.zeros(1)
    names["launch"](A, ARGUMENTS[name])
    assert A[0] == float(ARGUMENTS[name])


def warned(made: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        made()
    return [w for w in caught if w.category is DeprecationWarning]


def test_index_is_int64_and_warns_once_for_each_line() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            for i in range_constexpr(4):
                A[i] = fx.Float32(fx.Index(i) * 2)
            x = A[0].to(fx.Index)
            assert type(x) is fx.Int64

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=1)
    """)
    A = np.zeros(4, np.float32)
    found = warned(lambda: names["launch"](A))
    assert A.tolist() == [0, 2, 4, 6]
    assert [(w.lineno, w.filename) for w in found] == [(4, names["FILE"]), (5, names["FILE"])]
    assert {str(w.message) for w in found} == {"fx.Index is deprecated: write fx.Int64"}
    assert type(fx.Int64(3)) is fx.Int64 and not warned(lambda: fx.Int64(3))


def test_index_as_a_parameter() -> None:
    text = """
        @flyc.kernel
        def k(A: fx.Tensor, n: fx.Index):
            A[0] = fx.Float32(n // 3)

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Index):
            k(A, n).launch(grid=1, block=1)
    """
    names: dict[str, Any] = {}
    assert len(warned(lambda: names.update(cell(text)))) == 2
    A = np.zeros(1, np.float32)
    assert not warned(lambda: names["launch"](A, 2**33))
    assert A[0] == 2**33 // 3


def test_formats_are_found_where_the_numbers_are() -> None:
    """The published names of the module; NumericMeta is a detail of another implementation, and not there."""
    from flylab.expr import numeric

    published = """BFloat16 Boolean Float Float16 Float32 Float4E2M1FN Float64 Float6E2M3FN Float6E3M2FN Float8E4M3
        Float8E4M3B11FNUZ Float8E4M3FN Float8E4M3FNUZ Float8E5M2 Float8E8M0FNU Index Int128 Int16 Int32 Int4 Int64
        Int8 Integer Numeric Uint128 Uint16 Uint32 Uint64 Uint8""".split()
    for name in published:
        assert getattr(numeric, name) is getattr(fx, name)
    assert numeric.as_numeric(3).dtype is fx.Int32.dtype and numeric.as_numeric(2.5).dtype is fx.Float32.dtype
    assert numeric.as_numeric(True).dtype is fx.Boolean.dtype and numeric.as_numeric(fx.Int8(1)).value == 1
    with pytest.raises(AttributeError, match="NumericMeta"):
        _ = numeric.NumericMeta


REFUSED = {
    "bitcast to another width": ("x = A[0]\ny = x.bitcast(fx.Int64)", "bitcast of 'x'", "32 bits", ".to("),
    "bitcast of a vector": ("v = A.load()[0:3]\ny = v.bitcast(fx.Int64)", "96 bits", "Int64", "width divides"),
    "to what is no format": ("x = A[0]\ny = x.to(32)", "32 is not a number format", "", "fx.Float32"),
    "select by a number": ("x = A[0]\ny = x.select(1, 2)", "select by 'x'", "Float32", "compare it"),
    "ceildiv of floats": ("x = A[0]\ny = fx.ceildiv(x, 2)", "ceildiv", "Float32", "integers"),
    "ceildiv by zero": ("t = fx.thread_idx.x\ny = fx.ceildiv(t, 0)", "division by zero", "Int32", "check"),
    "shift of a vector": ("v = A.load().to(fx.Int8)\ny = v << 9", "shift of Int8 by 9", "", "0 to 7"),
    "max of a text": ("y = fx.max(A[0], 'a')", "'a'", "str", "number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_write(name: str) -> None:
    body, *messages, hint = REFUSED[name]
    names = kernel_of(body)
    with pytest.raises(TraceError) as caught:
        names["launch"](np.zeros(64, np.float32))
    error = caught.value
    assert all(message in error.message for message in messages), error.message
    assert hint in error.hint and error.where.line == 2 + len(body.splitlines())
