"""The access of one lane to LDS, dword by dword or byte by byte: races, writes that were not waited for, new cells.

Two accesses race where they are concurrent, by different threads, one of them a write, and not both atomic. A load to
LDS is done by its wave as a whole, so it races with nothing of its own wave. Threads that write a byte by one
instruction race where they write different values: that all write one value is a habit, and does no harm. A loop
around a compare-and-swap begins by a read, which atomic or not is the same instruction: between these two is no race.

Of what one thread does to a byte between two barriers, the last write and the last read are kept. That hides no race,
but for a thread that writes what another one wrote by the same instruction: a race with an earlier write of that one.
"""

from __future__ import annotations

from flylab.emulator.checks.lds_cells import (
    ATOMIC,
    ATTENTION,
    DIRECT,
    HIGH,
    INDEX_AT,
    INDEX_BITS,
    IS_ATOMIC,
    IS_DIRECT,
    IS_SWAP,
    LANE,
    READS,
    SHARED,
    SIZE,
    SWAP,
    THREAD,
    TIME_AT,
    TIME_BITS,
    WAVE,
    WRITES,
    Place,
)
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.probe import find
from flylab.emulator.probes.shadow import GroupShadow, GroupWave, WaveShadow, group_wave
from flylab.emulator.state import ROW_BYTES, Worker

INDICES = (1 << INDEX_BITS) - 1
# Kinds of finding: a read, a write or an atomic after a write; a write after a read; a write not waited for.
READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE, LATE_LOAD, LATE_WRITE = 501, 502, 503, 504, 505


def lane_text(name: str) -> str:
    """The helper for one lane."""
    b = Builder()
    _Lane(b).access()
    b.do("ret void")
    return b.function(name, LANE)


class _Lane:
    """The access of a lane; `at` counts its bytes."""

    def __init__(self, b: Builder):
        self.b, self.place = b, Place(b)
        self.address, self.flags = Value(b, "%address", "i32"), Value(b, "%flags", "i32")
        self.size = self.flags & SIZE
        self.lane_number = Value(b, "%lane", "i64")
        self.mine = self.place.mine(self.lane_number)
        self.reads, self.writes, self.atomic, self.swap, self.direct = (
            (self.flags & flag).cmp("ne", 0) for flag in (READS, WRITES, IS_ATOMIC, IS_SWAP, IS_DIRECT))
        operation = self.direct.select(*(b.field("%shadow", WaveShadow, f"{n}_issued") for n in ("vm", "lgkm")))
        self.stamp = self.place.stamp(operation)
        self.at_slot, self.flag_slot = b.let("alloca i32", "ptr").name, b.let("alloca i1", "ptr").name

    def access(self) -> None:
        """All of it, where it lies in LDS; else the handler will refuse it."""
        b = self.b
        end = self.address.to("i64") + self.size.to("i64")
        b.store(end.cmp("ugt", self.place.lds_bytes).select(self.size, 0), self.at_slot)
        with b.forever() as (_, done):
            at = b.load(self.at_slot, "i32")
            b.leave_when(at.cmp("uge", self.size), done)
            byte = (self.address + at).to("i64")
            dword = b.at(self.place.cells, (byte & -4) * 2)
            detailed = self.place.is_detailed(b.load(dword, "i64", align=8))
            whole = (byte & 3).cmp("eq", 0) & (self.size - at).cmp("uge", 4)
            with b.when(~whole & ~detailed):
                self.place.detail(byte)
            together, details = whole & ~detailed, b.at(self.place.cells, self.place.bytes * 8)
            first = b.let(f"select {together.typed}, ptr {dword}, ptr {b.at(details, byte * 8)}", "ptr").name
            self.touch(first, self.place.bytes * together.select(b.const(2, "i64"), 8), byte, together)
            b.store(at + together.select(b.const(4, "i32"), 1), self.at_slot)

    # what cells say

    def time(self, cell: Value) -> Value:
        return cell.shr(TIME_AT) & (1 << TIME_BITS) - 1

    def others(self, cell: Value) -> Value:
        return ((cell ^ self.mine) & THREAD).cmp("ne", 0)

    def same_wave(self, cell: Value) -> Value:
        return ((cell ^ self.mine) & WAVE).cmp("eq", 0)

    def recent(self, cell: Value) -> Value:
        floor = self.same_wave(cell).select(self.place.own_floor, self.place.floor)
        return self.time(cell).cmp("uge", floor)

    def has(self, cell: Value, flag: int) -> Value:
        return (cell & flag).cmp("ne", 0)

    # one dword or byte

    def touch(self, first: str, stride: Value, byte: Value, together: Value) -> None:
        """What one access does to the cells of a dword or a byte, and finds there."""
        b = self.b
        self.places = [b.at(first, stride * plane) for plane in range(4)]
        self.byte, self.together = byte, together
        cell, stamp, one, two = (b.load(p, "i64", align=8) for p in self.places)
        self.check_wait(cell, stamp)
        self.check_write(cell, stamp, (one, two))
        with b.when(self.writes & ~self.swap):
            kept = [self.others(c) & self.recent(c) & ~self.has(c, ATOMIC) & ~(self.direct & self.same_wave(c))
                    for c in (one, two)]
            with b.when(kept[0] | kept[1]):
                self.report(WRITE_AFTER_READ, kept[0].select(one, two))
        with b.when(self.writes):
            self.set_write(cell)
        with b.when(self.reads):
            self.set_reader(one, two)

    def report(self, kind: int | Value, cell: Value) -> None:
        """A finding about this access and the one of a cell."""
        b = self.b
        kind = kind if isinstance(kind, Value) else b.const(kind, "i64")
        index = cell.shr(INDEX_AT) & INDICES
        find(b, "%w", self.place.index, kind, self.lane_number, index, cell, self.byte, self.flags)

    def check_wait(self, cell: Value, stamp: Value) -> None:
        """Bytes of a write that may still be under way: a load to LDS, or a write of a wave that did not wait."""
        b = self.b
        here = self.time(cell).cmp("uge", b.field(self.place.group, GroupShadow, "first"))
        own, number = self.same_wave(cell), stamp.shr(32).to("i32")
        writer = group_wave(b, self.place.group, (cell & WAVE).shr(6))
        parity = (self.place.barriers & 1).shl(2)
        vm, lgkm = (b.load(b.at(b.at(writer, member.offset), parity), "i32")
                    for member in (GroupWave.vm_done, GroupWave.lgkm_done))
        again = self.direct & own
        with b.when(self.has(cell, ATTENTION) & (own | ~self.recent(cell)) & ~again):
            done = own.select(b.field("%shadow", WaveShadow, "vm_done"), vm)
            with b.when(number.cmp("ugt", done) & here):
                self.report(LATE_LOAD, cell)
            b.store(cell & ~ATTENTION, self.places[0], 8)
        passed = ~own & ~self.recent(cell) & ~self.has(cell, DIRECT) & here
        with b.when(self.reads & passed & self.place.unwaited() & number.cmp("ugt", lgkm)):
            self.report(LATE_WRITE, cell)

    def check_write(self, cell: Value, stamp: Value, readers: tuple[Value, Value]) -> None:
        """A race with the last write, or, where that is one of several atomics, with another of them."""
        b, other, recent, own = self.b, self.others(cell), self.recent(cell), self.same_wave(cell)
        begins = ~self.writes & self.has(cell, SWAP)
        excused = self.atomic & self.has(cell, ATOMIC) | own & (self.direct | self.has(cell, DIRECT)) | begins
        kind = self.writes.select(b.const(WRITE_AFTER_WRITE, "i64"), READ_AFTER_WRITE)
        with b.when(other & recent & ~excused):
            alike = self.writes & ~self.atomic & ((cell ^ self.mine).shr(INDEX_AT) & INDICES).cmp("eq", 0)
            b.store(b.const(1, "i1"), self.flag_slot, 1)
            with b.when(alike & own & ((stamp ^ self.stamp) & 0xFFFFFFFF).cmp("eq", 0)):
                b.store(self.values_differ(cell & 63), self.flag_slot, 1)
            with b.when(alike & ~own):
                b.store(self.changes_memory(), self.flag_slot, 1)
            with b.when(b.load(self.flag_slot, "i1", align=1)):
                self.report(kind, cell)
        with b.when(~other & recent & self.has(cell, SHARED) & ~self.atomic & ~begins):
            kept = [self.others(c) & self.recent(c) & self.has(c, ATOMIC) for c in readers]
            with b.when(kept[0] | kept[1]):
                self.report(kind, kept[0].select(*readers))

    def changes_memory(self) -> Value:
        """True where this lane writes another value than what lies there."""
        b = self.b
        there = b.load(b.at(b.field("%w", Worker, "lds").name, self.byte), "i32", align=1)
        return self.differ(there, self.value(self.lane_number, b.load(self.at_slot, "i32"), "%data"))

    def differ(self, one: Value, other: Value) -> Value:
        """True where the bytes of this access differ."""
        return ((one ^ other) & self.together.select(self.b.const(-1, "i32"), 0xFF)).cmp("ne", 0)

    def values_differ(self, lane: Value) -> Value:
        """True where another lane of this instruction writes another value to the same place."""
        b, found = self.b, self.b.const(0, "i1")
        own = self.value(self.lane_number, b.load(self.at_slot, "i32"), "%data")
        for offset, data in (("%offset", "%data"), ("%offset2", "%data2")):
            start = b.load(b.at("%row", lane.shl(2)), "i32") + Value(b, offset, "i32")
            position = self.byte.to("i32") - start
            inside = position.cmp("ult", self.size)
            value = self.value(lane, inside.select(position, 0), data)
            found = found | inside & self.differ(value, own)
        return found

    def value(self, lane: Value, position: Value, data: str) -> Value:
        """Bytes of what a lane writes, from a position on."""
        b = self.b
        high = (self.flags & HIGH).cmp("ne", 0).select(b.const(2, "i32"), 0)
        row = position.shr(2) * ROW_BYTES + (position & 3) + high
        return b.load(b.at(data, row.to("i64") + lane.shl(2)), "i32", align=1)

    def set_write(self, cell: Value) -> None:
        """The cell of the last write, and its stamp."""
        b = self.b
        again = self.atomic & self.has(cell, ATOMIC) & self.recent(cell)
        several = again & (self.others(cell) | self.has(cell, SHARED))
        flags = b.const(0, "i64")
        for condition, bits in ((self.atomic, ATOMIC), (self.swap, SWAP), (self.direct, DIRECT | ATTENTION),
                                (several, SHARED)):
            flags = flags | condition.select(b.const(bits, "i64"), 0)
        # A thread's plain write counts for more than its atomic.
        with b.when(~(self.atomic & self.recent(cell) & ~self.others(cell) & ~self.has(cell, ATOMIC))):
            b.store(self.mine | flags, self.places[0], 8)
            b.store(self.stamp, self.places[1], 8)

    def set_reader(self, one: Value, two: Value) -> None:
        """The cells of two readers: the first one, and the latest that is another, of another wave if there is one."""
        b = self.b
        mine = self.mine | self.atomic.select(b.const(ATOMIC, "i64"), 0)
        # A thread's plain read counts for more than its atomic.
        again = [(self.atomic & ~self.has(c, ATOMIC)).select(c, mine) for c in (one, two)]
        b.store((~self.recent(one)).select(mine, self.others(one).select(one, again[0])), self.places[2], 8)
        with b.when(self.recent(one) & self.others(one)):
            keeps = ((one ^ two) & WAVE).cmp("ne", 0) & self.same_wave(one)
            found = self.others(two).select(keeps.select(two, mine), again[1])
            b.store((~self.recent(two)).select(mine, found), self.places[3], 8)

