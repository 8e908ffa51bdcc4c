"""Which bytes of a workgroup's LDS hold a value: a byte of state for each, which reads and writes of LDS look at.

What is read before it was written, or holds an undefined value, leaves the register undefined in that lane. A register
of which some bytes are defined counts as defined: compilers read three bytes, or a structure with gaps, by its dwords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flylab.emulator.checks.definedness.places import VECTOR, Item, Known, row_values
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.probe import Frame, Piece
from flylab.emulator.probes.shadow import LDS_NOTES, RowShadow, WaveShadow
from flylab.emulator.state import M0, SHARED_APERTURE, WAVE_SIZE, Worker

SIZES = (1, 2, 4, 8, 12, 16)
# States of a byte; at first it is 0, as nobody wrote it. ONLY_DEFINED are bits that the first alone has.
DEFINED, STORED_UNDEFINED, ONLY_DEFINED = 0xFF, 0x0F, 0xF0
UNROLLED = 4
_PARTS: dict[int, tuple[tuple[int, str], ...]] = {
    1: ((0, "i8"),), 2: ((0, "i16"),), 4: ((0, "i32"),), 8: ((0, "i64"),), 12: ((0, "i64"), (8, "i32")),
    16: ((0, "i64"), (8, "i64"))}
# Of a note: set where the byte holds what was undefined when it was stored.
WAS_STORED = 1 << 32


class _Lanes:
    """Where the bytes of lanes lie, in a helper: `row` points to their addresses."""

    def __init__(self, b: Builder):
        self.b = b
        self.states = b.field("%w", Worker, "lds_defined").name
        self.end = b.field("%w", Worker, "lds_bytes").to("i32")
        self.offset = Value(b, "%offset", "i32")

    def at(self, lane: Value) -> str:
        """The pointer to the states of a lane's bytes; of an address outside, which the handler refuses, beyond all."""
        address = self.b.load(self.b.at("%row", lane.shl(2)), "i32") + self.offset
        return self.b.at(self.states, address.call("umin", self.end))

    def together(self, lane: Value, size: int) -> Value:
        """All ones where all bytes of a lane are defined, an i64."""
        place = self.at(lane)
        found = self.b.const(-1, "i64")
        for at, type_ in _PARTS[size]:
            found = found & self.b.load(self.b.at(place, at), type_, align=1).to("i64", True)
        return found

    def none(self, lane: Value, size: int) -> Value:
        """True where no byte of a lane is defined, of 4 at most."""
        (_, type_), = _PARTS[size]
        bits = int.from_bytes(bytes([ONLY_DEFINED] * size), "little")
        return (self.b.load(self.at(lane), type_, align=1).to("i32") & bits).cmp("eq", 0)

    def put(self, lane: Value, size: int, defined: Value) -> None:
        """Sets the bytes of a lane; `defined` is an i1."""
        place = self.at(lane)
        for at, type_ in _PARTS[size]:
            stored = self.b.const(int.from_bytes(bytes([STORED_UNDEFINED] * 8), "little"), "i64").to(type_)
            self.b.store(defined.to(type_, True) | stored, self.b.at(place, at), 1)


def _unsure_text(size: int, name: str) -> str:
    """The active lanes of which a byte in LDS is not defined."""
    b = Builder()
    lanes, active = _Lanes(b), Value(b, "%active", "i64")
    with b.when(active.cmp("eq", -1)):
        with b.repeat(WAVE_SIZE // UNROLLED, b.const(-1, "i64")) as loop:
            every = loop.values[0]
            for n in range(UNROLLED):
                every = every & lanes.together(loop.index * UNROLLED + n, size)
            loop.values = [every]
        with b.when(loop.values[0].cmp("eq", -1)):
            b.do("ret i64 0")
            b.label(b.fresh("unreached"))
    return _collected(b, name, lambda lane: lanes.together(lane, size).cmp("ne", -1))


def _undefined_text(size: int, name: str) -> str:
    """The active lanes of which no byte in LDS is defined."""
    b = Builder()
    lanes = _Lanes(b)
    return _collected(b, name, lambda lane: lanes.none(lane, size))


def _collected(b: Builder, name: str, found: Callable[[Value], Value]) -> str:
    """The rest of a helper: the active lanes in which something is found."""
    b.set_field("%w", Worker, "cursor", 0)
    with b.set_bits(Value(b, "%active", "i64")) as (lane, _), b.when(found(lane)):
        b.set_field("%w", Worker, "cursor", b.field("%w", Worker, "cursor") | b.const(1, "i64").shl(lane))
    b.do(f"ret {b.field('%w', Worker, 'cursor').typed}")
    return b.function(name, "i64 @(ptr %w, ptr %row, i32 %offset, i64 %active)")


def _write_text(size: int, name: str) -> str:
    """The bytes of active lanes are written; `valid` says in which lanes with what is defined."""
    b = Builder()
    lanes, active, valid = _Lanes(b), Value(b, "%active", "i64"), Value(b, "%valid", "i64")
    with b.when((active & valid).cmp("eq", -1)):
        with b.repeat(WAVE_SIZE // UNROLLED) as loop:
            for n in range(UNROLLED):
                lanes.put(loop.index * UNROLLED + n, size, b.const(True, "i1"))
        b.do("ret void")
        b.label(b.fresh("unreached"))
    with b.set_bits(active) as (lane, _):
        lanes.put(lane, size, (valid.shr(lane) & 1).cmp("ne", 0))
    b.do("ret void")
    return b.function(name, "void @(ptr %w, ptr %row, i32 %offset, i64 %active, i64 %valid)")


def _unsure_name(size: int) -> str:
    return f"lds unsure {size}"


def _undefined_name(size: int) -> str:
    return f"lds undefined {size}"


def _write_name(size: int) -> str:
    return f"lds written {size}"


def _of_sizes(name: Callable[[int], str], write: Callable[..., str],
              sizes: Sequence[int] = SIZES) -> dict[str, Callable[[str], str]]:
    return {name(size): partial(write, size) for size in sizes}


HELPERS: Mapping[str, Callable[[str], str]] = {
    **_of_sizes(_unsure_name, _unsure_text), **_of_sizes(_undefined_name, _undefined_text, SIZES[:3]),
    **_of_sizes(_write_name, _write_text)}


def read_piece(address: int, offsets: Sequence[int], result: int, size: int, kept: bool, moved: bool) -> Piece:
    """A read of `size` bytes a lane at each of some offsets from the addresses in a row, to rows from `result` on.

    Where registers are `kept` in part, they stay defined in lanes where they were; where lanes are `moved` they are
    defined if one is.
    """
    names = _unsure_name(size), _undefined_name(min(size, 4))
    return Piece(f"lds read {size} {len(offsets)} {kept} {moved}",
                 lambda frame: _emit_read(frame, len(offsets), size, kept, moved, names), (address, result, *offsets),
                 names)


def _lanes_of(frame: Frame, name: str, row: str, offset: Value) -> Value:
    found = frame.call(name, "%w", row, offset, frame.exec, result="i64")
    assert found is not None
    return found


def _emit_read(frame: Frame, places: int, size: int, kept: bool, moved: bool, names: tuple[str, ...]) -> None:
    b = frame.b
    row, known = row_values(b, frame.word(0)), Known(frame, frame.exec)
    registers = max(size // 4, 1)
    for place in reversed(range(places)):
        offset = frame.word(2 + place)
        unsure = _lanes_of(frame, names[0], row, offset)
        if moved:
            unsure = unsure.cmp("eq", frame.exec).select(unsure, 0)
        results = [Item(VECTOR, 1, registers * place + n) for n in range(registers)]
        for item in results:
            known.number(item)
        some, fast, end = (b.fresh(prefix) for prefix in ("some", "fast", "end"))
        b.branch(unsure.cmp("ne", 0), some, fast)
        b.label(fast)
        for item in results:
            at = known.row(item)
            b.set_field(at, RowShadow, "valid", b.field(at, RowShadow, "valid") | frame.exec)
        b.jump(end)
        b.label(some)
        for n, item in reversed(list(enumerate(results))):  # so that what is noted is of the first
            bad = unsure if moved else _lanes_of(frame, names[1], row, offset + 4 * n)
            with b.when(bad.cmp("ne", 0)):
                _note(frame, row, offset + (0 if moved else 4 * n), bad)
            at = known.row(item)
            old = b.field(at, RowShadow, "valid")
            b.set_field(at, RowShadow, "valid", (old if kept else old & ~frame.exec) | frame.exec & ~bad)
            # A register that is defined has no origin that counts.
            b.set_field(at, RowShadow, "origin", (frame.index + 1).to("i32"))
        b.jump(end)
        b.label(end)


def _note(frame: Frame, row: str, offset: Value, lanes: Value) -> None:
    """Keeps which byte of LDS an undefined value was read from, as one of the last few."""
    b = frame.b
    origin = frame.index + 1
    address = b.load(b.at(row, lanes.count("cttz").shl(2)), "i32") + offset
    place = address.call("umin", b.field("%w", Worker, "lds_bytes").to("i32"))
    state = b.load(b.at(b.field("%w", Worker, "lds_defined").name, place), "i8", align=1)
    stored = state.cmp("eq", STORED_UNDEFINED).select(b.const(WAS_STORED, "i64"), 0)
    at = _note_at(b, frame.shadow, origin)
    b.store(origin, at, 8)
    b.store(address.to("i64") + 1 | stored, b.at(at, 8), 8)


def _note_at(b: Builder, shadow: str, origin: Value) -> str:
    return b.at(shadow, (origin & (LDS_NOTES - 1)) * 16 + WaveShadow.lds_notes.offset)


def note_of(b: Builder, shadow: str, origin: Value) -> Value:
    """What is kept of an origin: the byte's address + 1, and whether it was stored; 0 where it is not known."""
    origin = origin.to("i64")
    at = _note_at(b, shadow, origin)
    return b.load(at, "i64", align=8).cmp("eq", origin).select(b.load(b.at(at, 8), "i64", align=8), 0)


def write_piece(address: int, places: Sequence[tuple[int, int]], size: int) -> Piece:
    """A write of `size` bytes a lane to addresses in a row: at each place an offset, and the first row of its data."""
    words = (address, *(word for place in places for word in place))
    unit = min(size, 4)
    names = tuple(dict.fromkeys((_write_name(size), _write_name(unit))))
    return Piece(f"lds write {size} {len(places)}", lambda frame: _emit_write(frame, len(places), size, names), words,
                 names)


def _emit_write(frame: Frame, places: int, size: int, names: tuple[str, ...], lanes: Value | None = None) -> None:
    b = frame.b
    active = frame.exec if lanes is None else lanes
    row, known, registers = row_values(b, frame.word(0)), Known(frame, active), max(size // 4, 1)
    for place in range(places):
        offset, first = frame.word(1 + 2 * place), 2 + 2 * place
        data = [known.lanes(Item(VECTOR, first, n)) | ~active for n in range(registers)]
        every = data[0]
        for valid in data[1:]:
            every = every & valid
        some, fast, end = (b.fresh(prefix) for prefix in ("some", "fast", "end"))
        b.branch(every.cmp("ne", -1), some, fast)
        b.label(fast)
        frame.call(names[0], "%w", row, offset, active, every)
        b.jump(end)
        b.label(some)
        for n, valid in enumerate(data):
            frame.call(names[-1], "%w", row, offset + 4 * n, active, valid)
        b.jump(end)
        b.label(end)


def generic_write_piece(address: int, offset: int, data: int, size: int) -> Piece:
    """A flat store, of which those lanes count whose address leads to LDS."""
    unit = min(size, 4)
    names = tuple(dict.fromkeys((_write_name(size), _write_name(unit))))

    def emit(frame: Frame) -> None:
        b = frame.b
        high = b.load(row_values(b, frame.word(0) + 1), "i32", WAVE_SIZE, 64)
        shared = high.cmp("eq", SHARED_APERTURE >> 32).recast("i64", 0) & frame.exec
        with b.when(shared.cmp("ne", 0)):
            _emit_write(frame, 1, size, names, shared)

    return Piece(f"lds generic write {size}", emit, (address, offset, data), names)


def lanes_write_piece(offset: int, size: int, mask: int, data: int | None = None) -> Piece:
    """Lanes that write side by side from M0 (its bits of `mask`) on: loads to LDS, and ds_write_addtid from a row."""

    def emit(frame: Frame) -> None:
        b = frame.b
        states, end = b.field("%w", Worker, "lds_defined").name, b.field("%w", Worker, "lds_bytes")
        start = ((b.load(b.at("%s", 4 * M0), "i32") & mask) + frame.word(0)).to("i64")
        valid = b.const(-1, "i64") if data is None else Known(frame, frame.exec).lanes(Item(VECTOR, 1))
        with b.set_bits(frame.exec) as (lane, _):
            state = (valid.shr(lane) & 1).cmp("ne", 0).select(b.const(-1, "i32"), STORED_UNDEFINED * 0x01010101)
            for at in range(0, size, 4):
                b.store(state, b.at(states, (start + lane * size + at).call("umin", end)), 1)

    return Piece(f"lds lanes {size} {mask:x} {data is None}", emit, (offset, *([] if data is None else [data])))
