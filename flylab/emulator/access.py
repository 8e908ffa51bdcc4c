"""Handlers that touch memory: global, flat, buffer and scalar loads and stores.

A vector access has three ways. Where every lane is active and the lanes' addresses follow each other within the buffer
that the instruction touched last, it is one block copy. Else the lowest and highest address are held against that
buffer, or each lane is looked up (`core.check_text`), and the lanes are served one by one. A buffer access that reaches
beyond `num_records` is served dword by dword: what is out of range reads 0 and is not written.
"""

from __future__ import annotations

from dataclasses import dataclass

from flylab.emulator.compute import HANDLER, next_record, slot
from flylab.emulator.ir import Builder, Value
from flylab.emulator.state import (
    DESCRIPTOR,
    EXEC,
    FAULT,
    MISALIGNED,
    OUT_OF_BOUNDS,
    PRIVATE,
    RANGE_OFFSET,
    RECORD_BYTES,
    ROW_BYTES,
    WAVE_SIZE,
    Range,
    Worker,
)

STEP = 16
ADDRESS_BITS = (1 << 48) - 1


@dataclass(frozen=True)
class Access:
    """One form of a vector access, which is one handler.

    `unit` is the bytes of one element of memory (4 for whole registers), `registers` how many a lane moves. `place` is
    where addresses come from: "pair" (a 64-bit vector address), "base" (a scalar base and a 32-bit vector offset),
    "buffer" (a descriptor), "private" (the lane's private memory), the last two with or without a vector offset. Slots:
    data, address, base, constant offset, scalar offset (whose kind is "s" or "k"); of a private access, also where
    private memory begins and its size.
    """

    store: bool
    unit: int
    registers: int
    place: str
    signed: bool = False
    high: bool = False
    offset_kind: str = "k"
    vector_offset: bool = True

    @property
    def bytes(self) -> int:
        """Bytes that a lane moves."""
        return self.unit * self.registers


DATA, ADDRESS, BASE, OFFSET, SCALAR_OFFSET, PRIVATE_AT, PRIVATE_BYTES = range(7)


def count_to_here(b: Builder) -> None:
    """Adds the instructions since the last jump, this one included, to the worker's count."""
    here, base = (b.let(f"ptrtoint ptr {p} to i64", "i64") for p in ("%r", b.field("%w", Worker, "base").name))
    run = (here - base).shr(RECORD_BYTES.bit_length() - 1) + 1
    b.set_field("%w", Worker, "count", b.field("%w", Worker, "count") + run)


def fault(b: Builder, kind: int, lane: Value | int, address: Value | int, size: Value | int) -> None:
    """Ends the launch: what went wrong, in which lane, at which address."""
    for name, value in (("fault_kind", kind), ("fault_lane", lane), ("fault_address", address), ("fault_size", size),
                        ("fault_record", "%r")):
        b.set_field("%w", Worker, name, value)
    count_to_here(b)
    b.do(f"ret i32 {FAULT}")
    b.label(b.fresh("unreached"))


def touched_last(b: Builder, store: bool) -> tuple[Value, Value]:
    """The bounds [low, high) of the buffer that this instruction touched last."""
    range_ = b.at(b.field("%w", Worker, "ranges").name, b.load(b.at("%r", RANGE_OFFSET), "i64", align=8))
    return b.field(range_, Range, "low"), b.field(range_, Range, "write_high" if store else "high")


def address_at(b: Builder, lane: Value) -> str:
    """Where the worker keeps the address of a lane."""
    return b.at(b.at("%w", Worker.addresses.offset), lane.shl(3))


def look_up(b: Builder, mask: Value, size: int, store: bool, shown: int = 0) -> None:
    """Finds the buffer of every lane's access, whose addresses the worker holds; a fault where there is none.

    `shown` is the size that the error names, where it is not the size that is looked up.
    """
    check = b.field("%w", Worker, "check").name
    lane = b.let(f"call i64 {check}(ptr %w, ptr %r, {mask.typed}, i64 {size}, i64 {int(store)})", "i64")
    with b.when(lane.cmp("ne", -1)):
        fault(b, OUT_OF_BOUNDS, lane, b.load(address_at(b, lane), "i64", align=8), shown or size)


def write(access: Access, name: str) -> str:
    """The IR of a vector access."""
    return (_PrivateAccess if access.place == "private" else VectorAccess)(access).text(name)


class VectorAccess:
    """The parts of a handler of vector accesses: addresses, bounds, and the ways to move data."""

    def __init__(self, access: Access):
        self.access, self.b = access, Builder()

    def text(self, name: str) -> str:
        """The handler's IR."""
        b = self.b
        self.exec = b.load(b.at("%s", 4 * EXEC), "i64")
        addresses, limit = self.addresses()
        self.block_copy(addresses, limit)
        b.store(addresses, b.at("%w", Worker.addresses.offset), 64)
        if limit is None:
            self.check_bounds(addresses)
            self.serve(self.exec, range(self.access.registers))
        else:
            self.clamp(addresses, limit)
        b.jump("finished")
        b.label("finished")
        next_record(b)
        return b.function(name, HANDLER)

    def addresses(self) -> tuple[Value, Value | None]:
        """Each lane's address; for a buffer also the address after its last byte."""
        b, access = self.b, self.access
        offset = slot(b, OFFSET).to("i64", True)
        if access.place == "pair":
            low = b.load(self.row(ADDRESS), "i32", WAVE_SIZE, 64)
            high = b.load(self.row(ADDRESS, 1), "i32", WAVE_SIZE, 64)
            return (low.to("i64") | high.to("i64").shl(32)) + offset.splat(WAVE_SIZE), None
        base_at = b.at("%s", slot(b, BASE))
        base = b.load(base_at, "i64")
        end: Value | None = None
        if access.place == "buffer":
            shape = base.shr(48)
            with b.when(shape.cmp("ne", 0)):
                fault(b, DESCRIPTOR, self.exec.count("cttz") & 63, base, access.bytes)
            base = base & ADDRESS_BITS
            end = base + b.load(b.at(base_at, 8), "i32").to("i64")
            base = base + (b.load(b.at("%s", slot(b, SCALAR_OFFSET)), "i32") if access.offset_kind == "s" else
                           slot(b, SCALAR_OFFSET)).to("i64")
        base = (base + offset).splat(WAVE_SIZE)
        if access.vector_offset:
            base = base + b.load(self.row(ADDRESS), "i32", WAVE_SIZE, 64).to("i64")
        return base, end

    def row(self, record_slot: int, register: int = 0) -> str:
        """The pointer to a vector register of an operand."""
        b = self.b
        return b.at(b.at("%v", slot(b, record_slot)), ROW_BYTES * register)

    def block_copy(self, addresses: Value, limit: Value | None) -> None:
        """One copy for the whole wave, where its bytes lie side by side in the buffer touched last."""
        b, access = self.b, self.access
        first = b.let(f"extractelement {addresses.typed}, i64 0", "i64")
        steps = Value(b, "<" + ", ".join(f"i64 {access.bytes * n}" for n in range(WAVE_SIZE)) + ">", "i64", WAVE_SIZE)
        ragged = addresses.cmp("ne", first.splat(WAVE_SIZE) + steps).any()
        low, high = touched_last(b, access.store)
        last = first + access.bytes * WAVE_SIZE
        inside = low.cmp("ule", first) & last.cmp("ule", high) & first.cmp("ult", last)
        good = self.exec.cmp("eq", -1) & ~ragged & inside
        if limit is not None:
            good = good & last.cmp("ule", limit)
        with b.when(good):
            pointer = b.let(f"inttoptr {first.typed} to ptr", "ptr").name
            if access.unit < 4:
                self.copy_small(pointer)
            else:
                for at in range(0, WAVE_SIZE, STEP if access.registers > 1 else WAVE_SIZE):
                    (self.copy_out if access.store else self.copy_in)(pointer, at)
            b.jump("finished")
            b.label(b.fresh("unreached"))

    def copy_small(self, pointer: str) -> None:
        """Bytes or halves, one a lane."""
        b, access, type_ = self.b, self.access, f"i{8 * self.access.unit}"
        if access.store:
            data = b.load(self.row(DATA), "i32", WAVE_SIZE, 64)
            b.store((data.shr(16) if access.high else data).to(type_), pointer, 1)
        else:
            b.store(b.load(pointer, type_, WAVE_SIZE, 1).to("i32", access.signed), self.row(DATA), 64)

    def copy_in(self, pointer: str, at: int) -> None:
        """Memory, where each lane's dwords lie together, to registers, where each dword's lanes do."""
        b, n = self.b, self.access.registers
        lanes = STEP if n > 1 else WAVE_SIZE
        block = b.load(b.at(pointer, 4 * n * at), "i32", n * lanes, 1)
        for register in range(n):
            part = block.shuffle(block, [lane * n + register for lane in range(lanes)]) if n > 1 else block
            b.store(part, b.at(self.row(DATA, register), 4 * at), 64)

    def copy_out(self, pointer: str, at: int) -> None:
        """The mirror of `copy_in`."""
        b, n = self.b, self.access.registers
        lanes = STEP if n > 1 else WAVE_SIZE
        parts = [b.load(b.at(self.row(DATA, register), 4 * at), "i32", lanes, 64) for register in range(n)]
        while len(parts) > 1:  # side by side, in pairs; three registers are padded to four
            parts += parts[-1:] * (len(parts) % 2)
            parts = [x.shuffle(y, range(2 * x.lanes)) for x, y in zip(parts[::2], parts[1::2], strict=True)]
        block = parts[0]
        if n > 1:
            order = [register * lanes + lane for lane in range(lanes) for register in range(n)]
            block = block.shuffle(block, order)
        b.store(block, b.at(pointer, 4 * n * at), 1)

    def check_bounds(self, addresses: Value) -> None:
        """The lowest and highest address within the buffer touched last, else each lane in some buffer."""
        b, access = self.b, self.access
        active = b.let(f"bitcast {self.exec.typed} to <64 x i1>", "i1", WAVE_SIZE)
        least = self.reduce("umin", active.select(addresses, -1))
        most = self.reduce("umax", active.select(addresses, 0))
        low, high = touched_last(b, access.store)
        room = high - most
        good = low.cmp("ule", least) & most.cmp("ult", high) & room.cmp("uge", access.bytes)
        with b.when(~good):
            look_up(b, self.exec, access.bytes, access.store)

    def reduce(self, name: str, value: Value) -> Value:
        return self.b.call(f"llvm.vector.reduce.{name}.v64i64", "i64", 0, value)

    def serve(self, mask: Value, registers: range) -> None:
        """The lanes of `mask` one by one, the first of `registers` from or to the lane's address."""
        b, access = self.b, self.access
        rows = [self.row(DATA, register) for register in registers]
        type_ = f"i{8 * access.unit}"
        with b.set_bits(mask) as (lane, _):
            address = b.load(address_at(b, lane), "i64", align=8)
            pointer = b.let(f"inttoptr {address.typed} to ptr", "ptr").name
            for n, row in enumerate(rows):
                place, memory = b.at(row, lane.shl(2)), b.at(pointer, 4 * n)
                if access.store:
                    data = b.load(place, "i32")
                    b.store((data.shr(16) if access.high else data).to(type_), memory, 1)
                else:
                    b.store(b.load(memory, type_, align=1).to("i32", access.signed), place)

    def clamp(self, addresses: Value, limit: Value) -> None:
        """A buffer access, dword by dword: each is served where it lies within the descriptor's bytes."""
        b, access = self.b, self.access
        for register in range(access.registers):
            at = addresses + access.unit * register
            inside = (at + access.unit).cmp("ule", limit.splat(WAVE_SIZE))
            inside_bits = b.let(f"bitcast {inside.typed} to i64", "i64")
            b.store(at, b.at("%w", Worker.addresses.offset), 64)
            allowed, left_out = self.exec & inside_bits, self.exec & ~inside_bits
            look_up(b, allowed, access.unit, access.store)
            self.serve(allowed, range(register, register + 1))
            if not access.store:
                row = self.row(DATA, register)
                dropped = b.let(f"bitcast {left_out.typed} to <64 x i1>", "i1", WAVE_SIZE)
                b.store(dropped.select(0, b.load(row, "i32", WAVE_SIZE, 64)), row, 64)
            if register == access.registers - 1:
                # The last dword is out of range wherever another one is.
                count = b.field("%w", Worker, "clamped") + left_out.call("ctpop")
                b.set_field("%w", Worker, "clamped", count)


class _PrivateAccess(VectorAccess):
    """An access of private memory: each lane has its own, where all of it lies together."""

    def text(self, name: str) -> str:
        b, access = self.b, self.access
        self.exec = b.load(b.at("%s", 4 * EXEC), "i64")
        scalar = (b.load(b.at("%s", slot(b, SCALAR_OFFSET)), "i32") if access.offset_kind == "s" else
                  slot(b, SCALAR_OFFSET))
        offsets = (scalar.to("i64") + slot(b, OFFSET).to("i64", True)).splat(WAVE_SIZE)
        if access.vector_offset:
            offsets = offsets + b.load(self.row(ADDRESS), "i32", WAVE_SIZE, 64).to("i64")
        size = slot(b, PRIVATE_BYTES).to("i64")
        # As unsigned numbers, so that one below 0 is far outside too.
        outside = offsets.cmp("uge", size.splat(WAVE_SIZE)) | (offsets + access.bytes).cmp("ugt", size.splat(WAVE_SIZE))
        bad = self.exec & b.let(f"bitcast {outside.typed} to i64", "i64")
        with b.when(bad.cmp("ne", 0)):
            lane = bad.count("cttz")
            fault(b, PRIVATE, lane, b.let(f"extractelement {offsets.typed}, {lane.typed}", "i64"), access.bytes)
        base = b.let(f"ptrtoint ptr {b.at('%v', slot(b, PRIVATE_AT))} to i64", "i64")
        lanes = Value(b, "<" + ", ".join(f"i64 {n}" for n in range(WAVE_SIZE)) + ">", "i64", WAVE_SIZE)
        addresses = base.splat(WAVE_SIZE) + lanes * size.splat(WAVE_SIZE) + offsets
        b.store(addresses, b.at("%w", Worker.addresses.offset), 64)
        self.serve(self.exec, range(access.registers))
        next_record(b)
        return b.function(name, HANDLER)


def write_scalar_load(name: str, registers: int, offset_kind: str, constant: bool) -> str:
    """s_load: dwords from a scalar address plus offset; slots: result, base, offset, constant offset.

    Memory is read in whole aligned dwords, of which the first byte must lie in a buffer.
    """
    b = Builder()
    address = b.load(b.at("%s", slot(b, 1)), "i64") + _scalar_offset(b, offset_kind)
    if constant:
        address = address + slot(b, 3).to("i64", True)
    size = 4 * registers - 3
    with b.when((address & 3).cmp("ne", 0)):
        fault(b, MISALIGNED, _first_lane(b), address, 4 * registers)
    low, high = touched_last(b, False)
    good = low.cmp("ule", address) & address.cmp("ult", high) & (high - address).cmp("uge", size)
    with b.when(~good):
        _look_up_one(b, address, size, 4 * registers)
    pointer = b.let(f"inttoptr {address.typed} to ptr", "ptr").name
    b.store(b.load(pointer, "i32", registers), b.at("%s", slot(b, 0)))
    next_record(b)
    return b.function(name, HANDLER)


def write_scalar_buffer_load(name: str, registers: int, offset_kind: str, constant: bool) -> str:
    """s_buffer_load: as s_load, from a descriptor; dwords beyond `num_records` read 0."""
    b = Builder()
    base_at = b.at("%s", slot(b, 1))
    base, count = b.load(base_at, "i64"), b.load(b.at(base_at, 8), "i32").to("i64")
    with b.when(base.shr(48).cmp("ne", 0)):
        fault(b, DESCRIPTOR, _first_lane(b), base, 4 * registers)
    offset = _scalar_offset(b, offset_kind) & -4
    if constant:
        offset = offset + slot(b, 3).to("i64", True)
    result_at = b.at("%s", slot(b, 0))
    for register in range(registers):
        at = offset + 4 * register
        place = b.at(result_at, 4 * register)
        b.store(b.const(0, "i32"), place)
        inside = (at + 4).cmp("ule", count)
        with b.when(inside):
            address = (base & ADDRESS_BITS) + at
            _look_up_one(b, address, 4)
            b.store(b.load(b.let(f"inttoptr {address.typed} to ptr", "ptr").name, "i32"), place)
        if register == registers - 1:
            with b.when(~inside):
                b.set_field("%w", Worker, "clamped", b.field("%w", Worker, "clamped") + 1)
    next_record(b)
    return b.function(name, HANDLER)


def _scalar_offset(b: Builder, kind: str) -> Value:
    value = b.load(b.at("%s", slot(b, 2)), "i32") if kind == "s" else slot(b, 2)
    return value.to("i64", kind == "k")


def _first_lane(b: Builder) -> Value:
    return b.load(b.at("%s", 4 * EXEC), "i64").count("cttz") & 63


def _look_up_one(b: Builder, address: Value, size: int, shown: int = 0) -> None:
    """Finds the buffer of one address, on behalf of the wave's first active lane."""
    lane = _first_lane(b)
    b.store(address, address_at(b, lane), 8)
    look_up(b, lane.like(1).shl(lane), size, False, shown)
