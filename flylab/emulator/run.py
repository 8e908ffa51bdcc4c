"""One launch: registers at the start, workers over the workgroups, counters and faults at the end."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any

from flylab.codegen.isa import IsaKernel
from flylab.emulator.arguments import Buffer
from flylab.emulator.state import (
    FAULT,
    LDS_SPARE,
    LDS_STEP,
    MODE,
    RECORD_BYTES,
    SGPR_COUNT,
    SINK,
    WAVE_SIZE,
    Launch,
    Range,
    Wave,
    Worker,
)
from flylab.errors import ArgumentError, DeviceError

if TYPE_CHECKING:
    from flylab.emulator.program import Loaded

# Scalar registers that the descriptor asks for, in the order they are given, with how many each takes.
USER_SGPRS = (("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
              ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1))
ALIGNMENT = PACKET_BYTES = 64
# LLVM may read a kernel argument in wider pieces than it has bytes.
KERNARG_PADDING = 64
# Counted in 64 bits by several threads.
MOST_WORKGROUPS = 1 << 48
MOST_PRIVATE_BYTES = 1 << 28
Dims = tuple[int, int, int]


@dataclass(frozen=True)
class Report:
    """What a launch did, as the software device counted it; all figures are emulated, and none is a time.

    `instructions` counts executed instructions of waves, `clamped` the buffer accesses that a descriptor cut off.
    """

    kernel: str
    workgroups: int
    waves: int
    instructions: int
    clamped: int
    source: str = "emulated"

    def __str__(self) -> str:
        return (f"{self.kernel}: {self.workgroups} workgroups, {self.waves} waves, {self.instructions} instructions, "
                f"{self.clamped} clamped accesses ({self.source})")


@dataclass(frozen=True)
class Geometry:
    """Workgroups, threads of each, and bytes of dynamic LDS."""

    grid: Dims
    block: Dims
    shared: int

    @property
    def workgroups(self) -> int:
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def waves(self) -> int:
        return -(-self.threads // WAVE_SIZE)

    def lds_bytes(self, kernel: IsaKernel) -> int:
        """Bytes of LDS that a workgroup has, static and dynamic."""
        return kernel.lds_bytes + self.shared

    @classmethod
    def of(cls, kernel: IsaKernel, grid: int | Sequence[int], block: int | Sequence[int], shared: int) -> Geometry:
        """A launch's shape, checked against the kernel and its chip."""
        found = cls(_dims("grid", grid), _dims("block", block), _whole("the dynamic LDS", shared))
        limit = min(kernel.max_workgroup, kernel.target.max_workgroup)
        if found.threads > limit:
            raise DeviceError(f"a block of {_times(found.block)} = {found.threads} threads is too large for kernel "
                              f"'{kernel.name}', which allows {limit}",
                              hint="launch smaller blocks, or compile it for a larger workgroup")
        for axis, groups, threads in zip("xyz", found.grid, found.block, strict=True):
            if groups * threads >= 1 << 32:
                raise DeviceError(f"a grid of {groups} blocks of {threads} threads overflows 32 bits along {axis}")
        if found.workgroups > MOST_WORKGROUPS:
            raise DeviceError(f"a grid of {_times(found.grid)} = {found.workgroups} blocks is more than the software "
                              f"device counts, {MOST_WORKGROUPS}")
        lds = found.lds_bytes(kernel)
        if found.shared < 0 or lds > kernel.target.lds_bytes:
            raise DeviceError(f"kernel '{kernel.name}' with {shared} bytes of dynamic LDS takes {lds}, and a workgroup "
                              f"of {kernel.target} has {kernel.target.lds_bytes}")
        private = kernel.scratch_bytes * WAVE_SIZE * found.waves
        if private > MOST_PRIVATE_BYTES:
            raise DeviceError(f"a block of {found.threads} threads with {kernel.scratch_bytes} bytes of private memory "
                              f"each takes {private}, and the software device gives a block {MOST_PRIVATE_BYTES}")
        return found


def _whole(name: str, value: Any) -> int:
    """A Python or numpy integer as an int. Raises `ArgumentError` for anything else, a bool included."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise ArgumentError(f"{name} is {value!r}, and whole numbers are needed", hint="a whole number is an int: n // 256")


def _dims(name: str, value: int | Sequence[int]) -> Dims:
    several = isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1
    numbers = tuple(_whole(f"the {name}", n) for n in (value if several else (value,)))  # type: ignore[union-attr]
    if not 1 <= len(numbers) <= 3:
        raise DeviceError(f"the {name} has {len(numbers)} dimensions, and one to three are possible")
    if min(numbers) < 1:
        raise DeviceError(f"the {name} {_times(numbers)} is empty", hint="each dimension is at least 1")
    return (*numbers, 1, 1)[:3]  # type: ignore[return-value]


def _times(numbers: Sequence[int]) -> str:
    return " x ".join(map(str, numbers))


class Memory:
    """Zeroed native memory that begins at a multiple of `ALIGNMENT`, alive as long as this object."""

    def __init__(self, size: int, data: bytes = b""):
        self._keep = ctypes.create_string_buffer(max(size, len(data)) + ALIGNMENT)
        self.address = -(-ctypes.addressof(self._keep) // ALIGNMENT) * ALIGNMENT
        ctypes.memmove(self.address, data, len(data))


@lru_cache(maxsize=64)
def _work_items(block: Dims, dimensions: int) -> tuple[bytes, bytes]:
    """The first vector register and EXEC of each wave: work-item ids packed x | y << 10 | z << 20."""
    x_count, y_count, _ = block
    total = math.prod(block)
    ids = bytearray()
    for thread in range(-(-total // WAVE_SIZE) * WAVE_SIZE):
        parts = (thread % x_count, thread // x_count % y_count, thread // (x_count * y_count))
        value = sum(part << (10 * n) for n, part in enumerate(parts[:dimensions])) if thread < total else 0
        ids += value.to_bytes(4, "little")
    masks = ((1 << min(WAVE_SIZE, total - first)) - 1 for first in range(0, total, WAVE_SIZE))
    return bytes(ids), b"".join(m.to_bytes(8, "little") for m in masks)


class _Run:
    """The native structures of one launch."""

    def __init__(self, loaded: Loaded, geometry: Geometry, kernarg: bytes, buffers: Sequence[Buffer],
                 own: Sequence[Buffer]):
        from flylab.emulator.program import core_addresses

        self.loaded, self.geometry, self.core = loaded, geometry, core_addresses()
        self.kernarg = Memory(len(kernarg) + KERNARG_PADDING, kernarg)
        self.packet = self._dispatch_packet(len(kernarg))
        self.given = list(buffers)
        self.own = [Buffer("the kernel arguments", self.kernarg.address, len(kernarg) + KERNARG_PADDING, False),
                    Buffer("the dispatch packet", self.packet.address, PACKET_BYTES, False), *own]
        held = [b for b in (*self.given, *self.own) if b.nbytes > 0]
        self.ranges = (Range * (len(held) + 1))(
            Range((1 << 64) - 1, 0, 0), *(Range(b.address, b.end, b.end if b.writable else b.address) for b in held))
        descriptor = loaded.kernel.descriptor
        ids, masks = _work_items(geometry.block, 1 + descriptor.get("system_vgpr_workitem_id", 0))
        sgprs, places = self._initial_sgprs(kernarg)
        self.sgprs, self.ids, self.masks = Memory(len(sgprs), sgprs), Memory(len(ids), ids), Memory(len(masks), masks)
        total = geometry.workgroups
        self.threads = min(worker_count(), total)
        self.launch = Launch(
            next=0, total=total, chunk=max(1, min(64, total // (8 * self.threads))), limit=(1 << 64) - 1, stop=0,
            ranges=ctypes.addressof(self.ranges), range_count=len(self.ranges), grid_x=geometry.grid[0],
            grid_y=geometry.grid[1], waves=geometry.waves, vgpr_bytes=loaded.registers.wave_bytes,
            initial_sgprs=self.sgprs.address, initial_v0=self.ids.address, initial_exec=self.masks.address,
            group_x_at=4 * places[0], group_y_at=4 * places[1], group_z_at=4 * places[2],
            lds_bytes=geometry.lds_bytes(loaded.kernel))
        self.workers = [self._worker() for _ in range(self.threads)]

    def _initial_sgprs(self, kernarg: bytes) -> tuple[bytes, list[int]]:
        """The scalar registers of every wave, and where the three workgroup ids go."""
        descriptor = self.loaded.kernel.descriptor
        values = [0] * SGPR_COUNT
        at = 0
        # There is no HSA queue here: its pointer is null, and reading through it is an error.
        addresses = {"kernarg_segment_ptr": self.kernarg.address, "dispatch_ptr": self.packet.address}
        for name, count in USER_SGPRS:
            if descriptor.get(f"user_sgpr_{name}", 0):
                address = addresses.get(name, 0)
                values[at:at + count] = [(address >> (32 * n)) & 0xFFFFFFFF for n in range(count)]
                at += count
        # Arguments that are in registers at the start, from a word of the segment on.
        first, count = (descriptor.get(f"user_sgpr_kernarg_preload_{name}", 0) for name in ("offset", "length"))
        for n in range(count):
            values[at + n] = int.from_bytes(kernarg[4 * (first + n):4 * (first + n + 1)], "little")
        at += count
        named, at = at, descriptor.get("user_sgpr_count", at)
        if at < named:
            raise DeviceError(f"the descriptor of kernel '{self.loaded.kernel.name}' has a user_sgpr_count of {at}, "
                              f"and what it asks for takes {named}", hint="leave .amdhsa_user_sgpr_count out")
        places = []
        for axis in "xyz":
            used = descriptor.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x"))
            places.append(at if used else SINK)
            at += used
        values[MODE] = self.loaded.mode
        return b"".join(v.to_bytes(4, "little") for v in values), places

    def _dispatch_packet(self, kernarg_bytes: int) -> Memory:
        """The AQL packet of the launch, as the HSA specification lays it out: sizes and the arguments' address."""
        grid, block = self.geometry.grid, self.geometry.block
        packet = bytearray(PACKET_BYTES)
        for n in range(3):
            packet[4 + 2 * n:6 + 2 * n] = block[n].to_bytes(2, "little")
            packet[12 + 4 * n:16 + 4 * n] = (grid[n] * block[n]).to_bytes(4, "little")
        packet[28:32] = self.geometry.lds_bytes(self.loaded.kernel).to_bytes(4, "little")
        packet[40:48] = self.kernarg.address.to_bytes(8, "little")
        return Memory(PACKET_BYTES, bytes(packet))

    def _worker(self) -> tuple[Worker, list[Memory]]:
        waves, wave_bytes = self.geometry.waves, self.loaded.registers.wave_bytes
        memory = [Memory(ctypes.sizeof(Worker)), Memory(len(self.loaded.records), self.loaded.records),
                  Memory(waves * wave_bytes), Memory(waves * 4 * SGPR_COUNT), Memory(waves * ctypes.sizeof(Wave)),
                  Memory(-(-(self.launch.lds_bytes + LDS_SPARE) // LDS_STEP) * LDS_STEP)]
        worker = Worker.from_address(memory[0].address)
        worker.launch, worker.ranges = ctypes.addressof(self.launch), ctypes.addressof(self.ranges)
        worker.check, worker.lds_bytes = self.core["core check"], self.launch.lds_bytes
        worker.records, worker.vgprs, worker.sgprs, worker.waves, worker.lds = (m.address for m in memory[1:])
        return worker, memory

    def run(self) -> list[int]:
        """Runs the workers to their end; what each returned. Ctrl-C stops them first, then goes on its way.

        A worker's thread holds on to this object, and so to the memory it works in, even past a second Ctrl-C.
        """
        entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self.core["core run"])
        status = [0] * self.threads
        # An event a worker: in Python before 3.13 a join that Ctrl-C interrupts takes the thread for finished.
        ended = [threading.Event() for _ in status]

        def work(number: int) -> None:
            try:
                status[number] = entry(ctypes.addressof(self.workers[number][0]))
            finally:
                ended[number].set()

        threads = [threading.Thread(target=work, args=(n,), name=f"flylab-emulator-{n}") for n in range(self.threads)]
        try:
            for thread in threads:
                thread.start()
            for event in ended:
                event.wait()
        except BaseException:
            self.launch.stop = 1
            for thread, event in zip(threads, ended, strict=True):
                if thread.ident is not None:
                    event.wait()
            raise
        finally:
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        return status


def worker_count() -> int:
    """Threads of a launch: `FLYLAB_EMULATOR_THREADS`, or the processors this process may use."""
    asked = os.environ.get("FLYLAB_EMULATOR_THREADS", "")
    if asked:
        if not asked.isdigit() or int(asked) < 1:
            raise DeviceError(f"FLYLAB_EMULATOR_THREADS is {asked!r}, and a number from 1 is needed")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def run(loaded: Loaded, geometry: Geometry, kernarg: bytes, buffers: Sequence[Buffer],
        own: Sequence[Buffer] = ()) -> Report:
    """Runs a loaded kernel.

    Raises `OutOfBounds` or `DeviceError` for the lowest workgroup that failed.
    """
    launch = _Run(loaded, geometry, kernarg, buffers, own)
    status = launch.run()
    failed = [worker for (worker, _), s in zip(launch.workers, status, strict=True) if s == FAULT]
    if failed:
        from flylab.emulator.faults import fault_error

        worker = min(failed, key=lambda w: w.group)
        number = (worker.fault_record - worker.records) // RECORD_BYTES
        error = fault_error(loaded.kernel, geometry, worker, number, launch.given, launch.own, loaded.checks)
        error.workgroup = worker.group
        raise error
    workers = [worker for worker, _ in launch.workers]
    return Report(loaded.kernel.name, geometry.workgroups, geometry.workgroups * geometry.waves,
                  sum(w.count for w in workers), sum(w.clamped for w in workers))
