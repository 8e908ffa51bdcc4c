"""`viz.layout`: the grid of a layout, one cell for each coordinate, with the offset that it maps to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from flylab.errors import LayoutError
from flylab.layout import ComposedLayout, Layout
from flylab.layout.int_tuple import has_runtime, text
from flylab.viz.frame import LARGEST, Frame
from flylab.viz.scene import Facet, Relation, Scene, heading
from flylab.viz.view import Bundle, View

COLORS = ("offset", "mode", "mode:K", "tile", "none")
LABELS = ("offset", "coord", "index", "none")


def layout(L: Any, *more: Any, color: str = "offset", labels: str = "offset", title: str | None = None) -> View:
    """The grid of any static layout: plain, nested, composed, swizzled, of coordinates, or a coordinate tensor.

    The first mode runs down and the second to the right; further modes make panels, a single mode is wrapped.

    :param color: "offset" (dark to bright with the offset), "mode" (the coordinate in the last mode) or "mode:0" (in
        the mode named), "tile" (the inner block of nested modes), "none". Every category's number is written too.
    :param labels: what is written in a cell: "offset", "coord", "index" (its colexicographic number) or "none".
    :param title: the heading; the layout's text where it is not given.
    :raises LayoutError: for what is not a layout, one with a runtime offset, or an option that does not exist.

    >>> from flylab.layout import make_layout
    >>> layout(make_layout((8, 16), (1, 8)))
    layout (8,16):(1,8), 128 elements, offsets 0 to 127
    """
    if more:
        raise LayoutError(f"viz.layout draws one layout, and was given {1 + len(more)} things",
                          hint='draw each in a cell of its own; options have names: viz.layout(L, color="mode")')
    frame = _frame(L)
    if labels not in LABELS:
        raise LayoutError(f"labels={labels!r} is not known", hint="one of " + ", ".join(LABELS))
    kept = frame.kept()
    values = [L(i) for i in kept]
    group = _grouping(color, frame)
    groups = [group(i) for i in kept] if group else []
    words: dict[str, Callable[[int, Any], str]] = {
        "offset": lambda _, value: text(value), "coord": lambda i, _: text(frame.coordinate(i)),
        "index": lambda i, _: str(i), "none": lambda *_: ""}
    number, numbers = _numbering(values)
    heat = color == "offset"
    element = Facet("element", {
        **frame.places(kept),
        "label": [words[labels](i, v) for i, v in zip(kept, values, strict=True)],
        "second": [f"#{g}" if groups else "" for g in (groups or kept)],
        "shade": numbers if heat else groups or [-1] * len(kept),
        "mark": [0] * len(kept),
    })
    offsets = Facet("offset", {"text": [text(v) for v in number], "rank": list(range(len(number)))})
    holds = Relation("element", "offset", [(row, number[v]) for row, v in enumerate(values)])
    low, high = text(min(values)), text(max(values))
    what = "coordinate" if isinstance(values[0], tuple) else "offset"
    legend = f"number after #, and colour: {_meaning(color)}" if groups else what if heat and low != high else ""
    options = {
        "paint": "heat" if heat else "category" if groups else "plain", "low": low, "high": high,
        "caption": _caption(frame, L), "panels": frame.panels, "size": frame.size, "legend": legend,
    }
    panels = sorted({frame.place(i)[0] for i in kept})
    partial = "" if len(kept) == frame.size else " where drawn"
    summary = f"layout {L}, {frame.size} element{'s' * (frame.size != 1)}, {what}s {low} to {high}{partial}"
    facets = (element, offsets, *frame.facets(panels))
    return View(Scene("layout", heading(title, str(L)), summary, facets, (holds,), (), options))


def bundle(L: Any, include: Any = None, exclude: Any = None) -> dict[str, str] | Bundle:
    """What a bare layout shows at the end of a notebook cell: its picture; where it cannot be drawn, its text.

    >>> from flylab.layout import Layout
    >>> bundle(Layout((0, 4), (1, 1)))
    {'text/plain': 'Layout((0, 4), (1, 1))'}
    """
    try:
        view = layout(L)
    except LayoutError:
        return {"text/plain": repr(L)}
    return view._repr_mimebundle_(include, exclude)


def _frame(L: Any) -> Frame:
    shape = getattr(L, "shape", None)
    if not callable(L) or shape is None:
        raise LayoutError(f"viz.layout draws a layout, and this is {type(L).__name__}", hint=_layout_of(L))
    if isinstance(L, ComposedLayout) and not L.is_static:
        raise LayoutError(f"the offset of {L} is known only while its kernel runs",
                          hint="draw its inner layout: viz.layout(L.inner)")
    plain = L.inner if isinstance(L, ComposedLayout) else L
    if isinstance(plain, Layout) and has_runtime((plain.shape, plain.stride)):
        raise LayoutError(f"the layout {L} has numbers that are known only while its kernel runs",
                          hint="draw it with numbers in their place: viz.layout(Layout(shape, stride))")
    frame = Frame.of(shape)
    if not frame.size:
        raise LayoutError(f"the layout {L} has no elements to draw")
    return frame


def _layout_of(thing: Any) -> str:
    """How to draw the layout of something that is not one: a tensor's own, or that of an array's shape and strides."""
    inner = getattr(thing, "layout", None)
    if callable(inner) and hasattr(inner, "shape"):
        return "pass its layout: viz.layout(t.layout)"
    shape: tuple[int, ...] = (8, 16)
    stride: tuple[int, ...] = (1, 8)
    if isinstance(thing, np.ndarray) and thing.ndim:
        shape, stride = thing.shape, tuple(s // thing.itemsize for s in thing.strides)
    elif callable(getattr(thing, "stride", None)) and len(getattr(thing, "shape", ())):
        shape, stride = tuple(thing.shape), tuple(thing.stride())
    return f"pass a layout: viz.layout(make_layout({shape}, {stride}))"


def _numbering(values: Sequence[Any]) -> tuple[dict[Any, int], list[int]]:
    """Each distinct offset's row, in rising order, and a shade for every element: its offset, or where some offset is
    a coordinate or too large for a float, its row."""
    number = {v: row for row, v in enumerate(sorted(set(values)))}
    exact = all(isinstance(v, int) and abs(v) <= LARGEST for v in number)
    return number, list(values) if exact else [number[v] for v in values]


def _grouping(color: str, frame: Frame) -> Callable[[int], int] | None:
    """The function from an element to its category, or None where colour is no category."""
    if color in ("offset", "none"):
        return None
    if color == "tile":
        inner = [mode[0] if len(mode) > 1 else prod(mode) for mode in frame.modes]
        outer = [prod(mode) // n for mode, n in zip(frame.modes, inner, strict=True)]
        steps = [prod(outer[:k]) for k in range(len(outer))]
        return lambda i: sum(c // n * s for c, n, s in zip(frame.coordinate(i), inner, steps, strict=True))
    if color == "mode":
        return lambda i: frame.coordinate(i)[-1]
    kind, _, which = color.partition(":") if isinstance(color, str) else ("", "", "")
    if kind != "mode" or not which.isdecimal():
        raise LayoutError(f"color={color!r} is not known", hint="one of " + ", ".join(COLORS))
    if int(which) >= len(frame.modes):
        raise LayoutError(f"color={color!r} names mode {which} of a layout with {len(frame.modes)}",
                          hint="modes are counted from 0")
    return lambda i: frame.coordinate(i)[int(which)]


def _meaning(color: str) -> str:
    if color == "tile":
        return "inner block"
    return "coordinate in the last mode" if color == "mode" else f"coordinate in mode {color[5:]}"


def _caption(frame: Frame, L: Any) -> str:
    """Which mode runs where, with its stride."""
    if len(frame.modes) == 1:
        return f"wrapped, {frame.columns} to a row" if frame.wrapped else "one mode"
    # With an outer part the offsets have no strides.
    linear = L.inner if isinstance(L, ComposedLayout) and L.outer is None else L
    shape, stride = L.shape, getattr(linear, "stride", None)
    parts = []
    for k, where in enumerate(("down", "right", *["in panels"] * (len(frame.modes) - 2))):
        pitch = f":{text(stride[k])}" if isinstance(stride, tuple) else ""
        parts.append(f"mode {k} = {text(shape[k])}{pitch} {where}")
    return ", ".join(parts)
