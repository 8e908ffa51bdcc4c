"""Cells of LDS: who wrote a dword or byte last, and two threads that read it, each with the time and the instruction.

Times rise at every barrier that a wave reaches (`GroupShadow`): two accesses are concurrent where the earlier one is
not older than the last barrier that the later one's wave has passed. A cell is one number of 64 bits:

    bit 62      a load to LDS that may still be under way: whoever comes next has to look
    bits 35-61  the time
    bits 15-34  the number of the instruction
    bits 10-14  SHARED: more than one thread did this atomic; ATOMIC; DIRECT: a load to LDS; DETAILED: see the bytes;
                SWAP: an atomic that compares and swaps
    bits 0-9    the thread

There are four planes of cells: the last write, its stamp (the number of the operation, and the execution that it was
part of), the first reader since the last barrier, and the last one that is another. Dwords have them, and bytes too:
as long as accesses are of whole dwords, those of the dword say all. An access to a part makes the dword DETAILED until
the next barrier. An access at a multiple of its size takes a quick way where nobody was there since the barrier but
readers, or the thread itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.shadow import CELLS_AT, GroupShadow, GroupWave, WaveShadow, group_wave
from flylab.emulator.state import LDS_SPARE, LDS_STEP, WAVE_SIZE, Worker

THREAD, WAVE = 0x3FF, 0x3C0
SHARED, ATOMIC, DIRECT, DETAILED, SWAP = 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14
INDEX_AT, INDEX_BITS, TIME_AT, TIME_BITS = 15, 20, 35, 27
ATTENTION = 1 << 62
# What differs between a cell and one's own where another thread was there, or one has to look closer.
CLOSER = THREAD | SHARED | DETAILED | ATTENTION
# What an access is: its bytes at a place, then flags. HIGH: its data is the upper half of a register.
SIZE, READS, WRITES, IS_ATOMIC, IS_DIRECT, HIGH, IS_SWAP = 0x1F, 0x20, 0x40, 0x80, 0x100, 0x200, 0x400
QUICK_SIZES = (1, 2, 4, 8, 12, 16)
UNROLLED = 2
# The access of one lane, and of all lanes at the addresses in a row; both with where the data of a write is.
SAME = "ptr %row, i32 %offset, i32 %offset2, ptr %data, ptr %data2"
LANE = f"void @(ptr %w, ptr %shadow, i64 %index, i64 %lane, i32 %address, i32 %flags, {SAME})"
LANES = f"void @(ptr %w, ptr %shadow, i64 %index, i64 %lanes, i32 %flags, {SAME}, ptr %slow)"


class Place:
    """Where and when an access is, in a helper: the times that count, and the cells."""

    def __init__(self, b: Builder):
        self.b = b
        self.group = b.field("%w", Worker, "group_shadow").name
        self.wave = b.field("%w", Worker, "wave")
        self.lds_bytes = b.field("%w", Worker, "lds_bytes")
        self.bytes = (self.lds_bytes + (LDS_SPARE + LDS_STEP - 1)) & -LDS_STEP
        self.cells = b.at(self.group, CELLS_AT)
        self.index = Value(b, "%index", "i64")
        self.now = b.field(self.group, GroupShadow, "last")
        self.barriers = b.field("%shadow", WaveShadow, "barriers")
        self.floor = floor_of(b, self.group, self.barriers)
        self.own_floor = b.field("%shadow", WaveShadow, "floor").call("umax", self.floor)

    def mine(self, lane: Value, flags: Value | int = 0) -> Value:
        """The cell of an access now by a lane."""
        first = self.now.shl(TIME_AT) | self.index.shl(INDEX_AT) | self.wave.shl(6)
        return first | lane | flags

    def stamp(self, operation: Value) -> Value:
        """The stamp of a write: the number of the operation, and what tells two executions of an instruction apart."""
        executed = self.b.field("%w", Worker, "count") & 0xFFFFFFFF
        return operation.to("i64").shl(32) | executed

    def is_detailed(self, cell: Value) -> Value:
        """True where the bytes of a dword have cells of their own, by the cell of its last write."""
        return (cell & DETAILED).cmp("ne", 0) & (cell.shr(TIME_AT) & (1 << TIME_BITS) - 1).cmp("uge", self.floor)

    def detail(self, byte: Value) -> None:
        """Gives the four bytes of the dword of a byte their cells, which are those of the dword."""
        b, first = self.b, byte & -4
        dword, details = b.at(self.cells, first * 2), b.at(b.at(self.cells, self.bytes * 8), first * 8)
        for plane in range(4):
            cell = b.load(b.at(dword, self.bytes * (2 * plane)), "i64", align=8)
            b.store(cell.splat(4), b.at(details, self.bytes * (8 * plane)), 8)
        b.store(self.now.shl(TIME_AT) | DETAILED, dword, 8)

    def unwaited(self) -> Value:
        """True where a wave of the workgroup came to a barrier while a write of its was under way."""
        b = self.b
        return b.field(self.group, GroupShadow, "unwaited").cmp("uge", b.field(self.group, GroupShadow, "first"))


def floor_of(b: Builder, group: str, barriers: Value) -> Value:
    """The time after the last barrier of a wave that has reached so many."""
    at = b.at(b.at(group, GroupShadow.floors.offset), (barriers & 1).shl(3))
    return barriers.cmp("eq", 0).select(b.field(group, GroupShadow, "first"), b.load(at, "i64", align=8))


def _quick_text(size: int, write: bool, name: str) -> str:
    """All lanes of `lanes` read or write `size` bytes each, at the addresses in a row."""
    b = Builder()
    place, lanes, offset = Place(b), Value(b, "%lanes", "i64"), Value(b, "%offset", "i32")
    if write:
        _note_write(b, place)
    addresses = b.load("%row", "i32", WAVE_SIZE, 64) + offset.splat(WAVE_SIZE)
    room = place.lds_bytes.call("usub.sat", size - 1).to("i32").splat(WAVE_SIZE)
    odd = (addresses & min(size, 4) - 1).cmp("ne", 0) | addresses.cmp("uge", room)
    special = (odd.recast("i64", 0) & lanes).cmp("ne", 0) | place.own_floor.cmp("ne", place.floor)
    if not write:
        special = special | place.unwaited()
    with b.when(special):
        with b.set_bits(lanes) as (lane, _):
            _call_slow(b, lane, _address(b, lane, offset))
        b.do("ret void")
        b.label(b.fresh("unreached"))
    one = _QuickWrite(b, place, size) if write else _QuickRead(b, place, size)
    with b.when(lanes.cmp("eq", -1)):
        with b.repeat(WAVE_SIZE // UNROLLED) as loop:
            for n in range(UNROLLED):
                one.lane(loop.index * UNROLLED + n)
        b.do("ret void")
        b.label(b.fresh("unreached"))
    with b.set_bits(lanes) as (lane, _):
        one.lane(lane)
    b.do("ret void")
    return b.function(name, LANES)


def _note_write(b: Builder, place: Place) -> None:
    """The wave's last write to LDS, which a barrier asks for."""
    last = b.field("%shadow", WaveShadow, "lgkm_issued")
    b.set_field(group_wave(b, place.group, place.wave), GroupWave, "written", last)


def _address(b: Builder, lane: Value, offset: Value) -> Value:
    return b.load(b.at("%row", lane.shl(2)), "i32") + offset


def _call_slow(b: Builder, lane: Value, address: Value) -> None:
    b.do(f"call void %slow(ptr %w, ptr %shadow, i64 %index, {lane.typed}, {address.typed}, i32 %flags, {SAME})")


class _Quick(ABC):
    """The quick way of a lane, for cells that are side by side in each plane."""

    def __init__(self, b: Builder, place: Place, size: int):
        self.b, self.place = b, place
        self.count, self.scale = (size // 4, 2) if size >= 4 else (size, 8)
        """Cells of an access, and their bytes for each byte of LDS."""
        self.first = place.mine(b.const(0, "i64"))
        self.limit = (place.floor.shl(TIME_AT) - 1).splat(self.count)
        start = place.cells if self.scale == 2 else b.at(place.cells, place.bytes * 8)
        self.planes = [b.at(start, place.bytes * (self.scale * plane)) for plane in range(4)]

    def lane(self, lane: Value) -> None:
        """One lane: the slow way where somebody else was there, else the cells are set."""
        b = self.b
        address = _address(b, lane, Value(b, "%offset", "i32"))
        at = address.to("i64") * self.scale
        if self.scale == 8:
            dword = b.at(self.place.cells, (address & -4).to("i64") * 2)
            with b.when(~self.place.is_detailed(b.load(dword, "i64", align=8))):
                self.place.detail(address.to("i64"))
        mine = (self.first | lane).splat(self.count)
        slow, quick, end = (b.fresh(p) for p in ("slow", "quick", "end"))
        b.branch(self.is_special(at, mine).any(), slow, quick)
        b.label(slow)
        _call_slow(b, lane, address)
        b.jump(end)
        b.label(quick)
        self.set(at, mine)
        b.jump(end)
        b.label(end)

    def cell(self, plane: int, at: Value) -> Value:
        return self.b.load(self.b.at(self.planes[plane], at), "i64", self.count, 8)

    def put(self, plane: int, at: Value, value: Value) -> None:
        self.b.store(value, self.b.at(self.planes[plane], at), 8)

    def recent(self, cell: Value) -> Value:
        return cell.cmp("sgt", self.limit)

    def is_special(self, at: Value, mine: Value) -> Value:
        cell = self.cell(0, at)
        return self.recent(cell) & ((cell ^ mine) & CLOSER).cmp("ne", 0)

    @abstractmethod
    def set(self, at: Value, mine: Value) -> None:
        """The new cells of an access that is not special."""


class _QuickRead(_Quick):
    def set(self, at: Value, mine: Value) -> None:
        first, last = self.cell(2, at), self.cell(3, at)
        fresh, other = ~self.recent(first), ((first ^ mine) & THREAD).cmp("ne", 0)
        self.put(2, at, (fresh | ~other).select(mine, first))
        self.put(3, at, (~fresh & other).select(mine, last))


class _QuickWrite(_Quick):
    def __init__(self, b: Builder, place: Place, size: int):
        super().__init__(b, place, size)
        self.stamp = place.stamp(b.field("%shadow", WaveShadow, "lgkm_issued")).splat(self.count)

    def is_special(self, at: Value, mine: Value) -> Value:
        first = self.cell(2, at)
        other = self.recent(first) & ((first ^ mine) & THREAD).cmp("ne", 0)
        return super().is_special(at, mine) | other | self.recent(self.cell(3, at))

    def set(self, at: Value, mine: Value) -> None:
        self.put(0, at, mine)
        self.put(1, at, self.stamp)


def _lanes_text(name: str) -> str:
    """All lanes of `lanes` go the slow way, at the addresses in a row."""
    b = Builder()
    with b.when((Value(b, "%flags", "i32") & WRITES).cmp("ne", 0)):
        _note_write(b, Place(b))
    with b.set_bits(Value(b, "%lanes", "i64")) as (lane, _):
        _call_slow(b, lane, _address(b, lane, Value(b, "%offset", "i32")))
    b.do("ret void")
    return b.function(name, LANES)


def quick_name(size: int, write: bool) -> str:
    """The helper of the quick way of a read or write."""
    return f"quick {'write' if write else 'read'} {size}"


QUICK: Mapping[str, Callable[[str], str]] = {
    quick_name(size, write): partial(_quick_text, size, write) for size in QUICK_SIZES for write in (False, True)}
LANES_NAME, LANE_NAME = "lanes", "lane"
HELPERS: Mapping[str, Callable[[str], str]] = {**QUICK, LANES_NAME: _lanes_text}
