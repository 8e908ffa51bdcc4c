"""Layouts made from other layouts: compact copies, other element widths, tilings, and maps compared."""

from __future__ import annotations

from math import gcd
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.algebra import of_modes
from flylab.layout.construct import as_layout, make_ordered_layout, nested_like, size
from flylab.layout.int_tuple import IntTuple, as_int, as_shape, compact, leaves, map_leaves, modes_of, product, text
from flylab.layout.layout import Layout, has_basis, trusted
from flylab.layout.products import blocked_product
from flylab.layout.swizzle import ComposedLayout, Swizzle


def filter(layout: Layout) -> Layout:
    """The layout without its modes of stride 0, with the fewest modes: one coordinate for each repeated index.

    >>> filter(Layout((4, 2, 8), (0, 1, 2)))
    Layout(16, 1)
    """
    modes = [mode for mode in as_layout(layout).modes() if mode[1] != 0]
    return of_modes(Layout(*zip(*modes, strict=True)).modes()) if modes else trusted(1, 0)


def same_map(a: Any, b: Any) -> bool:
    """Whether both have the same index at each integer coordinate, however they nest.

    >>> same_map(Layout((4, 8), (1, 4)), Layout(32, 1)), same_map(Layout(4, 1), Layout(4, 2))
    (True, False)
    """
    if size(a) != size(b):
        return False
    if isinstance(a, Layout) and isinstance(b, Layout) and a.modes() == b.modes():
        return True
    first, second = a.offsets(), b.offsets()
    return first.shape == second.shape and bool((first == second).all())


def make_layout_like(layout: Layout) -> Layout:
    """A compact layout of the same shape, with its modes in the order of the strides; stride 0 stays 0.

    >>> make_layout_like(Layout((4, 8), (16, 2))), make_layout_like(Layout((4, 8), (0, 2)))
    (Layout((4, 8), (8, 1)), Layout((4, 8), (0, 1)))
    """
    layout = _plain(layout, "make_layout_like")
    held = map_leaves(lambda extent, stride: extent if stride else 1, layout.shape, layout.stride)
    ordered = make_ordered_layout(held, map_leaves(abs, layout.stride))
    return trusted(layout.shape, ordered.stride)


def make_fragment_layout_like(layout: Layout) -> Layout:
    """A compact layout of the same shape for registers: the first mode runs fastest, the others in stride order.

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


def recast_layout(layout: Any, old_bits: int, new_bits: int) -> Any:
    """The layout of the same memory seen in elements of `new_bits` instead of `old_bits`.

    Modes of stride 1 change their extent, other modes their stride. Raises LayoutError where whole new elements do
    not come out.

    >>> recast_layout(Layout((8, 16), (16, 1)), 16, 8), recast_layout(Layout((8, 16), (16, 1)), 8, 16)
    (Layout((8, 32), (32, 1)), Layout((8, 8), (8, 1)))
    """
    old, new = as_int(old_bits, "old_bits"), as_int(new_bits, "new_bits")
    if old < 1 or new < 1:
        raise LayoutError(f"recast_layout from {old} to {new} bits: widths are positive", hint="give widths in bits")
    common = gcd(old, new)
    finer, coarser = old // common, new // common
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.outer, Swizzle) or layout.offset * finer % coarser:
            raise LayoutError(f"recast_layout of {layout}: its offset or outer layout has no counterpart at {new} bits",
                              hint="recast the inner layout before it is composed")
        return ComposedLayout(_recast_swizzle(layout.outer, finer, coarser), layout.offset * finer // coarser,
                              recast_layout(layout.inner, old, new))
    layout = _plain(layout, "recast_layout")
    parts = [_narrowed(*mode, finer) for mode in zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
    parts = [_widened(*mode, coarser, layout) for mode in parts]
    extents, strides = zip(*parts, strict=True)
    return Layout(nested_like(layout.shape, extents), nested_like(layout.shape, strides))


def _narrowed(extent: int, stride: int, factor: int) -> tuple[int, int]:
    return (extent * factor, stride) if abs(stride) == 1 else (extent, stride * factor)


def _widened(extent: int, stride: int, factor: int, layout: Layout) -> tuple[int, int]:
    if stride % factor == 0:
        return extent, stride // factor
    step = abs(stride)
    if factor % step == 0 and extent % (factor // step) == 0:
        return extent // (factor // step), stride // step
    raise LayoutError(f"recast_layout of {layout}: the mode {extent}:{stride} does not fill whole elements of "
                      f"{factor} times the width", hint="recast a layout whose unit-stride extent the factor divides")


def _recast_swizzle(swizzle: Swizzle, finer: int, coarser: int) -> Swizzle:
    base = swizzle.base + finer.bit_length() - coarser.bit_length()
    if finer & (finer - 1) or coarser & (coarser - 1) or base < 0:
        raise LayoutError(f"recast_layout: the swizzle {swizzle} would have to move bits inside an element",
                          hint="use a swizzle with a larger base")
    return Swizzle(swizzle.bits, base, swizzle.shift)


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

    >>> from flylab.layout import make_identity_layout
    >>> coprofile(Layout((4, 8), (1, 4))), coprofile(make_identity_layout((4, 8)))
    (0, (0, 0))
    """
    origin = as_layout(layout)(map_leaves(lambda _: 0, layout.shape))
    return map_leaves(lambda _: 0, origin)
