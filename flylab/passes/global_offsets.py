"""Offsets of a global pointer as one number of 32 bits, where it is known to fit.

A part of convert-fly-to-rocdl. A global access of these chips takes an address in scalar registers, which all lanes
share, and an unsigned offset of 32 bits of each lane. LLVM uses that form for a pointer moved by a number that is
extended with zeros. So the steps that move a pointer (the block's, the wave's, the thread's) are added up in 32 bits
first, which costs an instruction each where 64-bit pointers cost two, for every tensor anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.passes.known_values import KnownBits
from flylab.passes.rewriter import Builder
from flylab.passes.shared_memory import gep

LARGEST = 2**32 - 1


@dataclass(frozen=True)
class Moved:
    """A pointer as its root and two offsets in bytes: one of i32 that is at most `most`, and a constant."""

    root: Any
    offset: Any
    most: int
    constant: int


class GlobalOffsets:
    """The global pointers that were made by moving others."""

    def __init__(self) -> None:
        self.known = KnownBits()
        self.moved: dict[Any, Moved] = {}

    def move(self, builder: Builder, base: Any, offset: Any, bits: int) -> Any:
        """The pointer `base` moved by a number of elements of so many bits."""
        steps = self.known.of(offset)
        before = self.moved.get(base, Moved(base, None, 0, 0))
        if bits % 8 == 0 and steps.width == 32 and steps.most < 2**31:
            after = self._sum(builder, before, offset, steps, bits // 8)
            if after is not None:
                pointer = _pointer(builder, after)
                self.moved[pointer] = after
                return pointer
        return gep(builder, base, offset, "global", bits)

    def _sum(self, builder: Builder, before: Moved, offset: Any, steps: Any, size: int) -> Moved | None:
        """Where a pointer is after these steps; None where 32 bits may not hold it."""
        if steps.value is not None:
            return Moved(before.root, before.offset, before.most, before.constant + steps.value * size)
        most = before.most + steps.most * size
        if most > LARGEST:
            return None
        scaled = builder.op("arith.muli", [offset, builder.constant(size)], "i32")
        total = scaled if before.offset is None else builder.op("arith.addi", [before.offset, scaled], "i32")
        return Moved(before.root, total, most, before.constant)


def _pointer(builder: Builder, place: Moved) -> Any:
    pointer = place.root
    if place.offset is not None:
        pointer = gep(builder, pointer, builder.op("arith.extui", [place.offset], "i64"), "global", 8)
    if place.constant:
        pointer = gep(builder, pointer, builder.constant(place.constant, "i64"), "global", 8)
    return pointer
