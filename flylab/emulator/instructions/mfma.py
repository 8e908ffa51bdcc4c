"""What the text of a matrix instruction says: its operands, formats, and the lanes that its modifiers pick.

The instructions and the layouts of their operands are rows of `flylab.mfma`; `matrix` has their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from flylab.codegen.assembly.encoding import base_name, is_inline
from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder, Slots
from flylab.emulator.decoding.operands import CONSTANT, VECTOR, Operand, OperandError, constant_bits, operands_of
from flylab.emulator.handlers import matrix
from flylab.emulator.handlers.matrix import Form
from flylab.emulator.state import ROW_BYTES
from flylab.mfma import FORMATS, INSTRUCTIONS, OLDER_NAMES, Mfma, mfma

_NUMBER = re.compile(r"(cbsz|abid|blgp):(\d{1,2})")
_BITS = re.compile(r"(neg|op_sel|op_sel_hi):\[([01](?:,[01]){1,2})\]")
# Registers of a result that may overlap a part of C: so LLVM's assembler has it, and its compiler makes use of it.
MOST_OVERLAPPED = 4
# Of the instructions whose sources are of any format, the widest takes so many registers.
MIXED_REGISTERS = 8
_CONSTANTS = {"f64": "double", "f32": "float", "i32": "i32"}


def _decode(decoder: Decoder, instruction: Instruction) -> Coded:
    """A matrix instruction."""
    row = mfma(base_name(instruction.mnemonic))
    if decoder.kernel.descriptor.get("fp16_overflow", 0):
        raise OperandError("the kernel's descriptor sets fp16_overflow, and matrix results that saturate are not there")
    numbers, lists = _modifiers(row, instruction)
    cbsz, abid, blgp = (numbers.get(name, 0) for name in ("cbsz", "abid", "blgp"))
    if row.mixed:
        row = row.with_formats(cbsz, blgp)
        cbsz = blgp = 0
    if row.sparse and cbsz & 3:
        abid = 0
    result, a, b, c, *scales = operands_of(instruction, 6 if row.scaled else 4)
    if row.mixed:
        a, b = (_narrowed(operand, side.registers) for operand, side in ((a, row.a), (b, row.b)))
    slots = Slots([decoder.registers.offset(operand, count, VECTOR) for operand, count in (
        (result, row.result_registers), (a, row.a.registers), (b, row.b.registers))])
    constant = not row.sparse and c.kind == CONSTANT
    if row.sparse:
        slots.put(decoder.registers.offset(c, 1, VECTOR))
    elif constant:
        if not is_inline(c.value):
            raise OperandError(f"a matrix instruction has no room for the constant {c.value}")
        slots.put(constant_bits(c, _CONSTANTS[row.result]), 2)
    else:
        slots.put(_addend(decoder, row, c, slots[0]), 2)
    for scale in scales:
        slots.put(decoder.registers.offset(scale, 1, VECTOR))
    negative = lists.get("neg", [False] * 3)
    form = Form(row, decoder.kernel.target.arch, decoder.mode, constant, cbsz, abid, blgp,
                (negative[0], negative[1], negative[2]),
                _scale_bytes(lists) if row.scaled else None)
    return Coded(form.key, partial(matrix.write, form), slots)


def _narrowed(operand: Operand, count: int) -> Operand:
    """The first registers of a source whose format fills fewer than 8: unoptimised code of LLVM names all 8."""
    return replace(operand, count=count) if operand.count == MIXED_REGISTERS else operand


def _addend(decoder: Decoder, row: Mfma, operand: Operand, result: int) -> int:
    """The place of C, which is that of D or apart from it; a small one may overlap a part of D."""
    place = decoder.registers.offset(operand, row.result_registers, VECTOR)
    if row.result_registers > MOST_OVERLAPPED and 0 < abs(place - result) < ROW_BYTES * row.result_registers:
        raise OperandError("its third source overlaps a part of its result")
    return place


def _modifiers(row: Mfma, instruction: Instruction) -> tuple[dict[str, int], dict[str, list[bool]]]:
    """The numbers and lists after the operands, each one that the instruction takes."""
    numbers: dict[str, int] = {}
    lists: dict[str, list[bool]] = {}
    for word in instruction.modifiers:
        if found := _NUMBER.fullmatch(word):
            numbers[found[1]] = int(found[2])
        elif found := _BITS.fullmatch(word):
            bits = [bit == "1" for bit in found[2].split(",")]
            lists[found[1]] = bits + [False] * (3 - len(bits))
        else:
            raise OperandError(f"the modifier '{word}' is not one that the software device knows here")
    allowed = (["cbsz", "blgp"] if row.mixed else ["cbsz", "abid"] * (row.broadcasts or row.sparse)
               + ["blgp"] * (row.permutes and not row.sparse) + ["neg"] * (row.result == "f64"))
    for word, value in (numbers | lists).items():
        if word not in allowed + ["op_sel", "op_sel_hi"] * row.scaled and value not in (0, [False] * 3):
            raise OperandError(f"it takes no {word}")
    _check(row, numbers.get("cbsz", 0), numbers.get("abid", 0), numbers.get("blgp", 0))
    return numbers, lists


def _scale_bytes(lists: dict[str, list[bool]]) -> tuple[int, int]:
    """Which byte of the scale registers op_sel (the low bit) and op_sel_hi (the high bit) pick, for A and for B."""
    low, high = (lists.get(name, [False] * 3) for name in ("op_sel", "op_sel_hi"))
    return low[0] + 2 * high[0], low[1] + 2 * high[1]


def _check(row: Mfma, cbsz: int, abid: int, blgp: int) -> None:
    """That the numbers fit the instruction, and name formats and blocks that there are."""
    for name, value, most in (("cbsz", cbsz, 7), ("abid", abid, 15), ("blgp", blgp, 7)):
        if value > most:
            raise OperandError(f"{name}:{value} is no number from 0 to {most}")
    if row.mixed and max(cbsz, blgp) >= len(FORMATS):
        raise OperandError(f"cbsz and blgp name formats from 0 to {len(FORMATS) - 1}")
    if row.broadcasts and (1 << cbsz > row.blocks or abid >= 1 << cbsz):
        raise OperandError(f"cbsz:{cbsz} abid:{abid} name no block of its {row.blocks}")


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {
    name: _decode for name in (*INSTRUCTIONS, *OLDER_NAMES)}
