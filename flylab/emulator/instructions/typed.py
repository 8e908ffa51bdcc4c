"""Formatted buffer loads and stores: which mnemonics there are, and how their operands are read (MUBUF, MTBUF)."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import VECTOR, OperandError, bounded, operands_of
from flylab.emulator.instructions.memory import BUFFER_FLAGS, Decode, buffer_place, coded, modifiers
from flylab.emulator.memory.access import DATA, FORMAT, OFFSET, Access
from flylab.emulator.memory.formats import DEFAULT, code_of
from flylab.emulator.memory.typed import Form, Formatted

COMPONENTS = {"x": 1, "xy": 2, "xyz": 3, "xyzw": 4}
_FORMAT = re.compile(r"format:(?:\[(.*)\]|(\w+))")


def _typed(store: bool, form: Form, decoder: Decoder, instruction: Instruction) -> Coded:
    """Data, vector address or `off`, descriptor, scalar offset; for tbuffer_* the format is a modifier."""
    code, words = DEFAULT, []
    for word in instruction.modifiers:
        found = None if form.from_descriptor else _FORMAT.fullmatch(word)
        if not found:
            words.append(word)
            continue
        named = code_of(found[1].split(",")) if found[1] else bounded(found[2], 0, 127, "the format")
        if named is None:
            raise OperandError(f"'{word}' names no buffer format")
        code = named
    offset, flags = modifiers(replace(instruction, modifiers=tuple(words)), "buffer", BUFFER_FLAGS)
    data, address, descriptor, scalar = operands_of(instruction, 4)
    registers = decoder.registers
    access, fields = buffer_place(Access(store, 4, form.count), registers, address, descriptor, scalar, flags)
    count = -(-form.count // 2) if form.half else form.count
    fields |= {DATA: registers.offset(data, count, VECTOR), OFFSET: offset, FORMAT: code}
    return coded(Formatted, access, fields, form)


def _rows() -> dict[str, Decode]:
    found: dict[str, Decode] = {}
    for verb in ("load", "store"):
        for prefix in ("buffer", "tbuffer"):
            for suffix, count in COMPONENTS.items():
                for middle, half in (("", ""), ("d16_", "low")):
                    found[f"{prefix}_{verb}_format_{middle}{suffix}"] = partial(
                        _typed, verb == "store", Form(count, prefix == "buffer", half))
        found[f"buffer_{verb}_format_d16_hi_x"] = partial(_typed, verb == "store", Form(1, True, "high"))
    return found


DECODERS: dict[str, Decode] = _rows()
