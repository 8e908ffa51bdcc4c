"""What assembly of other front ends than ours holds: distilled from clang 22's OpenCL C, HIP and C at all levels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from flylab.codegen.isa import Isa
from flylab.emulator import Program
from flylab.errors import ArgumentError, DeviceError, OutOfBounds
from tests.emulator.toolchain import CHIPS, assembly, element, kernel, program

# kernel void k(global int *o, local int *a, local double *b): a backwards, and b behind it.
LOCAL = """
define amdgpu_kernel void @k(ptr addrspace(1) %o, ptr addrspace(3) align 4 %a, ptr addrspace(3) align 8 %b) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %f = sitofp i32 %t to double
  %pa = getelementptr i32, ptr addrspace(3) %a, i32 %t
  %pb = getelementptr double, ptr addrspace(3) %b, i32 %t
  store i32 %t, ptr addrspace(3) %pa
  store double %f, ptr addrspace(3) %pb, align 8
  call void @llvm.amdgcn.s.barrier()
  %u = sub i32 62, %t
  %qa = getelementptr i32, ptr addrspace(3) %a, i32 %u
  %qb = getelementptr double, ptr addrspace(3) %b, i32 %u
  %x = load i32, ptr addrspace(3) %qa
  %g = load double, ptr addrspace(3) %qb, align 8
  %y = fptosi double %g to i32
  %z = mul i32 %y, 1000
  %r = add i32 %x, %z
  %po = getelementptr i32, ptr addrspace(1) %o, i32 %t
  store i32 %r, ptr addrspace(1) %po
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("shared", [0, 20])
def test_each_pointer_to_lds_has_memory_of_its_own(chip: str, shared: int) -> None:
    """63 ints are 252 bytes, so the doubles begin 4 bytes further on."""
    found, down = np.zeros(63, "i4"), np.arange(62, -1, -1)
    program(chip, LOCAL).launch(grid=1, block=63, args=[found, 252, np.int64(504)], shared=shared)
    assert np.array_equal(found, down * 1001)
    with pytest.raises(OutOfBounds, match="an LDS access of 8 bytes"):
        program(chip, LOCAL).launch(grid=1, block=63, args=[found, 252, 500], shared=shared)


@pytest.mark.parametrize("args, why", [
    ([None], r"takes 3 arguments .*, and 1 were given\nhint: a pointer to LDS takes its number of bytes"),
    ([None, 252, -1], "argument 'b' is a pointer to LDS, and -1 is no number of bytes"),
    ([None, None, 8], "the bytes of LDS for argument 'a' is None, and whole numbers are needed"),
    ([None, 1 << 40, 8], "takes 4 bytes, and 1099511627776 does not fit")])
def test_bytes_for_pointers_to_lds(args: list[object], why: str) -> None:
    with pytest.raises(ArgumentError, match=why):
        program("gfx942", LOCAL).launch(grid=1, block=63, args=args)


def test_more_lds_for_pointers_than_there_is() -> None:
    with pytest.raises(DeviceError, match="takes 70000, and a workgroup of gfx942 has 65536"):
        program("gfx942", LOCAL).launch(grid=1, block=63, args=[None, 40000, 30000])


COMMON = """
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v0, 0
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, wide@rel32@lo+4
  s_addc_u32 s9, s9, wide@rel32@hi+12
  v_mov_b32 v2, s8
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, page@rel32@lo+4
  s_addc_u32 s9, s9, page@rel32@hi+12
  s_load_dword s10, s[8:9], 0x4
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v3, s8
  v_mov_b32 v4, s10
  global_store_dwordx3 v0, v[2:4], s[6:7]
  s_endpgm
  .comm small,1,0
  .comm wide,24,8
  .comm plain,4
  .section .data.page,"aw",@progbits
  .long 5
  .p2align 12, 0x0
page:
  .long 6, 7
  .text
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_data_is_as_aligned_as_it_says(chip: str) -> None:
    """The last number of `.comm` is an exponent: llvm-mc gives `wide` the alignment 256, and `small` 1."""
    device = Program.from_assembly(assembly(COMMON, chip))
    places = device.isa.symbols.places
    assert places["wide"].offset == 256 and places["wide"].section == places["small"].section
    found = np.zeros(3, "u4")
    device.launch(grid=1, block=64, args=[found])
    assert (found[0] % 256, found[1] % 4096, found[2]) == (0, 0, 7)


@pytest.mark.parametrize("text", [".comm a,8,40", ".comm a,8,-1", ".comm a", ".comm a,x", ".amdgpu_lds a, 4, 3"])
def test_common_symbols_that_cannot_be_read(text: str) -> None:
    with pytest.raises(Exception, match=f"'{text}' does not give a name, a size and an alignment"):
        Isa.parse(assembly(f"{text}\n  s_endpgm"))


@pytest.mark.parametrize("chip", CHIPS)
def test_a_debugger_trap_does_nothing_where_no_debugger_is(chip: str) -> None:
    body = "  call void @llvm.debugtrap()\n" + element("%p", "i32", "%a") + "  store i32 9, ptr addrspace(1) %p\n"
    device, found = program(chip, kernel("ptr %a", body, "declare void @llvm.debugtrap()")), np.zeros(64, "i4")
    assert "s_trap 3" in [i.text for i in device.isa.kernels["k"].instructions]
    device.launch(grid=1, block=64, args=[found])
    assert np.all(found == 9)


MATRIX = "<8 x i32>, <8 x i32>, <4 x float>, i32, i32, i32, i32, i32, i32"
WIDE_SOURCES = element("%p", "<4 x float>", "%a") + f"""
  %c = load <4 x float>, ptr addrspace(1) %p
  %ones = insertelement <8 x i32> splat (i32 {0x22222222}), i32 %t, i32 7
  %twos = insertelement <8 x i32> splat (i32 {0x44444444}), i32 %t, i32 4
  %d = call <4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32(<8 x i32> %ones, <8 x i32> %twos,
      <4 x float> %c, i32 4, i32 4, i32 0, i32 127, i32 0, i32 127)
  store <4 x float> %d, ptr addrspace(1) %p
"""


def test_matrix_sources_wider_than_their_format() -> None:
    """Unoptimised code names 8 registers for fp4 too, of which 4 are the 128 ones and the 128 twos."""
    declared = f"declare <4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32({MATRIX})"
    device = program("gfx950", kernel("ptr %a", WIDE_SOURCES, declared), 0)
    text = next(i.text for i in device.isa.kernels["k"].instructions if "f8f6f4" in i.mnemonic)
    first, last = map(int, re.findall(r"v\[(\d+):(\d+)\]", text)[0])
    assert last - first == 7
    found = np.arange(256, dtype="f4")
    device.launch(grid=1, block=64, args=[found])
    assert np.array_equal(found, np.arange(256) + 256)


# An array of n ints on the stack, in a function that calls itself n times with one less: i32 at(i32 n).
DYNAMIC = """
define i32 @at(i32 %n) noinline {
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %more
end:
  ret i32 1
more:
  %many = zext i32 %n to i64
  %array = alloca i32, i64 %many, addrspace(5)
  %less = sub i32 %n, 1
  %last = getelementptr i32, ptr addrspace(5) %array, i32 %less
  store volatile i32 %n, ptr addrspace(5) %last
  %inner = call i32 @at(i32 %less)
  %kept = load volatile i32, ptr addrspace(5) %last
  %r = mul i32 %inner, %kept
  ret i32 %r
}
"""
DYNAMIC_CALL = element("%p", "i32", "%a") + """
  %n = load i32, ptr addrspace(1) %p
  %r = call i32 @at(i32 %n)
  store i32 %r, ptr addrspace(1) %p
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("opt", [0, 2])
def test_arrays_of_dynamic_size(chip: str, opt: int) -> None:
    """Of 12 ints at most; LLVM 22 takes 64 times their bytes, for each of the nested calls."""
    found = np.arange(64, dtype="i4") % 13
    wanted = np.array([1, *np.cumprod(np.arange(1, 13))])[found]
    program(chip, kernel("ptr %a", DYNAMIC_CALL, DYNAMIC), opt).launch(grid=1, block=64, args=[found])
    assert np.array_equal(found, wanted)


def test_an_array_too_long_for_the_stack() -> None:
    with pytest.raises(OutOfBounds, match="an array of dynamic size too long"):
        program("gfx942", kernel("ptr %a", DYNAMIC_CALL, DYNAMIC)).launch(
            grid=1, block=64, args=[np.full(64, 5000, "i4")])
