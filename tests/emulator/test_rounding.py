"""The four rounding modes, from the descriptor and changed on the way: exact rational arithmetic is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tests.emulator.instruction_rows import DOWN, MODES, NEAREST, UP, run
from tests.emulator.oracles import exact
from tests.emulator.snippets import values
from tests.emulator.test_numbers import elementwise
from tests.emulator.toolchain import CHIPS


@dataclass(frozen=True)
class Format:
    """A format by its name in LLVM and in numpy, with its bits as the oracles have them."""

    ir: str
    numpy: str
    form: exact.Format

    @property
    def precision(self) -> int:
        return self.form.fraction + 1

    def rounded(self, value: Fraction, mode: int, negative_zero: bool = False) -> float:
        """A rational number rounded to the format; `negative_zero` is the sign of a result that is exactly zero."""
        raw = exact.rounded(value, self.form, negative_zero, toward_zero=mode != NEAREST)
        outwards = mode == (UP if value > 0 else DOWN)
        if outwards and Fraction(exact.number(raw, self.form)) != value:
            raw += 1  # from the largest number to the infinity, and from zero to the least
        return exact.number(raw, self.form)


HALF, SINGLE, DOUBLE = (Format(ir, f"f{bits // 8}", exact.FORMATS["f", bits])
                        for ir, bits in (("half", 16), ("float", 32), ("double", 64)))
FORMATS = {"f16": HALF, "f32": SINGLE, "f64": DOUBLE}
COUNT = 1024
FIELDS = ("float_round_mode_32", "float_round_mode_16_64")


@cache
def finite(form: Format, seed: int) -> np.ndarray:
    """Finite numbers: special ones, ones near 1, any, and ones of few bits, whose sums and products end in ties."""
    found = values(form.ir, COUNT, seed).view(form.numpy).copy()
    random = np.random.default_rng(seed + 100)
    few = np.ldexp(random.integers(-8, 8, COUNT).astype("f8"), random.integers(-form.precision - 3, 3, COUNT))
    found = np.where(random.random(COUNT) < 0.3, few, found.astype("f8")).astype(form.numpy)
    return np.where(np.isfinite(found), found, found.dtype.type(1.5))


def agree(found: np.ndarray, wanted: list[float]) -> None:
    expected = np.array(wanted, "f8")
    got = found.astype("f8")
    wrong = (got != expected) | (np.signbit(got) != np.signbit(expected))
    assert not wrong.any(), [(n, got[n].hex(), expected[n].hex()) for n in np.nonzero(wrong)[0][:5]]


def negative(x: float) -> bool:
    return bool(np.signbit(x))


def added(form: Format, mode: int, *x: float) -> float:
    """The sum of two numbers."""
    sign = negative(x[0]) if negative(x[0]) == negative(x[1]) else mode == DOWN
    return form.rounded(Fraction(x[0]) + Fraction(x[1]), mode, sign)


def multiplied(form: Format, mode: int, *x: float) -> float:
    return _signed(form, Fraction(x[0]) * Fraction(x[1]), mode, negative(x[0]) != negative(x[1]))


def fused(form: Format, mode: int, *x: float) -> float:
    product = negative(x[0]) != negative(x[1])
    sign = product if product == negative(x[2]) else mode == DOWN
    return form.rounded(Fraction(x[0]) * Fraction(x[1]) + Fraction(x[2]), mode, sign)


def _signed(form: Format, value: Fraction, mode: int, sign: bool) -> float:
    return float(np.copysign(form.rounded(value, mode), -1.0 if sign else 1.0))


OPERATIONS: dict[str, tuple[str, int, Callable[..., float]]] = {
    "add": ("v_add_{0} {1}", 2, added), "mul": ("v_mul_{0} {1}", 2, multiplied), "fma": ("v_fma_{0} {1}", 3, fused)}


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("type_", FORMATS)
def test_arithmetic(type_: str, name: str, how: str) -> None:
    form = FORMATS[type_]
    text, count, function = OPERATIONS[name]
    registers = ["v[12:13]", "v[4:5]", "v[6:7]", "v[8:9]"] if type_ == "f64" else ["v12", "v4", "v6", "v8"]
    sources = [finite(form, seed).copy() for seed in range(count)]
    if name != "mul":  # a half of them nearly cancel
        with np.errstate(over="ignore"):
            sources[-1][::2] = -(sources[0] * (sources[1] if count == 3 else 1))[::2]
        sources[-1] = np.where(np.isfinite(sources[-1]), sources[-1], sources[-1].dtype.type(0))
    modes = {FIELDS[type_ != "f32"]: MODES[how], FIELDS[type_ == "f32"]: 3 - MODES[how]}
    found = run(text.format(type_, ", ".join(registers[:count + 1])), *sources, result=form.numpy, **modes)
    agree(found, [function(form, MODES[how], *(float(x) for x in row)) for row in zip(*sources, strict=True)])


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("text, source, result", [
    ("v_cvt_f32_f64_e32 v12, v[4:5]", DOUBLE, SINGLE), ("v_cvt_f16_f32_e32 v12, v4", SINGLE, HALF)])
def test_narrowing_is_rounded_as_doubles_and_halves_are(text: str, source: Format, result: Format, how: str) -> None:
    x = finite(source, 5).copy()
    x[:256] = np.resize(finite(result, 6), 256).astype(x.dtype) * (1 + 2.0**-20)
    found = run(text, x, result=result.numpy, float_round_mode_16_64=MODES[how], float_round_mode_32=3 - MODES[how])
    agree(found, [_signed(result, Fraction(float(v)), MODES[how], negative(v)) for v in x])


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("sign", "iu")
def test_integers_to_floats(sign: str, how: str) -> None:
    x = values("i32", COUNT, 7).view("i4" if sign == "i" else "u4")
    found = run(f"v_cvt_f32_{sign}32_e32 v12, v4", x, result="f4", float_round_mode_32=MODES[how])
    agree(found, [SINGLE.rounded(Fraction(int(v)), MODES[how]) for v in x])


@pytest.mark.parametrize("how", MODES)
@pytest.mark.parametrize("type_", FORMATS)
def test_powers_of_two_and_fractions(type_: str, how: str) -> None:
    form = FORMATS[type_]
    x = finite(form, 8)
    pair = "v[12:13], v[4:5]" if type_ == "f64" else "v12, v4"
    modes = {FIELDS[type_ != "f32"]: MODES[how]}
    steps = np.random.default_rng(9).integers(-40, 40, COUNT) * (form.form.bias // 16)
    exponents = steps.astype("i2" if type_ == "f16" else "i4")
    found = run(f"v_ldexp_{type_} {pair}, v6", x, exponents, result=form.numpy, **modes)
    agree(found, [_signed(form, Fraction(float(v)) * Fraction(2) ** int(n), MODES[how], negative(v))
                  for v, n in zip(x, exponents, strict=True)])
    found = run(f"v_fract_{type_}_e32 {pair}", x, result=form.numpy, **modes)
    below = float(1 - Fraction(2) ** -form.precision)
    wanted = [min(form.rounded(Fraction(float(v)) - (Fraction(float(v)) // 1), MODES[how], MODES[how] == DOWN), below)
              for v in x]
    assert np.array_equal(found.astype("f8"), np.array(wanted))


def test_packed_and_mixed_forms() -> None:
    a, b = np.array([0x3C003C00], "u4"), np.array([0x00010001], "u4")  # 1.0 and a tiny number, twice
    for mode, wanted in ((0, 0x3C003C00), (1, 0x3C013C01), (2, 0x3C003C00), (3, 0x3C003C00)):
        assert run("v_pk_add_f16 v12, v4, v6", a, b, result="u4", float_round_mode_16_64=mode)[0] == wanted
    ones, tiny = np.array([1.0]), np.array([2.0**-30])
    pair = "v_mov_b32_e32 v4, 1.0\n  v_mov_b32_e32 v5, 1.0\n  v_mov_b32_e32 v6, 0x30800000\n  v_mov_b32_e32 v7, v6\n  "
    for mode, wanted in ((0, 0x3F800000), (1, 0x3F800001)):
        found = run(pair + "v_pk_add_f32 v[12:13], v[4:5], v[6:7]", ones, tiny, result="u8", float_round_mode_32=mode)
        assert int(found[0]) == wanted | wanted << 32
    one, small = np.array([1.0], "f4"), np.array([2.0**-20], "f4")
    text = "v_fma_mixlo_f16 v12, v4, v4, v6"
    assert run(text, one, small, result="u4", float_round_mode_16_64=1)[0] & 0xFFFF == 0x3C01
    assert run(text, one, small, result="u4", float_round_mode_32=1)[0] & 0xFFFF == 0x3C00


CHANGES = [("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), {}", ""),
           ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {}", ""),
           ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s8", "s_movk_i32 s8, {}")]


@pytest.mark.parametrize("change, before", CHANGES)
def test_a_mode_that_changes_on_the_way(change: str, before: str) -> None:
    x, y = finite(SINGLE, 10), finite(SINGLE, 11)
    for mode in MODES.values():
        text = f"{before.format(mode)}\n  {change.format(mode)}\n  v_add_f32_e32 v12, v4, v6\n  s_getreg_b32 s9, "
        text += "hwreg(HW_REG_MODE, 0, 10)\n  v_mov_b32_e32 v13, s9"
        found = run(text, x, y, result="u8", float_round_mode_32=1)
        agree((found & 0xFFFFFFFF).astype("u4").view("f4"),
              [added(SINGLE, mode, float(a), float(b)) for a, b in zip(x, y, strict=True)])
        assert set((found >> 32).tolist()) == {0x3F0 | mode}


def test_infinities_and_nans_are_those_of_any_mode() -> None:
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    a = np.array([inf, inf, -inf, nan, 3e38, 0, inf], "f4")
    b = np.array([1, -inf, 5, 1, inf, nan, 0], "f4")
    for mode in MODES.values():
        with np.errstate(all="ignore"):
            for text, wanted in (("add", a + b), ("mul", a * b)):
                found = run(f"v_{text}_f32_e32 v12, v4, v6", a, b, result="f4", float_round_mode_32=mode)
                assert np.array_equal(found, wanted, equal_nan=True)
        wide = run("v_fma_f64 v[12:13], v[4:5], v[6:7], v[8:9]", a.astype("f8"), b.astype("f8"), a.astype("f8"),
                   result="f8", float_round_mode_16_64=mode)
        with np.errstate(all="ignore"):
            assert np.array_equal(wide, a.astype("f8") * b + a, equal_nan=True)


CONSTRAINED = """
  call void @llvm.set.rounding(i32 {mode})
  %s = call float @llvm.experimental.constrained.fadd.f32(float %x0, float %x1, metadata !"round.dynamic",
                                                          metadata !"fpexcept.strict")
  %r = call float @llvm.experimental.constrained.fmul.f32(float %s, float %x1, metadata !"round.dynamic",
                                                          metadata !"fpexcept.strict")
"""
CONSTRAINED_NAMES = """
declare void @llvm.set.rounding(i32)
declare float @llvm.experimental.constrained.fadd.f32(float, float, metadata, metadata)
declare float @llvm.experimental.constrained.fmul.f32(float, float, metadata, metadata)
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_code_that_sets_the_rounding(chip: str) -> None:
    """llvm.set.rounding: 0 is towards zero, 1 nearest even, 2 up, 3 down."""
    x, y = finite(SINGLE, 12), finite(SINGLE, 13)
    for llvm_mode, how in enumerate(("zero", "nearest", "up", "down")):
        device = elementwise(chip, CONSTRAINED.format(mode=llvm_mode), {"a": "float", "b": "float"}, "float",
                             CONSTRAINED_NAMES, "strictfp ")
        found = np.zeros(COUNT, "f4")
        device.launch(grid=COUNT // 256, block=256, args=[x, y, found])
        wanted = []
        for a, b in zip(x.astype("f8"), y.astype("f8"), strict=True):
            total = added(SINGLE, MODES[how], a, b)
            wanted.append(multiplied(SINGLE, MODES[how], total, b) if np.isfinite(total) else total * b)
        number = ~np.isnan(wanted)
        agree(found[number], list(np.array(wanted)[number]))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("how, name", [("up", "upward"), ("down", "downward"), ("zero", "towardzero")])
def test_code_that_rounds_one_conversion(chip: str, how: str, name: str) -> None:
    """llvm.fptrunc.round sets the mode for its conversion alone."""
    body = f'  %r = call half @llvm.fptrunc.round.f16.f32(float %x0, metadata !"round.{name}")'
    declaration = "declare half @llvm.fptrunc.round.f16.f32(float, metadata)"
    device = elementwise(chip, body, {"a": "float"}, "half", declaration)
    x, found = finite(SINGLE, 14), np.zeros(COUNT, "f2")
    device.launch(grid=COUNT // 256, block=256, args=[x, found])
    agree(found, [_signed(HALF, Fraction(float(v)), MODES[how], negative(v)) for v in x])
