"""`viz.pipeline`: a kernel's way from Python to ISA, each step beside the next, lines linked by the Python line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from flylab.errors import FlylabError
from flylab.passes.recording import Stage, lines_of
from flylab.viz.code import instructions, short_mlir
from flylab.viz.passes import ADDED, REMOVED, SAME, Row
from flylab.viz.scene import Facet, Relation, Scene, heading
from flylab.viz.view import View

LANGUAGES = {"python": "Python", "mlir": "MLIR", "llvm": "LLVM IR", "isa": "ISA"}
# Numbers of values change with every pass, and the rewriter writes strings its own way: two lines that differ in these
# alone count as the same.
_PASSING = {"python": re.compile("[\"']"), "mlir": re.compile(r"%[\w#]+|\^bb\d+"),
            "llvm": re.compile(r"%\d+|![0-9]+|#\d+")}


def pipeline(kernel: Any, *, title: str | None = None) -> View:
    """Source, IR after each pass that changed it, LLVM IR and ISA; passes that changed nothing are only named.

    A line is linked where it comes from a line of the source that is shown; other functions' lines stand plainly.

    The static picture cuts long texts and says by how much; the page of `to_html` holds every line.

    :param kernel: a compiled kernel (anything with `stages()`), or a sequence of `Stage`.
    :raises FlylabError: where there are no stages, or something else than stages.

    >>> from flylab.passes.recording import Stage
    >>> pipeline([Stage("source", "python", "c = a + b", (7,)), Stage("isa", "isa", "v_add_f32 v0, v1, v2", (7,))])
    pipeline: 2 steps, 2 shown; 1 line of Python became 1 instruction
    """
    stages = _stages(kernel)
    named = (kernel, getattr(kernel, "launcher", None))
    name = heading(title, next((str(n) for n in (getattr(each, "name", None) for each in named) if n), "pipeline"))
    texts = [_readable(stage) for stage in stages]
    bases = _bases(stages, texts)
    rows = [row for k, base in bases.items() for row in _rows(k, base, stages, texts)]
    facets = (_stage_facet(stages, bases, rows), _line_facet(rows), _source_facet(stages, rows))
    place = {number: row for row, number in enumerate(facets[2].ints("number"))}
    links = Relation("line", "source", [(i, place[row.source]) for i, row in enumerate(rows) if row.source])
    words = (f"{name}: {_count(len(stages), 'step')}, {len(bases)} shown; "
             f"{_size(stages[0])} became {_size(stages[-1])}")
    return View(Scene("pipeline", name, words, facets, (links,)))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _size(stage: Stage) -> str:
    """How much it is, in words: lines, and of ISA instructions, which are those of all kernels of the module."""
    if stage.language != "isa":
        return f"{_count(len(stage.lines), 'line')} of {LANGUAGES[stage.language]}"
    lines = lines_of(stage.text)
    kernels = sum(line.split()[:1] == [".amdhsa_kernel"] for line in lines)
    return _count(instructions(lines), "instruction") + (f" of {kernels} kernels" if kernels > 1 else "")


def _stages(kernel: Any) -> Sequence[Stage]:
    given = kernel.stages() if callable(getattr(kernel, "stages", None)) else kernel
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise FlylabError(f"viz.pipeline draws a kernel with its stages, and this is {type(kernel).__name__}",
                          hint="pass a compiled kernel, or a list of Stage")
    stages = tuple(given)
    for stage in stages:
        if not isinstance(stage, Stage):
            raise FlylabError(f"a pipeline is a sequence of Stage, and it holds {type(stage).__name__}",
                              hint="pass kernel.stages(), or build Stage(name, language, text, lines)")
    if not stages:
        raise FlylabError("there are no stages to draw", hint="compile the kernel first")
    return stages


def _bases(stages: Sequence[Stage], texts: list[list[str]]) -> dict[int, int | None]:
    """The stages to show, each with the one that it is compared with: the shown one before, in the same language.

    A stage is shown where it is not marked unchanged and its text differs from the shown one before.
    """
    bases: dict[int, int | None] = {0: None}
    last = 0
    for k, stage in enumerate(stages[1:], 1):
        alike = stage.language == stages[last].language
        if stage.changed and not (alike and texts[k] == texts[last]):
            bases[k] = last if alike else None
            last = k
    return bases


def _readable(stage: Stage) -> list[str]:
    """The lines as they are shown: MLIR in short form, LLVM IR without debug references, Python without the
    indentation that all its lines share."""
    lines = [line.expandtabs(4).rstrip() for line in lines_of(stage.text)]
    if stage.language == "mlir":
        return [short_mlir(line) for line in lines]
    if stage.language == "python":
        margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
        return [line[margin:] for line in lines]
    # The links say what !dbg says.
    return [re.sub(r", !dbg !\d+", "", line) for line in lines] if stage.language == "llvm" else lines


def _rows(k: int, base: int | None, stages: Sequence[Stage], texts: list[list[str]]) -> list[Row]:
    """The lines of stage `k`, those that are new against the stage `base` marked, and those of it that are gone."""
    pane = set(stages[0].lines) if stages[0].language == "python" else None

    def rows(which: int, start: int, stop: int, mark: int) -> list[Row]:
        sources = [n if n and (pane is None or n in pane) else 0 for n in stages[which].lines[start:stop]]
        return [Row(k, -1 if mark == REMOVED else i, texts[which][i], source, mark)
                for i, source in enumerate(sources, start)]

    if base is None:
        return rows(k, 0, len(texts[k]), SAME)
    result: list[Row] = []
    for same, a, b, c, d in _changes(texts[base], texts[k], _PASSING.get(stages[k].language)):
        result += [] if same else rows(base, a, b, REMOVED)
        result += rows(k, c, d, SAME if same else ADDED)
    return result


def _changes(before: list[str], after: list[str],
             passing: re.Pattern[str] | None) -> Iterator[tuple[bool, int, int, int, int]]:
    """Runs of lines that are the same or not: (same, from and to in `before`, from and to in `after`).

    Lines that differ only in what `passing` matches count as the same, unless nothing else differs at all.
    """
    if passing:
        plain = [[passing.sub("%", line) for line in lines] for lines in (before, after)]
        before, after = plain if plain[0] != plain[1] else (before, after)
    short = min(len(before), len(after))
    head = next((k for k in range(short) if before[k] != after[k]), short)
    tail = next((k for k in range(short - head) if before[-1 - k] != after[-1 - k]), short - head)
    if head:
        yield True, 0, head, 0, head
    matcher = SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail])
    for what, a, b, c, d in matcher.get_opcodes():
        yield what == "equal", head + a, head + b, head + c, head + d
    if tail:
        yield True, len(before) - tail, len(before), len(after) - tail, len(after)


def _stage_facet(stages: Sequence[Stage], bases: dict[int, int | None], rows: list[Row]) -> Facet:
    counts = {(k, mark): 0 for k in range(len(stages)) for mark in (SAME, ADDED, REMOVED)}
    for row in rows:
        counts[row.stage, row.mark] += 1
    return Facet("stage", {
        "name": [s.name for s in stages], "language": [s.language for s in stages],
        "lines": [len(s.lines) for s in stages], "shown": [int(k in bases) for k in range(len(stages))],
        "diffed": [int(bases.get(k) is not None) for k in range(len(stages))],
        "added": [counts[k, ADDED] for k in range(len(stages))],
        "removed": [counts[k, REMOVED] for k in range(len(stages))],
    })


def _line_facet(rows: list[Row]) -> Facet:
    return Facet("line", {name: [getattr(row, name) for row in rows] for name in Row.__slots__})


def _source_facet(stages: Sequence[Stage], rows: list[Row]) -> Facet:
    """The Python lines that any text names; `rank` counts those that reach beyond Python, others have -1."""
    numbers = sorted({row.source for row in rows if row.source})
    beyond = sorted({row.source for row in rows if row.source and stages[row.stage].language != "python"})
    rank = {number: k for k, number in enumerate(beyond)}
    return Facet("source", {"number": numbers, "rank": [rank.get(n, -1) for n in numbers]})
