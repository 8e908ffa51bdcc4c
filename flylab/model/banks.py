"""What the banks of LDS cost one access of a wave, from the addresses of its lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flylab.errors import FlylabError
from flylab.lds_banks import phases
from flylab.targets import WAVE_SIZE, Target, target


@dataclass(frozen=True)
class BankCost:
    """The cycles of each phase of an LDS instruction; a phase with an active lane takes at least one.

    `mark` says where the rule is from: S published, M measured by others, ? not known, the rule of the nearest row.
    """

    mnemonic: str
    chip: Target
    phases: tuple[int, ...]
    mark: str

    @property
    def cycles(self) -> int:
        """Cycles of the whole instruction."""
        return sum(self.phases)

    @property
    def least(self) -> int:
        """Cycles that it would take without a conflict."""
        return sum(cycles > 0 for cycles in self.phases)

    @property
    def conflicts(self) -> int:
        """Cycles that conflicts add."""
        return self.cycles - self.least

    def __str__(self) -> str:
        return (f"{self.mnemonic} on {self.chip}: {self.cycles} cycles (modelled, rule {self.mark}), "
                f"{self.conflicts} of them by bank conflicts")

    __repr__ = __str__


def bank_conflicts(mnemonic: str, chip: str | Target, *places: Sequence[int | None]) -> BankCost:
    """The cost of an LDS instruction whose lane n touches byte offset `place[n]` of LDS; None where a lane is inactive.

    An instruction at two places (`ds_read2_b32`) gets two sequences. Lanes beyond the end of a sequence are inactive.
    Source: the rows of `flylab.lds_banks`.

    >>> bank_conflicts("ds_read_b32", "gfx942", range(0, 256, 4)).conflicts
    0
    >>> print(bank_conflicts("ds_read_b32", "gfx942", [128 * lane for lane in range(64)]))
    ds_read_b32 on gfx942: 64 cycles (modelled, rule S), 62 of them by bank conflicts

    Raises `FlylabError` for an instruction that is none of LDS, a wrong number of places, and more lanes than a wave.
    """
    known, rule = target(chip), phases(target(chip).arch, mnemonic)
    if len(places) != rule.accesses:
        raise FlylabError(f"{mnemonic} touches LDS at {rule.accesses} place(s) a lane, and {len(places)} are given",
                          hint="give one sequence of offsets for each place")
    found: list[int] = []
    for place in places:
        if len(place) > WAVE_SIZE:
            raise FlylabError(f"{len(place)} offsets for the {WAVE_SIZE} lanes of a wave", hint="give one a lane")
        active = sum(1 << lane for lane, offset in enumerate(place) if offset is not None)
        padded = [offset or 0 for offset in place] + [0] * (WAVE_SIZE - len(place))
        if min(padded) < 0:
            raise FlylabError(f"LDS has no byte {min(padded)}", hint="offsets count from the start of LDS")
        found += rule.cycles(padded, active)
    return BankCost(mnemonic, known, tuple(found), rule.mark)
