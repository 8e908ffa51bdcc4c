"""Handlers that touch LDS, the memory that a workgroup shares.

An address is a byte offset from the beginning of the workgroup's LDS, a vector register plus the instruction's offset
modulo 2**32. The hardware returns 0 for a read outside and drops a write; here it is an error, as it is never meant.
"""

from __future__ import annotations

from flylab.emulator.access import fault
from flylab.emulator.ir import Builder, Value
from flylab.emulator.state import LDS_OUTSIDE, WAVE_SIZE, Worker


def bits_of(b: Builder, lanes: Value) -> Value:
    """The i64 whose bits are the lanes of an i1 vector."""
    return b.let(f"bitcast {lanes.typed} to i{WAVE_SIZE}", "i64")


def lanes_outside(b: Builder, offsets: Value, size: int) -> Value:
    """The lanes whose bytes [offset, offset + size) do not all lie in the workgroup's LDS, as an i64.

    `offsets` are 64 byte offsets, taken as unsigned numbers of 32 bits.
    """
    room = b.field("%w", Worker, "lds_bytes").call("usub.sat", size - 1).to("i32")
    return bits_of(b, offsets.cmp("uge", room.splat(WAVE_SIZE)))


def fault_at(b: Builder, kind: int, lanes: Value, offsets: Value, size: int) -> None:
    """Ends the launch with the LDS access of the lowest of `lanes`, an i64, where there is one."""
    with b.when(lanes.cmp("ne", 0)):
        lane = lanes.count("cttz")
        offset = b.let(f"extractelement {offsets.typed}, {lane.typed}", offsets.type)
        fault(b, kind, lane, offset.to("i64"), size)


def check_lds(b: Builder, mask: Value, offsets: Value, size: int) -> None:
    """A fault where the bytes [offset, offset + size) of a lane of `mask`, an i64, do not lie in the workgroup's LDS.

    `offsets` are 64 byte offsets from the beginning of LDS, i32 taken as unsigned. Past this check each of them can be
    added to the worker's `lds` pointer.
    """
    fault_at(b, LDS_OUTSIDE, mask & lanes_outside(b, offsets, size), offsets, size)
