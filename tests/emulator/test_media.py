"""Byte sums, averages, cube maps, pieces of 2/pi, fixed point and bit spreads, against brute force in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.emulator.oracles.device import Device
from tests.emulator.test_dpp import EXECS, LANES, state, wide
from tests.emulator.toolchain import CHIPS

SCC = 128


def octets(x: int) -> list[int]:
    """The bytes of a number of 32 bits, lowest first."""
    return list((x & 0xFFFFFFFF).to_bytes(4, "little"))


def sad(x: int, y: int, masked: bool = False) -> int:
    """The sum of absolute differences; `masked` leaves out where y has 0."""
    return sum(abs(a - b) for a, b in zip(octets(x), octets(y), strict=True) if b or not masked)


def lerp(x: int, y: int, z: int) -> int:
    """Averages of bytes, rounded up where z's byte is odd."""
    return int.from_bytes(bytes((a + b + (c & 1)) >> 1 for a, b, c in zip(*map(octets, (x, y, z)), strict=True)),
                          "little")


WORD, LONG = 0xFFFFFFFF, (1 << 64) - 1
THREE: dict[str, Callable[[int, int, int], int]] = {
    "v_lerp_u8 v2, v3, v4, v5": lerp,
    "v_sad_u8 v2, v3, v4, v5": lambda x, y, z: (sad(x, y) + z) & WORD,
    "v_msad_u8 v2, v3, v4, v5": lambda x, y, z: (sad(x, y, True) + z) & WORD,
    "v_msad_u8 v2, v3, v4, v5 clamp": lambda x, y, z: min(sad(x, y, True) + z, WORD),
    "v_sad_hi_u8 v2, v3, v4, v5": lambda x, y, z: ((sad(x, y) << 16) + z) & WORD,
    "v_sad_hi_u8 v2, v3, v4, v5 clamp": lambda x, y, z: min((sad(x, y) << 16) + z, WORD),
}


@pytest.mark.parametrize("chip", CHIPS)
def test_sums_of_bytes(chip: str) -> None:
    device = Device(chip, [*THREE])
    v, s = state(1, EXECS[1])
    v[4] &= np.where(np.arange(64) % 3 == 0, 0x00FF00FF, WORD).astype(np.uint32)
    v[5][::2] |= 0xFFFF0000
    for n, compute in enumerate(THREE.values()):
        wanted = [compute(*map(int, v[3:6, lane])) if EXECS[1] >> lane & 1 else v[2, lane] for lane in LANES]
        assert device.run(n, v, s)[0][2].tolist() == wanted, [*THREE][n]


@pytest.mark.parametrize("clamp", [False, True])
def test_sums_over_windows(clamp: bool) -> None:
    word = " clamp" if clamp else ""
    device = Device("gfx950", [f"v_qsad_pk_u16_u8 v[2:3], v[4:5], v6, v[8:9]{word}",
                               f"v_mqsad_pk_u16_u8 v[2:3], v[4:5], v6, v[8:9]{word}",
                               f"v_mqsad_u32_u8 v[0:3], v[4:5], v6, v[8:11]{word}"])
    v, s = state(2, EXECS[1])
    v[8:12] |= np.where(np.arange(64) % 2, 0xFFF0FFF0, 0).astype(np.uint32)
    v[6][::5] &= 0xFF00FFFF
    found = [device.run(n, v, s)[0] for n in range(3)]
    for lane in LANES:
        if not EXECS[1] >> lane & 1:
            assert all(np.array_equal(f[:4, lane], v[:4, lane]) for f in found)
            continue
        x, y = int(v[4, lane]) | int(v[5, lane]) << 32, int(v[6, lane])
        for n in range(2):
            z, wanted = int(v[8, lane]) | int(v[9, lane]) << 32, 0
            for k in range(4):
                total = sad(x >> 8 * k, y, n == 1) + (z >> 16 * k & 0xFFFF)
                wanted |= (min(total, 0xFFFF) if clamp else total & 0xFFFF) << 16 * k
            assert int(found[n][2, lane]) | int(found[n][3, lane]) << 32 == wanted
        totals = [sad(x >> 8 * k, y, True) + int(v[8 + k, lane]) for k in range(4)]
        assert found[2][:4, lane].tolist() == [min(t, WORD) if clamp else t & WORD for t in totals]


def cube(x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Face, s, t and twice the major axis of a direction, by the faces of a cube."""
    if abs(z) >= abs(x) and abs(z) >= abs(y):
        return (5.0, -x, -y, 2 * z) if z < 0 else (4.0, x, -y, 2 * z)
    if abs(y) >= abs(x):
        return (3.0, x, -z, 2 * y) if y < 0 else (2.0, x, z, 2 * y)
    return (1.0, z, -y, 2 * x) if x < 0 else (0.0, -z, -y, 2 * x)


def test_cube_maps() -> None:
    names = [f"v_cube{part}_f32 v2, v3, v4, v5" for part in ("id", "sc", "tc", "ma")]
    device = Device("gfx942", names)
    v, s = state(3)
    values = np.random.default_rng(0).integers(-2, 3, (3, 64)).astype(np.float32)  # equal and zero parts are common
    v[3:6] = values.view(np.uint32)
    wanted = np.array([cube(*map(float, values[:, lane])) for lane in LANES], np.float32).T
    for n in range(4):
        assert np.array_equal(device.run(n, v, s)[0][2].view(np.float32), wanted[n]), names[n]


def two_over_pi(bits: int) -> int:
    """floor(2/pi * 2**bits), with pi by Gauss and Legendre's means in integers."""
    scale = bits + 80
    a, b, t, p = 1 << scale, math.isqrt(1 << (2 * scale - 1)), Fraction(1, 4), 1
    for _ in range(12):
        a, b, before = (a + b) // 2, math.isqrt(a * b), a
        t -= p * Fraction((before - a) ** 2, 1 << (2 * scale))
        p *= 2
    pi = Fraction((a + b) ** 2, 1 << (2 * scale)) / (4 * t)
    return int(2 * (1 << bits) / pi)


def test_pieces_of_two_over_pi() -> None:
    """Bits of 2/pi at a place that grows with the exponent, cut off where a double ends."""
    random = np.random.default_rng(4)
    digits = two_over_pi(1201)
    device = Device("gfx942", ["v_trig_preop_f64 v[2:3], v[4:5], v6"])
    for _ in range(12):
        v, s = state(int(random.integers(1000)))
        exponents = random.integers(0, 2047, 64)
        segments = random.integers(0, 24, 64)
        exponents[:8], segments[:8] = 1077, [20, 21, 22, 19, 0, 1, 2, 31]
        v[5] = exponents << 20 | v[5] & 0x800FFFFF
        v[6] = v[6] & ~np.uint32(31) | segments.astype(np.uint32)
        found = device.run(0, v, s)[0]
        bits = found[2].astype(np.uint64) | found[3].astype(np.uint64) << np.uint64(32)
        for lane in LANES:
            shift = int(segments[lane]) * 53 + max(int(exponents[lane]) - 1077, 0)
            piece = digits << shift >> (1201 - 53) & (1 << 53) - 1
            value = Fraction(piece, 1 << (53 + shift)) * (1 << 128 if exponents[lane] >= 1968 else 1)
            whole = value / Fraction(1, 1 << 1074)
            wanted = int(whole) * Fraction(1, 1 << 1074)  # no bit below the smallest denormal
            assert Fraction(float(bits[lane:lane + 1].view(np.float64)[0])) == wanted, (exponents[lane], segments[lane])


def test_fixed_point_from_halves() -> None:
    device = Device("gfx950", ["v_cvt_norm_i16_f16_e32 v2, v3", "v_cvt_norm_u16_f16_e32 v2, v3",
                               "v_cvt_pknorm_i16_f16 v2, v3, -v4", "v_cvt_pknorm_u16_f16 v2, |v3|, v4"])
    codes = np.arange(1 << 16, dtype=np.uint16)
    for at in range(0, 1 << 16, 64 * 37):
        v, s = state(at)
        x, y = np.resize(codes[at:at + 64], 64), np.resize(codes[::-1][at:at + 64], 64)
        v[3], v[4] = x, y

        def fixed(values: np.ndarray, signed: bool) -> np.ndarray:
            wide_ = np.nan_to_num(values.view(np.float16).astype(float), nan=0.0)
            scaled = np.rint(np.clip(wide_, -1.0 if signed else 0.0, 1.0) * (32767 if signed else 65535))
            return scaled.astype(np.int64).astype(np.uint32) & 0xFFFF

        found = [device.run(n, v, s)[0][2] for n in range(4)]
        assert np.array_equal(found[0], fixed(x, True))
        assert np.array_equal(found[1], fixed(x, False))
        assert np.array_equal(found[2], fixed(x, True) | fixed(y ^ np.uint16(0x8000), True) << 16)
        assert np.array_equal(found[3], fixed(x & np.uint16(0x7FFF), False) | fixed(y, False) << 16)


def test_small_conversions() -> None:
    device = Device("gfx950", [
        "v_cvt_off_f32_i4_e32 v2, v3", "v_cvt_pkaccum_u8_f32 v2, v3, v4", "v_ashr_pk_i8_i32 v2, v3, v4, v5",
        "v_ashr_pk_u8_i32 v2, v3, v4, v5", "v_ashr_pk_u8_i32 v2, v3, v4, v5 op_sel:[0,0,0,1]"])
    v, s = state(6)
    nibble = (v[3] & 15).astype(np.int32)
    assert np.array_equal(device.run(0, v, s)[0][2].view(np.float32), (nibble - 16 * (nibble > 7)) / 16)
    for n, low, high in ((2, -128, 127), (3, 0, 255)):
        parts = [np.clip(v[k].view(np.int32) >> (v[5] & 31).astype(np.int32), low, high) & 255 for k in (3, 4)]
        wanted = (parts[0] | parts[1] << 8).astype(np.uint32)
        assert np.array_equal(device.run(n, v, s)[0][2], v[2] & 0xFFFF0000 | wanted)
    assert np.array_equal(device.run(4, v, s)[0][2], v[2] & 0xFFFF | wanted << 16)
    numbers = np.linspace(-40, 300, 64).astype(np.float32)
    v[3] = numbers.view(np.uint32)
    at = 8 * (v[4] & 3)
    wanted = v[2] & ~(np.uint32(255) << at) | np.rint(np.clip(numbers, 0, 255)).astype(np.uint32) << at
    assert np.array_equal(device.run(1, v, s)[0][2], wanted)


def test_multiply_add_of_halves_rounds_twice() -> None:
    device = Device("gfx942", ["v_mad_f16 v2, v3, v4, v5", "v_mad_legacy_f16 v2, v3, v4, v5",
                               "v_mac_f16_e32 v2, v3, v4", "v_madak_f16 v2, v3, v4, 0x3c01",
                               "v_madmk_f16 v2, v3, 0x3c01, v4"])
    v, s = state(7)
    v[2:6] = v[2:6] & 0xFFFF83FF | np.random.default_rng(1).integers(10, 20, (4, 64)).astype(np.uint32) << 10
    old, x, y, z = ((v[n] & 0xFFFF).astype(np.uint16).view(np.float16) for n in (2, 3, 4, 5))
    constant = np.array([0x3C01], np.uint16).view(np.float16)

    def bits(halves: np.ndarray) -> np.ndarray:
        return halves.view(np.uint16).astype(np.uint32)

    wanted = [v[2] & 0xFFFF0000 | bits(x * y + z), bits(x * y + z), bits(x * y + old), bits(x * y + constant),
              bits(x * constant + y)]
    for n, result in enumerate(wanted):
        assert np.array_equal(device.run(n, v, s)[0][2], result), n
    assert not np.array_equal(x * y + z, (x.astype(float) * y + z).astype(np.float16))


def test_bits_of_scalars() -> None:
    device = Device("gfx942", ["s_quadmask_b32 s2, s4", "s_quadmask_b64 s[2:3], s[4:5]",
                               "s_bitreplicate_b64_b32 s[2:3], s4"])
    for seed in range(20):
        v, s = state(seed)
        s[4:6] &= state(seed + 100)[1][4:6]
        s[4:6] &= state(seed + 200)[1][4:6]
        if seed == 0:
            s[4:6] = 0
        for n, bits in ((0, 32), (1, 64)):
            value = wide(s, 4) & ((1 << bits) - 1)
            wanted = sum(1 << k for k in range(bits // 4) if value >> 4 * k & 15)
            found = device.run(n, v, s)[1]
            assert (wide(found, 2) & ((1 << bits) - 1), found[SCC]) == (wanted, wanted != 0)
        doubled = sum(3 << 2 * k for k in range(32) if int(s[4]) >> k & 1)
        assert wide(device.run(2, v, s)[1], 2) == doubled
