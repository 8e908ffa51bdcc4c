"""Makes a grid scene (layout, partition) ready for drawing: its cells by panel, its axes, and what is left out.

What is too large is thinned: the first rows and columns and a few of the last are drawn with a gap between them, and
a note says what is shown. The picture and the text share this, each with its own unit of length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flylab.locks import cached_property
from flylab.viz.frame import ends
from flylab.viz.scene import Scene, rows_of

CELLS, PANELS = 1200, 32  # cells and panels of a static picture, at most
ROWS, THINNED = 32, 20  # rows of one panel that are all drawn, and how many are drawn of more
SHARED, EMPTY = 1, 2  # marks of an element with several owners, and of one with none


@dataclass(frozen=True)
class Axis:
    """The drawn rows or columns of a panel, and where each begins; a gap stands for those left out."""

    shown: tuple[int, ...]
    count: int
    pitch: float
    gap: float = 22

    @cached_property
    def start(self) -> dict[int, float]:
        """Where each drawn row or column begins, from the panel's corner."""
        result, at, before = {}, 0.0, -1
        for index in self.shown:
            at += self.gap if index != before + 1 else 0
            result[index] = at
            at, before = at + self.pitch, index
        return result

    @property
    def extent(self) -> float:
        """The length from the first to the end of the last."""
        return self.start[self.shown[-1]] + self.pitch

    @property
    def last_before_gap(self) -> int | None:
        """The row or column that the gap follows, or None where everything is drawn.

        >>> Axis((0, 1, 8, 9), 10, 24).last_before_gap
        1
        """
        return next((a for a, b in zip(self.shown, self.shown[1:], strict=False) if b != a + 1), None)

    def said(self, what: str) -> str:
        """Which are drawn, in words; nothing where all are.

        >>> Axis((0, 1, 8, 9), 10, 24).said("rows")
        'rows 0 to 1 and 8 to 9 of 10'
        """
        last = self.last_before_gap
        if last is None:
            return ""
        after = self.shown[self.shown.index(last) + 1]
        return f"{what} 0 to {last} and {after} to {self.count - 1} of {self.count}"


@dataclass(frozen=True)
class Cell:
    """One element as it is drawn: its place, up to two lines of text, a shade (see the scene's `paint`), a mark."""

    row: int
    column: int
    label: str
    second: str
    shade: int
    mark: int


@dataclass(frozen=True)
class Tick:
    """A coordinate along an axis (0 down, 1 right), over `span` cells from `start`; level 0 is next to the cells."""

    axis: int
    level: int
    start: int
    span: int
    text: str


class Grid:
    """The content of a grid scene, and the axes that fit into `room` units of width.

    `measure(text, level)` is the width of a text; level 0 is a cell's first line, 1 smaller writing. A cell is at least
    `least` wide, and gives up to `slack` of its width where all columns fit then.
    """

    def __init__(self, scene: Scene, room: float, measure: Callable[[str, int], float], gap: float, least: float,
                 slack: int = 0):
        self.scene = scene
        self.cells: dict[int, list[Cell]] = {}
        element = scene.facet("element")
        columns = ("row", "column", "label", "second", "shade", "mark")
        for panel, row in zip(element.ints("panel"), rows_of(element, columns), strict=True):
            self.cells.setdefault(panel, []).append(Cell(*row))
        self.ticks = [Tick(*t) for t in rows_of(scene.facet("tick"), ("axis", "level", "start", "span", "text"))]
        self.cuts = sorted(rows_of(scene.facet("cut"), ("level", "axis", "at")))
        self.panels = rows_of(scene.facet("panel"), ("number", "title"))
        rows, width = (int(scene.facet("panel")[name][0]) for name in ("rows", "columns"))
        every = [cell for cells in self.cells.values() for cell in cells]
        self.two_lines = any(cell.second for cell in every)
        self.side = max((measure(t.text, 1) for t in self.ticks if t.axis == 0), default=0)
        self.levels = [1 + max((t.level for t in self.ticks if t.axis == axis), default=-1) for axis in (0, 1)]
        pitch = max(least, *(max(measure(c.label, 0), measure(c.second, 1)) for c in every),
                    *(measure(t.text, 1) / t.span for t in self.ticks if t.axis == 1))
        space = room - self.left
        fair = max(pitch - slack, min(pitch, space // width))
        if width * fair <= space:
            self.columns = Axis(tuple(range(width)), width, fair, gap)
        else:
            # Those left out are wider than the gap that stands for them: else all would have fitted.
            self.columns = Axis(tuple(ends(width, max(2, int((space - gap) // pitch)))), width, pitch, gap)
        limit = rows if rows <= ROWS else THINNED
        self.rows = Axis(tuple(ends(rows, limit)), rows, 34 if self.two_lines else 24, gap)
        self.drawn = self.panels[: max(1, min(PANELS, CELLS // (len(self.rows.shown) * len(self.columns.shown))))]

    @property
    def left(self) -> float:
        """The width of the row ticks."""
        return self.side * self.levels[0]

    def shown(self, panel: int) -> list[Cell]:
        """The cells of a panel that are drawn, row by row."""
        rows, columns = self.rows.start, self.columns.start
        cells = [c for c in self.cells[panel] if c.row in rows and c.column in columns]
        return sorted(cells, key=lambda c: (c.row, c.column))

    def notes(self) -> list[str]:
        """What the scene says of itself, and what was left out of the picture."""
        total = self.scene.options["panels"]
        parts = [self.rows.said("rows"), self.columns.said("columns"),
                 f"{len(self.drawn)} of {total} panels" if len(self.drawn) < total else ""]
        said = ", ".join(part for part in parts if part)
        return [*self.scene.notes, *([f"Too large to draw whole; shown: {said}."] if said else [])]
