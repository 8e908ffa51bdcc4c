"""Reads of the hardware's own registers (s_getreg_b32): MODE, and where a wave runs.

The software device has no compute units. It says of a wave what stays true of a chip: the waves of a workgroup are
dealt to four SIMDs in turn (HW_ID), and workgroups to the chip's eight dies in turn (XCC_ID). Everything else is 0 in
HW_ID, and the other registers are refused. Source: CDNA3 ISA, "Hardware registers", and LLVM 22's names of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.hwreg import HW_ID, MODE_ID, XCC_ID, HardwareField, hardware_field
from flylab.emulator.decoding.operands import SCALAR, Operand, OperandError, parse_operand
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.state import MODE, Worker

DIES, SIMDS = 8, 4


def field_operand(instruction: Instruction, place: int) -> tuple[HardwareField, Operand]:
    """The field of a hardware register that operand `place` names, and the other operand."""
    if len(instruction.operands) != 2:
        raise OperandError(f"it has {len(instruction.operands)} operands, and takes 2")
    text = instruction.operands[place]
    field = hardware_field(text)
    if field is None:
        raise OperandError(f"'{text[:60]}' is no hardware register that the software device knows")
    if field.size < 1 or field.first + field.size > 32:
        raise OperandError(f"a register has no {field.size} bits from bit {field.first} up")
    return field, parse_operand(instruction.operands[1 - place])


def _mode(b: Builder) -> Value:
    return b.load(b.at("%s", 4 * MODE), "i32")


def _place(b: Builder) -> Value:
    """HW_ID: WAVE_ID in bits 3:0, SIMD_ID in bits 5:4."""
    wave = b.field("%w", Worker, "wave").to("i32")
    return wave.shr(2) & 15 | (wave & (SIMDS - 1)).shl(4)


def _die(b: Builder) -> Value:
    return b.field("%w", Worker, "group").to("i32") & (DIES - 1)


READ: dict[int, Callable[[Builder], Value]] = {MODE_ID: _mode, HW_ID: _place, XCC_ID: _die}


def _getreg(decoder: Decoder, instruction: Instruction) -> Coded:
    field, result = field_operand(instruction, 1)
    if field.register not in READ:
        raise OperandError("of the hardware registers the software device has MODE, HW_ID and XCC_ID only")
    coded = Coded(f"getreg {field.register}", partial(_write_getreg, field.register))
    coded.slot(decoder.registers.offset(result, 1, SCALAR))
    coded.slot(field.first)
    coded.slot((1 << field.size) - 1)
    return coded


def _write_getreg(number: int, name: str) -> str:
    b = Builder()
    b.store(READ[number](b).shr(slot(b, 1)) & slot(b, 2), b.at("%s", slot(b, 0)))
    next_record(b)
    return b.function(name, HANDLER)


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {"s_getreg_b32": _getreg}
