"""Coordinates to indices and back, and the parts of a layout that a coordinate keeps or fixes.

A coordinate may hold runtime values (see runtime.py). They are used only where a mode has more than one element and a
stride other than 0, and are not multiplied by 1. A numpy array of integers gives the array of all indices, exact, or
one number where all of them are alike.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.arrays import comparable
from flylab.layout.basis import add_coordinates
from flylab.layout.construct import as_layout, joined
from flylab.layout.int_tuple import (
    IntTuple,
    as_int_tuple,
    as_shape,
    at_path,
    has_runtime,
    leaves,
    modes_of,
    product,
    shown,
    text,
)
from flylab.layout.layout import Layout, coordinate_leaf, has_basis, index_of, trusted
from flylab.layout.runtime import index_leaf
from flylab.layout.runtime_digits import runtime_digits
from flylab.layout.runtime_int import RuntimeInt
from flylab.layout.swizzle import ComposedLayout, Swizzle


def crd2idx(coord: Any, layout: Any) -> Any:
    """The index at a coordinate: an int, a tuple nested like the layout or less deep, or runtime values in either.

    A layout of basis strides gives a coordinate; a shape stands for its compact layout. An integer for a nested mode
    is unfolded colexicographically. Raises LayoutError where the coordinate does not nest like the layout.

    >>> crd2idx((3, 5), Layout((8, 16), (1, 8))), crd2idx(5, Layout((8, 16), (16, 1)))
    (43, 80)
    """
    if isinstance(layout, Layout):
        return index_of(coord, layout)
    if isinstance(layout, (ComposedLayout, Swizzle)):
        return layout(coord)
    return index_of(coord, Layout(layout))


def idx2crd(index: Any, layout: Any) -> Any:
    """The coordinate of an index, nested like the layout. For a layout it inverts by stride, so that
    crd2idx(idx2crd(i, L), L) == i for each i that L reaches; for a bare shape it is colexicographic. Both wrap.

    Modes of one element or of stride 0 give 0. Raises LayoutError where strides are negative or two coordinates share
    an index or interleave, so that division by strides cannot tell them apart.

    >>> idx2crd(43, Layout((8, 16), (1, 8))), idx2crd(70, Layout((4, 64), (64, 1))), idx2crd(13, (4, 8))
    ((3, 5), (1, 6), (1, 3))
    """
    if isinstance(layout, ComposedLayout):
        first = "undo the outer map first, then" if layout.outer is not None else "subtract the offset, and"
        hint = ("a coordinate tensor has nothing to invert by division" if isinstance(layout.offset, tuple) else
                f"{first} use idx2crd with the inner layout")
        raise LayoutError(f"idx2crd of the composed layout {layout} is not a division by strides", hint=hint)
    shape = _shape(layout)
    if 0 in leaves(shape):
        raise LayoutError(f"idx2crd: {text(shape)} has no elements, so no coordinates",
                          hint="give extents of 1 or more")
    stride = layout.stride if isinstance(layout, Layout) else None
    layout = Layout(shape, stride)
    index = coordinate_leaf(index, layout)
    if isinstance(index, RuntimeInt):
        index = index.counted()
    if has_runtime((shape, stride)):
        return runtime_digits(index, shape, stride)
    pairs = _by_stride(layout)
    digits = _known_digits(index, pairs) if type(index) is int else _digits_of_runtime(index, pairs, layout)
    return _nested_digits(layout.shape, layout.stride, digits)


def _by_stride(layout: Layout) -> list[tuple[int, int]]:
    """The (stride, extent) pairs that count, smallest first. Refuses what division by strides does not invert."""
    if has_basis(layout.stride):
        raise LayoutError(f"idx2crd of {layout}: it gives coordinates, not indices",
                          hint="a coordinate tensor has nothing to invert by division")
    modes = zip(leaves(layout.stride), leaves(layout.shape), strict=True)
    pairs = sorted([mode for mode in modes if mode[0] != 0 and mode[1] != 1])
    reach = 0
    for i, (stride, extent) in enumerate(pairs):
        if stride < 0:
            raise LayoutError(f"idx2crd of {layout}: stride {stride} is negative",
                              hint="reverse that mode first, or invert its positive counterpart")
        if stride <= reach:
            before = pairs[i - 1]
            raise LayoutError(
                f"idx2crd of {layout}: the mode {before[1]}:{before[0]} and those below it reach index {reach}, past "
                f"the stride of {extent}:{stride}, so the index {stride} cannot be told apart by division",
                hint="use right_inverse or left_inverse, or give the modes strides that do not interleave")
        reach += (extent - 1) * stride
    return pairs


def _known_digits(index: int, pairs: list[tuple[int, int]]) -> dict[int, int]:
    """The digit of each stride, the largest first: each step leaves what the smaller strides count."""
    digits = {}
    for stride, extent in reversed(pairs):
        digit, index = divmod(index, stride)
        digits[stride] = digit % extent
    return digits


def _digits_of_runtime(index: Any, pairs: list[tuple[int, int]], layout: Layout) -> dict[int, Any]:
    """The same digits, each from the index itself by the fewest operations, in the order of the layout's modes."""
    digits: dict[int, Any] = {}
    place = {stride: i for i, (stride, _) in enumerate(pairs)}
    for stride in leaves(layout.stride):
        if stride in digits or stride not in place:
            continue
        i = place[stride]
        extent = pairs[i][1]
        # x % a % b is x % b where b divides a; the digit itself is read from x % (extent * stride).
        chain = [extent * stride]
        for larger, _ in pairs[i + 1:]:
            if larger % chain[-1]:
                chain.append(larger)
        rest = index
        for larger in chain[:0:-1]:
            rest = rest % larger
        digits[stride] = (rest if stride == 1 else rest // stride) % extent
    return digits


def _nested_digits(shape: IntTuple, stride: IntTuple, digits: dict[int, Any]) -> Any:
    if isinstance(shape, tuple):
        return tuple([_nested_digits(*mode, digits) for mode in zip(shape, stride, strict=True)])
    return 0 if shape == 1 or stride == 0 else digits[stride]


_Path = tuple[int, ...]


def _split(coord: Any, shape: IntTuple, whole: str) -> tuple[list[_Path], list[tuple[Any, _Path]]]:
    """The paths of the modes that `coord` keeps (with None), and the numbers it gives, each with its path."""
    kept: list[_Path] = []
    fixed: list[tuple[Any, _Path]] = []

    def walk(each: Any, mode: IntTuple, path: _Path) -> None:
        if each is None:
            kept.append(path)
        elif isinstance(each, (tuple, list)):
            if not isinstance(mode, tuple) or len(mode) != len(each):
                raise LayoutError(f"coordinate {text(each)} does not fit the mode {text(mode)} of {whole}",
                                  hint="give one entry for each mode: a number fixes it, None keeps it")
            for i, (inner, sub) in enumerate(zip(each, mode, strict=True)):
                walk(inner, sub, (*path, i))
        elif index_leaf(each) is None:
            raise LayoutError(f"{shown(each)} is not a coordinate of {whole}",
                              hint="give one entry for each mode: a number fixes it, None keeps it")
        else:
            fixed.append((each, path))

    walk(coord, shape, ())
    return kept, fixed


def _mode(layout: Layout, path: _Path) -> Layout:
    return trusted(at_path(layout.shape, path), at_path(layout.stride, path))


def _side_by_side(layout: Layout, paths: list[_Path]) -> Layout:
    """The modes at `paths`; one mode stands alone, none is the layout of one element."""
    return joined([_mode(layout, path) for path in paths]) if paths else trusted(1, 0)


def slice_and_offset(layout: Any, coord: Any) -> tuple[Layout, Any]:
    """What `coord` keeps of the layout (its None entries), and the index at which that part begins.

    Entries may be runtime values; the offset is then one too. Modes kept inside nested modes move up to the top, and
    a single kept mode stands alone. With basis strides the offset is a coordinate. A coordinate tensor, or another
    offset without an outer part, gives what its own offset becomes. Raises LayoutError where `coord` does not nest
    like the layout.

    >>> slice_and_offset(Layout((4, 8), (1, 4)), (None, 3))
    (Layout(4, 1), 12)
    """
    if isinstance(layout, ComposedLayout) and layout.outer is None:
        inner, moved = slice_and_offset(layout.inner, coord)
        return inner, add_coordinates(layout.offset, moved)
    kept, fixed = _split(coord, as_layout(layout, "the sliced").shape, str(layout))
    offset: Any = 0
    for each, path in fixed:
        offset = add_coordinates(offset, index_of(each, _mode(layout, path)))
    return _side_by_side(layout, kept), offset


def slice(value: Any, coord: Any) -> Any:
    """The modes that `coord` keeps, those where it holds None; of a bare layout the offset is dropped.

    A composed layout keeps it in its own offset. Where nothing is kept, a layout of one element is. Raises LayoutError
    where `coord` does not nest like the value, and for a tuple of which it keeps nothing.

    >>> slice(Layout((4, (8, 2)), (1, (4, 32))), (None, (None, 1)))
    Layout((4, 8), (1, 4))
    >>> slice((4, 8, 16), (None, 3, None))
    (4, 16)
    """
    if isinstance(value, Layout):
        return _side_by_side(value, _split(coord, value.shape, str(value))[0])
    if isinstance(value, ComposedLayout):
        inner, offset = slice_and_offset(value.inner, coord)
        # The outer map is not linear, and a coordinate tensor says where: what the fixed modes add is not dropped.
        return ComposedLayout(value.outer, add_coordinates(value.offset, offset), inner)
    value = as_int_tuple(value)
    return _picked(value, _split(coord, value, text(value))[0], "keeps")


def dice(value: Any, coord: Any) -> Any:
    """The modes that `coord` fixes, the counterpart of `slice`.

    Raises LayoutError where `coord` does not nest like the value, and for a tuple of which it fixes nothing.

    >>> dice(Layout((4, 8), (1, 4)), (None, 3)), dice((4, 8, 16), (None, 3, None))
    (Layout(8, 4), (8,))
    """
    if isinstance(value, Layout):
        return _side_by_side(value, [path for _, path in _split(coord, value.shape, str(value))[1]])
    if isinstance(value, ComposedLayout):
        return value.with_inner(dice(value.inner, coord))
    value = as_int_tuple(value)
    return _picked(value, [path for _, path in _split(coord, value, text(value))[1]], "fixes")


def _picked(value: IntTuple, paths: list[_Path], verb: str) -> IntTuple:
    if not paths:
        raise LayoutError(f"the coordinate {verb} no mode of {text(value)}", hint="use crd2idx for a single element")
    return tuple([at_path(value, path) for path in paths]) if paths != [()] else value


def coordinates_of(shape: Any) -> list[Any]:
    """All coordinates of a shape in colexicographic order, nested like it. LayoutError for more than 4 million.

    >>> coordinates_of((2, 2))
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    shape = as_shape(shape)
    if not comparable(product(shape), 0):
        raise LayoutError(f"the shape {text(shape)} has {product(shape)} coordinates, too many to list",
                          hint="ask for single ones: idx2crd(i, shape)")
    return _all_coordinates(shape)


def _all_coordinates(shape: IntTuple) -> list[Any]:
    if not isinstance(shape, tuple):
        return list(range(shape))
    result: list[Any] = [()]
    for mode in shape:
        inner = _all_coordinates(mode)
        result = [(*outer, each) for each in inner for outer in result]
    return result


def get_flat_coord(index: Any, layout: Any) -> tuple[Any, ...]:
    """The coordinate of an index with one number for each top-level mode, by `idx2crd`.

    Raises LayoutError as `idx2crd` does.

    >>> get_flat_coord(3, Layout(((2, 2), 4), ((1, 2), 4)))
    (3, 0)
    """
    coords = modes_of(idx2crd(index, layout))
    modes = zip(coords, modes_of(_shape(layout)), strict=True)
    return tuple([index_of(coord, Layout(mode)) for coord, mode in modes])


def get_1d_coord(index: Any, layout: Any) -> Any:
    """The integer coordinate of an index, by `idx2crd`.

    Raises LayoutError as `idx2crd` does.

    >>> get_1d_coord(5, Layout((4, 8), (8, 1)))
    20
    """
    coord = idx2crd(index, layout)
    return index_of(coord, Layout(_shape(layout)))


def _shape(layout: Any) -> IntTuple:
    return layout.shape if isinstance(layout, Layout) else as_shape(layout)
