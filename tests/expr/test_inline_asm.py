"""Assembly in kernels: values on the software device, the object through another assembler, and refusals."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab import settings
from flylab.codegen import hsaco, tools
from flylab.errors import CompileError, FlylabError, ToolchainError, TraceError, UnknownInstruction
from tests.samples import kernel_of

NOT = """
    asm = fx.rocdl.inline_asm.asm
    i = fx.thread_idx.x
    A[i] = asm("v_not_b32 $0, $1", "=v,v", [A[i]], fx.Uint32)
"""


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


def has_tool(names: list[str]) -> bool:
    try:
        return bool(tools.find_tool(names, "tool"))
    except ToolchainError:
        return False


needs_clang = pytest.mark.skipif(not has_tool(["clang"]), reason="no clang for AMD's chips on this machine")


def test_values_of_every_kind() -> None:
    A, B = np.arange(64, dtype=np.uint32) * 0x01010101, np.zeros((9, 64), np.uint32)
    kernel_of("""
        asm = fx.rocdl.inline_asm.asm
        i = fx.thread_idx.x
        x = A[i]
        B[0, i] = asm("v_not_b32 $0, $1", "=v,v", [x], fx.Uint32)
        B[1, i] = asm("v_add_u32 $0, $1, $2", "=v,v,i", [x, 40], fx.Uint32)
        B[2, i] = asm("s_mul_i32 $0, $1, 3", "=s,s", x, fx.Uint32)
        B[3, i] = asm("v_add_u32 $0, $0, $2", "=v,0,v", [x, fx.Uint32(9)], fx.T.i32).to(fx.Uint32)
        low, high = asm("v_and_b32 $0, 15, $2\\nv_lshrrev_b32 $1, 4, $2", "=&v,=v,v", [x], (fx.Uint32, fx.Uint32))
        B[4, i] = low
        B[5, i] = high
        pair = asm("v_pk_add_f16 $0, $1, $1", "=v, v", [x.to(fx.Float16)], fx.Float16)
        B[6, i] = fx.Vector.from_elements([pair, pair], fx.Float16).bitcast(fx.Uint32)[0]
        wide = asm("v_lshlrev_b64 $0, 4, $1", "=v,v", [fx.Uint64(x)], fx.Uint64)
        B[7, i] = (wide >> 32).to(fx.Uint32)
        v = asm("v_pk_mov_b32 $0, $1, $1 op_sel:[1,0]", "=v,v", [fx.Vector.from_elements([x, ~x], fx.Uint32)],
                fx.Uint32x2)
        B[8, i] = v[0] - v[1]
    """, "A: fx.Tensor, B: fx.Tensor")["launch"](A, B)
    with np.errstate(over="ignore"):
        half = (A.astype(np.float32).astype(np.float16) * np.float16(2)).view(np.uint16).astype(np.uint32)
    wanted = [~A, A + np.uint32(40), A[0] * np.uint32(3) + 0 * A, A + np.uint32(9), A & 15, A >> 4, half | half << 16,
              (A.astype(np.uint64) << 4 >> 32).astype(np.uint32), ~A - A]
    for n, row in enumerate(wanted):
        assert np.array_equal(B[n], row), n


def test_what_has_side_effects_stays_and_what_has_none_is_dropped() -> None:
    A = np.zeros(64, np.uint32)
    compiled = flyc.compile(kernel_of("""
        asm = fx.rocdl.inline_asm.asm
        asm("s_nop 7", "~{memory},~{vcc},~{v3}", has_side_effects=True)
        asm("v_not_b32 $0, 11", "=v", [], fx.Uint32)
        A[fx.thread_idx.x] = asm("$$ v_mov_b32 $0, 5".replace("$$ ", ""), "=v", (), fx.Uint32)
    """)["launch"], A)
    compiled(A)
    assert (A == 5).all()
    assert "s_nop 7" in compiled.code.assembly and "11" not in re.findall(r"v_not_b32.*", compiled.code.assembly)
    assert not re.findall(r"v_not_b32.*", compiled.code.assembly)


@needs_clang
def test_the_object_is_another_assemblers(chip: str, tmp_path: Path) -> None:
    A = np.zeros(64, np.uint32)
    compiled = flyc.compile(kernel_of(NOT)["launch"], A)
    assert compiled.code.has_assembly
    path = tmp_path / "k.o"
    path.write_bytes(compiled.object_code)
    text = subprocess.run(["llvm-objdump-22", "-d", f"--mcpu={chip}", str(path)], capture_output=True, text=True,
                          check=True).stdout
    assert len(re.findall(r"v_not_b32", text)) == 1 and "s_endpgm" in text
    shown = [i.mnemonic.removesuffix("_e32") for i in compiled.isa.kernels["k"].instructions]
    disassembled = re.findall(r"^\t(\w+?)(?:_e32)? ", text, re.M)
    assert disassembled[:len(shown)] == shown, "the same instructions as the software device ran"
    if has_tool(["ld.lld"]):
        elf = compiled.hsaco
        assert elf[:4] == b"\x7fELF" and b"k.kd" in elf and elf == hsaco.link(compiled.object_code)


def test_other_kernels_need_no_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_tools(monkeypatch)
    compiled = flyc.compile(kernel_of("A[fx.thread_idx.x] = 3")["launch"], np.zeros(64, np.uint32))
    assert not compiled.code.has_assembly and compiled.object_code[:4] == b"\x7fELF"


def without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for row in (settings.ROCM_PATH, settings.HIP_PATH):
        monkeypatch.delenv(row.name, raising=False)


@pytest.mark.skipif(Path("/opt/rocm/llvm/bin/clang").exists(), reason="ROCm is on this machine")
def test_a_sentence_where_there_is_no_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = flyc.compile(kernel_of(NOT)["launch"], np.zeros(64, np.uint32))
    without_tools(monkeypatch)
    with pytest.raises(ToolchainError, match="no assembler for AMD code objects was found") as caught:
        _ = compiled.object_code
    assert "[aot]'" in str(caught.value.hint)


def test_a_line_that_is_none_is_found_on_the_device() -> None:
    names = kernel_of('fx.rocdl.inline_asm.asm("v_frobnicate $0", "=v", [], fx.Int32)\nA[0] = fx.rocdl.inline_asm.asm('
                      '"v_frobnicate_b32 $0, 1", "=v", [], fx.Uint32)')
    with pytest.raises(UnknownInstruction, match="v_frobnicate_b32") as caught:
        names["launch"](np.zeros(64, np.uint32))
    assert caught.value.where is not None and caught.value.where.line == 4


@needs_clang
@pytest.mark.parametrize("line", ["v_frobnicate_b32 $0, 1", "v_add_u32 $0, s1, s99999", "s_mov_b32 $0, 1"])
def test_a_line_that_is_none_is_found_in_the_object(line: str) -> None:
    names = kernel_of(f'A[0] = fx.rocdl.inline_asm.asm("{line}", "=v", [], fx.Uint32)')
    compiled = flyc.compile(names["launch"], np.zeros(64, np.uint32))
    with pytest.raises(CompileError, match=f"the assembler refuses '{line.split()[0]}") as caught:
        _ = compiled.object_code
    where: Any = caught.value.where
    assert where.line == 3 and where.file == names["FILE"]


@pytest.mark.parametrize("text", ["#!/bin/sh\necho unknown target >&2; exit 1\n", ""])
def test_an_assembler_that_fails(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clang = tmp_path / "clang"
    clang.write_text(text)
    clang.chmod(0o755 if text else 0o644)
    monkeypatch.setattr(tools.shutil, "which", lambda name: str(clang))
    compiled = flyc.compile(kernel_of(NOT)["launch"], np.zeros(64, np.uint32))
    with pytest.raises(ToolchainError, match="unknown target" if text else "cannot be run") as caught:
        _ = compiled.object_code
    assert "clang" in str(caught.value.hint)


@pytest.mark.parametrize("call, message, hint", [
    ('asm("", "=v", [], fx.Int32)', "no assembly", "v_not_b32"),
    ('asm("v_mov_b32 $0, $1", "=v", [], fx.Int32)', "'$1' in the text", "$0 to $0"),
    ('asm("v_mov_b32 $0, $x", "=v", [], fx.Int32)', "'$x' in the text", "$$ is a dollar"),
    ('asm("v_mov_b32 {$0|$0}, 1", "=v", [], fx.Int32)', "a brace", "leave them out"),
    ('asm("s_nop 0", "~{memory}")', "LLVM drops it", "has_side_effects=True"),
    ('asm("v_mov_b32 $0, 1", "=r", [], fx.Int32)', "the constraint '=r'", "v, s and a are registers"),
    ('asm("v_mov_b32 $0, 1", "={v3}", [], fx.Int32)', "the constraint '={v3}'", "v, s and a are registers"),
    ('asm("v_mov_b32 $0, $1", "=v,v", [], fx.Int32)', "1 results and 1 operands, and there are 1 and 0", "=v"),
    ('asm("v_mov_b32 $1, $0", "v,=v", [x], fx.Int32)', "a result comes after an operand", "come first"),
    ('asm("s_nop 0", "~{v256}", has_side_effects=True)', "a register that the chip does not have", "v255"),
    ('asm("v_mov_b32 $0, $1", "=v,v", [x > 1], fx.Int32)', "of 1 bits of Boolean", "x.to(fx.Int32)"),
    ('asm("v_mov_b32 $0, $1", "=v,v", [x.to(fx.Int8)], fx.Int32)', "of 8 bits of Int8", "x.to(fx.Int32)"),
    ('asm("v_mov_b32 $0, $1", "=v,0", [fx.Int64(x)], fx.Int32)', "shares the register of result 0", "width"),
    ('asm("v_mov_b32 $0, $1", "=v,i", [x], fx.Int32)', "of the device, and the instruction holds it", "Constexpr"),
    ('asm("v_mov_b32 $0, $1", "=v,s", [fx.Vector.filled(32, 1, fx.Int64).bitcast(fx.Int32)], fx.Int32)',
     "which LLVM puts in no register", "whole words"),
    ('asm("s_nop 0", "s,s", [fx.Vector.filled(32, 1, fx.Int32), x], has_side_effects=True)', "33 registers", "call"),
    ('asm("v_mov_b32 $0, 1", "=v", [], 3)', "3", "fx."),
])
def test_refusals(call: str, message: str, hint: str) -> None:
    names = kernel_of(f"x = A[0]\nfx.rocdl.inline_asm.{call}")
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        flyc.compile(names["launch"], np.zeros(64, np.int32))
    error: FlylabError = caught.value
    assert error.where is not None and error.where.line == 4
    assert hint in str(error.hint)
