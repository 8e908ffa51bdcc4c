"""What probes keep beside the state of a launch: structures in memory, and the one place of their offsets.

A `WaveShadow` lies behind a wave's registers and private memory, with a `RowShadow` for each row of vector registers
after it; it begins as a copy of a template. A `GroupShadow` goes with a workgroup's LDS, with the cells of
`checks.races` after it: who wrote and who read each dword of LDS, and each byte. Behind these is a byte for each byte
of LDS, 0 as a workgroup begins: whether it holds a value (`checks.definedness.lds`).
"""

from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_uint64

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.state import SGPR_COUNT, WAVE_SIZE

# The operations of a wave that can be outstanding and are remembered: more than the counters of the chips count.
RING = 64
MOST_WAVES = 16
ALL = (1 << 64) - 1
# Reads of undefined bytes of LDS that are remembered, by their instruction; a power of two.
LDS_NOTES = 8


class RowShadow(ctypes.Structure):
    """Of a row of vector registers: the lanes that are defined, and what is still to fill it.

    `vm` and `lgkm` are the number of the operation that will (0: none), `origin` the number + 1 of the instruction
    that left lanes undefined (0: nobody wrote them). `vm_at` and `lgkm_at` are the numbers of the instructions that
    issued the operations, `lanes` those that they fill.
    """

    _fields_ = [("valid", c_uint64), ("vm", c_uint32), ("lgkm", c_uint32), ("origin", c_uint32), ("vm_at", c_uint32),
                ("lgkm_at", c_uint32), ("spare", c_uint32), ("lanes", c_uint64)]


class WaveShadow(ctypes.Structure):
    """Of a wave: its first EXEC, its operations in flight by counter, and what is known of its scalar registers.

    Operations are numbered from 1 by counter. Up to number `vm_done` they have been waited for; `vm_flat`,
    `lgkm_scalar` and `lgkm_flat` are the numbers of the last flat and scalar ones, which come back out of order. The
    rings hold the instruction of operation n at n % RING. `floor` is the time of the wave's last barrier of its own,
    `left_at` the instruction + 1 that took each lane out of EXEC; `exec_before` and `exec_at` are EXEC and the
    instruction + 1 where it was last written. An entry of `lds_notes` has an instruction + 1 and the byte of LDS where
    it read what is undefined.
    """

    _fields_ = [("initial_exec", c_uint64),
                ("vm_issued", c_uint32), ("vm_done", c_uint32), ("lgkm_issued", c_uint32), ("lgkm_done", c_uint32),
                ("vm_flat", c_uint32), ("lgkm_scalar", c_uint32), ("lgkm_flat", c_uint32), ("barriers", c_uint32),
                ("floor", c_uint64), ("exec_before", c_uint64), ("exec_at", c_uint64),
                ("left_at", c_uint32 * WAVE_SIZE),
                ("vm_ring", c_uint32 * RING), ("lgkm_ring", c_uint32 * RING),
                ("sgpr_valid", c_uint32 * SGPR_COUNT), ("sgpr_lgkm", c_uint32 * SGPR_COUNT),
                ("sgpr_origin", c_uint32 * SGPR_COUNT), ("lds_notes", c_uint64 * 2 * LDS_NOTES)]


class GroupWave(ctypes.Structure):
    """Of a wave of a workgroup: how many barriers it met others at; the instruction + 1 of the last one, and of its end
    (0: none yet); its last write to LDS, by its number of lgkmcnt; what it had waited for at its last two barriers."""

    _fields_ = [("met", c_uint32), ("barrier_at", c_uint32), ("ended_at", c_uint32), ("written", c_uint32),
                ("vm_done", c_uint32 * 2), ("lgkm_done", c_uint32 * 2)]


class GroupShadow(ctypes.Structure):
    """Of a workgroup: the time when it began, the time now, and its waves. Times are the epochs of cells: they rise
    with each barrier that a wave reaches, for as long as this lives, so that nothing needs clearing between workgroups.

    `floors` has the time after the last two barriers: what is older is ordered before what follows. `unwaited` is the
    time when a wave last came to a barrier while a write of its to LDS was under way. Of the last two barriers `met`
    has their number and the instruction + 1 of the first wave that came, in the workgroup that began at `met_first`.
    """

    _fields_ = [("first", c_uint64), ("last", c_uint64), ("floors", c_uint64 * 2), ("unwaited", c_uint64),
                ("met_first", c_uint64), ("met", c_uint32 * 4), ("waves", GroupWave * MOST_WAVES)]


# An access of 16 bytes may begin at the end of LDS, whose handler refuses it.
SPARE = 64
CELL_BYTES = 40
"""Bytes of cells for each byte of LDS: a quarter of four cells of 64 bits for its dword, and four for itself."""


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


ROWS_AT = _rounded(ctypes.sizeof(WaveShadow))
CELLS_AT = _rounded(ctypes.sizeof(GroupShadow))


def group_wave(b: Builder, group: str, wave: Value) -> str:
    """Where a workgroup's shadow keeps what it knows of a wave."""
    return b.at(group, wave * ctypes.sizeof(GroupWave) + GroupShadow.waves.offset)


def wave_shadow_bytes(rows: int) -> int:
    """Bytes of a wave's shadow, for so many rows of vector registers; a multiple of 64."""
    return _rounded(ROWS_AT + rows * ctypes.sizeof(RowShadow))


def group_shadow_bytes(lds_bytes: int) -> int:
    """Bytes of a workgroup's shadow, for so many bytes of LDS."""
    return defined_at(lds_bytes) + _rounded(lds_bytes) + SPARE


def defined_at(lds_bytes: int) -> int:
    """Where in a workgroup's shadow the bytes are that say which bytes of LDS hold a value."""
    return CELLS_AT + CELL_BYTES * _rounded(lds_bytes)


class Template:
    """A wave's shadow as it begins, which checks prepare before a launch."""

    def __init__(self, rows: int):
        self.data = bytearray(wave_shadow_bytes(rows))
        self.wave = WaveShadow.from_buffer(self.data)
        self.rows = (RowShadow * rows).from_buffer(self.data, ROWS_AT)


# Every lane of a wave.
LANES = range(WAVE_SIZE)
