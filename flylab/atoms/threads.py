"""Thread-value layouts over a tile: what they must be, and the parts of a tensor that they give each thread."""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout import (
    ComposedLayout,
    Layout,
    composition,
    product,
    rank,
    right_inverse,
    size,
    slice_and_offset,
    tile_text,
    zipped_divide,
)
from flylab.layout.construct import as_layout, joined, shape_of
from flylab.layout.int_tuple import leaves

Tile = Any
"""What a tensor is divided by: an int or a Layout for all of it, or a tuple with one of these for each mode."""


def tile_extents(tile: Tile) -> tuple[int, ...]:
    """The elements of a tile along each of its modes.

    >>> tile_extents((8, Layout((4, 2), (1, 8))))
    (8, 8)

    Raises `LayoutError` for a mode without an extent.
    """
    modes = tile if isinstance(tile, tuple) else (tile,)
    extents = tuple([size(mode) if isinstance(mode, Layout) else mode for mode in modes])
    if not all([type(extent) is int for extent in extents]):
        raise LayoutError(f"the tile {tile_text(tile)} needs a known extent for each mode",
                          hint="give ints or layouts of known extents: fx.make_tile(8, 64)")
    return extents


def check_tv(what: str, tv: Layout, extents: tuple[int, ...]) -> None:
    """Refuse a layout that does not map (thread, value) to the elements of a tile, each once.

    Threads may repeat each other (a stride of 0), as the waves along N do that all need the same of A.
    """
    as_layout(tv, what)
    whole = product(extents)
    modes = list(zip(leaves(tv.stride), leaves(tv.shape), strict=True))
    if len(tv) != 2 or not all([type(stride) is type(extent) is int for stride, extent in modes]):
        raise LayoutError(f"{what} {tv} has {len(tv)} modes, and not (thread, value), both known",
                          hint="make it of threads and values: fx.make_layout_tv(thr_layout, val_layout)")
    if any([step == 0 and count != 1 for count, step in zip(leaves(tv[1].shape), leaves(tv[1].stride), strict=True)]):
        raise LayoutError(f"{what} {tv}: a thread has an element more than once",
                          hint="only the thread mode may have strides of 0")
    # Each element once: each step is what the smaller ones span.
    span = 1
    for stride, extent in sorted(modes):
        if stride != 0 and extent != 1:
            span = span * extent if stride == span else -1
    if span != whole:
        reached = size(right_inverse(tv))
        missing = f"element {reached} has no thread" if reached < whole else "some are held twice, or lie outside"
        raise LayoutError(f"{what} {tv} does not cover the {whole} elements of a tile "
                          f"({','.join(map(str, extents))}) once each: {missing}",
                          hint="use the tile and the layout that fx.make_layout_tv gives, which fit each other")


def stays_inside(tv: Layout, extents: tuple[int, ...]) -> bool:
    """Whether each mode of a thread-value layout goes along the modes of the tile, and none across an edge.

    >>> stays_inside(Layout((4, 2), (1, 4)), (2, 4)), stays_inside(Layout((4, 3), (1, 4)), (3, 4))
    (True, False)
    """
    for extent, stride in zip(leaves(tv.shape), leaves(tv.stride), strict=True):
        for mode in extents[:-1]:
            if extent == 1 or stride == 0:
                break
            if stride % mode == 0:
                stride //= mode
                continue
            if (extent - 1) * stride < mode:
                break
            if extent * stride % mode or mode % stride:
                return False
            extent, stride = extent * stride // mode, 1
    return True


def threads_of(layout: Any, tile: Tile, tv: Layout) -> Any:
    """((thread, value), rest, ...) of a layout divided into tiles: one rest mode for each mode of the layout.

    A layout that the tile does not divide is covered too far, as by `zipped_divide`; `overcover(layout, tile)` says by
    how much, and the same part of a coordinate tensor which elements those are.

    >>> print(threads_of(Layout((16, 128), (128, 1)), (8, 64), Layout(((16, 8), 4), ((32, 1), 8))))
    (((16,8),4),2,2):(((4,128),1),1024,64)

    Raises `LayoutError` for a layout of fewer modes than the tile.
    """
    if isinstance(layout, ComposedLayout):
        return layout.with_inner(threads_of(layout.inner, tile, tv))
    tiles = zipped_divide(layout, tile)
    rest = tiles[1]
    split = isinstance(tile, tuple) and len(layout) > 1
    return joined([composition(tiles[0], tv), *(rest if split else [rest])])


def of_thread(threads: Any, coord: Any) -> tuple[Any, Any]:
    """What the coordinate of a thread keeps of `((thread, value), rest, ...)`, and where it begins.

    >>> part, offset = of_thread(Layout((((16, 8), 4), 2), (((4, 128), 1), 64)), 17)
    >>> print(part, offset)
    (4,2):(1,64) 132
    """
    return slice_and_offset(threads, thread_coordinate(threads, coord))


def thread_coordinate(threads: Any, coord: Any) -> tuple[Any, ...]:
    """The coordinate that keeps the values and the rest of one thread of `((thread, value), rest, ...)`.

    >>> thread_coordinate(Layout((((16, 8), 4), 2), (((4, 128), 1), 64)), 17)
    ((17, None), None)
    """
    return (coord, None), *[None] * (rank(shape_of(threads)) - 1)
