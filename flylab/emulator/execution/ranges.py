"""The memory of a launch as native code looks it up: first as kernels see it, then where the host has it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

from flylab.emulator.arrays import Buffer
from flylab.emulator.state import Memory, Range

NOTHING = ((1 << 64) - 1, 0, 0, 0, 0, 0, 0)
"""The fields of the first range, which is empty."""


class Ranges:
    """The list of ranges for `given`, the memory of arguments, and `own`, what a launch adds.

    The addresses of `given` on the host come last: a kernel may have got one as an integer, or out of an array. With
    `holes`, what lies between the elements of a strided array is outside of it.
    """

    def __init__(self, given: Sequence[Buffer], own: Sequence[Buffer], holes: bool):
        seen = [b for b in (*given, *own) if b.nbytes > 0]
        marked = [b.view for b in given if b.nbytes > 0 and b.view and b.view.marks] if holes else []
        self._marks = {view: Memory(len(view.marks), view.marks) for view in marked}
        numbers = [self._range(b, b.start) for b in seen]
        numbers += [self._range(b, b.copy_of or b.address) for b in given if b.nbytes > 0 and b.window]
        flat = [n for each in (NOTHING, *numbers) for n in each]
        self.list = (Range * (1 + len(numbers))).from_buffer_copy(struct.pack(f"={len(flat)}Q", *flat))
        self.address = ctypes.addressof(self.list)

    def __len__(self) -> int:
        return len(self.list)

    def _range(self, buffer: Buffer, start: int) -> tuple[int, ...]:
        """The fields of a `Range`: a buffer's memory as it is at the address `start`."""
        end, view = start + buffer.nbytes, buffer.view
        marks, period, unit = 0, 0, 0
        if self._marks and view in self._marks:
            marks, period, unit = self._marks[view].address, view.period, view.unit.bit_length() - 1
        return (start, end, end if buffer.writable else start, buffer.address - start & (1 << 64) - 1, marks, period,
                unit)
