"""Handlers of scalar accesses of memory: loads, stores and atomics, at an address or through a descriptor.

Memory is read in whole aligned dwords, of which the first byte must lie in a buffer. From a descriptor, dwords beyond
its size read 0 and are not written. Slots: data, base, offset, constant offset.
Source: CDNA3 ISA, "Scalar memory operations".
"""

from __future__ import annotations

from dataclasses import dataclass

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.memory.access import address_at, counted, fault, look_up, touched_last
from flylab.emulator.memory.buffers import ADDRESS_BITS, count_cut, fails_when_cut, fault_of_cut
from flylab.emulator.memory.exchange import exchange
from flylab.emulator.state import DESCRIPTOR, EXEC, MISALIGNED, READ_DWORDS, WRITE, Worker

DATA, BASE, OFFSET, CONSTANT_OFFSET = range(4)


@dataclass(frozen=True)
class ScalarAccess:
    """One form of a scalar access, which is one handler.

    `place` is "global", "buffer" or "scratch" (whose register offset counts in 64 bytes); `operation` is "" or an
    atomic, which `returns` the value before or does not.
    """

    store: bool
    registers: int
    place: str
    operation: str = ""
    returns: bool = False
    offset_kind: str = "k"
    constant: bool = False

    @property
    def bytes(self) -> int:
        """Bytes that it moves."""
        return 4 * self.registers


def write(access: ScalarAccess, name: str) -> str:
    """The IR of a scalar access."""
    return (_Buffer if access.place == "buffer" else _Global)(access).text(name)


def write_time(name: str) -> str:
    """s_memtime and s_memrealtime: the executed instructions of the workgroup up to here, as a clock that repeats.

    A clock changes by itself, which counts as a change of memory: a wave that waits for a time does not stand still.
    """
    b = Builder()
    b.set_field("%w", Worker, "changes", b.field("%w", Worker, "changes") + 1)
    b.store(counted(b) - b.field("%w", Worker, "group_count"), b.at("%s", slot(b, DATA)))
    next_record(b)
    return b.function(name, HANDLER)


class _Global:
    """An access at a scalar address."""

    def __init__(self, access: ScalarAccess):
        self.access, self.b = access, Builder()

    def text(self, name: str) -> str:
        self.serve()
        next_record(self.b)
        return self.b.function(name, HANDLER)

    def offset(self) -> Value:
        """The register or constant offset, and the constant one beside it."""
        b, access = self.b, self.access
        value = b.load(b.at("%s", slot(b, OFFSET)), "i32") if access.offset_kind == "s" else slot(b, OFFSET)
        value = value.to("i64", access.offset_kind == "k")
        if access.place == "buffer":
            value = value & -4
        if access.place == "scratch" and access.offset_kind == "s":
            value = value.shl(6)
        return value + slot(b, CONSTANT_OFFSET).to("i64", True) if access.constant else value

    def serve(self) -> None:
        b, access = self.b, self.access
        address = b.load(b.at("%s", slot(b, BASE)), "i64") + self.offset()
        unit = access.bytes if access.operation else 4
        with b.when((address & (unit - 1)).cmp("ne", 0)):
            fault(b, MISALIGNED, self.lane(), address, access.bytes)
        size = access.bytes if access.store else access.bytes - 3
        low, high, distance = touched_last(b, access.store)
        good = low.cmp("ule", address) & address.cmp("ult", high) & (high - address).cmp("uge", size)
        known, search, found, settled = (b.fresh(p) for p in ("known", "search", "found", "settled"))
        b.branch(good, known, search)
        b.label(known)
        near = address + distance
        b.jump(settled)
        b.label(search)
        other = self.look_up(address, size, access.bytes)
        b.jump(found)
        b.label(found)
        b.jump(settled)
        b.label(settled)
        host = b.let(f"phi i64 [ {near.name}, %{known} ], [ {other.name}, %{found} ]", "i64")
        self.move(self.pointer(host), access.registers, b.at("%s", slot(b, DATA)))

    def pointer(self, host: Value) -> str:
        return self.b.let(f"inttoptr {host.typed} to ptr", "ptr").name

    def move(self, pointer: str, registers: int, data: str) -> None:
        """Data between memory and registers, or an atomic."""
        b, access = self.b, self.access
        if access.operation:
            type_ = "i32" if access.registers == 1 else "i64"
            given = [b.load(b.at(data, access.bytes * n), type_) for n in range(1 + (access.operation == "cmpswap"))]
            before = exchange(b, access.operation, pointer, given)
            if access.returns:
                b.store(before, data)
        elif access.store:
            b.store(b.load(data, "i32", registers), pointer)
        else:
            b.store(b.load(pointer, "i32", registers), data)

    def lane(self) -> Value:
        """The wave's first active lane, on whose behalf it is done."""
        return self.b.load(self.b.at("%s", 4 * EXEC), "i64").count("cttz") & 63

    def look_up(self, address: Value, size: int, shown: int = 0) -> Value:
        """Finds the buffer of an address; the host's address."""
        b, lane = self.b, self.lane()
        b.store(address, address_at(b, lane), 8)
        look_up(b, lane.like(1).shl(lane), size, WRITE if self.access.store else READ_DWORDS, shown)
        return b.load(address_at(b, lane), "i64", align=8)


class _Buffer(_Global):
    """An access through a descriptor: each dword is served that lies within its bytes, an atomic as a whole."""

    def serve(self) -> None:
        b, access = self.b, self.access
        base_at = b.at("%s", slot(b, BASE))
        base, count = b.load(base_at, "i64"), b.load(b.at(base_at, 8), "i32").to("i64")
        # Here a stride scales the size alone, and a swizzle has no meaning.
        stride = base.shr(48) & 0x3FFF
        count = count * stride.call("umax", 1)
        with b.when(base.cmp("slt", 0) | b.load(b.at(base_at, 12), "i32").cmp("uge", 1 << 30)):
            fault(b, DESCRIPTOR, self.lane(), base, access.bytes)
        offset, data_at = self.offset(), b.at("%s", slot(b, DATA))
        size = access.bytes if access.operation else 4
        for first in range(0, access.bytes, size):
            at, data = offset + first, b.at(data_at, first)
            inside = (at + size).cmp("ule", count) & at.cmp("ult", count)
            with b.when(inside):
                address = (base & ADDRESS_BITS) + at
                if access.operation:
                    with b.when((address & (size - 1)).cmp("ne", 0)):
                        fault(b, MISALIGNED, self.lane(), address, size)
                self.move(self.pointer(self.look_up(address, size)), size // 4, data)
            with b.when(~inside):
                if access.returns or not access.store:
                    for n in range(0, size, 4):
                        b.store(b.const(0, "i32"), b.at(data, n))
                if first + size == access.bytes:
                    count_cut(b, b.const(1, "i64"))
                with fails_when_cut(b):
                    fault_of_cut(b, base & ADDRESS_BITS, self.lane(), (base & ADDRESS_BITS) + at, size)
