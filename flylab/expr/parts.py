"""Whose part a tensor is: of which tiled copy or MMA, which elements in which order, and whether it goes beyond.

A copy goes element by element, in the order of the two sides' coordinates. What the parts are of is noted on tensors,
so that a copy of parts in different orders, and one that goes beyond a tensor, are refused instead of done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from flylab.atoms import MmaOperand, TiledCopy, TiledMma
from flylab.atoms.threads import of_thread
from flylab.expr.numeric import Numeric
from flylab.expr.room import Room
from flylab.layout import ComposedLayout, Layout, append, coalesce, cosize, get_leaves, idx2crd, product, size
from flylab.layout import slice as sliced
from flylab.targets import WAVE_SIZE

Beyond = tuple[tuple[bool, ...], ...]
"""For each mode of a tensor and each tile along it: whether the tile goes beyond the tensor there."""


@dataclass(frozen=True)
class Part:
    """A part of one thread: of a tiled copy's source or destination ("src", "dst"), or of a tiled MMA's "A", "B", "C".
    """

    tiled: Any
    side: str
    extents: tuple[int, ...] | None = None
    """Of the tensor that was partitioned, the elements of each mode; None where one is known only on the device."""
    stages: int = 1
    """Of a fragment with a last mode for buffering."""
    kept: tuple[Any, ...] = ()
    """The coordinates of the slices that were taken of the part since."""
    beyond: Beyond = ()
    whole: str = ""
    """What goes beyond, for an error."""

    def at(self, coord: Any) -> Part:
        """The note of a slice of the part."""
        return replace(self, kept=(*self.kept, coord))

    @property
    def of_mma(self) -> bool:
        """True where it is the part of a tiled MMA, whose fragments are in the order of its atoms."""
        return isinstance(self.tiled, TiledMma)

    @property
    def goes_beyond(self) -> bool:
        """Whether some of its elements surely lie outside of the tensor for some thread, of what the slices kept."""
        modes: list[tuple[bool, ...]] = [(), *self.beyond]
        for coord in self.kept:
            if not isinstance(coord, tuple) or len(coord) != len(modes):
                return False
            at = zip(coord, modes, strict=True)
            if any([_static(place) is not None and any(flags[_static(place):][:1]) for place, flags in at]):
                return True
            modes = [flags if place is None else () for place, flags in zip(coord, modes, strict=True)
                     if place is None or isinstance(place, tuple)]
        return any([any(flags) for flags in modes])

    def values(self) -> Layout:
        """The value's number -> the element of the tensor, column-major, counted from the first value's."""
        assert self.extents is not None
        layout = _parts(self.tiled, self.side, self.extents)[0]
        if self.stages > 1:
            layout = append(layout, Layout(self.stages, product(self.extents)))
        for coord in self.kept:
            layout = sliced(layout, _at_zero(coord))
        return layout

    def first_of(self, thread: int) -> int:
        """The first element of a thread, column-major."""
        assert self.extents is not None
        place = self.tiled.thread_of(self.side, self.tiled.thread_vmnk(thread)) if self.of_mma else thread
        found: int = _parts(self.tiled, self.side, self.extents)[1](place)
        return found


def _static(place: Any) -> int | None:
    if isinstance(place, Numeric):
        return int(place.value) if place.is_static else None
    return place if isinstance(place, int) else None


def _at_zero(coord: Any) -> Any:
    if isinstance(coord, tuple):
        return tuple([_at_zero(place) for place in coord])
    return None if coord is None else 0


def letter_of(operand: MmaOperand) -> str:
    """The matrix that a part is of: D lies as C."""
    return "C" if operand is MmaOperand.D else operand.name


def part_of(tiled: Any, side: str, layout: Any, stages: int = 1) -> Part:
    """The note of a part of a tensor with this layout."""
    extents = extents_of(layout)
    known = all([isinstance(extent, int) for extent in extents])
    return Part(tiled, side, extents if known else None, stages)


def extents_of(layout: Any) -> tuple[Any, ...]:
    """The elements of a layout along each of its modes."""
    shape = layout.shape
    return tuple([size(mode) for mode in shape]) if isinstance(shape, tuple) else (size(shape),)


def _rule(tiled: Any, side: str, layout: Layout) -> Any:
    if isinstance(tiled, TiledCopy):
        return tiled.threads_src(layout) if side == "src" else tiled.threads_dst(layout)
    return tiled.threads_of(side, layout)


@cache
def _parts(tiled: Any, side: str, extents: tuple[int, ...]) -> tuple[Layout, Layout]:
    """The values of the first thread, and the threads, as elements of a tensor, column-major."""
    parts = _rule(tiled, side, Layout(extents if len(extents) > 1 else extents[0]))
    first = tiled.thread_of(side, (0, 0, 0, 0)) if isinstance(tiled, TiledMma) else 0
    return of_thread(parts, first)[0], parts[0][0]


def beyond(tiled: Any, side: str, layout: Any, space: str, room: Room | None) -> Beyond:
    """Which tiles along each mode of a tensor go beyond it; none where nothing is there to overrun: behind a buffer's
    descriptor."""
    extents = extents_of(layout)
    found = _beyond(tiled, side, tuple([extent if isinstance(extent, int) else 0 for extent in extents]))
    if not found or space != "buffer":
        return found
    if room is None or isinstance(layout, ComposedLayout):
        return ()
    modes = layout if isinstance(layout.shape, tuple) else (layout,)
    ends = [get_leaves(mode.shape)[-1] * get_leaves(mode.stride)[-1] for mode in modes]
    past = [isinstance(end, int) and end >= room.count for end in ends] + [False]
    return tuple([() if outside else flags for flags, outside in zip(found, past, strict=False)])


@cache
def _beyond(tiled: Any, side: str, extents: tuple[int, ...]) -> Beyond:
    """The same by the extents alone, of which 0 is one that is not known."""
    probed = tuple([extent or 1 for extent in extents])
    if len(_rule(tiled, side, Layout(probed))) != 1 + len(extents):
        extents = probed = (product(probed),) if all(extents) else (1,)
    found: list[tuple[bool, ...]] = []
    for mode, extent in enumerate(extents):
        steps = tuple([int(mode == other) for other in range(len(extents))])
        parts = _rule(tiled, side, Layout(probed, steps) if len(probed) > 1 else Layout(probed[0], 1))
        last, rest = cosize(parts[0]) - 1, parts[mode + 1]
        found.append(tuple([last + rest(tile) >= extent for tile in range(size(rest))]) if extent else ())
    return tuple(found) if any([any(flags) for flags in found]) else ()


def difference(mine: Part, other: Part) -> tuple[int, int, Any, Any] | None:
    """The first value in which two parts of tensors with the same modes M and K differ, as (thread, value, coordinate
    of the one, of the other); None where they agree, or cannot be compared."""
    if mine.extents is None or other.extents is None or mine.extents[:2] != other.extents[:2]:
        return None
    x, y = mine.values(), other.values()
    if size(x) != size(y):
        return None
    if coalesce(x) != coalesce(y):
        for value in range(size(x)):
            if x(value) != y(value):
                return 0, value, idx2crd(x(value), mine.extents), idx2crd(y(value), other.extents)
    thread = 1
    while thread < min(mine.tiled.num_threads, other.tiled.num_threads, WAVE_SIZE):
        if mine.first_of(thread) != other.first_of(thread):
            return (thread, 0, idx2crd(mine.first_of(thread), mine.extents),
                    idx2crd(other.first_of(thread), other.extents))
        thread *= 2
    return None
