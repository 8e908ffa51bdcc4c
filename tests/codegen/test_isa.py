"""Assembly text as data: addresses against the object's symbol, arguments, lines, registers and occupancy."""

from __future__ import annotations

import struct

import pytest

from flylab.codegen.assembly.encoding import size_of
from flylab.codegen.assembly.metadata import read_metadata
from flylab.codegen.isa import Isa
from flylab.errors import CompileError
from tests.emulator.snippets import Snippet, all_snippets
from tests.emulator.test_differential import chip_text
from tests.emulator.toolchain import CHIPS, IDS, WAVES, assembly, compile_for, compile_object, kernel

SNIPPETS = all_snippets(4)


def symbol_sizes(elf: bytes) -> dict[str, int]:
    """The size of each function symbol of a 64-bit ELF file."""
    section_offset, = struct.unpack_from("<Q", elf, 40)
    entry, count = struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, section_offset + n * entry) for n in range(count)]
    found = {}
    for section in sections:
        if section[1] == 2:  # SHT_SYMTAB
            names = sections[section[6]]
            for at in range(section[4], section[4] + section[5], 24):
                name, info, _, _, _, size = struct.unpack_from("<IBBHQQ", elf, at)
                if info & 15 == 2:  # STT_FUNC
                    start = names[4] + name
                    found[elf[start:elf.index(b"\0", start)].decode()] = size
    return found


def module(snippets: list[Snippet]) -> str:
    declarations = "\n".join(sorted({line for s in snippets for line in s.declarations.split("\n")}))
    return IDS + WAVES + "\n" + declarations + "".join(chip_text(n, s) for n, s in enumerate(snippets))


@pytest.mark.parametrize("chip, opt", [("gfx942", 2), ("gfx950", 2), ("gfx950", 0)])
@pytest.mark.parametrize("part", range(4))
def test_addresses_add_up_to_the_size_of_the_symbol(chip: str, opt: int, part: int) -> None:
    ir = module(SNIPPETS[part::8])
    sizes = symbol_sizes(compile_object(chip, ir, opt))
    kernels = Isa.parse(compile_for(chip, ir, opt)).kernels
    assert len(kernels) > 50
    assert {name: k.size for name, k in kernels.items()} == {name: sizes[name] for name in kernels}


@pytest.mark.parametrize("mnemonic, operands, size", [
    ("s_mov_b32", ("s0", "64"), 4), ("s_mov_b32", ("s0", "65"), 8), ("s_mov_b32", ("s0", "-16"), 4),
    ("s_mov_b32", ("s0", "0xfffffff0"), 4), ("s_mov_b32", ("s0", "1.0"), 4), ("s_movk_i32", ("s0", "0x1000"), 4),
    ("s_load_dword", ("s0", "s[0:1]", "0x0"), 8), ("v_mov_b32_e32", ("v0", "0.15915494"), 4),
    ("v_mov_b32_e32", ("v0", "0.5"), 4), ("v_mov_b32_e32", ("v0", "1.5"), 8), ("v_mov_b32_e32", ("v0", "sym@lo"), 8),
    ("v_readfirstlane_b32", ("s0", "v0"), 4), ("v_fmamk_f32", ("v0", "v1", "0x3f000000", "v2"), 8),
    ("v_add_f32_e64", ("v0", "v1", "v2"), 8), ("v_cndmask_b32_e32", ("v0", "v1", "v2", "vcc"), 4),
])
def test_sizes(mnemonic: str, operands: tuple[str, ...], size: int) -> None:
    assert size_of(mnemonic, operands) == size


def test_what_an_instruction_knows() -> None:
    text = assembly("""
  .file 2 "/there" "a.py"
  .loc 2 7 3 prologue_end
  v_fma_f32 v0, -|v1|, s2, 1.0 clamp mul:2 ; comment
.Lhere: // another
  .loc 2 0 3
  global_load_dwordx2 v[2:3], v[0:1], off offset:16 sc0
  .loc 2 9
  s_waitcnt vmcnt(0) lgkmcnt(1)
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3
  v_pk_add_f32 v[0:1], v[2:3], s[4:5] op_sel_hi:[1,0]
  s_cbranch_scc1 .Lhere
  s_endpgm""")
    isa = Isa.parse(text)
    first, load, wait, mode, packed, jump, end = isa.kernels["k"].instructions
    assert (first.mnemonic, first.operands) == ("v_fma_f32", ("v0", "-|v1|", "s2", "1.0"))
    assert first.modifiers == ("clamp", "mul:2")
    assert first.source == ("/there/a.py", 7, 3) and load.source is None and end.source == ("/there/a.py", 9, 0)
    assert (load.operands, load.modifiers) == (("v[2:3]", "v[0:1]", "off"), ("offset:16", "sc0"))
    assert (wait.operands, wait.modifiers) == ((), ("vmcnt(0)", "lgkmcnt(1)"))
    assert mode.operands == ("hwreg(HW_REG_MODE, 4, 2)", "3")
    assert (packed.operands[2], packed.modifiers) == ("s[4:5]", ("op_sel_hi:[1,0]",))
    assert isa.kernels["k"].labels[".Lhere"] == load.index == 1 and jump.operands == (".Lhere",)
    assert [i.address for i in isa.kernels["k"].instructions] == [0, 8, 16, 20, 28, 36, 40]
    assert all(text.split("\n")[i.isa_line - 1].split(";")[0].strip() == i.text for i in (first, load, end))


@pytest.mark.parametrize("chip", CHIPS)
def test_a_compiled_kernel(chip: str) -> None:
    isa = Isa.parse(compile_for(chip, kernel("ptr %a, ptr %b, i32 %n", "")))
    found = isa.kernels["k"]
    assert isa.target.arch == chip and found.target is isa.target and str(isa) == isa.text
    arguments = [(a.name, a.offset, a.size, a.kind, a.address_space) for a in found.args if not a.hidden]
    assert arguments == [("a", 0, 8, "global_buffer", "global"), ("b", 8, 8, "global_buffer", "global"),
                         ("n", 16, 4, "by_value", "")]
    assert (found.kernarg_size, found.max_workgroup, found.lds_bytes, found.spills) == (20, 1024, 0, 0)
    assert found.descriptor["kernarg_size"] == 20 and found.descriptor["ieee_mode"] == 1


@pytest.mark.parametrize("vgprs, waves", [(1, 8), (64, 8), (65, 7), (72, 7), (80, 6), (96, 5), (128, 4), (168, 3),
                                          (169, 2), (256, 2), (257, 1), (512, 1)])
def test_occupancy_by_vector_registers(vgprs: int, waves: int) -> None:
    occupancy = Isa.parse(assembly("  s_endpgm", vgprs=vgprs)).kernels["k"].occupancy
    assert occupancy.waves_per_simd == waves
    assert occupancy.limiter == ("waves" if waves == 8 else "vector registers")


@pytest.mark.parametrize("chip, lds, waves", [("gfx942", 16384, 8), ("gfx942", 32768, 8), ("gfx942", 33000, 4),
                                              ("gfx950", 33000, 8), ("gfx950", 81920, 8), ("gfx950", 81921, 4)])
def test_occupancy_by_lds(chip: str, lds: int, waves: int) -> None:
    """Blocks of 1024 threads are 16 waves: 4 on each SIMD for every block whose LDS fits."""
    kernel_ = Isa.parse(assembly("  s_endpgm", chip, group_segment_fixed_size=lds)).kernels["k"]
    assert kernel_.occupancy.waves_per_simd == waves and kernel_.lds_bytes == lds
    assert "limited by" in str(kernel_.occupancy)


def test_accumulators_count_after_the_vector_registers() -> None:
    found = Isa.parse(assembly("  s_endpgm", vgprs=100, accum_offset=68)).kernels["k"]
    assert (found.vgprs, found.agprs, found.vector_registers) == (68, 32, 100)
    assert found.occupancy.waves_per_simd == 4


def test_metadata_that_llvm_does_not_write() -> None:
    assert read_metadata([]) == {}
    with pytest.raises(CompileError, match="ISA line 7: the metadata '2' is not in the form LLVM writes"):
        read_metadata([(6, "- 1"), (7, "- 2")])


def test_a_descriptor_with_an_expression() -> None:
    text = assembly("  s_endpgm").replace(".amdhsa_next_free_vgpr 16", ".amdhsa_next_free_vgpr max(a, b)")
    with pytest.raises(CompileError, match=r"expression, 'max\(a, b\)'"):
        Isa.parse(text)
