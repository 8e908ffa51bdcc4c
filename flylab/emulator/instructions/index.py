"""Registers by a number that M0 holds: VGPR indexing (s_set_gpr_idx_*) and the relative moves of scalar registers.

Source: CDNA3 ISA, S_SET_GPR_IDX_ON, _OFF, _IDX, _MODE, S_MOVRELS_*, S_MOVRELD_* and "Out-of-range behavior": a source
beyond the registers is the first one, and a result there is not written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import (
    CONSTANT,
    SCALAR,
    OperandError,
    bounded,
    constant_bits,
    operands_of,
    parse_operand,
)
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.state import M0, MODE, NUMBERED_SGPRS

GPR_IDX_ENABLED = 1 << 27
OPERANDS = ("SRC0", "SRC1", "SRC2", "DST")
_LIST = re.compile(r"gpr_idx\(([A-Z0-9, ]*)\)")


def _enables(text: str) -> int:
    """The operands that indexing counts for: a bit for each, as `gpr_idx(SRC0,DST)` or a number."""
    found = _LIST.fullmatch(text)
    if found is None:
        return bounded(text, 0, 15, "the list of operands")
    names = [name.strip() for name in found[1].split(",")] if found[1].strip() else []
    if len({*names} & {*OPERANDS}) != len(names):
        raise OperandError(f"'{text}' is no list of {', '.join(OPERANDS)}")
    return sum(1 << OPERANDS.index(name) for name in names)


def _set(changes_index: bool, changes_operands: bool, enabled: bool | None, decoder: Decoder,
         instruction: Instruction) -> Coded:
    """s_set_gpr_idx_*: bits of M0 (index 7:0, operands 15:12), and the enabling bit of MODE."""
    texts = [*instruction.operands, *instruction.modifiers]  # a list that stands alone is read as a modifier
    if len(texts) != changes_index + changes_operands:
        raise OperandError(f"it has {len(texts)} operands, and takes {changes_index + changes_operands}")
    index = parse_operand(texts[0]) if changes_index else None
    kind = index.kind if index else ""
    form = kind, changes_operands, enabled
    coded = Coded(f"gpr index {form}", partial(_write_set, *form))
    coded.slot(decoder.registers.scalar(index) if index else 0)
    coded.slot(_enables(texts[-1]) << 12 if changes_operands else 0)
    return coded


def _write_set(kind: str, changes_operands: bool, enabled: bool | None, name: str) -> str:
    b = Builder()
    place = b.at("%s", 4 * M0)
    state = b.load(place, "i32")
    if kind:
        index = slot(b, 0) if kind == CONSTANT else b.load(b.at("%s", slot(b, 0)), "i32")
        state = state & ~0xFF | index & 0xFF
    if changes_operands:
        state = state & ~0xF000 | slot(b, 1)
    b.store(state, place)
    if enabled is not None:
        mode = b.load(b.at("%s", 4 * MODE), "i32")
        b.store(mode | GPR_IDX_ENABLED if enabled else mode & ~GPR_IDX_ENABLED, b.at("%s", 4 * MODE))
    next_record(b)
    return b.function(name, HANDLER)


def _move(registers: int, source: bool, decoder: Decoder, instruction: Instruction) -> Coded:
    """s_movrels and s_movreld: the source's number, or the result's, plus M0."""
    result, operand = operands_of(instruction, 2)
    if source and operand.kind == CONSTANT:
        raise OperandError("a constant stands where it takes a scalar register")
    coded = Coded(f"movrel {registers} {source} {operand.kind}", partial(_write_move, registers, source, operand.kind))
    coded.slot(decoder.registers.offset(result, registers, SCALAR))
    if operand.kind == CONSTANT:
        coded.slots.put(constant_bits(operand, f"i{32 * registers}"), registers)
    else:
        coded.slot(decoder.registers.offset(operand, registers, SCALAR))
    relative = operand if source else result
    if relative.index + registers > NUMBERED_SGPRS:
        raise OperandError("it counts from one of the numbered scalar registers")
    return coded


def _write_move(registers: int, source: bool, kind: str, name: str) -> str:
    b = Builder()
    type_ = f"i{32 * registers}"
    index = b.load(b.at("%s", 4 * M0), "i32")
    if registers == 2:
        index = index & ~1  # a pair begins at an even number

    def relative(place: Value) -> tuple[Value, Value]:
        number = place.shr(2).to("i64") + index.to("i64")
        return number.shl(2), number.cmp("ule", NUMBERED_SGPRS - registers)

    if source:
        place, inside = relative(slot(b, 1))
        b.store(b.load(b.at("%s", inside.select(place, 0)), type_), b.at("%s", slot(b, 0)))
    else:
        value = slot(b, 1, type_) if kind == CONSTANT else b.load(b.at("%s", slot(b, 1)), type_)
        place, inside = relative(slot(b, 0))
        with b.when(inside):
            b.store(value, b.at("%s", place))
    next_record(b)
    return b.function(name, HANDLER)


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {
    "s_set_gpr_idx_on": partial(_set, True, True, True), "s_set_gpr_idx_off": partial(_set, False, False, False),
    "s_set_gpr_idx_idx": partial(_set, True, False, None), "s_set_gpr_idx_mode": partial(_set, False, True, None),
    **{f"s_movrel{letter}_b{32 * n}": partial(_move, n, letter == "s") for letter in "sd" for n in (1, 2)}}
