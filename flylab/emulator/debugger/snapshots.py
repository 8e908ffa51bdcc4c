"""Snapshots of a workgroup: its memory in pages that are shared with the snapshot before where they are equal.

They are taken at intervals; when they are too many or take too much room, every second one is dropped and the interval
doubles. So the way from the nearest snapshot to any time stays short however long a workgroup runs.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

PAGE = 4096
# Instructions between two snapshots at first, and at least so many for each page that the one before had to look at.
FIRST_INTERVAL, INTERVAL_PER_PAGE = 1024, 16
# Snapshots that are kept at most, and those that are kept whatever room they take.
MOST, FEWEST = 128, 8
DEFAULT_ROOM = 32 << 20

Pages = tuple[bytes, ...]
Writes = tuple[int, ...]


@dataclass(frozen=True)
class Region:
    """A span of memory that is part of the state.

    `counted` is set for memory that only instructions write that are counted: the number of their count.
    """

    address: int
    nbytes: int
    counted: int | None = None

    @property
    def pages(self) -> list[tuple[int, int]]:
        """Address and size of each page."""
        return [(self.address + at, min(PAGE, self.nbytes - at)) for at in range(0, self.nbytes, PAGE)]


@dataclass(frozen=True)
class Snapshot:
    """The state at a time: the pages of each region, the counts of writes till then, and what else there is."""

    time: int
    writes: Writes
    pages: tuple[Pages, ...]
    steps: tuple[int, ...]
    """Instructions of each wave."""
    rest: Any


class History:
    """The snapshots of one workgroup, in the order of time; the first is its beginning and is never dropped.

    `room` is what they may take together, in bytes, beyond what the first one takes.
    """

    def __init__(self, regions: Sequence[Region], room: int = DEFAULT_ROOM):
        self.regions, self.room = tuple(regions), room
        self.interval = FIRST_INTERVAL
        self.snapshots: list[Snapshot] = []
        self.nbytes = 0
        """Bytes of all pages, each counted once."""
        self._places = [region.pages for region in regions]
        self._first = self._looked_at = 0

    @property
    def due(self) -> int:
        """The time from which on the next snapshot is wanted."""
        return self.snapshots[-1].time + max(self.interval, INTERVAL_PER_PAGE * self._looked_at)

    def take(self, time: int, writes: Writes, steps: tuple[int, ...], rest: Any) -> None:
        """Adds the state as it is now, which is later than all snapshots."""
        last = self.snapshots[-1] if self.snapshots else None
        pages, new = [], dict[int, int]()
        self._looked_at = 0
        for number, region in enumerate(self.regions):
            before: Pages = last.pages[number] if last else ()
            if last and region.counted is not None and last.writes[region.counted] == writes[region.counted]:
                pages.append(before)
                continue
            found = self._read(number, before)
            new |= {id(page): len(page) for page, old in zip(found, before or (None,) * len(found), strict=True)
                    if page is not old}
            pages.append(found)
            if last or region.counted is None:  # the next one may not need to look at what is counted
                self._looked_at += len(found)
        self.snapshots.append(Snapshot(time, writes, tuple(pages), steps, rest))
        self.nbytes += sum(new.values())
        if last is None:
            self._first = self.nbytes
        if len(self.snapshots) > MOST or self.nbytes - self._first > self.room and len(self.snapshots) > FEWEST:
            self._thin()

    def _read(self, number: int, before: Pages) -> Pages:
        read = ctypes.string_at
        now = [read(*place) for place in self._places[number]]
        if not before:
            return _shared(now)
        found = tuple(old if old == new else new for old, new in zip(before, now, strict=True))
        return before if all(map(_is, found, before)) else found

    def _thin(self) -> None:
        """Drops every second snapshot."""
        self.snapshots = self.snapshots[::2]
        self.interval *= 2
        every = {id(page): len(page) for one in self.snapshots for pages in one.pages for page in pages}
        self.nbytes = sum(every.values())

    def before(self, time: int) -> Snapshot:
        """The last snapshot at or before a time."""
        return self.snapshots[bisect_right(self.snapshots, time, key=lambda s: s.time) - 1]

    def before_step(self, wave: int, step: int) -> Snapshot:
        """The last snapshot at which a wave has executed fewer than `step` instructions, or the first one."""
        place = bisect_right(self.snapshots, step - 1, key=lambda s: s.steps[wave]) - 1
        return self.snapshots[max(place, 0)]

    def restore(self, snapshot: Snapshot, writes: Writes | None) -> None:
        """Puts a snapshot's memory back; `writes` is what is counted now, or None where memory may be anything."""
        read, move = ctypes.string_at, ctypes.memmove
        for region, places, pages in zip(self.regions, self._places, snapshot.pages, strict=True):
            at = region.counted
            if at is not None and writes is not None and writes[at] == snapshot.writes[at]:
                continue
            for (address, size), page in zip(places, pages, strict=True):
                if read(address, size) != page:
                    move(address, page, size)


def _is(one: object, other: object) -> bool:
    return one is other


def _shared(pages: Iterable[bytes]) -> Pages:
    """Pages of which equal ones are one object."""
    known: dict[bytes, bytes] = {}
    return tuple(known.setdefault(page, page) for page in pages)
