"""The debugger: a wave of a workgroup that is stepped, forward and back, and looked at."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from flylab.codegen.isa import Instruction
from flylab.emulator.arguments import shown, whole
from flylab.emulator.debugger.changes import Array, Changes, State, difference
from flylab.emulator.debugger.copies import Copied
from flylab.emulator.debugger.names import Names
from flylab.emulator.debugger.places import Places, line_of
from flylab.emulator.debugger.session import Goal, Session
from flylab.emulator.debugger.show import described
from flylab.emulator.debugger.stepping import ALWAYS, WHERE_ACTIVE
from flylab.emulator.execution.faults import coordinates
from flylab.emulator.execution.run import Dims
from flylab.emulator.probes.findings import Finding
from flylab.emulator.state import M0, NUMBERED_SGPRS, SCC, SGPR_COUNT, WAVE_SIZE
from flylab.errors import DebugError, DeviceError
from flylab.places import SourceLine


@dataclass(frozen=True)
class Lane:
    """One lane of the wave: its thread in the block, whether it is active, and its vector registers, 32 bits each."""

    thread: Dims
    active: bool
    v: Array
    a: Array


@dataclass(frozen=True)
class Moment:
    """A time, and the instruction that the wave executes next then."""

    time: int
    instruction: Instruction
    line: SourceLine

    def __str__(self) -> str:
        return f"time {self.time}: {self.instruction.index} {self.instruction.text} ({self.line.file}, line " \
               f"{self.line.line})"


class Debugger:
    """One workgroup of a launch, at some time, seen from one wave; made by `Program.debug` and `flylab.debug`.

    `time` counts the instructions that the workgroup has executed. Its waves take turns in the order of the device's
    scheduler, so each time has one state, whichever way one comes there. Steps are those of the wave in focus; the
    others run as far as the scheduler lets them meanwhile. Methods that move give back the debugger, which a notebook
    shows. One that fails leaves the time as it was.
    """

    def __init__(self, session: Session, memory: Mapping[str, Copied], printed: Callable[[], str] | None = None):
        self._session, self._memory, self._printed = session, dict(memory), printed
        self._wave = 0
        self._kernel = session.loaded.kernel
        self._names = Names(session.loaded.registers)

    def __repr__(self) -> str:
        return described(self)

    @cached_property
    def _places(self) -> Places:
        return Places(self._kernel)

    # where it is

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self._kernel.name

    @property
    def block(self) -> Dims:
        """The workgroup, as (x, y, z)."""
        return coordinates(self._session.group, self._session.run.geometry.grid)

    @property
    def wave(self) -> int:
        """The number of the wave in focus: the one that is stepped and seen. It can be set."""
        return self._wave

    @wave.setter
    def wave(self, number: int) -> None:
        number = whole("the wave", number)
        if not 0 <= number < self._session.waves:
            raise DebugError(f"there is no wave {number}: a block of {self._session.run.geometry.threads} threads has "
                             f"{self._session.waves}", hint=f"waves are numbered 0 to {self._session.waves - 1}")
        self._wave = number

    @property
    def time(self) -> int:
        """Instructions that the workgroup has executed so far."""
        return self._session.time

    @property
    def steps(self) -> int:
        """Instructions that the wave in focus has executed so far."""
        return self._session.steps[self._wave]

    @property
    def instruction(self) -> Instruction | None:
        """The instruction that the wave executes next; None where it has ended."""
        return None if self.ended else self._kernel.instructions[self._session.index(self._wave)]

    @property
    def pc(self) -> int | None:
        """The byte of the function's code at which that instruction is."""
        return self.instruction.address if self.instruction else None

    @property
    def line(self) -> SourceLine | None:
        """The user's line that it comes from; of assembly without a line table, the line of the assembly."""
        return line_of(self._kernel, self.instruction) if self.instruction else None

    @property
    def ended(self) -> bool:
        """True where the wave in focus has come to its end."""
        return self._session.ended(self._wave)

    @property
    def finished(self) -> bool:
        """True where the whole workgroup has come to its end."""
        return all(map(self._session.ended, range(self._session.waves)))

    @property
    def at_barrier(self) -> bool:
        """True where the wave has come to a barrier and waits for others."""
        return self._session.waiting(self._wave)

    @property
    def error(self) -> DeviceError | None:
        """The error that the workgroup runs into now: the next instruction of one of its waves makes it."""
        ending = self._session.ending
        return ending.error if ending and ending.time == self.time else None

    # moving

    def step(self, n: int = 1) -> Debugger:
        """Executes n instructions of the wave, fewer where it ends or an error stops it.

        Raises that error where the debugger stands at it already, and `DebugError` where the wave has ended.
        """
        count = _positive("steps", n)
        self._check_goes_on()
        with self._session.kept():
            self._session.go_to_step(self._wave, self.steps + count)
        return self

    def back(self, n: int = 1) -> Debugger:
        """Goes back to where the wave had executed n instructions fewer."""
        count = _positive("steps", n)
        if count > self.steps:
            raise DebugError(f"wave {self._wave} has executed {self.steps} instructions, and is asked to go back "
                             f"{count}", hint="start() goes to the beginning")
        with self._session.kept():
            self._to_step(self.steps - count)
        return self

    def goto(self, time: int) -> Debugger:
        """Goes to a time, forward or back. Raises `DebugError` for one beyond the workgroup's end."""
        time = whole("the time", time)
        if time < 0:
            raise DebugError(f"there is no time {time}", hint="start() goes to time 0")
        with self._session.kept():
            if not self._session.go(time):
                end = self._session.ending
                assert end is not None
                how = "ended" if end.error is None else "met an error"
                raise DebugError(f"there is no time {time}: the workgroup {how} after {end.time} instructions",
                                 hint="finish() goes to the end")
        return self

    def start(self) -> Debugger:
        """Goes to the beginning: no wave has executed anything."""
        return self.goto(0)

    def finish(self) -> Debugger:
        """Runs the workgroup to its end, or to the error that stops it."""
        with self._session.kept():
            self._session.forward(Goal())
        return self

    def run_to(self, at: str | int | None = None, *, pc: int | None = None,
               line: int | tuple[str, int] | None = None, visit: int = 1) -> Debugger:
        """Runs until the wave is about to execute a place for the `visit`-th time from now on.

        `at` is a label or the number of an instruction, `pc` a byte of the kernel's code, `line` a line of the source,
        with its file where several are possible. Where the wave is now does not count. Raises `DebugError` for a place
        without code, and where the wave does not come there so often.
        """
        breaks, visit = self._places.find(pc=pc, line=line, at=at), _positive("visit", visit)
        self._check_goes_on()
        with self._session.kept():
            if not self._session.forward(Goal(wave=self._wave, breaks=breaks, visit=visit)):
                raise DebugError(f"wave {self._wave} comes there {self._session.hits} times from here on, and not "
                                 f"{visit}: it {self._why_stopped()}", hint="run_back_to() looks the other way")
        return self

    def run_back_to(self, at: str | int | None = None, *, pc: int | None = None,
                    line: int | tuple[str, int] | None = None, visit: int = 1) -> Debugger:
        """Goes back to where the wave was about to execute a place, the `visit`-th time before now.

        Places are those of `run_to`.
        """
        breaks, visit = self._places.find(pc=pc, line=line, at=at), _positive("visit", visit)
        with self._session.kept():
            step, found = self._last_visit(breaks, visit)
            if step is None:
                raise DebugError(f"wave {self._wave} was there {found} times before, and not {visit}",
                                 hint="run_to() looks the other way")
            self._to_step(step)
        return self

    def _check_goes_on(self) -> None:
        if self.error is not None:
            raise self.error
        if self.ended:
            raise DebugError(f"wave {self._wave} has ended", hint="back() goes back; set wave to step another one")

    def _why_stopped(self) -> str:
        end = self._session.ending
        return f"meets an error at time {end.time}" if end and end.error else f"ends at time {self.time}"

    def _to_step(self, steps: int) -> None:
        if steps:
            self._session.go_to_step(self._wave, steps)
        else:
            self._session.go(0)

    def _last_visit(self, breaks: bytes, visit: int, lanes: int = (1 << 64) - 1) -> tuple[int | None, int]:
        """How many instructions the wave had executed at the last but `visit` - 1 visit before now, or None; and how
        many visits there were."""
        session, wave = self._session, self._wave
        high, found = session.steps[wave] - 1, 0
        begins = high >= 0
        while high > 0:
            snapshot = session.history.before_step(wave, high)

            def hits(wanted: int, time: int = snapshot.time, steps: int = high) -> int:
                session.go(time)
                session.forward(Goal(wave=wave, steps=steps, breaks=breaks, visit=wanted, lanes=lanes))
                return session.hits

            count = hits(1 << 63)
            if found + count >= visit:
                hits(count - (visit - found) + 1)
                return session.steps[wave], visit
            found, high = found + count, snapshot.steps[wave]
        if begins:
            session.go(0)
            first = breaks[session.index(wave)]
            if first == ALWAYS or first == WHERE_ACTIVE and self.exec & lanes:
                found += 1
        return (0 if begins and found == visit else None), found

    # what there is to see

    @property
    def sgprs(self) -> Array:
        """The scalar registers s0, s1 ... as uint32."""
        return self._scalars()[:NUMBERED_SGPRS]

    def sgpr(self, n: int) -> int:
        """A scalar register."""
        return int(self._scalars()[self._names.checked("s", n)])

    def vgpr(self, n: int, dtype: Any = np.uint32) -> Array:
        """A vector register in its 64 lanes, as uint32 or seen as another format: float32, float16 (two a lane)."""
        return np.asarray(self._vectors()[self._names.checked("v", n)].view(dtype))

    def agpr(self, n: int, dtype: Any = np.uint32) -> Array:
        """An accumulator register in its 64 lanes, as `vgpr`."""
        return np.asarray(self._vectors()[self._names.checked("a", n)].view(dtype))

    def register(self, name: str) -> Any:
        """A register by its name: `v3`, `v[2:3]` and `a0` as arrays of lanes, `s4`, `s[4:5]`, `vcc` as numbers."""
        named = self._names.find(name)
        if named.file == "v":
            rows = self._vectors()[named.first:named.first + named.count]
            return rows if named.count > 1 else rows[0]
        words = self._scalars()[named.first:named.first + named.count]
        return sum(int(word) << (32 * n) for n, word in enumerate(words))

    @property
    def exec(self) -> int:
        """EXEC: a bit for each lane that is active."""
        return int(self.register("exec"))

    @property
    def vcc(self) -> int:
        """VCC, 64 bits."""
        return int(self.register("vcc"))

    @property
    def scc(self) -> int:
        """SCC, 0 or 1."""
        return int(self._scalars()[SCC])

    @property
    def m0(self) -> int:
        """M0, 32 bits."""
        return int(self._scalars()[M0])

    def lane(self, n: int) -> Lane:
        """A lane of the wave."""
        n = whole("the lane", n)
        if not 0 <= n < WAVE_SIZE:
            raise DebugError(f"there is no lane {n}", hint=f"a wave has lanes 0 to {WAVE_SIZE - 1}")
        values, first = self._vectors()[:, n], self._names.vectors
        thread = coordinates(self._wave * WAVE_SIZE + n, self._session.run.geometry.block)
        return Lane(thread, bool(self.exec >> n & 1), values[:first], values[first:])

    @property
    def lds(self) -> Array:
        """The bytes of the workgroup's LDS; `.view("float32")` sees them as numbers."""
        return _copied(self._session.worker.lds, self._session.run.launch.lds_bytes, np.uint8)

    def memory(self, name: str) -> Array:
        """An array argument as it is now, in its shape and format, as a copy."""
        if name not in self._memory:
            known = ", ".join(self._memory) or "none"
            raise DebugError(f"the launch has no array argument {shown(name)}", hint=f"its arrays are {known}")
        return self._memory[name].array()

    def result(self) -> dict[str, Array]:
        """All array arguments as they are now."""
        return {name: self.memory(name) for name in self._memory}

    @property
    def printed(self) -> str:
        """What the launch has printed till now (`fx.printf`)."""
        return self._printed() if self._printed else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks have found till now."""
        return self._session.run.findings().listed

    def state(self) -> State:
        """All of the above at once: the wave's registers, LDS and arrays."""
        return State(self.time, self._session.worker.changes, self._vectors(), self._scalars(), self.lds, self.result())

    def changes(self, since: int | None = None) -> Changes:
        """What the wave's last instruction changed, or what changed since a time, as far as the wave sees it."""
        if since is None and not self.steps:
            return Changes()
        if since is not None and not 0 <= whole("the time", since) <= self.time:
            raise DebugError(f"time {since} is not before now, {self.time}", hint="changes(since=0) shows all changes")
        with self._visiting():
            if since is None:
                self._to_step(self.steps)
                since = self.time - 1
            after = self.state()
            self.goto(since)
            before = self.state()
        return difference(before, after, self._names)

    @contextmanager
    def _visiting(self) -> Iterator[None]:
        """Looks at other times, and comes back."""
        with self._session.kept():
            now = self.time
            yield
            self._session.go(now)

    def _vectors(self) -> Array:
        size = self._session.run.launch.vgpr_bytes
        rows = self._session.loaded.registers.rows
        address = self._session.worker.vgprs + self._wave * size
        return _copied(address, rows * WAVE_SIZE * 4, np.uint32).reshape(rows, WAVE_SIZE)

    def _scalars(self) -> Array:
        return _copied(self._session.worker.sgprs + self._wave * 4 * SGPR_COUNT, 4 * SGPR_COUNT, np.uint32)


def _copied(address: int, size: int, dtype: Any) -> Array:
    return np.frombuffer(bytearray(ctypes.string_at(address, size)), dtype)


def _positive(what: str, n: Any) -> int:
    count = whole(f"the number of {what}", n)
    if count < 1:
        raise DebugError(f"the number of {what} is {count}, and 1 or more is needed",
                         hint="back() and run_back_to() go the other way")
    return count
