"""The order in which the waves of a workgroup run: the native scheduler's (`core.run_text`), as a state to be kept.

A wave runs until it ends, waits, or takes a jump with its stretch of instructions used up; then comes the next one that
is ready. When none is, those at the barrier go on. Stretches change as those of the native scheduler do, so that a
workgroup alone is interleaved alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flylab.emulator.state import FIRST, PROBE, PROBES, STRETCH, TURN


@dataclass(frozen=True)
class Turn:
    """Which wave's turn it is, and what decides how long turns are.

    `until` is the count at which its stretch is used up, None before the turn begins; `ready` is set where a wave of
    this round used up its stretch.
    """

    wave: int = 0
    until: int | None = None
    ready: bool = False
    stretch: int = FIRST
    look_at: int = FIRST
    looks: int = 0
    turn_end: int = TURN

    def begun(self, count: int) -> Turn:
        """The turn of this wave begins."""
        return self if self.until is not None else replace(self, until=count + self.stretch)

    def next_wave(self, yielded: bool = False) -> Turn:
        """The next wave's turn, this one's being over or none."""
        return replace(self, wave=self.wave + 1, until=None, ready=self.ready or yielded)

    def next_round(self, count: int) -> Turn:
        """The first wave's turn again, after a look where one is due."""
        after = replace(self, wave=0, until=None, ready=False)
        return after._looked(count) if self.ready or count >= self.look_at else after

    def _looked(self, count: int) -> Turn:
        if self.looks < PROBES:
            looks = self.looks + 1
            stretch = STRETCH if looks == PROBES else PROBE
            return replace(self, looks=looks, stretch=stretch, look_at=count + stretch)
        if count >= self.turn_end:  # there the native worker would turn to another workgroup, and come back
            return replace(self, looks=0, stretch=PROBE, look_at=count + PROBE, turn_end=count + TURN)
        return replace(self, stretch=STRETCH, look_at=count + STRETCH)
