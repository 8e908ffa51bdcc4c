"""Texts that are no assembly, or for another chip, are told for what they are; none of it is read as assembly."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flylab.codegen.isa import Isa
from flylab.emulator import Program
from flylab.errors import CompileError, FlylabError
from tests.emulator.toolchain import CHIPS, assembly, compile_object, element, kernel

DISASSEMBLER = shutil.which("llvm-objdump-22")
BODY = element("%p", "i32", "%a") + "  store i32 9, ptr addrspace(1) %p\n"
LISTING = """
k.o:	file format elf64-amdgpu

Disassembly of section .text:

0000000000000000 <k>:
	s_endpgm                                                   // 000000000000: BF810000
"""


@pytest.mark.parametrize("text, what", [
    (LISTING, "a disassembly"), (LISTING[LISTING.index("Dis"):], "a disassembly"),
    (kernel("ptr %a", BODY), "LLVM IR"), ("; ModuleID = 'k'\nsource_filename = \"k\"\n", "LLVM IR"),
    ("--- |\n  define void @k() {\n", "LLVM's machine IR"), ("---\nname: k\nbody: |\n", "LLVM's machine IR"),
    ("module attributes {gpu.container_module} {\n  gpu.module @m {\n", "MLIR"),
    ("#map = affine_map<(d0) -> (d0)>\nmodule {\n", "MLIR"), ("gpu.module @m {\n", "MLIR"),
    ("# __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx942\n\t.text\n", "a bundle of several texts"),
    ("#include <hip/hip_runtime.h>\n__global__ void k(int *a) { *a = 9; }\n", "source code")])
def test_what_is_no_assembly(text: str, what: str) -> None:
    with pytest.raises(CompileError, match=f"^this is {what}, and assembly text is needed\nhint: "):
        Isa.parse(text, "gfx942")


@pytest.mark.parametrize("text", [b"s_endpgm", Path("k.s"), None, ["s_endpgm"]])
def test_what_is_no_text(text: Any) -> None:
    with pytest.raises(CompileError, match=f"assembly is text, and an? {type(text).__name__} was given"):
        Program.from_assembly(text)


@pytest.mark.skipif(DISASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("option", ["-d", "-D"])
def test_what_the_disassembler_prints(option: str, tmp_path: Path) -> None:
    code = compile_object("gfx942", kernel("ptr %a", BODY))
    (tmp_path / "k.o").write_bytes(code)
    command = [str(DISASSEMBLER), option, str(tmp_path / "k.o")]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    for text, what in ((said.stdout, "a disassembly"), (code.decode("latin-1"), "an object file")):
        with pytest.raises(CompileError, match=f"this is {what}"):
            Program.from_assembly(text, "gfx942")


@pytest.mark.parametrize("asked, arch", [(None, "gfx942"), *((chip, chip) for chip in CHIPS)])
def test_the_generic_target_runs_on_both_chips(asked: str | None, arch: str) -> None:
    text = assembly("  s_load_dwordx2 s[2:3], s[0:1], 0x0\n  v_mov_b32 v1, 9\n  v_lshlrev_b32 v0, 2, v0\n"
                    "  s_waitcnt lgkmcnt(0)\n  global_store_dword v0, v1, s[2:3]\n  s_endpgm",
                    "gfx9-4-generic:sramecc+:xnack-")
    program, found = Program.from_assembly(text, asked), np.zeros(64, "i4")
    assert program.isa.target.arch == arch
    program.launch(grid=1, block=64, args=[found])
    assert np.all(found == 9)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx1100", "gfx9-generic"])
def test_other_chips_are_named_before_anything_else(chip: str) -> None:
    with pytest.raises(FlylabError, match=f"unknown chip '{chip}'"):
        Isa.parse(assembly("  v_dual_mov_b32 v0, v1\n  s_endpgm", chip, wavefront_size32=1))


def test_another_chip_than_the_text_names() -> None:
    with pytest.raises(CompileError, match=r"for one chip, and gfx950 and gfx942 are named"):
        Program.from_assembly(assembly("  s_endpgm", "gfx950"), "gfx942")
    assert Program.from_assembly(assembly("  s_endpgm", "gfx950:xnack+"), "gfx950").isa.target.arch == "gfx950"
