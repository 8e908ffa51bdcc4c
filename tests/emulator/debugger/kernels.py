"""The kernels that the debugger's tests walk through. s[0:1] and s[4:5] are addresses, s2 the workgroup's number."""

from __future__ import annotations

from typing import Any

import numpy as np

from flylab.emulator import Program
from flylab.emulator.debugger.debugger import Debugger
from tests.emulator.toolchain import assembly

START = "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32_e32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
# One array for all sessions, which work on copies: where it lies decides the low bits of addresses.
ZEROS = np.zeros(256, "u4")

# Threads take part in a loop as often as their number says, and meet at a barrier in each round of an outer one.
DIVERGENT = START + """
  s_mov_b32 s8, 12
.Louter:
  v_and_b32_e32 v2, 15, v0
  s_mov_b64 s[10:11], exec
.Linner:
  v_cmp_ne_u32_e32 vcc, 0, v2
  s_and_b64 exec, exec, vcc
  s_cbranch_execz .Ldone
  v_subrev_u32_e32 v2, 1, v2
  v_mad_u32_u24 v3, v2, 5, v3
  v_add_u32_e32 v4, 1, v4
  v_cmp_gt_u32_e32 vcc, 12, v4
  s_and_b64 exec, exec, vcc
  s_cbranch_execnz .Linner
.Ldone:
  s_mov_b64 exec, s[10:11]
  ds_write_b32 v1, v3
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32_e32 v5, 0x100, v1
  ds_read_b32 v6, v5
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_add_u32_e32 v3, v3, v6
  v_mov_b32_e32 v4, 0
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Louter
  global_store_dword v1, v3, s[4:5]
  s_endpgm"""

# Each wave takes numbers from counters in LDS and in memory until they are used up; who comes first gets more.
ATOMIC = START + """
  v_mov_b32_e32 v7, 0
  v_mov_b32_e32 v8, 1
  s_mov_b32 s9, 0
  ds_write_b32 v7, v7
  s_waitcnt lgkmcnt(0)
  s_barrier
.Ltake:
  v_readfirstlane_b32 s12, v0
  s_mov_b64 s[10:11], exec
  s_and_b32 exec_lo, exec_lo, 0x10010001
  s_mov_b32 exec_hi, s12
  ds_add_rtn_u32 v2, v7, v8
  global_atomic_add v3, v7, v8, s[4:5] sc0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_max_u32_e32 v4, v2, v4
  v_add_u32_e32 v5, v3, v5
  s_mov_b64 exec, s[10:11]
  s_add_u32 s9, s9, 1
  s_memtime s[14:15]
  v_readfirstlane_b32 s13, v4
  s_cmp_lt_u32 s13, 0xbb8
  s_cbranch_scc1 .Ltake
  v_mov_b32_e32 v6, s9
  v_add_u32_e32 v5, v5, v6
  global_store_dword v1, v5, s[4:5] offset:4
  s_barrier
  s_endpgm"""

# The first wave counts for long and then sets a flag in LDS; the others spin on it, which takes many turns.
SPINNING = START + """
  v_mov_b32_e32 v7, 0
  v_readfirstlane_b32 s12, v0
  s_cmp_lg_u32 s12, 0
  s_cbranch_scc1 .Lspin
  s_movk_i32 s8, 4000
  ds_write_b32 v7, v7
.Lcount:
  s_sub_u32 s8, s8, 1
  v_add_u32_e32 v2, s8, v2
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lcount
  v_mov_b32_e32 v8, 7
  ds_write_b32 v7, v8
.Lspin:
  ds_read_b32 v3, v7
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s13, v3
  s_add_u32 s9, s9, 1
  s_cmp_lg_u32 s13, 7
  s_cbranch_scc1 .Lspin
  s_barrier
  global_atomic_add v7, v0, s[4:5]
  s_endpgm"""

LOOP = START + """
  s_mov_b32 s8, 9999
.Lloop:
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_mad_u32_u24 v2, v2, 3, v0
  v_add_u32_e32 v3, v2, v3
  v_xor_b32_e32 v4, v3, v4
  v_alignbit_b32 v5, v4, v3, 7
  global_store_dword v1, v2, s[4:5]
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lloop
  s_endpgm"""

KERNELS = {"divergent": DIVERGENT, "atomic": ATOMIC, "spinning": SPINNING}


def program(body: str, chip: str, **descriptor: int) -> Program:
    """A program of one kernel with 1024 bytes of LDS."""
    return Program.from_assembly(assembly(body, chip, **{"group_segment_fixed_size": 1024, **descriptor}))


def numbers() -> np.ndarray[Any, Any]:
    return np.zeros(256, "u4")


def state(debugger: Debugger) -> dict[str, Any]:
    """All that a workgroup is at a time, of every wave; of the one in focus also what is on its way."""
    found: dict[str, Any] = {"time": debugger.time, "LDS": debugger.lds.tobytes(), "turn": debugger._session.turn,
                             "findings": debugger.findings, "outstanding": debugger.outstanding}
    focus = debugger.wave
    for wave in range(debugger._session.waves):
        debugger.wave = wave
        one = debugger.state()
        found[f"vectors {wave}"], found[f"scalars {wave}"] = one.vectors.tobytes(), one.scalars.tobytes()
        found[f"where {wave}"] = (debugger.instruction, debugger.steps, debugger.at_barrier, debugger.ended)
        found["memory"] = {name: array.tobytes() for name, array in one.memory.items()}
    debugger.wave = focus
    return found
