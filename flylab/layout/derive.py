"""Layouts made from other layouts: compact copies, tilings, and maps compared."""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.algebra import of_modes
from flylab.layout.construct import as_layout, make_ordered_layout, size
from flylab.layout.int_tuple import IntTuple, as_shape, compact, congruent, map_leaves, modes_of, product, text
from flylab.layout.layout import Layout, has_basis, trusted, with_units
from flylab.layout.products import blocked_product
from flylab.layout.swizzle import ComposedLayout


def filter(layout: Layout) -> Layout:
    """The layout without its modes of stride 0, with the fewest modes: one coordinate for each repeated index.

    Raises LayoutError for what is no plain layout.

    >>> filter(Layout((4, 2, 8), (0, 1, 2)))
    Layout(16, 1)
    """
    held = [mode for mode in as_layout(layout).modes() if mode[1] != 0]
    modes = list(of_modes(held).modes()) if held else []
    return of_modes(with_units(modes, layout.stride))


def same_map(a: Any, b: Any) -> bool:
    """Whether both have the same index, or coordinate, at each integer coordinate, however they nest.

    Composed layouts of different parts are compared index by index; LayoutError where they have too many.

    >>> same_map(Layout((4, 8), (1, 4)), Layout(32, 1)), same_map(Layout(4, 1), Layout(4, 2))
    (True, False)
    """
    for each in (a, b):
        if not isinstance(each, (Layout, ComposedLayout)):
            as_layout(each)
    if size(a) != size(b):
        return False
    if not size(a):
        return True
    if isinstance(a, Layout) and isinstance(b, Layout):
        # A map has one form of the fewest modes, as a mode runs exactly as long as its step holds.
        return a.modes() == b.modes() and coprofile(a) == coprofile(b)
    if a == b:
        return True
    if not congruent(a(0), b(0)):
        return False
    first, second = a.offsets(), b.offsets()
    return first.shape == second.shape and bool((first == second).all())


def make_layout_like(layout: Layout) -> Layout:
    """A compact layout of the same shape, with its modes in the order of the strides; stride 0 stays 0.

    Raises LayoutError for a layout that gives coordinates.

    >>> make_layout_like(Layout((4, 8), (16, 2))), make_layout_like(Layout((4, 8), (0, 2)))
    (Layout((4, 8), (8, 1)), Layout((4, 8), (0, 1)))
    """
    layout = _plain(layout, "make_layout_like")
    held = map_leaves(lambda extent, stride: extent if stride else 1, layout.shape, layout.stride)
    ordered = make_ordered_layout(held, map_leaves(abs, layout.stride))
    return trusted(layout.shape, ordered.stride)


def make_fragment_layout_like(layout: Layout) -> Layout:
    """A compact layout of the same shape for registers: the first mode runs fastest, the others in stride order.

    Raises LayoutError for a layout that gives coordinates.

    >>> make_fragment_layout_like(Layout((4, 2, 8), (0, 16, 2)))
    Layout((4, 2, 8), (1, 32, 4))
    """
    layout = _plain(layout, "make_fragment_layout_like")
    if len(layout) == 1:
        return Layout(layout.shape)
    first = layout.shape[0]
    rest = make_ordered_layout(layout.shape[1:], map_leaves(abs, layout.stride[1:]))
    room = product(first)
    return Layout(layout.shape, (compact(first), *map_leaves(lambda stride: stride * room, rest.stride)))


def _plain(value: Any, name: str) -> Layout:
    layout = as_layout(value)
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
        return ComposedLayout(block.outer, block.offset, tile_to_shape(block.inner, shape, order))
    targets, extents = modes_of(as_shape(shape)), modes_of(as_layout(block, "block").shape)
    if len(targets) != len(extents):
        raise LayoutError(f"the block {block} has {len(extents)} modes, the shape {text(shape)} has {len(targets)}",
                          hint="give a shape with as many modes as the block")
    counts = []
    for target, extent in zip(map(product, targets), map(product, extents), strict=True):
        if not extent or target % extent:
            raise LayoutError(f"the block {block} does not divide the shape {text(shape)}: {target} is no multiple of "
                              f"{extent}", hint="round the shape up to whole blocks")
        counts.append(target // extent)
    return blocked_product(block, make_ordered_layout(tuple(counts), 0 if order is None else order))


def coprofile(layout: Layout) -> IntTuple:
    """How the results of a layout nest: 0 for indices, a tuple of zeros for coordinates.

    Raises LayoutError for what is no plain layout.

    >>> from flylab.layout import make_identity_layout
    >>> coprofile(Layout((4, 8), (1, 4))), coprofile(make_identity_layout((4, 8)))
    (0, (0, 0))
    """
    origin = as_layout(layout)(map_leaves(lambda _: 0, layout.shape))
    return map_leaves(lambda _: 0, origin)
