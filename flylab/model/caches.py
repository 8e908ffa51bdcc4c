"""How a workgroup's accesses of memory fall into its share of the caches, from the log of a launch.

The vector L1 of a compute unit is shared by the workgroups that it holds at once, and the L2 of a die by all those of
the die: a workgroup gets its part of their lines, of which the longest unused one goes first. Its waves are taken to go
in step. Stores pass the L1. What other workgroups brought is not counted on, so the lines that come for the first time
say nothing of the memory behind the L2; those that come back, which the L2 has lost meanwhile, do: they are read anew.
An array that fits an L2 as a whole is taken to stay there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flylab.emulator.log import GLOBAL, AccessLog
from flylab.errors import FlylabError
from flylab.model.coalescing import LINE_BYTES

L1_BYTES, L2_BYTES = 32 << 10, 4 << 20
"""Of a compute unit, and of a die. Source: AMD's CDNA3 and CDNA4 white papers."""


@dataclass(frozen=True)
class CacheShares:
    """Lines that the accesses of the log touch, and the parts of them that the L2 is asked for, and reads anew."""

    lines: int
    asked_of_l2: float
    read_anew: float

    def __str__(self) -> str:
        return (f"of {self.lines:,} lines {self.asked_of_l2:.1%} are asked of the L2, and {self.read_anew:.1%} are "
                "read anew behind it (modelled)")

    __repr__ = __str__


class _Lines:
    """The lines of a cache in the order of their last use."""

    def __init__(self, most: int):
        self.most, self.held = max(most, 1), OrderedDict[int, None]()

    def has(self, line: int) -> bool:
        """Whether it holds a line, which it does from now on."""
        found = line in self.held
        if found:
            self.held.move_to_end(line)
        else:
            self.held[line] = None
            if len(self.held) > self.most:
                self.held.popitem(last=False)
        return found


def cache_shares(log: AccessLog, resident: int, units: int) -> CacheShares:
    """How the accesses of a log of one workgroup fall into lines, with `resident` workgroups on each of `units`
    compute units of a die.

    >>> import flylab, numpy as np
    >>> from flylab.kernels.elementwise.vector_add import vector_add
    >>> x = np.ones(1024, np.float32)
    >>> with flylab.watch(check=None, log=True):
    ...     log = vector_add(x, x.copy(), x.copy()).log       # 3 arrays of 32 lines, each line by 2 quarters of it
    >>> print(cache_shares(log.where(block=0), resident=8, units=32))
    of 24 lines 100.0% are asked of the L2, and 0.0% are read anew behind it (modelled)

    Raises `FlylabError` for a log of several workgroups, and for fewer than one resident workgroup or unit.
    """
    if resident < 1 or units < 1:
        raise FlylabError(f"{resident} workgroups on each of {units} compute units", hint="give one at least of each")
    if len(set(log.entries["block"].tolist())) > 1:
        raise FlylabError(f"a log of several workgroups of '{log.kernel}'", hint="give it log.where(block=0)")
    l1, l2 = _Lines(L1_BYTES // LINE_BYTES // resident), _Lines(L2_BYTES // LINE_BYTES // resident // units)
    known: set[int] = set()
    total = asked = anew = 0
    for stored, lines in _in_step(log):
        for line in lines:
            total += 1
            # A store passes the L1 without being kept there.
            if not stored and l1.has(line):
                continue
            asked += 1
            if not l2.has(line) and line in known and not stored:
                anew += not _fits(log, line * LINE_BYTES)
            known.add(line)
    return CacheShares(total, asked / total if total else 0.0, anew / total if total else 0.0)


def _in_step(log: AccessLog) -> Iterator[tuple[bool, list[int]]]:
    """Whether each access is a store, and its lines: the first accesses of all waves, then their second ones."""
    entries = log.entries[log.entries["space"] == GLOBAL]
    turn = np.zeros(len(entries), np.int64)
    for wave in np.unique(entries["wave"]):
        mine = entries["wave"] == wave
        turn[mine] = np.arange(np.count_nonzero(mine))
    for entry in entries[np.lexsort((entries["wave"], turn))]:
        lanes = np.unpackbits(np.array([entry["lanes"]], "<u8").view(np.uint8), bitorder="little").astype(bool)
        first = entry["addresses"][lanes].astype(np.int64)
        lines = {*(first // LINE_BYTES).tolist(), *((first + int(entry["bytes"]) - 1) // LINE_BYTES).tolist()}
        yield entry["does"] == "store", sorted(lines)


def _fits(log: AccessLog, address: int) -> bool:
    """Whether the array that an address lies in fits an L2."""
    for tensor in log.tensors:
        size = sum((extent - 1) * abs(stride) for extent, stride in zip(tensor.shape, tensor.strides, strict=True))
        if tensor.address - LINE_BYTES < address <= tensor.address + size:
            return size <= L2_BYTES
    return False
