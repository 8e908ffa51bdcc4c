"""Loads and stores: which mnemonics there are, and how their operands are read (FLAT, global, scratch, MUBUF, SMEM)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator import access
from flylab.emulator.access import Access
from flylab.emulator.decode import Coded, Decoder
from flylab.emulator.operands import CONSTANT, OFF, SCALAR, VECTOR, OperandError, bounded, operands_of
from flylab.emulator.state import ROW_BYTES

# name, bytes of an element in memory, registers, sign-extended, taken from the upper half
LOADS = (("ubyte", 1, 1, False), ("sbyte", 1, 1, True), ("ushort", 2, 1, False), ("sshort", 2, 1, True),
         ("dword", 4, 1, False), ("dwordx2", 4, 2, False), ("dwordx3", 4, 3, False), ("dwordx4", 4, 4, False))
STORES = (("byte", 1, 1, False), ("short", 2, 1, False), ("byte_d16_hi", 1, 1, True), ("short_d16_hi", 2, 1, True),
          ("dword", 4, 1, False), ("dwordx2", 4, 2, False), ("dwordx3", 4, 3, False), ("dwordx4", 4, 4, False))
SCALAR_SIZES = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
# What steers caches changes no result here.
CACHE_BITS = {"sc0", "sc1", "nt", "glc", "slc", "dlc"}
_OFFSET = re.compile(r"offset:(.*)")
# What the encodings hold of a constant offset, lowest and highest.
OFFSETS = {"global": (-4096, 4095), "flat": (0, 4095), "buffer": (0, 4095), "private": (-4096, 4095),
           "scalar": (-(1 << 20), (1 << 20) - 1), "lds": (0, 65535)}

Decode = Callable[[Decoder, Instruction], Coded]


def modifiers(instruction: Instruction, space: str, flags: frozenset[str] = frozenset()) -> tuple[int, set[str]]:
    """The constant offset, and those of `flags` that are there."""
    offset, found = 0, set()
    for word in instruction.modifiers:
        if match := _OFFSET.fullmatch(word):
            offset = bounded(match[1], *OFFSETS[space], "the offset")
        elif word in flags:
            found.add(word)
        elif word not in CACHE_BITS:
            raise OperandError(f"the modifier '{word}' is not one that the software device knows here")
    return offset, found


def _global(space: str, shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """global_* and flat_*: data, address, and for global_* a scalar base or `off`."""
    operands = operands_of(instruction, 3 if space == "global" else 2)
    data, address = (operands[1], operands[0]) if shape.store else operands[:2]
    base = operands[2] if space == "global" and operands[2].kind != OFF else None
    offset, _ = modifiers(instruction, space)
    form = Access(shape.store, shape.unit, shape.registers, "base" if base else "pair", shape.signed, shape.high)
    coded = Coded(f"access {form}", partial(access.write, form))
    registers = decoder.registers
    coded.slot(registers.offset(data, shape.registers, VECTOR))
    coded.slot(registers.offset(address, 1 if base else 2, VECTOR))
    coded.slot(registers.offset(base, 2, SCALAR, OFF) if base else 0)
    coded.slot(offset)
    return coded


def _buffer(shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """buffer_*: data, vector offset or `off`, descriptor, scalar offset."""
    data, address, descriptor, scalar = operands_of(instruction, 4)
    offset, flags = modifiers(instruction, "buffer", frozenset({"offen"}))
    vector_offset = "offen" in flags
    if vector_offset == (address.kind == OFF):
        raise OperandError("its vector offset and 'offen' do not go together")
    form = Access(shape.store, shape.unit, shape.registers, "buffer", shape.signed, shape.high,
                  "k" if scalar.kind == CONSTANT else "s", vector_offset)
    coded = Coded(f"access {form}", partial(access.write, form))
    registers = decoder.registers
    coded.slot(registers.offset(data, shape.registers, VECTOR))
    coded.slot(registers.offset(address, 1, VECTOR) if vector_offset else 0)
    coded.slot(registers.offset(descriptor, 4, SCALAR))
    coded.slot(offset)
    coded.slot(registers.scalar(scalar))
    return coded


def _private(shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """scratch_*: data, vector offset or `off`, scalar offset or `off`."""
    operands = operands_of(instruction, 3)
    data, address = (operands[1], operands[0]) if shape.store else operands[:2]
    scalar = operands[2]
    offset, _ = modifiers(instruction, "private")
    registers, vector_offset = decoder.registers, address.kind != OFF
    kind = "k" if scalar.kind == OFF else "s"
    form = replace(shape, place="private", offset_kind=kind, vector_offset=vector_offset)
    coded = Coded(f"access {form}", partial(access.write, form))
    for value in (registers.offset(data, shape.registers, VECTOR),
                  registers.offset(address, 1, VECTOR) if vector_offset else 0,
                  0, offset, registers.offset(scalar, 1, SCALAR, OFF) if kind == "s" else 0,
                  registers.rows * ROW_BYTES, registers.private_bytes):
        coded.slot(value)
    return coded


def _scalar_load(registers: int, buffer: bool, decoder: Decoder, instruction: Instruction) -> Coded:
    """s_load_* and s_buffer_load_*: result, base, and an offset that may have a constant beside it."""
    result, base, offset = operands_of(instruction, 3)
    constant, _ = modifiers(instruction, "scalar")
    if offset.kind == CONSTANT:
        bounded(instruction.operands[2], *OFFSETS["scalar"], "the offset")
    has_constant = bool(constant)
    write = access.write_scalar_buffer_load if buffer else access.write_scalar_load
    coded = Coded(f"scalar {buffer} {registers} {offset.kind} {has_constant}",
                  partial(write, registers=registers, offset_kind=offset.kind, constant=has_constant))
    coded.slot(decoder.registers.offset(result, registers, SCALAR))
    coded.slot(decoder.registers.offset(base, 4 if buffer else 2, SCALAR))
    coded.slot(decoder.registers.scalar(offset))
    coded.slot(constant)
    return coded


def _vector_rows() -> dict[str, Decode]:
    found: dict[str, Decode] = {}
    for store, names in ((False, LOADS), (True, STORES)):
        for name, unit, registers, flag in names:
            shape = Access(store, unit, registers, "", signed=flag and not store, high=flag and store)
            verb = "store" if store else "load"
            found[f"buffer_{verb}_{name}"] = partial(_buffer, shape)
            found[f"scratch_{verb}_{name}"] = partial(_private, shape)
            for space in ("global", "flat"):
                found[f"{space}_{verb}_{name}"] = partial(_global, space, shape)
    return found


DECODERS: dict[str, Decode] = _vector_rows() | {
    f"s_{kind}_{name}": partial(_scalar_load, registers, kind == "buffer_load")
    for name, registers in SCALAR_SIZES.items() for kind in ("load", "buffer_load")}
