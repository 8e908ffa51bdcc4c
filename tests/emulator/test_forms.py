"""What the encodings have room for: the device takes and refuses what LLVM's assembler takes and refuses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from flylab.codegen.assembly.encoding import has_long, has_short, size_of
from flylab.codegen.isa import Isa
from flylab.emulator.decoding.chips import chips_with
from flylab.emulator.decoding.decode import decode
from flylab.emulator.decoding.table import PACKED_FAMILY, SCALAR_FAMILY, TYPES, Row
from flylab.emulator.linking import Image
from flylab.emulator.program import device_tables
from flylab.errors import UnknownInstruction
from tests.emulator.toolchain import ASSEMBLER, CHIPS, assembly

needs_llvm = pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
# Forms that LLVM has and no compiler writes, where the device says no: exceptions of comparisons, results that are no
# floats scaled and clamped, signs of whole numbers in dot products.
REFUSED_HERE = re.compile(r"no float that could be scaled or clamped|takes no neg_lo|no such source modifier")


def assembled(chip: str, lines: list[str]) -> list[int]:
    """The bytes that LLVM's assembler makes of each line, 0 where it refuses it."""
    assert ASSEMBLER is not None
    text = "\n".join(f"line{n}: {line}" for n, line in enumerate(lines))
    command = [ASSEMBLER, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-show-encoding"]
    made = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    refused = {int(n) - 1 for n in re.findall(r"^<stdin>:(\d+):\d+: error", made.stderr, re.M)}
    sizes, at = [0] * len(lines), 0
    for line in made.stdout.splitlines():
        if label := re.match(r"line(\d+):", line):
            at = int(label[1])
        if encoding := re.search(r"encoding: \[(.*?)\]$", line):
            sizes[at] = 0 if at in refused else len(encoding[1].split(","))
    return sizes


def refusals(chip: str, lines: list[str]) -> list[str]:
    """Why the device refuses each line, or nothing."""
    body = "\n".join((*lines, "s_endpgm"))
    isa = Isa.parse(assembly(body, chip, vgprs=512, accum_offset=256, next_free_sgpr=100))
    code = Image(isa).code(isa.kernels["k"])
    found = []
    for instruction in code.kernel.instructions[:len(lines)]:
        try:
            decode(replace(code, kernel=replace(code.kernel, instructions=(instruction,))), *device_tables())
            found.append("")
        except UnknownInstruction as error:
            found.append(str(error))
    return found


def registers(type_: str, place: int, scalar: bool) -> str:
    """A register for an operand of a type."""
    file, first = "s" if scalar or type_ == "mask" else "v", 8 + 4 * place
    return f"{file}{first}" if TYPES[type_].registers == 1 else f"{file}[{first}:{first + 1}]"


def parts(row: Row) -> tuple[list[str], list[str]]:
    scalar = row.family == SCALAR_FAMILY
    results = [registers(t, n, scalar) for n, t in enumerate(row.named_results)]
    return results, [registers(t, 3 + n, scalar) for n, t in enumerate(row.named_sources)]


def forms(chip: str) -> Iterator[str]:
    """Each vector instruction with each modifier of each source, and of the whole."""
    for name, row in device_tables()[0].items():
        packed_floats = row.family == PACKED_FAMILY and any(t.endswith("32") for t in row.results)
        if not name.startswith("v_") or "accvgpr" in name or packed_floats or not has_long(name):
            continue
        if chip not in chips_with(name):
            continue
        results, sources = parts(row)
        texts = [(sources, "")]
        for n, source in enumerate(sources):
            for wrapped in (f"-{source}", f"|{source}|", f"sext({source})", "s50" if "[" not in source else "s[50:51]",
                            "v[51:52]", "s[51:52]", "a8", "0x12345"):
                texts.append(([*sources[:n], wrapped, *sources[n + 1:]], ""))
        for n in range(1, len(sources)):
            texts.append((["s50", "s52", *sources[2:]] if n == 1 else ["s50", sources[1], "s52"], ""))
        count = range(len(sources) + 1)
        bits = ["[" + ",".join(str(int(m == n)) for m in count) + "]" for n in count]
        for word in ("clamp", "mul:2", "div:2", "op_sel_hi:[" + ",".join("0" * len(sources)) + "]",
                     *(f"op_sel:{bit}" for bit in bits)):
            texts.append((sources, word))
        for operands, word in texts:
            yield f"{name}_e64 {', '.join([*results, *operands])} {word}".strip()
            if not word and has_short(name):
                yield f"{name}_e32 {', '.join([*results, *operands])}"


@needs_llvm
@pytest.mark.parametrize("chip", CHIPS)
def test_what_llvm_refuses_is_refused(chip: str) -> None:
    lines = list(forms(chip))
    assert len(lines) > 10000
    differ = []
    for line, size, why in zip(lines, assembled(chip, lines), refusals(chip, lines), strict=True):
        if bool(why) == bool(size) and not (size and REFUSED_HERE.search(why)):
            differ.append((line, why))
    assert differ == []


@needs_llvm
@pytest.mark.parametrize("chip", CHIPS)
def test_an_instruction_without_a_suffix_has_the_size_that_llvm_gives_it(chip: str) -> None:
    lines = [line.replace("_e64", "", 1) for line in forms(chip) if "_e64" in line]
    isa = Isa.parse(assembly("\n".join((*lines, "s_endpgm")), chip))
    sizes = [size_of(i.mnemonic, i.operands, i.modifiers) for i in isa.kernels["k"].instructions[:-1]]
    wanted = assembled(chip, lines)
    assert [(line, ours, size) for line, ours, size in zip(lines, sizes, wanted, strict=True)
            if size and size != ours] == []
    assert {size for size in wanted if size} == {4, 8}


WRONG = [
    ("v_add_u32_e32 v0, v1, 5", "its encoding of 4 bytes takes a register or constant without modifiers as its first"),
    ("v_add_u32_e32 v0, v1, v2 clamp", "has no room for 'clamp'"),
    ("v_add3_u32_e32 v0, v1, v2, v3", "v_add3_u32 has no E32 encoding"),
    ("s_mov_b32_e64 s0, s1", "s_mov_b32 has no E64 encoding"),
    ("v_add_f32_e64 v0, s1, s2", "it reads s1 and s2, and a vector instruction reads one scalar register"),
    ("v_cndmask_b32_e64 v0, s1, v2, vcc", "it reads s1 and vcc"), 
    ("v_div_fmas_f32 v0, s1, v2, v3", "it reads vcc and s1"),
    ("v_fmamk_f32 v0, s1, 0x1234, v2", "it reads s1 and 0x1234"),
    ("v_writelane_b32 v0, m0, s4", "it reads m0 and s4"), ("v_pk_add_f16 v0, s1, s2", "it reads s1 and s2"),
    ("v_fma_f32 v0, v1, v2, 0x1234", "its encoding has no room for the constant 0x1234"),
    ("s_add_u32 s0, 0x1234, 0x1235", "it has room for one constant of 32 bits, and not for 0x1234 and 0x1235"),
    ("v_add_f64 v[0:1], v[3:4], v[6:7]", "vector registers side by side begin at an even one, and not at v3"),
    ("global_load_dwordx3 v[3:5], v0, s[0:1]", "begin at an even one, and not at v3"),
    ("s_mov_b64 s[3:4], 0", "2 scalar registers begin at a multiple of 2, and not at s3"),
    ("s_load_dwordx4 s[6:9], s[0:1], 0x0", "4 scalar registers begin at a multiple of 4, and not at s6"),
    ("v_add_f32_e32 v0, a0, v1", "of vector instructions only those of matrices and v_accvgpr_* take a0"),
    ("v_accvgpr_read_b32 v0, v1", "an accumulator register such as a0 is needed where it names v1"),
    ("v_add_u32_e64 v0, -v1, v2", "it takes no such source modifier there"),
    ("v_add_f32_e64 v0, sext(v1), v2", "only an instruction with the suffix _sdwa extends signs"),
    ("v_add_f32_e64 v0, v1, v2 op_sel:[1,0,0]", "it takes no op_sel"),
    ("v_pk_add_f16 v0, v1, v2 mul:2", "its encoding does not scale results"),
    ("v_pk_add_f16 v0, -v1, v2", "it takes no source modifier there"),
    ("v_add_f32_dpp v0, v1, v2 row_shr:1 clamp", "its DPP encoding neither clamps nor scales"),
    ("v_max_f32_dpp v0, v1, s2 row_shr:1", "DPP moves the lanes of a vector register only"),
    ("s_mov_b32 s0, 1 clamp", "the modifier 'clamp' is none of a scalar instruction"),
    ("s_movk_i32 s0, s1", "it takes a scalar register and a whole number"),
    ("s_cmpk_eq_i32 1, 2", "it takes a scalar register and a whole number"),
    ("s_mov_b64 src_shared_base, 0", "it would write a register that can only be read"),
    ("s_buffer_load_dword s0, s[4:7], -4", "the offset -4 is no number from 0 to 1048575"),
    ("s_load_dword s0, s[0:1], 4 offset:4", "it has two constant offsets"),
    ("s_load_dword m0, s[0:1], 0", "its data cannot be in m0"),
    ("global_load_dword v0, v1, s[0:1] sc0 sc0", "a modifier stands twice in 'sc0 sc0'"),
    ("ds_read_b32 v0, v1 offset:4 offset:8", "a modifier stands twice"),
    ("global_load_dword v0, a1, s[0:1]", "an address is in v0, v1 ... and not in a1"),
    ("ds_read_b32 v0, a1", "an address is in v0, v1 ... and not in a1"),
    ("buffer_load_dword v0, off, s[4:7], 0x1234", "its scalar offset is a register or one of the constants"),
    ("v_fmamk_f32 v0, v1, v2, v3", "a constant is needed where it names v2"),
    ("v_accvgpr_mov_b32 a1, 40", "an accumulator register such as a0 is needed where it names 40"),
    ("s_getpc_b64 s[0:1] clamp", "the modifier 'clamp' is none of a scalar instruction"),
    ("v_cvt_f32_f64_e32 v0, 1.1", "the constant 1.1 has more than the 32 bits that an instruction holds"),
    ("s_mov_b64 s[0:1], 1.5", "the constant 1.5 has more than the 32 bits"),
]
IDLE = [
    ("s_nop", "it takes one number, and has 0 operands"), ("s_nop 0, 0", "has 2 operands"),
    ("s_nop s0", "its operand s0 is no number from -32768 to 65535"), ("s_sleep 0x10000", "its operand 0x10000"),
    ("s_waitcnt", "names no counters"), ("s_waitcnt vmcnt", "'vmcnt' names no counters"),
    ("s_waitcnt foo(0)", "there is no counter foo, but vmcnt, expcnt, lgkmcnt"),
    ("s_waitcnt vmcnt(64)", "the number of vmcnt 64 is no number from 0 to 63"),
    ("s_waitcnt lgkmcnt(16)", "the number of lgkmcnt 16"), ("s_waitcnt vmcnt(0) clamp", "names no counters"),
    ("s_barrier 1", "it takes no operands"), ("v_nop v0", "it takes no operands, and 'v0' is one"),
    ("s_endpgm s1", "its operand s1 is no number from 0 to 65535"), 
    ("buffer_inv clamp", "'clamp' is none of sc0, sc1, nt"),
    ("s_dcache_discard v[0:1], 0", "a vector register stands where"), 
    ("s_dcache_discard s[0:1], 0, 0", "it has 3 operands"),
    ("s_dcache_discard s[0:1], 0 nt", "the modifier 'nt' is not one that it takes"),
]


@needs_llvm
@pytest.mark.parametrize("line, why", [*WRONG, *IDLE], ids=lambda text: text[:40])
def test_a_form_that_no_encoding_has(line: str, why: str) -> None:
    assert why in refusals("gfx950", [line])[0]
    if not line.startswith(("v_cvt_f32_f64", "s_sleep")):  # these LLVM cuts to what there is room for
        assert assembled("gfx950", [line]) == [0]


@needs_llvm
def test_forms_that_there_are() -> None:
    lines = ["s_waitcnt vmcnt(63) & expcnt(7), lgkmcnt(15)", "s_waitcnt vmcnt_sat(99)", "s_waitcnt 0xffff", "s_nop -1",
             "buffer_inv sc0 sc1", "s_atc_probe 5, s[0:1], s2", "s_dcache_discard s[0:1], 0x8", "s_endpgm 3",
             "s_load_dword s4, s[0:1]", "s_buffer_load_dword s0, s[4:7]",
             "v_writelane_b32 v0, s4, m0", "v_add_f32_e64 v0, s1, s1", "ds_read_b96_tr_b6 v[1:3], v0",
             "v_mov_b32 v0, v1 row_shl:1", "v_mfma_f32_32x32x8_f16_e64 v[0:15], v[0:1], v[2:3], v[0:15]",
             "v_max_f32_e64 v0, 0x3f800000, v1", "v_max_f64 v[0:1], 0x40000000, v[2:3]"]
    assert all(assembled("gfx950", lines)) and refusals("gfx950", lines) == [""] * len(lines)
