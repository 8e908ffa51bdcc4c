"""Coordinate tensors, and the parts of composed layouts.

A coordinate tensor is a composed layout without an outer part, offset + inner(coord), where the inner layout has basis
strides. Its divides and slices tell each element at which coordinate of the whole it lies:

    >>> from flylab.layout import make_identity_layout, slice, zipped_divide
    >>> tiles = zipped_divide(make_view((0, 0), make_identity_layout((64, 96))), (16, 32))
    >>> tile = slice(tiles, (None, (1, 2)))
    >>> str(tile), tile(3, 5)
    ('(16,64) o (16,32):(1E0,1E1)', (19, 69))
"""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.construct import as_layout
from flylab.layout.derive import coprofile
from flylab.layout.int_tuple import as_profile, congruent, shown, text
from flylab.layout.layout import Layout
from flylab.layout.runtime import index_leaf
from flylab.layout.swizzle import ComposedLayout


def make_view(offset: Any, layout: Layout) -> ComposedLayout:
    """The map offset + layout(coord): over basis strides a coordinate tensor, whose offset is a coordinate.

    The offset is nested like the coordinates that the layout gives, an int where it gives indices; its numbers may be
    runtime values. Raises LayoutError where it does not nest so, or `layout` is not a plain layout.

    >>> from flylab.layout import make_identity_layout
    >>> tensor = make_view((0, 8), make_identity_layout((4, 8)))
    >>> str(tensor), tensor(3, 5)
    ('(0,8) o (4,8):(1E0,1E1)', (3, 13))
    """
    origin = coprofile(as_layout(layout, "the layout of a view"))
    offset = as_profile(offset, "offset", index_leaf)
    if not congruent(offset, origin):
        gives = f"coordinates such as {text(origin)}" if isinstance(origin, tuple) else "indices"
        raise LayoutError(f"the offset {text(offset)} of a view of {layout} does not nest like what that layout gives, "
                          f"{gives}", hint=f"give an offset that nests like {text(origin)}")
    return ComposedLayout(None, offset, layout)


def composed_get_inner(layout: ComposedLayout) -> Layout:
    """The inner layout of a composed layout. LayoutError for what is not composed.

    >>> composed_get_inner(ComposedLayout(None, 16, Layout((4, 8), (8, 1))))
    Layout((4, 8), (8, 1))
    """
    return _composed(layout, "composed_get_inner").inner


def composed_get_offset(layout: ComposedLayout) -> Any:
    """The offset of a composed layout: an int, or a nested tuple over coordinates, with the runtime values it holds.

    LayoutError for what is not composed.

    >>> composed_get_offset(ComposedLayout(None, 16, Layout((4, 8), (8, 1))))
    16
    """
    return _composed(layout, "composed_get_offset").offset


def composed_get_outer(layout: ComposedLayout) -> Any:
    """The outer part of a composed layout: a Swizzle, Layout or ComposedLayout, or None where it has none.

    LayoutError for what is not composed.

    >>> from flylab.layout import Swizzle
    >>> composed_get_outer(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1))))
    Swizzle(bits=3, base=3, shift=3)
    """
    return _composed(layout, "composed_get_outer").outer


def _composed(layout: Any, name: str) -> ComposedLayout:
    if isinstance(layout, ComposedLayout):
        return layout
    given = f"{layout} is a plain layout" if isinstance(layout, Layout) else f"{shown(layout)} is no layout"
    raise LayoutError(f"{name}: {given}, and has no outer part and no offset",
                      hint="give a composed layout, from make_composed_layout, composition or make_view")
