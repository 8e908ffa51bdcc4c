"""What people leave out of assembly, and the symbols that the assembler keeps: as LLVM's assembler reads it."""

from __future__ import annotations

import subprocess

import pytest

from flylab.codegen.assembly.encoding import encoding_of
from flylab.codegen.isa import Isa
from flylab.errors import CompileError
from flylab.targets import TARGETS
from tests.emulator.toolchain import ASSEMBLER

FRAME = """
.amdgcn_target "amdgcn-amd-amdhsa--{chip}"
k:
{body}
  s_endpgm
.amdhsa_kernel k
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_next_free_sgpr {sgprs}
  .amdhsa_accum_offset 4
.end_amdhsa_kernel
"""
SHORT = [
    ("v_cndmask_b32 v0, v1, v2", ("v0", "v1", "v2", "vcc")),
    ("v_cndmask_b32_e32 v0, v1, v2", ("v0", "v1", "v2", "vcc")),
    ("v_cmp_eq_u32 v0, v1", ("vcc", "v0", "v1")), ("v_cmpx_lt_f32_e32 v0, v1", ("vcc", "v0", "v1")),
    ("v_add_co_u32 v0, v1, v2", ("v0", "vcc", "v1", "v2")), ("v_subrev_co_u32_e32 v0, 3, v2", ("v0", "vcc", "3", "v2")),
    ("v_add_f32 v0 v1 v2", ("v0", "v1", "v2")), ("v_add_f32 v0, |v1| -v2", ("v0", "|v1|", "-v2")),
    ("s_load_dwordx2 s[0:1], s[2:3] 0x10", ("s[0:1]", "s[2:3]", "0x10")),
    ("global_load_dword v2 v8 s[4:5] offset:4 nt", ("v2", "v8", "s[4:5]")),
]


def frame(body: str, chip: str = "gfx942", vgprs: str = "8", sgprs: str = "8") -> str:
    return FRAME.format(body=body, chip=chip, vgprs=vgprs, sgprs=sgprs)


@pytest.mark.parametrize("text, operands", SHORT)
def test_what_may_be_left_out(text: str, operands: tuple[str, ...]) -> None:
    first = Isa.parse(frame("  " + text)).kernels["k"].instructions[0]
    assert first.operands == operands


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", TARGETS)
def test_it_is_what_the_assembler_reads(chip: str) -> None:
    body = "\n".join(text for text, _ in SHORT)
    printed = subprocess.run([str(ASSEMBLER), "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"], input=body,
                             capture_output=True, text=True, check=True).stdout.splitlines()
    full = "\n".join(line for line in printed if line.strip() and ".amdgcn_target" not in line)
    ours, theirs = (Isa.parse(frame(text, chip)).kernels["k"].instructions for text in (body, full))
    assert [(i.operands, i.modifiers, i.address, encoding_of(i.mnemonic, i.operands, i.modifiers)) for i in ours] == [
        (i.operands, i.modifiers, i.address, encoding_of(i.mnemonic, i.operands, i.modifiers)) for i in theirs]


@pytest.mark.parametrize("text", ["v_addc_co_u32 v0, vcc, v1, v2", "v_cmp_eq_u32_e64 v0, v1",
                                  "v_cndmask_b32_sdwa v0, v1, v2"])
def test_what_may_not_be_left_out_stays_as_it_is(text: str) -> None:
    assert "vcc" not in Isa.parse(frame("  " + text)).kernels["k"].instructions[0].operands[-1:]


def test_registers_named_so_far() -> None:
    """Counted up to the line that asks, anew where they are set. Values of LLVM 22's assembler."""
    text = frame("  v_mov_b32 v6, 0\n  v_accvgpr_write_b32 a[7], v1\n  s_mov_b64 s[4:5], vcc",
                 vgprs=".amdgcn.next_free_vgpr", sgprs=".amdgcn.next_free_sgpr+1")
    second = frame("  v_mov_b32 v2, 0", vgprs=".amdgcn.next_free_vgpr+1")
    second = second.replace("k:", "m:").replace("kernel k", "kernel m")
    both = Isa.parse(f"{text}\n.set .amdgcn.next_free_vgpr, 0\n{second.partition('--gfx942')[2][1:]}")
    descriptors = [both.kernels[name].descriptor for name in "km"]
    assert [(d["next_free_vgpr"], d["next_free_sgpr"]) for d in descriptors] == [(8, 7), (4, 8)]


@pytest.mark.parametrize("chip, minor, stepping", [("gfx942", 4, 2), ("gfx950", 5, 0)])
def test_the_generation_is_known(chip: str, minor: int, stepping: int) -> None:
    body = (".if .amdgcn.gfx_generation_number == 9\n  s_movk_i32 s0, .amdgcn.gfx_generation_minor\n.endif\n"
            "  s_movk_i32 s1, .amdgcn.gfx_generation_stepping")
    found = Isa.parse(frame(body, chip)).kernels["k"].instructions
    assert [i.operands[1] for i in found[:2]] == [str(minor), str(stepping)]


def test_code_without_a_descriptor() -> None:
    with pytest.raises(CompileError, match="ISA line 4: 's_nop 0' belongs to no function") as caught:
        Isa.parse(frame("  s_nop 0").replace("amdhsa_kernel k", "amdhsa_kernel other"))
    assert "the label 'k' before it needs an .amdhsa_kernel block" in str(caught.value)
    assert "there is no label 'other'" in str(caught.value)
