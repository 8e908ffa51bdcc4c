"""Buffers: what a descriptor in four scalar registers makes of an index and an offset, and what it lets through.

    address = base + scalar offset + stride * index + offset
    offset  = vector offset + constant offset, modulo 2**32
    index   = vector index (`idxen`), plus the lane's number where the descriptor says ADD_TID_ENABLE

With SWIZZLE_ENABLE, records lie interleaved: of INDEX_STRIDE records, the first 4 bytes of each, then the next 4. A
descriptor with a stride that is used with an index has room for `num_records` records; any other has as many bytes,
which the scalar offset counts against too; with ADD_TID_ENABLE nothing is out of range. What is out of range reads 0
and is not written, dword by dword; an atomic or a formatted access as a whole. Numbers are 64 bits wide, so that no sum
wraps but the one above.
Sources: CDNA3 ISA, "Buffer addressing", "Range checking" and the table "Buffer resource descriptor"; that `idxen`
decides and not the swizzle: AMD's note to https://github.com/ROCm/ROCR-Runtime/pull/126.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.memory.access import (
    ADDRESS,
    BASE,
    OFFSET,
    SCALAR_OFFSET,
    Place,
    address_at,
    fault,
    fault_of_wave,
    lane_bits,
    look_up,
    scalar_offset,
)
from flylab.emulator.state import CLAMPED, DESCRIPTOR, MISALIGNED, SWIZZLED, WAVE_SIZE, Launch, Worker

if TYPE_CHECKING:
    from flylab.emulator.memory.moves import VectorAccess

ADDRESS_BITS = (1 << 48) - 1
# The bytes of a record that lie together in a swizzled buffer.
ELEMENT = 4


class Descriptor:
    """The fields of a buffer's descriptor, i64 or i1: `pointer` is where its four registers are."""

    def __init__(self, b: Builder, pointer: str):
        low, self.word = b.load(pointer, "i64"), b.load(b.at(pointer, 12), "i32").to("i64")
        self.base, self.stride = low & ADDRESS_BITS, low.shr(48) & 0x3FFF
        self.swizzled = low.cmp("slt", 0)
        self.records = b.load(b.at(pointer, 8), "i32").to("i64")
        self.typed = self.word.shr(30).cmp("ne", 0)  # anything but a buffer
        self.add_lane = (self.word & 1 << 23).cmp("ne", 0)
        self.index_shift = (self.word.shr(21) & 3) + 3

    def strided(self, formatted: bool) -> Value:
        """The stride; with ADD_TID_ENABLE and no format, DATA_FORMAT is its upper bits."""
        wide = self.stride if formatted else self.stride | (self.word.shr(15) & 15).shl(14)
        return self.add_lane.select(wide, self.stride)


def count_cut(b: Builder, lanes: Value) -> None:
    """Counts lanes whose access a descriptor cuts off."""
    b.set_field("%w", Worker, "clamped", b.field("%w", Worker, "clamped") + lanes)


def fails_when_cut(b: Builder) -> AbstractContextManager[str]:
    """The block runs where an access that a descriptor cuts off is an error."""
    return b.when(b.field(b.field("%w", Worker, "launch").name, Launch, "clamped_fails").cmp("ne", 0))


def fault_of_cut(b: Builder, base: Value, lane: Value, address: Value, size: Value | int) -> None:
    """The fault of an access that a descriptor cuts off, which begins at the address `base`."""
    b.set_field("%w", Worker, "fault_base", base)
    fault(b, CLAMPED, lane, address, size)


class BufferPlace(Place):
    """Addresses that a descriptor makes."""

    formatted = False
    """True where the descriptor's DATA_FORMAT is a format, and no part of a stride."""

    def find(self) -> Value:
        b, access = self.b, self.access
        self.descriptor = d = Descriptor(b, b.at("%s", slot(b, BASE)))
        wrong = d.typed if access.index else d.typed | (d.swizzled & ~d.add_lane)
        fault_of_wave(b, DESCRIPTOR, self.exec, wrong, d.base, self.size)
        self.scalar = scalar_offset(b, access.offset_kind, SCALAR_OFFSET)
        offset = slot(b, OFFSET).splat(WAVE_SIZE)
        if access.vector_offset:
            offset = offset + self.vector(ADDRESS, int(access.index))
        self.relative = offset.to("i64") + self.scalar.splat(WAVE_SIZE)
        self.addresses = d.base.splat(WAVE_SIZE) + self.relative
        if access.index:
            self.index = self.vector(ADDRESS).to("i64")
            self.addresses = self.addresses + self.index * d.stride.splat(WAVE_SIZE)
        return self.addresses

    def reaches(self, last: Value) -> Value:
        d = self.descriptor
        return self._is_raw() & ~d.add_lane & ~d.swizzled & last.cmp("ule", d.base + d.records)

    def _is_raw(self) -> Value:
        return self.descriptor.stride.cmp("eq", 0) if self.access.index else self.b.const(1, "i1")

    def separate(self, work: VectorAccess) -> None:
        b, d = self.b, self.descriptor
        whole = self.inside(self.size)
        split = d.swizzled | d.add_lane
        if work.pieces > 1:
            begun = self.inside(self.access.bytes // work.pieces)
            split = split | (self.exec & begun & ~whole).cmp("ne", 0)
        with b.when(split):
            with b.set_bits(self.exec) as (lane, _):
                self._pieces(work, lane)
            b.jump("finished")
            b.label(b.fresh("unreached"))
        self.served = self.exec & whole
        cut = self.exec & ~whole
        with b.when(cut.cmp("ne", 0)):
            count_cut(b, cut.call("ctpop"))
            with fails_when_cut(b):
                lane = cut.count("cttz")
                at = b.let(f"extractelement {self.addresses.typed}, {lane.typed}", "i64")
                fault_of_cut(b, d.base, lane, at, self.size)

    def inside(self, size: Value | int) -> Value:
        """The lanes whose first `size` bytes the descriptor lets through, where it has no ADD_TID_ENABLE."""
        b, d = self.b, self.descriptor
        records = d.records.splat(WAVE_SIZE)
        inside = lane_bits(b, (self.relative + d.records.like(size).splat(WAVE_SIZE)).cmp("ule", records))
        if not self.access.index:
            return inside
        return self._is_raw().select(inside, lane_bits(b, self.index.cmp("ult", records)))

    def end(self) -> Value:
        """The first address that the descriptor does not let through; with a stride, -1."""
        d = self.descriptor
        return self._is_raw().select(d.base + d.records, -1)

    def _pieces(self, work: VectorAccess, lane: Value) -> None:
        """A lane whose pieces lie apart, or of which not all are within range."""
        b, access, d = self.b, self.access, self.descriptor
        size = self.size if work.pieces == 1 else access.bytes // work.pieces
        offset, index = slot(b, OFFSET), d.add_lane.select(lane, 0)
        if access.vector_offset:
            offset = offset + b.load(b.at(self.row(ADDRESS, int(access.index)), lane.shl(2)), "i32")
        if access.index:
            index = index + b.load(b.at(self.row(ADDRESS), lane.shl(2)), "i32").to("i64")
        with b.set_bits(b.const((1 << work.pieces) - 1, "i64")) as (piece, _):
            at = offset.to("i64") + piece * size
            inside = (at + self.scalar + size).cmp("ule", d.records)
            if access.index:
                inside = self._is_raw().select(inside, index.cmp("ult", d.records))
            inside = inside | d.add_lane
            with b.when(inside):
                with b.when(d.swizzled & ((at & ELEMENT - 1) + size).cmp("ugt", ELEMENT)):
                    fault(b, SWIZZLED, lane, at, size)
                self._piece(work, lane, piece, d.base + self.scalar + self._within(at, index), size)
            with b.when(~inside):
                count_cut(b, piece.cmp("eq", work.pieces - 1).to("i64"))
                with fails_when_cut(b):
                    fault_of_cut(b, d.base, lane, d.base + self.scalar + self._within(at, index), size)
                work.drop(lane, piece)

    def _within(self, offset: Value, index: Value) -> Value:
        """Where in a buffer, linear or swizzled, the byte `offset` of record `index` lies."""
        d = self.descriptor
        stride = d.strided(self.formatted)
        group, number = index.shr(d.index_shift), index & (index.like(1).shl(d.index_shift) - 1)
        swizzled = (group * stride + (offset & -ELEMENT)).shl(d.index_shift) + number.shl(2) + (offset & ELEMENT - 1)
        return d.swizzled.select(swizzled, offset + index * stride)

    def _piece(self, work: VectorAccess, lane: Value, piece: Value, address: Value, size: Value | int) -> None:
        b = self.b
        if work.alignment:
            with b.when((address & work.alignment - 1).cmp("ne", 0)):
                fault(b, MISALIGNED, lane, address, work.alignment)
        b.store(address, address_at(b, lane), 8)
        look_up(b, lane.like(1).shl(lane), size, int(self.access.store))
        work.one(lane, work.pointer(lane), piece)
