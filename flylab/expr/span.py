"""The least and the greatest value of an integer of the device in coordinate arithmetic: what decides its width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.layout import Layout, get_leaves

LEAST, MOST = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class Span:
    """Every value from `low` to `high`; `fits` is False where a step on the way may leave 32 signed bits.

    The layout algebra computes with it as with a coordinate: `slice_and_offset` gives the span of an offset.

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
        """The span of a known number; a span as it is."""
        return value if isinstance(value, Span) else cls(value, value, LEAST <= value <= MOST)

    def _become(self, low: int, high: int, other: Any = 0) -> Span:
        return Span(low, high, self.fits and Span.of(other).fits and low >= LEAST and high <= MOST)

    def __mul__(self, factor: int) -> Span:
        ends = (self.low * factor, self.high * factor)
        return self._become(min(ends), max(ends), factor)

    def __add__(self, other: Any) -> Span:
        other = Span.of(other)
        return self._become(self.low + other.low, self.high + other.high, other)

    # Only numbers that are not negative are divided: see `views._read`.
    def __floordiv__(self, divisor: int) -> Span:
        return self._become(self.low // divisor, self.high // divisor)

    def __mod__(self, divisor: int) -> Span:
        return self._become(0, min(self.high, divisor - 1))

    __rmul__ = __mul__
    __radd__ = __add__


def extent(layout: Layout) -> Span:
    """The span of a layout's offsets.

    >>> extent(Layout((4, 8), (1, -4)))
    Span(low=-28, high=3, fits=True)
    """
    total = Span(0, 0)
    for size, stride in zip(get_leaves(layout.shape), get_leaves(layout.stride), strict=True):
        total = total + Span(0, max(size - 1, 0)) * stride
    return total
