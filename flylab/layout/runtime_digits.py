"""The coordinate of an index in a layout whose extents or strides are known only at run time, by division."""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.basis import Basis
from flylab.layout.decisions import surely_divides
from flylab.layout.int_tuple import IntTuple, leaves, map_leaves
from flylab.layout.runtime_int import MOST, RuntimeInt, least, width


def runtime_digits(index: Any, shape: IntTuple, stride: IntTuple | None) -> Any:
    """What `idx2crd` gives where extents or strides are RuntimeInts; `stride` is None for a bare shape.

    Runtime strides must be positive and tell coordinates apart, as for `idx2crd`; that is not known before the kernel
    runs, so not checked. Raises LayoutError for known negative strides and for basis strides.

    >>> print(runtime_digits(RuntimeInt(high=255), (RuntimeInt(), 64), (64, 1)))
    (?{<=3}, ?{<=63})
    """
    if stride is None:
        return _in_order(index, shape)
    modes = list(zip(leaves(stride), leaves(shape), strict=True))
    for step, _ in modes:
        if isinstance(step, Basis):
            raise LayoutError(f"idx2crd of the stride {step}: it gives coordinates, not indices",
                              hint="a coordinate tensor has nothing to invert by division")
        if (step if type(step) is int else step.high) < 0:
            raise LayoutError(f"idx2crd of a layout with the stride {step}", hint="reverse that mode first")
    modes = [(step.extent() if isinstance(step, RuntimeInt) else step, extent) for step, extent in modes]
    counting = [mode for mode in modes if mode[0] != 0 and mode[1] != 1]
    digits = iter([_digit(index, mode, counting) if mode in counting else 0 for mode in modes])
    return map_leaves(lambda _: next(digits), shape)


def _in_order(index: Any, shape: IntTuple) -> Any:
    """Colexicographic digits: each extent takes what the ones before it left."""
    rest = index

    def digit(extent: Any) -> Any:
        nonlocal rest
        taken, rest = rest % extent, rest // extent
        return taken

    return map_leaves(digit, shape)


def _digit(index: Any, mode: tuple[Any, Any], counting: list[tuple[Any, Any]]) -> Any:
    """One digit: what larger strides count is taken away first, but for multiples of all that the mode spans."""
    stride, extent = mode
    span = stride * extent
    # A stride that divides this one is not larger.
    others = [other for other, _ in counting if not is_multiple(stride, other)]
    needed = [other for other in others if not is_multiple(other, span)]
    # x % a % b is x % b only where b divides a: what is no multiple of all that is taken away must be taken away, too.
    rest = [other for other in others if is_multiple(other, span)]
    while more := [other for other in rest if not all([is_multiple(other, modulus) for modulus in needed])]:
        needed, rest = needed + more, [other for other in rest if all([other is not each for each in more])]
    moduli = [_if_above(other, stride, index) for other in needed]
    for modulus in _descending([modulus for modulus in moduli if modulus is not None]):
        index = index % modulus
    return index // stride % extent


def is_multiple(value: Any, of: Any) -> bool:
    """Whether `value` is known to be a multiple of `of`, which is positive.

    >>> is_multiple(RuntimeInt(divisor=8), 4), is_multiple(64, RuntimeInt())
    (True, False)
    """
    one = value if isinstance(value, RuntimeInt) else of
    return surely_divides(of, value) or isinstance(one, RuntimeInt) and one.multiple(value, of)


def _if_above(value: Any, bound: Any, index: Any) -> Any:
    """`value` where it is greater than `bound`; elsewhere a number that `index` does not reach; None if it never is."""
    highest = value if type(value) is int else value.high
    if highest <= least(bound):
        return None
    if least(value) > (bound if type(bound) is int else bound.high):
        return value
    furthest = index if type(index) is int else index.high
    bits = 64 if furthest >= MOST[32] else max(width(value), width(bound))
    facts = RuntimeInt(0, MOST[bits], 1, bits)
    return (value if isinstance(value, RuntimeInt) else bound).made("above", value, bound, facts)


def _descending(numbers: list[Any]) -> list[Any]:
    """The numbers, the largest first; those that are known only at run time are compared then."""
    ordered = list(numbers)
    for end in range(len(ordered) - 1, 0, -1):
        for i in range(end):
            ordered[i:i + 2] = _larger_first(*ordered[i:i + 2])
    return ordered


def _larger_first(a: Any, b: Any) -> tuple[Any, Any]:
    if type(a) is int and type(b) is int:
        return max(a, b), min(a, b)
    bits = max(width(a), width(b))
    facts = RuntimeInt(0, MOST[bits], 1, bits)
    one = a if isinstance(a, RuntimeInt) else b
    return one.made("max", a, b, facts), one.made("min", a, b, facts)
