"""Scalar loads, stores and atomics: which mnemonics there are, and how their operands are read (SMEM).

What llvm-mc takes for gfx942 and gfx950 is here; loads of three dwords are too, which LLVM never emits for them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import CONSTANT, SCALAR, OperandError, bounded, operands_of, parse_operand
from flylab.emulator.instructions.memory import OFFSETS, Decode, modifiers
from flylab.emulator.memory import smem
from flylab.emulator.memory.exchange import INTEGER
from flylab.emulator.memory.smem import ScalarAccess

LOADS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
STORES = {"dword": 1, "dwordx2": 2, "dwordx4": 4}
PREFIXES = {"global": "s_", "buffer": "s_buffer_", "scratch": "s_scratch_"}


def _access(shape: ScalarAccess, decoder: Decoder, instruction: Instruction) -> Coded:
    """Data, base or descriptor, and an offset that may have a constant beside it."""
    data, base, offset = (*operands_of(instruction, 2, 3), parse_operand("0"))[:3]
    space = "scalar buffer" if shape.place == "buffer" else "scalar"
    constant, flags = modifiers(instruction, space, frozenset({"glc"}))
    if instruction.operands[0].startswith(("m0", "exec")):
        raise OperandError(f"its data cannot be in {instruction.operands[0]}")
    if offset.kind == CONSTANT:
        bounded("".join(instruction.operands[2:3]) or "0", *OFFSETS[space], "the offset")
        if any(word.startswith("offset:") for word in instruction.modifiers):
            raise OperandError("it has two constant offsets")
    access = replace(shape, offset_kind=offset.kind, constant=bool(constant),
                     returns=bool(shape.operation) and "glc" in flags)
    coded = Coded(f"scalar {access}", partial(smem.write, access))
    registers = decoder.registers
    count = shape.registers * (1 + (shape.operation == "cmpswap"))
    for value in (registers.offset(data, count, SCALAR),
                  registers.offset(base, 4 if shape.place == "buffer" else 2, SCALAR),
                  registers.scalar(offset), constant):
        coded.slot(value)
    return coded


def _time(decoder: Decoder, instruction: Instruction) -> Coded:
    (result,) = operands_of(instruction, 1)
    coded = Coded("time", smem.write_time)
    coded.slot(decoder.registers.offset(result, 2, SCALAR))
    return coded


def _rows() -> dict[str, Decode]:
    found: dict[str, Decode] = {"s_memtime": _time, "s_memrealtime": _time}
    for place, prefix in PREFIXES.items():
        loads = {n: r for n, r in LOADS.items() if r <= 4 and r != 3} if place == "scratch" else LOADS
        shapes = [(f"load_{n}", ScalarAccess(False, r, place)) for n, r in loads.items()]
        shapes += [(f"store_{n}", ScalarAccess(True, r, place)) for n, r in STORES.items()]
        if place != "scratch":
            shapes += [(f"atomic_{name}{suffix}", ScalarAccess(True, r, place, name))
                       for name in (*INTEGER, "cmpswap") for suffix, r in (("", 1), ("_x2", 2))]
        found |= {prefix + name: partial(_access, shape) for name, shape in shapes}
    return found


DECODERS: dict[str, Decode] = _rows()
