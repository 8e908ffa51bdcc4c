"""Conversions with a scale (gfx950): one or two small floats from or to floats, times or over a power of two.

The scale is the exponent of a float, read as E8M0: 0 stands for 2**-127, and 255 makes every result NaN. Source: CDNA4
ISA, v_cvt_scalef32_*. Undecided there and so decided: to small floats all but the stochastic ones round to nearest
even, as those without a scale do; denormals of f16 and bf16 sources are taken as they are; a scaled number is rounded
once, and beyond the range of a float counts as its largest; to f16 a result is rounded to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import Instruction
from flylab.dtypes import Encoding
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.op_sel import RESULT_BYTE, RESULT_HALF, SOURCE_BYTE, SOURCE_HALF, selecting
from flylab.emulator.decoding.table import VECTOR_FAMILY, Row, rows
from flylab.emulator.handlers.ir import Value
from flylab.emulator.instructions.fp8 import encoding, pair
from flylab.emulator.numbers.codec import NEAREST, STOCHASTIC, decode, encode
from flylab.emulator.numbers.semantics import is_infinite, random_step
from flylab.targets import TARGETS

SCALE = encoding("Float8E8M0FNU")
NARROW = {name: encoding(dtype) for name, dtype in (
    *TARGETS["gfx950"].float8.items(), ("fp6", "Float6E2M3FN"), ("bf6", "Float6E3M2FN"), ("fp4", "Float4E2M1FN"))}
WIDE = {"f16": encoding("Float16"), "bf16": encoding("BFloat16")}
_LARGEST = (2 - 2.0**-23) * 2.0**127


def multiplied(x: Value, scale: Value) -> Value:
    """A float times the power of two that `scale` has as its exponent, rounded to nearest even."""
    with x.b.to_nearest():
        return x * decode(_exponent(scale), SCALE)


def divided(x: Value, scale: Value) -> Value:
    """As `multiplied`, by the inverse; a finite number stays finite, so that it can saturate."""
    exponent = _exponent(scale)
    inverse = exponent.cmp("eq", 255).select(exponent, 254 - exponent)
    with x.b.to_nearest():
        found = x * decode(inverse, SCALE)
    beyond = is_infinite(found) & ~is_infinite(x)
    return beyond.select(found.like(_LARGEST).call("copysign", found), found)


def _exponent(scale: Value) -> Value:
    return scale.bits("i32").shr(23) & 0xFF


def narrowed(form: Encoding, x: Value, scale: Value, random: Value | None = None) -> Value:
    """A float over a scale, as the code of a small one; 8-bit ones saturate where the mode says so."""
    saturate = x.b.saturate if form.nan is not None else False
    return encode(divided(x, scale), form, STOCHASTIC if random else NEAREST, random, saturate)


def widened(form: Encoding, code: Value, scale: Value, to: str) -> Value:
    """A small float times a scale: the bits of an f32, f16 or bf16, in 32 bits."""
    found = multiplied(decode(code, form), scale)
    if to == "f32":
        return found.bits("i32")
    return encode(found, WIDE[to], saturate=to == "f16" and code.b.saturate)


def halves_of(of: str, x: Value) -> tuple[Value, Value]:
    """Two 16-bit floats of a register as floats."""
    return decode(x, WIDE[of]), decode(x.shr(16), WIDE[of])


def _floats_of(x: Value) -> tuple[Value, Value]:
    return x.to("i32").bits("float"), x.shr(32).to("i32").bits("float")


def _to_pair(form: Encoding, *sources: Value) -> Value:
    """Two floats, and a scale, as two small ones."""
    x, y, scale = sources
    bits = form.exponent + form.mantissa + 1
    return narrowed(form, x, scale) | narrowed(form, y, scale).shl(bits)


def _to_random_pair(form: Encoding, x: Value, y: Value, random: Value, scale: Value) -> Value:
    bits = form.exponent + form.mantissa + 1
    return narrowed(form, x, scale, random) | narrowed(form, y, scale, random_step(random)).shl(bits)


def _from_pair(form: Encoding, to: str, code: Value, scale: Value) -> Value:
    bits = form.exponent + form.mantissa + 1
    low, high = (widened(form, c, scale, to) for c in (code, code.shr(bits)))
    return pair(low, high) if to == "f32" else low | high.shl(16)


def _short(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *sources: function(*sources).to("i16")


def _float8(name: str, form: Encoding) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The rows of an 8-bit float, each with what its op_sel names."""
    yield RESULT_HALF, (f"v_cvt_scalef32_pk_{name}_f32", "b16+ = f32 f32 f32", _short(partial(_to_pair, form)))
    yield RESULT_BYTE, (f"v_cvt_scalef32_sr_{name}_f32", "b32 = f32 b32 f32",
                             lambda x, r, scale: narrowed(form, x, scale, r))
    yield SOURCE_HALF, (f"v_cvt_scalef32_pk_f32_{name}", "b64 = b32 f32", partial(_from_pair, form, "f32"))
    yield SOURCE_BYTE, (f"v_cvt_scalef32_f32_{name}", "f32 = b32 f32",
                        lambda code, scale: widened(form, code, scale, "f32").bits("float"))
    yield SOURCE_BYTE, (f"v_cvt_scalef32_f16_{name}", "b16+ = b32 f32",
                        _short(lambda code, scale: widened(form, code, scale, "f16")))
    for wide in WIDE:
        yield RESULT_HALF, (f"v_cvt_scalef32_pk_{name}_{wide}", "b16+ = b32 f32", _short(
            lambda x, scale, w=wide: _to_pair(form, *halves_of(w, x), scale)))
        yield RESULT_BYTE, (f"v_cvt_scalef32_sr_{name}_{wide}", "b32 = b32 b32 f32",
                                 lambda x, r, scale, w=wide: narrowed(form, halves_of(w, x)[0], scale, r))
        yield SOURCE_HALF, (f"v_cvt_scalef32_pk_{wide}_{name}", "b32 = b32 f32", partial(_from_pair, form, wide))


def _float4(form: Encoding) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The rows of fp4, two of which are a byte."""
    yield RESULT_BYTE, ("v_cvt_scalef32_pk_fp4_f32", "b32 = f32 f32 f32", partial(_to_pair, form))
    yield RESULT_BYTE, ("v_cvt_scalef32_sr_pk_fp4_f32", "b32 = b64 b32 f32",
                             lambda x, r, scale: _to_random_pair(form, *_floats_of(x), r, scale))
    yield SOURCE_BYTE, ("v_cvt_scalef32_pk_f32_fp4", "b64 = b32 f32", partial(_from_pair, form, "f32"))
    for wide in WIDE:
        yield RESULT_BYTE, (f"v_cvt_scalef32_pk_fp4_{wide}", "b32 = b32 f32",
                                 lambda x, scale, w=wide: _to_pair(form, *halves_of(w, x), scale))
        yield RESULT_BYTE, (f"v_cvt_scalef32_sr_pk_fp4_{wide}", "b32 = b32 b32 f32",
                                 lambda x, r, scale, w=wide: _to_random_pair(form, *halves_of(w, x), r, scale))
        yield SOURCE_BYTE, (f"v_cvt_scalef32_pk_{wide}_fp4", "b32 = b32 f32", partial(_from_pair, form, wide))


_ENTRIES = [*_float8("fp8", NARROW["fp8"]), *_float8("bf8", NARROW["bf8"]), *_float4(NARROW["fp4"])]
_ROWS: dict[str, Row] = rows(VECTOR_FAMILY, [row for _, row in _ENTRIES])
_STYLES = {row[0]: style for style, row in _ENTRIES}


def _converting(decoder: Decoder, instruction: Instruction) -> Coded:
    name = base_name(instruction.mnemonic)
    return selecting(decoder, _ROWS[name], instruction, _STYLES[name])


DECODERS = dict.fromkeys(_ROWS, _converting)
