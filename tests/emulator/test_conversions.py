"""Cases D07 and D08 of small floats on the device, and the conversions that round by random bits or by the mode."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flylab.targets import TARGETS
from tests.emulator.instruction_rows import MODES, run
from tests.emulator.snippets import values
from tests.emulator.test_fp8 import FORMATS
from tests.emulator.toolchain import CHIPS, ROUND_BFLOAT, Host, aligned

COUNT = 4096


def word(x: float) -> int:
    """The bits of a 32-bit float."""
    return int(np.array(x, "f4").view("u4"))


def each(instruction: str, words: np.ndarray, chip: str) -> np.ndarray:
    return run(instruction, words, result="u4", chip=chip)


@pytest.mark.parametrize("chip, name, largest, negative_zero", [
    ("gfx942", "fp8", 240.0, np.nan), ("gfx942", "bf8", 57344.0, np.nan),
    ("gfx950", "fp8", 448.0, -0.0), ("gfx950", "bf8", 57344.0, -0.0)])
def test_d07_byte_0x80_and_the_largest_number(chip: str, name: str, largest: float, negative_zero: float) -> None:
    """The same byte is -0 on one chip and NaN on the other; the numbers are those the formats' specifications state."""
    found = each(f"v_cvt_f32_{name}_e32 v12, v4", np.full(256, 0x80, "u4"), chip)[0]
    assert np.isnan(found.view("f4")) if np.isnan(negative_zero) else found == word(negative_zero)
    code = each(f"v_cvt_pk_{name}_f32 v12, v4, v4", np.full(256, word(largest)), chip)[0] & 0xFF
    assert each(f"v_cvt_f32_{name}_e32 v12, v4", np.full(256, code), chip)[0].view("f4") == largest
    # Three quarters of a step above it nothing finite is left.
    step = largest * (2.0**-3 if name == "fp8" else 2.0**-2) / (1.75 if name == "bf8" or chip == "gfx950" else 1.875)
    beyond = each(f"v_cvt_pk_{name}_f32 v12, v4, v4", np.full(256, word(largest + step * 0.75)), chip)[0] & 0xFF
    back = each(f"v_cvt_f32_{name}_e32 v12, v4", np.full(256, beyond), chip)[0].view("f4")
    assert not np.isfinite(back)


@pytest.mark.parametrize("chip, name", FORMATS)
def test_d07_all_bytes_both_ways(chip: str, name: str) -> None:
    """Of 256 bytes as floats, and of those floats as bytes, none differs from ml_dtypes."""
    every = np.arange(256, dtype="u1")
    wanted = every.view(FORMATS[chip, name]).astype("f4")
    found = each(f"v_cvt_f32_{name}_e32 v12, v4", every.astype("u4"), chip).view("f4")
    nan = np.isnan(wanted)
    assert np.array_equal(np.isnan(found), nan) and np.array_equal(found[~nan].view("u4"), wanted[~nan].view("u4"))
    back = each(f"v_cvt_pk_{name}_f32 v12, v4, v4", wanted.view("u4"), chip) & 0xFF
    assert np.array_equal(back[~nan], every[~nan])
    assert np.isnan(back[nan].astype("u1").view(FORMATS[chip, name]).astype("f4")).all()


@pytest.mark.parametrize("mode", MODES.values())
@pytest.mark.parametrize("text", ["v_cvt_f32_fp8_e32 v12, v4", "v_cvt_scalef32_f32_fp8 v12, v4, 1.0",
                                  "v_cvt_scalef32_pk_f32_fp4 v[12:13], v4, 1.0"])
def test_zeros_and_denormals_are_those_of_any_rounding_mode(text: str, mode: int) -> None:
    codes = np.array([0x00, 0x80, 0x01, 0x81, 0x08, 0x88], "u4")
    wanted = run(text, codes, result="u4", chip="gfx950")
    assert wanted[0] == 0
    assert np.array_equal(run(text, codes, result="u4", chip="gfx950", float_round_mode_32=mode), wanted)


@pytest.mark.parametrize("chip, text", [
    *((chip, "v_cvt_f32_f16_e32 v12, v4\n  v_cvt_pk_bf8_f32 v12, v12, v12") for chip in CHIPS),
    ("gfx950", "v_cvt_scalef32_pk_bf8_f16 v12, v4, 1.0")])
def test_d08_all_halves_to_e5m2(chip: str, text: str) -> None:
    """By way of a float, which is exact, or at once; in the chip's own encoding."""
    halves = np.arange(1 << 16, dtype="u2").view("f2")
    dtype = np.dtype(FORMATS[chip, "bf8"])
    found = each(text, halves, chip) & 0xFF
    with np.errstate(all="ignore"):
        wanted = halves.astype(dtype)
    number = ~np.isnan(wanted.astype("f4"))
    assert np.array_equal(found[number], wanted.view("u1")[number])
    assert np.isnan(found[~number].astype("u1").view(dtype).astype("f4")).all()


TO_BFLOAT = """
define void @f(ptr %x, ptr %r, i64 %count) {
entry:
  br label %step
step:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %a = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %a
  %b = fptrunc float %v to bfloat
  %p = getelementptr bfloat, ptr %r, i64 %i
  store bfloat %b, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %step, label %done
done:
  ret void
}
"""


def test_d08_floats_to_bfloat_as_llvm_rounds_on_this_machine() -> None:
    """Every half-way case between neighbours, and the floats on either side; NaNs in their payload too."""
    codes = np.arange(0x7F80, dtype="u4")
    words = np.concatenate([(codes << 16) + np.uint32(rest) for rest in (0x7FFF, 0x8000, 0x8001)])
    words = np.concatenate([words, words | 0x80000000, values("float", COUNT, 1).view("u4"),
                            np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFA54321], "u4")])
    wanted = aligned(np.zeros(words.size, "u2"))
    Host(TO_BFLOAT + ROUND_BFLOAT).call("f", [aligned(words), wanted], words.size)
    found = each("v_cvt_pk_bf16_f32 v12, v4, v4", words, "gfx950")
    assert np.array_equal(found & 0xFFFF, wanted) and np.array_equal(found >> 16, wanted)


def _codes(chip: str, name: str) -> tuple[np.dtype, int]:
    """The format of a stochastic conversion, and the bits of its fraction."""
    if name in ("f16", "bf16"):
        return (np.dtype("f2"), 10) if name == "f16" else (np.dtype(ml_dtypes.bfloat16), 7)
    return np.dtype(FORMATS[chip, name]), 3 if name == "fp8" else 2


@pytest.mark.parametrize("chip, name", [*FORMATS, ("gfx950", "f16"), ("gfx950", "bf16")])
def test_stochastic_rounding(chip: str, name: str) -> None:
    """The result is a neighbour, the upper one where the random bits and what is below the last place make one."""
    dtype, fraction = _codes(chip, name)
    random = np.random.default_rng(2)
    x = (random.normal(size=COUNT) * 2.0 ** random.integers(-12, 5, COUNT)).astype("f4")
    bits = random.integers(0, 1 << 32, COUNT, dtype="u4")
    size = 8 * dtype.itemsize
    with np.errstate(invalid="ignore"):
        every = np.arange(1 << (size - 1), dtype=f"u{dtype.itemsize}").view(dtype).astype("f8")
    finite = every[np.isfinite(every)]
    low = np.searchsorted(finite, np.abs(x.astype("f8")), side="right") - 1
    step = finite[low + 1] - finite[low]
    share = ((np.abs(x.astype("f8")) - finite[low]) / step * 2.0 ** (23 - fraction)).astype("i8")
    up = share + (bits >> (9 + fraction)).astype("i8") >= 1 << (23 - fraction)
    code = low + up
    zero = (code == 0) & (chip == "gfx942")
    wanted = code | (np.signbit(x) & ~zero).astype("i8") << (size - 1)
    places = {8: {0: "", 1: "op_sel:[0,0,1,0]", 2: "op_sel:[0,0,0,1]", 3: "op_sel:[0,0,1,1]"},
              16: {0: "", 1: "op_sel:[0,0,1]"}}[size]
    for n, text in places.items():
        found = run(f"v_cvt_sr_{name}_f32 v12, v4, v6 {text}", x, bits, result="u4", chip=chip)
        mask = (1 << size) - 1
        assert np.array_equal(found >> np.uint32(size * n) & mask, wanted)
        assert set((found & ~np.uint32(mask << size * n)).tolist()) == {0xAAAAAAAA & ~(mask << size * n)}
    assert 0.3 < up[share > 0].mean() < 0.7


@pytest.mark.parametrize("how", MODES)
def test_a_byte_is_rounded_by_the_mode(how: str) -> None:
    x = np.array([0, -1, 0.5, 1.5, 2.5, 254.49, 254.51, 255.4, 300, np.inf, -np.inf, np.nan, 1e-40, 7.0, 100.25], "f4")
    function = {"nearest": np.rint, "up": np.ceil, "down": np.floor, "zero": np.trunc}[how]
    wanted = function(np.nan_to_num(np.clip(x, 0, 255), nan=0)).astype("u4")
    at, old = np.arange(x.size, dtype="u4"), np.full(x.size, 0x11223344, "u4")
    found = run("v_cvt_pk_u8_f32 v12, v4, v6, v8", x, at, old, result="u4", float_round_mode_32=MODES[how])
    shift = (8 * (at & 3)).astype("u4")
    assert np.array_equal(found, old & ~(np.uint32(255) << shift) | wanted << shift)


def test_pairs_of_halves_keep_to_nearest_even_and_saturate_by_the_mode() -> None:
    large = np.resize(np.array([7e4, -7e4, np.inf], "f4"), 512)
    x = np.concatenate([values("float", COUNT - 512, 3).view("f4"), large])
    with np.errstate(all="ignore"):
        wanted = x.astype("f2")
    number = ~np.isnan(x)
    for settings in ({}, {"float_round_mode_16_64": 1}):
        found = run("v_cvt_pk_f16_f32 v12, v4, -v4", x, result="u4", chip="gfx950", **settings)
        assert np.array_equal((found & 0xFFFF)[number], wanted.view("u2")[number])
        assert np.array_equal((found >> 16)[number], (-wanted).view("u2")[number])
    bounded = np.where(np.isinf(wanted) & np.isfinite(x), np.copysign(np.float16(65504), x.astype("f8")), wanted)
    for text, chip in (("v_cvt_pk_f16_f32 v12, v4, v4", "gfx950"), ("v_cvt_f16_f32_e32 v12, v4", "gfx942")):
        found = run(text, x, result="u4", chip=chip, fp16_overflow=1)
        assert np.array_equal((found & 0xFFFF)[number], bounded.astype("f2").view("u2")[number])
    zero = run("v_cvt_pkrtz_f16_f32 v12, v4, v4", x, result="u4", float_round_mode_16_64=1)
    cut = (zero & 0xFFFF).astype("u2").view("f2").astype("f8")
    assert np.all(np.abs(cut[number]) <= np.abs(x[number].astype("f8"))) and np.isfinite(cut[np.isfinite(x)]).all()


def test_both_chips_are_here() -> None:
    assert {chip for chip, _ in FORMATS} == set(TARGETS)
