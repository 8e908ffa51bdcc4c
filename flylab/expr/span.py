"""The least and the greatest value of an integer of the device in coordinate arithmetic: what decides its width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.layout import ComposedLayout, get_leaves
from flylab.layout.decisions import last
from flylab.layout.runtime_int import RuntimeInt

LEAST, MOST = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class Span:
    """Every value from `low` to `high`; `fits` is False where a step on the way may leave 32 signed bits.

    >>> Span(0, 255) * 4 + 3
    Span(low=3, high=1023, fits=True)
    >>> (Span(0, 2**30) * 4).fits
    False
    """

    low: int
    high: int
    fits: bool = True

    @classmethod
    def of(cls, value: Any) -> Span:
        """The span of a number, known or not; a span as it is."""
        if isinstance(value, Span):
            return value
        if isinstance(value, RuntimeInt):
            return cls(value.low, value.high, value.bits == 32 and value.high <= MOST)
        return cls(value, value, LEAST <= value <= MOST)

    def _become(self, low: int, high: int, other: Any = 0) -> Span:
        return Span(low, high, self.fits and Span.of(other).fits and low >= LEAST and high <= MOST)

    def __mul__(self, factor: int) -> Span:
        ends = (self.low * factor, self.high * factor)
        return self._become(min(ends), max(ends), factor)

    def __add__(self, other: Any) -> Span:
        other = Span.of(other)
        return self._become(self.low + other.low, self.high + other.high, other)

    __rmul__ = __mul__
    __radd__ = __add__


def extent(layout: Any) -> Span:
    """The span of a layout's offsets; of a composed one through its swizzle.

    >>> from flylab.layout import Layout, Swizzle
    >>> extent(Layout((4, 8), (1, -4)))
    Span(low=-28, high=3, fits=True)
    >>> extent(ComposedLayout(Swizzle(1, 0, 2), 8, Layout(8, 1)))
    Span(low=0, high=15, fits=True)
    """
    if isinstance(layout, ComposedLayout):
        inside = Span.of(layout.offset) + extent(layout.inner)
        return inside if layout.outer is None else Span.of(layout.outer(RuntimeInt(inside.low, inside.high)))
    total = Span(0, 0)
    for size, stride in zip(get_leaves(layout.shape), get_leaves(layout.stride), strict=True):
        if size != 0:
            furthest = Span.of(last(size) * stride)
            total = total + Span(min(furthest.low, 0), max(furthest.high, 0), furthest.fits)
    return total
