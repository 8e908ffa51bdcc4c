"""What checks find: a native list for each worker, and the findings in words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import c_uint64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.decoding.decode import source_line
from flylab.emulator.execution.faults import coordinates, described
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.state import WAVE_SIZE, Worker
from flylab.errors import CheckError
from flylab.locks import cached_property
from flylab.places import SourceLine

if TYPE_CHECKING:
    from flylab.emulator.execution.geometry import Dims, Geometry
    from flylab.emulator.probes.probe import Instrument

# Findings that a worker keeps; what is more is counted.
MOST_FINDINGS = 256
SHOWN = 8


class Entry(ctypes.Structure):
    """A finding as native code leaves it: at instruction number `index`; `order` counts the worker's instructions."""

    _fields_ = [("index", c_uint64), ("kind", c_uint64), ("lane", c_uint64), ("key", c_uint64), ("more", c_uint64 * 4),
                ("wave", c_uint64), ("group", c_uint64), ("order", c_uint64)]


@dataclass(frozen=True)
class Finding:
    """Something that a check found: what, where, and for which thread.

    `instruction` is the number of the instruction at which it shows, `others` those of the other instructions that have
    to do with it (the load that was not waited for, the write of a race). `block` and `thread` are (x, y, z).
    """

    kind: str
    message: str
    where: SourceLine | None
    instruction: int
    block: Dims
    thread: Dims
    hint: str = ""
    others: tuple[int, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[Any, ...] = ()
    """Findings for which this is equal, and not empty, are one, of which the first is kept."""

    def __str__(self) -> str:
        parts = [str(self.where)] if self.where else []
        return "\n".join([*parts, self.message, *([f"hint: {self.hint}"] if self.hint else [])])

    __repr__ = __str__


@dataclass(frozen=True)
class Scene:
    """What the words of a finding are made with: the kernel, the launch's shape, and names for what an entry holds."""

    kernel: IsaKernel
    geometry: Geometry

    def instruction(self, number: int) -> Instruction:
        return self.kernel.instructions[number]

    def line(self, number: int) -> SourceLine | None:
        """The user's line of an instruction."""
        return source_line(self.kernel, self.instruction(number))

    def block(self, entry: Entry) -> Dims:
        return coordinates(entry.group, self.geometry.grid)

    def thread(self, entry: Entry, lane: int | None = None) -> Dims:
        """The thread of a lane of the entry's wave, by default of the entry's own."""
        return self.thread_number(entry.wave * WAVE_SIZE + (entry.lane if lane is None else lane))

    def thread_number(self, number: int) -> Dims:
        """A thread of a workgroup from its flat number."""
        return coordinates(number, self.geometry.block)

    def at(self, number: int) -> str:
        """An instruction with its line, in words."""
        line = self.line(number)
        place = f", {line.place}" if line else ""
        return f"{described(self.instruction(number))}{place}"

    def place(self, entry: Entry) -> str:
        """Where an entry is, as the last line of a message."""
        return (f"\n    in block {self.block(entry)}, thread {self.thread(entry)} of kernel '{self.kernel.name}', at "
                f"{described(self.instruction(entry.index))}")

    def finding(self, entry: Entry, kind: str, message: str, hint: str = "", others: Iterable[int] = (),
                **details: Any) -> Finding:
        """A finding at the entry's instruction."""
        return Finding(kind, message + self.place(entry), self.line(entry.index), entry.index, self.block(entry),
                       self.thread(entry), hint, tuple(others), details)


def find_text(name: str) -> str:
    """The native `find`: keeps an entry unless one of its kind, instruction and key is there."""
    b = Builder()
    names = ("index", "kind", "lane", "key")
    values = {n: Value(b, f"%{n}", "i64") for n in names}
    found, entries = b.field("%w", Worker, "found"), b.field("%w", Worker, "findings").name
    b.set_field("%w", Worker, "find_at", 0)
    with b.forever() as (_, new):
        at = b.field("%w", Worker, "find_at")
        b.leave_when(at.cmp("uge", found), new)
        entry = b.at(entries, at * ctypes.sizeof(Entry))
        same = [b.field(entry, Entry, n).cmp("eq", values[n]) for n in ("index", "kind", "key")]
        with b.when(same[0] & same[1] & same[2]):
            b.do("ret void")
            b.label(b.fresh("unreached"))
        b.set_field("%w", Worker, "find_at", at + 1)
    with b.when(found.cmp("uge", MOST_FINDINGS)):
        b.set_field("%w", Worker, "lost", b.field("%w", Worker, "lost") + 1)
        b.do("ret void")
        b.label(b.fresh("unreached"))
    entry = b.at(entries, found * ctypes.sizeof(Entry))
    for n in names:
        b.set_field(entry, Entry, n, values[n])
    for number in range(4):
        b.store(Value(b, f"%more{number}", "i64"), b.at(entry, Entry.more.offset + 8 * number), 8)
    for n in ("wave", "group"):
        b.set_field(entry, Entry, n, b.field("%w", Worker, n))
    b.set_field(entry, Entry, "order", b.field("%w", Worker, "count"))
    b.set_field("%w", Worker, "found", found + 1)
    b.do("ret void")
    more = ", ".join(f"i64 %more{n}" for n in range(4))
    return b.function(name, f"void @(ptr %w, i64 %index, i64 %kind, i64 %lane, i64 %key, {more})")


@dataclass(frozen=True)
class Findings:
    """The entries of all workers, as findings in the order of workgroups; `lost` counts those that had no room."""

    entries: tuple[Entry, ...]
    lost: int
    scene: Scene
    kinds: Mapping[int, Callable[[Entry, Scene], Finding]]

    @classmethod
    def of(cls, workers: Iterable[Worker], scene: Scene, instruments: Sequence[Instrument]) -> Findings:
        """What the workers' lists hold; of those that are alike, the one of the first workgroup."""
        kept: dict[tuple[int, int, int], Entry] = {}
        lost = 0
        for worker in workers:
            lost += worker.lost
            entries = (Entry * worker.found).from_address(worker.findings) if worker.found else ()
            for entry in entries:
                key = (entry.kind, entry.index, entry.key)
                if key not in kept or entry.group < kept[key].group:
                    kept[key] = Entry.from_buffer_copy(entry)
        # Causes before what comes of them: a barrier that is not reached makes races, and these undefined values.
        rank = {kind: -number for number, instrument in enumerate(instruments) for kind in instrument.kinds}
        kinds = {kind: words for instrument in instruments for kind, words in instrument.kinds.items()}
        found = sorted(kept.values(), key=lambda e: (e.group, rank[e.kind], e.order, e.index))
        return cls(tuple(found), lost, scene, kinds)

    @cached_property
    def listed(self) -> tuple[Finding, ...]:
        """The findings in words."""
        found: dict[Any, Finding] = {}
        for number, entry in enumerate(self.entries):
            finding = self.kinds[entry.kind](entry, self.scene)
            found.setdefault(finding.same or number, finding)
        return tuple(found.values())

    def error(self) -> CheckError | None:
        """The error of a launch that has findings."""
        return check_error(self.listed, self.lost) if self.entries else None


def check_error(findings: tuple[Finding, ...], lost: int = 0) -> CheckError:
    """The error that findings make: the first in full, some others in short, those that are alike together."""
    first = findings[0]
    lines = [first.message, *_others(findings)]
    if lost:
        lines.append(f"    ({lost} further ones were not kept)")
    return CheckError("\n".join(lines), where=first.where, hint=first.hint or None, findings=findings)


def _others(findings: tuple[Finding, ...]) -> list[str]:
    """A line for each finding but the first, and one for all that one change of one line would mend."""
    groups: dict[Any, list[int]] = {}
    for number, finding in enumerate(findings, 1):
        where = finding.where
        alike = (finding.kind, where.file, where.line, finding.hint) if where else number
        groups.setdefault(alike, []).append(number)
    (_, *like_first), *rest = groups.values()
    lines = [f"and {len(like_first)} more like it, at other instructions of the line"] * bool(like_first)
    others = sum(map(len, rest))
    lines += [f"and {others} more finding{'s' * (others > 1)}:"] * bool(others)
    for number, *like in rest[:SHOWN]:
        also = f", and {len(like)} like it" if like else ""
        lines.append(f"    {number}. {_short(findings[number - 1], findings[0].where)}{also}")
    left = sum(map(len, rest[SHOWN:]))
    return [*lines, *[f"    and {left} more"] * bool(left)]


def _short(finding: Finding, beside: SourceLine | None) -> str:
    """The first line of what a finding says, and where it is; the file only where it is another one."""
    text, where = finding.message.partition("\n")[0], finding.where
    if where is None:
        return text
    return f"{text} ({f'line {where.line}' if beside and beside.file == where.file else where.place})"
