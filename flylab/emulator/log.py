"""The log of a launch's accesses of memory, as plain data: who touched what, when, and which elements of which tensor.

It is made by a launch with `log=True`; every figure in it is emulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flylab.errors import DeviceError
from flylab.lds_banks import Phases, phases
from flylab.locks import cached_property
from flylab.places import SourceLine
from flylab.targets import WAVE_SIZE

GLOBAL, LDS, PRIVATE = "global", "lds", "private"
"""The spaces of addresses: device addresses, byte offsets of a workgroup's LDS, byte offsets of a lane's own memory."""

ENTRY = np.dtype([
    ("block", np.int64), ("wave", np.int32), ("instruction", np.int32), ("place", np.int32), ("visit", np.int32),
    ("time", np.int64), ("lanes", np.uint64), ("bytes", np.int32), ("space", "U7"), ("does", "U6"),
    ("addresses", np.uint64, WAVE_SIZE)])
"""An access: block (flat number), wave within it, instruction number, and of an instruction with two accesses (at two
places, or from memory and to LDS) which one, 0 or 1; how often the wave had come to it (from 0); the instructions that
its workgroup had executed, which orders accesses within it; the lanes served, as bits; bytes a lane; the space; "load",
"store" or "atomic"; and the address of each lane, 0 where it was not served."""


@dataclass(frozen=True)
class Tensor:
    """An argument as it was launched: the device address of its first element, shape, and strides in bytes."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def coordinates(self, addresses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates (bytes, rank) of the elements that bytes belong to, and which of the bytes belong to any.

        >>> matrix = Tensor("A", 4096, (2, 3), (16, 4), 4)
        >>> coordinates, inside = matrix.coordinates(np.array([4096, 4096 + 27, 4096 + 12]))
        >>> coordinates.tolist(), inside.tolist()
        ([[0, 0], [1, 2], [0, 2]], [True, True, False])

        Raises `DeviceError` for a view whose elements overlap without being the same, which have no one coordinate.
        """
        rest = addresses.astype(np.int64) - self.address
        lows = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s < 0 and n > 1]
        rest = rest - sum(lows)
        found = np.zeros((len(addresses), len(self.shape)), np.int64)
        inside = rest >= 0
        for mode in self._outer_first:
            stride, extent = abs(self.strides[mode]), self.shape[mode]
            steps = np.minimum(rest // stride, extent - 1)
            rest = rest - steps * stride
            found[:, mode] = steps if self.strides[mode] > 0 else extent - 1 - steps
        return found, inside & (rest < self.itemsize) & all(self.shape)

    @cached_property
    def _outer_first(self) -> list[int]:
        """The modes along which elements lie apart, the largest stride first."""
        apart = [n for n, extent in enumerate(self.shape) if extent > 1 and self.strides[n]]
        ordered = sorted(apart, key=lambda n: -abs(self.strides[n]))
        reach = self.itemsize
        for mode in reversed(ordered):
            if abs(self.strides[mode]) < reach:
                raise DeviceError(f"the elements of '{self.name}' overlap: shape {self.shape}, strides {self.strides} "
                                  "bytes", hint="its log has addresses, and no coordinates")
            reach += (self.shape[mode] - 1) * abs(self.strides[mode])
        return ordered


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements of a tensor that accesses touched, a row each: entry of the log, lane, and coordinates (rows, rank)."""

    tensor: Tensor
    entry: np.ndarray
    lane: np.ndarray
    coordinates: np.ndarray

    def __len__(self) -> int:
        return len(self.entry)

    def of(self, entry: int, lane: int) -> list[tuple[int, ...]]:
        """The coordinates that one lane touched in one entry, in the order of its bytes."""
        chosen = (self.entry == entry) & (self.lane == lane)
        return [tuple(row) for row in self.coordinates[chosen].tolist()]


@dataclass(frozen=True, eq=False)
class LdsTraffic:
    """An access of LDS by its lanes: their numbers, byte offsets, words (lanes, words of a lane) and their banks, the
    phase that serves each lane, and the cycles of each phase."""

    rule: Phases
    lanes: np.ndarray
    offsets: np.ndarray
    words: np.ndarray
    banks: np.ndarray
    phase: np.ndarray
    cycles: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class AccessLog:
    """Accesses of a launch in the order in which they were made, block by block; `entries` has the rows (`ENTRY`).

    `left_out` counts the accesses that came when the log was full. Accesses by scalar instructions are not in it, nor
    lanes that a buffer's descriptor cut off. A filtered log has the same form: `log.where(instruction=9, block=0)`.
    """

    kernel: str
    chip: str
    block: tuple[int, int, int]
    mnemonics: tuple[str, ...]
    texts: tuple[str, ...]
    places: tuple[SourceLine | None, ...]
    tensors: tuple[Tensor, ...]
    entries: np.ndarray
    left_out: int = 0
    source: str = "emulated"

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        spaces = [f"{np.count_nonzero(self.entries['space'] == s):,} {s}" for s in (GLOBAL, LDS, PRIVATE)]
        text = f"{len(self):,} accesses of {self.kernel} on {self.chip}: {', '.join(spaces)} ({self.source})"
        return text + (f"; {self.left_out:,} more were left out" if self.left_out else "")

    __repr__ = __str__

    def where(self, *, instruction: int | None = None, line: int | None = None, block: int | None = None,
              wave: int | None = None, thread: int | Sequence[int] | None = None, space: str | None = None,
              does: str | None = None) -> AccessLog:
        """The accesses for which everything that is given holds.

        `line` is one of the source, `block` a flat number, `thread` a flat number within a block or (x, y, z): of its
        wave's accesses only its own lane is left.
        """
        entries = self.entries
        for field, value in (("instruction", instruction), ("block", block), ("wave", wave), ("space", space),
                             ("does", does)):
            if value is not None:
                entries = entries[entries[field] == value]
        if line is not None:
            numbers = [n for n, place in enumerate(self.places) if place is not None and place.line == line]
            entries = entries[np.isin(entries["instruction"], numbers)]
        if thread is not None:
            number = self._flat(thread)
            entries = entries[entries["wave"] == number // WAVE_SIZE].copy()
            entries["lanes"] &= np.uint64(1 << number % WAVE_SIZE)
            entries = entries[entries["lanes"] != 0]
        return replace(self, entries=entries)

    def _flat(self, thread: int | Sequence[int]) -> int:
        x, y, z = (*((thread,) if isinstance(thread, int) else thread), 0, 0)[:3]
        return int(x + self.block[0] * (y + self.block[1] * z))

    def lanes(self, entry: int) -> np.ndarray:
        """The lanes that an entry served, lowest first. Raises `DeviceError` for an entry that is not there."""
        self._check(entry)
        return np.flatnonzero(_served(self.entries[entry:entry + 1])[0])

    def _check(self, entry: int) -> None:
        if not 0 <= entry < len(self):
            raise DeviceError(f"the log has no entry {entry}", hint=f"it has {len(self)}, numbered from 0")

    def tensor(self, name: str) -> Tensor:
        """An argument that was an array, by its name. Raises `DeviceError` where there is none."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise DeviceError(f"the launch of '{self.kernel}' has no array '{name}'",
                          hint=f"it has {', '.join(t.name for t in self.tensors) or 'none'}")

    def elements(self, name: str) -> Elements:
        """The elements of an array that the accesses of this log touched, entry by entry, lane by lane, byte by byte.

        An element is there once for each lane of each entry that touches any of its bytes.
        """
        tensor = self.tensor(name)
        found = self.entries["space"] == GLOBAL
        entry, lane = np.nonzero(_served(self.entries) & found[:, None])
        sizes = self.entries["bytes"][entry].astype(np.int64)
        rows = np.repeat(np.arange(len(entry)), sizes)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        addresses = self.entries["addresses"][entry, lane].astype(np.int64)[rows] + within
        coordinates, inside = tensor.coordinates(addresses)
        rows, coordinates = rows[inside], coordinates[inside]
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]) | (coordinates[1:] != coordinates[:-1]).any(axis=1)
        return Elements(tensor, entry[rows[new]], lane[rows[new]], coordinates[new])

    def lds(self, entry: int) -> LdsTraffic:
        """The words and banks of an entry that is an access of LDS. Raises `DeviceError` for another one."""
        self._check(entry)
        row = self.entries[entry]
        if row["space"] != LDS:
            raise DeviceError(f"entry {entry} is a {row['does']} of {row['space']} memory, and none of LDS",
                              hint='log.where(space="lds") has those of LDS')
        rule = phases(self.chip, self.mnemonics[row["instruction"]])
        lanes, offsets = self.lanes(entry), row["addresses"].astype(np.int64)
        touched = [list(rule.words(int(offsets[lane]))) for lane in lanes]
        width = max(map(len, touched), default=0)
        words = np.array([w + w[-1:] * (width - len(w)) for w in touched], np.int64).reshape(len(lanes), width)
        of_lane = {lane: n for n, phase in enumerate(rule.lanes) for lane in phase}
        return LdsTraffic(rule, lanes, offsets[lanes], words, words % rule.banks,
                          np.array([of_lane[lane] for lane in lanes.tolist()], np.int64),
                          rule.cycles(offsets.tolist(), int(row["lanes"])))



def _served(entries: np.ndarray) -> np.ndarray:
    """Which lanes each entry served, as booleans (entries, 64)."""
    bits: np.ndarray = entries["lanes"][:, None] >> np.arange(WAVE_SIZE, dtype=np.uint64) & np.uint64(1)
    return bits.astype(bool)
