"""Loads and stores: which mnemonics there are, and how their operands are read (FLAT, global, MUBUF, SMEM)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator import access
from flylab.emulator.access import Access
from flylab.emulator.decode import Coded, Decoder
from flylab.emulator.operands import CONSTANT, OFF, SCALAR, Operand, OperandError, parse_operand

# name, bytes of an element in memory, registers, sign-extended, taken from the upper half
LOADS = (("ubyte", 1, 1, False), ("sbyte", 1, 1, True), ("ushort", 2, 1, False), ("sshort", 2, 1, True),
         ("dword", 4, 1, False), ("dwordx2", 4, 2, False), ("dwordx3", 4, 3, False), ("dwordx4", 4, 4, False))
STORES = (("byte", 1, 1, False), ("short", 2, 1, False), ("byte_d16_hi", 1, 1, True), ("short_d16_hi", 2, 1, True),
          ("dword", 4, 1, False), ("dwordx2", 4, 2, False), ("dwordx3", 4, 3, False), ("dwordx4", 4, 4, False))
SCALAR_SIZES = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
# What steers caches changes no result here.
CACHE_BITS = {"sc0", "sc1", "nt", "glc", "slc", "dlc"}
_OFFSET = re.compile(r"offset:(-?\w+)$")

Decode = Callable[[Decoder, Instruction], Coded]


def _modifiers(instruction: Instruction, flags: frozenset[str] = frozenset()) -> tuple[int, set[str]]:
    """The constant offset, and those of `flags` that are there."""
    offset, found = 0, set()
    for word in instruction.modifiers:
        if match := _OFFSET.match(word):
            offset = int(match[1], 0)
        elif word in flags:
            found.add(word)
        elif word not in CACHE_BITS:
            raise OperandError(f"the modifier '{word}' is not one that the software device knows here")
    return offset, found


def _operands(instruction: Instruction, counts: tuple[int, ...]) -> list[Operand]:
    if len(instruction.operands) not in counts:
        raise OperandError(f"it has {len(instruction.operands)} operands")
    return [parse_operand(text) for text in instruction.operands]


def _flat(shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """global_* and flat_*: data, address, and for global_* a scalar base or `off`."""
    operands = _operands(instruction, (2, 3))
    data, address = (operands[1], operands[0]) if shape.store else operands[:2]
    base = operands[2] if len(operands) == 3 else Operand(OFF)
    offset, _ = _modifiers(instruction)
    place = "pair" if base.kind == OFF else "base"
    form = Access(shape.store, shape.unit, shape.registers, place, shape.signed, shape.high)
    coded = Coded(f"access {form}", partial(access.write, form))
    coded.slot(decoder.registers.offset(data, shape.registers))
    coded.slot(decoder.registers.offset(address, 2 if place == "pair" else 1))
    coded.slot(decoder.registers.offset(base, 2) if place == "base" else 0)
    coded.slot(offset)
    return coded


def _buffer(shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """buffer_*: data, vector offset or `off`, descriptor, scalar offset."""
    data, address, descriptor, scalar = _operands(instruction, (4,))
    offset, flags = _modifiers(instruction, frozenset({"offen"}))
    vector_offset = "offen" in flags
    if vector_offset == (address.kind == OFF):
        raise OperandError("its vector offset and 'offen' do not go together")
    form = Access(shape.store, shape.unit, shape.registers, "buffer", shape.signed, shape.high,
                  "k" if scalar.kind == CONSTANT else "s", vector_offset)
    coded = Coded(f"access {form}", partial(access.write, form))
    coded.slot(decoder.registers.offset(data, shape.registers))
    coded.slot(decoder.registers.offset(address, 1) if vector_offset else 0)
    coded.slot(decoder.registers.offset(descriptor, 4))
    coded.slot(offset)
    coded.slot(int(scalar.value) if scalar.kind == CONSTANT else decoder.registers.offset(scalar, 1))
    return coded


def _scalar_load(registers: int, buffer: bool, decoder: Decoder, instruction: Instruction) -> Coded:
    """s_load_* and s_buffer_load_*: result, base, and an offset that may have a constant beside it."""
    result, base, offset = _operands(instruction, (3,))
    constant, _ = _modifiers(instruction)
    if offset.kind not in (CONSTANT, SCALAR) or result.kind != SCALAR or base.kind != SCALAR:
        raise OperandError("it takes scalar registers")
    has_constant = bool(constant)
    write = access.write_scalar_buffer_load if buffer else access.write_scalar_load
    coded = Coded(f"scalar {buffer} {registers} {offset.kind} {has_constant}",
                  partial(write, registers=registers, offset_kind=offset.kind, constant=has_constant))
    coded.slot(decoder.registers.offset(result, registers))
    coded.slot(decoder.registers.offset(base, 4 if buffer else 2))
    coded.slot(int(offset.value) if offset.kind == CONSTANT else decoder.registers.offset(offset, 1))
    coded.slot(constant)
    return coded


def _vector_rows() -> dict[str, Decode]:
    found: dict[str, Decode] = {}
    for store, names in ((False, LOADS), (True, STORES)):
        for name, unit, registers, flag in names:
            shape = Access(store, unit, registers, "", signed=flag and not store, high=flag and store)
            verb = "store" if store else "load"
            for space, decode in (("global", _flat), ("flat", _flat), ("buffer", _buffer)):
                found[f"{space}_{verb}_{name}"] = partial(decode, shape)
    return found


DECODERS: dict[str, Decode] = _vector_rows() | {
    f"s_{kind}_{name}": partial(_scalar_load, registers, kind == "buffer_load")
    for name, registers in SCALAR_SIZES.items() for kind in ("load", "buffer_load")}
