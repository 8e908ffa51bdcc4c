"""Vector instructions on floats, and conversions, one row each (VOP1, VOP2, VOP3, VOPC)."""

from __future__ import annotations

from functools import partial
from typing import Any

from flylab.dtypes import DTYPES
from flylab.emulator.decoding.table import MIXED_FAMILY, VECTOR_FAMILY, rows
from flylab.emulator.handlers.ir import Value
from flylab.emulator.numbers import elementary
from flylab.emulator.numbers.codec import NEAREST, TOWARD_ZERO, encode
from flylab.emulator.numbers.division import div_fixup, div_fmas, div_scale
from flylab.emulator.numbers.semantics import (
    classify,
    extreme,
    extreme_nan,
    fraction,
    frexp_exponent,
    frexp_fraction,
    ldexp_double,
    ldexp_single,
    legacy_product,
    median,
    three,
    unsigned_byte,
    with_byte,
)

FLOATS = ("16", "32", "64")
PREDICATES = {"lt": "olt", "eq": "oeq", "le": "ole", "gt": "ogt", "lg": "one", "ge": "oge", "o": "ord", "u": "uno",
              "nge": "ult", "nlg": "ueq", "ngt": "ule", "nle": "ugt", "neq": "une", "nlt": "uge", "f": "false",
              "tru": "true"}


def fma(x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once."""
    return x.call("fma", y, z)


def multiply_add(x: Value, y: Value, z: Value) -> Value:
    """x * y + z of halves, rounded after the product and after the sum."""
    return (x * y).to("half").to("float") + z


def _comparisons() -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for bits in FLOATS:
        for name, predicate in PREDICATES.items():
            found += _both(f"{name}_f{bits}", f"f{bits} f{bits}", lambda x, y, p=predicate: x.cmp(p, y))
        found += _both(f"class_f{bits}", f"f{'16b' if bits == '16' else bits} b32", classify)
    return found


def _both(name: str, sources: str, compute: Any) -> list[tuple[Any, ...]]:
    """A comparison to a lane mask, and its form that writes EXEC as well."""
    return [(f"v_cmp_{name}", f"mask = {sources}", compute),
            (f"v_cmpx_{name}", f"mask .exec = {sources}", lambda *s: (compute(*s),) * 2)]


def _for_each(names: str, bits: tuple[str, ...], signature: str, compute: Any) -> list[tuple[Any, ...]]:
    """The rows of one function for several formats; `{}` in names and signature is the width."""
    return [(names.replace("{}", b), signature.replace("{}", b), compute) for b in bits]


def _extremes(names: str, bits: tuple[str, ...], sources: int, compute: Any) -> list[tuple[Any, ...]]:
    """As `_for_each`, of functions that tell signalling NaNs from others, so that halves stay halves."""
    types = {b: f"f{b}b" if b == "16" else f"f{b}" for b in bits}
    return [(names.replace("{}", b), f"{t} = {' '.join([t] * sources)}", compute) for b, t in types.items()]


def _saturate(value: Value, signed: bool, bits: int) -> Value:
    """A float as a 16-bit integer, by way of 32 bits."""
    wide = value.to_int("i32", True)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return wide.call("smax", low).call("smin", high).to("i16")


def _nearest_up(x: Value) -> Value:
    """v_cvt_rpi: floor(x + 0.5)."""
    return (x + 0.5).call("floor")


def _encoded(name: str, how: str = NEAREST) -> Any:
    """A float as the bits of a 16-bit one, in 32 bits, whatever the rounding mode."""
    form = DTYPES[name].encoding
    assert form is not None
    return lambda x: encode(x, form, how, saturate=name == "Float16" and x.b.saturate)


bfloat_bits = _encoded("BFloat16")


def _normal_16(x: Value, signed: bool) -> Value:
    """v_cvt_pknorm: a float of [-1, 1] (or [0, 1]) as a fixed-point 16-bit integer."""
    with x.b.to_nearest():
        scaled = (x.to("double") * (32767.0 if signed else 65535.0)).call("roundeven")
    low, high = (-32767, 32767) if signed else (0, 65535)
    return scaled.to_int("i32", True).call("smax", low).call("smin", high) & 0xFFFF


def _clamped_16(x: Value, signed: bool) -> Value:
    low, high = (-32768, 32767) if signed else (0, 65535)
    return (x.call("smax", low).call("smin", high) if signed else x.call("umin", high)) & 0xFFFF


def _pair(part: Any) -> Any:
    """Two values to one register, low half first."""
    return lambda x, y: part(x) | part(y).shl(16)


ARITHMETIC = [
    *_for_each("v_add_f{}", FLOATS, "f{} = f{} f{}", lambda x, y: x + y),
    *_for_each("v_mul_f{}", FLOATS, "f{} = f{} f{}", lambda x, y: x * y),
    *_for_each("v_sub_f{}", ("16", "32"), "f{} = f{} f{}", lambda x, y: x - y),
    *_for_each("v_subrev_f{}", ("16", "32"), "f{} = f{} f{}", lambda x, y: y - x),
    ("v_mul_legacy_f32", "f32 = f32 f32", legacy_product),
    *_for_each("v_fma_f{}", ("32", "64"), "f{} = f{} f{} f{}", fma),
    ("v_fmamk_f32 v_fmaak_f32", "f32 = f32 f32 f32", fma),
    *_for_each("v_fmac_f{}", ("32", "64"), "f{} = f{} f{} @f{}", fma),
    ("v_fma_f16", "f16d+ = f16d f16d f16d", fma),
    ("v_fma_legacy_f16", "f16d = f16d f16d f16d", fma),
    ("v_mad_f16", "f16+ = f16 f16 f16", multiply_add),
    ("v_mad_legacy_f16 v_madmk_f16 v_madak_f16", "f16 = f16 f16 f16", multiply_add),
    ("v_mac_f16", "f16 = f16 f16 @f16", multiply_add),
    *_extremes("v_max_f{}", FLOATS, 2, extreme(True)),
    *_extremes("v_min_f{}", FLOATS, 2, extreme(False)),
    *_extremes("v_max3_f{}", ("16", "32"), 3, three(extreme(True))),
    *_extremes("v_min3_f{}", ("16", "32"), 3, three(extreme(False))),
    *_extremes("v_med3_f{}", ("16", "32"), 3, median),
    ("v_maximum3_f32", "f32 = f32 f32 f32", three(extreme_nan(True))),
    ("v_minimum3_f32", "f32 = f32 f32 f32", three(extreme_nan(False))),
]
ROUNDING = [
    *(row for name, how in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("rndne", "roundeven"))
      for row in _for_each(f"v_{name}_f{{}}", FLOATS, "f{} = f{}", lambda x, how=how: x.call(how))),
    *_for_each("v_fract_f{}", ("32", "64"), "f{} = f{}", fraction),
    ("v_fract_f16", "f16 = f16", lambda x: fraction(x, 1 - 2.0**-11)),
    ("v_frexp_exp_i32_f32", "b32 = f32", frexp_exponent),
    ("v_frexp_exp_i32_f64", "b32 = f64", frexp_exponent),
    ("v_frexp_exp_i16_f16", "b16 = f16", lambda x: frexp_exponent(x).to("i16")),
    *_for_each("v_frexp_mant_f{}", FLOATS, "f{} = f{}", frexp_fraction),
    ("v_ldexp_f32", "f32 = f32 b32", ldexp_single),
    ("v_ldexp_f64", "f64 = f64 b32", ldexp_double),
    ("v_ldexp_f16", "f16 = f16 b16", lambda x, n: ldexp_single(x, n.to("i32", True))),
]
ELEMENTARY = [
    *(row for name, bits, f in (
        ("rcp", FLOATS, elementary.reciprocal), ("rsq", FLOATS, elementary.reciprocal_root),
        ("sqrt", FLOATS, elementary.root), ("exp", ("16", "32"), elementary.exp2),
        ("log", ("16", "32"), elementary.log2), ("sin", ("16", "32"), elementary.sine),
        ("cos", ("16", "32"), elementary.cosine))
      for row in _for_each(f"v_{name}_f{{}}", bits, "f{} = f{}", elementary.precise(f))),
    ("v_exp_legacy_f32", "f32 = f32", elementary.precise(elementary.exp2)),
    ("v_log_legacy_f32", "f32 = f32", elementary.precise(elementary.log2)),
    ("v_rcp_iflag_f32", "f32 = f32", elementary.precise(elementary.reciprocal)),
    *_for_each("v_div_scale_f{}", ("32", "64"), "f{} mask = f{} f{} f{}", div_scale),
    *_for_each("v_div_fmas_f{}", ("32", "64"), "f{} = f{} f{} f{} .vcc", div_fmas),
    *_for_each("v_div_fixup_f{}", ("32", "64"), "f{} = f{} f{} f{}", div_fixup),
    ("v_div_fixup_f16", "f16+ = f16 f16 f16", partial(div_fixup, refined=False)),
    ("v_div_fixup_legacy_f16", "f16 = f16 f16 f16", partial(div_fixup, refined=False)),
]
CONVERSIONS = [
    ("v_cvt_f32_i32", "f32 = b32", lambda x: x.to_float("float", True)),
    ("v_cvt_f32_u32", "f32 = b32", lambda x: x.to_float("float", False)),
    ("v_cvt_f64_i32", "f64 = b32", lambda x: x.to_float("double", True)),
    ("v_cvt_f64_u32", "f64 = b32", lambda x: x.to_float("double", False)),
    ("v_cvt_f16_i16", "f16 = b16", lambda x: x.to_float("float", True)),
    ("v_cvt_f16_u16", "f16 = b16", lambda x: x.to_float("float", False)),
    *((f"v_cvt_f32_ubyte{n}", "f32 = b32", lambda x, n=n: (x.shr(8 * n) & 255).to_float("float", False))
      for n in range(4)),
    ("v_cvt_i32_f32", "b32 = f32", lambda x: x.to_int("i32", True)),
    ("v_cvt_u32_f32", "b32 = f32", lambda x: x.to_int("i32", False)),
    ("v_cvt_i32_f64", "b32 = f64", lambda x: x.to_int("i32", True)),
    ("v_cvt_u32_f64", "b32 = f64", lambda x: x.to_int("i32", False)),
    ("v_cvt_i16_f16", "b16 = f16", lambda x: _saturate(x, True, 16)),
    ("v_cvt_u16_f16", "b16 = f16", lambda x: _saturate(x, False, 16)),
    ("v_cvt_rpi_i32_f32", "b32 = f32", lambda x: _nearest_up(x).to_int("i32", True)),
    ("v_cvt_flr_i32_f32", "b32 = f32", lambda x: x.call("floor").to_int("i32", True)),
    ("v_cvt_f16_f32", "f16 = f32", lambda x: x),
    ("v_cvt_f32_f16", "f32 = f16", lambda x: x),
    ("v_cvt_f64_f32", "f64 = f32", lambda x: x.to("double")),
    ("v_cvt_f32_f64", "f32 = f64", lambda x: x.to("float")),
    ("v_cvt_f32_bf16", "f32 = b16", lambda x: x.to("i32").shl(16).bits("float")),
    ("v_cvt_pk_bf16_f32", "b32 = f32 f32", _pair(bfloat_bits)),
    ("v_cvt_pk_f16_f32", "b32 = f32 f32", _pair(_encoded("Float16"))),
    ("v_cvt_pkrtz_f16_f32", "b32 = f32 f32", _pair(_encoded("Float16", TOWARD_ZERO))),
    ("v_cvt_pk_u8_f32", "b32 = f32 b32 b32", lambda x, at, y: with_byte(y, at, unsigned_byte(x))),
    ("v_cvt_pkaccum_u8_f32", "b32 = f32 b32 @b32", lambda x, at, y: with_byte(y, at, unsigned_byte(x))),
    *_for_each("v_cvt_pknorm_i16_f{}", ("16", "32"), "b32 = f{} f{}", _pair(lambda x: _normal_16(x, True))),
    *_for_each("v_cvt_pknorm_u16_f{}", ("16", "32"), "b32 = f{} f{}", _pair(lambda x: _normal_16(x, False))),
    ("v_cvt_norm_i16_f16", "b16 = f16", lambda x: _normal_16(x, True).to("i16")),
    ("v_cvt_norm_u16_f16", "b16 = f16", lambda x: _normal_16(x, False).to("i16")),
    ("v_cvt_pk_i16_i32", "b32 = b32 b32", _pair(lambda x: _clamped_16(x, True))),
    ("v_cvt_pk_u16_u32", "b32 = b32 b32", _pair(lambda x: _clamped_16(x, False))),
]

ROWS = rows(VECTOR_FAMILY, [*ARITHMETIC, *ROUNDING, *ELEMENTARY, *CONVERSIONS, *_comparisons()]) | rows(MIXED_FAMILY, [
    ("v_fma_mix_f32", "f32 = f32 f32 f32", fma),
    ("v_fma_mixlo_f16", "f16+ = f32 f32 f32", fma),
    ("v_fma_mixhi_f16", "f16^ = f32 f32 f32", fma),
])
