"""`viz.tv`: who owns what: the thread and the value of each element of a tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from flylab.errors import LayoutError
from flylab.layout.int_tuple import as_shape, product, text
from flylab.viz.frame import Frame
from flylab.viz.grid import EMPTY, SHARED
from flylab.viz.scene import Facet, Relation, Scene, heading
from flylab.viz.view import View

PAIRS = 1 << 22  # threads x values that are drawn at most


def tv(tv_layout: Any, tile: Any = None, *, title: str | None = None) -> View:
    """The thread-value partition of a tile: in each element the thread (T) and value (V) that own it.

    An element that several pairs own (a broadcast) names them and has a frame; one that nobody owns stays blank.

    :param tv_layout: a layout of two modes, (threads, values), onto the tile's elements, counted colexicographically.
    :param tile: the tile's shape, as `make_layout_tv` returns it; the two may come in its order too.
    :param title: the heading; the layout's text where it is not given.
    :raises LayoutError: for what is no partition (an atom has several) or no tile, or a pair outside of the tile.

    >>> from flylab.layout import make_layout, make_layout_tv
    >>> tile, partition = make_layout_tv(make_layout((4, 1), (1, 1)), make_layout((1, 8), (1, 1)))
    >>> tv(partition, tile)
    partition (4,8):(1,4) of the tile 4x8, 4 threads x 8 values, each element owned once
    """
    if _is_layout(tile) and not _is_layout(tv_layout):
        tv_layout, tile = tile, tv_layout  # the order of make_layout_tv
    _check_given(tv_layout, tile)
    threads, values = _sizes(tv_layout)
    frame = _tile_frame(tile)
    elements = _elements(tv_layout)
    _check_inside(elements, threads, frame, tv_layout)
    kept = frame.kept()
    order = np.argsort(elements, kind="stable")
    starts = np.searchsorted(elements[order], np.array(kept, dtype=np.int64))
    stops = np.searchsorted(elements[order], np.array(kept, dtype=np.int64), side="right")
    owners = [[(int(p) % threads, int(p) // threads) for p in order[a:b]] for a, b in zip(starts, stops, strict=True)]
    element = Facet("element", {**frame.places(kept), **_cells(owners)})
    rows = [(t, v, row) for row, pairs in enumerate(owners) for t, v in pairs]
    relations = (Relation("thread", "element", [(t, row) for t, _, row in rows]),
                 Relation("value", "element", [(v, row) for _, v, row in rows]))
    facets = (element, Facet("thread", {"number": range(threads)}), Facet("value", {"number": range(values)}),
              *frame.facets(sorted({frame.place(i)[0] for i in kept})))
    notes = _notes(elements, threads, frame)
    size = "x".join(str(np.prod(mode)) for mode in frame.modes)
    pairs = f"{threads} thread{'s' * (threads != 1)} x {values} value{'s' * (values != 1)}"
    words = f"partition {tv_layout} of the tile {size}, {pairs}, {'; '.join(notes) or 'each element owned once'}"
    options = {"paint": "category", "caption": f"{pairs} on the tile {size}",
               "legend": "T and colour: thread, V: value", "panels": frame.panels, "size": frame.size}
    return View(Scene("tv", heading(title, str(tv_layout)), words, facets, relations, notes, options))


PARTITIONS = ("layout_A_tv", "layout_B_tv", "layout_C_tv", "layout_src_tv", "layout_dst_tv",
              "tv_layout_A_tiled", "tv_layout_B_tiled", "tv_layout_C_tiled", "layout_src_tv_tiled",
              "layout_dst_tv_tiled")  # fmt: skip


def _check_given(tv_layout: Any, tile: Any) -> None:
    """Refuse an atom, or what is made of them, which has a partition for each operand; and no tile."""
    names = [] if _is_layout(tv_layout) else [name for name in PARTITIONS if hasattr(tv_layout, name)]
    if names:
        raise LayoutError(f"{tv_layout} is not a partition, and has one for each operand",
                          hint=f"viz.tv(x.{names[0]}, tile); it has {', '.join(names)}")
    if tile is None:
        raise LayoutError(f"viz.tv of {tv_layout} without the tile that it is a partition of",
                          hint="give the tile's shape: viz.tv(tv_layout, (16, 16))")


def _is_layout(what: Any) -> bool:
    return hasattr(what, "shape") and hasattr(what, "offsets")


def _sizes(tv_layout: Any) -> tuple[int, int]:
    """The number of threads and of values."""
    shape = getattr(tv_layout, "shape", None)
    if not _is_layout(tv_layout) or not isinstance(shape, tuple) or len(shape) != 2:
        raise LayoutError(f"a partition is a layout of two modes, threads and values, and this is {tv_layout}",
                          hint="tile, tv = make_layout_tv(thr_layout, val_layout), then viz.tv(tv, tile)")
    threads, values = product(shape[0]), product(shape[1])
    if not 0 < threads * values <= PAIRS:
        raise LayoutError(f"the partition {tv_layout} has {threads} threads x {values} values, and between 1 and "
                          f"{PAIRS} pairs can be drawn")
    return threads, values


def _elements(tv_layout: Any) -> np.ndarray:
    """The element of each pair, the thread running fastest."""
    first = tv_layout(0)
    if not isinstance(first, int):
        raise LayoutError(f"a partition maps to the numbers of elements, and {tv_layout} maps to coordinates such as "
                          f"{text(first)}", hint="tile, tv = make_layout_tv(thr_layout, val_layout)")
    try:
        return np.asarray(tv_layout.offsets(), dtype=np.int64).ravel()
    except OverflowError:
        raise LayoutError(f"the partition {tv_layout} maps to numbers of more than 64 bits, and no tile is so large",
                          hint="the strides of a partition count the elements of its tile") from None


def _tile_frame(tile: Any) -> Frame:
    if _is_layout(tile):
        raise LayoutError(f"a tile is a shape, and this is the layout {tile}", hint=f"viz.tv(tv, {text(tile.shape)})")
    frame = Frame.of(as_shape(tile, "tile"))
    if not frame.size:
        raise LayoutError(f"the tile {text(tile)} has no elements", hint="viz.tv(tv_layout, (8, 64))")
    return frame


def _check_inside(elements: np.ndarray, threads: int, frame: Frame, tv_layout: Any) -> None:
    outside = np.flatnonzero((elements < 0) | (elements >= frame.size))
    if not len(outside):
        return
    pair = int(outside[0])
    raise LayoutError(
        f"the partition {tv_layout} leaves the tile {text(frame.shape)}: thread {pair % threads}, value "
        f"{pair // threads} maps to element {elements[pair]}, and the tile has {frame.size} "
        f"({len(outside)} of {len(elements)} pairs are outside)",
        hint="pass the tile that make_layout_tv returned with this layout")


def _cells(owners: list[list[tuple[int, int]]]) -> dict[str, list[Any]]:
    """What is written in each cell: T over V for one owner; for more, the first two pairs and how many follow."""
    label, second = [], []
    for pairs in owners:
        if len(pairs) <= 1:
            label.append(f"T{pairs[0][0]}" if pairs else "")
            second.append(f"V{pairs[0][1]}" if pairs else "")
            continue
        more = f" +{len(pairs) - 2}" if len(pairs) > 2 else ""
        label.append("T{} V{}".format(*pairs[0]))
        second.append("T{} V{}".format(*pairs[1]) + more)
    return {"label": label, "second": second, "owners": [len(pairs) for pairs in owners],
            "shade": [pairs[0][0] if pairs else -1 for pairs in owners],
            "mark": [EMPTY if not pairs else SHARED if len(pairs) > 1 else 0 for pairs in owners]}


def _notes(elements: np.ndarray, threads: int, frame: Frame) -> tuple[str, ...]:
    """What is out of the ordinary: elements with several owners, naming the first two, and elements with none."""
    notes = []
    owned, counts = np.unique(elements, return_counts=True)
    shared, empty = owned[counts > 1], frame.size - len(owned)
    if len(shared):
        first = int(shared[0])
        pairs = [f"T{int(p) % threads} V{int(p) // threads}" for p in np.flatnonzero(elements == first)[:2]]
        notes.append(f"{len(shared)} of {frame.size} elements have several owners, "
                     f"the first {text(frame.coordinate(first))}: {' and '.join(pairs)}")
    if empty:
        notes.append(f"{empty} of {frame.size} elements have no owner")
    return tuple(notes)
