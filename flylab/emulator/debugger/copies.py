"""The session's own memory: copies of the arrays that a launch gets, which keep how arrays overlap.

A copy begins as many bytes after a multiple of 4096 as its original, so that whatever a kernel does about alignment it
does in the copy too.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flylab.dtypes import of_numpy
from flylab.emulator.arguments import buffer_of
from flylab.emulator.arrays import Buffer
from flylab.emulator.state import Memory
from flylab.errors import FlylabError

PAGE = 4096


class Copies:
    """Copies of spans of memory; spans that overlap or touch are one copy."""

    def __init__(self, buffers: Sequence[Buffer]):
        self._starts: list[int] = []
        self._blocks: list[tuple[int, int, Memory]] = []
        for low, high in _joined([(b.address, b.address + b.nbytes) for b in buffers if b.nbytes > 0]):
            memory = Memory(high - low + PAGE, alignment=PAGE)
            ctypes.memmove(memory.address + low % PAGE, low, high - low)
            self._starts.append(low)
            self._blocks.append((high, memory.address + low % PAGE - low, memory))

    def moved(self, address: int) -> int:
        """Where the byte at an address lies in the copy; an address of no copy stays."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address > self._blocks[place][0]:
            return address
        return address + self._blocks[place][1]

    def buffer(self, buffer: Buffer) -> Buffer:
        """A buffer as it lies in the copy."""
        return replace(buffer, address=self.moved(buffer.address)) if buffer.nbytes > 0 else buffer


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
    """An array argument as it lies in the session's memory. It is itself an array to whoever packs arguments."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: np.dtype[Any]
    writable: bool
    keep: Copies
    within: int
    """Bytes after the beginning of its original's allocation, of the lowest one."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its format, as errors show it."""
        return self.format

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "data": (self.address, not self.writable), "shape": self.shape, "strides": self.strides,
                "typestr": f"|V{self.format.itemsize}"}

    def array(self) -> np.ndarray[Any, Any]:
        """What the argument holds now, as an array of its own."""
        return np.array(np.asarray(self)).view(self.format).reshape(self.shape)


def is_array(value: Any) -> bool:
    """True for what is passed as memory: numpy arrays, CPU tensors and their kin, but no scalar of numpy's."""
    if isinstance(value, type | np.generic):
        return False
    return hasattr(value, "__array_interface__") or hasattr(value, "data_ptr")


def copied(names: Sequence[str], values: Sequence[Any]) -> dict[str, Copied]:
    """Copies of array arguments, by name.

    Raises `ArgumentError` for what has no plain memory.
    """
    described = [buffer_of(name, value) for name, value in zip(names, values, strict=True)]
    copies = Copies(described)
    found = {}
    for name, value, buffer in zip(names, values, described, strict=True):
        format_, shape, strides = _form(value)
        found[name] = Copied(name, copies.moved(buffer.pointer), shape, strides, format_, buffer.writable, copies,
                             buffer.within)
    return found


def _form(value: Any) -> tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...]]:
    """Numpy's format of an array or tensor, its shape and its strides in bytes."""
    if hasattr(value, "data_ptr"):
        name, size = str(value.dtype).removeprefix("torch."), value.element_size()
        return _format(name, size), tuple(value.shape), tuple(s * size for s in value.stride())
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    return array.dtype, array.shape, array.strides


def _format(name: str, size: int) -> np.dtype[Any]:
    """Numpy's format of a format of torch; bytes where there is none."""
    try:
        found: np.dtype[Any] = of_numpy(name).to_numpy()
        return found
    except FlylabError:
        return np.dtype(f"V{size}")
