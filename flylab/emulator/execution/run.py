"""One launch: registers at the start, workers over the workgroups, counters and faults at the end."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from flylab import settings
from flylab.emulator.arrays import Buffer
from flylab.emulator.execution.geometry import Geometry
from flylab.emulator.execution.helpers import Task, start, submit
from flylab.emulator.execution.initial import PACKET_BYTES, entry, initial_sgprs
from flylab.emulator.execution.ranges import Ranges
from flylab.emulator.execution.residents import Context, Residents
from flylab.emulator.execution.standstill import interrupted_note, standstill_error
from flylab.emulator.execution.watching import Watching
from flylab.emulator.state import (
    FAULT,
    FINISHED,
    PAUSED,
    RECORD_BYTES,
    SUSPENDED,
    Launch,
    Memory,
    Worker,
)
from flylab.emulator.watch import UNWATCHED, Watch
from flylab.emulator.windows import DISPATCH_PACKET, KERNEL_ARGUMENTS
from flylab.errors import DeviceError

if TYPE_CHECKING:
    from flylab.emulator.counters.results import Counters
    from flylab.emulator.log import AccessLog
    from flylab.emulator.program import Loaded

# LLVM may read a kernel argument in wider pieces than it has bytes.
KERNARG_PADDING = 64


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
    counters: Counters | None = field(default=None, repr=False)
    """What was counted, of a launch with `counters=True`."""
    log: AccessLog | None = field(default=None, repr=False)
    """The accesses of memory, of a launch with `log=True`."""
    threads: int = field(default=0, repr=False)
    checks: tuple[str, ...] = field(default=(), repr=False)
    """What the launch was checked for, by name."""

    def __str__(self) -> str:
        counts = [(self.workgroups, "workgroup", "s"), (self.waves, "wave", "s"),
                  (self.instructions, "instruction", "s"), (self.clamped, "clamped access", "es")]
        if not self.clamped:
            del counts[-1]
        said = ", ".join(f"{number} {what}{many if number != 1 else ''}" for number, what, many in counts)
        return f"{self.kernel}: {said} ({self.source})"


class Run:
    """One launch: its native structures, its workers, and how they came back."""

    def __init__(self, loaded: Loaded, geometry: Geometry, kernarg: bytes, buffers: Sequence[Buffer],
                 own: Sequence[Buffer], threads: int = 0, watch: Watch = UNWATCHED):
        from flylab.emulator.program import core_addresses

        self.loaded, self.geometry, core = loaded, geometry, core_addresses()
        self.kernarg = Memory(len(kernarg) + KERNARG_PADDING, kernarg)
        self.opening = opening = loaded.opening(geometry)
        self.given = list(buffers)
        self.own = [Buffer("the kernel arguments", self.kernarg.address, len(kernarg) + KERNARG_PADDING, False,
                           KERNEL_ARGUMENTS),
                    Buffer("the dispatch packet", opening.packet.address, PACKET_BYTES, False, DISPATCH_PACKET), *own]
        self.ranges = Ranges(self.given, self.own, "bounds" in watch.checks)
        self.sgprs, places = opening.registers or initial_sgprs(loaded.kernel, loaded.mode, kernarg)
        # Shared by the workers: a workgroup that another thread goes on with holds addresses of it.
        self.records = Memory(len(loaded.records), loaded.records)
        self.residents = Residents(self)
        total, waves = opening.workgroups, opening.waves
        self.watching, registers = Watching(loaded, geometry), loaded.registers
        # A log keeps the accesses of the first workgroups, whatever the threads do.
        self.threads = 1 if self.watching.recorder else min(threads or worker_count(opening.is_short), total)
        # However the workers' chunks run, none begins a workgroup that the chip would not hold yet.
        ahead = max(1, self.residents.most // self.threads - 1)
        self.launch: Launch = Launch(
            next=0, total=total, chunk=max(1, min(64, ahead, total // (8 * self.threads))), limit=(1 << 64) - 1, stop=0,
            ranges=self.ranges.address, range_count=len(self.ranges), grid_x=geometry.grid[0],
            grid_y=geometry.grid[1], waves=waves, state_bytes=registers.wave_bytes,
            vgpr_bytes=registers.shadow_at + self.watching.shadow_bytes, shadow_at=registers.shadow_at,
            shadow=self.watching.shadow.address, shadow_bytes=self.watching.shadow_bytes,
            initial_sgprs=ctypes.addressof(self.sgprs), initial_v0=opening.ids.address,
            initial_exec=opening.masks.address,
            entry=self.records.address + RECORD_BYTES * entry(loaded.kernel),
            group_x_at=4 * places[0], group_y_at=4 * places[1], group_z_at=4 * places[2],
            lds_bytes=geometry.lds_bytes(loaded.kernel), clamped_fails=watch.strict)
        self._memory = [Memory(ctypes.sizeof(Worker)) for _ in range(self.threads)]
        self.workers = [Worker.from_address(m.address) for m in self._memory]
        for worker in self.workers:
            worker.launch, worker.ranges = ctypes.addressof(self.launch), self.ranges.address
            worker.check, worker.records = core["core check"], self.records.address
            worker.lds_bytes = self.launch.lds_bytes
        self.watching.equip(self.workers, core["core find"])
        self.contexts: list[Context | None] = [None] * self.threads
        self.busy = [False] * self.threads
        """Which workers are in native code."""
        self.faults: list[Worker] = []
        self._enter, self._take = _functions(core["core run"], core["core take"])
        self._error: BaseException | None = None
        self._over = threading.Lock()

    def enter(self, n: int) -> int:
        """Runs worker `n` in native code until it comes back; its status. A fault is kept as it was met."""
        if self.contexts[n] is None:
            self.contexts[n] = context = Context(self)
            context.give(self.workers[n])
        status: int = self._enter(ctypes.addressof(self.workers[n]))
        if status == FAULT:
            self.faults.append(Worker.from_buffer_copy(self.workers[n]))
        return status

    def take(self) -> int:
        """The number of the next workgroup that nobody took; from `launch.total` on there is none."""
        number: int = self._take(ctypes.addressof(self.launch))
        return number

    def changes(self) -> int:
        """How often memory changed, as far as the workers saw."""
        return sum(worker.changes for worker in self.workers)

    def others(self) -> bool:
        """True where another launch runs in this process, which may write what this one waits for."""
        return len(_running) > 1

    def run(self) -> None:
        """Runs the workers to their end. Ctrl-C stops them first, then goes on its way.

        The calling thread is the first worker. A helper holds on to this object, and so to the memory it works in, even
        past a second Ctrl-C.
        """
        tasks: list[Task] = []
        _running.add(self)
        try:
            self._over.acquire()
            tasks += (submit(partial(self._work, n), self.threads - 1) for n in range(1, self.threads))
            # Whatever takes a lock is left to threads that no Ctrl-C reaches.
            if threading.current_thread() is threading.main_thread():
                self._begin(tasks)
            else:
                self._work(0)
            for task in tasks:
                task.finish()
        except BaseException as interruption:
            self.launch.stop = 1
            for task in tasks:
                task.finish()
            if note := interrupted_note(self):
                interruption.add_note(note)
            raise
        finally:
            _running.discard(self)
            self._over.release()
        if self._error:
            raise self._error

    def _begin(self, tasks: list[Task]) -> None:
        """The first worker in the main thread: what is more than running in native code goes on in another one."""
        self.busy[0] = True
        status = PAUSED
        while status == PAUSED:
            status = self.enter(0)
        if status == SUSPENDED or self.launch.stepping:
            task = Task(partial(self._work, 0, status))
            tasks.append(task)
            if not start(task.run, "flylab-launch"):
                task.run()
            task.wait()
        self.busy[0] = False

    def _work(self, n: int, status: int | None = None) -> None:
        """Worker `n`, from the beginning or from how it came back."""
        try:
            if status is None and self.launch.stepping:
                status = FINISHED
            self.busy[n] = True
            while status is None or status == PAUSED or self.residents.next(n, status):
                status = self.enter(n)
        except BaseException as error:
            self._error = error
            self.launch.stop = 1
        finally:
            self.busy[n] = False

    def stop(self) -> None:
        """Stops the launch and waits for its end, a second at most."""
        self.launch.stop = 1
        self._over.acquire(timeout=1)


_running: set[Run] = set()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_running.clear)  # launches of threads that the child does not have


@atexit.register
def _stop_all() -> None:
    """At the end of Python no thread may be in memory that Python frees."""
    for run_ in list(_running):
        run_.stop()


@cache
def _functions(run_address: int, take_address: int) -> tuple[Any, Any]:
    return (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(run_address),
            ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(take_address))


def worker_count(is_short: bool = False) -> int:
    """Threads of a launch: `FLYLAB_EMULATOR_THREADS`, or the processors this process may use; one where it is short."""
    if settings.EMULATOR_THREADS.source:
        return settings.EMULATOR_THREADS.value()
    if is_short:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def error_of(launch: Run, worker: Worker) -> DeviceError:
    """The error for the fault that a worker met, with what the checks had found."""
    from flylab.emulator.execution.faults import fault_error

    number = (worker.fault_record - worker.records) // RECORD_BYTES
    error = fault_error(launch.loaded.kernel, launch.geometry, worker, number, launch.given, launch.own,
                        launch.loaded.checks)
    error.workgroup, error.findings = worker.group, launch.watching.findings().listed
    return error


def finished(launch: Run) -> Report:
    """Runs a launch to its end.

    Raises `OutOfBounds` or `DeviceError` for the lowest workgroup that failed.
    """
    launch.run()
    loaded, geometry, found = launch.loaded, launch.geometry, launch.watching.findings()
    if launch.faults:
        raise error_of(launch, min(launch.faults, key=lambda w: w.group))
    if launch.residents.still:
        raise standstill_error(launch)
    if error_ := found.error():
        raise error_
    return Report(loaded.kernel.name, geometry.workgroups, geometry.workgroups * geometry.waves,
                  sum(w.count for w in launch.workers), sum(w.clamped for w in launch.workers),
                  counters=launch.watching.counters(), log=launch.watching.log(launch),
                  threads=geometry.threads * geometry.workgroups, checks=loaded.watch.checks)
