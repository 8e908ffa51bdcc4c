"""The conversions of 8-bit floats in the encoding of each chip, of every code and of all kinds of floats: ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flylab.emulator import Program
from tests.emulator.snippets import values
from tests.emulator.test_numbers import QUIET, bits
from tests.emulator.toolchain import assembly

FORMATS = {
    ("gfx942", "fp8"): ml_dtypes.float8_e4m3fnuz, ("gfx942", "bf8"): ml_dtypes.float8_e5m2fnuz,
    ("gfx950", "fp8"): ml_dtypes.float8_e4m3fn, ("gfx950", "bf8"): ml_dtypes.float8_e5m2,
}
KERNEL = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshl_or_b32 v1, s2, 8, v0
  v_lshlrev_b32_e32 v1, 4, v1
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[4:7], v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_mov_b32_e32 v8, 0xaaaaaaaa
  v_mov_b32_e32 v9, 0
  {}
  global_store_dwordx2 v1, v[8:9], s[4:5]
  s_endpgm
"""


def run(chip: str, instruction: str, rows: np.ndarray, **descriptor: int) -> np.ndarray:
    """v8 and v9 of each row (a multiple of 256) of v4 to v7, after one instruction; v8 is 0xAAAAAAAA before."""
    data = np.zeros((len(rows), 4), "u4")
    data[:, :rows.shape[1]] = rows
    text = assembly(KERNEL.format(instruction), chip, **descriptor)
    Program.from_assembly(text).launch(grid=len(rows) // 256, block=256, args=[data])
    return data[:, :2]


def codes_of(floats: np.ndarray, dtype: type) -> np.ndarray:
    with np.errstate(all="ignore"):
        return floats.view("f4").astype(dtype).view("u1").astype("u4")


@pytest.mark.parametrize("chip, name", FORMATS)
def test_pairs_of_floats(chip: str, name: str) -> None:
    dtype = FORMATS[chip, name]
    every = np.arange(256, dtype="u1").view(dtype).astype("f4")
    ties = ((every[1:].astype("f8") + every[:-1]) / 2).astype("f4")
    near = [np.nextafter(ties, np.float32(end)) for end in (np.inf, -np.inf)]
    pool = np.concatenate([values("float", 4096, 3).view("u4"), *(x.view("u4") for x in (every, ties, *near))])
    pairs = np.resize(pool, (4096, 2)).copy()
    np.random.default_rng(5).shuffle(pairs)
    both = codes_of(pairs[:, 0].copy(), dtype) | codes_of(pairs[:, 1].copy(), dtype) << 8
    low = run(chip, f"v_cvt_pk_{name}_f32 v8, v4, v5", pairs)[:, 0]
    assert np.array_equal(low, 0xAAAA0000 | both)
    high = run(chip, f"v_cvt_pk_{name}_f32 v8, v4, v5 op_sel:[0,0,1]", pairs)[:, 0]
    assert np.array_equal(high, both << 16 | 0xAAAA)
    negative = run(chip, f"v_cvt_pk_{name}_f32 v8, -v4, |v5|", pairs)[:, 0]
    changed = codes_of(pairs[:, 0] ^ 0x80000000, dtype) | codes_of(pairs[:, 1] & 0x7FFFFFFF, dtype) << 8
    assert np.array_equal(negative, 0xAAAA0000 | changed)


@pytest.mark.parametrize("chip, name", FORMATS)
def test_every_code(chip: str, name: str) -> None:
    wanted = np.arange(256, dtype="u1").view(FORMATS[chip, name]).astype("f4")

    def check(found: np.ndarray, codes: np.ndarray) -> None:
        numbers = found.view("f4")
        assert np.array_equal(numbers, wanted[codes], equal_nan=True)
        assert np.array_equal(np.signbit(numbers) | np.isnan(numbers), np.signbit(wanted[codes]) | np.isnan(numbers))

    shuffled = [np.random.default_rng(n).permutation(256) for n in range(4)]
    words = sum((p.astype("u4") << (8 * n) for n, p in enumerate(shuffled)), np.zeros(256, "u4"))[:, None]
    for n, codes in enumerate(shuffled):
        check(run(chip, f"v_cvt_f32_{name}_sdwa v8, v4 src0_sel:BYTE_{n}", words)[:, 0].copy(), codes)
    check(run(chip, f"v_cvt_f32_{name}_e32 v8, v4", words)[:, 0].copy(), shuffled[0])
    for n in range(2):
        select = f"src0_sel:WORD_{n}"
        pair = run(chip, f"v_cvt_pk_f32_{name}_sdwa v[8:9], v4 {select}", words)
        check(pair[:, 0].copy(), shuffled[2 * n])
        check(pair[:, 1].copy(), shuffled[2 * n + 1])
    pair = run(chip, f"v_cvt_pk_f32_{name}_e32 v[8:9], v4", words)
    check(pair[:, 1].copy(), shuffled[1])


@pytest.mark.parametrize("chip, name, wanted", [
    ("gfx942", "fp8", [0x80, 0x80, 0x7F, 0x80, 0x00]), ("gfx942", "bf8", [0x80, 0x80, 0x60, 0x80, 0x00]),
    ("gfx950", "fp8", [0x7F, 0x7F, 0x77, 0xFF, 0x80]), ("gfx950", "bf8", [0x7E, 0x7C, 0x5C, 0xFC, 0x80])])
def test_special_numbers_as_published(chip: str, name: str, wanted: list[int]) -> None:
    """NaN, infinity, 240, a number below all, -0: FNUZ has one NaN and one zero, E4M3FN no infinity."""
    rows = np.zeros((256, 2), "u4")
    rows[:5, 0] = [QUIET, bits(float("inf")), bits(240.0), bits(-1e30), bits(-0.0)]
    assert (run(chip, f"v_cvt_pk_{name}_f32 v8, v4, v5", rows)[:5, 0] & 0xFF).tolist() == wanted


def test_denormal_floats_become_zero_where_the_descriptor_says_so() -> None:
    """They are far below every 8-bit float but in sign."""
    rows = np.full((256, 2), 0x80000001, "u4")
    found = run("gfx950", "v_cvt_pk_fp8_f32 v8, v4, v5", rows, float_denorm_mode_32=0)
    assert set(found[:, 0].tolist()) == {0xAAAA8080}


@pytest.mark.parametrize("way", ["descriptor", "register"])
@pytest.mark.parametrize("chip, name", FORMATS)
def test_overflow_saturates_where_the_mode_says_so(chip: str, name: str, way: str) -> None:
    """A finite number beyond the range becomes the largest; an infinity stays what it was, and a NaN one."""
    dtype = FORMATS[chip, name]
    largest = float(ml_dtypes.finfo(dtype).max)
    numbers = np.array([largest * 1.2, -1e30, np.inf, -np.inf, np.nan, largest, 1.0, -largest], "f4")
    rows = np.resize(numbers.view("u4"), (256, 1))
    wanted = codes_of(np.where(np.isinf(numbers), numbers, np.clip(numbers, -largest, largest)).astype("f4"), dtype)
    change = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n  " if way == "register" else ""
    settings = {} if change else {"fp16_overflow": 1}
    found = run(chip, f"{change}v_cvt_pk_{name}_f32 v8, v4, v4", rows, **settings)
    assert np.array_equal(found[:8, 0] & 0xFFFF, wanted * 0x101)
