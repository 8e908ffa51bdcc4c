"""The addresses at which a kernel sees memory: a window for each array, far from those of all others.

So an access that leaves its array meets none of another one. Where a window lies depends on the number of the array
alone, and not on where the host has it, so that all runs of a launch are the same. An allocation begins at a multiple
of 256, as those of devices do, and an array as many bytes after one as it begins in its allocation. But no array is
less aligned than on the host; and where nobody knows its allocation, its low bits are the host's. A kernel that gets a
pointer of the host's, out of an array or as an integer, reaches the memory of its arguments at that address too.

    from 0x80000000000    what a launch adds: arguments, dispatch packet, what is printed, data of the program
    from 0x100000000000   the arrays, one each 64 GiB
    from 0x800000000000   code (`linking.CODE_BASE`)
"""

from __future__ import annotations

from collections.abc import Sequence

from flylab.emulator.arrays import Buffer
from flylab.errors import ArgumentError

GAP = 1 << 36
# Where arrays are too many or too large for that, windows lie closer together, down to this.
LEAST_GAP = 1 << 32
# Bytes at multiples of which an allocation begins: on a device, and on the host at least.
ALLOCATED, HOST_ALLOCATED = 256, 16

KERNEL_ARGUMENTS, DISPATCH_PACKET, PRINTED, DATA = ((1 << 43) + n * GAP for n in range(4))
ARRAYS, END = 1 << 44, 1 << 47


def with_windows(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The buffers with windows, in order. What is the same memory with the same view has one window.

    A null pointer, as of a torch tensor without elements, stays null.
    Raises `ArgumentError` where there are not enough addresses.

    >>> [hex(b.start) for b in with_windows([Buffer("a", 0x7f0000001040, 64), Buffer("b", 0x7f0000001080, 64)])]
    ['0x100000000040', '0x101000000080']
    """
    gap = GAP
    while (last := (starts := _windows(buffers, gap))[-1]) > END:
        gap //= 2
        if gap < LEAST_GAP:
            largest = max(buffers, key=lambda b: b.nbytes)
            raise ArgumentError(f"the {len(buffers)} arrays need addresses up to {last:#x}, and the software device "
                                f"has them up to {END:#x}; the largest is '{largest.name}' with {largest.nbytes} bytes",
                                hint="pass fewer or smaller arrays")
    same: dict[tuple[object, ...], int] = {}
    placed = []
    for b, start in zip(buffers, starts[:-1], strict=True):
        window = start + _low_bits(b) if b.address else 0
        if b.nbytes:
            window = same.setdefault((b.address, b.nbytes, b.writable, b.view), window)
        placed.append(Buffer(b.name, b.address, b.nbytes, b.writable, window, b.view, b.within))
    return placed


def _low_bits(buffer: Buffer) -> int:
    """An address modulo `ALLOCATED`: as far as the array is into its allocation, and no less aligned than on the host.

    So what somebody has aligned on the host is aligned; and the host's atomics work, which go by the host's address.
    """
    host = buffer.address % ALLOCATED
    if buffer.within < 0:
        return host
    low = buffer.within % ALLOCATED // HOST_ALLOCATED * HOST_ALLOCATED + host % HOST_ALLOCATED
    return low - low % (host & -host or ALLOCATED)


def _windows(buffers: Sequence[Buffer], gap: int) -> list[int]:
    """Where each window begins, and where the next one would; after each array half a gap at least is free."""
    starts = [ARRAYS]
    for buffer in buffers:
        starts.append(starts[-1] + ((buffer.nbytes + gap // 2) // gap + 1) * gap)
    return starts
