"""Counts as a table of text: a row each, and the columns in which anything was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flylab.emulator.counters.results import Counts

# Heading, of one line or two, and what stands there, "" where nothing was counted.
COLUMNS: tuple[tuple[str, Callable[[Counts], str]], ...] = (
    ("executions", lambda c: _number(c.executions)),
    ("active\nlanes", lambda c: _percent(c.active)),
    ("bytes", lambda c: _number(c.bytes)),
    ("clamped", lambda c: _number(c.clamped)),
    ("cache\naccesses", lambda c: _number(c.accesses)),
    ("coalescing", lambda c: _percent(c.coalescing)),
    ("LDS\ncycles", lambda c: _number(c.lds_cycles)),
    ("conflicts", lambda c: _number(c.lds_conflicts)),
    ("operations", lambda c: _number(c.operations)),
)
MOST_NAME = 52
"""Characters of a row's name that are shown."""


def _number(value: int) -> str:
    return f"{value:,}" if value else ""


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


@dataclass(frozen=True)
class Table:
    """Cells of text, the headings first, and in each row the name first."""

    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, counts: Iterable[tuple[str, str, Counts]]) -> Table:
        """The table of rows that were executed; each is what its name is (the heading), the name, and the counts."""
        given = [row for row in counts if row[2].executions]
        cells = [[show(count) for _, show in COLUMNS] for _, _, count in given]
        kept = [n for n in range(len(COLUMNS)) if any(row[n] for row in cells)]
        heading = (given[0][0] if given else "nothing was executed", *(COLUMNS[n][0] for n in kept))
        return cls((heading, *((_cut(name), *(row[n] for n in kept))
                               for (_, name, _), row in zip(given, cells, strict=True))))

    def text(self) -> str:
        """The rows with their columns below each other, names to the left, numbers to the right."""
        high = [tuple(cell.rpartition("\n")[0] for cell in self.rows[0])] * any("\n" in cell for cell in self.rows[0])
        rows = [*high, tuple(cell.rpartition("\n")[2] for cell in self.rows[0]), *self.rows[1:]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                               zip(row[1:], widths[1:], strict=True))]).rstrip()
                         for row in rows)


def _cut(name: str) -> str:
    return name if len(name) <= MOST_NAME else name[:MOST_NAME - 3] + "..."
