"""Making layouts and tiles, and asking for their size, rank and parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.basis import Basis
from flylab.layout.decisions import last
from flylab.layout.int_tuple import (
    DEEPEST,
    IntTuple,
    as_int,
    as_int_tuple,
    as_shape,
    at_path,
    leaves,
    level_below,
    levels_of,
    map_leaves,
    modes_of,
    product,
    shown,
    text,
)
from flylab.layout.layout import Layout, trusted
from flylab.layout.runtime_int import RuntimeInt
from flylab.layout.swizzle import ComposedLayout, Swizzle


def make_layout(shape: Any, stride: Any = None, *more: Layout) -> Layout:
    """The layout shape:stride; without a stride it is compact, first mode fastest. Layouts are put side by side.

    Raises LayoutError for negative or non-integer extents and for mismatched nesting.

    >>> make_layout((9, (4, 8)), (59, (13, 1)))
    Layout((9, (4, 8)), (59, (13, 1)))
    >>> make_layout(Layout(4, 1), Layout(8, 4))
    Layout((4, 8), (1, 4))
    """
    if isinstance(shape, Layout):
        modes = [as_layout(mode) for mode in ([shape] if stride is None else [shape, stride, *more])]
        return Layout(tuple([mode.shape for mode in modes]), tuple([mode.stride for mode in modes]))
    if more:
        raise LayoutError(f"make_layout takes a shape and a stride, or layouts; not {2 + len(more)} int tuples",
                          hint="put the modes into one tuple: make_layout((4,8),(1,4))")
    return Layout(shape, stride)


def joined(modes: Sequence[Layout]) -> Layout:
    """The layout whose modes are the given layouts; a single one stands for itself. No checks: for the algebra.

    >>> joined([Layout(4, 1), Layout((2, 2), (4, 8))])
    Layout((4, (2, 2)), (1, (4, 8)))
    """
    if len(modes) == 1:
        return modes[0]
    return trusted(tuple([mode.shape for mode in modes]), tuple([mode.stride for mode in modes]))


def remade(layout: Layout, modes: Sequence[Layout]) -> Layout:
    """The layout whose modes are `modes`, made of those of `layout`: a tuple of one mode stays a tuple.

    >>> remade(Layout((8,), (1,)), [Layout((2, 4), (1, 2))])
    Layout(((2, 4),), ((1, 2),))
    """
    if type(layout.shape) is tuple and len(modes) == 1:
        return trusted((modes[0].shape,), (modes[0].stride,))
    return joined(modes)


def as_layout(value: Any, what: str = "argument") -> Layout:
    """`value` if it is a plain Layout, else a LayoutError that says what was given.

    >>> as_layout(Layout(4, 1))
    Layout(4, 1)
    """
    if isinstance(value, Layout):
        return value
    in_kernel = hasattr(value, "shape") and hasattr(value, "stride")
    raise LayoutError(f"{what} {shown(value)} is not a layout",
                      hint="in a kernel, call the function of the same name of flylab.expr (fx)" if in_kernel else
                      "make one: make_layout(shape, stride)")


def make_ordered_layout(shape: Any, order: Any = 0) -> Layout:
    """A compact layout in which the mode of the smallest `order` runs fastest; equal ones run from left to right.

    `order` nests like the shape, or less deep: one number for a nested mode holds for all of it. Raises LayoutError
    where the order does not fit the shape.

    >>> make_ordered_layout((4, 8), (1, 0)), make_ordered_layout(((2, 2), 4), ((1, 0), 2))
    (Layout((4, 8), (8, 1)), Layout(((2, 2), 4), ((2, 1), 4)))
    """
    shape = as_shape(shape)
    ranks = list(leaves(_spread(as_int_tuple(order, "order"), shape)))
    extents = list(leaves(shape))
    strides = [0] * len(extents)
    step = 1
    for i in sorted(range(len(extents)), key=ranks.__getitem__):
        strides[i] = step
        step *= extents[i]
    return Layout(shape, nested_like(shape, strides))


def _spread(order: IntTuple, shape: IntTuple) -> IntTuple:
    if isinstance(shape, tuple):
        if isinstance(order, tuple) and len(order) != len(shape):
            raise LayoutError(f"order {text(order)} does not fit shape {text(shape)}",
                              hint="give one number for each mode")
        each = order if isinstance(order, tuple) else (order,) * len(shape)
        return tuple(map(_spread, each, shape))
    if isinstance(order, tuple):
        raise LayoutError(f"order {text(order)} nests deeper than the extent {shape}",
                          hint="give one number for each mode")
    return order


def nested_like(shape: IntTuple, values: Sequence[Any]) -> IntTuple:
    """The flat `values`, nested like `shape`.

    >>> nested_like((4, (2, 8)), [1, 2, 3])
    (1, (2, 3))
    """
    source = iter(values)
    return map_leaves(lambda _: next(source), shape)


def make_identity_layout(shape: Any) -> Layout:
    """The layout that maps each coordinate of `shape` to itself, by basis strides; of one int, extent:1.

    Raises LayoutError for an extent that is negative or no integer.

    >>> str(make_identity_layout((4, (2, 3)))), str(make_identity_layout(8))
    ('(4,(2,3)):(1E0,(1E1E0,1E1E1))', '8:1')
    """
    def units(mode: IntTuple, path: tuple[int, ...]) -> IntTuple:
        if isinstance(mode, tuple):
            return tuple([units(inner, (*path, i)) for i, inner in enumerate(mode)])
        return Basis(1, path)

    shape = as_shape(shape)
    return trusted(shape, units(shape, ())) if isinstance(shape, tuple) else Layout(shape)


def make_tile(*modes: Any) -> Any:
    """A tile for the divides: for each mode an extent, a Layout, None (do not divide), or a tuple of these.

    Raises LayoutError for an extent below 1, and for an empty tile.

    >>> make_tile(None, 8), make_tile(Layout(4, 2), (2, None))
    ((None, 8), (Layout(4, 2), (2, None)))
    """
    return as_tile(modes)


def as_tile(tile: Any, levels: int = DEEPEST) -> Any:
    """`tile` checked and made of plain tuples: ints of 1 or more, Layouts, None, or tuples of these.

    >>> as_tile([4, None])
    (4, None)
    """
    if tile is None or isinstance(tile, Layout):
        return tile
    if isinstance(tile, (tuple, list)):
        if not tile:
            raise LayoutError("a tile needs at least one mode", hint="give None for a mode that is not divided")
        below = level_below(levels, "tile")
        return tuple([as_tile(each, below) for each in tile])
    if isinstance(tile, Swizzle):
        raise LayoutError(f"{tile} is not a tile", hint="a swizzle is the outer part: composition(swizzle, layout)")
    extent = as_shape(tile, "tile extent") if isinstance(tile, RuntimeInt) else as_int(tile, "tile extent")
    if extent < 1:
        raise LayoutError(f"tile extent {extent} is not positive", hint="give an extent of 1 or more, or None")
    return extent


def shape_of(value: Any) -> IntTuple:
    """The shape of a Layout or ComposedLayout; a shape itself.

    >>> shape_of(Layout((4, 8), (8, 1))), shape_of((4, 8))
    ((4, 8), (4, 8))
    """
    return value.shape if isinstance(value, (Layout, ComposedLayout)) else as_int_tuple(value, "shape")


def size(value: Any) -> int:
    """How many coordinates a layout or shape has: the product of its extents, which are not negative.

    Raises LayoutError for an extent that is negative or no integer.

    >>> size(Layout((8, 16), (1, 8))), size((3, (2, 5)))
    (128, 30)
    """
    return product(value.shape if isinstance(value, (Layout, ComposedLayout)) else as_shape(value))


def coshape(layout: Any) -> IntTuple:
    """How far the indices reach, plus one; for basis strides, one extent for each mode of the coordinates.

    Of a coordinate tensor, or another offset without an outer part, one more than the largest number. Raises
    LayoutError for other composed layouts, and where the offset is a runtime value.

    >>> coshape(Layout((4, 8), (1, 4))), coshape(make_identity_layout((4, 8)))
    (32, (4, 8))
    >>> coshape(ComposedLayout(None, (64, 8), make_identity_layout((4, 8))))
    (68, 16)
    """
    if isinstance(layout, ComposedLayout) and layout.outer is None:
        return _reached(layout)
    layout = as_layout(layout)
    if size(layout) == 0:
        return 0
    corner = trusted(layout.shape, map_leaves(_magnitude, layout.stride))(map_leaves(last, layout.shape))
    count = size(layout)
    return map_leaves(lambda number: _extent_of(number, count), corner)


def _extent_of(number: Any, count: Any) -> Any:
    extent = number + 1
    return extent.unless(count) if isinstance(extent, RuntimeInt) else extent


def _reached(tensor: ComposedLayout) -> IntTuple:
    """One more than the largest number that is reached, or 0: of the corner to which the positive strides lead."""
    if not tensor.is_static:
        raise LayoutError(f"the offset of {tensor} is known only while its kernel runs",
                          hint="ask for the coshape of the inner layout")
    if not size(tensor):
        return 0
    rising = map_leaves(lambda s: s if (s.scale if isinstance(s, Basis) else s) > 0 else 0, tensor.inner.stride)
    corner = tensor.with_inner(trusted(tensor.shape, rising))(map_leaves(lambda s: s - 1, tensor.shape))
    return map_leaves(lambda last: max(last + 1, 0), corner)


def _magnitude(stride: Any) -> Any:
    return Basis(abs(stride.scale), stride.path) if isinstance(stride, Basis) else abs(stride)


def cosize(layout: Any) -> int:
    """How many elements lie from the smallest index to the largest, both counted; 0 for a layout without elements.

    Of a composed layout: one more than its largest index, or the product of that over the numbers of a coordinate;
    LayoutError where it has too many elements to look at each.

    >>> cosize(Layout((8, 16), (1, 16))), cosize(Layout(4, -2))
    (248, 7)
    """
    if isinstance(layout, ComposedLayout) and layout.outer is not None:
        if size(layout) == 0:
            return 0
        listed = layout.offsets()
        return product(tuple([int(column.max(initial=-1)) + 1 for column in listed.reshape(len(listed), -1).T]))
    return product(coshape(layout))


def rank(value: Any) -> int:
    """The number of top-level modes.

    Raises LayoutError for what is neither a layout nor an int tuple.

    >>> rank(Layout((4, (2, 3)), (1, (4, 8)))), rank(8)
    (2, 1)
    """
    return len(modes_of(shape_of(value)))


def depth(value: Any) -> int:
    """How deep the modes nest: 0 for an int.

    Raises LayoutError for what is neither a layout nor an int tuple.

    >>> depth((8, (4, 2))), depth(8)
    (2, 0)
    """
    return levels_of(shape_of(value))


def get_shape(layout: Any) -> IntTuple:
    """The shape of a layout.

    Raises LayoutError for what is neither a layout nor an int tuple.

    >>> get_shape(Layout((8, 16), (1, 8)))
    (8, 16)
    """
    return shape_of(layout)


def get_stride(layout: Any) -> IntTuple:
    """The stride of a layout, of a composed one that of its inner layout.

    Raises LayoutError for what is no layout.

    >>> get_stride(Layout((8, 16), (1, 8)))
    (1, 8)
    """
    return as_layout(layout.inner if isinstance(layout, ComposedLayout) else layout).stride


def get(value: Any, *path: Any) -> Any:
    """The mode at an index, or at a path of indices (one a level): of an int tuple a value, of a layout a layout.

    Raises LayoutError where there is no such mode.

    >>> get((4, (8, 2)), 1, 0), get(Layout((4, (8, 2)), (1, (4, 32))), 1)
    (8, Layout((8, 2), (4, 32)))
    """
    indices = tuple(as_int(i, "mode") for part in path for i in (part if isinstance(part, (tuple, list)) else (part,)))
    if isinstance(value, ComposedLayout):
        return value.with_inner(get(value.inner, indices))
    if isinstance(value, Layout):
        return trusted(at_path(value.shape, indices), at_path(value.stride, indices))
    return at_path(value if isinstance(value, tuple) else as_int_tuple(value), indices)


def is_layout(value: Any) -> bool:
    """Whether `value` is a map of coordinates: a Layout, ComposedLayout or Swizzle.

    >>> is_layout(Layout(4, 1)), is_layout((4, 8))
    (True, False)
    """
    return isinstance(value, (Layout, ComposedLayout, Swizzle))
