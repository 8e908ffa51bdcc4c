"""The session's own memory: copies of the arrays that a launch gets, which keep how arrays overlap.

The kernel sees copies at the addresses at which it would see the arrays.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flylab.dtypes import of_numpy
from flylab.emulator.arrays import Buffer, View
from flylab.emulator.state import Memory
from flylab.errors import FlylabError

# A copy begins as many bytes after a multiple of this as its original.
PAGE = 4096


class Copies:
    """Copies of the memory of arrays: `buffers`, in order. Spans that overlap or touch are one copy."""

    def __init__(self, originals: Sequence[Buffer]):
        self._spans: list[tuple[int, int, Memory]] = []
        for low, high in _joined([(b.address, b.address + b.nbytes) for b in originals if b.nbytes > 0]):
            memory = Memory(high - low + PAGE, alignment=PAGE)
            ctypes.memmove(memory.address + low % PAGE, low, high - low)
            self._spans.append((low, memory.address + low % PAGE, memory))
        self.buffers = [self._copied(buffer) for buffer in originals]

    def _copied(self, buffer: Buffer) -> Buffer:
        if buffer.nbytes <= 0:
            return buffer
        low, start, _ = self._spans[bisect_right(self._spans, buffer.address, key=lambda span: span[0]) - 1]
        return replace(buffer, address=buffer.address - low + start, copy_of=buffer.address)

    def arrays(self) -> dict[str, Copied]:
        """The copied arrays by name."""
        return {b.name: Copied(b.address, b.view, self) for b in self.buffers if b.view}


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


@dataclass(frozen=True)
class Copied:
    """An array in the session's memory."""

    address: int
    view: View
    keep: Copies

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "data": (self.address + self.view.origin, True), "shape": self.view.shape,
                "strides": self.view.strides, "typestr": f"|V{self.view.itemsize}"}

    def array(self) -> np.ndarray[Any, Any]:
        """What it holds now, as an array of its own."""
        if not all(self.view.shape):
            return np.zeros(self.view.shape, self.format)
        return np.array(np.asarray(self)).view(self.format).reshape(self.view.shape)

    @property
    def format(self) -> np.dtype[Any]:
        """Numpy's format of an element; bytes where there is none."""
        given = self.view.format
        if isinstance(given, np.dtype):
            return given
        name = str(given).removeprefix("torch.")
        try:
            found: np.dtype[Any] = of_numpy(name).to_numpy()
        except FlylabError:
            try:
                found = np.dtype(name)
            except TypeError:
                found = np.dtype(f"V{self.view.itemsize}")
        return found
