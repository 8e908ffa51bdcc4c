"""What a worker counts of one instruction: the structure that native code fills and Python adds up.

An access of memory costs what its lanes' addresses make it cost, and mostly they lie as they did the last time, apart
from where the first one is. So a tally keeps the last *pattern*: the active lanes, where the first of them lies within
a line (or a word of LDS), and how far each lane is from it; and beside it what such an access adds to the totals.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_uint32, c_uint64

import numpy as np

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.memory.access import lane_bits, lanes_of
from flylab.emulator.state import WAVE_SIZE

# What an access adds: of memory the cache accesses, the lines, and the least accesses that its lanes need; of LDS the
# accesses, the phases that have an active lane, and their cycles.
ACCESSES, LINES, LEAST = 0, 1, 2
PHASES, CYCLES = 1, 2
GAINS = 4


class Pattern(ctypes.Structure):
    """What all accesses have added, what the last pattern adds, and of it the lanes and the place of the first."""

    _fields_ = [("totals", c_uint64 * GAINS), ("gains", c_uint64 * GAINS), ("lanes", c_uint64), ("phase", c_uint64),
                ("spare", c_uint64 * 6)]


class Tally(ctypes.Structure):
    """The counts of an instruction: what it did to memory and to LDS; executions and active lanes where a run begins.

    `distances` are those of the lanes' addresses from that of the first one. `bytes` and `clamped` (lanes) are counted
    for buffers alone: elsewhere every active lane is served.
    """

    _fields_ = [("memory", Pattern), ("lds", Pattern), ("distances", c_uint64 * WAVE_SIZE),
                ("lds_distances", c_uint32 * WAVE_SIZE), ("executions", c_uint64), ("lanes", c_uint64),
                ("bytes", c_uint64), ("clamped", c_uint64), ("spare", c_uint64 * 4)]


def add(b: Builder, tally: str, name: str, more: Value | int) -> None:
    """Adds to a count of a tally."""
    b.set_field(tally, Tally, name, b.field(tally, Tally, name) + more)


class Seen:
    """An access beside the last pattern that a tally keeps of memory or of LDS (`name`).

    `lanes` are those served, an i64; `addresses` a vector; `first` the address of the first lane, of which `phase` is
    what decides the cost.
    """

    def __init__(self, b: Builder, tally: str, name: str, lanes: Value, distances: Value, phase: Value):
        self.b, self.lanes, self.phase = b, lanes, phase
        self.pattern = b.at(tally, getattr(Tally, name).offset)
        self._distances_at = b.at(tally, getattr(Tally, "distances" if name == "memory" else "lds_distances").offset)
        self.distances = lanes_of(b, lanes).select(distances, 0)

    def is_new(self) -> Value:
        """True where the access is not like the last one."""
        b = self.b
        far = lane_bits(b, self.distances.cmp("ne", b.load(self._distances_at, self.distances.type, WAVE_SIZE, 64)))
        return (b.field(self.pattern, Pattern, "lanes").cmp("ne", self.lanes)
                | b.field(self.pattern, Pattern, "phase").cmp("ne", self.phase) | far.cmp("ne", 0))

    def keep(self) -> None:
        """Makes the access the last one."""
        self.b.store(self.distances, self._distances_at, 64)
        self.b.set_field(self.pattern, Pattern, "lanes", self.lanes)
        self.b.set_field(self.pattern, Pattern, "phase", self.phase)

    def count(self) -> None:
        """Adds what the last pattern adds to the totals."""
        b, totals = self.b, self.b.at(self.pattern, Pattern.totals.offset)
        gains = b.load(b.at(self.pattern, Pattern.gains.offset), "i64", GAINS, 32)
        b.store(b.load(totals, "i64", GAINS, 32) + gains, totals, 32)


def gain_at(b: Builder, tally: str, name: str, number: int) -> str:
    """The pointer to a gain of a pattern."""
    return b.at(tally, getattr(Tally, name).offset + Pattern.gains.offset + 8 * number)


def added_up(tables: Sequence[memoryview], instructions: int) -> np.ndarray:
    """The tallies of all workers as one structured array, an entry for each instruction."""
    found = [np.frombuffer(table, np.dtype(Tally), instructions) for table in tables]
    total: np.ndarray = found[0].copy()
    for name in ("executions", "lanes", "bytes", "clamped"):
        total[name] = sum(table[name] for table in found)
    for name in ("memory", "lds"):
        total[name]["totals"] = sum(table[name]["totals"] for table in found)
    return total
