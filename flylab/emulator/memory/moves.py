"""Handlers of vector accesses: what they share, and the loads and stores of registers.

A handler finds the addresses of its lanes (`access.py`, `buffers.py`), holds them against the memory that the kernel
may touch, and then moves data. A load or store has two ways: where every lane is active and the lanes' addresses follow
each other within the buffer that the instruction touched last, it is one block copy; else the lanes are served one by
one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record
from flylab.emulator.memory.access import (
    DATA,
    Access,
    FlatPlace,
    Place,
    PrivatePlace,
    address_at,
    fault,
    lane_bits,
    touched_last,
)
from flylab.emulator.memory.buffers import BufferPlace
from flylab.emulator.state import EXEC, MISALIGNED, ROW_BYTES, WAVE_SIZE

STEP = 16
PLACES: dict[str, type[Place]] = {
    "pair": Place, "base": Place, "flat": FlatPlace, "private": PrivatePlace, "buffer": BufferPlace}


class VectorAccess(ABC):
    """The frame of a handler: addresses, bounds, and the lanes one by one.

    `pieces` are the parts of an access that a buffer holds against its size one by one; an address must be a multiple
    of `alignment` where that is not 0.
    """

    pieces, alignment = 1, 0

    def __init__(self, access: Access):
        self.access, self.b = access, Builder()
        self.exec = Value(self.b, "%exec", "i64")
        self.place = PLACES[access.place](self.b, access, self.exec)
        self.row = self.place.row

    def move_to(self, b: Builder, exec_: Value) -> None:
        """Makes this a part of another function, such as a probe, which loaded EXEC."""
        self.b, self.exec = b, exec_
        self.place = PLACES[self.access.place](b, self.access, exec_)
        self.row = self.place.row

    def text(self, name: str) -> str:
        """The handler's IR."""
        b = self.b
        b.do(f"%exec = load i64, ptr {b.at('%s', 4 * EXEC)}, align 4")
        self.begin()
        addresses = self.place.find()
        self.block_copy(addresses)
        self.place.separate(self)
        if self.alignment:
            self.check_alignment(addresses)
        self.place.settle(addresses)
        self.serve(self.place.served)
        self.leave_out()
        b.jump("finished")
        b.label("finished")
        next_record(b)
        return b.function(name, HANDLER)

    def begin(self) -> None:
        """What comes first: the place of the data's registers, which no loop over lanes should look for again."""
        self.data = self.row(DATA)

    def block_copy(self, addresses: Value) -> None:
        """A quick way that goes to `finished`; only some accesses have one."""
        return

    def register_at(self, register: Value | int, lane: Value) -> str:
        """The pointer to a lane of one of the data's registers."""
        return self.b.at(self.b.at(self.data, register * ROW_BYTES), lane.shl(2))

    def check_alignment(self, addresses: Value) -> None:
        """A fault where the address of a served lane is no multiple of `alignment`, a power of two."""
        b = self.b
        odd = self.place.served & lane_bits(b, (addresses & (self.alignment - 1)).cmp("ne", 0))
        with b.when(odd.cmp("ne", 0)):
            lane = odd.count("cttz")
            at = b.let(f"extractelement {addresses.typed}, {lane.typed}", "i64")
            fault(b, MISALIGNED, lane, at, self.alignment)

    def serve(self, mask: Value) -> None:
        """The lanes of `mask` one by one, lowest first."""
        b = self.b
        with b.set_bits(mask) as (lane, _):
            self.one(lane, self.pointer(lane), None)

    def pointer(self, lane: Value) -> str:
        """Where a lane's access is, as the worker holds it."""
        b = self.b
        address = b.load(address_at(b, lane), "i64", align=8)
        return b.let(f"inttoptr {address.typed} to ptr", "ptr").name

    @abstractmethod
    def one(self, lane: Value, pointer: str, piece: Value | None) -> None:
        """One lane, or one piece of what it moves."""

    def leave_out(self) -> None:
        """What lanes get that are active and not served."""
        if self.access.place == "buffer":
            with self.b.set_bits(self.exec & ~self.place.served) as (lane, _):
                self.drop(lane, None)

    @abstractmethod
    def drop(self, lane: Value, piece: Value | None) -> None:
        """What one lane gets, or one piece of it, that is out of a buffer's range."""


class Move(VectorAccess):
    """Loads and stores of registers."""

    def __init__(self, access: Access):
        super().__init__(access)
        self.pieces = access.registers

    def one(self, lane: Value, pointer: str, piece: Value | None) -> None:
        b, access, type_ = self.b, self.access, f"i{8 * self.access.unit}"
        for register in range(access.registers) if piece is None else (piece,):
            place = self.register_at(register, lane)
            memory = b.at(pointer, register * 4) if piece is None else pointer
            if access.store:
                data = b.load(place, "i32")
                b.store((data.shr(16) if access.half == "high" else data).to(type_), memory, 1)
            else:
                data = b.load(memory, type_, align=1)
                self.put(data.to("i16" if access.half else "i32", access.signed), place)

    def put(self, data: Value, place: str) -> None:
        """A loaded value in its register, or in the half of it that the instruction names."""
        self.b.store(data, self.b.at(place, 2 if self.access.half == "high" else 0), 2)

    def drop(self, lane: Value, piece: Value | None) -> None:
        if self.access.store:
            return
        for register in range(self.access.registers) if piece is None else (piece,):
            self.put(self.b.const(0, "i16" if self.access.half else "i32"), self.register_at(register, lane))

    def block_copy(self, addresses: Value) -> None:
        """One copy for the whole wave, where its bytes lie side by side in the buffer touched last."""
        b, access = self.b, self.access
        first = b.let(f"extractelement {addresses.typed}, i64 0", "i64")
        steps = Value(b, "<" + ", ".join(f"i64 {access.bytes * n}" for n in range(WAVE_SIZE)) + ">", "i64", WAVE_SIZE)
        ragged = addresses.cmp("ne", first.splat(WAVE_SIZE) + steps).any()
        low, high, distance = touched_last(b, access.store)
        last = first + access.bytes * WAVE_SIZE
        inside = low.cmp("ule", first) & last.cmp("ule", high) & first.cmp("ult", last)
        with b.when(self.exec.cmp("eq", -1) & ~ragged & inside & self.place.reaches(last)):
            pointer = b.let(f"inttoptr {(first + distance).typed} to ptr", "ptr").name
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
            b.store((data.shr(16) if access.half == "high" else data).to(type_), pointer, 1)
            return
        data = b.load(pointer, type_, WAVE_SIZE, 1).to("i32", access.signed)
        if access.half:
            before, high = b.load(self.row(DATA), "i32", WAVE_SIZE, 64), access.half == "high"
            data = data.shl(16) | before & 0xFFFF if high else data & 0xFFFF | before & -0x10000
        b.store(data, self.row(DATA), 64)

    def copy_in(self, pointer: str, at: int) -> None:
        """Memory, where each lane's dwords lie together, to registers, where each dword's lanes do."""
        b, n = self.b, self.access.registers
        lanes = STEP if n > 1 else WAVE_SIZE
        block = b.load(b.at(pointer, 4 * n * at), "i32", n * lanes, 1)
        for register in range(n):
            part = self.shuffle(block, block, [lane * n + register for lane in range(lanes)]) if n > 1 else block
            b.store(part, b.at(self.row(DATA, register), 4 * at), 64)

    def copy_out(self, pointer: str, at: int) -> None:
        """The mirror of `copy_in`."""
        b, n = self.b, self.access.registers
        lanes = STEP if n > 1 else WAVE_SIZE
        parts = [b.load(b.at(self.row(DATA, register), 4 * at), "i32", lanes, 64) for register in range(n)]
        while len(parts) > 1:  # side by side, in pairs; three registers are padded to four
            parts += parts[-1:] * (len(parts) % 2)
            parts = [self.shuffle(x, y, list(range(2 * x.lanes))) for x, y in zip(parts[::2], parts[1::2], strict=True)]
        block = parts[0]
        if n > 1:
            order = [register * lanes + lane for lane in range(lanes) for register in range(n)]
            block = self.shuffle(block, block, order)
        b.store(block, b.at(pointer, 4 * n * at), 1)

    def shuffle(self, x: Value, y: Value, order: list[int]) -> Value:
        """Elements of two vectors, in this order."""
        mask = ", ".join(f"i32 {n}" for n in order)
        return self.b.let(f"shufflevector {x.typed}, {y.typed}, <{len(order)} x i32> <{mask}>", "i32", len(order))

