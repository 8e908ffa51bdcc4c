"""Arithmetic on int tuples, leaf by leaf. Both operands nest alike; LayoutError otherwise."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from flylab.errors import LayoutError, Undecided
from flylab.layout.decisions import same
from flylab.layout.int_tuple import (
    DEEPEST,
    IntTuple,
    as_int_tuple,
    congruent,
    has_runtime,
    leaves,
    level_below,
    map_leaves,
    modes_of,
    product,
    text,
)


def _leafwise(function: Callable[[int, int], Any], a: Any, b: Any) -> Any:
    return map_leaves(function, as_int_tuple(a), as_int_tuple(b))


def _checked(function: Callable[[int, int], int], a: Any, b: Any) -> IntTuple:
    if 0 in leaves(as_int_tuple(b)):
        raise LayoutError(f"{text(a)} cannot be divided by {text(b)}, which holds a 0", hint="divide by other numbers")
    return _leafwise(function, a, b)


def int_tuple_add(a: Any, b: Any) -> IntTuple:
    """Sums.

    Raises LayoutError where the two do not nest alike.

    >>> int_tuple_add((1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """
    return _leafwise(operator.add, a, b)


def int_tuple_sub(a: Any, b: Any) -> IntTuple:
    """Differences.

    Raises LayoutError where the two do not nest alike.

    >>> int_tuple_sub((10, 20), (1, 2))
    (9, 18)
    """
    return _leafwise(operator.sub, a, b)


def int_tuple_mul(a: Any, b: Any) -> IntTuple:
    """Products.

    Raises LayoutError where the two do not nest alike.

    >>> int_tuple_mul((2, 3), (4, 5))
    (8, 15)
    """
    return _leafwise(operator.mul, a, b)


def int_tuple_div(a: Any, b: Any) -> IntTuple:
    """Quotients, rounded down as Python's `//`.

    Raises LayoutError for a divisor with a 0, and where the two do not nest alike.

    >>> int_tuple_div((8, 9), (2, 4))
    (4, 2)
    """
    return _checked(operator.floordiv, a, b)


def int_tuple_mod(a: Any, b: Any) -> IntTuple:
    """Remainders, with the sign of the divisor as Python's `%`.

    Raises LayoutError for a divisor with a 0, and where the two do not nest alike.

    >>> int_tuple_mod((8, 9), (3, 4))
    (2, 1)
    """
    return _checked(operator.mod, a, b)


def int_tuple_product(value: Any) -> int:
    """The product of all leaves.

    Raises LayoutError for what is no int tuple.

    >>> int_tuple_product((2, (3, 4)))
    24
    """
    return product(as_int_tuple(value))


def int_tuple_product_each(value: Any) -> IntTuple:
    """The product of each mode.

    Raises LayoutError for what is no int tuple.

    >>> int_tuple_product_each((2, (3, 4)))
    (2, 12)
    """
    return tuple(map(product, modes_of(as_int_tuple(value))))


def int_tuple_product_like(value: Any, profile: Any) -> IntTuple:
    """The product of what each leaf of `profile` stands for.

    Raises LayoutError where the profile nests deeper or otherwise.

    >>> int_tuple_product_like(((2, 2), (3, 4)), (1, (1, 1)))
    (4, (3, 4))
    """
    value = as_int_tuple(value)
    if not isinstance(profile, (tuple, list)):
        return product(value)
    if not isinstance(value, tuple) or len(value) != len(profile):
        raise LayoutError(f"{text(value)} has not the modes of the profile {text(profile)}",
                          hint="give a profile that nests like the tuple, or less deep")
    return tuple(map(int_tuple_product_like, value, profile))


def elem_less(a: Any, b: Any) -> bool:
    """Whether each leaf of `a` is less than that of `b`: whether a coordinate lies inside a shape.

    Raises LayoutError where the two do not nest alike.

    >>> elem_less((1, 2), (3, 3)), elem_less((1, 3), (3, 3))
    (True, False)
    """
    return all(leaves(_leafwise(_less, a, b)))


def _less(a: Any, b: Any) -> bool:
    # Of coordinates nothing may be taken for granted: 0 is one of them.
    if type(a) is int and type(b) is int:
        return a < b
    difference = b - a
    if type(difference) is int:
        return difference > 0
    if difference.low > 0 or difference.high <= 0:
        return bool(difference.low > 0)
    raise Undecided(f"whether {text(a)} < {text(b)} is known only while the kernel runs",
                    hint="compare known numbers; in a kernel fx.elem_less compares the others")


def equal(a: Any, b: Any) -> bool:
    """Whether both are the same int tuple.

    Those that nest otherwise are not. Raises LayoutError for what is no int tuple.

    >>> equal((1, 2), (1, 2)), equal((1, 2), (1, 3))
    (True, False)
    """
    a, b = as_int_tuple(a), as_int_tuple(b)
    if not has_runtime((a, b)):
        return bool(a == b)
    return congruent(a, b) and all([same(*pair) for pair in zip(leaves(a), leaves(b), strict=True)])


def get_leaves(value: Any) -> tuple[int, ...]:
    """The leaves as a flat tuple.

    Raises LayoutError for what is no int tuple.

    >>> get_leaves((4, (8, 2)))
    (4, 8, 2)
    """
    return tuple(leaves(as_int_tuple(value)))


def get_scalar(value: Any) -> int:
    """The one number of an int tuple with one leaf; LayoutError for more.

    >>> get_scalar((5,))
    5
    """
    found = get_leaves(value)
    if len(found) != 1:
        raise LayoutError(f"{text(value)} has {len(found)} leaves, not one", hint="use get(value, i) to pick one")
    return found[0]


def has_none(value: Any, levels: int = DEEPEST) -> bool:
    """Whether a coordinate or tile holds None.

    Raises LayoutError for tuples nested too deep.

    >>> has_none((None, 3)), has_none((1, (2, 3)))
    (True, False)
    """
    if isinstance(value, (tuple, list)):
        below = level_below(levels, "coordinate")
        return any([has_none(each, below) for each in value])
    return value is None
