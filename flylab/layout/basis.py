"""Basis strides: E(0), 2 * E(1), E(1, 0). A layout whose strides are such maps coordinates to coordinates.

E(i, j) is the unit of mode j of mode i. The text of 2 * E(1, 0) is `2E1E0`.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.int_tuple import DEEPEST, MOST_MODES, IntTuple, as_int, as_leaf, level_below, shown, text
from flylab.layout.runtime import add, index_leaf, is_array, scaled


class Basis:
    """A scaled unit of a coordinate: `scale` times the unit at `path`. Immutable, hashable.

    Raises LayoutError for a scale of 0 or that is no integer, and for a path that names no mode.

    >>> Basis(2, (1,))
    2 * E(1)
    """

    __slots__ = ("scale", "path")
    scale: Any
    path: tuple[int, ...]

    def __new__(cls, scale: int, path: tuple[int, ...]) -> Basis:
        number = as_int(scale, "scale of a basis stride")
        if not number:
            raise LayoutError("a basis stride of scale 0 counts nothing", hint="use the stride 0")
        return _basis(number, _checked_path(path))

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError("a basis stride cannot be changed")

    __delattr__ = __setattr__

    def __reduce__(self) -> Any:
        return _basis, (self.scale, self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basis) and self.scale == other.scale and self.path == other.path

    def __hash__(self) -> int:
        return hash((self.scale, self.path))

    def __mul__(self, factor: int) -> Any:
        scale = self.scale * as_leaf(factor, "factor of a basis stride")
        return _basis(scale, self.path) if scale != 0 else 0

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __repr__(self) -> str:
        unit = f"E({', '.join(map(str, self.path))})"
        return unit if self.scale == 1 else f"{self.scale} * {unit}"

    def __str__(self) -> str:
        return str(self.scale) + "".join(f"E{index}" for index in self.path)


# The slots are written through their descriptors, which `__setattr__` does not reach.
_set_scale = vars(Basis)["scale"].__set__
_set_path = vars(Basis)["path"].__set__


def _basis(scale: int, path: tuple[int, ...]) -> Basis:
    basis = object.__new__(Basis)
    _set_scale(basis, scale)
    _set_path(basis, path)
    return basis


def _checked_path(path: Any) -> tuple[int, ...]:
    given = path if isinstance(path, (tuple, list)) else (path,)
    indices = tuple([as_int(index, "mode of a basis stride") for index in given])
    if not indices or min(indices) < 0:
        raise LayoutError(f"E{text(indices)} names no mode", hint="give one mode from 0 on, for example E(0)")
    if max(indices) >= MOST_MODES or len(indices) > DEEPEST:
        raise LayoutError(f"E{text(indices)} lies past the {MOST_MODES} modes and {DEEPEST} levels that coordinates "
                          "have at most", hint="number the modes from 0 on")
    return indices


def E(*path: int) -> Basis:
    """The unit stride of one mode of a coordinate; several indices go down into nested modes.

    Raises LayoutError for no index, and for one that is negative or no integer.

    >>> str(E(0)), str(2 * E(1, 0))
    ('1E0', '2E1E0')
    """
    return Basis(1, path)


def unit_stride(stride: Any) -> Any:
    """The stride of a mode of one element in place of `stride`: 0, but of a basis stride its unit.

    That says which mode of the coordinates is there, though it is always 0.

    >>> unit_stride(7), unit_stride(2 * E(1))
    (0, E(1))
    """
    return 0 if type(stride) is not Basis else stride if stride.scale == 1 else _basis(1, stride.path)


def as_stride(value: Any) -> IntTuple:
    """`value` as a stride: nested tuples whose leaves are ints or basis strides, with no basis and ints but 0 mixed.

    >>> as_stride([1, (4, 8)])
    (1, (4, 8))
    """
    if type(value) is int:
        return value
    paths: list[tuple[int, ...]] = []
    stride = _plain(value, paths)
    if () in paths and len(set(paths)) > 1:
        raise LayoutError(f"stride {text(stride)} mixes basis strides with integers, whose sum is neither a "
                          "coordinate nor an index", hint="use basis strides for all modes, for example (4*E(0),E(1))")
    held = set(paths)
    for path in held:
        if any(path[:level] in held for level in range(1, len(path))):
            raise LayoutError(f"stride {text(stride)} counts a mode both as a whole and by its parts",
                              hint="let all basis strides name modes of one coordinate")
    return stride


def _plain(value: Any, paths: list[tuple[int, ...]], levels: int = DEEPEST) -> IntTuple:
    """Plain tuples; `paths` collects where the basis strides point, () for an integer other than 0."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise LayoutError("stride () is empty", hint="give one stride for each mode")
        below = level_below(levels, "stride")
        return tuple([_plain(item, paths, below) for item in value])
    if isinstance(value, Basis):
        paths.append(value.path)
        return value
    number = as_leaf(value, "stride")
    if number != 0:
        paths.append(())
    return number


def coordinate(terms: list[tuple[Any, Any]]) -> Any:
    """The sum of factor * stride over `terms` of basis strides (and 0), as a nested tuple; modes without a term are 0.

    A factor may be a runtime value: it is multiplied by ints other than 0 and 1, and added, and nothing else.

    >>> coordinate([(3, E(0)), (5, 2 * E(1))])
    (3, 10)
    """
    tree: dict[Any, Any] = {}
    for factor, stride in terms:
        if isinstance(stride, Basis):
            _accumulate(tree, factor, stride)
    return _nested(tree)


def _accumulate(tree: dict[Any, Any], factor: Any, stride: Basis) -> None:
    node = tree
    for index in stride.path[:-1]:
        node = node.setdefault(index, {})
    last = stride.path[-1]
    node[last] = add(node.get(last, 0), scaled(factor, stride.scale))


def _nested(tree: dict[Any, Any]) -> Any:
    return tuple([_nested(item) if isinstance(item := tree.get(index, 0), dict) else item
                  for index in range(max(tree) + 1)])


def add_coordinates(a: Any, b: Any) -> Any:
    """The sum of two coordinates; modes that one of them lacks count as 0, and so does the int 0.

    Numbers may be runtime values or numpy arrays, as in any coordinate. Raises LayoutError for what is no integer, and
    where the two do not nest alike.

    >>> add_coordinates((1, 2), (10,))
    (11, 2)
    >>> add_coordinates(0, (3, (4, 5)))
    (3, (4, 5))
    """
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return a + b if type(a) is int and type(b) is int else _added(a, b)
    for one, other in ((a, b), (b, a)):
        if type(one) is int and one == 0:
            return other
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        raise LayoutError(f"the coordinates {text(a)} and {text(b)} do not nest alike", hint="both must nest alike")
    short, long = sorted((a, b), key=len)
    return tuple(map(add_coordinates, short, long)) + long[len(short):]


def _added(a: Any, b: Any) -> Any:
    """a + b of numbers of coordinates that are not both Python ints."""
    one, other = index_leaf(a), index_leaf(b)
    if one is None or other is None:
        raise LayoutError(f"{shown(a if one is None else b)} is no number of a coordinate",
                          hint="coordinates are nested tuples of integers")
    if (is_array(one) or is_array(other)) and not any([type(number) is int and number == 0 for number in (one, other)]):
        from flylab.layout.arrays import roomy

        return roomy(one, other) + roomy(other, one)
    return add(one, other)
