"""How the lanes of a wave's access to global memory fall into cache lines.

Source: AMD's guidance for CDNA3: the vector L1 cache serves four lanes at once from a line of 128 bytes, so a wave's
instruction is 16 accesses at best, whatever its width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flylab.errors import FlylabError
from flylab.targets import WAVE_SIZE

LINE_BYTES = 128
"""Bytes of a line of the vector L1 cache and of the L2, on both chips."""
QUAD = 4
"""Lanes that the L1 cache serves at once."""


@dataclass(frozen=True)
class Coalescing:
    """Cache lines and cache accesses of one instruction of a wave, beside the fewest that its active lanes allow.

    `bytes` are what its lanes move together, `unique_bytes` those of memory that they touch.
    """

    lines: int
    accesses: int
    ideal_lines: int
    ideal_accesses: int
    bytes: int
    unique_bytes: int

    @property
    def efficiency(self) -> float:
        """The part of the bytes of its lines that it uses; 1.0 where no line is, as none is wasted."""
        return self.unique_bytes / (self.lines * LINE_BYTES) if self.lines else 1.0

    def __str__(self) -> str:
        return (f"{self.lines} cache lines (at best {self.ideal_lines}), {self.accesses} cache accesses (at best "
                f"{self.ideal_accesses}) for {self.bytes} bytes, modelled")

    __repr__ = __str__


def coalescing(addresses: Sequence[int | None], bytes: int) -> Coalescing:
    """How a wave's access falls into lines, where lane n moves `bytes` bytes at `addresses[n]`; None: inactive.

    Accesses are the distinct lines of each four lanes, added up; lines the distinct ones of the wave.

    >>> print(coalescing(range(0, 1024, 16), 16))
    8 cache lines (at best 8), 16 cache accesses (at best 16) for 1024 bytes, modelled
    >>> print(coalescing(range(0, 64 * 256, 256), 4))
    64 cache lines (at best 2), 64 cache accesses (at best 16) for 256 bytes, modelled

    Raises `FlylabError` for more lanes than a wave has, negative addresses, and no bytes.
    """
    if len(addresses) > WAVE_SIZE:
        raise FlylabError(f"{len(addresses)} addresses for the {WAVE_SIZE} lanes of a wave", hint="give one a lane")
    active = [address for address in addresses if address is not None]
    if bytes < 1 or min(active, default=0) < 0:
        raise FlylabError(f"{bytes} bytes a lane at addresses from {min(active, default=0)}",
                          hint="a lane moves 1 byte or more, and addresses are not negative")
    quads = [_lines(addresses[first:first + QUAD], bytes) for first in range(0, len(addresses), QUAD)]
    touched = {byte for address in active for byte in range(address, address + bytes)}
    return Coalescing(len(set[int]().union(*quads)), sum(map(len, quads)), -(-len(touched) // LINE_BYTES),
                      sum(bool(lines) for lines in quads), len(active) * bytes, len(touched))


def _lines(addresses: Sequence[int | None], bytes: int) -> set[int]:
    return {line for address in addresses if address is not None
            for line in range(address // LINE_BYTES, (address + bytes - 1) // LINE_BYTES + 1)}
