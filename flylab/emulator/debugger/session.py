"""One workgroup under the debugger: it runs forward to a goal, and goes back by a snapshot and a run forward.

The state after the n-th instruction is the same however it was reached, so `time` is all that names it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_uint64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flylab.emulator.debugger.changes import Array
from flylab.emulator.debugger.schedule import Turn
from flylab.emulator.debugger.snapshots import DEFAULT_ROOM, History, Region, Snapshot, Writes
from flylab.emulator.debugger.stepping import TRACE, Stepper, native, touches
from flylab.emulator.execution.residents import Context
from flylab.emulator.execution.run import error_of
from flylab.emulator.state import (
    DONE,
    EXEC,
    FAULT,
    LDS_FILL,
    READY,
    RECORD_BYTES,
    SGPR_COUNT,
    STOPPED,
    WAITING,
    YIELD,
    Memory,
    Wave,
)
from flylab.errors import DebugError, DeviceError

if TYPE_CHECKING:
    from flylab.emulator.arrays import Buffer
    from flylab.emulator.execution.run import Run
    from flylab.emulator.program import Program

# The counts of writes, in the order of `Session.writes`.
LDS, MEMORY = 0, 1
# Instructions between two looks at Python's signals, and those after which a command is given up.
AT_ONCE, MOST = 1 << 20, 1 << 27


@dataclass(frozen=True)
class Goal:
    """Where a run forward stops: at a time, or where a wave has executed `steps`, has ended, or reaches a visit.

    `breaks` has a byte for each instruction, looked at when it is the wave's next one.
    """

    time: int | None = None
    wave: int | None = None
    steps: int | None = None
    breaks: bytes | None = None
    visit: int = 0
    lanes: int = (1 << 64) - 1


@dataclass(frozen=True)
class Ending:
    """Where a workgroup ends: at which time, and by what error, None where all its waves came to their end."""

    time: int
    error: DeviceError | None


class Session:
    """A workgroup of a launch, with all that it is made of, at some time."""

    def __init__(self, program: Program, run: Run, group: int, buffers: list[Buffer], room: int = DEFAULT_ROOM):
        self.program, self.run, self.group = program, run, group  # the program holds its data
        self._lock = threading.RLock()
        self.waves, self.loaded = run.geometry.waves, run.loaded
        self.context = Context(run)
        self.worker = run.workers[0]
        self.context.give(self.worker)
        self.states = (Wave * self.waves).from_address(self.worker.waves)
        stop, self._step, self._begin = native()
        count = len(self.loaded.kernel.instructions)
        records = (c_uint64 * (count * RECORD_BYTES // 8)).from_address(run.records.address)
        self._handlers = (c_uint64 * count)(*records[::RECORD_BYTES // 8])
        for number in range(count):
            records[number * RECORD_BYTES // 8] = stop
        self._no_breaks = ctypes.create_string_buffer(count)
        self._steps = Memory(8 * self.waves)
        self.steps = (c_uint64 * self.waves).from_address(self._steps.address)
        """Instructions that each wave has executed."""
        self._trace, self._other = (c_uint64 * (2 * TRACE))(), (c_uint64 * (2 * TRACE))()
        self._touches = ctypes.create_string_buffer(touches(self.loaded.kernel), count)
        self._stepper = Stepper(handlers=ctypes.addressof(self._handlers), steps=self._steps.address,
                                touches=ctypes.addressof(self._touches))
        self.turn, self.ending = Turn(), None
        self._begin_group()
        self.history = History([*self._regions(), *(Region(b.address, b.nbytes, MEMORY) for b in buffers)], room)
        self._take()

    ending: Ending | None

    @property
    def time(self) -> int:
        """Instructions that the workgroup has executed."""
        count: int = self.worker.count
        return count

    @property
    def writes(self) -> Writes:
        """How many instructions have run that may write LDS, and how many that may write memory."""
        return self._stepper.lds_writes, self._stepper.memory_writes

    @property
    def hits(self) -> int:
        """Visits that the last run forward counted."""
        count: int = self._stepper.hits
        return count

    def _regions(self) -> list[Region]:
        """The memory of the workgroup itself: registers, waves, LDS, and what watches them."""
        return [Region(memory.address, size, LDS if memory.address == self.worker.lds else None)
                for memory, size in zip(self.context.memory, self.context.sizes, strict=True)]

    def _begin_group(self) -> None:
        worker = self.worker
        worker.group, worker.group_end, worker.count, worker.used = self.group, self.group + 1, 0, self.waves
        words = self.context.sizes[3] // 4
        (ctypes.c_uint32 * words).from_address(worker.lds)[:] = [LDS_FILL] * words
        for number, wave in enumerate(self.states):
            wave.slot, wave.pc, wave.state = number, self.run.launch.entry, READY
            worker.wave = number
            self._begin(ctypes.addressof(worker), number)

    # what a snapshot holds beside memory

    def _take(self) -> None:
        worker = self.worker
        rest = self.turn, worker.clamped, worker.found, worker.lost
        self.history.take(self.time, self.writes, tuple(self.steps), rest)

    def _restore(self, snapshot: Snapshot, trusted: bool = True) -> None:
        worker = self.worker
        self.history.restore(snapshot, self.writes if trusted else None)
        self.steps[:] = list(snapshot.steps)
        worker.count = snapshot.time
        self._stepper.lds_writes, self._stepper.memory_writes = snapshot.writes
        self.turn, worker.clamped, worker.found, worker.lost = snapshot.rest

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What fails inside, by Ctrl-C too, leaves the state as it was before. Other threads wait till it is over."""
        with self._lock:
            start = self.time
            try:
                yield
            except BaseException:
                self._restore(self.history.before(start), trusted=False)
                self.forward(Goal(start))
                raise

    # going to a time, or by a wave

    def index(self, wave: int) -> int:
        """The number of a wave's next instruction."""
        number: int = (self.states[wave].pc - self.run.records.address) // RECORD_BYTES
        return number

    def exec(self, wave: int) -> int:
        """The lanes of a wave that are active."""
        lanes: int = c_uint64.from_address(self.worker.sgprs + 4 * (SGPR_COUNT * wave + EXEC)).value
        return lanes

    def traced(self, first: int, end: int) -> Array:
        """What the wave of the last run forward executed from step `first` to before `end`, at most the latest TRACE:
        a row for each, with the instruction's number and the time before it."""
        rows: Array = np.ctypeslib.as_array(self._trace).reshape(TRACE, 2)
        return rows[np.arange(first, end) % TRACE]

    def ended(self, wave: int) -> bool:
        """True where a wave has come to its end."""
        return bool(self.states[wave].state == DONE)

    def waiting(self, wave: int) -> bool:
        """True where a wave waits at a barrier."""
        return bool(self.states[wave].state == WAITING)

    def go(self, time: int) -> bool:
        """Goes to a time, forward or back; False where the workgroup ends before it, and is at its end then."""
        if time == self.time:
            return True
        snapshot = self.history.before(time)
        if time < self.time or snapshot.time > self.time:
            self._restore(snapshot)
        return self.forward(Goal(time))

    def error(self) -> DeviceError | None:
        """The error that the next instruction makes, in whatever way this time was reached."""
        if self.ending is None:
            with self.kept():
                now = self.time
                self.forward(Goal(now + 1))
                self.go(now)
        return self.known_error

    @property
    def known_error(self) -> DeviceError | None:
        """The same, where a run forward has met it."""
        return self.ending.error if self.ending and self.ending.time == self.time else None

    def go_to_step(self, wave: int, steps: int) -> bool:
        """Goes to the first time at which a wave has executed so many instructions; False where it executes fewer."""
        if steps <= self.steps[wave]:
            self._restore(self.history.before_step(wave, steps))
        return self.forward(Goal(wave=wave, steps=steps))

    def forward(self, goal: Goal) -> bool:
        """Runs until a goal is reached; False where the workgroup ends, or the goal's wave does, before.

        Raises `DebugError` where that takes too long.
        """
        limit = self.time + MOST
        breaks = None if goal.breaks is None else ctypes.create_string_buffer(goal.breaks, len(goal.breaks))
        self._stepper.hits, self._stepper.visit, self._stepper.lanes = 0, goal.visit, goal.lanes
        while True:
            if self._reached(goal):
                return True
            if self.ending and self.time >= self.ending.time or goal.wave is not None and self.ended(goal.wave):
                return False
            if self.time >= self.history.due:
                self._take()
            if self.time >= limit:
                raise self._too_long()
            if self._next_turn():
                self._run_wave(goal, breaks)

    def _reached(self, goal: Goal) -> bool:
        if goal.time is not None and self.time >= goal.time:
            return True
        if goal.steps is not None and goal.wave is not None and self.steps[goal.wave] >= goal.steps:
            return True
        return bool(goal.visit and self._stepper.hits >= goal.visit)

    def _next_turn(self) -> bool:
        """Finds the wave whose turn it is; False where the workgroup is at its end."""
        while True:
            while self.turn.wave < self.waves:
                if self.states[self.turn.wave].state == READY:
                    self.turn = self.turn.begun(self.time)
                    return True
                self.turn = self.turn.next_wave()
            if not self.turn.ready:
                waiting = [wave for wave in self.states if wave.state == WAITING]
                if not waiting and all(wave.state == DONE for wave in self.states):
                    self.ending = Ending(self.time, None)
                    return False
                for wave in waiting:
                    wave.state = READY
            self.turn = self.turn.next_round(self.time)

    def _run_wave(self, goal: Goal, breaks: Any) -> None:
        """Runs the wave whose turn it is, until its turn is over or something is to be looked at."""
        worker, stepper, wave = self.worker, self._stepper, self.turn.wave
        stop = min(self.time + AT_ONCE, max(self.history.due, self.time + 1))
        stepper.left = min(stop, goal.time if goal.time is not None else stop) - self.time
        stepper.breaks = ctypes.addressof(self._no_breaks)
        stepper.trace = ctypes.addressof(self._trace if wave == goal.wave else self._other)
        if wave == goal.wave:
            stepper.breaks = ctypes.addressof(breaks if breaks is not None else self._no_breaks)
            if goal.steps is not None:
                stepper.left = min(stepper.left, goal.steps - self.steps[wave])
        worker.wave, worker.until = wave, self.turn.until
        status = self._step(ctypes.addressof(worker), ctypes.addressof(stepper))
        if status == FAULT:
            self._fault()
        elif status != STOPPED:
            self.turn = self.turn.next_wave(status == YIELD)

    def _fault(self) -> None:
        """Keeps the error, and goes back to before the instruction that made it."""
        time = self.time - 1
        self.ending = Ending(time, error_of(self.run, self.worker))
        self._restore(self.history.before(time), trusted=False)
        self.forward(Goal(time))

    def _too_long(self) -> DebugError:
        places = ", ".join(f"wave {wave} at '{self.loaded.kernel.instructions[self.index(wave)].text}'"
                           for wave in range(self.waves) if not self.ended(wave))
        return DebugError(f"after {MOST} more instructions the workgroup was not there: {places}",
                          hint="a wave may spin on a flag that nobody sets, or only a later block, which does not run "
                               "here: look at it with goto(time) and step()")
