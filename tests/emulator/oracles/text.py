"""An instruction's text in parts: mnemonic, operands, modifiers, constants. Written apart from the device's reader."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

import numpy as np

_FLOAT_CODES = {"i16": "<e", "i32": "<f", "i64": "<d"}
_INVERSE_TURN = {"i16": 0x3118, "i32": 0x3E22F983, "i64": 0x3FC45F306DC9C882}


@dataclass
class Text:
    """An instruction's text in parts; `words` are its modifiers by name."""

    mnemonic: str
    operands: list[str]
    words: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Text:
        mnemonic, _, rest = text.strip().partition(" ")
        parts = [part.strip() for part in re.split(r",(?![^\[(]*[\])])", rest)]
        words = {}
        if parts and " " in parts[-1]:
            parts[-1], *modifiers = parts[-1].split()
            words = {name: value for name, _, value in (m.partition(":") for m in modifiers)}
        return cls(re.sub("_(e32|e64|sdwa|dpp)$", "", mnemonic), parts, words)

    def bit(self, name: str, n: int, default: int = 0) -> int:
        """Entry n of a list such as op_sel:[0,1]."""
        bits = self.words.get(name, "[]").strip("[]").split(",")
        return int(bits[n]) if n < len(bits) and bits[n] else default


def stripped(text: str) -> tuple[str, set[str]]:
    """An operand without its source modifiers, and their names."""
    found: set[str] = set()
    while True:
        if re.fullmatch(r"-(?:\||[vs]|abs|vcc|m0|exec)\S*", text):
            text, name = text[1:], "neg"
        elif re.fullmatch(r"neg\(.*\)", text):
            text, name = text[4:-1], "neg"
        elif re.fullmatch(r"\|.*\|", text):
            text, name = text[1:-1], "abs"
        elif re.fullmatch(r"abs\(.*\)", text):
            text, name = text[4:-1], "abs"
        elif re.fullmatch(r"sext\(.*\)", text):
            text, name = text[5:-1], "sext"
        else:
            return text, found
        found.add(name)


def constant(text: str, integer: str, double: bool = False) -> int:
    """The bits of a constant where an operand of this width is wanted; a literal gives a double its high half."""
    wide = int(integer[1:])
    if re.search(r"\d\.\d", text) and "x" not in text:
        if text.startswith("0.159"):
            return _INVERSE_TURN[integer]
        return int.from_bytes(struct.pack(_FLOAT_CODES[integer], float(text)), "little")
    value = int(text, 0)
    if double and not -16 <= value <= 64:
        return value << 32 & 0xFFFFFFFF00000000
    return value & ((1 << wide) - 1)


def part_of(bits: np.ndarray, select: str, extend: bool) -> np.ndarray:
    """A byte or half of a register, extended with zeros or its sign to 32 bits."""
    if select == "DWORD":
        return bits
    size = 8 if select.startswith("BYTE") else 16
    part = bits >> np.uint64(size * int(select[-1])) & np.uint64((1 << size) - 1)
    negative = extend * (part >> np.uint64(size - 1))
    return part | negative * np.uint64(0xFFFFFFFF & ~((1 << size) - 1))
