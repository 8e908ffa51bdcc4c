"""Races of the less usual ways to LDS: generic addresses, addresses in M0, atomics, two places, transposing reads."""

from __future__ import annotations

import pytest

from flylab.emulator import Program
from flylab.errors import CheckError

KERNEL = """
.amdgcn_target "amdgcn-amd-amdhsa--{chip}"
k:
  s_mov_b32 m0, 0
  s_mov_b64 s[4:5], src_shared_base
  v_lshlrev_b32 v1, 2, v0
  v_xor_b32 v2, 4, v1
  v_mov_b32 v3, s5
  v_mov_b32 v4, 0
  v_mov_b32 v6, 1
  v_mov_b32 v7, 1
{body}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_endpgm
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size 2048
  .amdhsa_next_free_vgpr 16
  .amdhsa_accum_offset 16
  .amdhsa_next_free_sgpr 16
.end_amdhsa_kernel
"""
BOTH = ("gfx942", "gfx950")
GENERIC = "v_mov_b32 v10, {}\nv_mov_b32 v11, s5\n"
CASES = [
    ("flat store", BOTH, "ds_write_b32 v1, v0\n{}\n" + GENERIC.format("v2") + "flat_store_dword v[10:11], v0", "WAW"),
    ("flat load", BOTH, "ds_write_b32 v1, v0\n{}\n" + GENERIC.format("v2") + "flat_load_dword v8, v[10:11]", "RAW"),
    ("flat atomic", BOTH, "ds_read_b32 v8, v1\n{}\n" + GENERIC.format("v2") + "flat_atomic_add v[10:11], v0", "WAR"),
    ("by thread", BOTH, "ds_write_addtid_b32 v0 offset:4\n{}\nds_read_b32 v8, v1", "RAW"),
    ("append", BOTH, "ds_append v8\n{}\nds_read_b32 v8, v4", "RAW"),
    ("two places", BOTH, "ds_write2_b32 v1, v0, v0 offset1:64\n{}\nds_read_b32 v8, v2 offset:256", "RAW"),
    ("strides of 64", BOTH, "ds_write2st64_b32 v1, v0, v0 offset1:2\n{}\nds_read_b32 v8, v2 offset:512", "RAW"),
    ("exchange of two", BOTH, "ds_wrxchg2_rtn_b32 v[8:9], v1, v0, v0 offset1:64\n{}\nds_read_b32 v8, v2 offset:256",
     "RAW"),
    ("64 bits", BOTH, "ds_add_u64 v4, v[6:7]\n{}\nds_write_b8 v4, v6 offset:7", "WAW"),
    ("transposing", ("gfx950",), "v_lshlrev_b32 v1, 3, v0\nds_write_b64 v1, v[6:7]\n{}\nv_xor_b32 v2, 8, v1\n"
     "ds_read_b64_tr_b16 v[8:9], v2", "RAW"),
]
PARAMETERS = [pytest.param(chip, body, race, id=f"{name} {chip}")
              for name, chips, body, race in CASES for chip in chips]


@pytest.mark.parametrize("chip, body, race", PARAMETERS)
def test_ways_to_lds(chip, body, race):
    """With no barrier the two accesses race, and with one they do not; all instructions of the way are on it."""

    def launched(between: str) -> None:
        text = KERNEL.format(chip=chip, body=body.format(between))
        Program.from_assembly(text).launch(grid=2, block=64, args=[], check=("waits", "races"))

    launched("s_waitcnt vmcnt(0) lgkmcnt(0)\n; wave barrier")
    launched("s_waitcnt vmcnt(0) lgkmcnt(0)\ns_barrier")
    with pytest.raises(CheckError) as error:
        launched("s_waitcnt vmcnt(0) lgkmcnt(0)")
    assert {f.details["race"] for f in error.value.findings} == {race}


@pytest.mark.parametrize("chip", BOTH)
@pytest.mark.parametrize("body", ["ds_add_u32 v4, v0\nds_max_rtn_u32 v8, v4, v0", "ds_append v8\nds_append v8",
                                  "ds_pk_add_f16 v4, v0\nds_add_f32 v4, v0"])
def test_atomics_do_not_race_with_each_other(chip, body):
    text = KERNEL.format(chip=chip, body=body)
    Program.from_assembly(text).launch(grid=1, block=256, args=[], check=("races",))


SWAPS = {"32 bits": "ds_read_b32 v8, v4\ns_waitcnt lgkmcnt(0)\nv_add_u32 v9, v8, v0\nds_cmpst_rtn_b32 v8, v4, v8, v9",
         "64 bits": "ds_read_b64 v[8:9], v4\ns_waitcnt lgkmcnt(0)\nv_add_u32 v12, v8, v0\nv_mov_b32 v13, v9\n"
                    "ds_cmpst_rtn_b64 v[8:9], v4, v[8:9], v[12:13]",
         "generic": GENERIC.format("v4") + "flat_load_dword v8, v[10:11]\ns_waitcnt vmcnt(0) lgkmcnt(0)\n"
                    "v_add_u32 v9, v8, v0\nv_mov_b32 v12, v9\nv_mov_b32 v13, v8\n"
                    "flat_atomic_cmpswap v8, v[10:11], v[12:13] sc0"}


@pytest.mark.parametrize("chip", BOTH)
@pytest.mark.parametrize("swap", SWAPS)
def test_the_read_that_begins_a_compare_and_swap_is_no_race(chip, swap):
    """As LLVM makes atomics that the chip has not; round twice, so that a thread reads behind its own swap too."""
    wait = "s_waitcnt vmcnt(0) lgkmcnt(0)"
    text = KERNEL.format(chip=chip, body=f"{SWAPS[swap]}\n{wait}\n{SWAPS[swap]}\n{wait}\n{{}}")
    for block in (64, 256):
        Program.from_assembly(text.format("")).launch(grid=1, block=block, args=[], check=("races",))
    for other, race in (("ds_write_b32 v4, v0", "WAW"), ("ds_add_u32 v4, v0\nds_read_b32 v9, v4", "RAW")):
        with pytest.raises(CheckError) as error:
            Program.from_assembly(text.format(other)).launch(grid=1, block=64, args=[], check=("races",))
        assert race in {f.details["race"] for f in error.value.findings}
