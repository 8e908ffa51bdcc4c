"""Floats of fewer than 16 bits: conversions on both chips and while tracing are those of ml_dtypes, bit for bit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.dtypes import DTYPES, DType
from flylab.errors import NotSupportedError, TraceError
from flylab.expr.numeric import CLASSES
from flylab.targets import TARGETS
from tests.samples import compile_body, kernel_of, on_device

SMALL = [CLASSES[d.name] for d in DTYPES.values() if d.is_small_float]
BYTES = [cls for cls in SMALL if cls.width == 8]
PARTS = [cls for cls in SMALL if cls.width < 8] + [fx.Int4]
CHIPS = sorted(TARGETS)
names = {"ids": lambda value: getattr(value, "__name__", value)}
chips = pytest.mark.parametrize("chip", CHIPS)


def codes(array: Any) -> Any:
    """The bits of an array of small floats."""
    return array.view(np.uint8)


def every(cls: Any) -> Any:
    """Every encoding of a format."""
    return np.arange(1 << cls.width, dtype=np.uint8).view(cls.dtype.to_numpy())


def singles(cls: Any) -> Any:
    """Float32s that try a format: all of its numbers, the ties between them and their neighbours, specials, random."""
    with np.errstate(all="ignore"):
        exact = np.unique(every(cls).astype(np.float64))
        exact = exact[np.isfinite(exact)]
        beyond = exact[-1] * np.array([1.01, 1.03, 1.0625, 1.07, 1.125, 1.25, 1.5, 2, 4])
        ties = np.concatenate([(exact[1:] + exact[:-1]) / 2, exact[:1] / 2, beyond]).astype(np.float32)
        near = [np.nextafter(ties, np.float32(end)) for end in (np.inf, -np.inf)]
        bits = np.random.default_rng(cls.width).integers(0, 2**32, 1500, np.uint32)
        bits[:9] = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 1, 0x80000001]
        found = np.concatenate([exact.astype(np.float32), ties, *near, bits.view(np.float32)])
        return np.concatenate([found, -found[:400]])


def cast(array: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def same(found: Any, wanted: Any) -> bool:
    """Equal bits, but for a NaN any NaN."""
    either = np.isnan(found) & np.isnan(wanted)
    return bool(np.array_equal(found, wanted, equal_nan=True)) and bool(
        np.all((np.signbit(found) == np.signbit(wanted)) | either)
    )


@chips
@pytest.mark.parametrize("cls", BYTES, **names)
def test_every_encoding_becomes_its_number(cls: Any, chip: str) -> None:
    numbers = every(cls)
    with flylab.use(chip):
        for target in (fx.Float32, fx.Float16, fx.BFloat16, fx.Float64):
            found = on_device(lambda x, target=target: x.to(target), numbers, out=target.dtype.to_numpy())
            wanted = cast(cast(numbers, np.float32), target.dtype.to_numpy())
            assert same(found.astype(np.float64), wanted.astype(np.float64)), target
        found = on_device(lambda x: x.to(fx.Int16), numbers, out=np.int16)
    floats = np.nan_to_num(cast(numbers, np.float64), nan=0.0)
    assert np.array_equal(found, np.clip(floats, -(2**15), 2**15 - 1).astype(np.int16))


@chips
@pytest.mark.parametrize("cls", BYTES, **names)
def test_float32_rounds_to_the_nearest_encoding(cls: Any, chip: str) -> None:
    numbers, dtype = singles(cls), cls.dtype.to_numpy()
    with flylab.use(chip):
        found = on_device(lambda x: x.to(cls), numbers, out=dtype)
    assert np.array_equal(codes(found), codes(cast(numbers, dtype)))


@pytest.mark.parametrize("cls", SMALL, **names)
def test_a_known_float32_rounds_as_ml_dtypes(cls: Any) -> None:
    numbers, dtype = singles(cls)[::3], cls.dtype.to_numpy()
    bits = {4: fx.Float4E2M1FN, 6: None, 8: fx.Uint8}[cls.width]
    found = [fx.Float32(float(x)).to(cls) for x in numbers]
    wanted = cast(numbers, dtype)
    assert same(np.array([x.value for x in found]), wanted.astype(np.float64))
    if bits is fx.Uint8:
        assert [x.bitcast(bits).value for x in found] == codes(wanted).tolist()


@chips
@pytest.mark.parametrize("cls", BYTES, **names)
def test_all_halves(cls: Any, chip: str) -> None:
    halves, dtype = np.arange(1 << 16, dtype=np.uint16), cls.dtype.to_numpy()
    with flylab.use(chip):
        for source in (np.float16, ml_dtypes.bfloat16):
            numbers = halves.view(source)
            found = on_device(lambda x: x.to(cls), numbers, out=dtype)
            assert np.array_equal(codes(found), codes(cast(cast(numbers, np.float32), dtype))), source


def nearest(value: Fraction, dtype: DType) -> float:
    """The oracle of rounding: the nearest multiple of what the last bit is worth there, ties to even.

    E8M0 has powers of 2 only, ties to the larger. For numbers that the format reaches, above its least one.
    """
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    form = dtype.encoding
    assert form is not None
    if not form.mantissa:
        return float(Fraction(2) ** (exponent + (size >= 3 * Fraction(2) ** (exponent - 1))))
    unit = Fraction(2) ** (max(exponent, 1 - form.bias) - form.mantissa)
    return float(round(value / unit) * unit)  # Python rounds ties to even


@st.composite
def near_ties(draw: st.DrawFn) -> tuple[DType, float]:
    """A number of double precision next to a tie of a format: it rounds to a tie first if it is rounded to Float32."""
    dtype = draw(st.sampled_from([d for d in DTYPES.values() if d.is_small_float or d.name == "BFloat16"]))
    form = dtype.encoding
    assert form is not None
    code = draw(st.integers(1 if form.mantissa else 2, form.largest - 1))
    tie = (form.value(code) + form.value(code + 1)) / 2
    return dtype, tie * (1 + draw(st.sampled_from([0, 2.0**-40, -(2.0**-40), 2.0**-52])))


@given(near_ties())
def test_a_known_double_is_rounded_once(case: tuple[DType, float]) -> None:
    dtype, value = case
    assert CLASSES[dtype.name](value).value == nearest(Fraction(value), dtype)


@chips
def test_a_double_of_the_device_is_rounded_once(chip: str) -> None:
    """By way of Float32 these would become a tie, and then the even neighbour."""
    for cls in (*BYTES, fx.BFloat16):
        form = cls.dtype.encoding
        assert form is not None
        step = max(form.largest // 120, 1)
        places = [code for code in range(2, form.largest, step)]
        ties = np.array([(form.value(code) + form.value(code + 1)) / 2 for code in places])
        numbers = np.concatenate([ties * (1 + e) for e in (0, 2.0**-40, -(2.0**-40))])
        special = [1e300, np.inf, np.nan, 0.0, 5e-324]
        numbers = np.concatenate([numbers, -numbers if form.mantissa else numbers, special])
        dtype = cls.dtype.to_numpy()
        with flylab.use(chip):
            found = on_device(lambda x, cls=cls: x.to(cls), numbers, out=dtype).astype(np.float64)
        known = np.array([fx.Float64(float(x)).to(cls).value for x in numbers])
        assert same(found, known), cls
        exact = [nearest(Fraction(float(x)), cls.dtype) for x in numbers[:40]]
        assert found[:40].tolist() == exact, cls


INTEGERS = [fx.Int8, fx.Uint16, fx.Int32, fx.Uint32, fx.Int64, fx.Uint64]


@pytest.mark.parametrize("cls", INTEGERS, **names)
def test_integers_are_rounded_once(cls: Any) -> None:
    """To the floats of few bits and a wide range too, where a Float32 or Float64 between would be a tie."""
    bits = cls.dtype.bits
    powers = [1 << n for n in range(bits - 2)]
    near = [3 * p // 2 + e for p in powers for e in (-1, 0, 1)] + [p + (p >> 8) + e for p in powers for e in (-1, 0, 1)]
    wanted = sorted({0, 1, 100, *(v for v in near if v < 1 << (bits - 1))})
    if cls.dtype.signed:
        wanted += [-v for v in wanted] + [-(1 << (bits - 1))]
    numbers = np.array(wanted, cls.dtype.to_numpy())
    for target in (fx.BFloat16, fx.Float8E8M0FNU, fx.Float8E4M3FN, fx.Float8E5M2FNUZ, fx.Float16, fx.Float32):
        dtype = target.dtype.to_numpy()
        found = on_device(lambda x, target=target: x.to(target), numbers, out=dtype).astype(np.float64)
        known = np.array([cls(v).to(target).value for v in wanted])
        assert same(found, known), target
        if target is fx.BFloat16:
            assert found.tolist() == [nearest(Fraction(v), target.dtype) if v else 0.0 for v in wanted]
        if target is fx.Float8E8M0FNU:
            positive = [(f, v) for f, v in zip(found, wanted, strict=True) if v > 0]
            assert all(f == nearest(Fraction(v), target.dtype) for f, v in positive)
            assert all(np.isnan(f) for f, v in zip(found, wanted, strict=True) if v <= 0)


def vectors(cls: Any, lanes: int) -> tuple[Any, Any, Any]:
    """Bytes of 64 threads, read as a vector of `cls`, as Float32, and converted back."""
    given_bytes = np.random.default_rng(lanes).integers(0, 256, (64, lanes * cls.width // 8), dtype=np.uint8)
    floats, back = np.zeros((64, lanes), np.float32), np.zeros_like(given_bytes)

    @flyc.kernel
    def vectors_kernel(B: fx.Tensor, F: fx.Tensor, R: fx.Tensor):
        t = fx.thread_idx.x
        v = fx.slice(B, (t, None)).load().bitcast(cls)
        numbers = v.to(fx.Float32)
        fx.slice(F, (t, None)).store(numbers)
        fx.slice(R, (t, None)).store(numbers.to(cls).bitcast(fx.Uint8))

    @flyc.jit
    def launch(B: fx.Tensor, F: fx.Tensor, R: fx.Tensor):
        vectors_kernel(B, F, R).launch(grid=1, block=64)

    launch(given_bytes, floats, back)
    return given_bytes, floats, back


def elements(rows: Any, width: int) -> Any:
    """Bytes as elements of `width` bits, the first in the lowest bits."""
    bits = np.unpackbits(rows, axis=1, bitorder="little").reshape(len(rows), -1, width)
    return (bits * (1 << np.arange(width))).sum(-1).astype(np.uint8)


@chips
@pytest.mark.parametrize("cls", [*SMALL, fx.Int4], **names)
@pytest.mark.parametrize("lanes", [4, 8, 12, 24])
def test_vectors(cls: Any, lanes: int, chip: str) -> None:
    with flylab.use(chip):
        given_bytes, floats, back = vectors(cls, lanes)
    found = elements(given_bytes, cls.width)
    wanted = (found.astype(np.int8) ^ 8) - 8 if cls is fx.Int4 else found.view(cls.dtype.to_numpy())
    wanted = cast(wanted, np.float32)
    assert same(floats, wanted)
    again = found if cls is fx.Int4 else codes(cast(wanted, cls.dtype.to_numpy()))
    assert np.array_equal(elements(back, cls.width), again)


@chips
@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 7])
def test_vectors_of_odd_length(lanes: int, chip: str) -> None:
    for cls in (fx.Float8E4M3FN, fx.Float8E4M3FNUZ, fx.Float8E8M0FNU):
        with flylab.use(chip):
            given_bytes, floats, back = vectors(cls, lanes)
        assert same(floats, cast(given_bytes.view(cls.dtype.to_numpy()), np.float32))
        assert np.array_equal(back, codes(cast(floats, cls.dtype.to_numpy())))


@chips
@pytest.mark.parametrize("cls", PARTS, **names)
def test_elements_below_a_byte_move_like_others(cls: Any, chip: str) -> None:
    """Slices, single elements, made and filled vectors, choices: no memory is used for them."""
    given_bytes, floats = np.arange(12, dtype=np.uint8) * 37 + 11, np.zeros((4, 8), np.float32)
    lanes = 96 // cls.width
    with flylab.use(chip):
        compiled = kernel_of(
            """
            v = B.load().bitcast(cls)
            w = v[2:10]
            fx.slice(F, (0, None)).store(w.to(fx.Float32))
            made = fx.Vector.from_elements([v[i] for i in (7, 6, 5, 4, 3, 2, 1, 0)], cls)
            fx.slice(F, (1, None)).store(made.to(fx.Float32))
            mask = w.to(fx.Float32) > made.to(fx.Float32)
            fx.slice(F, (2, None)).store(fx.arith.select(mask, w, made).to(fx.Float32))
            fx.slice(F, (3, None)).store(fx.Vector.filled(8, v[lanes - 1], cls).to(fx.Float32))
            """,
            "B: fx.Tensor, F: fx.Tensor, cls: fx.Constexpr, lanes: fx.Constexpr[int]",
        )["launch"]
        assert "scratch_" not in str(flyc.compile(compiled, given_bytes, floats, cls, lanes).show("isa"))
        compiled(given_bytes, floats, cls, lanes)
    found = elements(given_bytes[None], cls.width)[0]
    numbers = (found.astype(np.int8) ^ 8) - 8 if cls is fx.Int4 else found.view(cls.dtype.to_numpy())
    numbers = numbers.astype(np.float32)
    w, made = numbers[2:10], numbers[7::-1]
    assert np.array_equal(floats, [w, made, np.where(w > made, w, made), np.full(8, numbers[-1])])


@chips
def test_the_chip_converts_where_it_has_the_format(chip: str) -> None:
    body = "v = A.load()[0:4]\nA[0] = v.to(fx.{0}).to(fx.Float32)[1] + v[2].to(fx.{0}).to(fx.Float32)"
    with flylab.use(chip):
        for cls in BYTES:
            text = str(compile_body(body.format(cls.__name__)).show("isa"))
            native = cls.__name__ in TARGETS[chip].float8.values()
            assert ("v_cvt_pk_fp8_f32" in text or "v_cvt_pk_bf8_f32" in text) == native, cls
            assert "fly.convert_float" in str(compile_body(body.format(cls.__name__)).show("ir"))


@pytest.mark.parametrize(
    "expression, message",
    [
        ("x + x", "arithmetic in Float8E4M3FN is not part of the hardware"),
        ("x * 2.0", "arithmetic in Float8E4M3FN is not part of the hardware"),
        ("x < x", "arithmetic in Float8E4M3FN is not part of the hardware"),
        ("-x", "arithmetic in Float8E4M3FN is not part of the hardware"),
        ("abs(x)", "arithmetic in Float8E4M3FN is not part of the hardware"),
        ("fx.max(x, x)", "arithmetic in Float8E4M3FN is not part of the hardware"),
        ("x + fx.Float32(1.0)", "Float8E4M3FN and Float32 have no common number format: nothing computes in"),
        ("fx.Int32(1) * x", "Int32 and Float8E4M3FN have no common number format"),
        ("x + x.to(fx.Float8E5M2)", "Float8E4M3FN and Float8E5M2 have no common number format"),
        ("x & 1", "Float8E4M3FN has no operator '&'"),
    ],
)
def test_operators_are_refused_with_what_to_write(expression: str, message: str) -> None:
    known = {"fx": fx, "x": fx.Float8E4M3FN(1.5)}
    errors: list[Any] = []
    kernel = f"x = A[0].to(fx.Float8E4M3FN)\ny = {expression}"
    for run in (lambda: eval(expression, known), lambda: compile_body(kernel)):
        with pytest.raises((TraceError, NotSupportedError)) as caught:
            run()
        errors.append(caught.value)
    assert all(message in error.message and ".to(" in error.hint for error in errors)


def test_choices_need_no_arithmetic() -> None:
    numbers = every(fx.Float8E5M2)
    found = on_device(lambda x: (x.to(fx.Float32) > 1.0).select(x, 2.0), numbers, out=numbers.dtype)
    singles_ = cast(numbers, np.float32)
    assert same(cast(found, np.float32), np.where(singles_ > 1, singles_, np.float32(2.0)))


@pytest.mark.parametrize("cls", [CLASSES[d.name] for d in DTYPES.values() if d.is_float], **names)
def test_the_rows_are_those_of_ml_dtypes(cls: Any) -> None:
    form, info = cls.dtype.encoding, ml_dtypes.finfo(cls.dtype.to_numpy())
    assert form.value(form.largest) == float(info.max)
    assert form.value(1 if form.mantissa else 0) == float(info.smallest_subnormal)
    assert form.exponent + form.mantissa + (0 if cls is fx.Float8E8M0FNU else 1) == info.bits == cls.width
    with np.errstate(over="ignore"):
        beyond = np.array([1e40 if cls is not fx.Float64 else np.inf]).astype(cls.dtype.to_numpy())
    code = int(beyond.view(f"u{beyond.itemsize}")[0])
    assert code == form.overflow and bool(np.isinf(beyond[0].astype(float))) == form.has_infinity
