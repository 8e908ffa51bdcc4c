"""Where the lanes of a vector access reach: addresses of global, flat and private memory, and their bounds.

A handler of a vector access (`moves.py`) asks a place for the addresses of its lanes, has them settled, and moves data.
Buffers have a file of their own (`buffers.py`).

Every address a kernel makes is held against the memory that it may touch before it is used: against the buffer that
the instruction touched last, or each lane against all of them (`execution/search.py`).
Sources: CDNA3 ISA, chapters "Flat memory instructions" and "Vector memory operations".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.state import (
    FAULT,
    LDS_OUTSIDE,
    OUT_OF_BOUNDS,
    PRIVATE,
    PRIVATE_APERTURE,
    RANGE_OFFSET,
    RECORD_BYTES,
    ROW_BYTES,
    SHARED_APERTURE,
    WAVE_SIZE,
    Range,
    Worker,
)

if TYPE_CHECKING:
    from flylab.emulator.memory.moves import VectorAccess

# What a record's slots hold. ADDRESS is the first vector register of the address (of a buffer: the index, then the
# offset), BASE the scalar base or the descriptor, SCALAR_OFFSET a constant or a register's place.
(DATA, ADDRESS, BASE, OFFSET, SCALAR_OFFSET, PRIVATE_AT, PRIVATE_BYTES, PRIVATE_STRIDE, RESULT, FORMAT) = range(10)


@dataclass(frozen=True)
class Access:
    """One form of a vector access, which is one handler.

    `unit` is the bytes of one element of memory (4 for whole registers), `registers` how many a lane moves. `place` is
    where addresses come from: "pair" (a 64-bit vector address), "base" (a scalar base and a 32-bit vector offset),
    "flat" (a pair that may point to LDS or private memory too), "buffer" (a descriptor), "private" (the lane's private
    memory), the last two with or without a vector offset, a buffer also with an `index`. `half` is the half of a
    register that is moved, "low" or "high", where the other is kept.
    """

    store: bool
    unit: int
    registers: int
    place: str = ""
    signed: bool = False
    half: str = ""
    offset_kind: str = "k"
    vector_offset: bool = True
    index: bool = False

    @property
    def bytes(self) -> int:
        """Bytes that a lane moves."""
        return self.unit * self.registers


def count_to_here(b: Builder) -> None:
    """Adds the instructions since the last jump, this one included, to the worker's count."""
    b.set_field("%w", Worker, "count", counted(b))


def counted(b: Builder) -> Value:
    """The worker's count of executed instructions, this one included."""
    here, base = (b.let(f"ptrtoint ptr {p} to i64", "i64") for p in ("%r", b.field("%w", Worker, "base").name))
    run = (here - base).shr(RECORD_BYTES.bit_length() - 1) + 1
    return b.field("%w", Worker, "count") + run


def fault(b: Builder, kind: int, lane: Value | int, address: Value | int, size: Value | int) -> None:
    """Ends the launch: what went wrong, in which lane, at which address."""
    for name, value in (("fault_kind", kind), ("fault_lane", lane), ("fault_address", address), ("fault_size", size),
                        ("fault_record", "%r")):
        b.set_field("%w", Worker, name, value)
    count_to_here(b)
    b.do(f"ret i32 {FAULT}")
    b.label(b.fresh("unreached"))


def fault_of_wave(b: Builder, kind: int, exec_: Value, wrong: Value, address: Value | int, size: Value | int) -> None:
    """A fault of the first active lane where a scalar is wrong, an i1; with no lane active it does not matter."""
    with b.when(wrong & exec_.cmp("ne", 0)):
        fault(b, kind, exec_.count("cttz"), address, size)


def touched_last(b: Builder, store: bool) -> tuple[Value, Value, Value]:
    """The bounds [low, high) of the buffer that this instruction touched last, and the distance to host memory."""
    # The range is looked for once: other workers share the record, and may put another one there.
    range_ = b.at(b.field("%w", Worker, "ranges").name, b.load(b.at("%r", RANGE_OFFSET), "i64", align=8))
    low, high, distance = (b.field(range_, Range, f) for f in ("low", "write_high" if store else "high", "distance"))
    return low, high, distance


def address_at(b: Builder, lane: Value) -> str:
    """Where the worker keeps the address of a lane."""
    return b.at(b.at("%w", Worker.addresses.offset), lane.shl(3))


def look_up(b: Builder, mask: Value, size: Value | int, does: int, shown: int = 0) -> None:
    """Finds the buffer of every lane's access, whose addresses the worker holds; a fault where there is none.

    The addresses become the host's. `does` is READ, WRITE or READ_DWORDS; `shown` is the size that the error names,
    where it is not the size that is looked up.
    """
    check = b.field("%w", Worker, "check").name
    lane = b.let(f"call i64 {check}(ptr %w, ptr %r, {mask.typed}, {mask.like(size).typed}, i64 {does})", "i64")
    with b.when(lane.cmp("ne", -1)):
        fault(b, OUT_OF_BOUNDS, lane, b.load(address_at(b, lane), "i64", align=8), shown or size)


def lane_bits(b: Builder, lanes: Value) -> Value:
    """The i64 whose bits are the lanes of an i1 vector."""
    return b.let(f"bitcast {lanes.typed} to i{WAVE_SIZE}", "i64")


def lanes_of(b: Builder, bits: Value) -> Value:
    """The i1 vector whose lanes are the bits of an i64."""
    return b.let(f"bitcast {bits.typed} to <{WAVE_SIZE} x i1>", "i1", WAVE_SIZE)


def scalar_offset(b: Builder, kind: str, index: int) -> Value:
    """A scalar register ("s") or constant of 32 bits as an unsigned offset."""
    return (b.load(b.at("%s", slot(b, index)), "i32") if kind == "s" else slot(b, index)).to("i64")


class Place:
    """Addresses in global memory: a pair of vector registers, or a scalar base and a vector offset.

    `served` are the lanes that the access serves, an i64 that `find` sets.
    """

    served: Value

    def __init__(self, b: Builder, access: Access, exec_: Value):
        self.b, self.access, self.exec = b, access, exec_
        self.size: Value | int = access.bytes
        """Bytes of a lane's access."""

    def vector(self, record_slot: int, register: int = 0) -> Value:
        """A vector register of an operand."""
        return self.b.load(self.row(record_slot, register), "i32", WAVE_SIZE, 64)

    def row(self, record_slot: int, register: int = 0) -> str:
        """The pointer to a vector register of an operand."""
        b = self.b
        return b.at(b.at("%v", slot(b, record_slot)), ROW_BYTES * register)

    def find(self) -> Value:
        """Each lane's address."""
        b = self.b
        self.served = self.exec
        offset = slot(b, OFFSET).to("i64", True)
        if self.access.place != "base":
            low, high = self.vector(ADDRESS), self.vector(ADDRESS, 1)
            return (low.to("i64") | high.to("i64").shl(32)) + offset.splat(WAVE_SIZE)
        base = b.load(b.at("%s", slot(b, BASE)), "i64") + offset
        return base.splat(WAVE_SIZE) + self.vector(ADDRESS).to("i64")

    def reaches(self, last: Value) -> Value:
        """True where a whole wave may touch bytes up to the address `last` as far as the place itself goes."""
        return self.b.const(1, "i1")

    def separate(self, work: VectorAccess) -> None:
        """Serves on the spot what cannot be served as whole accesses of all lanes."""

    def settle(self, addresses: Value) -> None:
        """A fault unless the access of each served lane lies in memory; the worker then holds the host's addresses."""
        b, access = self.b, self.access
        active = lanes_of(b, self.served)
        least = self._reduce("umin", active.select(addresses, -1))
        most = self._reduce("umax", active.select(addresses, 0))
        low, high, distance = touched_last(b, access.store)
        room = high - most
        good = low.cmp("ule", least) & most.cmp("ult", high) & room.cmp("uge", self.size)
        known, search, settled = (b.fresh(p) for p in ("known", "search", "settled"))
        b.branch(good, known, search)
        b.label(known)
        b.store(addresses + distance.splat(WAVE_SIZE), b.at("%w", Worker.addresses.offset), 64)
        b.jump(settled)
        b.label(search)
        b.store(addresses, b.at("%w", Worker.addresses.offset), 64)
        look_up(b, self.served, self.size, int(access.store))
        b.jump(settled)
        b.label(settled)

    def _reduce(self, name: str, value: Value) -> Value:
        return self.b.call(f"llvm.vector.reduce.{name}.v64i64", "i64", 0, value)


def private_base(b: Builder) -> Value:
    """The address of the private memory of the wave's first lane."""
    return b.let(f"ptrtoint ptr {b.at('%v', slot(b, PRIVATE_AT))} to i64", "i64")


class PrivatePlace(Place):
    """Private memory: each lane has its own, where all of it lies together."""

    def find(self) -> Value:
        b, access = self.b, self.access
        self.served = self.exec
        scalar = scalar_offset(b, access.offset_kind, SCALAR_OFFSET)
        offsets = (scalar + slot(b, OFFSET).to("i64", True)).splat(WAVE_SIZE)
        return offsets + self.vector(ADDRESS).to("i64") if access.vector_offset else offsets

    def reaches(self, last: Value) -> Value:
        return self.b.const(0, "i1")

    def settle(self, addresses: Value) -> None:
        b, access = self.b, self.access
        size = slot(b, PRIVATE_BYTES).to("i64").splat(WAVE_SIZE)
        # As unsigned numbers, so that one below 0 is far outside too.
        outside = addresses.cmp("uge", size) | (addresses + access.bytes).cmp("ugt", size)
        bad = self.exec & lane_bits(b, outside)
        with b.when(bad.cmp("ne", 0)):
            lane = bad.count("cttz")
            fault(b, PRIVATE, lane, b.let(f"extractelement {addresses.typed}, {lane.typed}", "i64"), access.bytes)
        lanes = Value(b, "<" + ", ".join(f"i64 {n}" for n in range(WAVE_SIZE)) + ">", "i64", WAVE_SIZE)
        own = private_base(b).splat(WAVE_SIZE) + lanes * slot(b, PRIVATE_STRIDE).to("i64").splat(WAVE_SIZE)
        b.store(own + addresses, b.at("%w", Worker.addresses.offset), 64)


class FlatPlace(Place):
    """A generic address: the upper half of one in LDS or in private memory names the aperture, the lower the byte."""

    def settle(self, addresses: Value) -> None:
        b = self.b
        inside = self.served & self.elsewhere(addresses)
        apertures, plain, settled = (b.fresh(p) for p in ("apertures", "plain", "settled"))
        b.branch(inside.cmp("eq", 0), plain, apertures)
        b.label(apertures)
        b.store(addresses, b.at("%w", Worker.addresses.offset), 64)
        with b.set_bits(inside) as (lane, _):
            self._translate(lane)
        look_up(b, self.served & ~inside, self.access.bytes, int(self.access.store))
        b.jump(settled)
        b.label(plain)
        super().settle(addresses)
        b.jump(settled)
        b.label(settled)

    def elsewhere(self, addresses: Value) -> Value:
        """The lanes whose address is in LDS or in private memory."""
        high = addresses.shr(32)
        return lane_bits(self.b, high.cmp("eq", SHARED_APERTURE >> 32) | high.cmp("eq", PRIVATE_APERTURE >> 32))

    def _translate(self, lane: Value) -> None:
        """A lane's address in LDS or private memory as one of the host."""
        b, size, place = self.b, self.access.bytes, address_at(self.b, lane)
        address = b.load(place, "i64", align=8)
        shared, offset = address.shr(32).cmp("eq", SHARED_APERTURE >> 32), address & 0xFFFFFFFF
        for kind, here, limit in ((LDS_OUTSIDE, shared, b.field("%w", Worker, "lds_bytes")),
                                  (PRIVATE, ~shared, slot(b, PRIVATE_BYTES).to("i64"))):
            with b.when(here & (offset + size).cmp("ugt", limit)):
                fault(b, kind, lane, offset, size)
        lds = b.let(f"ptrtoint ptr {b.field('%w', Worker, 'lds').name} to i64", "i64")
        own = private_base(b) + lane * slot(b, PRIVATE_STRIDE).to("i64")
        b.store(shared.select(lds, own) + offset, place, 8)
