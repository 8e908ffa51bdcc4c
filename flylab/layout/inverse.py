"""Inverses of layouts, and thread-value layouts, which are made with them."""

from __future__ import annotations

from flylab.errors import LayoutError
from flylab.layout.algebra import composition, of_modes
from flylab.layout.arrays import comparable, reach
from flylab.layout.complements import by_stride, not_injective
from flylab.layout.construct import as_layout, size
from flylab.layout.decisions import divides, same
from flylab.layout.int_tuple import IntTuple, has_runtime, product
from flylab.layout.layout import Layout, Mode, has_basis
from flylab.layout.products import raked_product
from flylab.layout.runtime_int import undecided


def placed_modes(layout: Layout, name: str) -> list[tuple[int, int, int]]:
    """(stride, extent, coordinate step) of the merged modes without broadcasts, by stride.

    >>> placed_modes(Layout((4, 8), (8, 1)), "right_inverse")
    [(1, 8, 4), (8, 4, 1)]
    """
    placed = []
    step = 1
    if has_basis(as_layout(layout).stride):
        raise LayoutError(f"{name} of {layout}: it gives coordinates, not indices",
                          hint="invert a layout with integer strides")
    for extent, stride in layout.modes():
        if extent == 0:
            raise LayoutError(f"{name} of {layout}: it has no elements", hint="give extents of 1 or more")
        if stride != 0:
            placed.append((stride, extent, step))
        step *= extent
    return by_stride(placed)


def longest_chain(placed: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Those of the placed modes that follow each other from index 1 on without a gap, and lead the farthest.

    >>> longest_chain([(1, 8, 1), (1, 2, 8), (2, 8, 16)])
    [(1, 2, 8), (2, 8, 16)]
    """
    chain = []
    reached = 1
    for mode in _farthest_first(placed):
        if same(mode[0], reached):
            chain.append(mode)
            reached *= mode[1]
    return chain


def _farthest_first(placed: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The modes by stride; of those with one stride the first is the one from which whole modes lead the farthest."""
    first: dict[int, int] = {}
    for i, (stride, _, _) in enumerate(placed):
        first.setdefault(stride, i)
    if len(first) == len(placed):
        return placed
    if has_runtime(tuple(placed)):
        undecided("one of the modes of the same stride leads farther")
    farthest: dict[int, int] = {}

    def far(mode: tuple[int, int, int]) -> int:
        end = mode[0] * mode[1]
        return farthest.get(end, end)

    for mode in reversed(placed):
        farthest[mode[0]] = max(farthest.get(mode[0], 0), far(mode))
    return sorted(placed, key=lambda mode: (first[mode[0]], -far(mode)))


def right_inverse(layout: Layout) -> Layout:
    """The layout R with layout(R(i)) == i for i from 0 to size(R) - 1, as far as whole modes lead.

    Modes of stride 0, of negative stride, and those whose indices are reached already, take no part. Raises LayoutError
    for a layout that gives coordinates or has no elements.

    >>> right_inverse(Layout((4, 8), (8, 1))), right_inverse(Layout(((2, 2), (2, 4)), ((0, 1), (0, 2))))
    (Layout((8, 4), (4, 1)), Layout((2, 4), (2, 8)))
    """
    return of_modes([(extent, step) for _, extent, step in longest_chain(placed_modes(layout, "right_inverse"))])


def left_inverse(layout: Layout) -> Layout:
    """The layout R with R(layout(c)) == the integer coordinate of c, gaps kept; broadcast modes count as 0.

    Raises LayoutError where the layout is not injective (with two coordinates as witness), is negative, or has
    strides that do not divide each other, unless the rounded quotients lead back all the same.

    >>> left_inverse(Layout((4, 8), (1, 5))), left_inverse(Layout(4, 2))
    (Layout((5, 8), (1, 4)), Layout((2, 4), (0, 1)))
    """
    placed = placed_modes(layout, "left_inverse")
    modes: list[Mode] = []
    before = (1, 1, 0)
    uneven = None
    for mode in placed:
        stride = mode[0]
        if stride < 0:
            raise LayoutError(f"left_inverse of {layout}: the stride {stride} is negative",
                              hint="invert its positive counterpart")
        room = stride // before[0]
        if room < before[1]:
            raise _not_left_invertible(layout, before, mode)
        if uneven is None and not divides(before[0], stride):
            uneven = before, mode
        modes.append((room, before[2]))
        before = mode
    modes.append((before[1], before[2]))
    result = of_modes(Layout(*zip(*modes, strict=True)).modes())
    if uneven and not _leads_back(result, placed):
        raise _not_left_invertible(layout, *uneven)
    return result


def _leads_back(inverse: Layout, placed: list[tuple[int, int, int]]) -> bool:
    """Whether `inverse` gives the coordinate of each index; not where some are runtime values, or too many."""
    strides, extents, steps = zip(*placed, strict=True)
    whole = Layout(extents, strides)
    if has_runtime((extents, strides)) or not comparable(size(whole), reach(inverse, reach(whole))):
        return False
    return bool((Layout(extents, steps).offsets() == inverse(whole.offsets())).all())


def _not_left_invertible(layout: Layout, low: tuple[int, int, int], high: tuple[int, int, int]) -> LayoutError:
    return not_injective("left_inverse", layout) or LayoutError(
        f"left_inverse of {layout}: the mode {high[1]}:{high[0]} does not start at a multiple of the mode "
        f"{low[1]}:{low[0]}", hint="let each stride be a multiple of the one below it")


def make_layout_tv(thr: Layout, val: Layout) -> tuple[IntTuple, Layout]:
    """The tile and the thread-value layout of threads that each hold a small layout of values.

    `thr` and `val` map positions to thread and value numbers; both must be bijections onto 0 .. size - 1. The result
    maps (thread, value) to the colexicographic position in the tile. Raises LayoutError where a number is missing.

    >>> make_layout_tv(Layout((8, 16), (16, 1)), Layout((1, 4), (1, 1)))
    ((8, 64), Layout(((16, 8), 4), ((32, 1), 8)))
    """
    for name, each in (("thread", thr), ("value", val)):
        found = size(right_inverse(as_layout(each, f"{name} layout")))
        if not same(found, size(each)):
            raise LayoutError(f"the {name} layout {each} does not number its {size(each)} positions 0 to "
                              f"{size(each) - 1}: number {found} is missing or comes twice",
                              hint="use a compact layout, for example make_ordered_layout(shape, order)")
    whole = raked_product(thr, val)
    tile = tuple(map(product, whole.shape)) if max(len(thr), len(val)) > 1 else product(whole.shape)
    return tile, composition(right_inverse(whole), Layout((size(thr), size(val))))
