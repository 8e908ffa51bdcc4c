"""Vector loads and stores of FLAT, global, scratch and MUBUF: which there are, and how their operands are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from flylab.codegen.assembly.encoding import is_inline
from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.chips import chips_with, lacking
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import CONSTANT, OFF, SCALAR, VECTOR, Operand, OperandError, bounded, operands_of
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.memory.access import (
    ADDRESS,
    BASE,
    DATA,
    OFFSET,
    PRIVATE_AT,
    PRIVATE_BYTES,
    PRIVATE_STRIDE,
    SCALAR_OFFSET,
    Access,
)
from flylab.emulator.memory.direct import LoadToLds
from flylab.emulator.memory.moves import Move, VectorAccess
from flylab.emulator.state import ROW_BYTES

# name, bytes of an element in memory, registers, sign-extended, the half of the register that is moved
LOADS = (("ubyte", 1, 1, False, ""), ("sbyte", 1, 1, True, ""), ("ushort", 2, 1, False, ""),
         ("sshort", 2, 1, True, ""), ("dword", 4, 1, False, ""), ("dwordx2", 4, 2, False, ""),
         ("dwordx3", 4, 3, False, ""), ("dwordx4", 4, 4, False, ""),
         ("ubyte_d16", 1, 1, False, "low"), ("ubyte_d16_hi", 1, 1, False, "high"),
         ("sbyte_d16", 1, 1, True, "low"), ("sbyte_d16_hi", 1, 1, True, "high"),
         ("short_d16", 2, 1, False, "low"), ("short_d16_hi", 2, 1, False, "high"))
STORES = (("byte", 1, 1, False, ""), ("short", 2, 1, False, ""), ("byte_d16_hi", 1, 1, False, "high"),
          ("short_d16_hi", 2, 1, False, "high"), ("dword", 4, 1, False, ""), ("dwordx2", 4, 2, False, ""),
          ("dwordx3", 4, 3, False, ""), ("dwordx4", 4, 4, False, ""))
# Loads that have a form to LDS.
TO_LDS = ("ubyte", "sbyte", "ushort", "sshort", "dword", "dwordx3", "dwordx4")
# What steers caches changes no result here.
CACHE_BITS = {"sc0", "sc1", "nt"}
_OFFSET = re.compile(r"offset:(.*)")
# What the encodings hold of a constant offset, lowest and highest.
OFFSETS = {"global": (-4096, 4095), "flat": (0, 4095), "buffer": (0, 4095), "private": (-4096, 4095),
           "scalar": (-(1 << 20), (1 << 20) - 1), "scalar buffer": (0, (1 << 20) - 1), "lds": (0, 65535)}

Decode = Callable[[Decoder, Instruction], Coded]
# What a record's slots hold, by their numbers.
Fields = dict[int, int]


def modifiers(instruction: Instruction, space: str, flags: frozenset[str] = frozenset()) -> tuple[int, set[str]]:
    """The constant offset, and those of `flags` that are there."""
    offset, found = 0, set()
    for word in instruction.modifiers:
        if match := _OFFSET.fullmatch(word):
            offset = bounded(match[1], *OFFSETS[space], "the offset")
        elif word in flags:
            found.add(word)
        elif word not in CACHE_BITS:
            older = " (older chips have glc and slc where these have sc0, sc1 and nt)" if word in ("glc", "slc") else ""
            raise OperandError(f"the modifier '{word}' is not one that the software device knows here{older}")
    return offset, found


def _write(make: Callable[[], VectorAccess], name: str) -> str:
    return make().text(name)


def coded(work: Callable[..., VectorAccess], form: Access, fields: Fields, *options: Any) -> Coded:
    """The record of a vector access that `work(form, *options)` writes the handler of."""
    make = partial(work, form, *options)
    found = Coded(f"{getattr(work, '__name__', work)} {form} {options}", partial(_write, make), access=make)
    for number in range(max(fields) + 1):
        found.slot(fields.get(number, 0))
    return found


def private_fields(registers: Registers) -> Fields:
    """Where a wave's private memory is, and its size."""
    return {PRIVATE_AT: registers.rows * ROW_BYTES, PRIVATE_BYTES: registers.private_bytes,
            PRIVATE_STRIDE: registers.private_stride}


def global_place(space: str, shape: Access, registers: Registers, address: Operand,
                 base: Operand | None) -> tuple[Access, Fields]:
    """The address of global_* and flat_*: a vector pair, or a scalar base (which is not `off`) and a vector offset."""
    if space == "flat":
        fields = {ADDRESS: registers.address(address, 2)} | private_fields(registers)
        return replace(shape, place="flat"), fields
    if base is None or base.kind == OFF:
        return replace(shape, place="pair"), {ADDRESS: registers.address(address, 2)}
    return replace(shape, place="base"), {ADDRESS: registers.address(address, 1),
                                          BASE: registers.offset(base, 2, SCALAR, OFF)}


def private_place(shape: Access, registers: Registers, address: Operand, scalar: Operand) -> tuple[Access, Fields]:
    """The address of scratch_*: a vector offset or `off`, and a scalar offset or `off`."""
    kind, vector = "k" if scalar.kind == OFF else "s", address.kind != OFF
    fields = private_fields(registers)
    if vector:
        fields[ADDRESS] = registers.address(address, 1)
    if kind == "s":
        fields[SCALAR_OFFSET] = registers.offset(scalar, 1, SCALAR, OFF)
    return replace(shape, place="private", offset_kind=kind, vector_offset=vector), fields


BUFFER_FLAGS = frozenset({"offen", "idxen"})


def buffer_place(shape: Access, registers: Registers, address: Operand | None, descriptor: Operand, scalar: Operand,
                 flags: set[str]) -> tuple[Access, Fields]:
    """The address of a buffer access: index and offset (or `off`), descriptor, scalar offset."""
    index, offset = "idxen" in flags, "offen" in flags
    count = index + offset
    if bool(count) == (address is None or address.kind == OFF):
        raise OperandError("its vector address does not go together with 'offen' and 'idxen'")
    if scalar.kind == CONSTANT and not is_inline(scalar.value):
        raise OperandError(f"its scalar offset is a register or one of the constants from -16 to 64, and not "
                           f"{scalar.value}")
    fields = {BASE: registers.offset(descriptor, 4, SCALAR), SCALAR_OFFSET: registers.scalar(scalar)}
    if count and address:
        fields[ADDRESS] = registers.address(address, count)
    kind = "k" if scalar.kind == CONSTANT else "s"
    return replace(shape, place="buffer", offset_kind=kind, vector_offset=offset, index=index), fields


def _global(space: str, shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """global_* and flat_*: data, address, and for global_* a scalar base or `off`."""
    operands = operands_of(instruction, 3 if space == "global" else 2)
    data, address = (operands[1], operands[0]) if shape.store else operands[:2]
    offset, _ = modifiers(instruction, space)
    registers = decoder.registers
    form, fields = global_place(space, shape, registers, address, operands[2] if space == "global" else None)
    return coded(Move, form, fields | {DATA: registers.offset(data, shape.registers, VECTOR), OFFSET: offset})


def _private(shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """scratch_*: data, vector offset or `off`, scalar offset or `off`."""
    operands = operands_of(instruction, 3)
    data, address = (operands[1], operands[0]) if shape.store else operands[:2]
    offset, _ = modifiers(instruction, "private")
    registers = decoder.registers
    form, fields = private_place(shape, registers, address, operands[2])
    return coded(Move, form, fields | {DATA: registers.offset(data, shape.registers, VECTOR), OFFSET: offset})


def _buffer(shape: Access, size: str, decoder: Decoder, instruction: Instruction) -> Coded:
    """buffer_*: data (none with `lds`), vector address or `off`, descriptor, scalar offset."""
    offset, flags = modifiers(instruction, "buffer", BUFFER_FLAGS | {"lds"} if size in TO_LDS else BUFFER_FLAGS)
    registers, fields = decoder.registers, {OFFSET: offset}
    if "lds" in flags:
        arch = decoder.kernel.target.arch
        if arch not in (chips := chips_with(f"global_load_lds_{size}")):  # the name that has a row there
            raise OperandError(lacking(arch, chips))
        address, descriptor, scalar = operands_of(instruction, 3)
    else:
        data, address, descriptor, scalar = operands_of(instruction, 4)
        fields[DATA] = registers.offset(data, shape.registers, VECTOR)
    form, place = buffer_place(shape, registers, address, descriptor, scalar, flags)
    return coded(LoadToLds if "lds" in flags else Move, form, fields | place)


def _to_lds(space: str, size: str, shape: Access, decoder: Decoder, instruction: Instruction) -> Coded:
    """global_load_lds_* and scratch_load_lds_*: address and scalar base, or vector and scalar offset."""
    address, scalar = operands_of(instruction, 2)
    offset, _ = modifiers(instruction, space)
    registers = decoder.registers
    form, fields = (private_place(shape, registers, address, scalar) if space == "private" else
                    global_place(space, shape, registers, address, scalar))
    return coded(LoadToLds, form, fields | {OFFSET: offset})


def _rows() -> dict[str, Decode]:
    found: dict[str, Decode] = {}
    for store, names in ((False, LOADS), (True, STORES)):
        for name, unit, registers, signed, half in names:
            shape = Access(store, unit, registers, signed=signed, half=half)
            verb = "store" if store else "load"
            found[f"buffer_{verb}_{name}"] = partial(_buffer, shape, name if not store else "")
            found[f"scratch_{verb}_{name}"] = partial(_private, shape)
            for space in ("global", "flat"):
                found[f"{space}_{verb}_{name}"] = partial(_global, space, shape)
            if not store and name in TO_LDS:
                found[f"global_load_lds_{name}"] = partial(_to_lds, "global", name, shape)
                if shape.registers == 1:
                    found[f"scratch_load_lds_{name}"] = partial(_to_lds, "private", name, shape)
    return found


DECODERS: dict[str, Decode] = _rows()
