"""Layouts made from other layouts: compact copies, tilings, and maps compared."""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError, Undecided
from flylab.layout.algebra import of_modes
from flylab.layout.construct import as_layout, make_ordered_layout, size
from flylab.layout.decisions import divides
from flylab.layout.int_tuple import (
    IntTuple,
    as_shape,
    compact,
    congruent,
    has_runtime,
    leaves,
    map_leaves,
    modes_of,
    product,
    text,
)
from flylab.layout.layout import Layout, has_basis, trusted, with_units
from flylab.layout.products import blocked_product
from flylab.layout.swizzle import ComposedLayout, Swizzle


def filter(layout: Any) -> Any:
    """The layout without its modes of stride 0, with the fewest modes: one coordinate for each repeated index.

    Of a composed layout the inner layout loses them. Raises LayoutError for what is no layout.

    >>> filter(Layout((4, 2, 8), (0, 1, 2)))
    Layout(16, 1)
    """
    if isinstance(layout, ComposedLayout):
        return layout.with_inner(filter(layout.inner))
    held = [mode for mode in as_layout(layout).modes() if mode[1] != 0]
    modes = list(of_modes(held).modes()) if held else []
    return of_modes(with_units(modes, layout.stride))


def same_map(a: Any, b: Any) -> bool:
    """Whether both have the same index, or coordinate, at each integer coordinate, however they nest.

    Composed layouts with different outer parts are compared index by index; LayoutError where they have too many, and
    where different runtime values would have to be compared.

    >>> same_map(Layout((4, 8), (1, 4)), Layout(32, 1)), same_map(Layout(4, 1), Layout(4, 2))
    (True, False)
    """
    for each in (a, b):
        if not isinstance(each, (Layout, ComposedLayout)):
            as_layout(each)
    if a is b:
        return True
    parts = [each.inner if isinstance(each, ComposedLayout) else each for each in (a, b)]
    if any([has_runtime((part.shape, part.stride)) for part in parts]):
        raise Undecided(f"same_map of {a} and {b}: both are known only while the kernel runs",
                        hint="compare layouts without runtime numbers")
    if size(a) != size(b):
        return False
    if size(a) == 0:
        return True
    first, second = _linear(a), _linear(b)
    if first and second:
        # A map has one form of the fewest modes, as a mode runs exactly as long as its step holds.
        return first[1].modes() == second[1].modes() and _same_place(first[0], second[0])
    if a == b:
        return True
    if not congruent(a(0), b(0)):
        return False
    ours, theirs = a.offsets(), b.offsets()
    return ours.shape == theirs.shape and bool((ours == theirs).all())


def _linear(value: Any) -> tuple[Any, Layout] | None:
    """The offset and the layout that are added; None of a composed layout with an outer part."""
    if isinstance(value, Layout):
        return coprofile(value), value
    return None if value.outer is not None else (value.offset, value.inner)


def _same_place(a: Any, b: Any) -> bool:
    if not congruent(a, b):
        return False
    for one, other in zip(leaves(a), leaves(b), strict=True):
        if one is not other and not (type(one) is type(other) is int):
            raise LayoutError(f"the offsets {text(a)} and {text(b)} are known only while their kernel runs",
                              hint="compare the inner layouts")
        if one is not other and one != other:
            return False
    return True


def make_layout_like(layout: Layout) -> Layout:
    """A compact layout of the same shape, with its modes in the order of the strides; stride 0 stays 0. Of a composed
    layout, in that of its inner layout.

    Raises LayoutError for a layout that gives coordinates.

    >>> make_layout_like(Layout((4, 8), (16, 2))), make_layout_like(Layout((4, 8), (0, 2)))
    (Layout((4, 8), (8, 1)), Layout((4, 8), (0, 1)))
    """
    layout = _plain(layout, "make_layout_like")
    held = map_leaves(lambda extent, stride: extent if stride != 0 else 1, layout.shape, layout.stride)
    ordered = make_ordered_layout(held, map_leaves(abs, layout.stride))
    return trusted(layout.shape, ordered.stride)


def make_fragment_layout_like(layout: Any) -> Layout:
    """A compact layout of the same shape for registers: the first mode runs fastest, the others in stride order.

    Of a composed layout it is that of the inner one. Raises LayoutError for a layout that gives coordinates.

    >>> make_fragment_layout_like(Layout((4, 2, 8), (0, 16, 2)))
    Layout((4, 2, 8), (1, 32, 4))
    >>> make_fragment_layout_like(ComposedLayout(Swizzle(3, 3, 3), 72, Layout((8, 4), (1, 2048))))
    Layout((8, 4), (1, 8))
    """
    layout = layout.inner if isinstance(layout, ComposedLayout) else layout
    layout = _plain(layout, "make_fragment_layout_like")
    if len(layout) == 1:
        return Layout(layout.shape)
    first = layout.shape[0]
    rest = make_ordered_layout(layout.shape[1:], map_leaves(abs, layout.stride[1:]))
    room = product(first)
    return Layout(layout.shape, (compact(first), *map_leaves(lambda stride: stride * room, rest.stride)))


def _plain(value: Any, name: str) -> Layout:
    layout = as_layout(value.inner if isinstance(value, ComposedLayout) else value)
    if has_basis(layout.stride):
        raise LayoutError(f"{name} of {layout}: it gives coordinates, which have no order",
                          hint="use make_layout(layout.shape) for a compact layout of its shape")
    return layout


def tile_to_shape(block: Any, shape: Any, order: Any = None) -> Any:
    """`block` repeated until it fills `shape`; the copies follow each other in `order` (first mode fastest if None).

    Raises LayoutError where the block does not divide the shape.

    >>> tile_to_shape(Layout((2, 4), (4, 1)), (4, 8), (0, 1))
    Layout(((2, 2), (4, 2)), ((4, 8), (1, 16)))
    """
    if isinstance(block, ComposedLayout):
        return block.with_inner(tile_to_shape(block.inner, shape, order))
    targets, extents = modes_of(as_shape(shape)), modes_of(as_layout(block, "block").shape)
    if len(targets) != len(extents):
        raise LayoutError(f"the block {block} has {len(extents)} modes, the shape {text(shape)} has {len(targets)}",
                          hint="give a shape with as many modes as the block")
    counts = []
    for target, extent in zip(map(product, targets), map(product, extents), strict=True):
        if extent == 0 or not divides(extent, target):
            raise LayoutError(f"the block {block} does not divide the shape {text(shape)}: {target} is no multiple of "
                              f"{extent}", hint="round the shape up to whole blocks")
        counts.append(target // extent)
    return blocked_product(block, make_ordered_layout(tuple(counts), 0 if order is None else order))


def coprofile(layout: Any) -> IntTuple:
    """How the results of a layout, plain or composed, nest: 0 for indices, a tuple of zeros for coordinates.

    Raises LayoutError for what is no layout.

    >>> from flylab.layout import make_identity_layout
    >>> coprofile(Layout((4, 8), (1, 4))), coprofile(make_identity_layout((4, 8)))
    (0, (0, 0))
    """
    if isinstance(layout, ComposedLayout):
        if layout.outer is None:
            return map_leaves(lambda _: 0, layout.offset)
        return 0 if isinstance(layout.outer, Swizzle) else coprofile(layout.outer)
    origin = as_layout(layout)(map_leaves(lambda _: 0, layout.shape))
    return map_leaves(lambda _: 0, origin)
