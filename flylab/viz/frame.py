"""Where the elements of a shape go on paper: rows, columns and panels, the ticks on the axes and the block borders.

The first mode runs down, the second to the right, further ones make a panel for each of their coordinates. A shape of
one mode is wrapped into rows. Inside a mode the leaves of a nested shape keep their borders and their own ticks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.int_tuple import as_shape, leaves, modes_of, text
from flylab.viz.scene import Facet

WRAP = 16          # elements in a row of a shape of one mode
MOST = 128         # rows or columns of one panel that a scene holds
ELEMENTS = 16_384  # elements that a scene holds
LARGEST = 2**53    # elements of a shape that can be drawn at all: a float holds each number up to there
TAIL = 4           # rows, columns kept at the end when the middle is left out

Tick = tuple[int, int, int, int, str]
Cut = tuple[int, int, int]


def ends(count: int, limit: int) -> list[int]:
    """Which of `count` rows are kept under a limit: all, or the first and a few of the last.

    >>> ends(5, 8), ends(100, 8)
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 96, 97, 98, 99])
    """
    if count <= limit:
        return list(range(count))
    tail = min(TAIL, limit // 2)
    return [*range(limit - tail), *range(count - tail, count)]


@dataclass(frozen=True)
class Frame:
    """The place on paper of each element of a shape, numbered colexicographically (the first mode runs fastest).

    >>> Frame.of((4, 8)).place(5)
    (0, 1, 1)
    """

    shape: Any
    modes: tuple[tuple[int, ...], ...]  # the leaves of each mode
    rows: int
    columns: int
    panels: int

    @classmethod
    def of(cls, shape: Any) -> Frame:
        """The frame of a shape, nested or not; leaves of 1 take no place of their own.

        :raises LayoutError: for a shape that is too large to draw.
        """
        modes = tuple(tuple(n for n in leaves(mode) if n != 1) or (1,) for mode in modes_of(as_shape(shape)))
        sizes = [prod(mode) for mode in modes]
        if prod(sizes) > LARGEST:
            raise LayoutError(f"the shape {text(shape)} has {prod(sizes)} elements, and up to {LARGEST} can be drawn",
                              hint="draw a part of it, for example one mode: viz.layout(L[0])")
        if len(modes) == 1:
            columns = cls._wrap(modes[0])
            return cls(shape, modes, -(-sizes[0] // columns), columns, 1)
        return cls(shape, modes, sizes[0], sizes[1], prod(sizes[2:]))

    @staticmethod
    def _wrap(mode: tuple[int, ...]) -> int:
        """How many elements of a single mode go in a row: all of few, else a whole inner block, else sixteen."""
        size = prod(mode)
        blocks = [prod(mode[:k]) for k in range(1, len(mode) + 1)]
        fitting = [b for b in blocks if WRAP // 2 <= b <= WRAP]
        return size if size <= WRAP else (fitting or [WRAP])[-1]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(prod(mode) for mode in self.modes)

    @property
    def wrapped(self) -> bool:
        """Whether a single mode runs over several rows."""
        return len(self.modes) == 1 and self.rows > 1

    def place(self, index: int) -> tuple[int, int, int]:
        """Panel, row and column of an element."""
        if len(self.modes) == 1:
            return 0, index // self.columns, index % self.columns
        rest, row = divmod(index, self.rows)
        panel, column = divmod(rest, self.columns)
        return panel, row, column

    def index(self, panel: int, row: int, column: int) -> int:
        """The element at a place; the reverse of `place`."""
        if len(self.modes) == 1:
            return row * self.columns + column
        return row + self.rows * (column + self.columns * panel)

    def coordinate(self, index: int) -> tuple[int, ...]:
        """The coordinate of an element, one number for each top-level mode."""
        result = []
        for mode in self.modes:
            index, part = divmod(index, prod(mode))
            result.append(part)
        return tuple(result)

    def kept(self) -> list[int]:
        """The elements that a scene of this frame holds: all, or of a large one the ends of every axis."""
        rows, columns = ends(self.rows, MOST), ends(self.columns, MOST)
        if self.size <= ELEMENTS:
            rows, columns = list(range(self.rows)), list(range(self.columns))
        panels = ends(self.panels, max(1, ELEMENTS // (len(rows) * len(columns))))
        found = (self.index(p, r, c) for p, c, r in product(panels, columns, rows))
        return [i for i in found if i < self.size]

    def places(self, kept: list[int]) -> dict[str, list[Any]]:
        """The columns of an element facet that say which element it is and where it goes."""
        places = [self.place(i) for i in kept]
        columns = {name: [place[k] for place in places] for k, name in enumerate(("panel", "row", "column"))}
        return {"index": kept, **columns, "coordinate": [text(self.coordinate(i)) for i in kept]}

    def facets(self, panels: list[int]) -> tuple[Facet, ...]:
        """The panels, ticks and borders as facets of a scene."""
        titles = [self._panel_title(p) for p in panels]
        ticks = list(self._ticks())
        cuts = list(self._cuts())
        return (
            Facet("panel", {"number": panels, "rows": [self.rows] * len(panels), "title": titles,
                            "columns": [self.columns] * len(panels)}),
            Facet("tick", {name: [t[k] for t in ticks] for k, name in
                           enumerate(("axis", "level", "start", "span", "text"))}),
            Facet("cut", {name: [c[k] for c in cuts] for k, name in enumerate(("axis", "at", "level"))}),
        )

    def _panel_title(self, panel: int) -> str:
        rest = self.coordinate(self.index(panel, 0, 0))[2:]
        return f"(:, :, {', '.join(map(str, rest))})" if rest else ""

    def _ticks(self) -> Iterator[Tick]:
        """For each axis (0 down, 1 right) and leaf the coordinate along it, over the cells where it stays the same."""
        if len(self.modes) == 1:
            yield from ((1, 0, c, 1, str(c)) for c in range(self.columns))
            yield from ((0, 0, r, 1, str(r * self.columns)) for r in ends(self.rows, MOST) if self.wrapped)
            return
        for axis, mode in enumerate(self.modes[:2]):
            span = 1
            for level, leaf in enumerate(mode):
                for start in dict.fromkeys(at // span * span for at in ends(prod(mode), MOST)):
                    yield axis, level, start, span, str(start // span % leaf)
                span *= leaf

    def _cuts(self) -> Iterator[Cut]:
        """Borders between inner blocks: (axis, before which row or column, level of the nesting)."""
        for axis, mode in enumerate(self.modes[:2]):
            for level in range(1, len(mode)):
                block = prod(mode[:level])
                if len(self.modes) > 1:
                    yield from self._cuts_of(axis, block, level)
                elif block < self.columns and self.columns % block == 0:
                    yield from self._cuts_of(1, block, level)
                elif block % self.columns == 0:
                    yield from self._cuts_of(0, block // self.columns, level)

    def _cuts_of(self, axis: int, block: int, level: int) -> Iterator[Cut]:
        extent = (self.rows, self.columns)[axis]
        yield from ((axis, at, level) for at in ends(extent, MOST) if at and at % block == 0)
