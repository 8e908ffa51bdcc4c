"""Handlers of the rows that compute: scalar, vector and packed instructions.

A vector handler works on all 64 lanes as one IR value where its text is short, else in a loop over 16 lanes, so that
the values of one step fit the host's registers. Every source is read before any result is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from flylab.emulator.decoding.table import PACKED_FAMILY, SCALAR_FAMILY, TYPES, Row, Type
from flylab.emulator.handlers.ir import Builder, Value, width
from flylab.emulator.handlers.lanes import Moved, move
from flylab.emulator.numbers.float_mode import Mode, apply
from flylab.emulator.numbers.rounding import Rounding
from flylab.emulator.state import EXEC, M0, RECORD_BYTES, ROW_BYTES, SCC, VCC, WAVE_SIZE, Worker, slot_offset

HANDLER = "i32 @(ptr %r, ptr %v, ptr %s, ptr %w)"
CHUNK = 16
# A handler of more lines than this runs in steps of CHUNK lanes.
LONG = 60


class Source(NamedTuple):
    """A source as the handler sees it: where it comes from, the record's slot, modifiers.

    `select` is how much of the register is taken: "" for all, else BYTE_0 ... BYTE_3, WORD_0, WORD_1. `control` is
    which lane each lane reads, in the words of DPP: "" for its own.
    """

    kind: str
    slot: int
    negative: bool = False
    absolute: bool = False
    sign_extend: bool = False
    select: str = ""
    control: str = ""

    def __str__(self) -> str:
        marks = "-" * self.negative + "|" * self.absolute + "x" * self.sign_extend
        return f"{self.kind}{marks}{self.select}{self.control}"


@dataclass(frozen=True)
class Form:
    """What makes one handler of a row: the kinds of its operands and its modifiers; `key` names it.

    `lanes` are those that DPP's masks let through, `zero_fill` its `bound_ctrl`: a lane whose source is none or is
    inactive reads 0, where else it takes no part. `index_limit` is the slot with the end of the vector registers
    where the instruction's are numbered relative to M0 (VGPR indexing), else -1.
    """

    row: Row
    results: tuple[int, ...]
    sources: tuple[Source, ...]
    clamp: bool = False
    scale: float = 1.0
    select: str = ""
    unused: str = ""
    mode: Mode = Mode()
    lanes: int = (1 << WAVE_SIZE) - 1
    zero_fill: bool = False
    index_limit: int = -1

    @property
    def key(self) -> str:
        """The handler's name: two forms with the same key have the same code."""
        mode = self.mode if self.row.uses_floats or self.row.clamped else None
        return _key(self.row.mnemonic, self.row.sources, self.results, self.sources, self.clamp, self.scale,
                    self.select, self.unused, mode, self.lanes, self.zero_fill, self.index_limit)


@lru_cache(maxsize=4096)
def _key(mnemonic: str, types: tuple[str, ...], results: tuple[int, ...], sources: tuple[Source, ...],
         *rest: Any) -> str:
    return f"{mnemonic} {types} {results} {' '.join(f'{s}@{s.slot}' for s in sources)} {rest}"


def next_record(b: Builder) -> None:
    """The end of a handler: on to the next instruction's."""
    tail_call(b, b.at("%r", RECORD_BYTES))


def tail_call(b: Builder, record: str) -> None:
    """Gives the wave over to the handler of another record."""
    handler = b.load(record, "ptr", align=8)
    status = b.let(f"musttail call i32 {handler.name}(ptr {record}, ptr %v, ptr %s, ptr %w)", "i32")
    b.do(f"ret {status.typed}")


def slot(b: Builder, index: int, type_: str = "i32") -> Value:
    """What the record holds in an operand slot."""
    return b.load(b.at("%r", slot_offset(index)), type_)


def write(form: Form, name: str) -> str:
    """The IR of a handler."""
    if form.row.family == SCALAR_FAMILY:
        return _Scalar(form).text(name)
    handler = _Packed if form.row.family == PACKED_FAMILY else _Vector
    wide = handler(form, WAVE_SIZE)
    text = wide.text(name)
    return text if len(wide.b.lines) <= LONG else handler(form, CHUNK).text(name)


class _Handler:
    """What scalar and vector handlers share: sources to values, values to result bits."""

    lanes = 0

    def __init__(self, form: Form):
        self.form, self.b = form, Builder()
        apply(form.mode, self.b, form.row, Rounding)

    def raw(self, source: Source, registers: int) -> Value:
        """The 32 or 64 bits of a scalar register or constant, in every lane."""
        type_ = "i64" if registers == 2 else "i32"
        if source.kind == "k":
            return slot(self.b, source.slot, type_).splat(self.lanes)
        return self.b.load(self.b.at("%s", slot(self.b, source.slot)), type_).splat(self.lanes)

    def value(self, source: Source, type_: Type) -> Value:
        """A source as the row's function wants it, modifiers applied."""
        bits = self.raw(source, type_.registers)
        if source.select:
            bits = _selected(bits, source)
        if type_.registers == 1 and type_.integer == "i16":
            bits = bits.to("i16")
        whole = bits
        if type_.is_float:
            bits = flushed(self.form.mode, bits, type_, 1)
        may_flush = bits is not whole
        if source.absolute:
            bits = bits & ~_sign(type_)
        if source.negative:
            bits = bits ^ _sign(type_)
        if not type_.is_float:
            return bits
        value = bits.bits(type_.bits)
        # Else LLVM makes x + (y flushed to zero) into "x, or x + y", and a signalling NaN x stays one.
        return (value.call("arithmetic.fence") if may_flush else value).to(type_.value)

    def result(self, value: Value, type_: Type) -> Value:
        """The bits of a result: scaled, clamped, rounded to its format."""
        if not type_.is_float:
            return value
        scaled = self.scaled(type_)
        if scaled:
            value = scaled.select(value * self.form.scale, value)
        if self.form.clamp:
            nan = value.cmp("uno", value)
            zeroed = self.b.where(self.form.mode.flag(self.b, "dx10_clamp"), nan)
            low = (value.cmp("ugt", 0.0) & ~zeroed).select(value, 0.0)
            value = low.cmp("ogt", 1.0).select(1.0, low)
        value = self.half(value) if type_.bits == "half" else value
        bits = flushed(self.form.mode, value.bits(type_.integer), type_, 2)
        if scaled:  # it makes -0 positive
            bits = (scaled & (bits & ~_sign(type_)).cmp("eq", 0)).select(0, bits)
        return bits

    def half(self, value: Value) -> Value:
        """A result as a half; where the mode says so, one beyond the range is the largest unless it was infinite."""
        found = narrow(value)
        if self.b.saturate is False or value.type == "half":
            return found
        beyond = found.call("fabs").cmp("oeq", math.inf) & value.call("fabs").cmp("one", math.inf)
        return self.b.where(self.b.saturate, beyond).select(found.like(65504.0).call("copysign", found), found)

    def scaled(self, type_: Type) -> Value | None:
        """Where the output modifier (mul:2, mul:4, div:2) counts: not in IEEE mode, nor where denormals are given.

        Source: AMD's ISA documents, "Output modifiers".
        """
        if self.form.scale == 1.0:
            return None
        b = self.b
        yes = b.const(True, "i1", self.lanes)
        return ~(b.where(self.form.mode.flag(b, _denormals(type_), 2), yes) | b.where(b.ieee, yes))

    def computed(self, arguments: list[Value]) -> tuple[Any, ...]:
        row = self.form.row
        function = row.clamped if self.form.clamp and row.clamped else row.compute
        found = function(*arguments)
        return found if isinstance(found, tuple) else (found,)


def flushed(mode: Mode, bits: Value, type_: Type, side: int) -> Value:
    """Float bits with denormals made zero, where the mode says so for sources (side 1) or results (side 2)."""
    kept = mode.flag(bits.b, _denormals(type_), side)
    if kept is True:
        return bits
    exponent = {"half": 0x7C00, "float": 0x7F800000, "double": 0x7FF0000000000000}[type_.bits]
    tiny = (bits & exponent).cmp("eq", 0)
    if isinstance(kept, Value):
        tiny = tiny & ~kept.splat(bits.lanes)
    return tiny.select(bits & _sign(type_), bits)


def narrow(value: Value) -> Value:
    """A float or double as half, rounded once: a double goes to float with the lost bits kept in its last one."""
    if value.type != "double":
        return value.to("half")
    with value.b.to_nearest():
        near = value.to("float")
        back = near.to("double")
        bits = near.bits("i32")
        further = back.call("fabs").cmp("ogt", value.call("fabs"))
        odd = (further.select(bits - 1, bits)) | 1
        found = back.cmp("one", value).select(odd, bits).bits("float").to("half")
    return value.b.rounded("fptrunc", found, value)


def _denormals(type_: Type) -> str:
    return "denormals_32" if type_.bits == "float" else "denormals_16_64"


def _sign(type_: Type) -> int:
    """The sign bit of a float's bits, as a signed constant."""
    return -(1 << (width(type_.bits) - 1))


def _selected(bits: Value, source: Source) -> Value:
    """A byte or half of a register, extended to 32 bits."""
    kind, _, number = source.select.partition("_")
    size = 8 if kind == "BYTE" else 16
    up = bits.shl(32 - size - size * int(number))
    return up.sar(32 - size) if source.sign_extend else up.shr(32 - size)


class _Scalar(_Handler):
    """A handler of scalar registers."""

    def text(self, name: str) -> str:
        b, row = self.b, self.form.row
        sources = iter(self.form.sources)
        old = Source("s", self.form.results[0]) if self.form.results else None
        arguments = [self.implied(t) if t[0] == "." else self.value(old if old and t[0] == "@" else next(sources),
                                                                    TYPES[t.lstrip("@")]) for t in row.sources]
        places = iter(self.form.results)
        for type_name, value in zip(row.results, self.computed(arguments), strict=True):
            if type_name == ".scc":
                b.store(value.to("i32"), b.at("%s", 4 * SCC))
            elif type_name[0] == ".":
                b.store(value, b.at("%s", 4 * {".exec": EXEC, ".vcc": VCC}[type_name]))
            else:
                b.store(value, b.at("%s", slot(b, next(places))))
        next_record(b)
        return b.function(name, HANDLER)

    def implied(self, type_name: str) -> Value:
        if type_name == ".scc":
            return self.b.load(self.b.at("%s", 4 * SCC), "i32").cmp("ne", 0)
        return self.b.load(self.b.at("%s", 4 * {".exec": EXEC, ".vcc": VCC}[type_name]), "i64")


class _Vector(_Handler):
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


class _Packed(_Vector):
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
