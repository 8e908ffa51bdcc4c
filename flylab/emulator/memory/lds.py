"""Handlers that read and write LDS, the memory that a workgroup shares.

An address is a byte offset from the beginning of the workgroup's LDS: a vector register plus the instruction's offset,
modulo 2**32. The hardware returns 0 for a read outside and drops a write; here it is an error, as it is never meant.

Any alignment is allowed, as AMD's drivers set SH_MEM_CONFIG.alignment_mode to UNALIGNED: LLVM reads 16 bytes of unknown
alignment by one ds_read_b128 on both chips. Only atomics must be aligned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.memory.access import fault
from flylab.emulator.state import EXEC, LDS_OUTSIDE, ROW_BYTES, WAVE_SIZE, Worker

STEP = 16
# Slots of a record: the address, then of each place an offset and data.
ADDRESS, FIRST_PLACE = 0, 1


@dataclass(frozen=True)
class LdsAccess:
    """One form of a read or write of LDS, which is one handler.

    `unit` is the bytes of one element of memory (4 for whole registers), `registers` how many a lane moves at each of
    `places`. `half` is the half of the register that a d16 form moves, "low" or "high", else "".
    """

    store: bool
    unit: int
    registers: int
    signed: bool = False
    half: str = ""
    places: int = 1

    @property
    def bytes(self) -> int:
        """Bytes that a lane moves at one place."""
        return self.unit * self.registers


def fault_at(b: Builder, kind: int, lanes: Value, offsets: Value, size: int) -> None:
    """Ends the launch with the LDS access of the lowest of `lanes`, an i64, where there is one."""
    with b.when(lanes.cmp("ne", 0)):
        lane = lanes.count("cttz")
        offset = b.let(f"extractelement {offsets.typed}, {lane.typed}", offsets.type)
        fault(b, kind, lane, offset.to("i64"), size)


def check_lds(b: Builder, mask: Value, offsets: Value, size: int) -> None:
    """A fault where the bytes [offset, offset + size) of a lane of `mask`, an i64, do not lie in the workgroup's LDS.

    `offsets` are 64 byte offsets from the beginning of LDS, i32 or i64 taken as unsigned. Past this check each of them
    can be added to the worker's `lds` pointer.
    """
    room = b.field("%w", Worker, "lds_bytes").call("usub.sat", size - 1).to(offsets.type)
    outside = offsets.cmp("uge", room.splat(WAVE_SIZE)).recast("i64", 0)
    fault_at(b, LDS_OUTSIDE, mask & outside, offsets, size)


def write(access: LdsAccess, name: str) -> str:
    """The IR of a read or write of LDS."""
    return (_Write if access.store else _Read)(access).text(name)


class LdsHandler:
    """What handlers of LDS share: registers, addresses, and a loop over 16 lanes at a time."""

    def __init__(self) -> None:
        self.b = Builder()
        self.exec = self.b.load(self.b.at("%s", 4 * EXEC), "i64")
        self.lds = self.b.field("%w", Worker, "lds").name
        self.chunk = Value(self.b, "%chunk", "i64")

    def row(self, record_slot: int, register: int = 0) -> str:
        """The pointer to a vector register of an operand."""
        return self.b.at(self.b.at("%v", slot(self.b, record_slot)), ROW_BYTES * register)

    def place(self, address_row: str, lane: Value, offset: Value, mask: int = -1) -> str:
        """The pointer to a lane's bytes, which the check has let pass; `mask` are the bits of it that count."""
        b = self.b
        return b.at(self.lds, (b.load(b.at(address_row, lane.shl(2)), "i32") + offset) & mask)

    def in_chunk(self, row: str) -> str:
        """The pointer to a register's lanes of this step."""
        return self.b.at(row, self.chunk.shl(2))

    def checked_offsets(self, address_row: str, offset: Value, size: int, mask: int = -1) -> Value:
        """The byte offsets of all lanes, of which those of active lanes lie in LDS."""
        offsets = (self.b.load(address_row, "i32", WAVE_SIZE, 64) + offset.splat(WAVE_SIZE)) & mask
        check_lds(self.b, self.exec, offsets, size)
        return offsets

    def begin_steps(self) -> None:
        """Begins a loop in which `chunk` is 0, 16, 32 and 48."""
        b, before = self.b, self.b.fresh("before")
        b.jump(before)
        b.label(before)
        b.jump("step")
        b.label("step")
        b.do(f"%chunk = phi i64 [ 0, %{before} ], [ %chunk_next, %step_end ]")

    def end_steps(self, after: str) -> None:
        """Ends the loop, which goes on at the label `after`."""
        b = self.b
        b.jump("step_end")
        b.label("step_end")
        b.do(f"%chunk_next = add i64 %chunk, {STEP}")
        b.branch(b.let(f"icmp eq i64 %chunk_next, {WAVE_SIZE}", "i1"), after, "step")

    def finish(self, name: str) -> str:
        """The handler's IR."""
        next_record(self.b)
        return self.b.function(name, HANDLER)


class _Plain(LdsHandler, ABC):
    """A read or write at one or two places, by all lanes in steps of 16, or by the active ones one by one."""

    def __init__(self, access: LdsAccess):
        super().__init__()
        self.access, b = access, self.b
        self.addresses = self.row(ADDRESS)
        slots = range(FIRST_PLACE, FIRST_PLACE + 2 * access.places, 2)
        self.offsets = [slot(b, n) for n in slots]
        self.rows = [[self.row(n + 1, register) for register in range(access.registers)] for n in slots]

    def text(self, name: str) -> str:
        """The handler's IR."""
        b = self.b
        for offset in self.offsets:
            self.checked_offsets(self.addresses, offset, self.access.bytes)
        b.branch(self.exec.cmp("eq", -1), "all", "some")
        b.label("all")
        self.begin_steps()
        self.sixteen()
        self.end_steps("finished")
        b.label("some")
        with b.set_bits(self.exec) as (lane, _):
            self.one(lane)
        b.jump("finished")
        b.label("finished")
        return self.finish(name)

    @abstractmethod
    def sixteen(self) -> None:
        """Serves the lanes from `chunk` on, all of them active."""

    @abstractmethod
    def one(self, lane: Value) -> None:
        """Serves one lane."""

    def places(self, lane: Value) -> list[str]:
        """Where a lane's bytes lie."""
        return [self.place(self.addresses, lane, offset) for offset in self.offsets]


class _Read(_Plain):
    """Everything is read before anything is written, as a result may be the register of the addresses."""

    def sixteen(self) -> None:
        b = self.b
        by_lane = [self.places(self.chunk + n) for n in range(STEP)]
        found = [self.columns(places) for places in zip(*by_lane, strict=True)]
        for rows, columns in zip(self.rows, found, strict=True):
            for row, column in zip(rows, columns, strict=True):
                at = self.in_chunk(row)
                b.store(self.merged(column, at), at, 64)

    def columns(self, places: tuple[str, ...]) -> list[Value]:
        """What lies at 16 places, as the registers of 16 lanes."""
        b, n = self.b, self.access.registers
        if n == 1:
            return [b.gathered([b.load(place, f"i{8 * self.access.unit}", align=1) for place in places])]
        if n == 2:
            first, second = _joined(_joined(_joined([b.load(place, "i32", 2, 1) for place in places])))
            return [first.shuffle(second, range(register, 2 * STEP, 2)) for register in range(2)]
        # Three registers are read as four: behind LDS there is room.
        quads = [b.load(place, "i32", 4, 1) for place in places]
        return _transposed([_joined(_joined(quads[k::4]))[0] for k in range(4)])[:n]

    def one(self, lane: Value) -> None:
        b, access = self.b, self.access
        found = [[b.load(b.at(place, 4 * register), f"i{8 * access.unit}", align=1)
                  for register in range(access.registers)] for place in self.places(lane)]
        for rows, values in zip(self.rows, found, strict=True):
            for row, value in zip(rows, values, strict=True):
                at = b.at(row, lane.shl(2))
                b.store(self.merged(value, at), at)

    def merged(self, value: Value, at: str) -> Value:
        """An element as a register: extended, or put in one half of what is there."""
        half, signed = self.access.half, self.access.signed
        if not half:
            return value.to("i32", signed)
        old, new = self.b.load(at, "i32", value.lanes), value.to("i16", signed).to("i32")
        return old & 0xFFFF | new.shl(16) if half == "high" else old & -0x10000 | new


class _Write(_Plain):
    def sixteen(self) -> None:
        b = self.b
        if self.access.registers == 1:
            for n in range(STEP):
                self.one(self.chunk + n)
            return
        data = [self.by_lane([b.load(self.in_chunk(row), "i32", STEP, 64) for row in rows]) for rows in self.rows]
        for n in range(STEP):
            for place, lanes in zip(self.places(self.chunk + n), data, strict=True):
                b.store(lanes[n], place, 1)

    def by_lane(self, columns: list[Value]) -> list[Value]:
        """What each of 16 lanes writes, from the registers of all."""
        n = len(columns)
        if n == 2:
            x, y = columns
            pairs = [x.shuffle(y, [k // 2 + STEP * (k % 2) for k in range(h, h + STEP)]) for h in (0, STEP)]
            return [pair.shuffle(pair, [k, k + 1]) for pair in pairs for k in range(0, STEP, 2)]
        blocks = _transposed([*columns, columns[-1]][:4])
        return [blocks[lane % 4].shuffle(blocks[lane % 4], [lane // 4 * 4 + k for k in range(n)])
                for lane in range(STEP)]

    def one(self, lane: Value) -> None:
        b, access = self.b, self.access
        for rows, place in zip(self.rows, self.places(lane), strict=True):
            for register, row in enumerate(rows):
                value = b.load(b.at(row, lane.shl(2)), "i32")
                value = (value.shr(16) if access.half == "high" else value).to(f"i{8 * access.unit}")
                b.store(value, b.at(place, 4 * register), 1)


def _joined(parts: list[Value]) -> list[Value]:
    """Vectors side by side, two in one."""
    return [x.shuffle(y, range(2 * x.lanes)) for x, y in zip(parts[::2], parts[1::2], strict=True)]


def _transposed(blocks: list[Value]) -> list[Value]:
    """Four vectors of 16 lanes, in each group of four lanes a matrix that is transposed: its own inverse.

    Written in the steps that hosts have instructions for: pairs of 32 bits, then pairs of 64.
    """
    low, high = ([4 * q + k // 2 + STEP * (k % 2) for q in range(4) for k in ks] for ks in ((0, 1, 2, 3), (4, 5, 6, 7)))
    first, second = ([4 * q + k for q in range(4) for k in ks] for ks in ((0, 1, STEP, STEP + 1), (2, 3, 18, 19)))
    a, b, c, d = blocks
    pairs = [(a.shuffle(b, order), c.shuffle(d, order)) for order in (low, high)]
    return [x.shuffle(y, order) for x, y in pairs for order in (first, second)]
