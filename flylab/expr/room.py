"""How much memory lies behind a pointer, where that is known: what a view of it may reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from flylab.errors import TraceError
from flylab.expr.span import Span, extent
from flylab.layout import ComposedLayout, Layout, cosize
from flylab.layout.runtime_leaves import runtime_leaves


@dataclass(frozen=True)
class Room:
    """At most so many elements lie from a pointer on, of `whole`: an array, or what a buffer's descriptor covers."""

    count: int
    whole: Any
    moved: bool = False

    def after(self, offset: Any) -> Room:
        """What lies from `offset` elements further on: at most what does from the nearest place that can be.

        >>> Room(8, "an array").after(Span(2, 5)).count
        6
        """
        return replace(self, count=self.count - Span.of(offset).low, moved=True)

    def in_bits(self, old: int, new: int) -> Room:
        """The same in elements of another width, those that lie inside as a whole."""
        return replace(self, count=self.count * old // new)


def check_room(room: Room | None, layout: Any) -> None:
    """Refuse a known layout that goes beyond what lies behind a pointer. Raises `TraceError`."""
    if room is None or runtime_leaves(layout):
        return
    swizzled = isinstance(layout, ComposedLayout) and layout.outer is not None
    needed = cosize(layout) if swizzled else extent(layout).high + 1
    if needed > room.count:
        there = " from there on" if room.moved else ""
        raise TraceError(f"{layout} reaches over {needed} elements, and {room.whole} has {max(room.count, 0)}{there}",
                         hint="declare a larger array, or give a smaller layout")


ONE = Layout(1, 0)
"""The layout of one element."""
