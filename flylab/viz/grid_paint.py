"""Draws a grid scene as a picture: coloured cells, ticks, and borders that grow with the nesting."""

from __future__ import annotations

from collections.abc import Iterator

from flylab.viz.grid import EMPTY, SHARED, Cell, Grid
from flylab.viz.palette import HEAT, category, heat, ink_on
from flylab.viz.picture import PAGE_WIDTH, Item, Line, Picture, Rect, Text, fit, label, text_width
from flylab.viz.scene import Scene

MARGIN = 16
ROOM = PAGE_WIDTH - 2 * MARGIN
CELL, SMALL, WORDS = 11.0, 9.5, 12.0  # sizes of writing: in cells, second lines and ticks, sentences
SLACK = 5                             # of the ground beside a cell's writing, what a wide picture can do without
TICK = 15.0                           # the height of one level of column ticks


def paint(scene: Scene) -> Picture:
    """The static picture of a grid scene."""
    grid = Grid(scene, ROOM, lambda text, level: text_width(text, SMALL if level else CELL) + 8, gap=22, least=28,
                slack=SLACK)
    title = fit(scene.title, ROOM, 14)
    items: list[Item] = [label(MARGIN, 26, title, size=14, bold=True), _sentence(scene.options["caption"], 45, "muted")]
    top = TICK * grid.levels[1] + (20 if grid.panels[0][1] else 0)
    width, height = grid.left + grid.columns.extent, top + grid.rows.extent
    shades = scene.facet("element").ints("shade")
    span = (min(shades), max(shades))
    names = [fit(name, ROOM - grid.left, CELL) for _, name in grid.drawn]
    pitch = max(width, grid.left + max(text_width(name, CELL) for name in names)) + 24
    x, y = float(MARGIN), 58.0
    for (number, _), name in zip(grid.drawn, names, strict=True):
        if x > MARGIN and x + pitch - 24 > PAGE_WIDTH - MARGIN:
            x, y = float(MARGIN), y + height + 20
        if name:
            items.append(label(x + grid.left, y + 12, name, size=CELL, bold=True))
        items += _panel(grid, grid.shown(number), span, x + grid.left, y + top)
        x += pitch
    y += height + 14
    if scene.options["legend"]:
        items += _legend(scene, y)
        y += 20
    notes = grid.notes()
    items += [_sentence(note, y + 12 + 18 * k) for k, note in enumerate(notes)]
    right = max(max(t.x + t.width for t in items if isinstance(t, Text) and t.anchor == "start"),
                max(t.x + t.w for t in items if isinstance(t, Rect)))
    desc = " ".join([scene.summary + ".", *(n for n in notes if n not in scene.notes)])
    return Picture(int(right) + 1 + MARGIN, int(y + 18 * len(notes)) + 10, scene.title, desc, tuple(items))


def _sentence(text: str, y: float, colour: str = "ink") -> Text:
    return label(MARGIN, y, fit(text, ROOM, WORDS, mono=False), colour, WORDS, mono=False)


def _panel(grid: Grid, cells: list[Cell], span: tuple[int, int], left: float, top: float) -> Iterator[Item]:
    fills = [_fill(grid.scene.options["paint"], cell, span) for cell in cells]
    yield from _ticks(grid, left, top)
    yield from _boxes(grid, cells, fills, left, top)
    yield from _words(grid, cells, fills, left, top)
    yield from _borders(grid, left, top)


def _fill(paint: str, cell: Cell, span: tuple[int, int]) -> str:
    if cell.mark == EMPTY:
        return "paper"
    if paint == "heat":
        return heat(cell.shade, *span)
    return category(cell.shade) if paint == "category" else "panel"


def _boxes(grid: Grid, cells: list[Cell], fills: list[str], left: float, top: float) -> list[Rect]:
    """The cells' grounds, sorted so that the SVG names each colour once, then the frames of shared elements."""
    rows, columns = grid.rows.start, grid.columns.start
    w, h = grid.columns.pitch - 1, grid.rows.pitch - 1
    places = [(left + columns[c.column], top + rows[c.row]) for c in cells]
    # A page lights up together what has one key: the cells of a thread, an offset or a category.
    keys = [f"{grid.scene.kind}-{c.shade}" if c.shade >= 0 else "" for c in cells]
    boxes = [Rect(x + 0.5, y + 0.5, w, h, fill, key=key)
             for (x, y), fill, key in zip(places, fills, keys, strict=True)]
    frames = [Rect(x + 2, y + 2, w - 3, h - 3, "", ink_on(fill), 1.5)
              for (x, y), c, fill in zip(places, cells, fills, strict=True) if c.mark == SHARED]
    return sorted(boxes, key=lambda box: (box.fill, not box.key)) + frames


def _words(grid: Grid, cells: list[Cell], fills: list[str], left: float, top: float) -> Iterator[Item]:
    """First lines, then second lines: items of one style next to each other make a small SVG."""
    rows, columns = grid.rows.start, grid.columns.start
    baseline = 15 if grid.two_lines else 16
    for part, size, below in (("label", CELL, baseline), ("second", SMALL, 28)):
        for cell, fill in zip(cells, fills, strict=True):
            text = getattr(cell, part)
            if text:
                x = left + columns[cell.column] + grid.columns.pitch / 2
                ink = ink_on(fill) if fill.startswith("#") else "ink"
                yield label(x, top + rows[cell.row] + below, text, ink, size, "middle")


def _ticks(grid: Grid, left: float, top: float) -> Iterator[Item]:
    """Coordinates beside the cells: the innermost next to them, outer ones in the middle of the cells they name."""
    for tick in grid.ticks:
        axis = grid.columns if tick.axis else grid.rows
        inside = [axis.start[k] for k in axis.shown if tick.start <= k < tick.start + tick.span]
        inside = [p for p in inside if p < inside[0] + tick.span * axis.pitch]
        if not inside:
            continue
        middle = (inside[0] + inside[-1] + axis.pitch) / 2
        tint = "ink" if tick.level else "muted"
        if tick.axis:
            yield label(left + middle, top - 5 - TICK * tick.level, tick.text, tint, SMALL, "middle")
        else:
            yield label(left - 6 - grid.side * tick.level, top + middle + 3.5, tick.text, tint, SMALL, "end")
    yield from _gaps(grid, left, top)


def _gaps(grid: Grid, left: float, top: float) -> Iterator[Item]:
    """Dots in the gaps, one for each drawn row or column."""
    column, row = grid.columns.last_before_gap, grid.rows.last_before_gap
    if column is not None:
        x = left + grid.columns.start[column] + grid.columns.pitch + grid.columns.gap / 2
        for y in grid.rows.start.values():
            yield label(x, top + y + grid.rows.pitch / 2 + 3, "…", "muted", CELL, "middle")
    if row is not None:
        y = top + grid.rows.start[row] + grid.rows.pitch + grid.rows.gap / 2 + 4
        for x in grid.columns.start.values():
            yield label(left + x + grid.columns.pitch / 2, y, "…", "muted", CELL, "middle")


def _borders(grid: Grid, left: float, top: float) -> Iterator[Item]:
    """The frame and the lines between inner blocks, thicker for outer ones; they reach into their ticks."""
    wide, high = grid.columns.extent, grid.rows.extent
    for level, axis, at in grid.cuts:
        start = (grid.columns if axis else grid.rows).start
        if at not in start or at - 1 not in start:
            continue
        reach, width = level if grid.levels[axis] > level else 0, 0.5 + level
        if axis:
            yield Line(left + start[at], top - TICK * reach, left + start[at], top + high, "ink", width)
        else:
            yield Line(left - grid.side * reach, top + start[at], left + wide, top + start[at], "ink", width)
    yield Rect(left, top, wide, high, "", "ink", 1)


def _legend(scene: Scene, y: float) -> Iterator[Item]:
    options = scene.options
    if options["paint"] != "heat":
        yield _sentence(options["legend"], y + 12, "muted")
        return
    low = label(MARGIN, y + 11, f"{options['legend']} {options['low']}", "muted", CELL)
    yield low
    start = MARGIN + low.width + 6
    yield from (Rect(start + 4 * k, y + 2, 4, 10, HEAT[k * 255 // 31]) for k in range(32))
    yield label(start + 134, y + 11, options["high"], "muted", CELL)
