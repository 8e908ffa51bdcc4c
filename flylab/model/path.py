"""The path of one wave through a listing: where it waits, and how long before it began what it waits for.

The listing is walked in its order; a loop's body twice, the second time for all its other trips, so that a load of one
trip that the next one waits for is seen. Distances are in issue slots of the wave itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from flylab.codegen.assembly.effects import Effects
from flylab.codegen.isa import IsaKernel

MEMORY, LDS, SCALAR, BARRIER, MATRIX = "memory", "lds", "scalar", "barrier", "matrix"
MOST_DISTANCE = 4096
"""Distances are cut here: nothing takes so many issue slots to arrive."""


@dataclass(frozen=True)
class Wait:
    """A wave waits `times` times for what it began `distance` issue slots before.

    `kind` is memory, lds, scalar (memory), barrier, or matrix, whose `passes` the unit needs.
    """

    kind: str
    distance: int
    times: float
    passes: int = 0


@dataclass
class _Walk:
    kernel: IsaKernel
    effects: Sequence[Effects]
    times: Sequence[float]
    slot: int = 0
    found: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    queues: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: {"vmcnt": [], "lgkmcnt": []})
    results: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """Of registers that a matrix instruction wrote: the slot of that, and its passes."""

    def go(self, first: int, end: int, share: float) -> None:
        """Walks instructions `first` to `end`, at a share of their executions."""
        loops = _outermost(self._loops(first, end))
        at = first
        while at < end:
            last = loops.get(at)
            if last is None or (at, last + 1) == (first, end):
                self._step(at, share)
                at += 1
                continue
            entered = self._entered(at, last)
            self._body(at, last + 1, share * entered)
            if entered < 1:
                self._body(at, last + 1, share * (1 - entered))
            at = last + 1

    def _body(self, first: int, end: int, share: float) -> None:
        """A loop's body, whose own jump back is no loop again."""
        inner = _outermost([(a, b) for a, b in self._loops(first, end) if (a, b + 1) != (first, end)])
        at = first
        while at < end:
            if at in inner:
                self.go(at, inner[at] + 1, share) if False else self._loop(at, inner[at], share)
                at = inner[at] + 1
            else:
                self._step(at, share)
                at += 1
