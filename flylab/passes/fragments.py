"""Fragments in registers: which vector holds each element now, and access at known places and at runtime ones.

An element is a lane of some vector, so an access that matches what was stored costs no operation. A place that is known
only on the device is one of a few: what is there is chosen by selects, in a tree, as `expr.lanes` does for vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flylab.passes.rewriter import Builder
from flylab.passes.vectors import joined, zeros

Lane = tuple[Any, int] | None
"""A vector and an index in it; None for what nothing was stored to."""
EQUAL, NOT_EQUAL, SIGNED_AT_LEAST = 0, 1, 5
"""Predicates of arith.cmpi."""


@dataclass(eq=False)
class Fragment:
    """A fragment of `count` elements of an MLIR type: the lane in which each of them is now."""

    alloca: Any
    element: str
    count: int

    def __post_init__(self) -> None:
        self.lanes: list[Lane] = [None] * self.count

    def put(self, value: Any, start: int, count: int) -> None:
        """Elements from `start` on are those of a vector now."""
        self.lanes[start : start + count] = [(value, i) for i in range(count)]

    def get(self, builder: Builder, start: int, count: int) -> Any:
        """Elements from `start` on as a vector, with 0 for those that nothing was stored to."""
        return gathered(builder, self.element, self.lanes[start : start + count])


@dataclass(frozen=True, eq=False)
class Place:
    """Where a pointer into a fragment leads: to one of `starts` (ascending); with an `index`, a value of the device, to
    the one that is `base` + `index`."""

    fragment: Fragment
    starts: tuple[int, ...] = (0,)
    index: Any = None
    base: int = 0

    def moved(self, by: int) -> Place:
        """The place so many elements further on."""
        return Place(self.fragment, tuple([start + by for start in self.starts]), self.index, self.base + by)

    def moved_by_value(self, builder: Builder, index: Any, steps: Sequence[int] | None) -> Place:
        """The place further on by a value of the device: one of `steps`, or anything."""
        anywhere = range(self.fragment.count)
        starts = anywhere if steps is None else sorted({start + step for start in self.starts for step in steps})
        if self.index is not None:
            kind = max((self.index.type, index.type), key=lambda kind: int(kind.width))
            index = builder.op("arith.addi", [_widened(builder, v, kind) for v in (self.index, index)], kind)
        base = self.starts[0] if self.index is None else self.base
        return Place(self.fragment, tuple(starts), index, base)

    def within(self, count: int) -> tuple[int, ...]:
        """The starts of `count` elements that the fragment has."""
        return tuple([start for start in self.starts if 0 <= start <= self.fragment.count - count])


def _widened(builder: Builder, value: Any, kind: Any) -> Any:
    return value if value.type == kind else builder.op("arith.extsi", [value], kind)


def read(builder: Builder, place: Place, count: int) -> Any:
    """`count` elements at a place, as a vector."""
    starts = place.within(count)
    values = [place.fragment.get(builder, start, count) for start in starts]
    if len(values) == 1:
        return values[0]
    steps = {b - a for a, b in zip(starts, starts[1:], strict=False)}
    if len(steps) == 1:
        return _by_bits(builder, place, starts[0], steps.pop(), values)
    return _by_order(builder, place, list(starts), values)


def write(builder: Builder, place: Place, value: Any, count: int) -> None:
    """Set the elements at a place to those of a vector. What was never stored to, and is not now, becomes 0."""
    starts = place.within(count)
    for start in starts:
        new = value
        if len(starts) > 1:
            chosen = _compared(builder, EQUAL, place.index, start - place.base)
            new = _select(builder, chosen, value, place.fragment.get(builder, start, count))
        place.fragment.put(new, start, count)


def _by_bits(builder: Builder, place: Place, first: int, step: int, values: list[Any]) -> Any:
    """The value of the place's number among evenly spaced ones, bit by bit, the highest first."""
    kind = str(place.index.type)
    number = place.index
    if first != place.base:
        number = builder.op("arith.subi", [number, builder.constant(first - place.base, kind)], kind)
    if step & (step - 1):
        number, step = builder.op("arith.divui", [number, builder.constant(step, kind)], kind), 1
    while len(values) > 1:
        half = 1 << (len(values) - 1).bit_length() - 1
        bit = builder.op("arith.andi", [number, builder.constant(half * step, kind)], kind)
        chosen = _compared(builder, NOT_EQUAL, bit, 0)
        low, high = values[:half], values[half:]
        values = [*(_select(builder, chosen, h, v) for v, h in zip(low, high, strict=False)), *low[len(high) :]]
    return values[0]


def _by_order(builder: Builder, place: Place, starts: list[int], values: list[Any]) -> Any:
    """The value of the greatest start that is not beyond the place."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    low, high = (_by_order(builder, place, starts[part], values[part]) for part in (slice(half), slice(half, None)))
    return _select(builder, _compared(builder, SIGNED_AT_LEAST, place.index, starts[half] - place.base), high, low)


def _select(builder: Builder, condition: Any, a: Any, b: Any) -> Any:
    return builder.op("arith.select", [condition, a, b], a.type)


def _compared(builder: Builder, predicate: int, value: Any, number: int) -> Any:
    from mlir import ir

    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return builder.op("arith.cmpi", [value, builder.constant(number, str(value.type))], "i1", predicate=attribute)


def _pieces(lanes: Sequence[Lane]) -> Iterator[tuple[Any, int, int]]:
    """Lanes as consecutive ones of a vector each: (vector, first, count); the vector is None for zeros."""
    at = 0
    while at < len(lanes):
        lane, end = lanes[at], at + 1
        if lane is None:
            while end < len(lanes) and lanes[end] is None:
                end += 1
            yield None, 0, end - at
        else:
            vector, first = lane
            while end < len(lanes) and (next_lane := lanes[end]) is not None:
                if next_lane[0] is not vector or next_lane[1] != first + end - at:
                    break
                end += 1
            yield vector, first, end - at
        at = end


def gathered(builder: Builder, kind: str, lanes: Sequence[Lane]) -> Any:
    """The lanes as one vector of elements of an MLIR type."""
    return joined(builder, [(zeros(builder, kind, count) if vector is None else vector, first, count)
                            for vector, first, count in _pieces(lanes)])
