"""Draws a grid scene in characters, for a terminal: the same labels, ticks and gaps as in the picture."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from flylab.viz.grid import Cell, Grid
from flylab.viz.picture import MONO_ADVANCE, fit
from flylab.viz.scene import Scene

WIDTH = 128  # characters in a line
HEAD = 24    # of the coordinate of a row or column; of a deeper nested one its number is written


def text(scene: Scene) -> str:
    """The grid in characters; `|` and `-` stand between inner blocks.

    >>> from flylab.layout import make_layout
    >>> from flylab.viz import layout
    >>> print(text(layout(make_layout(((2, 2), 3), ((1, 4), 8))).scene))
    ((2,2),3):((1,4),8)
    mode 0 = (2,2):(1,4) down, mode 1 = 3:8 right
           0  1  2
    (0,0)  0  8 16
    (1,0)  1  9 17
          --------
    (0,1)  4 12 20
    (1,1)  5 13 21
    """
    longest = max(len(_written(c)) for c in _cells(scene))
    room = WIDTH
    while True:
        grid = Grid(scene, room, lambda words, level: len(words) + 1, gap=2, least=longest + 1)
        panels = [[name, *_panel(grid, grid.shown(number))] for number, name in grid.drawn]
        over = max(len(line) for lines in panels for line in lines[1:]) - WIDTH
        if over <= 0 or len(grid.columns.shown) == 2:
            break
        # Borders between blocks and long coordinates take room too, as many as there are columns.
        room -= over
    title, caption = (fit(words, WIDTH, 1 / MONO_ADVANCE) for words in (scene.title, scene.options["caption"]))
    notes = (line for note in grid.notes() for line in wrap(note, WIDTH))
    lines = [title, caption, *(line for lines in panels for line in lines if line), *notes]
    return "\n".join(line.rstrip() for line in lines)


def _written(cell: Cell) -> str:
    return " ".join(part for part in (cell.label, cell.second) if part) or "."


def _cells(scene: Scene) -> list[Cell]:
    return [cell for cells in Grid(scene, 0, lambda *_: 0, gap=0, least=1).cells.values() for cell in cells]


def _heads(grid: Grid, axis: int) -> dict[int, str]:
    """The coordinate of each drawn row or column; of a nested mode with a number for each leaf."""
    result: dict[int, list[str]] = {}
    for tick in sorted((t for t in grid.ticks if t.axis == axis), key=lambda t: t.level):
        for at in (grid.columns if axis else grid.rows).shown:
            if tick.start <= at < tick.start + tick.span:
                result.setdefault(at, []).append(tick.text)
    heads = {at: parts[0] if len(parts) == 1 else f"({','.join(parts)})" for at, parts in result.items()}
    return heads if max(map(len, heads.values()), default=0) <= HEAD else {at: str(at) for at in heads}


def _panel(grid: Grid, cells: list[Cell]) -> Iterator[str]:
    cuts = {(axis, at) for _, axis, at in grid.cuts}
    down, right = _heads(grid, 0), _heads(grid, 1)
    width = int(max(grid.columns.pitch, 1 + max((len(head) for head in right.values()), default=0)))
    side = max((len(head) for head in down.values()), default=0)
    written = {(c.row, c.column): _written(c) for c in cells}

    def line(head: str, words: dict[int, str], bar: str) -> str:
        parts, before = [head.rjust(side)], -1
        for column in grid.columns.shown:
            parts.append("" if column == before + 1 else " …")
            parts.append(bar if (1, column) in cuts else "")
            parts.append(words.get(column, "").rjust(width))
            before = column
        return "".join(parts)

    yield line("", right, "  ")
    before = -1
    for row in grid.rows.shown:
        words = {column: written.get((row, column), "") for column in grid.columns.shown}
        full = line(down.get(row, ""), words, " |")
        if row != before + 1:
            yield "…".rjust(side)
        elif (0, row) in cuts:
            yield " " * (side + 1) + "-" * (len(full) - side - 1)
        yield full
        before = row
