"""What the picture and the page of a pipeline share: its scene read back as stages with their lines."""

from __future__ import annotations

from dataclasses import dataclass

from flylab.viz.palette import category
from flylab.viz.scene import Scene, rows_of

SAME, ADDED, REMOVED = 0, 1, 2  # marks of a line, against the shown stage before it in the same language


@dataclass(frozen=True, slots=True)
class Row:
    """A line to show: of which stage, its number there from 0 (-1 for one removed), its Python line, its mark.

    The Python line is one of the source pane, or 0 for a line that comes from another function or from none.
    """

    stage: int
    number: int
    text: str
    source: int
    mark: int


@dataclass(frozen=True)
class Pane:
    """A stage with the rows that are shown of it.

    `order` counts the shown ones from 1, and is 0 for the others; `diffed` says whether its lines are marked against
    the shown stage before it.
    """

    order: int
    name: str
    language: str
    lines: int
    added: int
    removed: int
    diffed: bool
    rows: tuple[Row, ...]

    @property
    def size(self) -> str:
        """Its number of lines in words."""
        return f"{self.lines} line{'s' * (self.lines != 1)}"


def panes(scene: Scene) -> list[Pane]:
    """All stages of a pipeline scene in their order."""
    rows: dict[int, list[Row]] = {}
    for values in rows_of(scene.facet("line"), Row.__slots__):
        row = Row(*values)
        rows.setdefault(row.stage, []).append(row)
    result, order = [], 0
    columns = ("shown", "name", "language", "lines", "added", "removed", "diffed")
    for k, (shown, name, language, lines, added, removed, diffed) in enumerate(rows_of(scene.facet("stage"), columns)):
        order += shown
        result.append(Pane(order * shown, name, language, lines, added, removed, bool(diffed), tuple(rows.get(k, ()))))
    return result


def colours(scene: Scene) -> dict[int, str]:
    """The colour of each Python line that other texts come from."""
    return {number: category(rank) for number, rank in rows_of(scene.facet("source"), ("number", "rank")) if rank >= 0}


def unchanged(stages: list[Pane]) -> str:
    """The names of the passes that changed nothing, repeated ones counted.

    >>> unchanged([Pane(0, "cse", "mlir", 3, 0, 0, False, ()), Pane(0, "cse", "mlir", 3, 0, 0, False, ())])
    'cse (2 times)'
    """
    names = [pane.name for pane in stages if not pane.order]
    return ", ".join(name + (f" ({names.count(name)} times)" if names.count(name) > 1 else "")
                     for name in dict.fromkeys(names))
