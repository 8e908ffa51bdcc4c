"""What layouts mean, written down a second time as plainly as possible: the tests compare the algebra with this.

Nothing here uses the algebra; only `.shape` and `.stride` of a Layout are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as combinations
from typing import Any

from hypothesis import strategies as st

from flylab.layout import Layout


def size(shape: Any) -> int:
    """The number of coordinates."""
    if isinstance(shape, tuple):
        total = 1
        for mode in shape:
            total *= size(mode)
        return total
    return shape


def coords(shape: Any) -> list[Any]:
    """All hierarchical coordinates, the first mode fastest."""
    if not isinstance(shape, tuple):
        return list(range(shape))
    backwards = combinations(*[coords(mode) for mode in reversed(shape)])
    return [tuple(reversed(coord)) for coord in backwards]


def value(coord: Any, stride: Any) -> int:
    """The sum of coordinate * stride."""
    if isinstance(coord, tuple):
        return sum(map(value, coord, stride))
    return coord * stride


def table(layout: Layout) -> list[int]:
    """The index at each coordinate, in colexicographic order."""
    return [value(coord, layout.stride) for coord in coords(layout.shape)]


def flat(layout: Layout) -> list[tuple[int, int]]:
    """The (extent, stride) leaves, unit modes left out."""
    def walk(shape: Any, stride: Any) -> Iterator[tuple[int, int]]:
        if isinstance(shape, tuple):
            for pair in zip(shape, stride, strict=True):
                yield from walk(*pair)
        elif shape != 1:
            yield shape, stride

    return list(walk(layout.shape, layout.stride))


def extended(layout: Layout, index: int) -> int:
    """The index at an integer coordinate that may lie past the end, where the last mode goes on."""
    modes = flat(layout)
    total = 0
    for position, (extent, stride) in enumerate(modes):
        last = position == len(modes) - 1
        total += (index if last else index % extent) * stride
        index //= extent
    return total


def factorizations(number: int) -> Iterator[tuple[int, ...]]:
    """Every ordered way to write a number as a product of factors above 1."""
    if number == 1:
        yield ()
    for factor in range(2, number + 1):
        if number % factor == 0:
            for rest in factorizations(number // factor):
                yield (factor, *rest)


def is_some_layout(values: list[int]) -> bool:
    """Whether any layout of one (nested) mode has these values, by trying all its shapes."""
    for extents in factorizations(len(values)):
        strides, unit = [], 1
        for extent in extents:
            strides.append(values[unit])
            unit *= extent
        if [value(coord, tuple(strides)) for coord in coords(extents)] == values:
            return True
    return False


def injective(layout: Layout) -> bool:
    """Whether no two coordinates have the same index, broadcast modes left out."""
    modes = [mode for mode in flat(layout) if mode[1] != 0]
    indices = [value(coord, tuple(s for _, s in modes)) for coord in coords(tuple(e for e, _ in modes))]
    return len(set(indices)) == len(indices)


def _forms(leaves: int) -> list[Any]:
    """Every way to nest that many leaves in tuples of up to three modes, three deep at most; None is a leaf."""
    def rows(count: int, modes: int, deep: int) -> Iterator[tuple[Any, ...]]:
        if modes == 0:
            if count == 0:
                yield ()
            return
        for first in range(1, count - modes + 2):
            for mode in forms(first, deep):
                for rest in rows(count - first, modes - 1, deep):
                    yield (mode, *rest)

    def forms(count: int, deep: int) -> Iterator[Any]:
        if count == 1:
            yield None
        if deep:
            for modes in range(1, 4):
                yield from rows(count, modes, deep - 1)

    return list(forms(leaves, 3))


FORMS = {leaves: _forms(leaves) for leaves in range(1, 5)}


@st.composite
def shapes(draw: Any, most: int = 128, extent: int = 8, leaves: int = 4) -> Any:
    """Nested shapes with unit modes, not larger than `most`."""
    form = draw(st.integers(1, leaves).flatmap(lambda count: st.sampled_from(FORMS[count])))
    room = [most]

    def fill(mode: Any) -> Any:
        if mode is not None:
            return tuple(map(fill, mode))
        drawn = draw(st.integers(1, min(extent, room[0])))
        room[0] //= drawn
        return drawn

    return fill(form)


@st.composite
def layouts(draw: Any, most: int = 128, low: int = 0, high: int = 40, extent: int = 8, leaves: int = 4) -> Layout:
    """Layouts with any strides from low to high, often 0, small, or continuing the mode before."""
    shape = draw(shapes(most, extent, leaves))
    reached = [1]

    def strides(mode: Any) -> Any:
        if isinstance(mode, tuple):
            return tuple(map(strides, mode))
        step = draw(st.one_of(st.just(reached[0]), st.integers(low, high), st.just(0)))
        reached[0] = mode * step
        return step

    return Layout(shape, strides(shape))


@st.composite
def disjoint(draw: Any, most: int = 64, broadcast: bool = True) -> Layout:
    """Injective layouts: modes in any order, gaps between them, broadcast modes among them."""
    shape = draw(shapes(most, 6))
    extents = [extent for extent, _ in flat(Layout(shape))]
    order = draw(st.permutations(range(len(extents))))
    strides, span = [0] * len(extents), 1
    for position in order:
        if broadcast and draw(st.integers(0, 5)) == 0:
            continue
        span *= draw(st.sampled_from([1, 1, 1, 2, 3]))
        strides[position] = span
        span *= extents[position]
    rest = iter(strides)

    def fill(mode: Any) -> Any:
        if isinstance(mode, tuple):
            return tuple(map(fill, mode))
        return 0 if mode == 1 else next(rest)

    return Layout(shape, fill(shape))


@st.composite
def bijections(draw: Any, most: int = 64, rank: int | None = None) -> Layout:
    """Layouts onto 0 .. size - 1 with flat modes in any order."""
    count = rank or draw(st.integers(1, 3))
    extents = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count).filter(lambda e: size(tuple(e)) <= most))
    strides, span = [0] * count, 1
    for position in draw(st.permutations(range(count))):
        strides[position], span = span, span * extents[position]
    return Layout(tuple(extents), tuple(strides))
