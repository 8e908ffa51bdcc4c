"""What the text of matrix instructions may say: spellings, files of registers, what overlaps, and what is refused."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from flylab.mfma import INSTRUCTIONS, OLDER_NAMES, Mfma, mfma
from tests.emulator.matrices import moderate, registers, result_matrix, values
from tests.emulator.toolchain import CHIPS, assembly, program
from tests.emulator.waves import names, run_waves

ASSEMBLER = shutil.which("llvm-mc-22")
HALF = mfma("v_mfma_f32_16x16x16_f16")


def half_sources(waves: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Registers of A and B of v_mfma_f32_16x16x16_f16, and their product."""
    a, b = (moderate("f16", (waves, 1, 16, 16), "gfx942", seed) for seed in range(2))
    x, y = values(a, "f16", "gfx942"), values(b, "f16", "gfx942")
    return registers(HALF.a, a), registers(HALF.b, b), x @ np.swapaxes(y, -1, -2)


def text_of(row: Mfma, name: str, file: str = "v") -> str:
    third = "v90" if row.sparse else names(file, 64, row.result_registers)
    return (f"{name} {names(file, 64, row.result_registers)}, {names(file, 8, row.a.registers)}, "
            f"{names(file, 16, row.b.registers)}, {third}")


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_older_names_are_what_the_assembler_takes_them_for(chip: str) -> None:
    lines = [text_of(mfma(name), spelling) for name in OLDER_NAMES if chip in mfma(name).chips
             for spelling in (name, OLDER_NAMES[name])]
    command = [str(ASSEMBLER), "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-show-encoding"]
    said = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    codes = re.findall(r"encoding: \[(.*)\]", said.stdout)
    assert len(codes) == len(lines) > 60
    assert codes[::2] == codes[1::2]


@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x16_f16"])
@pytest.mark.parametrize("files", ["vvv", "aaa", "avv", "vav", "ava"])
def test_registers_of_both_files(name: str, files: str) -> None:
    a, b, wanted = half_sources()
    d, x, y = files
    found = run_waves("gfx942", f"{name} {d}[64:67], {x}[0:1], {y}[16:17], 0", {f"{x}0": a, f"{y}16": b}, (f"{d}64", 4))
    assert np.allclose(result_matrix(HALF, found, "gfx942"), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("result", [0, 2, 8, 14, 16])
def test_a_result_over_its_sources(result: int) -> None:
    a, b, wanted = half_sources()
    text = f"v_mfma_f32_16x16x16_f16 v[{result}:{result + 3}], v[2:3], v[16:17], 0"
    found = run_waves("gfx942", text, {"v2": a, "v16": b}, (f"v{result}", 4))
    assert np.allclose(result_matrix(HALF, found, "gfx942"), wanted, rtol=1e-4, atol=1e-4)


SMALL = [(chip, row.name) for row in INSTRUCTIONS.values() for chip in row.chips
         if row.result_registers == 4 and not row.sparse]


def over_its_addend(row: Mfma, first: int) -> str:
    """A text with C in v[64:67] and D from register `first` on."""
    scales = ", v80, v81" * row.scaled
    return (f"{row.name} {names('v', first, 4)}, {names('v', 0, row.a.registers)}, {names('v', 16, row.b.registers)}, "
            f"v[64:67]{scales}")


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_the_assembler_lets_a_small_result_overlap_its_addend(chip: str) -> None:
    lines = [over_its_addend(mfma(name), 66) for known, name in SMALL if known == chip]
    subprocess.run([str(ASSEMBLER), "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"], input="\n".join(lines),
                   capture_output=True, text=True, check=True)
    assert len(lines) > 10


@pytest.mark.parametrize("chip, name", SMALL)
def test_a_small_result_over_a_part_of_its_addend(chip: str, name: str) -> None:
    """As into registers apart, which test_mfma_numbers holds against numpy."""
    row = mfma(name)
    codes = (moderate(kind, (2, row.blocks, *shape), chip, 7) for kind, shape in (
        (row.a_type, (row.m, row.k)), (row.b_type, (row.n, row.k))))
    sources = {"v0": registers(row.a, next(codes)), "v16": registers(row.b, next(codes)),
               "v64": np.random.default_rng(9).integers(0x3F000000, 0x40000000, (2, 4, 64), "u4")}
    if row.scaled:
        sources |= {f"v{n}": np.full((1, 64), 0x7F7F7F7F, "u4") for n in (80, 81)}
    apart, below, above = (run_waves(chip, over_its_addend(row, first), sources, (f"v{first}", 4))
                           for first in (72, 62, 66))
    assert np.array_equal(below, apart) and np.array_equal(above, apart)
    assert not np.array_equal(apart, sources["v64"])


def test_lanes_that_are_off_take_part() -> None:
    a, b, wanted = half_sources()
    text = "s_mov_b64 exec, 5\n  v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[16:17], 0\n  s_mov_b64 exec, -1"
    found = run_waves("gfx942", text, {"v0": a, "v16": b}, ("v64", 4))
    assert np.allclose(result_matrix(HALF, found, "gfx942"), wanted, rtol=1e-4, atol=1e-4)


# Intrinsics on ones: types and values of A and B, the type of C, the name's end, further operands, the sum.
ONES = {"half": "(half 1.0)", "i16": "(i16 16256)", "bfloat": "(bfloat 1.0)", "float": "(float 1.0)"}
SIX_BITS = [(sum(8 << 6 * n for n in range(32)) >> 32 * n) & 0xFFFFFFFF for n in range(6)]


def ones(count: int, type_: str) -> tuple[str, str]:
    return f"<{count} x {type_}>", f"splat {ONES[type_]}"


DOUBLE, BYTES = ("double", "1.0"), ("i64", f"{0x0101010101010101}")
INTRINSICS = [
    ("gfx942", ones(4, "half"), ones(4, "half"), "<16 x float>", "mfma.f32.32x32x8f16", "i32 0, i32 0, i32 0", 8),
    ("gfx942", ones(4, "i16"), ones(4, "i16"), "<32 x float>", "mfma.f32.32x32x4bf16.1k", "i32 1, i32 1, i32 0", 4),
    ("gfx942", DOUBLE, DOUBLE, "<4 x double>", "mfma.f64.16x16x4f64", "i32 0, i32 0, i32 1", -4),
    ("gfx942", ones(2, "float"), ones(2, "float"), "<4 x float>", "mfma.f32.16x16x8.xf32", "i32 0, i32 0, i32 0", 8),
    ("gfx942", BYTES, BYTES, "<4 x i32>", "mfma.i32.16x16x32.i8", "i32 0, i32 0, i32 0", 32),
    ("gfx950", ones(8, "bfloat"), ones(8, "bfloat"), "<4 x float>", "mfma.f32.16x16x32.bf16", "i32 0, i32 0, i32 0",
     32),
    ("gfx950", ones(4, "half"), ones(8, "half"), "<4 x float>", "smfmac.f32.16x16x32.f16", "i32 %t, i32 0, i32 2", 16),
    ("gfx950", ("<6 x i32>", f"<{', '.join(f'i32 {word}' for word in SIX_BITS)}>"),
     ("<4 x i32>", f"splat (i32 {0x22222222})"), "<16 x float>", "mfma.scale.f32.32x32x64.f8f6f4.v6i32.v4i32",
     f"i32 2, i32 4, i32 1, i32 {0x8000}, i32 3, i32 {0x7F000000}", 128),
]


@pytest.mark.parametrize("chip, a, b, c, name, further, total", INTRINSICS)
def test_what_llvm_compiles(chip: str, a: tuple[str, str], b: tuple[str, str], c: str, name: str, further: str,
                            total: int) -> None:
    """The sum over K of ones is K (of doubles negated, of sparse ones half as much, of scaled ones twice)."""
    types = ", ".join([a[0], b[0], c, *["i32"] * further.count("i32")])
    ir = f"""
declare i32 @llvm.amdgcn.workitem.id.x()
declare {c} @llvm.amdgcn.{name}({types})
define amdgpu_kernel void @k(ptr addrspace(1) %out) {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr {c}, ptr addrspace(1) %out, i32 %t
  %c = load {c}, ptr addrspace(1) %p
  %d = call {c} @llvm.amdgcn.{name}({" ".join(a)}, {" ".join(b)}, {c} %c, {further})
  store {c} %d, ptr addrspace(1) %p
  ret void
}}"""
    kind = {"float": np.float32, "double": np.float64, "i32": np.int32}[c.split()[2].rstrip(">")]
    before = np.arange(64 * int(c[1:].split()[0])).astype(kind)
    out = before.copy()
    program(chip, ir).launch(grid=1, block=64, args=[out])
    assert np.array_equal(out, before + total)


REFUSED = [
    ("gfx950", "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]", "gfx950 has no such instruction, gfx942 has"),
    ("gfx942", "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]", "gfx942 has no such instruction, gfx950 has"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:7], v[8:9], v[0:3]", "names 4 registers where .* takes 2"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9]", "it has 3 operands, and takes 4"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], s[4:5], v[8:9], v[0:3]", "a scalar register stands where"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[5:6], v[8:9], v[0:3]", "begin at an even one, and not at v5"),
    ("gfx942", "v_mfma_f32_32x32x8_f16 v[0:15], v[40:41], v[44:45], v[2:17]", "overlaps a part of its result"),
    ("gfx950", "v_mfma_f64_16x16x4_f64 v[2:9], v[40:41], v[44:45], v[0:7]", "overlaps a part of its result"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], 0x12345", "no room for the constant"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[254:255], v[0:3]", "v255 is beyond the 128"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], v[0:3] cbsz:1", "it takes no cbsz"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], v[0:3] blgp:1", "it takes no blgp"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], v[0:3] neg:[1,0,0]", "it takes no neg"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], v[0:3] clamp", "the modifier 'clamp'"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], -v[4:5], v[8:9], v[0:3]", "no source modifier"),
    ("gfx942", "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[40:41], v[44:45], v[0:31] cbsz:2", "name no block of its 2"),
    ("gfx942", "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[40:41], v[44:45], v[0:31] cbsz:1 abid:2", "no block of its 2"),
    ("gfx942", "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[40:41], v[44:45], v[0:31] blgp:8", "no number from 0 to 7"),
    ("gfx942", "v_mfma_f64_16x16x4_f64 v[0:7], v[40:41], v[44:45], v[0:7] blgp:1", "it takes no blgp"),
    ("gfx942", "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[8:11], v[12:13]", "names 2 registers where .* takes 1"),
    ("gfx942", "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[8:11], 0", "a constant stands where"),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:11], v[16:23], v[0:3] cbsz:2", "names 4 .* takes 6"),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3] cbsz:5", "name formats from 0 to 4"),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3] op_sel:[1,0,0]", "it takes no op_sel"),
    ("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3]", "it has 4 operands, and takes 6"),
    ("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3], s4, v1", "a scalar register"),
    ("gfx950", "v_mfma_ld_scale_b32 v1, v2", "no matrix instruction that assembly text can name takes its scales"),
]


@pytest.mark.parametrize("chip, text, message", REFUSED)
def test_refused(chip: str, text: str, message: str) -> None:
    with pytest.raises(UnknownInstruction, match=re.escape(text[:60]) + ".*" + message):
        Program.from_assembly(assembly(f"  {text}\n  s_endpgm", chip, vgprs=128)).load("k")


def test_results_that_saturate_are_refused() -> None:
    text = "  v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[8:9], v[0:3]\n  s_endpgm"
    with pytest.raises(UnknownInstruction, match="sets fp16_overflow"):
        Program.from_assembly(assembly(text, fp16_overflow=1)).load("k")
