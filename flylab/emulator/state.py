"""What native code and Python share: the layout of records, registers and counters in memory.

The offsets of these structures are read by the code generator, so this file is their one place.
"""

from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_uint64, c_void_p

WAVE_SIZE = 64
ROW_BYTES = 4 * WAVE_SIZE

# A record: handler, then 32-bit slots with what the operands are, then the last buffer this instruction touched.
RECORD_BYTES = 64
SLOT_OFFSET = 8
SLOTS = 12
RANGE_OFFSET = 56

# Scalar registers by their hardware number, then the state bits that have none.
NUMBERED_SGPRS = 102
VCC, M0, EXEC, SCC, MODE, SINK = 106, 124, 126, 128, 129, 130
SGPR_COUNT = 144
SGPR_NAMES = {"flat_scratch": 102, "xnack_mask": 104, "vcc": VCC, "m0": M0, "exec": EXEC, "src_scc": SCC, "scc": SCC}

# What a handler that leaves the chain returns.
END, BARRIER, YIELD, FAULT = 1, 2, 3, 4

# Wave states of the scheduler.
READY, WAITING, DONE = 0, 1, 2

# What LDS holds at a workgroup's start. The chip leaves there what ran before; here a read before a write is told by
# its value: halves of 0x7FFF are NaN as f16, bf16, f32, f64 and OCP fp8, and huge as integers of 16 bits and more.
LDS_FILL = 0x7FFF7FFF
# It is filled in steps of so many bytes, to which its memory is rounded up, with some that a read of 12 may pass over.
LDS_STEP, LDS_SPARE = 256, 4

# Kinds of fault.
OUT_OF_BOUNDS, MISALIGNED, DESCRIPTOR, TRAP, PAST_END, PRIVATE, NOWHERE = 1, 2, 3, 4, 5, 6, 7
LDS_OUTSIDE, LDS_MISALIGNED, LDS_PARTIAL = 16, 17, 18

# Instructions of a wave between two looks at the stop flag.
BUDGET = 1 << 20


class Range(ctypes.Structure):
    """Bytes a kernel may touch: [low, high) to read, [low, write_high) to write. The first of a list is empty."""

    _fields_ = [("low", c_uint64), ("high", c_uint64), ("write_high", c_uint64)]


class Wave(ctypes.Structure):
    """A wave: where it goes on (null before its start), its state, and the slot of its registers."""

    _fields_ = [("pc", c_void_p), ("state", c_uint64), ("slot", c_uint64)]


class Launch(ctypes.Structure):
    """One launch, shared by its workers."""

    _fields_ = [
        ("next", c_uint64), ("total", c_uint64), ("chunk", c_uint64), ("limit", c_uint64), ("stop", c_uint64),
        ("ranges", c_void_p), ("range_count", c_uint64),
        ("grid_x", c_uint64), ("grid_y", c_uint64), ("waves", c_uint64), ("vgpr_bytes", c_uint64),
        ("initial_sgprs", c_void_p), ("initial_v0", c_void_p), ("initial_exec", c_void_p),
        ("group_x_at", c_uint64), ("group_y_at", c_uint64), ("group_z_at", c_uint64),
        ("lds_bytes", c_uint64),  # of a workgroup: static and dynamic
    ]


class Worker(ctypes.Structure):
    """One thread's state. The fourth argument of every handler points here."""

    _fields_ = [
        ("addresses", c_uint64 * WAVE_SIZE),  # first, for its alignment
        ("launch", c_void_p), ("ranges", c_void_p), ("check", c_void_p), ("records", c_void_p), ("vgprs", c_void_p),
        ("sgprs", c_void_p), ("lds", c_void_p), ("lds_bytes", c_uint64), ("waves", c_void_p),
        ("pc", c_void_p), ("base", c_void_p), ("count", c_uint64), ("until", c_uint64), ("clamped", c_uint64),
        ("groups", c_uint64), ("group", c_uint64), ("group_end", c_uint64), ("wave", c_uint64), ("ready", c_uint64),
        ("waiting", c_uint64), ("used", c_uint64), ("cursor", c_uint64),
        ("fault_record", c_void_p), ("fault_kind", c_uint64), ("fault_lane", c_uint64),
        ("fault_address", c_uint64), ("fault_size", c_uint64),
    ]


def slot_offset(slot: int) -> int:
    """The offset in bytes of an operand slot within a record."""
    return SLOT_OFFSET + 4 * slot


RECORD = c_uint32 * (RECORD_BYTES // 4)
