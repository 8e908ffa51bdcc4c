"""Lines of the user's source for instructions that LLVM put into the code by itself.

LLVM gives an instruction that it makes of the user's the place of theirs, a wait that of the instruction that must
wait, and has no place for some: what ends a branch (`s_or_b64 exec`), copies into a loop, constants that several
instructions share, what it made of instructions of several lines. Within a block it leaves the `.loc` of the
instruction before in force, at the beginning of one it writes a `.loc` with line 0. The rule for these here:

* the first place behind it in its block, for an instruction that has none before it in its block;
* else, and where its block has no place at all, the last place before it in the text.

Of an access of memory that LLVM made of several, `codegen.merged` says first which place of its block it has. So a
line's first instruction is never one that runs where the line does not.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from typing import TypeVar

from flylab.codegen.merged import of_accesses
from flylab.passes.recording import lines_of
from flylab.targets import Target

P = TypeVar("P")
_NO_LINE = re.compile(r"^\s*\.loc\s+\d+\s+0\b", re.MULTILINE)
_LINE = re.compile(r"\s*\.loc\s+\d+\s+\d+(?: \d+)?")
ENDS_BLOCK = ("s_branch", "s_cbranch", "s_endpgm", "s_setpc", "s_trap")


def attributed(places: Sequence[P | None], starts: Sequence[bool]) -> list[P | None]:
    """The places of a function's instructions by the rule above; `starts` says which of them begin a block.

    >>> attributed([None, 1, None, None, 2, None], [True, False, False, True, False, True])
    [1, 1, 1, 2, 2, 2]

    None is left only where no instruction has a place.
    """
    found: list[P | None] = []
    last = next((place for place in places if place is not None), None)
    behind = _first_of_blocks(places, starts)
    inside = False
    for place, first, start in zip(places, behind, starts, strict=True):
        inside = inside and not start
        if place is None:
            place = last if inside or first is None else first
        else:
            inside = True
        last = place
        found.append(place)
    return found


def _first_of_blocks(places: Sequence[P | None], starts: Sequence[bool]) -> list[P | None]:
    """Of each instruction the first place in its block from it on."""
    found: list[P | None] = []
    first: P | None = None
    for place, start in zip(reversed(places), reversed(starts), strict=True):
        first = first if place is None else place
        found.append(first)
        if start:
            first = None
    return found[::-1]


def with_lines(assembly: str, target: Target) -> str:
    """Assembly of LLVM's for a chip in which no instruction has the line 0, if any of its function has a line.

    >>> from flylab.targets import target
    >>> with_lines("k:\\n .loc 1 0\\n s_nop 0\\n .loc 1 5 3\\n s_endpgm", target("gfx942")).splitlines()
    ['k:', ' .loc 1 5 3', ' s_nop 0', ' .loc 1 5 3', ' s_endpgm']
    """
    if not _NO_LINE.search(assembly):
        return assembly
    return "\n".join(_Text(lines_of(assembly), target).placed())


def _place(line: str) -> str | None:
    """A `.loc` directive without its flags; None for one of line 0, and for other lines."""
    found = _LINE.match(line)
    return found[0] if found and not _NO_LINE.match(line) else None


class _Text:
    """The lines of an assembly text: which of them are instructions, in which function, and under which `.loc`."""

    def __init__(self, lines: list[str], target: Target):
        self.lines, self.target = lines, target
        self.at: list[int] = []
        self.places: list[str | None] = []
        self.starts: list[bool] = []
        self.functions = [0]
        self._read()

    def _read(self) -> None:
        place: str | None = None
        start = True
        for number, line in enumerate(self.lines):
            word = line.strip().split(None, 1)[0] if line.strip() else ""
            if word == ".amdgpu_metadata":
                break
            if word == ".loc":
                place = _place(line)
            elif word.endswith(":"):
                if not word.startswith(".Ltmp"):
                    start = True
                if not word.startswith(".L"):
                    self.functions.append(len(self.at))
                    place = None
            elif word[:1].isalpha():
                self.at.append(number)
                self.places.append(place)
                self.starts.append(start)
                start = word.startswith(ENDS_BLOCK)

    def placed(self) -> list[str]:
        """The lines, with a `.loc` for each instruction that had none, and without those of line 0."""
        new = self._new()
        files = {words[1]: line for line in self.lines if (words := line.split()[:2])[:1] == [".file"]}
        found: list[str] = []
        in_force: str | None = None
        for number, line in enumerate(self.lines):
            wanted = new.get(number)
            if wanted is not None and wanted != in_force:
                # A file is declared where it is first used.
                found += [declared for declared in [files.pop(wanted.split()[1], None)] if declared]
                found.append(wanted)
                in_force = wanted
            if line.lstrip().startswith(".file") and files.pop(line.split()[1], None) is None:
                continue
            if _NO_LINE.match(line) and self._next(number) in new:
                continue
            in_force = _place(line) or in_force
            found.append(line)
        return found

    def _next(self, number: int) -> int:
        """The number of the line of the next instruction behind a line; -1 behind the last."""
        behind = bisect.bisect(self.at, number)
        return self.at[behind] if behind < len(self.at) else -1

    def _new(self) -> dict[int, str]:
        """The `.loc` of each instruction that had none, by the number of its line."""
        new: dict[int, str] = {}
        for begin, end in zip(self.functions, [*self.functions[1:], len(self.at)], strict=True):
            old, starts, at = self.places[begin:end], self.starts[begin:end], self.at[begin:end]
            given = attributed(old, starts)
            for each, found in of_accesses(old, starts, [self._instruction(number) for number in at], self.target):
                given[each] = found
            for number, had, place in zip(at, old, given, strict=True):
                if had is None and place is not None:
                    new[number] = place
        return new

    def _instruction(self, number: int) -> str:
        """The text of an instruction, without its comment and with one space behind its name."""
        return " ".join(self.lines[number].partition(";")[0].split(None, 1)).strip()
