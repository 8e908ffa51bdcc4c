"""Operands of AMDGPU assembly as data: vector rows, scalar registers, constants, and their source modifiers."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from flylab.emulator.state import SGPR_NAMES

VECTOR, SCALAR, CONSTANT, OFF = "v", "s", "k", "off"
_REGISTER = re.compile(r"([vsa])(?:(\d+)|\[(\d+):(\d+)\])$")
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
    if text.startswith("-|"):
        return replace(parse_operand(text[1:]), negative=True)
    for prefix, suffix, name in (("|", "|", "absolute"), ("abs(", ")", "absolute"), ("neg(", ")", "negative"),
                                 ("sext(", ")", "sign_extend")):
        if text.startswith(prefix) and text.endswith(suffix):
            change: dict[str, Any] = {name: True}
            return replace(parse_operand(text[len(prefix):-len(suffix)]), **change)
    if text.startswith("-") and not text[1:2].isdigit():
        return replace(parse_operand(text[1:]), negative=True)
    return _register(text) or _constant(text)


def _register(text: str) -> Operand | None:
    found = _REGISTER.match(text)
    if found:
        file, one, first, last = found.groups()
        index = int(one if one is not None else first)
        count = 1 if one is not None else int(last) - index + 1
        return Operand(SCALAR if file == "s" else VECTOR, index, count, accumulator=file == "a")
    if text == "off":
        return Operand(OFF)
    name, _, half = text.rpartition("_")
    if half in ("lo", "hi") and name in SGPR_NAMES:
        return Operand(SCALAR, SGPR_NAMES[name] + (half == "hi"), 1)
    if text in SGPR_NAMES:
        return Operand(SCALAR, SGPR_NAMES[text], 1 if text in ("m0", "scc", "src_scc") else 2)
    return None


def _constant(text: str) -> Operand:
    try:
        return Operand(CONSTANT, value=int(text, 0))
    except ValueError:
        pass
    try:
        return Operand(CONSTANT, value=float(text))
    except ValueError:
        raise OperandError(f"the operand '{text}' is not one that the software device knows") from None


def constant_bits(operand: Operand, type_: str) -> int:
    """The bits of a constant where an operand of IR type `type_` is wanted.

    A float constant takes the format of the operand; on 64-bit float operands a literal gives the high half.

    >>> hex(constant_bits(parse_operand("1.0"), "float")), hex(constant_bits(parse_operand("0x40080000"), "double"))
    ('0x3f800000', '0x4008000000000000')
    """
    bits = {"half": 16, "i16": 16, "float": 32, "i32": 32, "double": 64, "i64": 64}[type_]
    value = operand.value
    if isinstance(value, float):
        format_ = {16: "half", 32: "float", 64: "double"}[bits]
        if abs(value - 0.15915494309189532) < 1e-8:
            return _INV_TWO_PI[format_] | (value < 0) << (bits - 1)
        return int.from_bytes(struct.pack(_FLOAT_CODE[format_], value), "little")
    integer = int(value)
    if type_ == "double" and not -16 <= integer <= 64:
        return (integer & 0xFFFFFFFF) << 32
    return integer & ((1 << bits) - 1)
