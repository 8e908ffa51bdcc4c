"""The Layout: an immutable pair of a shape and a stride, which maps coordinates to indices.

Coordinates are colexicographic: the first mode runs fastest. An integer coordinate of a nested layout is unfolded
over its modes, and the last mode of more than one element is not bounded: that is how a layout extends past its end.
Unit modes have stride 0, the canonical form; `==` compares the structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any

from flylab.errors import LayoutError
from flylab.layout.basis import Basis, add, as_stride, coordinate, scaled
from flylab.layout.int_tuple import IntTuple, as_shape, compact, congruent, leaves, modes_of, product, text

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

    def __init__(self, shape: Any, stride: Any = None):
        shape = as_shape(shape)
        if stride is None:
            stride = compact(shape)
        else:
            stride = as_stride(stride)
            if not congruent(shape, stride):
                raise LayoutError(f"shape {text(shape)} and stride {text(stride)} do not nest alike",
                                  hint="give one stride for each extent, nested like the shape")
        _set_shape(self, shape)
        _set_stride(self, _canonical(shape, stride))
        _set_overcover(self, 0)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Layout cannot be changed; make a new one")

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
            if not extent or type(stride) is Basis:
                return index_of(index, self)
            rest, digit = divmod(rest, extent)
            total += digit * stride
        if modes and type(modes[-1][1]) is int:
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
        """All indices in colexicographic order of the coordinates, as int64; one row each if they are coordinates.

        >>> Layout((2, 3), (3, 1)).offsets().tolist()
        [0, 3, 1, 4, 2, 5]
        """
        import numpy as np

        if has_basis(self.stride):
            return self._coordinates()
        total = np.zeros(1, dtype=np.int64)
        for extent, stride in self.modes():
            steps = np.arange(extent, dtype=np.int64) * stride
            total = (steps[:, None] + total).reshape(-1)
        return total

    def _coordinates(self) -> numpy.ndarray:
        import numpy as np

        units = {stride.path: Basis(1, stride.path) for stride in leaves(self.stride) if type(stride) is Basis}
        origin = [(0, unit) for unit in units.values()]
        columns = np.zeros((product(self.shape), len(list(leaves(coordinate(origin))))), dtype=np.int64)
        for path, unit in units.items():
            # The column of a mode is where a coordinate that is 1 there and 0 elsewhere has its 1.
            column = list(leaves(coordinate([*origin, (1, unit)]))).index(1)
            columns[:, column] = trusted(self.shape, _scales(self.stride, path)).offsets()
        return columns

    def __getitem__(self, index: int) -> Layout:
        modes = len(self)
        if not -modes <= index < modes:
            raise LayoutError(f"layout {self} has {modes} modes, so there is no mode {index}",
                              hint=f"use an index from 0 to {modes - 1}")
        return self if type(self.shape) is int else trusted(self.shape[index], self.stride[index])

    def __len__(self) -> int:
        return 1 if type(self.shape) is int else len(self.shape)

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
_new = Layout.__new__


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


def _canonical(shape: IntTuple, stride: IntTuple) -> IntTuple:
    if type(shape) is int:
        # A basis stride stays: it says how many modes the coordinates have.
        return 0 if shape == 1 and type(stride) is int else stride
    return tuple(map(_canonical, shape, stride))


def _scales(stride: IntTuple, path: tuple[int, ...]) -> IntTuple:
    """The scales of the basis strides at `path`, and 0 for all others."""
    if isinstance(stride, tuple):
        return tuple([_scales(mode, path) for mode in stride])
    return stride.scale if type(stride) is Basis and stride.path == path else 0


def has_basis(stride: IntTuple) -> bool:
    """Whether a stride holds basis strides, so that its layout gives coordinates.

    >>> has_basis((1, (4, 8)))
    False
    """
    return any(map(has_basis, stride)) if type(stride) is tuple else type(stride) is Basis


def merged(shape: IntTuple, stride: IntTuple) -> tuple[Mode, ...]:
    """The (extent, stride) pairs of the leaves, without unit modes, neighbours merged where they continue each other.

    >>> merged((3, 1, 9), (1, 9, 3))
    ((27, 1),)
    """
    if type(shape) is int:
        return () if shape == 1 else ((shape, stride),)
    result: list[Mode] = []
    _merge_into(result, shape, stride)
    return tuple(result)


def _merge_into(result: list[Mode], shape: IntTuple, stride: IntTuple) -> None:
    for extent, step in zip(shape, stride, strict=True):
        if type(extent) is not int:
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
    if has_basis(layout.stride):
        return coordinate(terms + [(0, stride) for stride in leaves(layout.stride)])
    total: Any = 0
    for factor, stride in terms:
        total = add(total, scaled(factor, stride))
    return total


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
    for extent, step in modes[:-1]:
        if not extent:
            raise LayoutError(f"layout {layout} has no elements, so an integer is no coordinate of it",
                              hint="give a layout without an extent of 0")
        terms.append((coord % extent, step))
        coord = coord // extent
    if modes:
        terms.append((coord, modes[-1][1]))


def coordinate_leaf(coord: Any, layout: Layout) -> Any:
    """One number of a coordinate: a Python int, or a runtime value as it is; None, floats and text are refused.

    >>> coordinate_leaf(3, Layout(8, 1))
    3
    """
    if type(coord) is int:
        return coord
    if coord is None:
        raise LayoutError(f"a coordinate with None stands for a whole mode of {layout}, not for one index",
                          hint="use slice(layout, coord) to keep that mode")
    if not isinstance(coord, (bool, str, bytes, Layout)):
        if isinstance(coord, Integral):
            return int(coord)
        if not isinstance(coord, Number):
            return coord
    raise LayoutError(f"{coord!r} is not a coordinate of layout {layout}", hint="coordinates are integers")
