"""The memory of a launch as native code looks it up: first as kernels see it, then where the host has it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace

from flylab.emulator.arrays import Buffer
from flylab.emulator.state import Memory, Range


class Ranges:
    """The list of ranges for `given`, the memory of arguments, and `own`, what a launch adds.

    The addresses of `given` on the host come last: a kernel may have got one as an integer, or out of an array. With
    `holes`, what lies between the elements of a strided array is outside of it.
    """

    def __init__(self, given: Sequence[Buffer], own: Sequence[Buffer], holes: bool):
        seen = [b for b in (*given, *own) if b.nbytes > 0]
        hosts = [replace(b, window=0) for b in given if b.nbytes > 0 and b.window]
        self._marks = {b.view: Memory(len(b.view.marks), b.view.marks) for b in seen if holes and b.view}
        self.list = (Range * (1 + len(seen) + len(hosts)))(
            Range((1 << 64) - 1, 0, 0), *map(self._range, (*seen, *hosts)))
        self.address = ctypes.addressof(self.list)

    def __len__(self) -> int:
        return len(self.list)

    def _range(self, buffer: Buffer) -> Range:
        found = Range(buffer.start, buffer.end, buffer.end if buffer.writable else buffer.start, buffer.distance)
        view = buffer.view
        if view in self._marks and view.marks:
            found.marks, found.period = self._marks[view].address, view.period
            found.unit = view.unit.bit_length() - 1
        return found
