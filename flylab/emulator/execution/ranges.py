"""The memory of a launch as native code looks it up: first as kernels see it, then where the host has it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from flylab.emulator.arrays import Buffer
from flylab.emulator.state import Memory, Range


class Ranges:
    """The list of ranges for `given`, the memory of arguments, and `own`, what a launch adds.

    The addresses of `given` on the host come last: a kernel may have got one as an integer, or out of an array. With
    `holes`, what lies between the elements of a strided array is outside of it.
    """

    def __init__(self, given: Sequence[Buffer], own: Sequence[Buffer], holes: bool):
        seen = [b for b in (*given, *own) if b.nbytes > 0]
        marked = [b.view for b in given if b.nbytes > 0 and b.view and b.view.marks] if holes else []
        self._marks = {view: Memory(len(view.marks), view.marks) for view in marked}
        found = [self._range(b, b.start) for b in seen]
        found += [self._range(b, b.copy_of or b.address) for b in given if b.nbytes > 0 and b.window]
        self.list = (Range * (1 + len(found)))(Range((1 << 64) - 1, 0, 0), *found)
        self.address = ctypes.addressof(self.list)

    def __len__(self) -> int:
        return len(self.list)

    def _range(self, buffer: Buffer, start: int) -> Range:
        """A buffer's memory as it is at the address `start`."""
        end = start + buffer.nbytes
        found = Range(start, end, end if buffer.writable else start, buffer.address - start & (1 << 64) - 1)
        view = buffer.view
        if self._marks and view in self._marks:
            found.marks, found.period = self._marks[view].address, view.period
            found.unit = view.unit.bit_length() - 1
        return found
