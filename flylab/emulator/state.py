"""What native code and Python share: the layout of records, registers and counters in memory.

The offsets of these structures are read by the code generator, so this file is their one place.
"""

from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_uint64, c_void_p

from flylab.codegen.assembly.registers import APERTURES as APERTURES
from flylab.codegen.assembly.registers import EXEC as EXEC
from flylab.codegen.assembly.registers import M0 as M0
from flylab.codegen.assembly.registers import MODE as MODE
from flylab.codegen.assembly.registers import NUMBERED_SGPRS as NUMBERED_SGPRS
from flylab.codegen.assembly.registers import SCC as SCC
from flylab.codegen.assembly.registers import SGPR_COUNT as SGPR_COUNT
from flylab.codegen.assembly.registers import SGPR_NAMES as SGPR_NAMES
from flylab.codegen.assembly.registers import SINK as SINK
from flylab.codegen.assembly.registers import VCC as VCC

WAVE_SIZE = 64
ROW_BYTES = 4 * WAVE_SIZE

# Where native memory begins, so that vectors lie in it as LLVM wants them.
ALIGNMENT = 64

# A record: handler, then 32-bit slots with what the operands are, then the last buffer this instruction touched.
RECORD_BYTES = 64
SLOT_OFFSET = 8
SLOTS = 12
RANGE_OFFSET = 56

# Where LDS and private memory lie among the generic addresses, 4 GiB each. No host has memory there: x86-64 and arm64
# give a process addresses of at most 57 bits.
SHARED_APERTURE, PRIVATE_APERTURE = 1 << 62, 3 << 61

# What a handler that leaves the chain returns.
END, BARRIER, YIELD, FAULT = 1, 2, 3, 4
# What the worker's loop returns: nothing is left to take, FAULT, a workgroup that cannot end now, a pause between two.
FINISHED, SUSPENDED, PAUSED = 0, 5, 6
# What the debugger's handler returns: one instruction was executed.
STOPPED = 7

# What an access does to memory, as the search of buffers is told; of a scalar load the first byte of each dword counts.
READ, WRITE, READ_DWORDS = 0, 1, 2

# Wave states of the scheduler.
READY, WAITING, DONE = 0, 1, 2

# What LDS holds at a workgroup's start. The chip leaves there what ran before; here a read before a write is told by
# its value: halves of 0x7FFF are NaN as f16, bf16, f32, f64 and OCP fp8, and huge as integers of 16 bits and more.
LDS_FILL = 0x7FFF7FFF
# It is filled in steps of so many bytes, to which its memory is rounded up, with some that a read of 12 may pass over.
LDS_STEP, LDS_SPARE = 256, 4

# Kinds of fault.
OUT_OF_BOUNDS, MISALIGNED, DESCRIPTOR, TRAP, PAST_END, PRIVATE, NOWHERE = 1, 2, 3, 4, 5, 6, 7
SWIZZLED, LDS_UNALIGNED_BASE, BAD_FORMAT, CLAMPED = 12, 13, 14, 15
LDS_OUTSIDE, LDS_MISALIGNED, LDS_PARTIAL = 16, 17, 18

# Instructions of a wave at a stretch: at first, while the worker looks whether its workgroup only spins, and then on.
FIRST, PROBE, STRETCH = 1 << 13, 1 << 9, 1 << 16
# How many such looks there are at the start of a turn, and the instructions after which a turn ends.
PROBES, TURN = 16, 1 << 21


class Range(ctypes.Structure):
    """Bytes a kernel may touch: [low, high) to read, [low, write_high) to write. The first of a list is empty.

    The host has them `distance` further on, modulo 2**64. Where there are holes between elements, `marks` has a byte
    for each 2**unit bytes of a `period`, 1 where an element is (`arrays.View.marks`).
    """

    _fields_ = [("low", c_uint64), ("high", c_uint64), ("write_high", c_uint64), ("distance", c_uint64),
                ("marks", c_void_p), ("period", c_uint64), ("unit", c_uint64)]


class Wave(ctypes.Structure):
    """A wave: where it goes on (null before its start), its state, and the slot of its registers."""

    _fields_ = [("pc", c_void_p), ("state", c_uint64), ("slot", c_uint64)]


class Launch(ctypes.Structure):
    """One launch, shared by its workers."""

    _fields_ = [
        ("next", c_uint64), ("total", c_uint64), ("chunk", c_uint64), ("limit", c_uint64), ("stop", c_uint64),
        ("stepping", c_uint64),  # workgroups are given out one by one, since some are suspended
        ("ranges", c_void_p), ("range_count", c_uint64),
        ("grid_x", c_uint64), ("grid_y", c_uint64), ("waves", c_uint64), ("vgpr_bytes", c_uint64),
        ("entry", c_void_p), ("initial_sgprs", c_void_p), ("initial_v0", c_void_p), ("initial_exec", c_void_p),
        ("group_x_at", c_uint64), ("group_y_at", c_uint64), ("group_z_at", c_uint64),
        ("lds_bytes", c_uint64),  # of a workgroup: static and dynamic
        ("clamped_fails", c_uint64),  # a buffer access that a descriptor cuts off is an error
        # Of a wave's memory, `vgpr_bytes`: what decides how it goes on. Then what a wave's shadow begins as, if any.
        ("state_bytes", c_uint64), ("shadow_at", c_uint64), ("shadow", c_void_p), ("shadow_bytes", c_uint64),
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
        ("group_count", c_uint64),  # `count` when the workgroup began
        ("fault_record", c_void_p), ("fault_kind", c_uint64), ("fault_lane", c_uint64),
        ("fault_address", c_uint64), ("fault_size", c_uint64),
        ("fault_base", c_uint64),  # of CLAMPED, the descriptor's base
        # How often memory changed, as far as this worker saw; whether it goes on with a workgroup that was suspended.
        ("changes", c_uint64), ("resuming", c_uint64),
        # A turn: when it ends, the next look, the stretch of each wave, the looks so far, and whether it only spun.
        ("turn_end", c_uint64), ("look_at", c_uint64), ("stretch", c_uint64), ("looks", c_uint64), ("idle", c_uint64),
        # Brent's search for a state that comes back: the state held, the changes then, its age, the age to replace it.
        # Of vector registers there is a hash only where all else has come back, else 0.
        ("held", c_uint64), ("held_vectors", c_uint64), ("held_changes", c_uint64), ("age", c_uint64),
        ("oldest", c_uint64), ("hash", c_uint64), ("vectors", c_uint64),
        # For probes: the notes of instructions, this worker's tallies, the shadow of the workgroup, and its findings.
        ("notes", c_void_p), ("tallies", c_void_p), ("tally_bytes", c_uint64), ("group_shadow", c_void_p),
        ("lds_defined", c_void_p),
        ("find", c_void_p), ("findings", c_void_p), ("found", c_uint64), ("lost", c_uint64), ("find_at", c_uint64),
        ("log", c_void_p),  # of accesses: a head and its records
    ]


def slot_offset(slot: int) -> int:
    """The offset in bytes of an operand slot within a record."""
    return SLOT_OFFSET + 4 * slot


RECORD = c_uint32 * (RECORD_BYTES // 4)


class Memory:
    """Zeroed native memory that begins at a multiple of `alignment`, alive as long as this object."""

    def __init__(self, size: int, data: bytes = b"", alignment: int = ALIGNMENT):
        step = max(alignment, ALIGNMENT)
        self._keep = (ctypes.c_char * (max(size, len(data)) + step))()
        self.address = -(-ctypes.addressof(self._keep) // step) * step
        if data:
            ctypes.memmove(self.address, data, len(data))
