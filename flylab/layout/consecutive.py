"""Which elements of a layout lie one after the other in memory, through a swizzle and beside runtime numbers too.

A swizzle S<bits, base, shift> leaves the lowest `base` bits of an index as they are, so an aligned run of 2**base
indices stays a run. How much of an index with runtime parts is aligned, the known divisors of these tell.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.algebra import coalesce
from flylab.layout.construct import size
from flylab.layout.runtime_int import RuntimeInt, divisor_of
from flylab.layout.runtime_leaves import map_runtime, numbers, runtime_leaves
from flylab.layout.swizzle import ComposedLayout, Swizzle

MOST_LISTED = 1 << 16
"""A layout of more elements is not looked at element by element."""


def runs(layout: Any) -> list[tuple[int, int]]:
    """The elements of a layout, in the order of its coordinates, as runs: (first coordinate, how many elements follow
    each other in memory from there). What hangs on runtime numbers counts as apart.

    >>> from flylab.layout import Layout, parse
    >>> runs(Layout((4, 2), (1, 16)))
    [(0, 4), (4, 4)]
    >>> runs(parse("S<2,2,2> o ?{div=4} o 8:1")), runs(parse("S<2,2,2> o ?{div=2} o 4:1"))
    ([(0, 4), (4, 4)], [(0, 2), (2, 2)])
    """
    result: list[tuple[int, int]] = []
    following = None
    for i, place in enumerate(_places(layout)):
        if place == following:
            first, count = result[-1]
            result[-1] = (first, count + 1)
        else:
            result.append((i, 1))
        following = place + 1
    return result


def consecutive(layout: Any, wanted: int = 1) -> int:
    """The most elements of the first mode, or of a layout of one mode, of which each such group lies one after the
    other; where `wanted` divides it, less may be told.

    >>> from flylab.layout import Layout, parse
    >>> consecutive(Layout((8, 4), (1, 64))), consecutive(Layout((8, 4), (4, 1)))
    (8, 1)
    >>> consecutive(parse("S<3,3,3> o ?{div=8} o (64,4):(1,64)"), 8)
    8
    """
    inner = layout.inner if isinstance(layout, ComposedLayout) else layout
    run = coalesce(first_mode(inner))
    fastest = run if not isinstance(run.shape, tuple) else run[0]
    count = size(fastest) if fastest.stride == 1 else 1
    if inner is layout or count == 1:
        return count
    others = inner.stride[1:] if isinstance(inner.shape, tuple) else ()
    steps = numbers((layout.offset, numbers(run.stride)[1:], others))
    surely = gcd(count, 1 << _base(layout), *[divisor_of(step) for step in steps])
    if surely % wanted == 0 or not isinstance(size(layout), int) or size(layout) > MOST_LISTED:
        return surely
    return gcd(count, *[first for first, _ in runs(layout)])


def first_mode(layout: Any) -> Any:
    """The first of several modes, or the whole layout.

    >>> from flylab.layout import Layout
    >>> first_mode(Layout((8, 4), (1, 64)))
    Layout(8, 1)
    """
    return layout[0] if isinstance(layout.shape, tuple) and layout.shape else layout


def _base(layout: ComposedLayout) -> int:
    """How many low bits of an index pass through the outer part."""
    if layout.outer is None:
        return 63
    if not isinstance(layout.outer, Swizzle):
        raise LayoutError(f"{layout}: only a swizzle keeps elements together", hint="compose the two layouts first")
    return layout.outer.base if layout.outer.bits else 63


def _places(layout: Any) -> list[int]:
    """For each coordinate a number; two differ by 1 only where the elements surely follow each other."""
    unknown = runtime_leaves(layout)
    # In place of runtime numbers, steps so far apart that nothing of one meets the other.
    steps = {id(leaf): 1 << 80 * i for i, leaf in enumerate(unknown, start=1)}
    known = map_runtime(lambda leaf: steps[id(leaf)], layout)
    if not unknown or not isinstance(layout, ComposedLayout):
        return [known(i) for i in range(size(layout))]
    inside = [layout.offset, *numbers(layout.inner.stride)]
    divisor = gcd(*[n.divisor for n in inside if isinstance(n, RuntimeInt)])
    plain = ComposedLayout(None, known.offset, known.inner)
    indices = [plain(i) for i in range(size(layout))]
    if isinstance(layout.outer, Swizzle) and divisor % layout.outer.reach == 0:
        return [layout.outer(index) for index in indices]
    aligned = gcd(divisor, 1 << _base(layout))
    # What lies in different aligned runs is apart: a gap after each.
    return [index // aligned * 2 * aligned + index % aligned for index in indices]
