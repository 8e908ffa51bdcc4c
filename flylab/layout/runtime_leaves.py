"""The runtime leaves of a value of the algebra: to take them out, and to put others in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.layout.basis import Basis
from flylab.layout.layout import Layout, trusted
from flylab.layout.runtime_int import RuntimeInt, is_number
from flylab.layout.swizzle import ComposedLayout


def map_runtime(function: Callable[[RuntimeInt], Any], value: Any) -> Any:
    """An int tuple, tile, Layout or ComposedLayout with each RuntimeInt replaced by `function` of it, left to right.

    >>> from flylab.layout import parse
    >>> map_runtime(lambda leaf: 8, parse("(?,4):(?E0,1E1)"))
    Layout((8, 4), (8 * E(0), E(1)))
    """
    if isinstance(value, RuntimeInt):
        return function(value)
    if isinstance(value, tuple):
        return tuple([map_runtime(function, each) for each in value])
    if isinstance(value, Layout):
        return trusted(map_runtime(function, value.shape), map_runtime(function, value.stride))
    if isinstance(value, ComposedLayout):
        outer = map_runtime(function, value.outer)
        return ComposedLayout(outer, map_runtime(function, value.offset), map_runtime(function, value.inner))
    if isinstance(value, Basis) and isinstance(value.scale, RuntimeInt):
        return Basis(1, value.path) * function(value.scale)
    return value


def numbers(value: Any) -> list[Any]:
    """Every number in a value of the algebra, known or not, in the order of its text; of a basis stride its scale.

    >>> from flylab.layout import parse
    >>> numbers(parse("(?,4):(?{div=4},1)"))
    [?, 4, ?{div=4}, 1]
    """
    if isinstance(value, tuple):
        return [number for each in value for number in numbers(each)]
    if isinstance(value, Layout):
        return numbers((value.shape, value.stride))
    if isinstance(value, ComposedLayout):
        return numbers((value.outer, value.offset, value.inner))
    if isinstance(value, Basis):
        return [value.scale]
    return [value] if is_number(value) else []


def runtime_leaves(value: Any) -> list[RuntimeInt]:
    """The RuntimeInts in a value of the algebra, in the order of its text.

    >>> from flylab.layout import parse
    >>> runtime_leaves(parse("(?,4):(?{div=4},1)"))
    [?, ?{div=4}]
    """
    return [number for number in numbers(value) if isinstance(number, RuntimeInt)]
