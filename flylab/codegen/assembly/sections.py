"""The data of assembly text: sections with their bytes, and the places in them that addresses go to."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from flylab.codegen.assembly.encoding import number
from flylab.codegen.assembly.expressions import BadExpression, Node, Unknown, parse
from flylab.codegen.assembly.macros import Statement
from flylab.codegen.assembly.strings import QUOTED, unescaped_bytes
from flylab.codegen.assembly.symbols import Symbols

INTEGERS = {".byte": 1, ".short": 2, ".hword": 2, ".half": 2, ".2byte": 2, ".value": 2, ".long": 4, ".int": 4,
            ".4byte": 4, ".word": 4, ".quad": 8, ".8byte": 8, ".octa": 16}
FLOATS = {".float": "<f", ".single": "<f", ".double": "<d"}
STRINGS = {".ascii": b"", ".asciz": b"\0", ".string": b"\0"}
GAPS = (".zero", ".skip", ".space", ".fill")
ALIGNMENTS = {".p2align": True, ".p2alignl": True, ".p2alignw": True, ".align": False, ".balign": False,
              ".balignl": False, ".balignw": False}
"""Directives that align, and whether their number is a power's exponent."""
DATA = (*INTEGERS, *FLOATS, *STRINGS, *GAPS)
MOST_BYTES = 1 << 28
MOST_EXPONENT = 16
_MOST_ALIGNMENT = 1 << MOST_EXPONENT


@dataclass(frozen=True)
class Relocation:
    """Bytes that wait for an address: `size` of them at `offset`."""

    offset: int
    size: int
    value: Node
    statement: Statement


@dataclass
class Section:
    """A section: `code` holds instructions, `kept` ones are in memory when kernels run, `writable` ones to be changed.

    `objects` are the offsets at which something with a name and bytes of its own begins; `size` counts what code takes.
    """

    name: str
    code: bool = False
    kept: bool = False
    writable: bool = False
    data: bytearray = field(default_factory=bytearray)
    alignment: int = 16
    relocations: list[Relocation] = field(default_factory=list)
    objects: dict[int, str] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(cls, name: str, flags: str | None) -> Section:
        """A section by its name, and its flags where the text gives them."""
        if flags is None:
            known = {".text": "ax", ".rodata": "a", ".data": "aw", ".bss": "aw"}
            flags = next((f for start, f in known.items() if name == start or name.startswith(start + ".")), "")
        return cls(name, "x" in flags, "a" in flags and "x" not in flags, "w" in flags)

    def align(self, step: int) -> None:
        """Pads to a multiple of `step` bytes."""
        self.alignment = max(self.alignment, step)
        self.size += -self.size % step
        if not self.code:
            self.data.extend(bytes(self.size - len(self.data)))

    def add(self, data: bytes) -> None:
        """Appends bytes."""
        self.data += data
        self.size = len(self.data)


def alignment_of(statement: Statement, word: str, rest: str, symbols: Symbols) -> int:
    """The number of bytes that an alignment directive aligns to."""
    value = _number(statement, rest.partition(",")[0], symbols)
    step = 1 << value if ALIGNMENTS[word] and 0 <= value < 32 else value
    if not 0 <= step <= _MOST_ALIGNMENT or step & (step - 1):
        raise statement.error(f"an alignment of {step} is no power of two up to {_MOST_ALIGNMENT}")
    return step or 1


def gap_of(statement: Statement, word: str, rest: str, symbols: Symbols) -> bytes:
    """The bytes of `.zero count, value` and its kin, and of `.fill count, size, value`."""
    numbers = [_number(statement, part, symbols) for part in rest.split(",")]
    size = min(numbers[1], 8) if word == ".fill" and len(numbers) > 1 else 1
    value = numbers[2] if word == ".fill" and len(numbers) > 2 else numbers[1] if word != ".fill" and numbers[1:] else 0
    if not 0 <= numbers[0] * size <= MOST_BYTES or size < 0:
        raise statement.error(f"{statement.text[:60]} gives more than {MOST_BYTES} bytes, or fewer than none")
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little") * numbers[0]


def add_data(section: Section, statement: Statement, word: str, rest: str, symbols: Symbols) -> None:
    """Appends what a data directive says. Raises `CompileError` where it cannot be read."""
    if word in GAPS:
        section.add(gap_of(statement, word, rest, symbols))
    elif word in STRINGS:
        found = QUOTED.findall(rest)
        if not found or QUOTED.sub("", rest).strip(" ,"):
            raise statement.error(f"'{rest[:60]}' is no string in quotes")
        section.add(b"".join(unescaped_bytes(part, 8) + STRINGS[word] for part in found))
    else:
        for part in _parts(rest):
            value: int | float | None = number(part)
            if word in FLOATS:
                section.add(_float(statement, part, FLOATS[word]))
            elif isinstance(value, int):
                section.add(_integer(statement, value, INTEGERS[word]))
            else:
                _add_expression(section, statement, part, INTEGERS[word], symbols)
    if section.size > MOST_BYTES:
        raise statement.error(f"section {section.name} has more than {MOST_BYTES} bytes")


def _add_expression(section: Section, statement: Statement, text: str, size: int, symbols: Symbols) -> None:
    try:
        node = parse(text)
        value = symbols.number_of(text)
    except Unknown:
        section.relocations.append(Relocation(section.size, size, node, statement))
        value = 0
    except BadExpression as error:
        raise statement.error(str(error)) from None
    section.add(_integer(statement, value, size))


def _integer(statement: Statement, value: int, size: int) -> bytes:
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise statement.error(f"{value} does not fit {size} bytes")
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _parts(text: str) -> list[str]:
    """What commas outside of brackets part."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _number(statement: Statement, text: str, symbols: Symbols) -> int:
    try:
        return symbols.number_of(text.strip())
    except BadExpression as error:
        raise statement.error(f"{error}, and a number is needed here") from None


def _float(statement: Statement, text: str, code: str) -> bytes:
    try:
        return struct.pack(code, float(text))
    except (ValueError, OverflowError):
        raise statement.error(f"'{text[:60]}' is no number of the directive's format") from None
