"""The check of undefined registers and LDS: each way a value is looked at, what is said, and what is no finding."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import flylab
from flylab.emulator import Program
from flylab.errors import CheckError
from tests.emulator.toolchain import CHIPS, assembly, compile_for, element, kernel

POINTER = """
  .file 1 "kernel.py"
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
"""
STORE = "\n  global_store_dword v1, v0, s[4:5]\n"


def findings(body: str, chip: str = "gfx942", block: int = 64, grid: int = 1, **descriptor: int) -> list[Any]:
    """What the check finds in a program, of which `.loc 1 n` gives the lines."""
    program = Program.from_assembly(assembly(f"{POINTER}{body}\n  s_endpgm", chip, **descriptor))
    try:
        program.launch(grid=grid, block=block, args=[np.zeros(256, np.uint32)], check=("registers",))
    except CheckError as error:
        assert error.findings[0].message in str(error)
        return list(error.findings)
    return []


# What is looked at, the register that the finding names, and what it says of it.
LOOKS = [
    ("global_store_dword v1, v5, s[4:5]", "v5", "goes to memory"),
    ("global_store_dwordx2 v1, v[6:7], s[4:5]", "v6", "goes to memory"),
    ("global_atomic_add v1, v5, s[4:5]", "v5", "goes to memory"),
    ("global_store_dword v5, v0, s[4:5]", "v5", "is part of an address"),
    ("global_load_dword v2, v5, s[4:5]", "v5", "is part of an address"),
    ("global_load_dword v2, v1, s[8:9]", "s8", "is part of an address"),
    ("buffer_load_dword v2, v5, s[8:11], 0 offen", "v5", "is part of an address"),
    ("buffer_store_dword v5, off, s[8:11], 0", "s8", "is part of an address"),
    ("s_load_dword s12, s[8:9], 0x0", "s8", "is part of an address"),
    ("ds_read_b32 v2, v5", "v5", "is part of an address"),
    ("ds_write_b32 v5, v0", "v5", "is part of an address"),
    ("ds_read_addtid_b32 v2", "m0", "is part of an address"),
    ("s_cbranch_scc1 .Lnext", "SCC", "decides a branch"),
    ("s_cbranch_vccnz .Lnext", "vcc_lo", "decides a branch"),
    ("s_and_saveexec_b64 s[8:9], vcc", "vcc_lo", "decides which threads go on"),
    ("s_mov_b64 exec, s[10:11]", "s10", "decides which threads go on"),
    ("s_andn2_b64 exec, exec, s[10:11]", "s10", "decides which threads go on"),
    ("v_cmpx_gt_u32_e64 vcc, 5, v5", "v5", "decides which threads go on"),
    ("s_setpc_b64 s[8:9]", "s8", "is part of an address"),
]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("look", "register", "use"), LOOKS)
def test_where_a_value_is_looked_at(chip: str, look: str, register: str, use: str) -> None:
    """The first finding names the register, the use, the line and the thread."""
    program = Program.from_assembly(assembly(
        f"{POINTER}  .loc 1 7 0\n  {look}\n  .loc 1 8 0\n.Lnext:\n  s_endpgm", chip, group_segment_fixed_size=256))
    with pytest.raises(flylab.errors.DeviceError) as caught:  # on its way some go out of bounds, or nowhere
        program.launch(grid=1, block=64, args=[np.zeros(64, np.uint32)], check=("registers",))
    first = caught.value.findings[0]
    assert first.kind == "registers" and first.details["register"] == register
    assert first.message.startswith(f"{register} {use} and is undefined")
    assert "it was never written" in first.message and look in first.message
    assert first.where.line == 7 and first.thread == (0, 0, 0) and first.hint


def test_the_first_register_is_named() -> None:
    """Through copies and sums, with the lanes that it concerns and no others."""
    found = findings("""
  s_mov_b64 exec, 0xff
  v_mov_b32_e32 v5, 1
  s_mov_b64 exec, -1
  v_add_u32_e32 v6, v0, v5
  v_mov_b32_e32 v7, v6
  s_mov_b64 exec, 0x3ff
  global_store_dword v1, v7, s[4:5]""")
    (one,) = found
    assert one.message.startswith("v7 goes to memory and is undefined in threads (8, 0, 0), (9, 0, 0): "
                                  "it comes from v5, which was never written")
    assert one.thread == (8, 0, 0) and one.details["lanes"] == 0x300


def test_a_finding_for_each_use_and_origin() -> None:
    """The register counts as defined after a report; another use of the same origin is told, another lane is not."""
    found = findings("""
  s_mov_b32 s8, 3
.Lnext:
  v_mov_b32_e32 v6, v5
  global_store_dword v1, v6, s[4:5]
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lnext
  global_store_dword v1, v6, s[4:5]
  global_store_dword v1, v5, s[4:5]
  global_store_dword v1, v5, s[4:5]""", grid=3)
    assert [(f.details["register"], f.block) for f in found] == [("v6", (0, 0, 0)), ("v5", (0, 0, 0))]


LDS = """
  v_cmp_gt_u32_e32 vcc, 32, v0
  s_and_saveexec_b64 s[8:9], vcc
  .loc 1 3 0
  ds_write_b32 v1, {data}
  s_mov_b64 exec, s[8:9]
  s_waitcnt lgkmcnt(0)
  .loc 1 5 0
  ds_read_b32 v2, v1 offset:4
  s_waitcnt lgkmcnt(0)
  .loc 1 6 0
  global_store_dword v1, v2, s[4:5]"""


def test_lds_that_nobody_wrote() -> None:
    (one,) = findings(LDS.format(data="v0"), group_segment_fixed_size=512)
    assert "v2 goes to memory and is undefined in threads (31, 0, 0), (32, 0, 0), (33, 0, 0)" in one.message
    assert "it was read from LDS at 'ds_read_b32 v2, v1 offset:4'" in one.message and "kernel.py, line 5" in one.message
    assert "where no thread of the block had written byte 128" in one.message
    assert one.where.line == 6 and one.thread == (31, 0, 0) and len(one.others) == 1


def test_lds_that_was_given_what_is_undefined() -> None:
    """Storing to LDS is no use of a value; its being undefined goes through it."""
    (one,) = findings(LDS.format(data="v5"), group_segment_fixed_size=512)
    assert one.thread == (0, 0, 0)
    assert "where byte 4 had been given an undefined value" in one.message


def test_the_byte_that_is_told_of_a_wide_read() -> None:
    """Of four dwords the first and the last are written; of what one instruction reads, the first undefined is told."""
    found = findings("""
  v_lshlrev_b32 v2, 4, v0
  ds_write2_b32 v2, v0, v0 offset1:3
  s_waitcnt lgkmcnt(0)
  ds_read_b128 v[8:11], v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v10, s[4:5]
  ds_read2_b64 v[8:11], v2 offset0:128 offset1:1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v8, s[4:5]""", group_segment_fixed_size=2048)
    told = [re.findall(r"where no thread of the block had written byte (\d+)", f.message) for f in found]
    assert told == [["4"], ["1024"]]


def test_lds_is_untouched_in_each_workgroup() -> None:
    """What one workgroup wrote is not there for the next."""
    found = findings("""
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 .Lread
  ds_write_b32 v1, v0
.Lread:
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]""", grid=2, group_segment_fixed_size=256)
    assert [f.block for f in found] == [(1, 0, 0)]


# Programs that read what is undefined and do not look at it: none is a finding.
CLEAN = {
    "masked lanes": """
  v_cmp_gt_u32_e32 vcc, 8, v0
  s_and_saveexec_b64 s[8:9], vcc
  v_mov_b32_e32 v5, 1
  global_store_dword v1, v5, s[4:5]""",
    "a copy, a spill, a select": """
  v_mov_b32_e32 v6, v5
  v_cmp_gt_u32_e32 vcc, 64, v0
  v_cndmask_b32_e32 v6, v6, v0, vcc
  global_store_dword v1, v6, s[4:5]""",
    "a pack with half of it undefined": """
  v_lshl_or_b32 v6, v5, 16, v0
  v_perm_b32 v7, v0, v5, v0
  global_store_dword v1, v6, s[4:5]
  global_store_dword v1, v7, s[4:5]""",
    "a mask with undefined bits outside": """
  v_cmp_gt_u32_e32 vcc, 8, v0
  s_and_b64 s[8:9], s[10:11], 0
  s_or_b64 s[8:9], s[8:9], vcc
  s_and_saveexec_b64 s[12:13], s[8:9]
  global_store_dword v1, v0, s[4:5]""",
    "no lane": """
  s_mov_b64 exec, 0
  global_store_dword v5, v6, s[8:9]
  s_cbranch_scc1 .Lnext
.Lnext:""",
    "a condition that a defined bit decides": """
  v_cmp_gt_u32_e32 vcc, 8, v0
  s_or_b64 vcc, vcc, s[8:9]
  s_cbranch_vccz .Lnext
.Lnext:""",
    "the halves of a packed sum": """
  v_mov_b32_e32 v6, 1.0
  v_pk_add_f32 v[8:9], v[6:7], v[6:7]
  global_store_dword v1, v8, s[4:5]""",
    "lanes of DPP": """
  v_mov_b32_e32 v6, 1
  v_add_u32_dpp v5, v6, v6 row_shr:1 row_mask:0xf bank_mask:0xf
  global_store_dword v1, v5, s[4:5]""",
    "LDS with gaps, by its dwords": """
  v_lshlrev_b32 v2, 3, v0
  v_and_b32 v2, 0xf8, v2
  ds_write_b8 v2, v0
  ds_write_b16 v2, v0 offset:5
  s_waitcnt lgkmcnt(0)
  ds_read_b64 v[8:9], v2
  ds_read_u16 v10, v2
  s_waitcnt lgkmcnt(0)
  v_and_b32 v8, 0xff, v8
  v_bfe_u32 v9, v9, 8, 16
  v_and_b32 v10, 0xff, v10
  global_store_dwordx3 v1, v[8:10], s[4:5]""",
    "LDS of lanes that are masked": """
  v_cmp_gt_u32_e32 vcc, 8, v0
  s_and_saveexec_b64 s[8:9], vcc
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[4:5]""",
    "spilled scalar registers": """
  v_writelane_b32 v6, s20, 3
  v_writelane_b32 v6, s4, 4
  v_readlane_b32 s8, v6, 4
  v_mov_b32_e32 v7, s8
  global_store_dword v1, v7, s[4:5]""",
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", CLEAN)
def test_what_is_not_looked_at(chip: str, name: str) -> None:
    assert findings(CLEAN[name], chip, group_segment_fixed_size=256) == []


def test_what_a_wave_begins_with() -> None:
    """The user's registers, the workgroup's number and the work-item's; and nothing beside."""
    for register in ("s0", "s1", "s2"):
        assert findings(f"  v_mov_b32_e32 v2, {register}\n  global_store_dword v1, v2, s[4:5]") == []
    for register in ("s3", "m0", "vcc_lo"):
        (one,) = findings(f"  v_mov_b32_e32 v2, {register}\n  global_store_dword v1, v2, s[4:5]")
        assert f"it comes from {register}, which was never written" in one.message
    (one,) = findings("  v_accvgpr_read_b32 v2, a3\n  global_store_dword v1, v2, s[4:5]", vgprs=16, next_free_vgpr=24,
                      accum_offset=16)
    assert "it comes from a3" in one.message


def test_flat_stores_to_lds_count() -> None:
    """A generic pointer to LDS: what it wrote is there, and undefined data that goes there is not looked at."""
    for data, wrong in (("v0", 0), ("v5", 1)):
        found = findings(f"""
  s_mov_b64 s[8:9], src_shared_base
  v_mov_b32_e32 v2, v1
  v_mov_b32_e32 v3, s9
  flat_store_dword v[2:3], {data}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  ds_read_b32 v4, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]""", group_segment_fixed_size=256)
        assert len(found) == wrong and all("ds_read_b32" in f.message for f in found)


def test_loads_to_lds_count() -> None:
    assert findings("""
  s_mov_b32 m0, 0
  s_nop 0
  global_load_lds_dword v1, s[4:5]
  s_waitcnt vmcnt(0)
  ds_read_b32 v4, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5]""", group_segment_fixed_size=256) == []


# Registers that M0 picks, and lanes that go elsewhere: the program, and the lanes of v5 that are undefined at its end.
MOVED = {
    "gpr_idx": ("  s_mov_b32 s8, 3\n  s_set_gpr_idx_on s8, gpr_idx(DST)\n  v_mov_b32_e32 v2, v0\n"
                "  s_set_gpr_idx_off", 0),
    "movreld": ("  s_mov_b32 m0, 2\n  s_movreld_b32 s8, s4\n  v_mov_b32_e32 v5, s10", 0),
    "movreld elsewhere": ("  s_mov_b32 m0, 2\n  s_movreld_b32 s8, s4\n  v_mov_b32_e32 v5, s9", (1 << 64) - 1),
    "swizzle": ("  ds_swizzle_b32 v5, v0 offset:swizzle(SWAP,1)\n  s_waitcnt lgkmcnt(0)", 0),
    "bpermute": ("  ds_bpermute_b32 v5, v1, v6\n  s_waitcnt lgkmcnt(0)", (1 << 64) - 1),
    "readlane": ("  s_mov_b64 exec, 2\n  v_mov_b32_e32 v6, 1\n  s_mov_b64 exec, -1\n  v_readlane_b32 s8, v6, 1\n"
                 "  v_mov_b32_e32 v5, s8", 0),
    "readlane of another": ("  s_mov_b64 exec, 2\n  v_mov_b32_e32 v6, 1\n  s_mov_b64 exec, -1\n"
                            "  v_readlane_b32 s8, v6, 2\n  v_mov_b32_e32 v5, s8", (1 << 64) - 1),
    "LDS atomic": ("  ds_write_b32 v1, v0\n  ds_add_rtn_u32 v5, v1, v0\n  s_waitcnt lgkmcnt(0)", 0),
    "LDS atomic of nothing": ("  ds_add_rtn_u32 v5, v1, v0\n  s_waitcnt lgkmcnt(0)", (1 << 64) - 1),
    "LDS exchange": ("  ds_wrxchg_rtn_b32 v6, v1, v0\n  ds_read_b32 v5, v1\n  s_waitcnt lgkmcnt(0)", 0),
    "two places": ("  ds_write2st64_b32 v1, v0, v6 offset1:1\n  ds_read2st64_b32 v[4:5], v1 offset1:1\n"
                   "  s_waitcnt lgkmcnt(0)", (1 << 64) - 1),
    "the first of two": ("  ds_write2_b32 v1, v0, v6 offset1:64\n  ds_read_b32 v5, v1\n  s_waitcnt lgkmcnt(0)", 0),
    "half of a register": ("  v_mov_b32_e32 v5, 0\n  global_load_short_d16_hi v5, v1, s[4:5]\n  s_waitcnt vmcnt(0)", 0),
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", MOVED)
def test_registers_and_lanes_that_are_found_while_running(chip: str, name: str) -> None:
    body, lanes = MOVED[name]
    found = findings(f"{body}\n  global_store_dword v1, v5, s[4:5]", chip, group_segment_fixed_size=1024)
    assert [f.details["lanes"] for f in found] == ([lanes] if lanes else [])


@pytest.mark.parametrize(("rows", "lanes"), [(16, 0xFFFF_0000_FFFF_0000), (32, 0xFFFF_FFFF_0000_0000)])
def test_swapped_rows_of_lanes(rows: int, lanes: int) -> None:
    """The odd rows of the first register come from the second, of which nothing is defined; gfx950 alone has these."""
    (one,) = findings(f"""
  v_mov_b32_e32 v5, v0
  v_permlane{rows}_swap_b32 v5, v6
  global_store_dword v1, v5, s[4:5]""", "gfx950")
    assert one.details["lanes"] == lanes and "it comes from v6" in one.message


BRANCHES = """
  %small = icmp ult i32 %t, 20
  br i1 %small, label %then, label %join
then:
""" + element("%a", "float", "%p") + """  %x = load float, ptr addrspace(1) %a
  br label %join
join:
  %v = phi float [ %x, %then ], [ undef, %entry ]
  %used = {used}
  br i1 %used, label %store, label %done
store:
""" + element("%o", "float", "%q") + """  store float %v, ptr addrspace(1) %o
  br label %done
done:
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("opt", range(4))
def test_undefined_values_of_compiled_code(chip: str, opt: int) -> None:
    """A value that one way leaves undefined, and only threads of the other look at."""
    ir = kernel("ptr %p, ptr %q", BRANCHES.format(used="icmp ult i32 %t, 20"))
    program = Program.from_assembly(compile_for(chip, ir, opt))
    program.launch(grid=2, block=100, args=[np.ones(512, np.float32), np.zeros(512, np.float32)], check=("registers",))
