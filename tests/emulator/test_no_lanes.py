"""Vector memory instructions while no lane is active: they do nothing, whatever registers, M0 and descriptors hold.

LLVM does not branch around short blocks that no lane takes, so they are executed, with descriptors of other paths.
Source: CDNA3 ISA, "EXEC mask": the lanes whose bit is 0 take no part.
"""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.emulator.decoding.chips import chips_with
from tests.emulator.toolchain import CHIPS, assembly

PLACES = {"global": "v[2:3], {d}, off", "flat": "v[2:3], {d}", "scratch": "v2, {d}, off",
          "buffer": "{d}, v[2:3], s[8:11], s12 idxen offen", "tbuffer": "{d}, v2, s[8:11], s12 format:63 idxen"}
STORES = {"global_store_dwordx4": 4, "flat_store_byte": 1, "scratch_store_dwordx2": 2, "buffer_store_short": 1,
          "global_atomic_add": 1, "flat_atomic_add_f64": 2, "buffer_atomic_umax_x2": 2, "global_atomic_cmpswap_x2": 4,
          "buffer_atomic_pk_add_f16": 1, "buffer_store_format_xyzw": 4, "tbuffer_store_format_xy": 2}
LOADS = {"global_load_dwordx3": 3, "flat_load_sshort": 1, "scratch_load_dwordx4": 4, "buffer_load_dwordx4": 4,
         "buffer_load_ubyte_d16_hi": 1, "buffer_load_format_xyz": 3, "tbuffer_load_format_x": 1}
TO_LDS = ["global_load_lds_dword v[2:3], off", "buffer_load_dword v[2:3], s[8:11], s12 idxen offen lds",
          "scratch_load_lds_dword v2, off offset:4", "global_load_lds_dwordx4 v[2:3], off"]
LDS = ["ds_write_b64 v2, v[4:5]", "ds_read_b128 v[4:7], v2 offset:65535", "ds_write2st64_b32 v2, v4, v5 offset1:255",
       "ds_add_rtn_u64 v[4:5], v2, v[6:7]", "ds_cmpst_b32 v2, v4, v5", "ds_append v4 offset:65532", "ds_consume v4",
       "ds_read_addtid_b32 v4 offset:4", "ds_write_addtid_b32 v4", "ds_wrxchg2_rtn_b32 v[4:5], v2, v6, v7 offset1:255",
       "ds_read_b64_tr_b16 v[4:5], v2", "ds_bpermute_b32 v4, v2, v5", "ds_swizzle_b32 v4, v2 offset:0x8000"]


def registers(count: int) -> str:
    return "v4" if count == 1 else f"v[4:{3 + count}]"


def text(name: str, count: int, load: bool) -> str:
    """An instruction on v[4:7] at the place that its name says."""
    operands = PLACES[name.partition("_")[0]].format(d=registers(count))
    if load and name.partition("_")[0] in ("global", "flat", "scratch"):
        address, data, *rest = operands.split(", ")
        operands = ", ".join([data, address, *rest])
    return f"{name} {operands}"


INSTRUCTIONS = [*(text(*item, False) for item in STORES.items()), *(text(*item, True) for item in LOADS.items()),
                *TO_LDS, *LDS]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("lds", [0, 256])
def test_nothing_is_touched(chip: str, lds: int) -> None:
    """With every bit set, addresses are far out, M0 is odd, and the descriptor is none, of a format that is none."""
    fitting = [line for line in INSTRUCTIONS if chip in chips_with(line.split()[0])]
    fill = [f"v_mov_b32 v{n}, -1" for n in range(2, 8)] + [f"s_mov_b32 s{n}, -1" for n in range(8, 13)]
    lines = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "v_lshlrev_b32 v1, 4, v0", *fill, "s_mov_b32 m0, -1",
             "s_mov_b64 exec, 0", *fitting, "s_mov_b64 exec, -1", "global_store_dwordx4 v1, v[4:7], s[4:5]", "s_endpgm"]
    found = np.zeros(256, "u4")
    report = Program.from_assembly(assembly("\n".join(lines), chip)).launch(grid=1, block=64, args=[found], shared=lds)
    assert len(fitting) > 25 and report.instructions == len(lines) and report.clamped == 0
    assert np.all(found == 0xFFFFFFFF)
