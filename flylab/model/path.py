"""The path of one wave through a listing: where it waits, and how long before it began what it waits for.

The listing is walked in its order; a loop's body twice, the second time for all its other trips, so that a load of one
trip that the next one waits for is seen. Distances are in issue slots of the wave itself, of four clocks. Waits stay in
their order: while a wave stands at one, what it will wait for at the next ones is on its way too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from flylab.codegen.assembly.effects import Effects
from flylab.codegen.isa import IsaKernel

MEMORY, LDS, SCALAR, BARRIER, MATRIX, UNIT = "memory", "lds", "scalar", "barrier", "matrix", "unit"
MOST_DISTANCE = 2048
"""Distances are cut here: nothing takes so many issue slots to arrive."""
TRANSCENDENTAL_SLOTS = 4
_KINDS = {"lds": LDS, "smem": SCALAR}


@dataclass(frozen=True)
class Wait:
    """A wave waits `times` times for what it began `distance` issue slots before.

    `kind` is memory, lds, scalar (memory), barrier, matrix, whose result is there after `passes` slots and a gap, or
    unit, the matrix unit that is busy for `passes` slots. `runs` are the executions of the instruction that waits, of
    which `times` are those of this place in the walk; `behind` of the waits just before came after the beginning.
    """

    kind: str
    distance: int
    times: float
    runs: float
    passes: int = 0
    behind: int = 0


def path_of(kernel: IsaKernel, effects: Sequence[Effects], times: Sequence[float]) -> tuple[float, tuple[Wait, ...]]:
    """The issue slots and the waits, in order, of a wave that executes instruction n `times[n]` times."""
    walk = _Walk(effects, times, tuple(loops_of(kernel, effects)))
    walk.go(0, len(effects), 1.0, ())
    return walk.issue, tuple(walk.found)


def standing(waits: Sequence[Wait], latency: Callable[[Wait], float], slot: float) -> float:
    """Clocks for which a wave stands still at its waits, in all.

    It stands for what is left of a latency (in clocks) after the slots that it issued since, and after the time for
    which it stood at other waits since. `slot` is the clocks of an issue slot.

    >>> both = [Wait("memory", 2, 1, 1), Wait("memory", 2, 1, 1, behind=1)]
    >>> standing(both, lambda wait: 1000, 4)     # two loads one after the other: the second comes 4 clocks later
    992.0
    """
    stood: list[float] = []
    total = 0.0
    for n, wait in enumerate(waits):
        since = sum(stood[k] * min(1.0, waits[k].runs / wait.runs) for k in range(n - wait.behind, n))
        stood.append(max(latency(wait) - slot * wait.distance - since, 0.0))
        total += wait.times * stood[n]
    return total


def loops_of(kernel: IsaKernel, effects: Sequence[Effects]) -> list[tuple[int, int]]:
    """The first and the last instruction of each loop: a jump back and where it goes."""
    found = []
    for number, (instruction, effect) in enumerate(zip(kernel.instructions, effects, strict=True)):
        goal = kernel.labels.get(instruction.operands[-1]) if effect.kind == "branch" and instruction.operands else None
        if goal is not None and goal <= number:
            found.append((goal, number))
    return found


_Began = tuple[int, int]
"""The slot in which something began, and how many waits there were before."""


@dataclass
class _Walk:
    effects: Sequence[Effects]
    times: Sequence[float]
    loops: tuple[tuple[int, int], ...]
    slot: int = 0
    issue: float = 0.0
    """Slots of all executions."""
    found: list[Wait] = field(default_factory=list)
    queues: dict[str, list[tuple[_Began, str]]] = field(default_factory=lambda: {"vmcnt": [], "lgkmcnt": []})
    """What is on its way, and its kind."""
    results: dict[tuple[str, int], tuple[_Began, int]] = field(default_factory=dict)
    """Of registers that a matrix instruction wrote last: when it began, and its passes."""
    unit: tuple[_Began, int] | None = None
    """The last matrix instruction, and its passes."""

    def go(self, first: int, end: int, share: float, inside: tuple[tuple[int, int], ...]) -> None:
        """Walks instructions `first` to `end`, for a share of their executions, `inside` of these loops."""
        within = [loop for loop in self.loops if first <= loop[0] and loop[1] < end and loop not in inside]
        outermost = dict(sorted(within))
        at = first
        while at < end:
            last = outermost.get(at)
            if last is None:
                self._step(at, share)
                at += 1
                continue
            entered = self._entered(at)
            for part in (entered, 1 - entered):
                if part:
                    self.go(at, last + 1, share * part, (*inside, (at, last)))
            at = last + 1

    def _entered(self, first: int) -> float:
        """Which share of a loop's trips are first ones, by how often the instruction before the loop is executed."""
        trips = self.times[first]
        return min(self.times[first - 1] / trips, 1.0) if first and trips else 1.0

    def _step(self, at: int, share: float) -> None:
        effect, runs = self.effects[at], self.times[at]
        for name, left in effect.waits.items():
            queue = self.queues[name]
            if len(queue) > left:
                began, kind = queue[len(queue) - left - 1]
                self._wait(kind, began, runs, share)
                self.queues[name] = queue[len(queue) - left:]
        if effect.kind == "barrier":
            self._wait(BARRIER, self._now, runs, share)
        taken = self._matrix(effect, runs, share)
        for name in effect.raises:
            self.queues[name].append((self._now, _KINDS.get(effect.kind, MEMORY)))
        self.slot += taken
        self.issue += taken * runs * share

    @property
    def _now(self) -> _Began:
        return self.slot, len(self.found)

    def _matrix(self, effect: Effects, runs: float, share: float) -> int:
        """Waits for results of matrix instructions, and for their unit; the slots that the instruction takes.

        One that adds to the result of another follows without a gap, as soon as the unit is free.
        """
        touched = {(span.file, n) for span in effect.reads for n in range(span.first, span.first + span.count)}
        waited = {self.results[register] for register in touched if register in self.results}
        if waited and not effect.passes:
            began, passes = max(waited)
            self._wait(MATRIX, began, runs, share, passes)
            self.results.clear()
        stall = self._unit(effect, runs, share) if effect.passes else 0
        now = self.slot + stall, len(self.found)
        for span in effect.writes:
            for n in range(span.first, span.first + span.count):
                if effect.passes:
                    self.results[span.file, n] = now, effect.passes
                else:
                    self.results.pop((span.file, n), None)
        return stall + (TRANSCENDENTAL_SLOTS if effect.kind == "trans" else 1)

    def _unit(self, effect: Effects, runs: float, share: float) -> int:
        """Slots until the matrix unit is free. Where a wait lies between, these depend on it, and are a wait too."""
        stall = 0
        if self.unit is not None:
            began, passes = self.unit
            if self.slot - began[0] < passes and began[1] < len(self.found):
                self._wait(UNIT, began, runs, share, passes)
            else:
                stall = max(passes - (self.slot - began[0]), 0)
        self.unit = (self.slot + stall, len(self.found)), effect.passes
        return stall

    def _wait(self, kind: str, began: _Began, runs: float, share: float, passes: int = 0) -> None:
        if runs:
            distance = min(self.slot - began[0], MOST_DISTANCE)
            self.found.append(Wait(kind, distance, runs * share, runs, passes, len(self.found) - began[1]))
