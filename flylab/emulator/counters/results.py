"""What a launch counted: a column for each figure with an entry for each instruction, and sums by line and in all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from flylab.codegen.assembly.effects import Effects, effects
from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import IsaKernel
from flylab.emulator.counters.instrument import run_starts
from flylab.emulator.counters.tables import Table
from flylab.emulator.counters.tally import ACCESSES, CYCLES, LEAST, LINES, PHASES, added_up
from flylab.emulator.decoding.decode import source_line
from flylab.errors import DeviceError
from flylab.locks import cached_property
from flylab.mfma import mfma
from flylab.places import SourceLine
from flylab.shown import Text
from flylab.targets import WAVE_SIZE

MEMORY = ("global", "buffer", "flat")
"""The spaces of memory whose accesses go to cache lines."""
BY_LANES = ("valu", "trans", "mfma", "lds", "vmem", "flat", "scratch")
"""The kinds of instructions that work on lanes."""


@dataclass(frozen=True)
class Counts:
    """The figures of an instruction, of a line, or of a launch; all are emulated.

    `executions` are by waves, `by_lanes` those of instructions that work on lanes, and `lanes` the lanes that were
    active in these, as EXEC has them. `bytes` are those that lanes (and scalar loads) asked for, `clamped` the lanes
    that a buffer's descriptor cut off, whose bytes do not count. `accesses` of the vector cache are a sum over quads of
    lanes of the distinct lines of 128 bytes; `lines` a sum over executions of the wave's distinct lines;
    `least_accesses` the quads with a lane to serve. Of LDS: accesses by waves (two for an instruction at two places),
    phases with an active lane, and the cycles that the phases took. `operations` are those of matrix instructions, two
    for each product (of a sparse one as if it were dense).

    >>> line = Counts(executions=4, accesses=96, least_accesses=64, lds_phases=8, lds_cycles=20)
    >>> line.coalescing, line.lds_conflicts, (line + line).executions
    (0.6666666666666666, 12, 8)
    """

    executions: int = 0
    by_lanes: int = 0
    lanes: int = 0
    bytes: int = 0
    clamped: int = 0
    accesses: int = 0
    lines: int = 0
    least_accesses: int = 0
    lds_accesses: int = 0
    lds_phases: int = 0
    lds_cycles: int = 0
    operations: int = 0

    @property
    def active(self) -> float | None:
        """The part of the lanes that was active, of instructions that work on lanes."""
        return self.lanes / (WAVE_SIZE * self.by_lanes) if self.by_lanes else None

    @property
    def lds_conflicts(self) -> int:
        """Cycles of LDS beyond the least, which is one for each phase."""
        return self.lds_cycles - self.lds_phases

    @property
    def coalescing(self) -> float | None:
        """The least accesses of the cache over those made: 1 is best; None where there were none."""
        return self.least_accesses / self.accesses if self.accesses else None

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


FIGURES = tuple(field.name for field in fields(Counts))


@dataclass(frozen=True)
class InstructionCounts:
    """An instruction by its number, and what it counted."""

    number: int
    text: str
    where: SourceLine | None
    kind: str
    space: str
    counts: Counts


@dataclass(frozen=True)
class LineCounts:
    """A line of the source, its instructions by their numbers, and what they counted together."""

    where: SourceLine | None
    instructions: tuple[int, ...]
    counts: Counts


@dataclass(frozen=True, eq=False, repr=False)
class Counters:
    """What a launch counted, by instruction; every figure is emulated, and none is a time.

    `columns` has an integer array for each figure of `Counts`, with an entry for each instruction: those of the kernel,
    then of the functions that it calls. `counters["lds_cycles"]` is one of them.
    """

    kernel: str
    chip: str
    workgroups: int
    waves: int
    texts: tuple[str, ...]
    places: tuple[SourceLine | None, ...]
    effects: tuple[Effects, ...]
    columns: dict[str, np.ndarray]
    source: str = "emulated"

    @classmethod
    def of(cls, kernel: IsaKernel, tables: Sequence[memoryview], workgroups: int, waves: int) -> Counters:
        """The counters of a launch from the tallies of its workers."""
        tallies = added_up(tables, len(kernel.instructions))
        found = tuple(effects(i, kernel.target) for i in kernel.instructions)
        return cls(kernel.name, kernel.target.arch, workgroups, waves, tuple(i.text for i in kernel.instructions),
                   tuple(source_line(kernel, i) for i in kernel.instructions), found, _columns(kernel, found, tallies))

    def __getitem__(self, figure: str) -> np.ndarray:
        """The column of a figure. Raises `DeviceError` for what is none."""
        if figure not in self.columns:
            raise DeviceError(f"{figure!r} is no figure that is counted", hint=f"there are {', '.join(FIGURES)}")
        return self.columns[figure]

    def __len__(self) -> int:
        return len(self.texts)

    def counts(self, numbers: Iterable[int]) -> Counts:
        """The figures of some instructions, by their numbers, together. Raises `DeviceError` for one not there."""
        chosen = np.fromiter(numbers, np.int64)
        if len(wrong := chosen[(chosen < 0) | (chosen >= len(self))]):
            raise DeviceError(f"kernel '{self.kernel}' has no instruction {wrong[0]}",
                              hint=f"they are numbered 0 to {len(self) - 1}")
        return Counts(*(int(self.columns[figure][chosen].sum()) for figure in FIGURES))

    @cached_property
    def totals(self) -> Counts:
        """The figures of the whole launch."""
        return self.counts(range(len(self)))

    def by_instruction(self) -> list[InstructionCounts]:
        """Every instruction with its figures."""
        return [InstructionCounts(n, self.texts[n], self.places[n], self.effects[n].kind, self.effects[n].space,
                                  self.counts([n])) for n in range(len(self))]

    def by_line(self) -> list[LineCounts]:
        """Every line of the source that has instructions, by file and line; those that come from none are last."""
        lines: dict[tuple[str, int] | None, list[int]] = {}
        for number, place in enumerate(self.places):
            lines.setdefault((place.file, place.line) if place else None, []).append(number)
        ordered = sorted(lines.items(), key=lambda item: (item[0] is None, item[0] or ("", 0)))
        return [LineCounts(self.places[numbers[0]], tuple(numbers), self.counts(numbers)) for _, numbers in ordered]

    def bytes_of(self, *spaces: str, load: bool = False, store: bool = False) -> int:
        """Bytes that lanes moved to or from some spaces: "global", "buffer", "flat", "scratch", "lds", "scalar".

        Of loads, of stores, or (where neither is asked for) of all; an atomic is both.
        """
        chosen = [n for n, e in enumerate(self.effects) if e.space in spaces and (
            not (load or store) or load and (e.load or e.atomic) or store and (e.store or e.atomic))]
        return self.counts(chosen).bytes

    @property
    def bytes_read(self) -> int:
        """Bytes that lanes read from global memory, by vectors; what the caches saved is not taken off."""
        return self.bytes_of(*MEMORY, load=True)

    @property
    def bytes_written(self) -> int:
        """Bytes that lanes wrote to global memory."""
        return self.bytes_of(*MEMORY, store=True)

    def table(self, by: str = "line") -> Text:
        """The figures as text, a row for each line of the source, or (`by="instruction"`) for each instruction.

        Rows that were not executed are left out. Raises `DeviceError` for another word.
        """
        if by not in ("line", "instruction"):
            raise DeviceError(f"a table by {by!r}", hint='counters.table(by="line") and by="instruction" are there')
        if by == "instruction":
            return Text(Table.of(("instruction", f"{row.number:4}  {row.text.strip()}", row.counts)
                                 for row in self.by_instruction()).text())
        lines = self.by_line()
        files = sorted({line.where.name for line in lines if line.where and line.counts.executions})
        heading = f"line of {files[0]}" if len(files) == 1 else "line"
        return Text(Table.of((heading, _place(line.where, len(files) == 1), line.counts) for line in lines).text())

    def __str__(self) -> str:
        known = any(self.places)
        return f"{self.summary()}\n{self.table('line' if known else 'instruction')}"

    __repr__ = __str__

    def summary(self) -> Text:
        """The launch in a few lines."""
        total = self.totals
        sizes = ((self.workgroups, "workgroup"), (self.waves, "wave"), (total.executions, "instruction"))
        said = ", ".join(f"{number:,} {what}{'s' * (number != 1)}" for number, what in sizes)
        lines = [f"{self.kernel} on {self.chip}: {said} ({self.source})"]
        if total.accesses:
            lines.append(f"  memory: {self.bytes_read:,} bytes read, {self.bytes_written:,} written, in "
                         f"{total.accesses:,} accesses of the vector cache, coalescing {total.coalescing:.0%}"
                         + (f"; {total.clamped:,} lanes clamped" if total.clamped else ""))
        if total.lds_accesses:
            lines.append(f"  LDS: {total.lds_accesses:,} accesses in {total.lds_cycles:,} cycles, of which "
                         f"{total.lds_conflicts:,} are of bank conflicts")
        if total.operations:
            lines.append(f"  matrix instructions: {total.operations:,} operations")
        return Text("\n".join(lines))


def _place(where: SourceLine | None, alone: bool) -> str:
    """A line by its number, and its file where not all are of one, with its text but for a comment behind it."""
    if where is None:
        return "(no line)"
    number = f"{where.line:4}" if alone else f"{where.name}:{where.line}"
    return f"{number}  {where.text.partition('  #')[0].strip()}"


def _columns(kernel: IsaKernel, found: Sequence[Effects], tallies: np.ndarray) -> dict[str, np.ndarray]:
    """The column of each figure."""
    starts = np.array(run_starts(kernel))
    executions = tallies["executions"].astype(np.int64)[starts]
    by_lanes = np.array([e.kind in BY_LANES for e in found], np.int64)
    lanes = tallies["lanes"].astype(np.int64)[starts] * by_lanes
    memory, lds = (tallies[name]["totals"].astype(np.int64) for name in ("memory", "lds"))
    operations = np.array([_operations(i.mnemonic) if e.kind == "mfma" else 0
                           for i, e in zip(kernel.instructions, found, strict=True)])
    clamped = tallies["clamped"].astype(np.int64)
    columns = (executions, executions * by_lanes, lanes, _bytes(found, tallies, executions, lanes), clamped,
               memory[:, ACCESSES], memory[:, LINES], memory[:, LEAST], lds[:, ACCESSES], lds[:, PHASES],
               lds[:, CYCLES], operations * executions)
    return dict(zip(FIGURES, columns, strict=True))


def _bytes(found: Sequence[Effects], tallies: np.ndarray, executions: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """What each instruction moved: by its lanes, by the wave for scalars and counters, by what a buffer let through."""
    counted = tallies["bytes"].astype(np.int64)
    waves = np.array([e.space == "scalar" or e.space == "lds" and not e.address for e in found])
    each = np.array([e.bytes * e.places for e in found])
    buffer = np.array([e.space == "buffer" for e in found])
    return np.where(buffer, counted, each * np.where(waves, executions, lanes))


def _operations(mnemonic: str) -> int:
    """Additions and multiplications of a matrix instruction."""
    row = mfma(base_name(mnemonic))
    return 2 * row.m * row.n * row.k * row.blocks
