"""Memory of arrays: what it spans, where a kernel sees it, and where the elements of a strided view lie in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from flylab.dtypes import dtype_text, of_numpy
from flylab.errors import ArgumentError, FlylabError
from flylab.locks import cached_property

# No process has memory in the first page; an address there is a null pointer with an offset.
FIRST_ADDRESS = 4096
# The most bytes that an access of one lane has: s_load_dwordx16.
MOST_BYTES = 64


@dataclass(frozen=True)
class View:
    """The elements of an array: strides and `origin`, which is where the first element is, in bytes of its memory.

    `format` is numpy's or torch's format of an element, or its name.

    >>> print(View((4, 5), (20, 4), 4, 0, "float32"), "and", View((3,), (6,), 4, 0, "complex32"))
    shape (4, 5), strides (5, 1), f32 and shape (3,), strides (6,) bytes, complex32
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    origin: int = 0
    format: Any = ""

    def __str__(self) -> str:
        """Shape, strides in elements where they are whole, and format, as errors show them."""
        whole = self.itemsize > 0 and not any(stride % self.itemsize for stride in self.strides)
        strides = tuple(s // self.itemsize for s in self.strides) if whole else self.strides
        format_ = str(self.format).removeprefix("torch.")
        with suppress(FlylabError):  # of complex numbers and structures, which have no short name
            format_ = dtype_text(of_numpy(format_))
        return f"shape {self.shape}, strides {strides}{'' if whole else ' bytes'}, {format_}"

    @cached_property
    def modes(self) -> list[int]:
        """The modes along which the elements lie apart, that of the largest stride first."""
        apart = [n for n, extent in enumerate(self.shape) if extent > 1 and self.strides[n]]
        return sorted(apart, key=lambda n: -abs(self.strides[n]))

    @cached_property
    def solid(self) -> tuple[int, list[int]]:
        """The bytes that lie together, of one element or of several, and the modes along which they are apart."""
        run, modes = self.itemsize, list(self.modes)
        while modes and abs(self.strides[modes[-1]]) == run:
            run *= self.shape[modes.pop()]
        return run, modes

    @cached_property
    def unit(self) -> int:
        """The largest power of two such that elements and holes begin and end at multiples of it."""
        run, modes = self.solid
        common = math.gcd(run, *(self.strides[n] for n in modes))
        return common & -common

    @cached_property
    def period(self) -> int:
        """Bytes after which elements and holes repeat: the largest stride, where nothing reaches over it."""
        run, modes = self.solid
        if not modes:
            return run
        outer, *inner = modes
        reach = sum((self.shape[n] - 1) * abs(self.strides[n]) for n in inner) + run
        stride = abs(self.strides[outer])
        return stride if reach <= stride else (self.shape[outer] - 1) * stride + reach

    @cached_property
    def marks(self) -> bytes:
        """A byte for each unit of a period and `MOST_BYTES` more: 1 where an element is. Empty without holes.

        >>> View((3,), (8,), 4).marks[:4], View((2, 3), (20, 4), 4).marks[:5], View((3,), (4,), 4).marks
        (b'\\x01\\x00\\x01\\x00', b'\\x01\\x01\\x01\\x00\\x00', b'')
        """
        import numpy

        run, modes = self.solid
        if not modes:
            return b""
        held = numpy.zeros(self.period // self.unit, numpy.uint8)
        if abs(self.strides[modes[0]]) == self.period:
            modes = modes[1:]
        steps = [abs(self.strides[n]) // self.unit for n in modes] + [1]
        extents = [self.shape[n] for n in modes] + [run // self.unit]
        numpy.lib.stride_tricks.as_strided(held, extents, steps)[...] = 1
        if held.all():
            return b""
        return numpy.resize(held, len(held) + MOST_BYTES // self.unit + 1).tobytes()

    def holds(self, at: int) -> bool:
        """Whether the byte `at` of what the array spans, from its lowest on, is that of an element."""
        return not self.marks or self.marks[at % self.period // self.unit] == 1

    def index(self, at: int) -> tuple[tuple[int, ...], int]:
        """The index that leads to byte `at`, from the lowest on, and how many bytes after that element's start it is.

        Outside of the array an index is too large or negative: that of the largest stride, or where the byte is between
        two rows, one within. Of all indices that lead there it is the one whose others fit.

        >>> View((4, 5), (20, 4), 4).index(88), View((4, 5), (32, 4), 4).index(31 * 4)
        (((4, 2), 0), ((3, 7), 0))
        """
        found = [0] * len(self.shape)
        modes = self.modes or [n for n, stride in enumerate(self.strides) if stride][-1:]
        for n in modes:
            steps, at = divmod(at, abs(self.strides[n]))
            found[n] = steps if self.strides[n] > 0 else self.shape[n] - 1 - steps
        return tuple(found), at


@dataclass(frozen=True)
class Buffer:
    """Memory that a kernel may touch: `nbytes` from `address`, for writing too where `writable`.

    `window` is the address at which the kernel sees it, 0 where that is `address`. Of an array, `view` says where its
    elements are, and `within` how many bytes after the beginning of its allocation it begins, -1 where nobody knows.
    Of a copy of an array, `copy_of` is where the host has that one.
    """

    name: str
    address: int
    nbytes: int
    writable: bool = True
    window: int = 0
    view: View | None = None
    within: int = -1
    copy_of: int = 0

    def __post_init__(self) -> None:
        if self.nbytes > 0 and not FIRST_ADDRESS <= self.address <= self.address + self.nbytes < 1 << 64:
            raise ArgumentError(f"argument '{self.name}' has no memory: its {self.nbytes} bytes would lie at address "
                                f"{self.address:#x}",
                                hint="pass a tensor with data; fake and meta tensors have shapes only")

    @property
    def start(self) -> int:
        """The first address at which the kernel sees it."""
        return self.window or self.address

    @property
    def end(self) -> int:
        """The address after the last one."""
        return self.start + self.nbytes

    @property
    def pointer(self) -> int:
        """The address of the first element, as the kernel sees it."""
        return self.start + (self.view.origin if self.view else 0)


def within_allocation(value: Any, address: int) -> int:
    """How many bytes after the beginning of its allocation an address of an array lies; -1 where that is not known.

    >>> import numpy
    >>> whole = numpy.zeros((4, 8), "float32")
    >>> within_allocation(whole, whole.ctypes.data), within_allocation(whole[1:, 2:], whole[1:, 2:].ctypes.data)
    (0, 40)
    """
    if hasattr(value, "untyped_storage"):
        start = int(value.untyped_storage().data_ptr())
    else:
        while hasattr(base := getattr(value, "base", None), "__array_interface__"):
            value = base
        start = int(value.__array_interface__["data"][0])
    return address - start if start <= address else -1


def extent(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The lowest byte and the number of bytes that a strided array spans; strides in bytes.

    >>> extent(1000, (3,), (8,), 4), extent(1000, (2, 3), (0, 4), 4), extent(1000, (3,), (-4,), 4)
    ((1000, 20), (1000, 12), (992, 12))
    """
    if not all(shape):
        return address, 0
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = address + sum(s for s in steps if s < 0)
    return low, address + sum(s for s in steps if s > 0) + itemsize - low
