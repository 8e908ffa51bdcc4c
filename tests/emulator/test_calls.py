"""Calls, function pointers, recursion and data: compiled, and written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.emulator.linking import CODE_BASE
from flylab.errors import CompileError, DeviceError, OutOfBounds
from tests.emulator.toolchain import CHIPS, assembly, element, kernel, program

FUNCTIONS = """
@functions = internal constant [2 x ptr] [ptr @twice, ptr @product]
define i32 @twice(i32 %x) noinline {
  %r = shl i32 %x, 1
  ret i32 %r
}
define i32 @product(i32 %x) noinline {
  %none = icmp eq i32 %x, 0
  br i1 %none, label %end, label %more
end:
  ret i32 1
more:
  %less = sub i32 %x, 1
  %inner = call i32 @product(i32 %less)
  %m = mul i32 %inner, %x
  %r = call i32 @twice(i32 %m)
  ret i32 %r
}
"""
CALLS = element("%pa", "i32", "%a") + """
  %odd = and i64 %i, 1
  %place = getelementptr ptr, ptr @functions, i64 %odd
  %function = load ptr, ptr %place
  %r = call i32 %function(i32 %t)
  store i32 %r, ptr addrspace(1) %pa
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("opt", [1, 3])
def test_recursion_by_pointers_that_differ_by_thread(chip: str, opt: int) -> None:
    """The stack is private memory, whose size the compiler cannot know."""
    wanted, product = [], 1
    for n in range(64):
        product = product * 2 * n & 0xFFFFFFFF if n else 1
        wanted.append(product if n % 2 else 2 * n)
    found = np.zeros(64, "u4")
    program(chip, kernel("ptr %a", CALLS, FUNCTIONS), opt).launch(grid=1, block=64, args=[found])
    assert found.tolist() == wanted


def test_endless_recursion_runs_out_of_private_memory() -> None:
    endless = FUNCTIONS.replace("icmp eq i32 %x, 0", "icmp eq i32 %x, 77777")
    with pytest.raises(OutOfBounds, match="of the thread's private memory, which has"):
        program("gfx942", kernel("ptr %a", CALLS, endless), 1).launch(grid=1, block=64, args=[np.zeros(64, "u4")])


COUNTED = """
@count = addrspace(1) global [2 x i32] [i32 5, i32 9]
@zeros = addrspace(1) global [64 x i32] zeroinitializer
@fixed = addrspace(4) constant [3 x i8] c"abc"
@there = addrspace(1) global ptr addrspace(1) getelementptr (i32, ptr addrspace(1) @count, i64 1)
"""
READS = element("%pa", "i32", "%a") + """
  %c = load i32, ptr addrspace(1) @count
  %more = add i32 %c, 1
  store i32 %more, ptr addrspace(1) @count
  %where = load ptr addrspace(1), ptr addrspace(1) @there
  %second = load i32, ptr addrspace(1) %where
  %pz = getelementptr i32, ptr addrspace(1) @zeros, i64 %i
  %z = load i32, ptr addrspace(1) %pz
  %b8 = load i8, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @fixed, i64 2)
  %b = zext i8 %b8 to i32
  %one = add i32 %z, %c
  %two = add i32 %one, %second
  %three = add i32 %two, %b
  store i32 %three, ptr addrspace(1) %pa
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_data_lives_as_long_as_the_program(chip: str) -> None:
    device, found = program(chip, kernel("ptr %a", READS, COUNTED)), np.zeros(64, "u4")
    for turn in range(3):
        device.launch(grid=1, block=64, args=[found])
        assert np.all(found == 5 + turn + 9 + ord("c"))
    again = program(chip, kernel("ptr %a", READS, COUNTED))
    again.launch(grid=1, block=64, args=[found])
    assert np.all(found == 5 + 9 + ord("c"))


def test_an_access_beyond_data_names_it() -> None:
    device = program("gfx942", kernel("ptr %a", READS, COUNTED))
    with pytest.raises(OutOfBounds, match=r"right after the end of 'zeros' \(256 bytes\)"):
        device.launch(grid=1, block=65, args=[np.zeros(65, "u4")])


def test_constants_cannot_be_written() -> None:
    writes = READS + "  store i8 1, ptr addrspace(1) addrspacecast (ptr addrspace(4) @fixed to ptr addrspace(1))\n"
    with pytest.raises(OutOfBounds, match="lies in 'fixed', which is read-only"):
        program("gfx942", kernel("ptr %a", writes, COUNTED), 0).launch(grid=1, block=64, args=[np.zeros(64, "u4")])


def test_a_function_of_another_module_is_asked_for() -> None:
    body = READS.replace("%c, 1", "%d, 1").replace("  %more", "  %d = call i32 @elsewhere(i32 %c)\n  %more")
    device = program("gfx942", kernel("ptr %a", body, COUNTED + "declare i32 @elsewhere(i32)"))
    with pytest.raises(CompileError, match="the symbol 'elsewhere' is not defined in this assembly") as caught:
        device.load("k")
    assert "as one module" in str(caught.value)


BY_HAND = """
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_mov_b32 s4, 10
  s_call_b64 s[30:31], inner
  s_getpc_b64 s[8:9]
first:
  s_add_i32 s10, outer, 4
  s_ashr_i32 s11, s10, 31
  s_add_u32 s8, s8, s10
  s_addc_u32 s9, s9, s11
  s_swappc_b64 s[30:31], s[8:9]
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, words@rel32@lo+4
  s_addc_u32 s9, s9, words@rel32@hi+12
  s_load_dwordx4 s[12:15], s[8:9], 0x4
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, s12
  s_add_u32 s4, s4, s13
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, 16
  s_setpc_b64 s[8:9]
  s_mov_b32 s4, 0
  s_mov_b32 s4, 0
  s_nop 0
  s_branch 1
  s_mov_b32 s4, 0
  s_add_u32 s4, s4, size@abs32@lo
  v_mov_b32 v2, s4
  global_store_dword v1, v2, s[6:7]
  s_endpgm
inner:
  s_add_u32 s4, s4, 1
  s_setpc_b64 s[30:31]
.Lk_end:
  .size k, .Lk_end-k
  .p2align 8
  .type outer,@function
outer:
  s_add_u32 s4, s4, 100
  s_setpc_b64 s[30:31]
  .size outer, 12
  .amdgpu_lds size, 64, 16
  .section .rodata,"a",@progbits
words:
  .byte 1, 2, 3, 'a'
  .long .Lk_end-inner, 0x300 | 4, 0
  .quad outer
  .text
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_calls_jumps_and_data_by_hand(chip: str) -> None:
    """In the way of Tensile's long branches, of LLVM's addresses, and of counted bytes; in LDS a symbol."""
    found = np.zeros(64, "u4")
    text = assembly(BY_HAND, chip, vgprs=16, group_segment_fixed_size=24)
    device = Program.from_assembly(text)
    device.launch(grid=1, block=64, args=[found])
    assert np.all(found == 10 + 1 + 100 + 8 + 0x304 + 32)
    assert device.isa.kernels["k"].lds_bytes == 32 + 64
    outer = device.isa.functions["outer"]
    assert (outer.offset, outer.size, device.isa.sections[".rodata"].data[:4]) == (256, 12, b"\1\2\3a")


@pytest.mark.parametrize("jump", [
    "s_mov_b64 s[4:5], 64\n  s_setpc_b64 s[4:5]", "s_getpc_b64 s[4:5]\n  s_add_u32 s4, s4, 2\n  s_setpc_b64 s[4:5]",
    "s_getpc_b64 s[4:5]\n  s_mov_b32 s6, 0x12345\n  s_add_u32 s4, s4, 4\n  s_swappc_b64 s[30:31], s[4:5]",
    "s_getpc_b64 s[4:5]\n  s_add_u32 s4, s4, 0x10000\n  s_swappc_b64 s[30:31], s[4:5]"])
def test_calls_of_what_is_no_instruction(jump: str) -> None:
    """Nowhere, half an instruction, the constant within one, and beyond the code."""
    device = Program.from_assembly(assembly(f"  {jump}\n  s_endpgm"))
    with pytest.raises(DeviceError, match="a jump to an address that is no instruction of the kernel, 0x"):
        device.launch(grid=1, block=64, args=[None])


def test_code_cannot_be_read_as_data() -> None:
    device = Program.from_assembly(assembly("  s_getpc_b64 s[4:5]\n  s_load_dword s6, s[4:5], 0x0\n  s_endpgm"))
    with pytest.raises(OutOfBounds, match=f"at address {CODE_BASE + 4:#x}"):
        device.launch(grid=1, block=64, args=[None])


def test_code_that_runs_past_a_function() -> None:
    text = assembly("  s_call_b64 s[30:31], f\n  s_endpgm\n  .type f,@function\nf:\n  s_nop 0\n")
    with pytest.raises(DeviceError, match="runs past its last instruction"):
        Program.from_assembly(text).launch(grid=1, block=64, args=[None])
