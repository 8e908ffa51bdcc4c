"""Draws a pipeline as a static picture for a notebook.

An overview comes first: a column for each shown stage, a bar for each of its lines in the colour of the Python line
that it came from. Then the source beside the ISA, then what was traced beside LLVM IR, then of each pass the lines that
it changed. What is left out is counted in its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from flylab.viz.code import spans
from flylab.viz.palette import ink_on
from flylab.viz.passes import ADDED, REMOVED, SAME, Pane, Row, colours, panes, unchanged
from flylab.viz.picture import MONO_ADVANCE, PAGE_WIDTH, Item, Line, Picture, Rect, Text, fit, label, text_width
from flylab.viz.scene import Scene

MARGIN, GAP = 16, 14
ROOM = PAGE_WIDTH - 2 * MARGIN
CODE, ROW, GUTTER, HEADER = 10.0, 14, 48, 26
BARS, OVERVIEW = 44, 110   # bars of a column of the overview, at most, and its height in pixels
ENDS, WHOLE = 40, 28       # rows at most: of the source and the last stage, and of other whole texts
CHANGES, ALL_CHANGES = 16, 120  # rows of one pass's changes at most, and of all passes together, about
MARKS = {SAME: ("", "ink"), ADDED: ("+", "added"), REMOVED: ("\N{MINUS SIGN}", "removed")}


def paint(scene: Scene) -> Picture:
    """The static picture of a pipeline scene."""
    stages = panes(scene)
    shown = [pane for pane in stages if pane.order]
    tint = colours(scene)
    items: list[Item] = [label(MARGIN, 26, fit(scene.title, ROOM, 14), size=14, bold=True)]
    y = 45.0
    for sentence in _sentences(scene, stages):
        items.append(label(MARGIN, y, sentence, "muted", 12, mono=False))
        y += 17
    items += _overview(shown, tint, y)
    y += 24 + min(OVERVIEW, 5 * max(len(_drawn(pane)) for pane in shown)) + 58
    ends, middle = shown[:1] + shown[1:][-1:], shown[1:-1]
    changed = [pane for pane in middle if pane.diffed]
    changes = max(8, min(CHANGES, ALL_CHANGES // max(1, len(changed))))
    bands = [("What was written, and what it became", ENDS, ends),
             ("Between them", WHOLE, [pane for pane in middle if not pane.diffed]),
             ("What each pass changed", changes, changed)]
    for title, limit, group in bands:
        if group:
            items.append(label(MARGIN, y + 8, title, "ink", 12, bold=True, mono=False))
            drawn, y = _band(group, limit, tint, y + 18)
            items += drawn
    return Picture(PAGE_WIDTH, int(y) + 4, scene.title, scene.summary + ".", tuple(items))


def _band(group: list[Pane], limit: int, tint: dict[int, str], y: float) -> tuple[list[Item], float]:
    """Panes two to a row, and where the next thing may begin."""
    items: list[Item] = []
    width = (ROOM - GAP) / 2 if len(group) > 1 else ROOM
    for left in range(0, len(group), 2):
        pair = [(pane, excerpt(pane, limit)) for pane in group[left : left + 2]]
        height = HEADER + ROW * max(len(rows) for _, rows in pair) + 8
        for k, (pane, rows) in enumerate(pair):
            items += _pane(pane, rows, tint, MARGIN + k * (width + GAP), y, width, height)
        y += height + GAP
    return items, y + 6


def _sentences(scene: Scene, stages: list[Pane]) -> list[str]:
    """The lines under the title: what became what, how to read it, and the passes that changed nothing."""
    words = [scene.summary.partition(": ")[2] + ". A colour with its number stands for a Python line.",
             "+ and \N{MINUS SIGN} mark the lines that a pass made and removed."]
    hidden = unchanged(stages)
    if hidden:
        words += _wrapped(f"No change: {hidden}.")
    return [fit(text, ROOM, 12, mono=False) for text in words]


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and text_width(lines[-1] + " " + word, 12, mono=False) > ROOM:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _overview(shown: list[Pane], tint: dict[int, str], y: float) -> Iterator[Item]:
    """A column of bars for each shown stage, with its number, name and size."""
    pitch = ROOM / max(4, len(shown))
    size = 9.5 if pitch > 80 else 8.5
    most = max(len(_drawn(pane)) for pane in shown)
    group = -(-most // BARS)
    high = min(OVERVIEW / min(most, BARS), 5.0)
    bars: list[Rect] = []
    for k, pane in enumerate(shown):
        x = MARGIN + k * pitch
        bars += _bars(pane, tint, x, y + 18, pitch - 12, high, group)
        yield label(x, y + 10, str(pane.order), "ink", 11, bold=True)
        start = 8 + text_width(str(pane.order), 11)
        count = pane.size if start + text_width(f"{most} lines", size) < pitch - 8 else str(pane.lines)
        yield label(x + start, y + 10, count, "muted", size)
        foot = y + 20 + min(OVERVIEW, 5 * most) + 10
        for row, part in enumerate(_name_lines(pane.name, pitch - 4, size)):
            yield label(x, foot + 12 * row, part, "ink", size)
    yield from sorted(bars, key=lambda bar: bar.fill)


def _bars(pane: Pane, tint: dict[int, str], x: float, y: float, width: float, high: float,
          group: int) -> Iterator[Rect]:
    """A bar for every `group` lines, in the colour of the first of them that comes from Python."""
    lines = _drawn(pane)
    for k in range(0, len(lines), group):
        rows = lines[k : k + group]
        indent = min(len(r.text) - len(r.text.lstrip()) for r in rows)
        length = max(len(r.text) for r in rows) - indent
        colour = next((tint[r.source] for r in rows if r.source in tint), "line")
        start = min(indent, 40) * width / 120
        wide = max(2.0, min(length, 80) * (width - start) / 80)
        yield Rect(x + start, y + k // group * high, wide, high - 0.75, colour)


def _drawn(pane: Pane) -> list[Row]:
    """The lines of a stage that have a bar: to the last that comes from Python, or all if none does."""
    lines = [row for row in pane.rows if row.mark != REMOVED]
    last = max((k for k, row in enumerate(lines, 1) if row.source), default=len(lines))
    return lines[:last]


def _name_lines(name: str, width: float, size: float) -> list[str]:
    """A pass's name on up to four lines, broken after hyphens."""
    lines = [""]
    for part in name.replace("-", "-\n").split("\n"):
        if lines[-1] and text_width(lines[-1] + part, size) > width:
            lines.append("")
        lines[-1] += part
    return [fit(line, width, size) for line in lines[:4]]


def excerpt(pane: Pane, limit: int) -> list[Row | str]:
    """The rows of a pane that a static picture shows, and a sentence for each run that it leaves out.

    Where the pane is marked against the stage before, these are the changed lines with one line around them; else the
    lines from the first to the last that come from the source pane, or all if none does: what a called function added
    in the midst of them is shown, another kernel is not. A single other line is not worth leaving out.
    """
    kinds = {row.mark for row in pane.rows}
    mark = ADDED if ADDED in kinds else REMOVED if REMOVED in kinds else None
    rows = [row for row in pane.rows if (row.mark != REMOVED or mark == REMOVED)
            and (row.text or pane.language == "python")]
    if mark is not None:
        why = "unchanged"
        keep = [any(r.mark == mark for r in rows[max(0, k - 1) : k + 2]) for k in range(len(rows))]
    else:
        why = "of other functions or of none"
        linked = [k for k, row in enumerate(rows) if row.source and pane.language != "python"] or range(len(rows))
        keep = [linked[0] <= k <= linked[-1] for k in range(len(rows))]
    result: list[Row | str] = []
    gap = at = 0
    while at < len(rows):
        if len(result) >= limit - 1 and len(rows) - at > 1:
            if isinstance(result[-1], str):
                result.pop()
                at = gap
            rest = sum(row.mark != REMOVED for row in rows[at:])
            return [*result, f"… {rest} more line{'s' * (rest != 1)}"]
        stop = next((k for k in range(at, len(rows)) if keep[k]), len(rows))
        if stop - at > 1:
            result.append(f"… {stop - at} lines {why}")
            gap, at = at, stop
        else:
            result.append(rows[at])
            at += 1
    return result


def _pane(pane: Pane, rows: list[Row | str], tint: dict[int, str], x: float, y: float, width: float,
          height: float) -> Iterator[Item]:
    """A framed pane: header, then a row for each line."""
    yield Rect(x, y, width, height, "panel", "line")
    size = _size_spans(pane)
    used = sum(len(part) for part, _ in size) * CODE * MONO_ADVANCE + 12
    name = fit(pane.name, width - used - 50, 11)
    yield label(x + 10, y + 17, str(pane.order), "muted", 11, bold=True)
    yield label(x + 10 + text_width(f"{pane.order} ", 11), y + 17, name, "ink", 11, bold=True)
    yield Text(x + width - used, y + 17, size, CODE)
    yield Line(x, y + HEADER - 2, x + width, y + HEADER - 2)
    lines = [row for row in rows if not isinstance(row, str)]
    margin = min((len(row.text) - len(row.text.lstrip()) for row in lines if row.text), default=0)
    yield from _links(pane, rows, tint, x, y + HEADER)
    for k, row in enumerate(rows):
        base = y + HEADER + ROW * k + 11
        if isinstance(row, str):
            yield label(x + GUTTER, base, row, "muted", CODE, mono=False)
        else:
            yield from _code(row, pane.language, margin, x + GUTTER, base, width - GUTTER - 6)


def _size_spans(pane: Pane) -> tuple[tuple[str, str], ...]:
    parts = [(pane.size, "muted")]
    parts += [(f"  +{pane.added}", "added")] if pane.added else []
    parts += [(f"  \N{MINUS SIGN}{pane.removed}", "removed")] if pane.removed else []
    return tuple(parts)


def _code(row: Row, language: str, margin: int, x: float, base: float, width: float) -> Iterator[Item]:
    """A line of code: its indentation becomes distance, and what does not fit is cut."""
    text = row.text[margin:]
    indent = (len(text) - len(text.lstrip())) * CODE * MONO_ADVANCE
    text = fit(text.lstrip(), width - indent, CODE)
    if row.mark == REMOVED:
        yield label(x + indent, base, text, "removed", CODE)
    elif text:
        yield Text(x + indent, base, spans(text, language), CODE)


def _links(pane: Pane, rows: list[Row | str], tint: dict[int, str], x: float, y: float) -> Iterator[Item]:
    """The gutter: marks, and for each run of lines of one Python line a bar in its colour and its number once."""
    boxes, words = [], []
    before: int | None = None
    for k, row in enumerate(rows):
        top = y + ROW * k
        source = 0 if isinstance(row, str) else row.source
        if not isinstance(row, str) and MARKS[row.mark][0]:
            words.append(label(x + 5, top + 11, *MARKS[row.mark], CODE, bold=True))
        if source in tint:
            boxes.append(Rect(x + GUTTER - 9, top, 3, ROW, tint[source]))
        if source and source != before:
            if source in tint:
                boxes.append(Rect(x + 14, top + 1, 22, ROW - 2, tint[source]))
            ink = ink_on(tint[source]) if source in tint else "muted"
            words.append(label(x + 25, top + 10.5, fit(str(source), 22, 9), ink, 9, "middle"))
        before = source
    yield from sorted(boxes, key=lambda box: box.fill)
    yield from words


def text(scene: Scene) -> str:
    """The pipeline as a list: number, name, lines, and how many lines came and went."""
    stages = panes(scene)
    wide = max(len(pane.name) for pane in stages)
    lines = [scene.title]
    for pane in stages:
        if pane.order:
            change = f"  +{pane.added} -{pane.removed}" if pane.diffed else ""
            lines.append(f"{pane.order:>3}  {pane.name:<{wide}}  {pane.language:<6}  {pane.lines:>6} lines{change}")
        else:
            lines.append(f"  -  {pane.name:<{wide}}  no change")
    return "\n".join(lines)
