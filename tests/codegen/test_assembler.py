"""The assembler's language: macros, conditions, expressions and symbols, against LLVM's assembler where it is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from random import Random

import pytest

from flylab.codegen.assembly.descriptor import SETTINGS
from flylab.codegen.assembly.expressions import evaluate, parse, signed
from flylab.codegen.assembly.macros import Statements
from flylab.codegen.isa import Isa
from flylab.errors import CompileError
from tests.emulator.toolchain import assembly

ASSEMBLER = shutil.which("llvm-mc-22")
needs_assembler = pytest.mark.skipif(not ASSEMBLER, reason="LLVM's assembler llvm-mc-22 is not on PATH")

HAND = """
.set vgprA, 4
.set x, 3
.equ y, x+2
z = 7
/* a comment
   of two lines */
.macro LOAD a, b=5, c:req
  v_mov_b32 v[\\a], \\b   // the first
  s_mov_b32 s[\\c], \\@
.endm
.macro EACH first, rest:vararg
  .ifnb \\rest
  EACH \\rest
  .endif
  v_mov_b32 v\\first, 0
.endm
.macro LOOP name, times
  s_movk_i32 s20, \\times
\\name\\()_head:
  s_sub_u32 s20, s20, 1
  s_cmp_eq_u32 s20, 0
  s_cbranch_scc0 \\name\\()_head
  .exitm
  s_nop 9
.endm
# a comment at the start
  v_add_u32 v[vgprA+0], v[vgprA+1], v[x]
  LOAD 1, c=3
  LOAD a=1,b=2,c=7
  LOAD 1 2 3
  EACH 1, 2, 3
  LOOP outer, 3 + 1
  global_load_dwordx4 v[vgprA+0:vgprA+3], v[0:1], off offset:16*z
  s_mov_b64 [s2,s3], [s4,s5]
1: s_branch 1f
   s_branch 1b
1: s_nop z-1
  .rept 2
  s_nop 0
  .endr
  .irp q, 1, 2, 3
  .irp p, 4, 5
  s_mov_b32 s\\q, \\p
  .endr
  .endr
  .irpc q, 123
  s_nop \\q
  .endr
  .if z == 7 && (x > 2)
   s_nop 7
   .if 0
   s_nop 1
   .else
   s_nop 2
   .endif
  .elseif 1
   s_nop 6
  .else
   s_nop 5
  .endif
  .ifdef z
   s_nop 4
  .endif
  .ifndef z
   s_nop 3
  .endif
  .ifc abc, abc
  s_nop 2
  .endif
  .set x, x + 1
  s_mov_b32 s[x], 5
  v_mfma_f32_16x16x16_f16 a[0:3], v[vgprA:vgprA+1], v[2:3], a[0:3]
  ds_read_b64 v[vgprA:vgprA+1], v0 offset:x*8
  s_mov_b32 s0, z>>1
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, x), 3
  v_mov_b32 v0, 'a'
  v_add_f32 v0, -|v[x]|, abs(v[x+1])
  buffer_load_dwordx4 v[0:3], v4, s[8:11], 0 offen offset:x+1
  v_pk_add_f16 v0, v1, v2 op_sel:[x-4,1] op_sel_hi:[0,x-3]
  s_mov_b32 s0, -x
  s_mov_b32 s[x+1], !x
  s_endpgm
"""


def instructions(text: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Mnemonics without their encodings, operands with numbers in one form, modifiers; labels by their places."""
    kernel = Isa.parse(text).kernels["k"]
    found = []
    for one in kernel.instructions:
        operands = (o.replace("abs(v5)", "|v5|") for o in one.operands)
        settled = tuple(f"to {kernel.labels[o]}" if o in kernel.labels else
                        str(int(o, 16)) if o.startswith("0x") else o for o in operands)
        found.append((re.sub(r"_e(32|64)$", "", one.mnemonic), settled, one.modifiers))
    return found


@needs_assembler
def test_a_listing_by_hand_is_what_llvm_makes_of_it() -> None:
    text = assembly(HAND, vgprs=24).split(".amdgpu_metadata")[0]
    assert ASSEMBLER
    plain = subprocess.run([ASSEMBLER, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942"], input=text, text=True,
                           capture_output=True, check=True).stdout
    assert ".macro" not in plain and ".rept" not in plain
    mine, llvms = instructions(text), instructions(plain)
    assert len(mine) == 46
    assert mine == llvms


def test_a_listing_by_hand() -> None:
    """Some of it by eye, for where LLVM's assembler is not there."""
    kernel = Isa.parse(assembly(HAND, vgprs=24)).kernels["k"]
    first, second, third = kernel.instructions[:3]
    assert (first.operands, second.operands, third.operands) == (("v4", "v5", "v3"), ("v1", "5"), ("s3", "0"))
    loads = [i for i in kernel.instructions if i.mnemonic == "global_load_dwordx4"]
    assert loads[0].operands[0] == "v[4:7]" and loads[0].modifiers == ("offset:112",)
    assert kernel.labels["outer_head"] == 11
    assert first.text == "v_add_u32 v[vgprA+0], v[vgprA+1], v[x]"
    assert HAND.split("\n")[second.isa_line - 6].strip().startswith("v_mov_b32 v[\\a], \\b")


OPERATORS = ("+", "-", "*", "|", "&", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "/", "%")


def random_expression(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(("0", "1", "7", "0x10", "010", "0b101", "255", "a", "b", "0xfffffffffffffff0"))
    if random.random() < 0.2:
        return f"{random.choice('-~!+')}({random_expression(random, depth - 1)})"
    operator = random.choice(OPERATORS)
    right = str(random.randint(1, 9)) if operator in ("/", "%", "<<", ">>") else random_expression(random, depth - 1)
    text = f"{random_expression(random, depth - 1)} {operator} {right}"
    return f"({text})" if random.random() < 0.4 else text


@needs_assembler
def test_expressions_have_the_values_that_llvm_gives_them() -> None:
    random = Random(1)
    values = {"a": 12, "b": -5}
    texts = [random_expression(random, 4) for _ in range(400)]
    source = ".set a, 12\n.set b, -5\n" + "".join(f".quad {text}\n" for text in texts)
    assert ASSEMBLER
    out = subprocess.run([ASSEMBLER, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942"], input=source, text=True,
                         capture_output=True, check=True).stdout
    wanted = [signed(int(found, 0)) for found in re.findall(r"\.quad\s+(\S+)", out)]
    assert len(wanted) == len(texts)
    for text, value in zip(texts, wanted, strict=True):
        assert evaluate(parse(text), values.__getitem__) == value, text


@pytest.mark.parametrize("text, value", [
    ("1 + 2 << 3", 17), ("1 | 2 + 3 & 4", 3), ("6 ^ 3 | 8", 13), ("2 ! 1", -2), ("-1 >> 60", 15), ("-7 / 2", -3),
    ("-7 % 3", -1), ("1 == 1", -1), ("2 && 1", 1), ("'a'", 97), ("max(1, 3, 2)", 3), ("alignto(5, 4)", 8),
    ("or(1, 4)", 5), ("totalnumvgprs(0, 9)", 9), ("totalnumvgprs(3, 9)", 15), ("extrasgprs(1, 0, 0)", 2),
    ("extrasgprs(0, 0, 1)", 6), ("(((((alignto(max(1, 44), 4)/4)-1)&~65536)&63)+1)*4", 44), ("((2))", 2),
    ("occupancy(8, 8, 512, 8, 8, 102, 64)", 7), ("occupancy(8, 8, 512, 8, 8, 80, 129)", 3)])
def test_values_of_expressions(text: str, value: int) -> None:
    assert evaluate(parse(text), {}.__getitem__) == value


@pytest.mark.parametrize("body, why", [
    (".if 1\n  s_nop 0", "ends within an .if"), (".endif", "ISA line 6: .endif belongs to no .if"),
    (".else", ".else belongs to no .if"), (".endr", ".endr ends nothing here"), (".rept 3\n  s_nop 0", ".rept has no"),
    (".macro a", ".macro has no .endm"), (".rept 99999999\n  s_nop 0\n.endr", "gives more than"),
    (".macro a\n  a\n.endm\n  a", "lie more than"), (".macro a x:req\n.endm\n  a", "macro a needs its argument 'x'"),
    (".macro a x\n.endm\n  a 1, 2", "macro a takes 1 arguments, and '2' is one more"), (".exitm", "stands in no macro"),
    (".if unknown\n.endif", "'unknown' is no known number, and a number is needed here"),
    (".rept 2 +\n.endr", "'2 +' is no expression"), ('.error "no such chip"', 'the assembly says: "no such chip"'),
    (".set a, 1 +", "a is set to what is no value"),
    (".set a, a + 1\n  v_mov_b32 v0, a@abs32@lo", "is defined by itself"),
    (".set a, 1 / 0", "has no value"), (".macro a\n.if 1\n.endm\n  a\n.endif", "of a macro or repetition ends within"),
    ("  v_mov_b32 v0, nowhere@abs32@lo", "the symbol 'nowhere' is not defined in this assembly"),
    ("  v_mov_b32 v0, k@tlsld", "the relocation @tlsld is none that is known here"),
    (".popsection", "has no .pushsection"),
    (".p2align 60", "is no power of two"), (".amd_kernel_code_t", "belongs to code objects of version 2"),
    (".set a, " + "(" * 5000 + "1", "more than 100 brackets within each other"),
    (".amdgpu_lds a, -4", "does not give a name, a size"),
    ("a:\n  s_nop 0\na:", "ISA line 8: the symbol 'a' is defined twice"),
    (".amdgpu_lds k, 4", "the symbol 'k' is defined twice"),
    (".comm a,4,2\na:", "the symbol 'a' is defined twice"),
    (".amdhsa_kernel k\n.amdhsa_ieee_mod 1\n", "ieee_mod is no setting of a descriptor for these chips\nhint: did you "
     "mean .amdhsa_ieee_mode?"), (".amdhsa_kernel k\n.amdhsa_inst_pref_size 1", "no setting of a descriptor"),
    (".amdhsa_kernel k\n.amdhsa_tg_split 0\n.amdhsa_tg_split 1", "kernel 'k' has .amdhsa_tg_split a second time"),
    (".amdhsa_kernel k\n.end_amdhsa_kernel", "kernel 'k' has a second descriptor"),
    (".data\n.ascii no\n.text", "is no string in quotes"), (".data\n.zero 1 << 40\n.text", "gives more than"),
    (".data\n.float x\n.text", "is no number of the directive's format"),
    (".data\n  s_nop 0\n", "belongs to no function"),
])
def test_what_cannot_be_read(body: str, why: str) -> None:
    from flylab.emulator import Program

    with pytest.raises(CompileError) as caught:
        Program.from_assembly(assembly(body + "\n  s_endpgm")).load("k")
    assert why in str(caught.value)


def test_a_label_that_is_a_number_belongs_to_the_next_one_like_it() -> None:
    text = assembly("1:\n  s_nop 0\n  s_branch 1b\n  s_branch 1f\n1:\n  s_branch 1b\n  s_endpgm")
    kernel = Isa.parse(text).kernels["k"]
    assert [kernel.labels[i.operands[0]] for i in kernel.instructions if i.mnemonic == "s_branch"] == [0, 3, 3]


def test_metadata_of_any_version_and_old_forms() -> None:
    """Tensile's has a flow mapping and strings in quotes."""
    head = "custom.config: {A: [1, 2], B: c}\namdhsa.version: [1, 0]\namdhsa.kernels:"
    text = assembly("  s_endpgm").replace("amdhsa.kernels:", head)
    assert len(Isa.parse(text).kernels["k"].args) == 1


def test_the_chip_may_stand_in_the_metadata_or_be_given() -> None:
    text = assembly("  s_endpgm")
    bare = text.replace('.amdgcn_target "amdgcn-amd-amdhsa--gfx942"', "")
    assert Isa.parse(bare, "gfx950").target.arch == "gfx950"
    named = bare.replace("amdhsa.kernels:", "amdhsa.target: amdgcn-amd-amdhsa--gfx950:sramecc+\namdhsa.kernels:")
    assert Isa.parse(named).target.arch == "gfx950"
    longer = text.replace("amdhsa--gfx942", "amdhsa-unknown-gfx942:xnack-")
    assert Isa.parse(longer).target.arch == "gfx942"


def test_registers_are_counted_where_the_descriptor_does_not() -> None:
    text = re.sub(r"\s*\.amdhsa_(next_free_\w+|accum_offset).*", "", assembly(
        "  v_mov_b32 v9, s20\n  v_accvgpr_write_b32 a[3], v0\n  s_endpgm"))
    kernel = Isa.parse(text).kernels["k"]
    assert (kernel.descriptor["next_free_vgpr"], kernel.descriptor["accum_offset"], kernel.sgprs) == (16, 12, 21)


def test_statements_keep_their_lines() -> None:
    text = "a:\n.macro m\n  one\n.endm\n  two /* x\n y */\n  m\n b: three ; comment"
    statements = Statements(text, lambda _: 0, lambda _: False)
    assert [(s.number, s.text) for s in statements] == [
        (1, "a:"), (5, "two"), (3, "one"), (8, "b:"), (8, "three")]


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
def test_the_settings_of_descriptors_are_those_that_llvm_takes() -> None:
    """Of the chips before gfx942 too, whose settings for scratch memory gfx942 has no use for."""
    refused = {}
    for name, (low, high) in SETTINGS.items():
        needed = {"next_free_vgpr": 4, "next_free_sgpr": 4, "accum_offset": 4} | {name: min(max(low, 4), high)}
        lines = "\n".join(f".amdhsa_{setting} {value}" for setting, value in needed.items())
        said = [subprocess.run([str(ASSEMBLER), "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"], capture_output=True,
                               input=f"k:\n.amdhsa_kernel k\n{lines}\n.end_amdhsa_kernel", text=True).stderr
                for chip in ("gfx942", "gfx90a")]
        if all(said):
            refused[name] = said[0]
    assert refused.keys() == {"wavefront_size32"}
