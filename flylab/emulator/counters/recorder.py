"""The access log as an instrument: native code that writes a record for each access, and the log made of them.

A logged launch has one worker, so that which accesses are kept when the log is full does not hang on chance.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import c_uint64
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from flylab.codegen.assembly.effects import Effects, effects
from flylab.codegen.isa import IsaKernel
from flylab.emulator.counters.banks import Where, addressing, straight
from flylab.emulator.decoding.decode import source_line
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.log import ENTRY, GLOBAL, LDS, PRIVATE, AccessLog, Tensor
from flylab.emulator.memory import lds
from flylab.emulator.memory.access import FlatPlace, PrivatePlace, counted, lane_bits, lanes_of
from flylab.emulator.memory.buffers import BufferPlace
from flylab.emulator.memory.lds_atomic import OFFSET_2
from flylab.emulator.memory.moves import VectorAccess
from flylab.emulator.memory.typed import Formatted
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.probes.probe import Frame, Piece, Site
from flylab.emulator.probes.shadow import Template
from flylab.emulator.state import ALIGNMENT, SHARED_APERTURE, WAVE_SIZE, Worker
from flylab.errors import DeviceError
from flylab.lds_banks import phases

if TYPE_CHECKING:
    from flylab.emulator.execution.run import Run

SPACES = (GLOBAL, LDS, PRIVATE)
HELPER = "record"
NUMBERS = ("index", "place", "space", "lanes", "size", "time")
SIGNATURE = f"void @(ptr %w, {', '.join(f'i64 %{n}' for n in NUMBERS)})"


class Head(ctypes.Structure):
    """How many records there is room for, how many there are, and how many came when there was none."""

    _fields_ = [("room", c_uint64), ("used", c_uint64), ("left_out", c_uint64), ("spare", c_uint64 * 5)]


class Record(ctypes.Structure):
    """One access: what the instruction says, where it is executed, and the lanes' addresses."""

    _fields_ = [*((name, c_uint64) for name in NUMBERS), ("group", c_uint64), ("wave", c_uint64),
                ("addresses", c_uint64 * WAVE_SIZE)]


def write(name: str) -> str:
    """The native function: a record of an access whose addresses the worker holds, unless no lane is served."""
    b = Builder()
    values = {n: Value(b, f"%{n}", "i64") for n in NUMBERS}
    head = b.field("%w", Worker, "log").name
    used, lanes = b.field(head, Head, "used"), values["lanes"]
    with b.when(lanes.cmp("eq", 0)):
        _return(b)
    with b.when(used.cmp("uge", b.field(head, Head, "room"))):
        _leave_out(b)
        _return(b)
    record = b.at(b.at(head, ctypes.sizeof(Head)), used * ctypes.sizeof(Record))
    for n, value in values.items():
        b.set_field(record, Record, n, value)
    for n in ("group", "wave"):
        b.set_field(record, Record, n, b.field("%w", Worker, n))
    addresses = b.load(b.at("%w", Worker.addresses.offset), "i64", WAVE_SIZE, 64)
    b.store(lanes_of(b, lanes).select(addresses, 0), b.at(record, Record.addresses.offset), 64)
    b.set_field(head, Head, "used", used + 1)
    b.do("ret void")
    return b.function(name, SIGNATURE)


def _return(b: Builder) -> None:
    b.do("ret void")
    b.label(b.fresh("unreached"))


def _leave_out(b: Builder) -> None:
    head = b.field("%w", Worker, "log").name
    b.set_field(head, Head, "left_out", b.field(head, Head, "left_out") + 1)


def _record(frame: Frame, addresses: Value, place: int, space: str, lanes: Value, size: Value) -> None:
    """Records an access; `addresses` are i32 or i64 of all lanes."""
    b = frame.b
    b.store(addresses.to("i64"), b.at("%w", Worker.addresses.offset), 64)
    time = counted(b) - b.field("%w", Worker, "group_count")
    frame.call(HELPER, "%w", frame.index, frame.index.like(place), frame.index.like(SPACES.index(space)), lanes,
               size.to("i64"), time)


def _record_lds(where: Where, second: int | None, frame: Frame) -> None:
    """An access of LDS; `second` is the slot with the offset of a second place. A load's own is place 1."""
    b = frame.b
    first, distances = where(frame)
    addresses = first.splat(WAVE_SIZE) + distances
    _record(frame, addresses, int(where is straight), LDS, frame.exec, frame.word(0))
    if second is not None:
        more = slot(b, second) - slot(b, lds.FIRST_PLACE)
        _record(frame, addresses + more.splat(WAVE_SIZE), 1, LDS, frame.exec, frame.word(0))


def _record_memory(make: Callable[[], VectorAccess], frame: Frame) -> None:
    """An access by vector addresses; of a flat one, the lanes of each space are an access of their own."""
    b, work = frame.b, make()
    work.move_to(b, frame.exec)
    if isinstance(work, Formatted):
        work.find_format()
    place, lanes = work.place, frame.exec
    addresses = place.find()
    size = lanes.like(place.size)
    if isinstance(place, BufferPlace):
        d = place.descriptor
        piece = size if work.pieces == 1 else size.like(work.access.bytes // work.pieces)
        odd = d.swizzled | d.add_lane
        with b.when(odd):  # whose addresses are the hardware's own business
            _leave_out(b)
        lanes = odd.select(0, lanes & place.inside(piece))
    elif isinstance(place, FlatPlace):
        elsewhere = place.elsewhere(addresses)
        shared = lane_bits(b, addresses.shr(32).cmp("eq", SHARED_APERTURE >> 32))
        low = addresses & 0xFFFFFFFF
        _record(frame, low, 0, LDS, lanes & shared, size)
        _record(frame, low, 0, PRIVATE, lanes & elsewhere & ~shared, size)
        lanes = lanes & ~elsewhere
    space = PRIVATE if isinstance(place, PrivatePlace) and not isinstance(place, FlatPlace) else GLOBAL
    _record(frame, addresses, 0, space, lanes, size)


class Recording:
    """The instrument."""

    name = "log"
    tally_bytes = 0
    helpers: Mapping[str, Callable[[str], str]] = {HELPER: write}
    kinds: Mapping[int, Callable[[Entry, Scene], Finding]] = {}

    def pieces(self, site: Site) -> Sequence[Piece]:
        """What records the accesses of an instruction."""
        return list(self._pieces(site))

    def _pieces(self, site: Site) -> Iterator[Piece]:
        if make := site.coded.access:
            yield Piece(f"log of {site.coded.key}", partial(_record_memory, make), helpers=(HELPER,))
        if where := addressing(site):
            rule = phases(site.kernel.target.arch, site.instruction.mnemonic)
            second = None
            if rule.accesses > 1:
                second = OFFSET_2 if site.effects.atomic else lds.FIRST_PLACE + 2
            yield Piece(f"log of LDS {where.__name__} {second}", partial(_record_lds, where, second), (rule.size,),
                        (HELPER,))

    def prepare(self, template: Template, kernel: IsaKernel, registers: Registers) -> None:
        """The log keeps nothing with a wave."""


INSTRUMENT = Recording()


class Recorder:
    """The native memory of a log, which takes none before it is written. Raises `DeviceError` where it has no room."""

    def __init__(self, room: int):
        size = ctypes.sizeof(Head) + room * ctypes.sizeof(Record)
        try:
            self._keep = np.zeros(size + ALIGNMENT, np.uint8)
        except (MemoryError, OverflowError, ValueError):
            raise DeviceError(f"there is no room for a log of {room} accesses, which takes {size} bytes",
                              hint="log=65536 keeps as many; log.left_out counts the others") from None
        self.address = -(-self._keep.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.head = Head.from_address(self.address)
        self.head.room = room

    def log(self, run: Run) -> AccessLog:
        """The log, after the launch."""
        kernel = run.loaded.kernel
        instructions = kernel.instructions
        records = np.ctypeslib.as_array(
            (Record * self.head.used).from_address(self.address + ctypes.sizeof(Head)))
        tensors = tuple(Tensor(b.name, b.pointer, b.view.shape, b.view.strides, b.view.itemsize)
                        for b in run.given if b.view is not None)
        found = [effects(i, kernel.target) for i in instructions]
        return AccessLog(kernel.name, kernel.target.arch, run.geometry.block,
                         tuple(i.mnemonic for i in instructions), tuple(i.text for i in instructions),
                         tuple(source_line(kernel, i) for i in instructions), tensors, _entries(records, found),
                         self.head.left_out)


def _entries(records: np.ndarray, found: Sequence[Effects]) -> np.ndarray:
    """The rows of a log. Within a block they are in the order of time, blocks in the order of their numbers."""
    order = np.lexsort((records["time"], records["group"]))
    records = records[order]
    entries = np.zeros(len(records), ENTRY)
    for ours, theirs in (("block", "group"), ("wave", "wave"), ("instruction", "index"), ("place", "place"),
                         ("time", "time"), ("lanes", "lanes"), ("bytes", "size"), ("addresses", "addresses")):
        entries[ours] = records[theirs]
    entries["space"] = np.array(SPACES)[records["space"].astype(np.int64)]
    does = np.array(["atomic" if e.atomic else "store" if e.store else "load" for e in found])
    to_lds = np.array([e.to_lds for e in found])[entries["instruction"]] & (entries["place"] == 1)
    entries["does"] = np.where(to_lds, "store", does[entries["instruction"]])
    entries["visit"] = _visits(entries)
    return entries


def _visits(entries: np.ndarray) -> np.ndarray:
    """How often each wave had come to the instruction of each entry: it comes there once at a time."""
    keys = entries[["block", "wave", "instruction"]]
    order = np.lexsort((entries["time"], keys["instruction"], keys["wave"], keys["block"]))
    same, times = keys[order], entries["time"][order]
    begins = np.ones(len(order), bool)
    begins[1:] = same[1:] != same[:-1]
    new = begins.copy()
    new[1:] |= times[1:] != times[:-1]
    count = np.cumsum(new)
    first = np.maximum.accumulate(np.where(begins, count, 0))
    visits = np.empty(len(order), np.int64)
    visits[order] = count - first
    return visits
