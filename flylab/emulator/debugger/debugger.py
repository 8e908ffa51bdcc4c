"""The debugger: a wave of a workgroup that is stepped, forward and back, and looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flylab.emulator.arguments import whole
from flylab.emulator.debugger.changes import Changes, difference
from flylab.emulator.debugger.past import Moment, Outstanding, Step, last_visit, outstanding, path, writers
from flylab.emulator.debugger.places import line_of
from flylab.emulator.debugger.session import MEMORY, Goal
from flylab.emulator.debugger.show import described, listing
from flylab.emulator.debugger.stepping import TRACE
from flylab.emulator.debugger.view import WaveView
from flylab.emulator.state import WAVE_SIZE
from flylab.errors import DebugError, DeviceError
from flylab.shown import Text


class Debugger(WaveView):
    """One workgroup of a launch, at some time, seen from one wave; made by `Program.debug` and `flylab.debug`.

    `time` counts the instructions that the workgroup has executed. Its waves take turns in the order of the device's
    scheduler, so each time has one state, whichever way one comes there. Steps are those of the wave in focus; the
    others run as far as the scheduler lets them meanwhile. Methods that move give back the debugger, which a notebook
    shows. One that fails leaves the time as it was.
    """

    def __repr__(self) -> str:
        return described(self)

    def __reduce__(self) -> Any:
        raise DebugError("a debugger holds memory of this process, and cannot be copied or pickled",
                         hint="begin another one with the same arguments, and goto(debugger.time)")

    def step(self, n: int = 1) -> Debugger:
        """Executes n instructions of the wave, fewer where it ends or an error stops it.

        Raises that error where the debugger stands at it already, and `DebugError` where the wave has ended.
        """
        count = _positive("steps", n)
        self._check_goes_on()
        with self._session.kept():
            now = self.time
            self._session.go_to_step(self._wave, self.steps + count)
            self._check_moved(now)
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

        `at` is the number of an instruction as `listing()` has it, how an instruction begins ("ds_read", "s_barrier"),
        or a label; `pc` a byte of the kernel's code; `line` a line of the source, with its file or cell where several
        are possible. Where the wave is now does not count. Raises `DebugError` for a place
        without code, and where the wave does not come there so often.
        """
        breaks, visit = self._places.find(pc=pc, line=line, at=at), _positive("visits", visit)
        self._check_goes_on()
        with self._session.kept():
            now = self.time
            if not self._session.forward(Goal(wave=self._wave, breaks=breaks, visit=visit)):
                self._check_moved(now)
                raise DebugError(f"wave {self._wave} {_visits(self._session.hits, visit)}: it {self._why_stopped()}",
                                 hint="run_back_to() looks the other way")
        return self

    def run_back_to(self, at: str | int | None = None, *, pc: int | None = None,
                    line: int | tuple[str, int] | None = None, visit: int = 1) -> Debugger:
        """Goes back to where the wave was about to execute a place, the `visit`-th time before now.

        Places are those of `run_to`.
        """
        breaks, visit = self._places.find(pc=pc, line=line, at=at), _positive("visits", visit)
        with self._session.kept():
            step, found = last_visit(self._session, self._wave, breaks, visit)
            if step is None:
                raise DebugError(f"wave {self._wave} was there {found} times before, and not {visit}",
                                 hint="run_to() looks the other way")
            self._to_step(step)
        return self

    def listing(self, around: int | None = None) -> Text:
        """The kernel's instructions by their numbers, with the lines that they came from, and an arrow at the next one.

        `around` leaves out what is further from that than so many instructions.
        """
        count = len(self._kernel.instructions) if around is None else _positive("instructions", around)
        return listing(self._kernel, self.instruction, count)

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
            # Arrays may be large, and most instructions write none.
            now, after = self.time, self._state({})
            self.goto(since)
            before = self._state({})
            if before.writes[MEMORY] != after.writes[MEMORY]:
                before = self.state()
                after = self.goto(now).state()
        return difference(before, after, self._names)

    def last_write(self, name: str, lane: int | None = None) -> Moment | None:
        """The last time before now that the wave wrote a register (`v3`, `s[4:5]`, `vcc`), in a lane if one is given.

        `goto(found.time)` goes to where that instruction comes next. None where the register holds what it began with.
        A write counts whether it changed anything; one of a vector register counts for the lanes that were active.
        """
        lanes = (1 << WAVE_SIZE) - 1 if lane is None else 1 << self.lane(lane).number
        breaks = writers(self._kernel, self._names.find(name))
        with self._visiting():
            step, _ = last_visit(self._session, self._wave, breaks, 1, lanes)
            if step is None:
                return None
            self._to_step(step)
            return self._moment(Step(self.time, step, self._session.index(self._wave)))

    def _moment(self, step: Step) -> Moment:
        instruction = self._kernel.instructions[step.number]
        return Moment(step.time, step.step, instruction, line_of(self._kernel, instruction))

    def path(self, n: int = 10) -> list[Moment]:
        """The wave's last n instructions, the latest last; fewer where it has executed fewer; at most 16,384.
        """
        count = _positive("instructions", n)
        with self._visiting():
            end = self.steps
            first = max(end - min(count, TRACE), 0)
            rows = path(self._session, self._wave, first, end).tolist()
            return [self._moment(Step(time, first + n, number)) for n, (number, time) in enumerate(rows)]

    @property
    def outstanding(self) -> tuple[Outstanding, ...]:
        """Loads and stores of the wave that nothing has waited for yet, the oldest first, by counter.

        On the chip some may be back already; a program can only know by `s_waitcnt`.
        """
        with self._visiting():
            now = self.steps
            return tuple(Outstanding(counter, registers, self._moment(step), now - step.step - 1)
                         for counter, registers, step in outstanding(self._session, self._wave))

    @contextmanager
    def _visiting(self) -> Iterator[None]:
        """Looks at other times, and comes back."""
        with self._session.kept():
            now = self.time
            yield
            self._session.go(now)

    def _check_goes_on(self) -> None:
        if (error := self._session.known_error) is not None:
            raise error
        if self.ended:
            raise DebugError(f"wave {self._wave} has ended", hint="back() goes back; set wave to step another one")

    def _check_moved(self, since: int) -> None:
        """Raises the error that lets nothing go on from there."""
        error: DeviceError | None = self._session.known_error
        if self.time == since and error is not None:
            raise error

    def _why_stopped(self) -> str:
        end = self._session.ending
        return f"meets an error at time {end.time}" if end and end.error else f"ends at time {self.time}"

    def _to_step(self, steps: int) -> None:
        if steps:
            self._session.go_to_step(self._wave, steps)
        else:
            self._session.go(0)


def _visits(found: int, wanted: int) -> str:
    """That a wave comes to a place too rarely."""
    if wanted == 1:
        return "does not come there from here on"
    return f"comes there {found} time{'s' * (found != 1)} from here on, and not {wanted}"


def _positive(what: str, n: Any) -> int:
    count = whole(f"the number of {what}", n)
    if count < 1:
        raise DebugError(f"the number of {what} is {count}, and 1 or more is needed",
                         hint="back() and run_back_to() go the other way")
    return count
