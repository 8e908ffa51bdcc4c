"""Reads and writes of LDS: `ds_read_*`, `ds_write_*` of every width, at one place or two, and the transposing reads.

Source: CDNA3 and CDNA4 ISA, chapter "Data share operations", and the operations of their instruction lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import VECTOR, OperandError, bounded, operands_of
from flylab.emulator.instructions.memory import modifiers
from flylab.emulator.memory import lds
from flylab.emulator.memory.lds import LdsAccess
from flylab.emulator.memory.lds_transpose import Transpose
from flylab.emulator.state import ROW_BYTES

Decode = Callable[[Decoder, Instruction], Coded]
_OFFSETS = re.compile(r"offset([01]):(.*)")
# name, bytes of an element, registers, sign-extended, the half of a register
READS = [("u8", 1, 1, False, ""), ("i8", 1, 1, True, ""), ("u16", 2, 1, False, ""), ("i16", 2, 1, True, ""),
         ("u8_d16", 1, 1, False, "low"), ("u8_d16_hi", 1, 1, False, "high"), ("i8_d16", 1, 1, True, "low"),
         ("i8_d16_hi", 1, 1, True, "high"), ("u16_d16", 2, 1, False, "low"), ("u16_d16_hi", 2, 1, False, "high")]
WRITES = [("b8", 1, 1, False, ""), ("b16", 2, 1, False, ""), ("b8_d16_hi", 1, 1, False, "high"),
          ("b16_d16_hi", 2, 1, False, "high")]
WHOLE = [(f"b{32 * n}", 4, n, False, "") for n in (1, 2, 3, 4)]
# name, bits of an element, registers
TRANSPOSING = (("b64_tr_b16", 16, 2), ("b64_tr_b8", 8, 2), ("b64_tr_b4", 4, 2), ("b96_tr_b6", 6, 3))


def two_offsets(instruction: Instruction, scale: int) -> list[int]:
    """The two offsets of a two-address form in bytes: each counts elements of `scale` bytes, and is 0 if left out."""
    found = [0, 0]
    for word in instruction.modifiers:
        match = _OFFSETS.fullmatch(word)
        if match is None:
            raise OperandError(f"the modifier '{word}' is not one that the software device knows here")
        found[int(match[1])] = bounded(match[2], 0, 255, "the offset") * scale
    return found


def _plain(form: LdsAccess, decoder: Decoder, instruction: Instruction) -> Coded:
    """One place: address and data; a read names the data first."""
    operands = operands_of(instruction, 2)
    address, data = operands if form.store else operands[::-1]
    offset, _ = modifiers(instruction, "lds")
    coded = Coded(f"lds {form}", partial(lds.write, form))
    coded.slot(decoder.registers.address(address, 1))
    coded.slot(offset)
    coded.slot(decoder.registers.offset(data, form.registers, VECTOR))
    return coded


def _two(form: LdsAccess, scale: int, decoder: Decoder, instruction: Instruction) -> Coded:
    """Two places: a read fills registers that follow each other, a write has data for each."""
    registers, count = decoder.registers, form.registers
    if form.store:
        address, *data = operands_of(instruction, 3)
        places = [registers.offset(operand, count, VECTOR) for operand in data]
    else:
        result, address = operands_of(instruction, 2)
        first = registers.offset(result, 2 * count, VECTOR)
        places = [first, first + count * ROW_BYTES]
    coded = Coded(f"lds {form}", partial(lds.write, form))
    coded.slot(registers.address(address, 1))
    for offset, place in zip(two_offsets(instruction, scale), places, strict=True):
        coded.slot(offset)
        coded.slot(place)
    return coded


def _transposing(bits: int, registers: int, decoder: Decoder, instruction: Instruction) -> Coded:
    result, address = operands_of(instruction, 2)
    offset, _ = modifiers(instruction, "lds")
    coded = Coded(f"lds transpose {bits}", lambda name: Transpose(bits, registers).text(name))
    coded.slot(decoder.registers.address(address, 1))
    coded.slot(offset)
    # The one access whose registers may begin at an odd one. Source: LLVM 22's assembler.
    coded.slot(decoder.registers.offset(result, registers, VECTOR, aligned=registers != 3))
    return coded


def _table() -> dict[str, Decode]:
    found: dict[str, Decode] = {}
    for verb, store, forms in (("read", False, READS + WHOLE), ("write", True, WRITES + WHOLE)):
        for name, *form in forms:
            found[f"ds_{verb}_{name}"] = partial(_plain, LdsAccess(store, *form))  # type: ignore[arg-type]
        for registers in (1, 2):
            for stride, elements in (("", 1), ("st64", 64)):
                form2 = LdsAccess(store, 4, registers, places=2)
                found[f"ds_{verb}2{stride}_b{32 * registers}"] = partial(_two, form2, 4 * registers * elements)
    for name, bits, registers in TRANSPOSING:
        found[f"ds_read_{name}"] = partial(_transposing, bits, registers)
    return found


DECODERS: dict[str, Decode] = _table()
