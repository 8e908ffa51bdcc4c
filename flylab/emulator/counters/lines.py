"""Counting accesses of memory by vectors: native code for cache lines, and for what a buffer's descriptor lets through.

The model of coalescing: four lanes at a time go to the cache, and make an access for each line of 128 bytes that they
touch; a wave's lines are counted beside that. Scratch memory is interleaved by the hardware, and so is a buffer with
SWIZZLE_ENABLE or ADD_TID_ENABLE: of these, bytes are counted and no lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.emulator.counters.tally import ACCESSES, LEAST, LINES, Seen, add, gain_at
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.memory.access import FlatPlace, Place, address_at
from flylab.emulator.memory.buffers import BufferPlace
from flylab.emulator.memory.moves import VectorAccess
from flylab.emulator.memory.typed import Formatted
from flylab.emulator.probes.probe import Frame, Piece, Site
from flylab.emulator.state import WAVE_SIZE, Worker

LINE_BITS = 7
LINE = 1 << LINE_BITS
"""Bytes of a line of the vector cache. Source: AMD's CDNA3 ISA document."""
QUAD = 4
"""Lanes that go to the cache together."""
HELPER = "lines"
SIGNATURE = "void @(ptr %tally, ptr %addresses, i64 %lanes, i64 %size, i64 %end)"
HASH_BITS = 8
HASH_FACTOR = 0x9E3779B97F4A7C15
NO_LINE = -1
"""What an empty place of the table holds: the number of no line."""


class _Lines:
    """The native function: what the accesses of `lanes` add, each of `size` bytes and of none from `end` on.

    The lines of the wave are kept in a hash table, those of the quad at hand in a list.
    """

    def __init__(self) -> None:
        self.b = b = Builder()
        self.table, self.quad, self.length, self.place = (b.let(f"alloca {type_}, align 64", "ptr").name for type_ in (
            f"[{1 << HASH_BITS} x i64]", f"[{QUAD * QUAD} x i64]", "i64", "i64"))

    def text(self, name: str) -> str:
        """The function's IR."""
        b = self.b
        for at in range(0, 1 << HASH_BITS, WAVE_SIZE):
            b.store(b.const(NO_LINE, "i64", WAVE_SIZE), b.at(self.table, 8 * at), 64)
        for gain in (ACCESSES, LINES, LEAST):
            b.store(b.const(0, "i64"), gain_at(b, "%tally", "memory", gain), 8)
        lanes, size, end = (Value(b, f"%{n}", "i64") for n in ("lanes", "size", "end"))
        with b.repeat(WAVE_SIZE // QUAD) as group:
            first = group.index * QUAD
            served = lanes.shr(first) & (1 << QUAD) - 1
            b.store(b.const(0, "i64"), self.length, 8)
            self.gain(LEAST, served.cmp("ne", 0).to("i64"))
            with b.set_bits(served) as (lane, _):
                address = b.load(b.at("%addresses", (first + lane).shl(3)), "i64", align=8)
                line = address.shr(LINE_BITS)
                count = ((address + size).call("umin", end) - 1).shr(LINE_BITS) - line + 1
                with b.set_bits(count.like(1).shl(count) - 1) as (number, _):
                    self.touch(line + number)
        b.do("ret void")
        return b.function(name, SIGNATURE)

    def gain(self, number: int, more: Value | int) -> None:
        """Adds to what the pattern adds."""
        place = gain_at(self.b, "%tally", "memory", number)
        self.b.store(self.b.load(place, "i64", align=8) + more, place, 8)

    def touch(self, line: Value) -> None:
        """Counts a line, unless the quad touched it; and as one of the wave's, unless the wave did."""
        b, done = self.b, self.b.fresh("done")
        length = b.load(self.length, "i64", align=8)
        with b.set_bits(length.like(1).shl(length) - 1) as (number, _):
            b.leave_when(b.load(b.at(self.quad, number.shl(3)), "i64", align=8).cmp("eq", line), done)
        b.store(line, b.at(self.quad, length.shl(3)), 8)
        b.store(length + 1, self.length, 8)
        self.gain(ACCESSES, 1)
        b.store((line * HASH_FACTOR).shr(64 - HASH_BITS), self.place, 8)
        with b.forever() as (_, empty):
            place = b.load(self.place, "i64", align=8)
            kept = b.load(b.at(self.table, place.shl(3)), "i64", align=8)
            b.leave_when(kept.cmp("eq", line), done)
            b.leave_when(kept.cmp("eq", NO_LINE), empty)
            b.store(place + 1 & (1 << HASH_BITS) - 1, self.place, 8)
        b.store(line, b.at(self.table, b.load(self.place, "i64", align=8).shl(3)), 8)
        self.gain(LINES, 1)
        b.jump(done)
        b.label(done)


def write(name: str) -> str:
    """The IR of the native function."""
    return _Lines().text(name)


HELPERS = {HELPER: write}


def pieces(site: Site) -> list[Piece]:
    """What counts the accesses of an instruction that addresses memory by lanes."""
    make = site.coded.access
    if make is None or make().access.place == "private":
        return []
    return [Piece(f"lines of {site.coded.key}", partial(_count, make), helpers=(HELPER,))]


def _count(make: Callable[[], VectorAccess], frame: Frame) -> None:
    """Counts an access of memory."""
    b, work = frame.b, make()
    work.move_to(b, frame.exec)
    place = work.place
    if isinstance(work, Formatted):
        work.find_format()
    addresses = place.find()
    b.store(addresses, b.at("%w", Worker.addresses.offset), 64)
    if isinstance(place, BufferPlace):
        _count_buffer(frame, work, place, addresses)
        return
    lanes = frame.exec & ~place.elsewhere(addresses) if isinstance(place, FlatPlace) else frame.exec
    _count_lines(frame, place, lanes, addresses)


def _count_lines(frame: Frame, place: Place, lanes: Value, addresses: Value, ragged: Value | None = None,
                 end: Value | int = -1) -> None:
    """Counts the lines of some lanes; where `ragged`, some reach beyond `end`, and the cost is no pattern's."""
    b = frame.b
    first = b.load(address_at(b, lanes.count("cttz") & WAVE_SIZE - 1), "i64", align=8)
    phase = first & LINE - 1
    if ragged is not None:
        phase = phase + ragged.to("i64").shl(LINE_BITS)  # which no other access has
    seen = Seen(b, frame.tally, "memory", lanes, addresses - first.splat(WAVE_SIZE), phase)
    new = seen.is_new()
    with b.when(new if ragged is None else new | ragged):
        seen.keep()
        held = b.at("%w", Worker.addresses.offset)
        frame.call(HELPER, frame.tally, held, lanes, lanes.like(place.size), lanes.like(end))
    seen.count()


def _count_buffer(frame: Frame, work: VectorAccess, place: BufferPlace, addresses: Value) -> None:
    """Counts an access through a descriptor: a lane is served in so far as the descriptor lets its pieces through."""
    b, d, exec_ = frame.b, place.descriptor, frame.exec
    size = exec_.like(place.size)
    whole = exec_ & d.add_lane.select(-1, place.inside(size))  # with ADD_TID_ENABLE nothing is out of range
    piece = size if work.pieces == 1 else size.like(work.access.bytes // work.pieces)
    begun = whole if work.pieces == 1 else exec_ & (place.inside(piece) | whole)
    ragged = begun.cmp("ne", whole)
    add(b, frame.tally, "clamped", (exec_ & ~whole).call("ctpop"))
    with b.when(~ragged):
        add(b, frame.tally, "bytes", whole.call("ctpop") * size)
    with b.when(ragged):
        for number in range(work.pieces):
            reached = exec_ & place.inside(piece * (number + 1))
            add(b, frame.tally, "bytes", reached.call("ctpop") * piece)
    with b.when(~(d.swizzled | d.add_lane)):
        _count_lines(frame, place, begun, addresses, ragged, place.end())
