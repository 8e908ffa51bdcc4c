"""The same memory seen in elements of another width.

A layout that is recast reaches exactly the bits that it reached before; where no layout does, it is refused.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.arrays import comparable, reach
from flylab.layout.construct import nested_like
from flylab.layout.decisions import divides, same, surely_divides
from flylab.layout.derive import coprofile
from flylab.layout.int_tuple import as_int, leaves, product
from flylab.layout.layout import Layout
from flylab.layout.swizzle import ComposedLayout, Swizzle

_Modes = list[tuple[int, int]]


def recast_layout(layout: Any, old_bits: int, new_bits: int) -> Any:
    """The layout of the same memory seen in elements of `new_bits` instead of `old_bits`.

    The first mode of stride 1 (else of one element) takes the parts of an element; others change their stride. Wider
    elements take modes that fill them without a gap. Raises LayoutError where the result would miss bits of the
    memory or reach others.

    >>> recast_layout(Layout((8, 16), (16, 1)), 16, 8), recast_layout(Layout((8, 16), (16, 1)), 8, 16)
    (Layout((8, 32), (32, 1)), Layout((8, 8), (8, 1)))
    """
    old, new = as_int(old_bits, "old_bits"), as_int(new_bits, "new_bits")
    if old < 1 or new < 1:
        raise LayoutError(f"recast_layout from {old} to {new} bits: widths are positive", hint="give widths in bits")
    common = gcd(old, new)
    finer, coarser = old // common, new // common
    if isinstance(coprofile(layout), tuple):
        raise LayoutError(f"recast_layout of {layout}: it gives coordinates, which have no width",
                          hint="recast the layout of the memory")
    if isinstance(layout, ComposedLayout):
        outer = layout.outer
        known = outer is None or isinstance(outer, Swizzle)
        if not known or type(layout.offset) is not int or layout.offset * finer % coarser:
            raise LayoutError(f"recast_layout of {layout}: its offset or outer layout has no counterpart at {new} bits",
                              hint="recast the inner layout before it is composed")
        return ComposedLayout(None if outer is None else _recast_swizzle(outer, finer, coarser),
                              layout.offset * finer // coarser, recast_layout(layout.inner, old, new))
    if product(layout.shape) == 0:
        return layout
    modes = list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))
    if finer > 1:
        modes = _narrowed(modes, finer, layout)
    if coarser > 1:
        modes = _widened(modes, coarser, Layout(*_nested(modes, layout)))
    return Layout(*_nested(modes, layout))


def _nested(modes: _Modes, layout: Layout) -> tuple[Any, Any]:
    extents, strides = zip(*modes, strict=True)
    return nested_like(layout.shape, extents), nested_like(layout.shape, strides)


def _narrowed(modes: _Modes, factor: int, layout: Layout) -> _Modes:
    """Each element in `factor` parts, which follow each other in the first mode of stride 1."""
    at = _carrier(modes)
    if at is None:
        raise LayoutError(f"recast_layout of {layout} to elements of 1/{factor} of the width: no mode has stride 1, "
                          "so part 1 of element 0 would be in no mode",
                          hint="add a mode of one element for the parts: prepend(layout, make_layout(1))")
    scaled = [(extent, stride * factor) for extent, stride in modes]
    scaled[at] = (modes[at][0] * factor, 1)
    return scaled


def _carrier(modes: _Modes) -> int | None:
    """Which mode takes the parts of an element: the first of stride 1, else the first of one element, if there is one.

    A runtime stride before it that is 1 would take them; not where it is a multiple of the extent found, which then is
    1 as well.
    """
    found = next((i for i, mode in enumerate(modes) if mode[1] == 1), None)
    for i, (_, stride) in enumerate(modes[:found]):
        if (found is None or not surely_divides(modes[found][0], stride)) and same(stride, 1):
            return i
    if found is None:
        # A mode of one element may have any stride, so 1 as well.
        found = next((i for i, mode in enumerate(modes) if mode[0] == 1), None)
    return found


def _widened(modes: _Modes, factor: int, layout: Layout) -> _Modes:
    """`factor` elements in one: the modes of the smallest strides fill it, those of the others are multiples of it."""
    result = list(modes)
    covered = 1
    inside = [i for i, (extent, stride) in enumerate(modes) if extent != 1 and not divides(factor, stride)]
    for i in sorted(inside, key=lambda i: modes[i][1]):
        extent, stride = modes[i]
        taken = min(extent, factor // covered)
        if stride != covered or not taken or not divides(taken, extent) or factor % (covered * taken):
            raise _not_whole(layout, factor)
        covered *= taken
        result[i] = (extent // taken, factor)
    if covered != factor:
        raise _not_whole(layout, factor)
    return [(extent, stride // factor) for extent, stride in result]


def _not_whole(layout: Layout, factor: int) -> LayoutError:
    message = f"recast_layout of {layout} to elements of {factor} times the width: "
    hint = "recast a layout whose modes of the smallest strides fill the wider element without a gap"
    if not comparable(product(layout.shape), reach(layout)):
        return LayoutError(message + "its modes do not fill whole elements", hint=hint)
    held = set(layout.offsets().tolist())
    for index in sorted(held):
        first = index // factor * factor
        for part in range(first, first + factor):
            if part not in held:
                return LayoutError(f"{message}the one with index {index} also holds index {part}, which the layout "
                                   "does not reach", hint=hint)
    return LayoutError(f"{message}its modes fill whole elements only together, not one by one", hint=hint)


def _recast_swizzle(swizzle: Swizzle, finer: int, coarser: int) -> Swizzle:
    base = swizzle.base + finer.bit_length() - coarser.bit_length()
    if finer & (finer - 1) or coarser & (coarser - 1) or base < 0:
        raise LayoutError(f"recast_layout: the swizzle {swizzle} would have to move bits inside an element",
                          hint="use a swizzle with a larger base")
    return Swizzle(swizzle.bits, base, swizzle.shift)
