"""Dot products of two halves at a time, and packed multiply-add onto the result.

Source: CDNA3 and CDNA4 ISA, V_DOT2_F32_F16, V_DOT2_F32_BF16, V_DOT2C_F32_F16, V_DOT2C_F32_BF16, V_PK_FMAC_F16: the
sums are made in the order that stands there, each rounded to a float; a product of two halves is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder, Slots
from flylab.emulator.decoding.modifiers import Modifiers
from flylab.emulator.decoding.operands import (
    CONSTANT,
    SCALAR,
    VECTOR,
    Operand,
    OperandError,
    constant_bits,
    operands_of,
)
from flylab.emulator.decoding.table import VECTOR_FAMILY, Row
from flylab.emulator.handlers.forms import Source
from flylab.emulator.handlers.ir import Value
from flylab.emulator.instructions import packed


def _wide(x: Value) -> Value:
    """A half as float; the bits of a bfloat16 as float."""
    return x if x.is_float else x.to("i32").shl(16).bits("float")


def _sum_first(a: Value, b: Value, c: Value, d: Value, total: Value) -> Value:
    return total + _wide(a) * _wide(b) + _wide(c) * _wide(d)


def _sum_last(a: Value, b: Value, c: Value, d: Value, total: Value) -> Value:
    return _wide(a) * _wide(b) + _wide(c) * _wide(d) + total


def _row(name: str, half: str, total: str, compute: Callable[..., Value]) -> Row:
    return Row(name, VECTOR_FAMILY, ("f32",), (half, half, half, half, total), compute)


DOTS = {row.mnemonic: row for row in (
    _row("v_dot2_f32_f16", "f16", "f32", _sum_first), _row("v_dot2_f32_bf16", "b16", "f32", _sum_last),
    _row("v_dot2c_f32_f16", "f16", "@f32", _sum_first), _row("v_dot2c_f32_bf16", "b16", "@f32", _sum_first))}


def _dot(row: Row, decoder: Decoder, instruction: Instruction) -> Coded:
    """The low halves of both sources, the high ones, and what is added: a third source, or the result's old value."""
    negations = ("neg_lo:", "neg_hi:")
    words = Modifiers.of(tuple(word for word in instruction.modifiers if not word.startswith(negations)))
    lists = Modifiers.of(tuple(word for word in instruction.modifiers if word.startswith(negations))).lists
    words.check(row, instruction)
    adds = row.sources[-1] == "f32"
    if any(lists.values()) and not adds:
        raise OperandError("only those of three can be negated")
    negative = {name: [*lists.get(name, ()), False, False, False] for name in ("neg_lo", "neg_hi")}
    result, *operands = operands_of(instruction, 3 + adds)
    slots = Slots()
    place = slots.put(decoder.registers.offset(result, 1, VECTOR))
    pairs = [slots.put(_pair_bits(decoder, operand, row)) for operand in operands[:2]]
    sources = [Source(operands[n].kind, pairs[n], bool(negative[name][n]), select=f"WORD_{half}",
                      control="" if n else words.control) for half, name in enumerate(negative) for n in range(2)]
    if adds:
        last = operands[2]
        bits = constant_bits(last, "float") if last.kind == CONSTANT else decoder.registers.offset(
            last, 1, VECTOR, SCALAR)
        sources.append(Source(last.kind, slots.put(bits), bool(negative["neg_lo"][2])))
    return decoder.formed(row, (place,), sources, words, slots, instruction)


def _pair_bits(decoder: Decoder, operand: Operand, row: Row) -> int:
    """What a slot holds of two halves. A float constant is one half, in the lower one."""
    if operand.kind != CONSTANT:
        return decoder.registers.offset(operand, 1, VECTOR, SCALAR)
    if isinstance(operand.value, int):
        return constant_bits(operand, "i32")
    if row.sources[0] != "f16" and operand.value != 0:
        raise OperandError("what a float constant means to two bfloat16 is not known")
    return constant_bits(operand, "half")


def _packed_onto(decoder: Decoder, instruction: Instruction) -> Coded:
    """v_pk_fmac_f16: v_pk_fma_f16 whose third source is the result."""
    return decoder.computing(packed.ROWS["v_pk_fma_f16"], replace(
        instruction, operands=(*instruction.operands, *instruction.operands[:1])))


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {
    **{name: partial(_dot, row) for name, row in DOTS.items()}, "v_pk_fmac_f16": _packed_onto}
