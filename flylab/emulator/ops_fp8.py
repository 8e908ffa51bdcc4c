"""Conversions between 32-bit floats and 8-bit ones, whose encoding is the chip's: FNUZ on gfx942, OCP on gfx950.

Source: CDNA3 and CDNA4 ISA, VOP1 and VOP3 conversions. Two things are not written there: a NaN keeps its sign in the
OCP encodings, and that of bf8 is the quiet one of LLVM's APFloat, 0x7E.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.dtypes import DTYPES, Encoding
from flylab.emulator.decode import Coded, Decoder, base_name
from flylab.emulator.ir import Value
from flylab.emulator.operands import OperandError
from flylab.emulator.semantics import is_nan, power_of_two
from flylab.emulator.table import VECTOR_FAMILY, Row, rows
from flylab.targets import TARGETS, Target


def encode(x: Value, form: Encoding) -> Value:
    """A float as the nearest 8-bit one, in 32 bits: in units of the last bit, rounded; beyond the largest, overflow."""
    bits = x.bits("i32")
    exponent = (bits.shr(23) & 0xFF).call("smax", 128 - form.bias)  # of denormals, that of the least normal number
    size = x.call("fabs").to("double")
    units = (size * power_of_two((form.mantissa + 127 - exponent).to("i64", True))).call("roundeven")
    code = units.to_int("i32", True) + (exponent - (128 - form.bias)).shl(form.mantissa)
    code = code.cmp("ugt", form.largest).select(form.overflow, code)
    code = is_nan(x).select(form.nan or 0, code)
    signed = code | bits.shr(31).shl(7)
    if not form.unsigned_zero:
        return signed
    return (code.cmp("eq", 0) | code.cmp("eq", form.sign)).select(code, signed)


def decode(code: Value, form: Encoding) -> Value:
    """The float that the low 8 bits of a register stand for."""
    size, sign = code & 0x7F, code & 0x80
    field = size.shr(form.mantissa)
    hidden = field.cmp("ne", 0).select(code.like(1 << form.mantissa), 0)
    count = ((size & ((1 << form.mantissa) - 1)) + hidden).to_float("double", False)
    exponent = field.call("smax", 1) - (form.bias + form.mantissa)
    number = (count * power_of_two(exponent.to("i64", True))).to("float")
    if form.unsigned_zero:
        nan = (code & 0xFF).cmp("eq", form.sign)
    else:
        if form.has_infinity:
            number = size.cmp("eq", form.overflow).select(float("inf"), number)
        nan = size.cmp("ugt", form.overflow if form.has_infinity else form.largest)
    number = nan.select(float("nan"), number)
    return (number.bits("i32") & 0x7FFFFFFF | sign.shl(24)).bits("float") if not form.unsigned_zero else (
        sign.cmp("ne", 0).select(-number, number))


def _rows(chip: Target) -> dict[str, Row]:
    entries: list[tuple[str, str, Callable[..., Value]]] = []
    for name, dtype in chip.float8.items():
        form = DTYPES[dtype].encoding
        assert form is not None
        to, of = partial(encode, form=form), partial(decode, form=form)
        entries += [
            (f"v_cvt_pk_{name}_f32", "b16+ = f32 f32", lambda x, y, to=to: (to(x) | to(y).shl(8)).to("i16")),
            (f"v_cvt_f32_{name}", "f32 = b32", of),
            (f"v_cvt_pk_f32_{name}", "b64 = b32", lambda x, of=of: _pair(of(x), of(x.shr(8)))),
        ]
    # A handler is kept under its row's name, so that of the other chip must not have the same.
    return {name: Row(f"{name}:{chip}", row.family, row.results, row.sources, row.compute)
            for name, row in rows(VECTOR_FAMILY, entries).items()}


def _pair(low: Value, high: Value) -> Value:
    return low.bits("i32").to("i64") | high.bits("i32").to("i64").shl(32)


_TABLES = {arch: _rows(chip) for arch, chip in TARGETS.items()}


def _converting(decoder: Decoder, instruction: Instruction) -> Coded:
    """A conversion in the encoding of the kernel's chip."""
    if decoder.kernel.descriptor.get("fp16_overflow", 0):
        raise OperandError("the kernel's descriptor sets fp16_overflow, and conversions that saturate are not there")
    return decoder.computing(_TABLES[decoder.kernel.target.arch][base_name(instruction.mnemonic)], instruction)


DECODERS = {name: _converting for table in _TABLES.values() for name in table}
