"""Writes to LDS that were not waited for, when the bytes are read: loads to LDS, and writes of another wave."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import CheckError

KERNEL = """
.amdgcn_target "amdgcn-amd-amdhsa--{chip}"
k:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_readfirstlane_b32 s2, v1
  s_mov_b32 m0, s2
  s_waitcnt lgkmcnt(0)
{body}
  s_endpgm
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size 1024
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 8
  .amdhsa_next_free_vgpr 8
  .amdhsa_accum_offset 8
  .amdhsa_next_free_sgpr 16
.end_amdhsa_kernel
"""
chips = pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
DIRECT = "global_load_lds_dword v1, s[4:5]"
READ_OWN, READ_OTHER = (f"v_xor_b32 v2, {n}, v1\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)" for n in (4, 256))


def launched(lines: str, chip: str, block: int = 128) -> None:
    body = "\n".join("  " + line for line in lines.strip().split("\n"))
    numbers = np.arange(block, dtype=np.int32)
    Program.from_assembly(KERNEL.format(chip=chip, body=body)).launch(
        grid=1, block=block, args=[numbers], check=("waits", "races", "barriers"))


def found(lines: str, chip: str, block: int = 128) -> list[tuple[str, str, str, list[str]]]:
    """Of each finding the kind, the counter, the instruction where it shows, and the others."""
    with pytest.raises(CheckError) as error:
        launched(lines, chip, block)
    program = Program.from_assembly(KERNEL.format(chip=chip, body=lines))
    names = [i.mnemonic for i in program.isa.kernels["k"].instructions]
    return [(f.kind, f.details.get("counter", f.details.get("race")), names[f.instruction],
             [names[n] for n in f.others]) for f in error.value.findings]


@chips
def test_a_load_to_lds_is_read_before_it_is_waited_for(chip):
    late = ("missing wait", "vmcnt", "ds_read_b32", ["global_load_lds_dword"])
    assert found(f"{DIRECT}\n{READ_OWN}", chip, 64) == [late]
    launched(f"{DIRECT}\ns_waitcnt vmcnt(0)\n{READ_OWN}", chip, 64)


@chips
def test_a_load_to_lds_that_another_wave_waits_for_in_vain(chip):
    """Each wave has to wait for its own loads before the barrier; waiting behind it is too late for the others."""
    late = ("missing wait", "vmcnt", "ds_read_b32", ["global_load_lds_dword"])
    launched(f"{DIRECT}\ns_waitcnt vmcnt(0)\ns_barrier\n{READ_OTHER}", chip)
    assert found(f"{DIRECT}\ns_barrier\n{READ_OTHER}", chip) == [late]
    assert found(f"{DIRECT}\ns_barrier\ns_waitcnt vmcnt(0)\n{READ_OTHER}", chip) == [late]
    launched(f"{DIRECT}\ns_barrier\ns_waitcnt vmcnt(0)\ns_barrier\n{READ_OTHER}", chip)
    assert found(f"{DIRECT}\ns_waitcnt vmcnt(0)\n{READ_OTHER}", chip) == [
        ("race", "RAW", "ds_read_b32", ["global_load_lds_dword"])]


@chips
def test_of_two_loads_one_is_waited_for(chip):
    two = f"{DIRECT}\ns_add_u32 m0, s2, 512\n{DIRECT}\ns_waitcnt vmcnt(1)\ns_barrier\n"
    launched(two + READ_OTHER, chip)
    late = ("missing wait", "vmcnt", "ds_read_b32", ["global_load_lds_dword"])
    assert found(two + READ_OTHER.replace("v3, v2", "v3, v2 offset:512"), chip) == [late]


@chips
def test_a_write_that_was_not_waited_for_at_the_barrier(chip):
    late = ("missing wait", "lgkmcnt", "ds_read_b32", ["ds_write_b32"])
    write = "ds_write_b32 v1, v0\n"
    launched(f"{write}s_waitcnt lgkmcnt(0)\ns_barrier\n{READ_OTHER}", chip)
    assert found(f"{write}s_barrier\n{READ_OTHER}", chip) == [late]
    assert found(f"{write}s_barrier\ns_waitcnt lgkmcnt(0)\n{READ_OTHER}", chip) == [late]
    launched(f"{write}s_barrier\ns_waitcnt lgkmcnt(0)\ns_barrier\n{READ_OTHER}", chip)
    launched(f"{write}s_barrier\n{READ_OWN.replace('4, v1', '0, v1')}", chip)


@chips
def test_times_begin_anew(chip, monkeypatch):
    """When cells have no room for more times, all is forgotten, and nothing is said that is not so."""
    from flylab.emulator.checks import races

    monkeypatch.setattr(races, "MOST_TIME", 4)
    monkeypatch.setattr(races.Races, "name", "races of few times")
    loop = (f"s_mov_b32 s6, 20\nagain:\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\n{READ_OTHER}\n{{}}\n"
            "s_sub_u32 s6, s6, 1\ns_cmp_lg_u32 s6, 0\ns_cbranch_scc1 again")
    launched(loop.format("s_barrier"), chip)
    assert found(loop.format("s_nop 0"), chip)[0][:2] == ("race", "WAR")
