"""Where in a fragment a coordinate of the device may lead: the few elements that a runtime index chooses among."""

from __future__ import annotations

from typing import Any

from flylab.layout import Layout, get_leaves, size
from flylab.layout.runtime_int import RuntimeInt


def steps(coord: Any, layout: Layout) -> set[int]:
    """The offsets that a coordinate may have, whose runtime numbers are within their modes.

    >>> sorted(steps((RuntimeInt(), 1), Layout((3, 2), (2, 8))))
    [8, 10, 12]
    >>> sorted(steps((None, RuntimeInt(divisor=2)), Layout((3, (2, 2)), (1, (3, 12)))))
    [0, 12]
    """
    if coord is None:
        return {0}
    if isinstance(coord, tuple):
        found = {0}
        for each, mode in zip(coord, layout, strict=True):
            found = {a + b for a in found for b in steps(each, mode)}
        return found
    if isinstance(coord, RuntimeInt):
        first = -(-max(coord.low, 0) // coord.divisor) * coord.divisor
        return {layout(i) for i in range(first, min(coord.high + 1, size(layout)), coord.divisor)}
    return {layout(coord)}


def note_steps(moved: Any, coord: Any, layout: Any) -> None:
    """Keep with a pointer into registers, moved by a coordinate's offset, which offsets that may be."""
    from mlir import ir

    found = sorted(steps(coord, layout)) if isinstance(layout, Layout) else []
    if found:
        moved.owner.attributes["steps"] = ir.StringAttr.get(" ".join(map(str, found)))


def lowest(layout: Any) -> int:
    """The least offset of a layout: below 0 where strides are negative.

    >>> lowest(Layout((4, 3), (-1, 4))), lowest(Layout(4))
    (-3, 0)
    """
    if not isinstance(layout, Layout):
        return 0
    pairs = zip(get_leaves(layout.shape), get_leaves(layout.stride), strict=True)
    return sum(min((extent - 1) * stride, 0) for extent, stride in pairs)
