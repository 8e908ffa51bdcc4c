"""What hand-written assembly can get wrong: registers, files of registers, numbers, directives, descriptors, metadata.

A listing that the device cannot run is refused by name, before anything of it runs.
"""

from __future__ import annotations

import numpy as np
import pytest

from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import Isa
from flylab.emulator import Program
from flylab.emulator.decoding.chips import chips_with
from flylab.errors import CompileError, DeviceError, UnknownInstruction
from tests.emulator.toolchain import assembly, compile_for, kernel

BEYOND = [
    ("s_mov_b32 s100000, 5", "the operand 's100000' is not one"), ("s_mov_b32 s102, 5", "the scalar registers end at"),
    ("v_mov_b32 v2, s300", "the scalar registers end at s101, and it names s300"),
    ("v_cmp_eq_u32 s[200:201], v1, v2", "it names s[200:201]"), ("s_mov_b64 s[101:102], 0", "it names s[101:102]"),
    ("s_load_dwordx16 s[140:155], s[0:1], 0x0", "it names s[140:155]"),
    ("s_load_dwordx16 s[90:105], s[0:1], 0x0", "it names s[90:105]"), ("v_readfirstlane_b32 s300, v1", "it names s300"),
    ("s_mov_b64 s[5:4], 0", "it names 0 registers where the instruction takes 2"),
    ("v_mov_b32 v16, 0", "register v16 is beyond the 16"), ("v_accvgpr_write_b32 a0, 0", "register a0 is beyond the 0"),
    ("v_add_f64 v[15:16], v[0:1], v[2:3]", "register v16 is beyond the 16"),
    ("v_mov_b32 v[0:99999999], 0", "the operand 'v[0:99999999]'"), ("s_mov_b64 m0, 0", "names 1 registers"),
]
VECTOR_FOR_SCALAR = "a vector register stands where it takes a scalar register"
SCALAR_FOR_VECTOR = "a scalar register stands where it takes a vector register"
FILES = [
    ("v_swap_b32 v1, s1", SCALAR_FOR_VECTOR), ("global_load_dword s9, v1, s[4:5]", SCALAR_FOR_VECTOR),
    ("global_load_dword v2, s1, s[4:5]", SCALAR_FOR_VECTOR), ("global_load_dword v2, 5, s[4:5]", "a constant stands"),
    ("global_load_dword v2, v1, v[4:5]", VECTOR_FOR_SCALAR), ("global_store_dword v1, s2, s[4:5]", SCALAR_FOR_VECTOR),
    ("global_load_dword v2, v1, 7", "a constant stands where"), ("global_load_dword off, v1, s[4:5]", "'off' stands"),
    ("flat_load_dword v2, s[4:5]", SCALAR_FOR_VECTOR), ("flat_load_dword v2, v[0:1], off", "3 operands, and takes 2"),
    ("global_load_dword v2, v[0:1]", "2 operands, and takes 3"),
    ("buffer_load_dword v2, s1, s[4:7], 0 offen", SCALAR_FOR_VECTOR),
    ("buffer_load_dword v2, v1, s[4:7], v3 offen", VECTOR_FOR_SCALAR),
    ("buffer_load_dword v2, v1, v[4:7], 0 offen", VECTOR_FOR_SCALAR),
    ("buffer_load_dword s2, off, s[4:7], 0", SCALAR_FOR_VECTOR),
    ("s_add_u32 s4, v1, s2", VECTOR_FOR_SCALAR), ("s_add_u32 v4, s1, s2", VECTOR_FOR_SCALAR),
    ("s_load_dword s4, v[0:1], 0x0", VECTOR_FOR_SCALAR), ("s_load_dword s4, s[0:1], v1", VECTOR_FOR_SCALAR),
    ("v_cndmask_b32_e64 v1, v2, v3, v[4:5]", VECTOR_FOR_SCALAR), ("v_cmp_eq_u32 v[4:5], v1, v2", VECTOR_FOR_SCALAR),
    ("v_readlane_b32 s4, v1, v2", VECTOR_FOR_SCALAR), ("v_readlane_b32 s4, s1, 2", SCALAR_FOR_VECTOR),
    ("v_readfirstlane_b32 v4, v1", VECTOR_FOR_SCALAR), ("v_writelane_b32 v4, v1, 3", VECTOR_FOR_SCALAR),
    ("v_writelane_b32 s4, s1, 3", SCALAR_FOR_VECTOR), ("s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), v1", VECTOR_FOR_SCALAR),
    ("s_getreg_b32 v1, hwreg(HW_REG_MODE, 4, 4)", VECTOR_FOR_SCALAR),
    ("v_pk_mov_b32 v[2:3], off, v[2:3]", "'off' stands"), ("v_pk_add_f32 v[2:3], off, v[2:3]", "'off' stands"),
    ("v_add_f32_e32 v1, off, v2", "'off' stands"), ("s_add_u32 s4, -s1, s2", "no source modifier"),
    ("v_mul_lo_u16_e64 v1, v2, v3 clamp", "its result is no float that could be scaled or clamped"),
    ("v_add_f32_e64 |v1|, v2, v3", "no source modifier"), ("v_pk_add_f16 v1, |v2|, v3", "no source modifier"),
]
NUMBERS = [
    ("v_mov_b32 v2, 0x1ffffffff", "the constant 8589934591 does not fit 32 bits"),
    ("v_mov_b32 v2, 1_0", "the operand '1_0'"),
    ("s_mov_b64 s[4:5], 0x100000000", "does not fit 32 bits"), ("v_mov_b32 v2, -0x80000001", "does not fit 32 bits"),
    ("v_mov_b32 v2, 089", "the operand '089'"), ("v_mov_b32 v2, nan", "the operand 'nan'"),
    ("s_movk_i32 s4, 0x10000", "does not fit 16 bits"), ("v_mov_b32 v2, " + "9" * 5000, "the operand '999"),
    ("v_mul_f32 v2, 1e39, v2", "1e+39 is beyond a float of 32 bits"), ("v_mul_f32 v2, 1e999, v2", "operand '1e999'"),
    ("v_add_f16 v2, 65536.0, v2", "beyond a float of 16 bits"),
    ("global_load_dword v2, v1, s[4:5] offset:99999999999", "the offset 99999999999 is no number from -4096 to 4095"),
    ("global_load_dword v2, v1, s[4:5] offset:4096", "from -4096 to 4095"),
    ("global_load_dword v2, v1, s[4:5] offset:x", "the offset x is no number"),
    ("flat_load_dword v2, v[0:1] offset:-1", "from 0 to 4095"),
    ("buffer_load_dword v2, off, s[4:7], 0 offset:4096", "from 0 to 4095"),
    ("s_load_dword s4, s[0:1], 0x100000", "the offset 0x100000 is no number from"),
    ("s_load_dword s4, s[0:1], 1.5", "the offset 1.5 is no number"), ("s_trap x", "the trap x is no number"),
    ("v_bitop3_b32 v1, v2, v3, v4 bitop3:x", "the truth table x"), ("s_trap 256", "from 0 to 255"),
    ("s_sethalt 1", "it halts the wave"), ("s_setkill 0x101", "it kills the wave"), ("s_sethalt", "and takes 1"),
    ("s_setkill 65536", "from 0 to 65535"),
    ("v_bitop3_b32 v1, v2, v3, v4 bitop3:0x100", "no number from 0 to 255"),
    ("v_add_f32_sdwa v1, v2, v3 dst_sel:FOO", "the modifier 'dst_sel:FOO'"), ("s_branch", "takes the label"),
    ("v_pk_add_f16 v1, v2, v3 op_sel:[11]", "the modifier 'op_sel:[11]'"), ("s_branch a, b", "2 operands"),
    ("v_writelane_b32 v2, s3", "2 operands, and takes 3"), ("v_readlane_b32 s4, v2", "2 operands, and takes 3"),
    ("v_swap_b32 v2", "1 operands, and takes 2"), ("v_pk_mov_b32 v[2:3], v[4:5]", "2 operands, and takes 3"),
    ("s_setreg_b32 s4", "1 operands, and takes 2"), ("v_add_f32 v1,,v2", "the operand ''"),
    ("s_getreg_b32 s4, hwreg(HW_REG_MODE, 30, 4)", "no 4 bits from bit 30"), ("v_add_f32 v1, v2,", "the operand ''"),
    ("v_mov_b32 v2, " + 3000 * "abs(" + "v1" + 3000 * ")", "the operand 'abs(abs("),
    ("v_add_f32 v2, |, v2", "the operand '|'"), ("v_add_f32 v2, --v1, v2", "the operand '--v1'"),
]


@pytest.mark.parametrize("instruction, why", [*BEYOND, *FILES, *NUMBERS], ids=lambda text: text[:40])
def test_an_instruction_that_cannot_be(instruction: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match="ISA line 6") as caught:
        Program.from_assembly(assembly(f"  {instruction}\n  s_endpgm", _chip(instruction))).load("k")
    assert why in str(caught.value)


def _chip(instruction: str) -> str:
    """The first chip that has an instruction."""
    return chips_with(base_name(instruction.split()[0]))[0]


@pytest.mark.parametrize("text, wanted", [("010", 8), ("0b101", 5), ("0x10", 16), ("-0x10", -16), ("0xffffffff", -1),
                                          ("-2147483648", -(1 << 31)), ("1.0", 0x3F800000)])
def test_numbers_as_llvm_reads_them(text: str, wanted: int) -> None:
    body = f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  v_mov_b32_e32 v2, {text}
  global_store_dword v1, v2, s[4:5]
  s_endpgm
"""
    found = np.zeros(64, "i4")
    Program.from_assembly(assembly(body)).launch(grid=1, block=64, args=[found])
    assert np.all(found == wanted)


@pytest.mark.parametrize("name, value, why", [
    ("user_sgpr_count", 1000000, "is 1000000, and 0 to 16 are possible"), ("user_sgpr_count", -1, "0 to 16"),
    ("user_sgpr_count", 300, "0 to 16"), ("next_free_vgpr", 513, "0 to 512"), ("next_free_vgpr", 10**6, "0 to 512"),
    ("wavefront_size32", 1, "the waves of these chips have 64 lanes"), ("system_sgpr_workgroup_id_x", 200, "0 to 1"),
    ("group_segment_fixed_size", -5, "0 to"), ("accum_offset", 300, "4 to 256"), ("kernarg_size", 1 << 40, "0 to"),
])
def test_a_descriptor_that_cannot_be(name: str, value: int, why: str) -> None:
    with pytest.raises(CompileError, match=f"ISA line [0-9]+: .amdhsa_{name} is {value}") as caught:
        Program.from_assembly(assembly("  s_endpgm", **{name: value}))
    assert why in str(caught.value)


def test_fewer_user_registers_than_are_asked_for() -> None:
    with pytest.raises(DeviceError, match="user_sgpr_count of 1, and what it asks for takes 2"):
        Program.from_assembly(assembly("  s_endpgm", user_sgpr_count=1)).launch(grid=1, block=64, args=[None])


@pytest.mark.parametrize("body", [
    "  .long 0xbf810000", "  .fill 3, 4", '  .include "x.s"', '  .ascii "x"', "  .org 64", "  .byte 1", "  .altmacro",
    "  .sleb128 5"])
def test_directives_that_make_code_are_refused(body: str) -> None:
    word = body.split()[0]
    with pytest.raises(CompileError, match=rf"ISA line 6: the directive \{word} cannot be read here"):
        Isa.parse(assembly(body + "\n  s_endpgm"))


def test_directives_outside_of_code() -> None:
    head = "  .p2align 8\n  .fill 4, 4, 0\n  .ident \"x\"\n"
    assert len(Isa.parse(head + assembly("  .cfi_sections .debug_frame\n  s_endpgm")).kernels["k"].instructions) == 1
    with pytest.raises(CompileError, match="'s_nop 7' belongs to no function"):
        Isa.parse(assembly("  s_endpgm") + "  s_nop 7\n")


def test_comments_and_strings() -> None:
    body = """
  .file 1 "/a;b//x" "c;d.py" ; .amdgpu_metadata
  .loc 1 3 0 // a "string
  s_nop 1 ; amdgpu_metadata
  s_endpgm // "the end;
"""
    first, last = Isa.parse(assembly(body)).kernels["k"].instructions
    assert (first.text, first.source, last.text) == ("s_nop 1", ("/a;b//x/c;d.py", 3, 0), "s_endpgm")


def test_lines_that_end_in_carriage_returns() -> None:
    text = compile_for("gfx942", kernel("ptr %a, i32 %n", ""))
    one, other = Isa.parse(text).kernels["k"], Isa.parse(text.replace("\n", "\r\n")).kernels["k"]
    assert one == other and len(one.args) == 2


@pytest.mark.parametrize("old, new, why", [
    ("        .offset: 0\n", "", "the metadata has no .offset, and a number"),
    ("        .size: 8\n", "        .size: big\n", "the metadata has 'big' for .size, and a number"),
    ("        .size: 8\n", "        .size: -8\n", "the metadata has -8 for .size"),
    ("        .value_kind: global_buffer\n", "        .value_kind: 5\n", "has 5 for .value_kind, and a word"),
    ("    .kernarg_segment_size: 8\n", "    .kernarg_segment_size: 99999999999\n", "99999999999 for .kernarg_segment"),
    ("    .kernarg_segment_size: 8\n", "    .kernarg_segment_size:\n      - 8\n", "[8] for .kernarg_segment_size"),
    ("    .max_flat_workgroup_size: 1024\n", "    .max_flat_workgroup_size: x\n", "'x' for .max_flat_workgroup_size"),
    ("  - .name: k\n    .args:\n", "  - .args:\n", "the metadata has no .name, and a word"),
    ("amdhsa.kernels:\n", "amdhsa.kernels: 5\n", "not in the form LLVM writes"),
    ("...\n.end_amdgpu_metadata\n", "...\n", "the metadata has no .end_amdgpu_metadata"),
    ("    .kernarg_segment_size: 8\n", "    .x:\n" + "".join(" " * n + "a:\n" for n in range(6, 3000)),
     "not in the form"),
])
def test_metadata_that_cannot_be(old: str, new: str, why: str) -> None:
    text = assembly("  s_endpgm")
    assert old in text
    with pytest.raises(CompileError, match="ISA line [0-9]+: ") as caught:
        Isa.parse(text.replace(old, new))
    assert why in str(caught.value)


@pytest.mark.parametrize("line", [" " * 200000, "," * 200000, "s_nop 0" + " ," * 100000, "s_nop " + "[" * 200000,
                                  "x" * 200000, '"' * 200000, '"' + '\\"' * 100000 + "; x", "v_nop " + "( " * 100000])
def test_long_lines_take_linear_time(line: str) -> None:
    """A reader that takes quadratic time would need hours here."""
    Isa.parse(assembly(line + "\n  s_endpgm"))
    Isa.parse(assembly("  s_endpgm") + "\n" * 200000)


@pytest.mark.parametrize("size, why", [(4, "do not fit its .kernarg_segment_size of 4 "), (1 << 21, "is more than")])
def test_arguments_beyond_their_segment(size: int, why: str) -> None:
    text = assembly("  s_endpgm").replace(".kernarg_segment_size: 8", f".kernarg_segment_size: {size}")
    with pytest.raises(CompileError, match="the arguments of kernel 'k'") as caught:
        Isa.parse(text)
    assert why in str(caught.value)
