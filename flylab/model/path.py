"""The path of one wave through a listing: where it waits, and how long before it began what it waits for.

The listing is walked in its order; a loop's body twice, the second time for all its other trips, so that a load of one
trip that the next one waits for is seen. Distances are in issue slots of the wave itself, of four clocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from flylab.codegen.assembly.effects import Effects
from flylab.codegen.isa import IsaKernel

MEMORY, LDS, SCALAR, BARRIER, MATRIX = "memory", "lds", "scalar", "barrier", "matrix"
MOST_DISTANCE = 2048
"""Distances are cut here: nothing takes so many issue slots to arrive."""
TRANSCENDENTAL_SLOTS = 4
_KINDS = {"lds": LDS, "smem": SCALAR}


@dataclass(frozen=True)
class Wait:
    """A wave waits `times` times for what it began `distance` issue slots before.

    `kind` is memory, lds, scalar (memory), barrier, or matrix, whose result the unit has after `passes` slots.
    """

    kind: str
    distance: int
    times: float
    passes: int = 0


def slots(effect: Effects) -> int:
    """Issue slots that an instruction keeps its wave from issuing the next one of its kind."""
    return effect.passes or (TRANSCENDENTAL_SLOTS if effect.kind == "trans" else 1)


def waits_of(kernel: IsaKernel, effects: Sequence[Effects], times: Sequence[float]) -> tuple[Wait, ...]:
    """The waits of a wave that executes instruction n `times[n]` times, those of equal distance together."""
    walk = _Walk(effects, times, tuple(_loops(kernel, effects)))
    walk.go(0, len(effects), 1.0, ())
    return tuple(Wait(kind, distance, found, passes) for (kind, distance, passes), found in sorted(walk.found.items()))


def _loops(kernel: IsaKernel, effects: Sequence[Effects]) -> list[tuple[int, int]]:
    """The first and the last instruction of each loop: a jump back and where it goes."""
    found = []
    for number, (instruction, effect) in enumerate(zip(kernel.instructions, effects, strict=True)):
        goal = kernel.labels.get(instruction.operands[-1]) if effect.kind == "branch" and instruction.operands else None
        if goal is not None and goal <= number:
            found.append((goal, number))
    return found


@dataclass
class _Walk:
    effects: Sequence[Effects]
    times: Sequence[float]
    loops: tuple[tuple[int, int], ...]
    slot: int = 0
    found: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    queues: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: {"vmcnt": [], "lgkmcnt": []})
    """What is on its way: the slot in which it began, and its kind."""
    results: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """Of registers that a matrix instruction wrote last: its slot and its passes."""

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
        effect, times = self.effects[at], self.times[at] * share
        for name, left in effect.waits.items():
            queue = self.queues[name]
            if len(queue) > left:
                began, kind = queue[len(queue) - left - 1]
                self._wait(kind, self.slot - began, times)
                self.queues[name] = queue[len(queue) - left:]
        if effect.kind == "barrier":
            self._wait(BARRIER, 0, times)
        self._matrix(effect, times)
        for name in effect.raises:
            self.queues[name].append((self.slot, _KINDS.get(effect.kind, MEMORY)))
        self.slot += slots(effect)

    def _matrix(self, effect: Effects, times: float) -> None:
        """Waits for results of matrix instructions. One that adds to the result of another follows without a gap."""
        touched = {(span.file, n) for span in effect.reads for n in range(span.first, span.first + span.count)}
        waited = {self.results[register] for register in touched if register in self.results}
        if waited and not effect.passes:
            began, passes = max(waited)
            self._wait(MATRIX, self.slot - began, times, passes)
        for span in effect.writes:
            for n in range(span.first, span.first + span.count):
                if effect.passes:
                    self.results[span.file, n] = self.slot, effect.passes
                else:
                    self.results.pop((span.file, n), None)
        if waited and not effect.passes:
            self.results.clear()

    def _wait(self, kind: str, distance: int, times: float, passes: int = 0) -> None:
        if times:
            self.found[kind, min(distance, MOST_DISTANCE), passes] += times  # type: ignore[assignment]
