"""The codec of small floats: every code of every format, and the floats at its borders, by ml_dtypes and fractions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from flylab.dtypes import DTYPES, DType
from flylab.emulator.numbers import codec
from tests.emulator.snippets import values
from tests.emulator.vectorised import Vectorised

SMALL = {name: d for name, d in DTYPES.items() if d.is_float and d.bits <= 16}
SCALE = "Float8E8M0FNU"
NUMBERS = {name: d for name, d in SMALL.items() if name != SCALE}


def codes(dtype: DType) -> np.ndarray:
    return np.arange(1 << dtype.bits, dtype="u4")


@cache
def floats(dtype: DType) -> np.ndarray:
    """What every code stands for, by numpy and ml_dtypes."""
    with np.errstate(all="ignore"):
        narrow = codes(dtype).astype(f"u{-(-dtype.bits // 8)}").view(dtype.to_numpy())
        return narrow.astype("f4")


@cache
def borders(dtype: DType) -> np.ndarray:
    """Every value of a format and every half-way case, with the floats on either side; infinities, NaNs, denormals."""
    finite = np.unique(np.abs(floats(dtype)[np.isfinite(floats(dtype))]).astype("f8"))
    beyond = 2 * finite[-1] - finite[-2]
    points = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, [beyond, (beyond + finite[-1]) / 2]])
    points = points[points < 2.0**128].astype("f4")
    near = [points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))]
    special = np.array([0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF, 1, 0x7FFFFF, 0x800000], "u4").view("f4")
    positive = np.concatenate([*near, special])
    return np.concatenate([positive, -positive, values("float", 4096, 11).view("f4")])


@cache
def decoder(dtype: DType) -> Vectorised:
    return Vectorised(lambda code: codec.decode(code, dtype.encoding), ("i32",), "float")


@cache
def encoder(dtype: DType, how: str = codec.NEAREST, saturate: bool = False) -> Vectorised:
    return Vectorised(lambda x, r: codec.encode(x, dtype.encoding, how, r, saturate), ("float", "i32"), "i32")


def encoded(dtype: DType, x: np.ndarray, how: str = codec.NEAREST, random: int = 0,
            saturate: bool = False) -> np.ndarray:
    return encoder(dtype, how, saturate)(x, np.full(x.size, random, "u4"))


def equal(found: np.ndarray, wanted: np.ndarray) -> bool:
    """The same numbers and signs, with a NaN for a NaN."""
    same = (found == wanted) & (np.signbit(found) == np.signbit(wanted))
    return bool(np.all(same | np.isnan(found) & np.isnan(wanted)))


@pytest.mark.parametrize("name", SMALL)
def test_every_code_decoded(name: str) -> None:
    dtype = SMALL[name]
    every = codes(dtype)
    rubbish = np.uint32(0xFFFFFFFF) << np.uint32(dtype.bits)
    for code in (every, every | rubbish):
        found = decoder(dtype)(code)
        assert equal(found, floats(dtype))
        if name != "BFloat16":
            assert np.all(found.view("u4")[np.isnan(found)] & 0x400000)  # quiet


@pytest.mark.parametrize("name", NUMBERS)
def test_every_code_comes_back(name: str) -> None:
    dtype = NUMBERS[name]
    number = ~np.isnan(floats(dtype))
    for how in (codec.NEAREST, codec.TOWARD_ZERO, codec.STOCHASTIC):
        assert np.array_equal(encoded(dtype, floats(dtype), how, 0xFFFFFFFF if how != codec.STOCHASTIC else 0)[number],
                              codes(dtype)[number])


def by_ml_dtypes(dtype: DType, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(dtype.to_numpy()).view(f"u{-(-dtype.bits // 8)}").astype("u4")


@pytest.mark.parametrize("name", NUMBERS)
def test_nearest_even_as_ml_dtypes_rounds(name: str) -> None:
    dtype = NUMBERS[name]
    sources = [borders(dtype)]
    if dtype.bits < 16:
        sources += [floats(DTYPES["Float16"]), floats(DTYPES["BFloat16"])]
    for x in sources:
        found, wanted = encoded(dtype, x), by_ml_dtypes(dtype, x)
        nan = np.isnan(x)
        assert np.array_equal(found[~nan], wanted[~nan])
        if dtype.encoding.nan is None:  # ml_dtypes makes a NaN some number
            assert np.array_equal(found[nan] & (dtype.encoding.sign - 1), np.full(nan.sum(), dtype.encoding.largest))
        else:
            assert np.all(np.isnan(floats(dtype)[found[nan]]))
            assert np.array_equal(found[nan] & dtype.encoding.sign, wanted[nan] & dtype.encoding.sign)


@pytest.mark.parametrize("name", NUMBERS)
def test_toward_zero_is_the_nearest_number_not_beyond(name: str) -> None:
    dtype = NUMBERS[name]
    x = borders(dtype)
    x = x[np.isfinite(x)]
    found = floats(dtype)[encoded(dtype, x, codec.TOWARD_ZERO)].astype("f8")
    finite = np.unique(floats(dtype)[np.isfinite(floats(dtype))]).astype("f8")
    positive = finite[finite >= 0]
    wanted = positive[np.searchsorted(positive, np.abs(x.astype("f8")), side="right") - 1]
    assert np.array_equal(np.abs(found), wanted)
    assert np.all(np.signbit(found) == (np.signbit(x) & ((found != 0) | (not dtype.encoding.unsigned_zero))))


@pytest.mark.parametrize("name", NUMBERS)
def test_stochastic_rounding_takes_each_neighbour_as_often_as_it_is_near(name: str) -> None:
    """The random bits that make a number go up are exactly the share of its distance to the lower neighbour."""
    dtype = NUMBERS[name]
    finite = np.unique(np.abs(floats(dtype)[np.isfinite(floats(dtype))])).astype("f8")
    bits = 23 - dtype.encoding.mantissa
    random = np.random.default_rng(4)
    picks = random.integers(0, finite.size - 1, 200)
    for low, high, share in zip(finite[picks], finite[picks + 1], random.integers(0, 1 << bits, 200), strict=True):
        x = np.float32(low + (high - low) * float(Fraction(int(share), 1 << bits)))
        step = Fraction(float(x) - low) / Fraction(high - low) * (1 << bits)
        first = (1 << bits) - int(step)  # the least random number that carries
        for number, wanted in ((first - 1, low), (first, high)):
            if 0 <= number < 1 << bits:
                word = number << (32 - bits) | (1 << (32 - bits)) - 1
                for sign in (1, -1):
                    got = floats(dtype)[encoded(dtype, np.array([sign * x], "f4"), codec.STOCHASTIC, word)]
                    assert got[0] == sign * wanted, (low, high, share, number)


@pytest.mark.parametrize("name", NUMBERS)
def test_saturation_keeps_infinities_and_bounds_the_rest(name: str) -> None:
    dtype = NUMBERS[name]
    x = borders(dtype)
    plain, bounded = encoded(dtype, x), encoded(dtype, x, saturate=True)
    largest = np.nanmax(np.where(np.isinf(floats(dtype)), 0, floats(dtype)))
    beyond = np.isfinite(x) & ~np.isfinite(floats(dtype)[plain])
    assert np.array_equal(plain[~beyond], bounded[~beyond])
    assert equal(floats(dtype)[bounded[beyond]], np.copysign(largest, x[beyond]))


@pytest.mark.parametrize("name", ["Float16", "BFloat16"])
def test_a_nan_of_16_bits_keeps_the_top_of_its_payload(name: str) -> None:
    dtype = SMALL[name]
    nan = np.array([0x7FC12345, 0xFFA54321, 0x7F800001], "u4").view("f4")
    lost, upper = 23 - dtype.encoding.mantissa, (1 << dtype.encoding.mantissa) - 1
    code = encoded(dtype, nan)
    kept = nan.view("u4") >> np.uint32(lost) & np.uint32(upper) | np.uint32(1 << (dtype.encoding.mantissa - 1))
    assert np.array_equal(code & upper, kept)
    assert np.array_equal(decoder(dtype)(code).view("u4"), (code & 0x8000) << 16 | 0x7F800000 | kept << lost)
