"""The Layout: an immutable pair of a shape and a stride, which maps coordinates to indices.

Coordinates are colexicographic: the first mode runs fastest. An integer coordinate of a nested layout is unfolded
over its modes, and the last mode of more than one element is not bounded: that is how a layout extends past its end.
Unit modes have stride 0, the canonical form, or in a layout of coordinates the unit of the coordinate's mode that they
are; `==` compares the structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flylab.errors import LayoutError
from flylab.layout.basis import Basis, as_stride, coordinate, unit_stride
from flylab.layout.int_tuple import (
    DEEPEST,
    IntTuple,
    as_int,
    as_shape,
    compact,
    congruent,
    leaves,
    modes_of,
    product,
    shown,
    text,
)
from flylab.layout.runtime import add, index_leaf, is_array, scaled
from flylab.layout.runtime_int import RuntimeInt

if TYPE_CHECKING:
    import numpy

Mode = tuple[int, Any]


class Layout:
    """A map from coordinates to indices: index = sum of coordinate * stride. Immutable and hashable.

    `shape` and `stride` are nested tuples of ints (or an int each) that nest alike; strides may be basis strides,
    and then the layout gives coordinates. Without a stride the layout is compact and the first mode runs fastest.
    Raises LayoutError for extents that are negative or no integers, and for mismatched nesting.

    >>> layout = Layout((8, 16), (1, 8))
    >>> str(layout), layout((3, 5)), layout[1], len(layout)
    ('(8,16):(1,8)', 43, Layout(16, 8), 2)
    """

    __slots__ = ("shape", "stride", "overcover", "_coalesced")
    shape: IntTuple
    stride: IntTuple
    _coalesced: tuple[Mode, ...]
    overcover: IntTuple
    """Of the result of a divide: how many elements too many each divided mode covers; 0 elsewhere. No part of `==`."""

    def __new__(cls, shape: Any, stride: Any = None) -> Layout:
        plain = _plain_stride(shape, stride)
        if plain is not None:
            return trusted(shape, plain)
        shape = as_shape(shape)
        if stride is None:
            stride = compact(shape)
        else:
            stride = as_stride(stride)
            if not congruent(shape, stride):
                raise LayoutError(f"shape {text(shape)} and stride {text(stride)} do not nest alike",
                                  hint="give one stride for each extent, nested like the shape")
        return trusted(shape, _canonical(shape, stride))

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError("a Layout cannot be changed; make a new one")

    __delattr__ = __setattr__

    def __reduce__(self) -> Any:
        return trusted, (self.shape, self.stride, self.overcover)

    @staticmethod
    def parse(source: str) -> Layout:
        """The layout written as `str` writes it. Raises LayoutError at the first character that does not fit.

        >>> Layout.parse("(8,16):(1,8)")
        Layout((8, 16), (1, 8))
        """
        from flylab.layout.notation import parse

        layout = parse(source)
        if not isinstance(layout, Layout):
            raise LayoutError(f"{source!r} is not a plain layout", hint="write it as (8,16):(1,8)")
        return layout

    def __call__(self, *coord: Any) -> Any:
        """The index at a coordinate, given as one int or tuple, or as one argument for each mode."""
        given = coord[0] if len(coord) == 1 else coord
        return self._at(given) if type(given) is int else index_of(given, self)

    def _at(self, index: int) -> Any:
        """The index at an integer coordinate, on the shortest way."""
        modes = self.modes()
        rest, total = index, 0
        for extent, stride in modes[:-1]:
            if type(extent) is not int or not extent or type(stride) is Basis:
                return index_of(index, self)
            rest, digit = divmod(rest, extent)
            total += digit * stride
        # A last stride of 0 may stand beside unit modes that give coordinates.
        if modes and type(modes[-1][1]) is int and modes[-1][1]:
            return total + rest * modes[-1][1]
        return index_of(index, self)

    def modes(self) -> tuple[Mode, ...]:
        """The fewest (extent, stride) pairs that give the same map: unit modes dropped, neighbours merged.

        >>> Layout((2, (1, 6)), (1, (6, 2))).modes()
        ((12, 1),)
        """
        try:
            return self._coalesced
        except AttributeError:
            _set_coalesced(self, merged(self.shape, self.stride))
            return self._coalesced

    def offsets(self) -> numpy.ndarray:
        """All indices in colexicographic order of the coordinates; one row each if they are coordinates.

        The array is int64, or holds Python ints (dtype object) where 64 bits do not. Raises LayoutError for more than
        16 million numbers.

        >>> Layout((2, 3), (3, 1)).offsets().tolist()
        [0, 3, 1, 4, 2, 5]
        """
        from flylab.layout import arrays

        if has_basis(self.stride):
            return arrays.stacked(arrays.coordinates(self), product(self.shape))
        return arrays.listed(self)

    def __getitem__(self, index: Any) -> Layout:
        """The mode of this number or, of a coordinate with None in it, the slice, as of a tensor.

        >>> Layout((4, 8), (8, 1))[1], Layout((4, 8), (8, 1))[None, 1]
        (Layout(8, 1), Layout(4, 8))
        """
        if type(index) is not int:
            from flylab.layout.arithmetic import has_none
            from flylab.layout.coordinates import slice

            if has_none(index):
                return slice(self, index)  # type: ignore[no-any-return]
        modes = len(self)
        index = as_int(index, "mode")
        if not -modes <= index < modes:
            raise LayoutError(f"layout {self} has {modes} modes, so there is no mode {index}",
                              hint=f"use an index from 0 to {modes - 1}")
        return self if type(self.shape) is not tuple else trusted(self.shape[index], self.stride[index])

    def __len__(self) -> int:
        return len(self.shape) if type(self.shape) is tuple else 1

    def __iter__(self) -> Iterator[Layout]:
        return map(trusted, modes_of(self.shape), modes_of(self.stride))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.shape == other.shape and self.stride == other.stride

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from flylab.viz.layout_view import bundle

        return bundle(self, include, exclude)


# The slots are written through their descriptors, which `__setattr__` does not reach.
_set_shape = vars(Layout)["shape"].__set__
_set_stride = vars(Layout)["stride"].__set__
_set_overcover = vars(Layout)["overcover"].__set__
_set_coalesced = vars(Layout)["_coalesced"].__set__
_new = object.__new__


def trusted(shape: IntTuple, stride: IntTuple, overcover: IntTuple = 0) -> Layout:
    """A Layout of parts known to be canonical: no checks. For the algebra, not for users.

    >>> trusted((4, 8), (1, 4))
    Layout((4, 8), (1, 4))
    """
    layout = _new(Layout)
    _set_shape(layout, shape)
    _set_stride(layout, stride)
    _set_overcover(layout, overcover)
    return layout


def _plain_stride(shape: Any, stride: Any, levels: int = DEEPEST) -> IntTuple | None:
    """The canonical stride where shape and stride are right as they are, as most are; None where they need a look."""
    if type(shape) is int:
        return None if shape < 0 or type(stride) is not int else 0 if shape == 1 else stride
    if type(shape) is not tuple or type(stride) is not tuple or len(shape) != len(stride) or not shape or not levels:
        return None
    strides = []
    for extent, step in zip(shape, stride, strict=True):
        plain = _plain_stride(extent, step, levels - 1)
        if plain is None:
            return None
        strides.append(plain)
    return tuple(strides)


def _canonical(shape: IntTuple, stride: IntTuple) -> IntTuple:
    if type(shape) is tuple:
        return tuple(map(_canonical, shape, stride))
    return unit_stride(stride) if shape == 1 else stride


def has_basis(stride: IntTuple) -> bool:
    """Whether a stride holds basis strides, so that its layout gives coordinates.

    >>> has_basis((1, (4, 8)))
    False
    """
    return any(map(has_basis, stride)) if type(stride) is tuple else type(stride) is Basis


def paths_of(stride: IntTuple) -> list[tuple[int, ...]]:
    """Where the basis strides point, each mode of the coordinates once.

    >>> paths_of((Basis(1, (1,)), (Basis(4, (1,)), 0)))
    [(1,)]
    """
    return list(dict.fromkeys([step.path for step in leaves(stride) if type(step) is Basis]))


def with_units(modes: list[Mode], stride: IntTuple) -> list[Mode]:
    """`modes`, and a unit mode for each mode of the coordinates of `stride` that they do not name.

    >>> with_units([(8, Basis(1, (0,)))], (Basis(1, (0,)), Basis(1, (1,))))
    [(8, E(0)), (1, E(1))]
    """
    if not has_basis(stride):
        return modes
    named = set(paths_of(tuple([step for _, step in modes])))
    return modes + [(1, Basis(1, path)) for path in paths_of(stride) if path not in named]


def merged(shape: IntTuple, stride: IntTuple) -> tuple[Mode, ...]:
    """The (extent, stride) pairs of the leaves, without unit modes, neighbours merged where they continue each other.

    >>> merged((3, 1, 9), (1, 9, 3))
    ((27, 1),)
    """
    if type(shape) is not tuple:
        return () if shape == 1 else ((shape, stride),)
    result: list[Mode] = []
    _merge_into(result, shape, stride)
    return tuple(result)


def _merge_into(result: list[Mode], shape: IntTuple, stride: IntTuple) -> None:
    for extent, step in zip(shape, stride, strict=True):
        if type(extent) is tuple:
            _merge_into(result, extent, step)
        elif extent != 1:
            if result and step == result[-1][0] * result[-1][1]:
                before = result[-1]
                result[-1] = (before[0] * extent, before[1])
            else:
                result.append((extent, step))


def index_of(coord: Any, layout: Layout) -> Any:
    """The index of `layout` at `coord`; see `crd2idx` in coordinates.py for what a coordinate may hold.

    >>> index_of((1, 13), Layout((4, (8, 2)), (1, (4, 32))))
    53
    """
    terms: list[tuple[Any, Any]] = []
    _collect(coord, layout.shape, layout.stride, terms, layout)
    if any([type(factor) is not int for factor, _ in terms]):
        _check_arrays(terms, layout)
    if has_basis(layout.stride):
        return coordinate(terms + [(0, stride) for stride in leaves(layout.stride)])
    total: Any = 0
    for factor, stride in terms:
        total = add(total, scaled(factor, stride))
    return total


def _check_arrays(terms: list[tuple[Any, Any]], layout: Layout) -> None:
    """Refuses arrays of coordinates that do not go together."""
    shapes = {factor.shape for factor, _ in terms if is_array(factor)}
    if len(shapes) > 1:
        from numpy import broadcast_shapes

        try:
            broadcast_shapes(*shapes)
        except ValueError:
            raise LayoutError(f"the arrays of a coordinate of {layout} have the shapes "
                              f"{' and '.join(map(text, sorted(shapes)))}, which do not go together",
                              hint="give arrays of one shape") from None


def _collect(coord: Any, shape: IntTuple, stride: IntTuple, terms: list[tuple[Any, Any]], layout: Layout) -> None:
    """Appends (factor, stride) for each mode that `coord` counts."""
    if isinstance(coord, (tuple, list)):
        if not isinstance(shape, tuple) or len(shape) != len(coord):
            raise LayoutError(f"coordinate {text(coord)} does not fit the mode {text(shape)} of layout {layout}",
                              hint="give one number for a mode, or a tuple that nests like it")
        for each, extent, step in zip(coord, shape, stride, strict=True):
            _collect(each, extent, step, terms, layout)
        return
    coord = coordinate_leaf(coord, layout)
    if not isinstance(shape, tuple):
        terms.append((coord, stride))
        return
    modes = merged(shape, stride)
    if isinstance(coord, RuntimeInt) and len(modes) > 1:
        coord = coord.counted()
    for extent, step in modes[:-1]:
        if extent == 0:
            raise LayoutError(f"layout {layout} has no elements, so an integer is no coordinate of it",
                              hint="give a layout without an extent of 0")
        terms.append((coord % extent, step))
        coord = coord // extent
    if modes:
        terms.append((coord, modes[-1][1]))


def coordinate_leaf(coord: Any, layout: Any) -> Any:
    """One number of a coordinate: a Python int, or a runtime value as it is; None, floats and text are refused.

    >>> coordinate_leaf(3, Layout(8, 1))
    3
    """
    if type(coord) is int:
        return coord
    if coord is None:
        raise LayoutError(f"a coordinate with None stands for a whole mode of {layout}, not for one index",
                          hint="use slice(layout, coord) to keep that mode")
    leaf = index_leaf(coord)
    if leaf is None:
        raise LayoutError(f"{shown(coord)} is not a coordinate of layout {layout}", hint="coordinates are integers")
    if is_array(leaf):
        from flylab.layout.arrays import exact

        return exact(leaf, layout)
    return leaf
