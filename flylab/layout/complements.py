"""The complement: what a layout leaves out of the indices below a size. Divides and products are made with it."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.algebra import of_modes
from flylab.layout.arrays import comparable, reach
from flylab.layout.construct import as_layout, size
from flylab.layout.coordinates import idx2crd
from flylab.layout.decisions import at_least_one, rounded_up, surely_divides
from flylab.layout.int_tuple import IntTuple, as_shape, product, text
from flylab.layout.layout import Layout, Mode, has_basis, trusted


def complement(layout: Layout, target: Any = 1) -> Layout:
    """The layout of what `layout` leaves out of the indices up to `target` (a size or a shape), rounded up.

    Put beside `layout` it makes an injective layout, which covers [0, target) where each stride is a multiple of what
    lies below it; where it is not, the gap stays. Modes of stride 0 are skipped. Raises LayoutError, with two
    coordinates as witness, where `layout` is not injective, and where it is negative or empty.

    >>> complement(Layout(4, 2), 24), complement(Layout((2, 2), (1, 6)), 24)
    (Layout((2, 3), (1, 8)), Layout((3, 2), (2, 12)))
    """
    gaps, span = gaps_of(as_layout(layout))
    return with_rest(gaps, rounded_up(product(as_shape(target, "target")), span), span)


def with_rest(gaps: list[Mode], rest: Any, span: Any) -> Layout:
    """The layout of gaps below `span`, and of `rest` repetitions of it.

    >>> with_rest([(3, 2)], 2, 12)
    Layout((3, 2), (2, 12))
    """
    rest = at_least_one(rest)
    return of_modes(gaps if rest == 1 else [*gaps, (rest, span)])


def gaps_of(layout: Layout) -> tuple[list[Mode], int]:
    """The modes of the indices that `layout` leaves out below its end, and the stride at which it may be repeated.

    >>> gaps_of(Layout((2, 2), (1, 6)))
    ([(3, 2)], 12)
    """
    pairs = []
    if has_basis(layout.stride):
        raise LayoutError(f"complement of {layout}: it gives coordinates", hint="use integer strides")
    for extent, stride in layout.modes():
        if stride < 0 or extent == 0:
            why = f"the stride {stride} is negative" if extent != 0 else "it has no elements"
            raise LayoutError(f"complement of {layout}: {why}", hint="use positive extents and strides")
        if stride != 0:
            pairs.append((stride, extent))
    gaps: list[Mode] = []
    span = 1
    for stride, extent in by_stride(pairs):
        if stride < span:
            raise _not_disjoint(layout, stride, extent, span)
        if stride // span != 1:
            gaps.append((stride // span, span))
        span = stride * extent
    return gaps, span


def by_stride(modes: list[Any]) -> list[Any]:
    """Tuples that begin with a stride, in the order of the strides. A runtime stride that divides another is not the
    larger; Undecided where that does not tell.

    >>> by_stride([(8, 2), (1, 4), (1, 2)])
    [(1, 2), (1, 4), (8, 2)]
    """
    if all([type(mode[0]) is int for mode in modes]):
        return sorted(modes)

    def order(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
        if a[0] == b[0]:
            return 0
        return -1 if surely_divides(a[0], b[0]) else 1 if surely_divides(b[0], a[0]) or a[0] > b[0] else -1

    return sorted(modes, key=cmp_to_key(order))


def _not_disjoint(layout: Layout, stride: int, extent: int, span: int) -> LayoutError:
    return not_injective("complement", layout) or LayoutError(
        f"complement of {layout}: its mode {extent}:{stride} begins inside what its smaller strides span, {span}",
        hint="give the modes strides that do not interleave")


def not_injective(operation: str, layout: Layout) -> LayoutError | None:
    """The refusal of an operation on a layout of which two coordinates collide; None where none do."""
    collision = colliding(layout)
    if collision is None:
        return None
    a, b, index = collision
    return LayoutError(f"{operation} of {layout}: it is not injective, the coordinates {text(a)} and {text(b)} "
                       f"both have index {index}", hint="give the modes strides that do not meet")


def colliding(layout: Layout) -> tuple[IntTuple, IntTuple, int] | None:
    """Two coordinates with the same index, and it; None where there are none. Modes of stride 0 stay at 0.

    >>> colliding(Layout((3, 2), (1, 2)))
    ((2, 0), (0, 1), 2)
    """
    shape, stride = layout.shape, layout.stride
    narrowed = trusted(_without_broadcast(shape, stride), stride)
    if not comparable(size(narrowed), reach(narrowed)):
        return None
    import numpy as np

    offsets = narrowed.offsets()
    order = np.argsort(offsets, kind="stable")
    same = np.flatnonzero(offsets[order][1:] == offsets[order][:-1])
    if not same.size:
        return None
    seconds = order[same + 1]
    pick = int(np.argmin(seconds))
    first, second = int(order[same[pick]]), int(seconds[pick])
    return idx2crd(first, narrowed.shape), idx2crd(second, narrowed.shape), int(offsets[first])


def _without_broadcast(shape: IntTuple, stride: IntTuple) -> IntTuple:
    if isinstance(shape, tuple):
        return tuple(map(_without_broadcast, shape, stride))
    return 1 if stride == 0 else shape
