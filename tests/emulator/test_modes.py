"""The MODE register beside rounding: denormals, output modifiers, clamp, NaNs, overflow of halves; what is refused.

Every field in two ways: from the descriptor, and written by s_setreg on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from flylab.errors import UnknownInstruction
from tests.emulator.instruction_rows import run
from tests.emulator.snippets import values

COUNT = 1024
TYPES = {"f16": ("half", "f2"), "f32": ("float", "f4"), "f64": ("double", "f8")}
# Of each field its bit in MODE, its size, its name in the descriptor.
FIELDS = {"denormals_32": (4, 2, "float_denorm_mode_32"), "denormals_16_64": (6, 2, "float_denorm_mode_16_64"),
          "dx10_clamp": (8, 1, "dx10_clamp"), "ieee": (9, 1, "ieee_mode"), "fp16_overflow": (23, 1, "fp16_overflow")}
WAYS = ("descriptor", "register")


def under(way: str, text: str, *sources: np.ndarray, result: str, **fields: int) -> np.ndarray:
    """An instruction with fields of MODE set; by register, the descriptor says the opposite."""
    settings, before = {}, ""
    for name, value in fields.items():
        first, size, setting = FIELDS[name]
        settings[setting] = value if way == "descriptor" else value ^ ((1 << size) - 1)
        if way == "register":
            before += f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, {first}, {size}), {value}\n  "
    return run(before + text, *sources, result=result, **settings)


def flush(x: np.ndarray, kept: bool) -> np.ndarray:
    """Denormals made zero, with their sign."""
    return x if kept else np.where(np.abs(x) < np.finfo(x.dtype).smallest_normal, np.copysign(x.dtype.type(0), x), x)


def tiny(type_: str, seed: int) -> np.ndarray:
    """Numbers of which many are denormal or have denormal sums and products with 1/2, 1 or 2."""
    ir, dtype = TYPES[type_]
    x = values(ir, COUNT, seed).view(dtype).copy()
    random = np.random.default_rng(seed)
    least = np.finfo(dtype).smallest_normal
    x[::2] = (random.normal(size=COUNT // 2) * float(least)).astype(dtype)
    x[::5] = random.choice(np.array([0.5, 1, 2, -1], dtype), x[::5].size)
    return np.where(np.isnan(x), x.dtype.type(3), x)


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    equal = (found == wanted) & (np.signbit(found) == np.signbit(wanted))
    return bool(np.all(equal | np.isnan(found) & np.isnan(wanted)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("type_", TYPES)
def test_denormals(type_: str, mode: int, way: str) -> None:
    """Bit 0 of the mode says that they are taken, bit 1 that they are given; the other mode is the opposite."""
    dtype = TYPES[type_][1]
    taken, given = bool(mode & 1), bool(mode & 2)
    x, y = (tiny(type_, seed) for seed in (1, 2))
    own = "denormals_32" if type_ == "f32" else "denormals_16_64"
    other = "denormals_16_64" if type_ == "f32" else "denormals_32"
    operands = "v[12:13], v[4:5], v[6:7]" if type_ == "f64" else "v12, v4, v6"
    operations: list[tuple[str, Callable[..., np.ndarray]]] = [
        ("add", np.add), ("mul", np.multiply), ("max", np.fmax)]
    for name, function in operations:
        found = under(way, f"v_{name}_{type_} {operands}", x, y, result=dtype, **{own: mode, other: 3 - mode})
        with np.errstate(all="ignore"):
            wanted = flush(function(flush(x, taken), flush(y, taken)).astype(dtype), given)
        equal = found == wanted if name == "max" else None  # of two zeros numpy's fmax takes either
        assert equal.all() if equal is not None else same(found, wanted), name


@pytest.mark.parametrize("mode", range(4))
def test_denormals_of_conversions(mode: int) -> None:
    doubles = np.concatenate([tiny("f32", 3).astype("f8"), tiny("f64", 4)])
    found = run("v_cvt_f32_f64_e32 v12, v[4:5]", doubles, result="f4", float_denorm_mode_32=mode)
    with np.errstate(all="ignore"):
        assert same(found, flush(doubles.astype("f4"), bool(mode & 2)))
    floats = np.concatenate([tiny("f16", 5).astype("f4"), tiny("f32", 6)])
    found = run("v_cvt_f16_f32_e32 v12, v4", floats, result="f2", float_denorm_mode_16_64=mode, float_denorm_mode_32=3)
    with np.errstate(all="ignore"):
        assert same(found, flush(floats.astype("f2"), bool(mode & 2)))
    halves = tiny("f16", 7)
    found = run("v_cvt_f32_f16_e32 v12, v4", halves, result="f4", float_denorm_mode_16_64=mode)
    assert same(found, flush(halves, bool(mode & 1)).astype("f4"))


def test_a_change_of_one_format_leaves_the_other() -> None:
    x = tiny("f16", 8)
    text = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\n  v_add_f16_e32 v12, v4, v4"
    with np.errstate(all="ignore"):
        assert same(run(text, x, result="f2"), x + x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scale, factor", [("mul:2", 2.0), ("mul:4", 4.0), ("div:2", 0.5)])
def test_output_modifiers(scale: str, factor: float, way: str) -> None:
    """They count only outside IEEE mode and where results are never denormal, and leave no -0."""
    x, y = np.array([1.5, -0.0, 2e-38, 3e38], "f4"), np.array([2.0, 1.0, 0.125, 1.0], "f4")
    text = f"v_mul_f32_e64 v12, v4, v6 {scale}"
    for ieee, mode in ((1, 0), (0, 3), (0, 2), (1, 3)):
        plain = under(way, text, x, y, result="f4", ieee=ieee, denormals_32=mode)
        assert same(plain, flush(x * y, bool(mode & 2)))
    for mode in (0, 1):
        found = under(way, text, x, y, result="f4", ieee=0, denormals_32=mode)
        with np.errstate(all="ignore"):
            wanted = flush(flush(x * y, False) * np.float32(factor), False)
        assert same(found, np.where(wanted == 0, np.float32(0), wanted))


QUIET, SIGNALLING = 0x7FC00001, 0x7F800001


@pytest.mark.parametrize("way", WAYS)
def test_signalling_nans_by_the_ieee_bit(way: str) -> None:
    x = np.array([SIGNALLING, QUIET, SIGNALLING, 0x3F800000], "u4")
    y = np.array([0x3F800000, 0x3F800000, QUIET, SIGNALLING], "u4")
    one, quieted = 0x3F800000, SIGNALLING | 0x400000
    for name in ("max", "min"):
        text = f"v_{name}_f32_e32 v12, v4, v6"
        assert under(way, text, x, y, result="u4", ieee=1).tolist() == [quieted, one, quieted, quieted]
        assert under(way, text, x, y, result="u4", ieee=0).tolist() == [one, one, QUIET, one]


@pytest.mark.parametrize("way", WAYS)
def test_clamp_of_nans_by_its_bit(way: str) -> None:
    x = np.array([QUIET, 0x40000000, 0xBF800000, 0x3F000000], "u4")
    text = "v_add_f32_e64 v12, v4, 0 clamp"
    assert under(way, text, x, result="u4", dx10_clamp=1).tolist() == [0, 0x3F800000, 0, 0x3F000000]
    assert under(way, text, x, result="u4", dx10_clamp=0)[0] & 0x7FC00000 == 0x7FC00000
    assert under(way, text, x, result="u4", dx10_clamp=0).tolist()[1:] == [0x3F800000, 0, 0x3F000000]


@pytest.mark.parametrize("way", WAYS)
def test_halves_stay_finite_where_the_mode_says_so(way: str) -> None:
    """What was infinite before stays so: a source, and the inverse of zero."""
    x = np.array([60000, -60000, np.inf, 1.0], "f2")
    wanted = np.array([65504, -65504, np.inf, 2.0], "f2")
    assert np.array_equal(under(way, "v_add_f16_e32 v12, v4, v4", x, result="f2", fp16_overflow=1), wanted)
    packed = under(way, "v_pk_add_f16 v12, v4, v4 op_sel_hi:[0,0]", x, result="u4", fp16_overflow=1)
    assert np.array_equal(packed.view("f2").reshape(-1, 2), np.stack([wanted, wanted], 1))
    assert np.isinf(under(way, "v_rcp_f16_e32 v12, v4", np.zeros(4, "f2"), result="f2", fp16_overflow=1)).all()
    with np.errstate(over="ignore"):
        assert np.array_equal(under(way, "v_add_f16_e32 v12, v4, v4", x, result="f2", fp16_overflow=0), x + x)


def test_mode_is_read_as_it_stands() -> None:
    text = "s_getreg_b32 s8, hwreg(HW_REG_MODE)\n  v_mov_b32_e32 v12, s8"
    plain = run(text, np.zeros(1, "f4"), result="u4", float_round_mode_32=2, float_denorm_mode_32=1, fp16_overflow=1)
    assert plain[0] == 2 | 1 << 4 | 3 << 6 | 1 << 8 | 1 << 9 | 1 << 23
    change = "s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0x1a5\n  "
    assert run(change + text, np.zeros(1, "f4"), result="u4")[0] == 0x1A5


@pytest.mark.parametrize("text, why", [
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 7), 1", "of MODE only"),
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0x10000000", "of MODE only"),
    ("s_setreg_b32 hwreg(HW_REG_MODE), s4", "names 32 bits from bit 0"),
    ("s_setreg_b32 hwreg(HW_REG_TRAPSTS), s4", "only MODE can be written")])
def test_what_of_mode_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match=why):
        run(text, np.zeros(1, "f4"), result="u4")


def test_exceptions_are_refused() -> None:
    with pytest.raises(UnknownInstruction, match="exception_fp_ieee_div_zero: the software device has no traps"):
        run("s_nop 0", np.zeros(1, "f4"), result="u4", exception_fp_ieee_div_zero=1)


@pytest.mark.parametrize("text, source, wanted", [
    ("v_add_f32_e32 v12, v4, v6", SIGNALLING, QUIET), ("v_sub_f32_e32 v12, v6, v4", SIGNALLING, QUIET),
    ("v_mul_f32_e64 v12, -v4, v6", SIGNALLING, QUIET | 0x80000000),
    ("v_mul_f32_e64 v12, |v4|, v6", SIGNALLING | 0x80000000, QUIET),
    ("v_fma_f32 v12, v4, v6, v6", SIGNALLING, QUIET), ("v_fma_f32 v12, v6, v4, v6", SIGNALLING, QUIET),
    ("v_fma_f32 v12, v6, v6, v4", SIGNALLING, QUIET), ("v_rcp_f32_e32 v12, v4", SIGNALLING, QUIET),
    ("v_cvt_f16_f32_e32 v12, v4", 0xFF802000, 0xFE01), ("v_cvt_f32_f16_e32 v12, v4", 0x7D01, 0x7FE02000),
    ("v_cvt_pk_bf16_f32 v12, v4, v4", 0x7F810000, 0x7FC17FC1)])
@pytest.mark.parametrize("mode", range(4))
def test_a_nan_is_made_quiet_and_keeps_its_payload(text: str, source: int, wanted: int, mode: int) -> None:
    sources = np.array([source], "u4"), np.array([1.0], "f4")
    modes = {"float_round_mode_32": mode, "float_round_mode_16_64": mode}
    assert run(text, *sources, result="u4", chip="gfx950", **modes)[0] == wanted
