"""Where a wave's shadow keeps what is known of a register, and how probes read and write it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass

from flylab.codegen.assembly.effects import Span
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.probe import Frame
from flylab.emulator.probes.shadow import ROWS_AT, RowShadow, WaveShadow
from flylab.emulator.state import ROW_BYTES

ROW_STEP = ctypes.sizeof(RowShadow)
SGPR_VALID, SGPR_ORIGIN = WaveShadow.sgpr_valid.offset, WaveShadow.sgpr_origin.offset

# The origin of a register that was never written: this bit, and which register it is.
NEVER = 1 << 31
SCALAR_ORIGIN = 1 << 12
"""Set of a scalar register; of a vector register the rest is its row."""

VECTOR, MOVED, SCALAR, MASK = "v", "x", "s", "m"


@dataclass(frozen=True)
class Item:
    """A register as an operand: its kind, the word of the piece that says where it is, how many registers after that.

    The kinds: a row of lanes; a row of which lanes read others (defined where any active lane is); a scalar register,
    for all lanes; a pair of scalar registers with a bit for each lane.
    """

    kind: str
    word: int
    register: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.word}.{self.register}" if self.register else f"{self.kind}{self.word}"


class Words:
    """The words of a piece, each place once."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def put(self, value: int) -> int:
        """The number of the word that holds a value."""
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)


def row_of(span: Span, registers: Registers) -> int:
    """The row of a span's first vector register."""
    return span.first + (registers.accumulators if span.file == "a" else 0)


def place_of(span: Span, registers: Registers) -> int:
    """The word for a span: a vector register's row, or a scalar register's number."""
    return span.first if span.file == "s" else row_of(span, registers)


def items(span: Span, registers: Registers, words: Words, kind: str = "") -> list[Item]:
    """The registers of a span."""
    word = words.put(place_of(span, registers))
    return [Item(kind or (SCALAR if span.file == "s" else VECTOR), word, n) for n in range(span.count)]


class Known:
    """What a probe reads and writes of the shadow, each register once."""

    def __init__(self, frame: Frame, active: Value):
        self.frame, self.b, self.active = frame, frame.b, active
        self._places: dict[tuple[int, int], Value] = {}
        self._lanes: dict[Item, Value] = {}

    def number(self, item: Item) -> Value:
        """Its row, or the number of the scalar register."""
        key = item.word, item.register
        if key not in self._places:
            self._places[key] = self.frame.word(item.word) + item.register
        return self._places[key]

    def row(self, item: Item) -> str:
        """The pointer to the shadow of a row."""
        return row_shadow(self.b, self.frame.shadow, self.number(item))

    def scalar(self, item: Item, at: int = SGPR_VALID) -> str:
        """The pointer to the valid bits of a scalar register, or to its origin."""
        return self.b.at(self.frame.shadow, self.number(item) * 4 + at)

    def lanes(self, item: Item) -> Value:
        """The lanes in which an operand is defined, an i64."""
        if item not in self._lanes:
            self._lanes[item] = self._read(item)
        return self._lanes[item]

    def _read(self, item: Item) -> Value:
        b = self.b
        if item.kind == SCALAR:
            return b.load(self.scalar(item), "i32").cmp("eq", -1).to("i64", True)
        if item.kind == MASK:
            return b.load(self.scalar(item), "i64")
        valid = b.field(self.row(item), RowShadow, "valid")
        return (valid & self.active).cmp("ne", 0).to("i64", True) if item.kind == MOVED else valid

    def origin(self, item: Item) -> Value:
        """What left an operand undefined, an i32."""
        if item.kind in (SCALAR, MASK):
            return self.b.load(self.scalar(item, SGPR_ORIGIN), "i32")
        return self.b.field(self.row(item), RowShadow, "origin")

    def first_origin(self, sources: Iterable[Item], lanes: Value) -> Value:
        """The origin of the first of the sources that is undefined in one of the lanes."""
        found = self.b.const(0, "i32")
        for item in reversed(list(sources)):
            found = (lanes & ~self.lanes(item)).cmp("ne", 0).select(self.origin(item), found)
        return found


def row_shadow(b: Builder, shadow: str, row: Value) -> str:
    """The pointer to the shadow of a row, whose number is an i32."""
    return b.at(shadow, row.to("i64") * ROW_STEP + ROWS_AT)


def row_values(b: Builder, row: Value) -> str:
    """The pointer to the values of a row."""
    return b.at("%v", row.to("i64") * ROW_BYTES)
