"""Operands of AMDGPU assembly as data: vector rows, scalar registers, constants, and their source modifiers."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from flylab.codegen.assembly.encoding import INV_TWO_PI, integer, is_inline, number
from flylab.codegen.assembly.registers import named_registers
from flylab.codegen.isa import Instruction
from flylab.emulator.state import NUMBERED_SGPRS

VECTOR, SCALAR, CONSTANT, OFF = "v", "s", "k", "off"
# The source modifiers, from the outside to the inside, each once.
_WRAPPERS = (("-", "", "negative"), ("neg(", ")", "negative"), ("|", "|", "absolute"), ("abs(", ")", "absolute"),
             ("sext(", ")", "sign_extend"))
_INV_TWO_PI = {"float": 0x3E22F983, "double": 0x3FC45F306DC9C882, "half": 0x3118}
_FLOAT_CODE = {"half": "<e", "float": "<f", "double": "<d"}


class OperandError(Exception):
    """Text that is no operand this device knows; the decoder says where it stands."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. `index` is a register's number within its file, `count` how many registers it names.

    `accumulator` marks the registers a0, a1 ... of the unified vector file.
    """

    kind: str
    index: int = 0
    count: int = 1
    value: int | float = 0
    accumulator: bool = False
    negative: bool = False
    absolute: bool = False
    sign_extend: bool = False


@lru_cache(maxsize=4096)
def parse_operand(text: str) -> Operand:
    """Reads one operand.

    >>> parse_operand("-|v3|").index, parse_operand("s[4:7]").count, parse_operand("0x10").value
    (3, 4, 16)

    Raises `OperandError` where the text names nothing known.
    """
    found: dict[str, Any] = dict.fromkeys(("negative", "absolute", "sign_extend"), False)
    bare = text
    for prefix, suffix, name in _WRAPPERS:
        if not found[name] and bare.startswith(prefix) and bare.endswith(suffix) and number(bare) is None:
            bare, found[name] = bare[len(prefix):len(bare) - len(suffix)], True
    operand = _register(bare)
    if operand is None:
        value = number(bare)
        if value is None:
            raise OperandError(f"the operand '{text[:60]}' is not one that the software device knows")
        operand = Operand(CONSTANT, value=value)
    return replace(operand, **found) if any(found.values()) else operand


def operands_of(instruction: Instruction, *counts: int) -> list[Operand]:
    """The operands of an instruction. Raises `OperandError` where their number is none of `counts`."""
    if len(instruction.operands) not in counts:
        raise OperandError(f"it has {len(instruction.operands)} operands, and takes {' or '.join(map(str, counts))}")
    return [parse_operand(text) for text in instruction.operands]


def bounded(text: str, low: int, high: int, what: str) -> int:
    """The integer that `text` spells. Raises `OperandError` where it spells none, or one outside [low, high]."""
    value = integer(text)
    if value is None or not low <= value <= high:
        raise OperandError(f"{what} {text} is no number from {low} to {high}")
    return value


def _register(text: str) -> Operand | None:
    if text == "off":
        return Operand(OFF)
    found = named_registers(text)
    if found is None:
        return None
    file, index, count = found
    if text[0] == "s" and text[1] in "[0123456789" and index + count > NUMBERED_SGPRS:
        raise OperandError(f"the scalar registers end at s{NUMBERED_SGPRS - 1}, and it names {text}")
    return Operand(SCALAR if file == "s" else VECTOR, index, count, accumulator=file == "a")


def constant_bits(operand: Operand, type_: str) -> int:
    """The bits of a constant where an operand of IR type `type_` is wanted.

    A float constant takes the format of the operand; on 64-bit float operands a literal gives the high half.

    >>> hex(constant_bits(parse_operand("1.0"), "float")), hex(constant_bits(parse_operand("0x40080000"), "double"))
    ('0x3f800000', '0x4008000000000000')

    Raises `OperandError` for a constant that the operand has no room for; an instruction holds 32 bits of one.
    """
    bits = {"half": 16, "i16": 16, "float": 32, "i32": 32, "double": 64, "i64": 64}[type_]
    value = operand.value
    if isinstance(value, float):
        format_ = {16: "half", 32: "float", 64: "double"}[bits]
        if abs(value - INV_TWO_PI) < 1e-8:
            return _INV_TWO_PI[format_]
        if bits == 64 and not is_inline(value) and (type_ == "i64" or struct.unpack("<Q", struct.pack("<d", value))[0]
                                                    & 0xFFFFFFFF):
            raise OperandError(f"the constant {value} has more than the 32 bits that an instruction holds")
        try:
            return int.from_bytes(struct.pack(_FLOAT_CODE[format_], value), "little")
        except OverflowError:
            raise OperandError(f"the constant {value} is beyond a float of {bits} bits") from None
    literal = min(bits, 32)
    if not -(1 << (literal - 1)) <= value < 1 << literal:
        raise OperandError(f"the constant {value} does not fit {literal} bits")
    if type_ == "double" and not -16 <= value <= 64:
        return (value & 0xFFFFFFFF) << 32
    return value & ((1 << bits) - 1)
