"""Nested integer tuples: the shapes, strides and coordinates that layouts are made of.

An int tuple is a plain Python int, or a tuple of int tuples. The constructors check and return plain values, so
everything that works on tuples works on shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.runtime import index_leaf
from flylab.layout.runtime_int import RuntimeInt

DEEPEST = 100  # levels of nesting; no layout that means anything comes near
MOST_MODES = 1 << 16  # of what is made from a number, such as the coordinates of E(number)
IntTuple = Any  # int | tuple[IntTuple, ...]; a recursive alias costs mypy more than it says


def as_int(value: Any, what: str = "value") -> int:
    """The Python int that `value` is (numpy integers too); bools, floats and the rest are refused.

    They get a LayoutError.

    >>> as_int(8)
    8
    """
    if type(value) is int:
        return value
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise LayoutError(f"{what} {shown(value)} is not an integer", hint="give a Python int, or a (nested) tuple of ints")


def as_leaf(value: Any, what: str = "value") -> Any:
    """A leaf of an int tuple: the Python int that `value` is, or a RuntimeInt as it is.

    >>> as_leaf(8)
    8
    """
    return value if isinstance(value, RuntimeInt) else as_int(value, what)


def as_int_tuple(value: Any, what: str = "value", levels: int = DEEPEST) -> IntTuple:
    """`value` as a plain nested tuple of Python ints; lists become tuples, numpy integers become ints.

    Raises LayoutError for a leaf that is no integer, an empty tuple, and more than `levels` levels.

    >>> as_int_tuple([4, (2, 8)])
    (4, (2, 8))
    """
    if type(value) is int:
        return value
    if isinstance(value, (tuple, list)):
        if not value:
            raise LayoutError(f"{what} () is empty", hint="give at least one mode, for example 1")
        below = level_below(levels, what)
        return tuple([as_int_tuple(item, what, below) for item in value])
    return as_leaf(value, what)


def level_below(levels: int, what: str) -> int:
    """One level of nesting less; LayoutError where none is left, as in a list that holds itself.

    >>> level_below(100, "shape")
    99
    """
    if not levels:
        raise LayoutError(f"{what} nests deeper than {DEEPEST} levels", hint="use fewer levels, and no list in itself")
    return levels - 1


def as_shape(value: Any, what: str = "shape") -> IntTuple:
    """`value` as a shape: an int tuple without negative extents.

    Raises LayoutError for an extent that is negative or no integer.

    >>> as_shape((9, (4, 8)))
    (9, (4, 8))
    """
    if type(value) is int and value >= 0:
        return value
    shape = as_int_tuple(value, what)
    for extent in shape if isinstance(shape, tuple) else (shape,):
        if (extent if type(extent) is int else _least(extent)) < 0:
            raise LayoutError(f"{what} {text(shape)} has the negative extent {_least(extent)}",
                              hint="extents are 0 or more")
    return _extents(shape) if has_runtime(shape) else shape


def _least(shape: IntTuple) -> int:
    return min([extent if type(extent) is int else extent.high for extent in leaves(shape)])


def _extents(shape: IntTuple) -> IntTuple:
    if isinstance(shape, tuple):
        return tuple(map(_extents, shape))
    return shape.extent() if isinstance(shape, RuntimeInt) else shape


def has_runtime(value: Any) -> bool:
    """Whether a leaf of an int tuple is known only at run time.

    >>> has_runtime((8, RuntimeInt())), has_runtime((8, (4, 2)))
    (True, False)
    """
    if isinstance(value, tuple):
        return any(map(has_runtime, value))
    return isinstance(getattr(value, "scale", value), RuntimeInt)  # of a basis stride the scale


def text(value: Any, levels: int = DEEPEST) -> str:
    """The text of a nested tuple, without spaces; `*` stands for None, `...` for what lies deeper than `levels`.

    >>> text((9, (4, None)))
    '(9,(4,*))'
    """
    if isinstance(value, (tuple, list)):
        inner = [text(item, levels - 1) for item in value] if levels else ["..."]
        return "(" + ",".join(inner) + ")"
    return "*" if value is None else str(value)


def shown(value: Any) -> str:
    """Any argument as a message shows it: tuples and lists as text, the rest by repr.

    >>> shown([4, (2, 8)]), shown("4")
    ('(4,(2,8))', "'4'")
    """
    return text(value) if isinstance(value, (tuple, list)) else repr(value)


def levels_of(value: IntTuple) -> int:
    """How deep tuples nest: 0 for a leaf.

    >>> levels_of((8, (4, 2)))
    2
    """
    return 1 + max(map(levels_of, value)) if isinstance(value, tuple) else 0


def leaves(value: IntTuple, levels: int = DEEPEST) -> Iterator[Any]:
    """The leaves, from left to right.

    Raises LayoutError for tuples nested too deep.

    >>> list(leaves((9, (4, 8))))
    [9, 4, 8]
    """
    if isinstance(value, tuple):
        if not levels:
            level_below(levels, "tuple")
        for item in value:
            yield from leaves(item, levels - 1)
    else:
        yield value


def product(value: IntTuple, levels: int = DEEPEST) -> int:
    """The product of the leaves.

    Raises LayoutError for what is no int tuple.

    >>> product((3, (2, 5)))
    30
    """
    if type(value) is int:
        return value
    if not levels:
        level_below(levels, "tuple")
    result = 1
    for item in value if type(value) is tuple else modes_of(as_int_tuple(value)):
        result *= product(item, levels - 1) if type(item) is tuple else item if type(item) is int else as_leaf(item)
    return result


def modes_of(value: IntTuple) -> tuple[IntTuple, ...]:
    """The top-level modes: of an int, itself.

    >>> modes_of((4, (2, 8))), modes_of(8)
    ((4, (2, 8)), (8,))
    """
    return value if isinstance(value, tuple) else (value,)


def congruent(a: IntTuple, b: IntTuple, levels: int = DEEPEST) -> bool:
    """Whether both nest alike.

    LayoutError for tuples nested too deep.

    >>> congruent((9, (4, 8)), (1, (2, 3))), congruent((9, 4), 1)
    (True, False)
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        if not levels:
            level_below(levels, "tuple")
        return len(a) == len(b) and all(map(congruent, a, b, repeat(levels - 1)))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def map_leaves(function: Callable[..., Any], *tuples: IntTuple) -> IntTuple:
    """`function` of the corresponding leaves of congruent tuples, nested as they are.

    >>> map_leaves(lambda a, b: a + b, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """
    first = tuples[0]
    if not isinstance(first, tuple):
        if any(isinstance(other, tuple) for other in tuples[1:]):
            raise LayoutError(_mismatch(tuples), hint="both must nest alike")
        return function(*tuples)
    if any(not isinstance(other, tuple) or len(other) != len(first) for other in tuples[1:]):
        raise LayoutError(_mismatch(tuples), hint="both must nest alike")
    return tuple([map_leaves(function, *items) for items in zip(*tuples, strict=True)])


def _mismatch(tuples: tuple[IntTuple, ...]) -> str:
    return " and ".join(map(text, tuples)) + " do not nest alike"


def compact(shape: IntTuple, start: int = 1) -> IntTuple:
    """The strides that count the coordinates of `shape` colexicographically; `start` is the first.

    >>> compact((4, (2, 8)))
    (1, (4, 8))
    """
    if type(shape) is not tuple:
        return start
    strides = []
    for mode in shape:
        strides.append(compact(mode, start))
        start *= product(mode)
    return tuple(strides)


def at_path(value: IntTuple, path: tuple[int, ...]) -> IntTuple:
    """The mode at `path`, one index a level.

    >>> at_path((4, (8, 2)), (1, 0))
    8
    """
    for index in path:
        modes = modes_of(value)
        if not -len(modes) <= index < len(modes):
            raise LayoutError(f"{text(value)} has {len(modes)} modes, so there is no mode {index}",
                              hint=f"use an index from 0 to {len(modes) - 1}")
        value = modes[index]
    return value


def _pack(items: tuple[Any, ...]) -> Any:
    """One argument stands for itself, several are the modes of a tuple."""
    return items[0] if len(items) == 1 else items


def make_shape(*extents: Any) -> IntTuple:
    """A shape, of ints and nested tuples; one argument is the shape itself. LayoutError for negative extents.

    >>> make_shape(9, (4, 8))
    (9, (4, 8))
    """
    return as_shape(_pack(extents))


def make_stride(*strides: Any) -> IntTuple:
    """A stride, of ints, basis strides and nested tuples.

    Raises LayoutError where basis strides and integers other than 0 are mixed.

    >>> make_stride(1, (4, 8))
    (1, (4, 8))
    """
    from flylab.layout.basis import as_stride

    return as_stride(_pack(strides))


def make_int_tuple(*values: Any) -> IntTuple:
    """An int tuple, of ints and nested tuples.

    Raises LayoutError for a leaf that is no integer, and for an empty tuple.

    >>> make_int_tuple((4, (2, 8)))
    (4, (2, 8))
    """
    return as_int_tuple(_pack(values))


def make_coord(*coords: Any) -> Any:
    """A coordinate: as an int tuple, but a leaf may be None (the whole mode) or a runtime value.

    Raises LayoutError for any other leaf, and for an empty tuple.

    >>> make_coord(None, 3)
    (None, 3)
    """
    return as_profile(_pack(coords), "coordinate", index_leaf)


def as_profile(value: Any, what: str, leaf: Callable[[Any], Any], levels: int = DEEPEST) -> Any:
    """`value` as plain nested tuples; its leaves are None or what `leaf` makes of them, None where it refuses.

    >>> as_profile([None, [1]], "profile", as_int)
    (None, (1,))
    """
    if isinstance(value, (tuple, list)):
        if not value:
            raise LayoutError(f"{what} () is empty", hint="give at least one mode")
        below = level_below(levels, what)
        return tuple([as_profile(item, what, leaf, below) for item in value])
    result = None if value is None else leaf(value)
    if value is not None and result is None:
        raise LayoutError(f"the {what} holds {shown(value)}, which is not an integer", hint="give a Python int")
    return result
