"""Published spellings of static values: `fx.static(fx.SwizzleType.get(3, 3, 3))` is `fx.Swizzle(3, 3, 3)`.

There a static value is named by its type and made by an operation. Here static values are plain Python objects, so the
type of a value is the value.
"""

from __future__ import annotations

from typing import TypeVar

from flylab.errors import TraceError
from flylab.layout import ComposedLayout, Layout, Swizzle, make_composed_layout, make_int_tuple, make_layout, make_tile

STATIC = (Layout, ComposedLayout, Swizzle, tuple, int)
V = TypeVar("V")


class SwizzleType:
    """`SwizzleType.get(bits, base, shift)`: the swizzle of these numbers."""

    get = staticmethod(Swizzle)


class IntTupleType:
    """`IntTupleType.get((4, 8))`: the tuple."""

    get = staticmethod(make_int_tuple)


class LayoutType:
    """`LayoutType.get(shape, stride)`: the layout."""

    get = staticmethod(make_layout)


class ComposedLayoutType:
    """`ComposedLayoutType.get(swizzle, offset, layout)`: the swizzled layout."""

    get = staticmethod(make_composed_layout)


class TileType:
    """`TileType.get(8, 16)`: the tiler."""

    get = staticmethod(make_tile)


def static(value: V) -> V:
    """The static value that a published type names: a swizzle, layout, tuple or tiler.

    >>> static(SwizzleType.get(3, 3, 3)) == Swizzle(3, 3, 3)
    True
    >>> str(static(ComposedLayoutType.get(SwizzleType.get(3, 3, 3), 0, LayoutType.get((8, 8), (8, 1)))))
    'S<3,3,3> o 0 o (8,8):(8,1)'

    Raises `TraceError` for anything else, which is not known before the kernel runs.
    """
    if isinstance(value, bool) or not isinstance(value, STATIC):
        raise TraceError(f"fx.static makes a swizzle, layout, tuple or tiler, and was given {value!r}",
                         hint="write fx.static(fx.SwizzleType.get(3, 3, 3))")
    return value
