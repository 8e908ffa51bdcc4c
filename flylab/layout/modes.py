"""Picking, grouping and adding modes, of int tuples and of layouts alike; and division of shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.construct import as_layout
from flylab.layout.decisions import divides, rounded_up, surely_divides
from flylab.layout.int_tuple import (
    DEEPEST,
    MOST_MODES,
    IntTuple,
    as_int,
    as_int_tuple,
    as_profile,
    levels_of,
    map_leaves,
    modes_of,
    shown,
    text,
)
from flylab.layout.layout import Layout, trusted
from flylab.layout.swizzle import ComposedLayout

_Modes = tuple[Any, ...]


def _each(value: Any, change: Callable[[_Modes], _Modes]) -> Any:
    """`value` with its top-level modes changed; a layout's shape and stride change alike."""
    if isinstance(value, ComposedLayout):
        return value.with_inner(_each(value.inner, change))
    if isinstance(value, Layout):
        return trusted(change(modes_of(value.shape)), change(modes_of(value.stride)))
    # Strides and coordinates have modes, too: only the levels of a tuple are checked.
    checked = as_profile(value, "tuple", lambda leaf: leaf) if isinstance(value, tuple) else as_int_tuple(value)
    return change(modes_of(checked))


def select(value: Any, indices: Sequence[int]) -> Any:
    """The modes at `indices`, in that order.

    Raises LayoutError for no index, and where there is no such mode.

    >>> select((4, 8, 16), [0, 2]), select(Layout((4, 8, 16), (1, 4, 32)), [2, 0])
    ((4, 16), Layout((16, 4), (32, 1)))
    """
    try:
        picks = [as_int(index, "mode") for index in indices]
    except TypeError:
        raise LayoutError(f"{shown(indices)} is no list of modes", hint="give a list, for example [0, 2]") from None

    def change(modes: _Modes) -> _Modes:
        for index in picks:
            if not 0 <= index < len(modes):
                raise LayoutError(f"there is no mode {index} in {_shown(value)}, which has {len(modes)} modes",
                                  hint=f"use indices from 0 to {len(modes) - 1}")
        return tuple([modes[index] for index in picks])

    if not picks:
        raise LayoutError(f"select picks no mode of {_shown(value)}", hint="give at least one index")
    return _each(value, change)


def _shown(value: Any) -> str:
    return text(value) if isinstance(value, tuple) else str(value)


def _checked_range(value: Any, begin: int, end: int, count: int) -> tuple[int, int]:
    begin, end = as_int(begin, "begin"), as_int(end, "end")
    end = count if end == -1 else end
    if not 0 <= begin < end <= count:
        raise LayoutError(f"modes {begin} to {end} are no part of {_shown(value)}, which has {count} modes",
                          hint=f"give 0 <= begin < end <= {count}")
    return begin, end


def take(value: Any, begin: int, end: int = -1) -> Any:
    """The modes from `begin` up to, not including, `end` (-1: to the last).

    Raises LayoutError where there are no such modes.

    >>> take((2, 3, 5, 7), 1, 3)
    (3, 5)
    """
    def change(modes: _Modes) -> _Modes:
        first, last = _checked_range(value, begin, end, len(modes))
        return modes[first:last]

    return _each(value, change)


def group(value: Any, begin: int, end: int = -1) -> Any:
    """The modes from `begin` up to `end` as one nested mode.

    Raises LayoutError where there are no such modes.

    >>> group(Layout((2, 3, 5, 7), (1, 2, 6, 30)), 1, 3)
    Layout((2, (3, 5), 7), (1, (2, 6), 30))
    """
    def change(modes: _Modes) -> _Modes:
        first, last = _checked_range(value, begin, end, len(modes))
        if levels_of(modes[first:last]) >= DEEPEST:
            raise LayoutError(f"group of modes {DEEPEST} levels deep would nest deeper", hint="use fewer levels")
        return (*modes[:first], modes[first:last], *modes[last:])

    return _each(value, change)


def append(base: Any, elem: Any, n: int | None = None) -> Any:
    """`base` with `elem` as a last mode; with `n`, as often as it takes to have n modes.

    Raises LayoutError where `elem` is not of the kind of `base`, and where there are more than n modes already.

    >>> append((4, 8), 1, n=4), append(Layout(4, 1), Layout(8, 4))
    ((4, 8, 1, 1), Layout((4, 8), (1, 4)))
    """
    return _extended(base, elem, n, lambda modes, more: modes + more)


def prepend(base: Any, elem: Any, n: int | None = None) -> Any:
    """`base` with `elem` as a first mode; with `n`, as often as it takes to have n modes.

    Raises LayoutError where `elem` is not of the kind of `base`, and where there are more than n modes already.

    >>> prepend((4, 8), 1, n=4), prepend(Layout((4, 2), (1, 4)), Layout(8, 8))
    ((1, 1, 4, 8), Layout((8, 4, 2), (8, 1, 4)))
    """
    return _extended(base, elem, n, lambda modes, more: more + modes)


def _extended(base: Any, elem: Any, n: int | None, put: Callable[[_Modes, _Modes], _Modes]) -> Any:
    if isinstance(base, ComposedLayout):
        return base.with_inner(_extended(base.inner, elem, n, put))
    if not isinstance(base, Layout):
        modes = modes_of(as_int_tuple(base))
        return put(modes, (as_int_tuple(elem),) * _missing(base, len(modes), n))
    elem = as_layout(elem, "mode")
    count = _missing(base, len(base), n)
    return Layout(put(modes_of(base.shape), (elem.shape,) * count), put(modes_of(base.stride), (elem.stride,) * count))


def _missing(base: Any, count: int, n: int | None) -> int:
    if n is None:
        return 1
    n = as_int(n, "n")
    if n > MOST_MODES:
        raise LayoutError(f"{n} modes are more than the {MOST_MODES} that are made at once", hint="give a smaller n")
    if n < count:
        raise LayoutError(f"{_shown(base)} has {count} modes already, more than {n}", hint=f"give n of {count} or more")
    return n - count


def ceil_div(value: Any, divisor: Any) -> IntTuple:
    """Quotients rounded up, leaf by leaf; one int divides all leaves.

    Raises LayoutError for a divisor below 1, and where the two do not nest alike.

    >>> ceil_div((12, 9), (5, 4)), ceil_div(12, 5)
    ((3, 3), 3)
    """
    value, divisor = as_int_tuple(value), as_int_tuple(divisor, "divisor")
    if isinstance(value, tuple) and not isinstance(divisor, tuple):
        return tuple([ceil_div(mode, divisor) for mode in value])

    def quotient(a: Any, b: Any) -> Any:
        if b < 1:
            raise LayoutError(f"ceil_div of {a} by {b}: the divisor is not positive", hint="divide by 1 or more")
        return rounded_up(a, b)

    return map_leaves(quotient, value, divisor)


def shape_div(shape: Any, divisor: Any) -> IntTuple:
    """What is left of a shape when `divisor` elements are taken from its front; by a tuple, mode by mode.

    Raises LayoutError where neither of extent and divisor divides the other.

    >>> shape_div((12, 3), (4, 1)), shape_div((4, 6), 8)
    ((3, 3), (1, 3))
    """
    shape, divisor = as_int_tuple(shape, "shape"), as_int_tuple(divisor, "divisor")
    if isinstance(shape, tuple):
        if isinstance(divisor, tuple):
            if len(shape) != len(divisor):
                raise LayoutError(f"shape {text(shape)} and divisor {text(divisor)} do not nest alike",
                                  hint="give one divisor for each mode")
            return tuple(map(shape_div, shape, divisor))
        result = []
        for mode in shape:
            result.append(shape_div(mode, divisor))
            divisor = _one_of(divisor, mode)
        return tuple(result)
    if isinstance(divisor, tuple):
        raise LayoutError(f"the extent {shape} cannot be divided by the modes {text(divisor)}",
                          hint="divide by one int")
    positive = shape >= 1 and divisor >= 1
    if positive and shape != divisor and surely_divides(shape, divisor):
        return 1
    if not positive or not divides(divisor, shape):
        raise LayoutError(f"shape_div of {shape} by {divisor}: neither divides the other",
                          hint="use ceil_div to round up")
    return shape // divisor


def _one_of(divisor: int, mode: IntTuple) -> int:
    """What of the divisor is left for the next mode."""
    for extent in modes_of(mode):
        divisor = _one_of(divisor, extent) if isinstance(extent, tuple) else shape_div(divisor, extent)
    return divisor
