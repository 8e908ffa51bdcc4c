"""Handlers of rows on vector registers.

A handler works on all 64 lanes as one IR value where its text is short, else in a loop over 16 lanes, so that the
values of one step fit the host's registers. Every source is read before any result is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.emulator.decoding.table import TYPES, Type
from flylab.emulator.handlers.forms import Form, Source
from flylab.emulator.handlers.handler import Handler
from flylab.emulator.handlers.ir import Value
from flylab.emulator.handlers.lanes import Moved, move
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.state import EXEC, M0, ROW_BYTES, VCC, WAVE_SIZE, Worker

CHUNK = 16


class Vector(Handler):
    """A handler of vector registers, `lanes` of them at a time."""

    def __init__(self, form: Form, lanes: int):
        super().__init__(form)
        self.lanes = lanes
        self.loop = lanes < WAVE_SIZE
        self.chunk = Value(self.b, "%chunk", "i64")
        self.places: dict[int, Value] = {}
        """By slot: where a vector register is, if not where the slot says."""
        self.moved: Moved = {}

    def whole_row(self, record_slot: int, register: int = 0) -> str:
        """The pointer to a vector register."""
        place = self.places.get(record_slot) or slot(self.b, record_slot)
        return self.b.at(self.b.at("%v", place), ROW_BYTES * register)

    def row(self, record_slot: int, register: int = 0) -> str:
        """The pointer to this step's lanes of a vector register."""
        row = self.whole_row(record_slot, register)
        return self.b.at(row, self.chunk.shl(2)) if self.loop else row

    def part(self, record_slot: int, register: int) -> Value:
        """This step's lanes of a vector register, or of what DPP made of it."""
        if (record_slot, register) not in self.moved:
            return self.b.load(self.row(record_slot, register), "i32", self.lanes, 64)
        if not self.loop:
            return self.moved[record_slot, register]
        place = Worker.addresses.offset + ROW_BYTES * list(self.moved).index((record_slot, register))
        return self.b.load(self.b.at(self.b.at("%w", place), self.chunk.shl(2)), "i32", self.lanes)

    def load(self, record_slot: int, registers: int) -> Value:
        low = self.part(record_slot, 0)
        return low if registers == 1 else low.to("i64") | self.part(record_slot, 1).to("i64").shl(32)

    def raw(self, source: Source, registers: int) -> Value:
        return self.load(source.slot, registers) if source.kind == "v" else super().raw(source, registers)

    def mask(self, bits: Value) -> Value:
        """A lane mask as one i1 a lane of this step."""
        if self.loop:
            bits = bits.shr(self.chunk).to(f"i{self.lanes}")
        return self.b.let(f"bitcast {bits.typed} to <{self.lanes} x i1>", "i1", self.lanes)

    def mask_at(self, offset: Value | int) -> Value:
        return self.mask(self.b.load(self.b.at("%s", offset), "i64"))

    def argument(self, type_name: str, sources: Any) -> Value:
        b = self.b
        if type_name == ".lane":
            ids = ", ".join(f"i32 {n}" for n in range(self.lanes))
            lane = Value(b, f"<{ids}>", "i32", self.lanes)
            return lane + self.chunk.to("i32").splat(self.lanes) if self.loop else lane
        if type_name[0] == ".":
            return self.mask_at(4 * {".exec": EXEC, ".vcc": VCC}[type_name])
        if type_name[0] == "@":
            return self.value(Source("v", self.form.results[0]), TYPES[type_name[1:]])
        source = next(sources)
        if type_name == "mask":
            return self.mask_at(slot(b, source.slot)) if source.kind == "s" else self.mask(slot(b, source.slot, "i64"))
        return self.value(source, TYPES[type_name])

    def text(self, name: str) -> str:
        b, row = self.b, self.form.row
        masks = [t for t in row.results if t in ("mask", ".exec", ".vcc")]
        b.do(f"%exec = load i64, ptr {b.at('%s', 4 * EXEC)}, align 4")
        exec_ = Value(b, "%exec", "i64")
        if self.form.index_limit >= 0:
            self.place_registers()
        if any(source.control for source in self.form.sources):
            exec_ = self.move_lanes(exec_)
        if self.loop:
            b.jump("before")
            b.label("before")
            b.jump("step")
            b.label("step")
            b.do("%chunk = phi i64 [ 0, %before ], [ %chunk_next, %step ]")
            for n in range(len(masks)):
                b.do(f"%mask{n} = phi i64 [ 0, %before ], [ %mask_next{n}, %step ]")
        vectors, found = self.results()
        self.store(vectors, exec_)
        if self.loop:
            b.do("%chunk_next = add i64 %chunk, " + str(self.lanes))
            b.branch(b.let(f"icmp eq i64 %chunk_next, {WAVE_SIZE}", "i1"), "done", "step")
            b.label("done")
        for place, bits in found:
            b.store(bits & exec_, b.at("%s", place))
        next_record(b)
        return b.function(name, HANDLER)

    def types(self) -> list[tuple[Source, Type]]:
        """The sources that the text names, with their types; a packed form has them twice."""
        named = self.form.row.named_sources
        return [(source, TYPES[named[n % len(named)]]) for n, source in enumerate(self.form.sources)]

    def place_registers(self) -> None:
        """VGPR indexing: M0 has an index, and a bit for each operand that it counts for.

        Beyond the wave's registers a source is v0, and an instruction whose result is there does nothing.
        Source: CDNA3 ISA, "VGPR indexing" and "Out-of-range behavior".
        """
        b, row = self.b, self.form.row
        state = b.load(b.at("%s", 4 * M0), "i32")
        limit = slot(b, self.form.index_limit)

        def placed(record_slot: int, bit: int, registers: int) -> tuple[Value, Value]:
            moved = (state.shr(12 + bit) & 1).cmp("ne", 0).select((state & 0xFF).shl(8), 0)
            place = slot(b, record_slot) + moved
            return place, (place + ROW_BYTES * registers).cmp("ugt", limit)

        for n, (source, type_) in enumerate(self.types()):
            if source.kind == "v":
                place, outside = placed(source.slot, n % len(row.named_sources), type_.registers)
                self.places[source.slot] = outside.select(0, place)
        for record_slot, name in zip(self.form.results, row.named_results, strict=True):
            if name != "mask":
                self.places[record_slot], outside = placed(record_slot, 3, TYPES[name].registers)
                with b.when(outside):
                    next_record(b)
                    b.label(b.fresh("unreached"))

    def move_lanes(self, exec_: Value) -> Value:
        """DPP: the sources that lanes read of others, kept in the worker's scratch for a loop; who takes part."""
        b, form = self.b, self.form
        self.moved, exec_ = move(b, self.types(), self.whole_row, exec_, form.lanes, form.zero_fill)
        if self.loop:
            for n, value in enumerate(self.moved.values()):
                b.store(value, b.at("%w", Worker.addresses.offset + ROW_BYTES * n))
        return exec_

    def results(self) -> tuple[list[tuple[int, Type, Value]], list[tuple[Value | int, Value]]]:
        """The vector results (slot, type, bits) and the mask results (place, bits)."""
        b, row, sources, places = self.b, self.form.row, iter(self.form.sources), iter(self.form.results)
        values = self.computed([self.argument(t, sources) for t in row.sources])
        vectors: list[tuple[int, Type, Value]] = []
        masks: list[tuple[Value | int, Value]] = []
        for type_name, value in zip(row.results, values, strict=True):
            if type_name in ("mask", ".exec", ".vcc"):
                place = slot(b, next(places)) if type_name == "mask" else 4 * {".exec": EXEC, ".vcc": VCC}[type_name]
                masks.append((place, self.mask_bits(value, len(masks))))
            else:
                vectors.append((next(places), TYPES[type_name], self.result(value, TYPES[type_name])))
        return vectors, masks

    def mask_bits(self, value: Value, number: int) -> Value:
        """The bits of an i1 result; in a loop, those of the steps so far."""
        b = self.b
        bits = b.let(f"bitcast {value.typed} to i{self.lanes}", f"i{self.lanes}").to("i64")
        if not self.loop:
            return bits
        placed = bits.shl(self.chunk)
        b.do(f"%mask_next{number} = or i64 %mask{number}, {placed.name}")
        return Value(b, f"%mask_next{number}", "i64")

    def store(self, vectors: list[tuple[int, Type, Value]], exec_: Value) -> None:
        """Writes vector results: outright where every lane is active, else mixed with what was there."""
        b = self.b
        stores = []
        for place, type_, value in vectors:
            value = self.placed(place, type_, value)
            for register in range(type_.registers):
                part = value.shr(32 * register).to("i32") if type_.registers > 1 else value
                stores.append((self.row(place, register), part))
        if not stores:
            return
        if not self.loop:
            full = exec_.cmp("eq", -1)
            b.branch(full, "full", "partial")
            b.label("full")
            for pointer, part in stores:
                b.store(part, pointer, 64)
            b.jump("stored")
            b.label("partial")
        active = self.mask(exec_)
        for pointer, part in stores:
            b.store(active.select(part, b.load(pointer, "i32", self.lanes, 64)), pointer, 64)
        if not self.loop:
            b.jump("stored")
            b.label("stored")

    def placed(self, place: int, type_: Type, value: Value) -> Value:
        """A result of 16 bits as 32: upper half cleared or kept; or a part of the register, as `dst_sel` says."""
        form = self.form
        if type_.registers == 1 and value.type == "i16":
            value = value.to("i32")
        if not form.select:
            return _beside(type_.name[-1], value, lambda: self.load(place, 1))
        kind, _, number = form.select.partition("_")
        size = 8 if kind == "BYTE" else 16
        shift = size * int(number)
        field = (1 << size) - 1
        if form.unused == "UNUSED_SEXT":
            return value.shl(32 - size).sar(32 - size - shift)
        placed = (value & field).shl(shift)
        if form.unused == "UNUSED_PRESERVE":
            placed = placed | self.load(place, 1) & ~(field << shift)
        return placed


def _beside(suffix: str, value: Value, old: Callable[[], Value]) -> Value:
    """A result of 16 bits beside what the suffix of its type keeps of the register."""
    if suffix == "^":
        return value.shl(16) | old() & 0xFFFF
    return value | old() & -0x10000 if suffix == "+" else value


class Packed(Vector):
    """A handler that does its row twice, for the low and the high half of a result; its form has sources for both."""

    def results(self) -> tuple[list[tuple[int, Type, Value]], list[tuple[Value | int, Value]]]:
        row, sources = self.form.row, iter(self.form.sources)
        halves = []
        for _ in range(2):
            (value,) = self.computed([self.argument(t, sources) for t in row.sources])
            halves.append(self.result(value, TYPES[row.results[0]]))
        size = int(halves[0].type[1:])
        whole = TYPES["b32" if size == 16 else "b64"]
        low, high = (half.to(whole.bits) for half in halves)
        return [(self.form.results[0], whole, low | high.shl(size))], []
