"""What a launch takes and refuses: shapes, arguments, kernels, hidden arguments, and packed segments."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np
import pytest

from flylab.emulator import Buffer, Program
from flylab.emulator.arguments import buffer_of
from flylab.errors import ArgumentError, CompileError, DeviceError, FlylabError
from tests.emulator.toolchain import CHIPS, assembly, compile_for, element, kernel, program

SCALARS = kernel("ptr %c, i8 %b, i16 %s, i32 %i3, i64 %l, float %f, double %d, half %h", """
  %lane = and i64 %i, 7
  %pc = getelementptr i64, ptr addrspace(1) %c, i64 %i
  %v1 = sext i8 %b to i64
  %v2 = zext i16 %s to i64
  %v3 = sext i32 %i3 to i64
  %fb = bitcast float %f to i32
  %v5 = zext i32 %fb to i64
  %v6 = bitcast double %d to i64
  %hb = bitcast half %h to i16
  %v7 = zext i16 %hb to i64
  %k1 = icmp eq i64 %lane, 1
  %r1 = select i1 %k1, i64 %v1, i64 0
  %k2 = icmp eq i64 %lane, 2
  %r2 = select i1 %k2, i64 %v2, i64 %r1
  %k3 = icmp eq i64 %lane, 3
  %r3 = select i1 %k3, i64 %v3, i64 %r2
  %k4 = icmp eq i64 %lane, 4
  %r4 = select i1 %k4, i64 %l, i64 %r3
  %k5 = icmp eq i64 %lane, 5
  %r5 = select i1 %k5, i64 %v5, i64 %r4
  %k6 = icmp eq i64 %lane, 6
  %r6 = select i1 %k6, i64 %v6, i64 %r5
  %k7 = icmp eq i64 %lane, 7
  %r7 = select i1 %k7, i64 %v7, i64 %r6
  store i64 %r7, ptr addrspace(1) %pc""")
GOOD = (-3, 40000, -7, 1 << 62, 1.5, -2.25, 0.5)


def test_numbers_are_laid_out_by_the_metadata() -> None:
    found = np.zeros(8, "i8")
    program("gfx942", SCALARS).launch(grid=1, block=8, args=[found, *GOOD])
    wanted = [0, -3, 40000, -7, 1 << 62, *(int.from_bytes(struct.pack(code, x), "little") for code, x in
                                           (("<f", 1.5), ("<d", -2.25), ("<e", 0.5)))]
    assert found.tolist() == [w - (1 << 64) if w >> 63 == 1 else w for w in wanted]


def test_numpy_scalars_keep_their_bytes() -> None:
    found = np.zeros(8, "i8")
    program("gfx950", SCALARS).launch(grid=1, block=8, args=[
        found, np.int8(-3), np.uint16(40000), np.int32(-7), np.int64(5), np.float32(1.5), np.float64(2),
        np.float16(0.5)])
    assert found[4] == 5 and found[5] == 0x3FC00000 and found[7] == 0x3800


@pytest.mark.parametrize("place, value, text", [
    (0, 3, "argument 'c' is a pointer, and int is no array"),
    (1, 300, "argument 'b' takes 1 bytes, and 300 does not fit"),
    (3, "x", "argument 'i3' takes a number of 4 bytes, not a str"),
    (3, np.int64(3), "argument 'i3' takes 4 bytes, and a int64 has 8"),
    (2, b"abc", "argument 's' takes 2 bytes, and 3 were given"),
    (7, 1e30, "argument 'h' takes a float of 2 bytes, and 1e+30 is beyond it"),
    (1, 1.5, "argument 'b' takes a number of 1 bytes, not a float"),
    (4, np.datetime64("2020-01-01", "s"), "argument 'l' has the format <M8[s]"),
    (3, np.str_("x"), "argument 'i3' has the format <U1"),
    (4, np.array([[]], object), "argument 'l' has the format |O"),
])
def test_arguments_that_do_not_fit(place: int, value: object, text: str) -> None:
    args: list[object] = [np.zeros(8, "i8"), *GOOD]
    args[place] = value
    with pytest.raises(ArgumentError) as caught:
        program("gfx942", SCALARS).launch(grid=1, block=8, args=args)
    assert text in str(caught.value)


def test_a_wrong_number_of_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"takes 8 arguments \(c, b, s, i3, l, f, d, h\), and 2 were given"):
        program("gfx942", SCALARS).launch(grid=1, block=8, args=[np.zeros(8, "i8"), 1])


def test_arrays_of_all_sorts() -> None:
    double = "  %x = load i32, ptr addrspace(1) %pa\n  %y = shl i32 %x, 1\n  store i32 %y, ptr addrspace(1) %pa"
    device = program("gfx942", kernel("ptr %a", element("%pa", "i32", "%a") + double))
    array = np.arange(64, dtype="i4")
    for value in (array, array[None]):
        device.launch(grid=1, block=64, args=[value])
    assert array.tolist() == [4 * n for n in range(64)]
    with pytest.raises(ArgumentError, match="memoryview is no array"):
        device.launch(grid=1, block=64, args=[memoryview(array)])


class Interface:
    """Something with an `__array_interface__` of its own."""

    def __init__(self, interface: object):
        self.__array_interface__ = interface


GOOD_INTERFACE = np.zeros(64, "f4").__array_interface__
RECORD = np.dtype([("x", "<f4"), ("y", [("z", object)])])


@pytest.mark.parametrize("value, text", [
    (np.zeros(64, object), "has the format |O"), (np.zeros(64, "M8[ns]"), "view('int64')"),
    (np.zeros(64, "m8[s]"), "has the format <m8[s]"), (np.zeros(64, "<U3"), "has the format <U3"),
    (np.zeros(64, "S4"), "has the format |S4"), (np.zeros(64, ">f4"), "has the format >f4"),
    (np.zeros(64, RECORD), "has the format |V12"), (np.zeros(64, [("x", ">i2")]), "has the format |V2"),
    (Interface(5), "not in numpy's form"), (Interface({}), "not in numpy's form: KeyError('typestr')"),
    (Interface(GOOD_INTERFACE | {"data": None}), "not in numpy's form"),
    (Interface(GOOD_INTERFACE | {"data": (0, False)}), "256 bytes would lie at address 0x0"),
    (Interface(GOOD_INTERFACE | {"data": (1 << 64, False)}), "has no memory"),
    (Interface(GOOD_INTERFACE | {"shape": (-3,)}), "shape (-3,)"),
    (Interface(GOOD_INTERFACE | {"shape": ("3",)}), "not in numpy's form"),
    (Interface(GOOD_INTERFACE | {"strides": (4, 4)}), "strides (4, 4)"),
    (Interface(GOOD_INTERFACE | {"typestr": "<f"}), "not in numpy's form"),
])
def test_arrays_that_the_device_cannot_read(value: object, text: str) -> None:
    device = program("gfx942", kernel("ptr %a", element("%pa", "i32", "%a") + "  store i32 1, ptr addrspace(1) %pa"))
    with pytest.raises(ArgumentError, match="argument 'a'") as caught:
        device.launch(grid=1, block=64, args=[value])
    assert text in str(caught.value)


@pytest.mark.parametrize("array", [
    np.zeros(64, "V4"), np.zeros(64, [("x", "<f4")]), np.zeros(64, "?"), np.zeros(8, "c16"),
    np.zeros(64, [("x", RECORD[0])]), np.zeros(64, ml_dtypes.bfloat16),
    Interface(GOOD_INTERFACE | {"strides": (4,)})], ids=lambda a: str(getattr(a, "dtype", "interface")))
def test_arrays_of_plain_bytes(array: object) -> None:
    buffer = buffer_of("a", array)
    assert buffer.nbytes == (256 if isinstance(array, Interface) else array.nbytes)  # type: ignore[attr-defined]


def test_a_buffer_without_memory() -> None:
    """Packed launches name their buffers themselves."""
    with pytest.raises(ArgumentError, match="argument 'b' has no memory: its 8 bytes would lie at address 0x0"):
        Buffer("b", 0, 8)
    assert Buffer("empty", 0, 0).end == 0


def test_the_metadata_gives_a_pointer_four_bytes() -> None:
    device = Program.from_assembly(assembly("  s_endpgm").replace(".size: 8", ".size: 4"))
    with pytest.raises(ArgumentError, match="the metadata gives a0 4 bytes, and a global_buffer takes 8"):
        device.launch(grid=1, block=64, args=[np.zeros(1)])


EMPTY = "  s_endpgm"


@pytest.mark.parametrize("grid, block, shared, text", [
    (0, 64, 0, "the grid 0 is empty"), ((1, 0), 64, 0, "the grid 1 x 0 is empty"), (1, (8, -1), 0, "the block 8 x -1"),
    (1, 1025, 0, "a block of 1025 x 1 x 1 = 1025 threads is too large for kernel 'k', which allows 1024"),
    (1, (32, 33), 0, "= 1056 threads"), ((1, 1, 1, 1), 64, 0, "the grid has 4 dimensions"),
    (1 << 26, 64, 0, "overflows 32 bits along x"), (1, 64, 65537, "takes 65537, and a workgroup of gfx942 has 65536"),
    (1, 64, -1, "the dynamic LDS is -1 bytes, and 0 or more are possible"),
    ((1 << 22, 1 << 22, 1 << 22), 1, 0, "is more than the software device counts"),
])
def test_shapes_that_cannot_run(grid: object, block: object, shared: int, text: str) -> None:
    with pytest.raises(DeviceError) as caught:
        Program.from_assembly(assembly(EMPTY)).launch(grid=grid, block=block, args=[None], shared=shared)  # type: ignore
    assert text in str(caught.value)


@pytest.mark.parametrize("grid, block, shared, text", [
    ("3", 64, 0, "the grid is '3'"), ((1.7, 1), 64, 0, "the grid is 1.7"), ({1: 2}, 64, 0, "the grid is {1: 2}"),
    (1.5, 64, 0, "the grid is 1.5"), (None, 64, 0, "the grid is None"), (1, True, 0, "the block is True"),
    (1, (64, "1"), 0, "the block is '1'"), (1, 64, 1.5, "the dynamic LDS is 1.5"), (b"a", 64, 0, "the grid is b'a'"),
    (1, np.float64(64), 0, "the block is "), (1, 64, None, "the dynamic LDS is None"), ({4}, 64, 0, "the grid is {4}"),
])
def test_shapes_that_are_no_whole_numbers(grid: object, block: object, shared: object, text: str) -> None:
    with pytest.raises(ArgumentError, match="whole numbers are needed") as caught:
        Program.from_assembly(assembly(EMPTY)).launch(grid=grid, block=block, args=[None], shared=shared)  # type: ignore
    assert text in str(caught.value)


@pytest.mark.parametrize("grid, block, shared", [
    (np.int64(2), np.int32(64), np.uint8(16)), (np.array([2, 1]), [np.int64(64)], 0),
    ((np.uint64(2),), np.array(64), 0), (np.array(2), np.array([8, 8]), np.array(16))])
def test_shapes_of_numpy_integers(grid: object, block: object, shared: object) -> None:
    report = Program.from_assembly(assembly(EMPTY)).launch(grid=grid, block=block, args=[None], shared=shared)  # type: ignore
    assert (report.workgroups, report.waves) == (2, 2)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_block_that_no_compute_unit_holds(chip: str) -> None:
    """256 registers leave two waves to each of four SIMDs."""
    device = Program.from_assembly(assembly(EMPTY, chip, vgprs=256))
    assert device.launch(grid=1, block=512, args=[None]).waves == 8
    with pytest.raises(DeviceError, match=f"a block of 513 threads does not fit a compute unit of {chip}") as caught:
        device.launch(grid=1, block=513, args=[None])
    assert "with 256 vector registers has 2 waves per SIMD" in str(caught.value)


def test_a_block_larger_than_the_kernel_was_compiled_for() -> None:
    text = kernel("ptr %a", "").replace('"1,1024"', '"1,128"')
    with pytest.raises(DeviceError, match="129 threads is too large for kernel 'k', which allows 128"):
        program("gfx942", text).launch(grid=1, block=129, args=[None])


@pytest.mark.parametrize("chip", CHIPS)
def test_a_block_other_than_the_one_that_the_kernel_was_compiled_for(chip: str) -> None:
    text = kernel("ptr %a", "").replace(" {", " !reqd_work_group_size !9 {", 1) + "!9 = !{i32 32, i32 2, i32 1}"
    device = program(chip, text)
    assert device.launch(grid=1, block=(32, 2), args=[None]).waves == 1
    with pytest.raises(DeviceError, match="64 x 1 x 1 threads does not fit kernel 'k', which is compiled") as caught:
        device.launch(grid=1, block=64, args=[None])
    assert "32 x 2 x 1 exactly" in str(caught.value) and "block=(32, 2, 1)" in str(caught.value)


def test_which_kernel() -> None:
    second = assembly(EMPTY).replace("k:", "m:").replace("k,@function", "m,@function").replace(
        ".size k, .Lend-k", ".size m, 0").replace(".Lend", ".Lm").replace("amdhsa_kernel k", "amdhsa_kernel m")
    device = Program.from_assembly(assembly(EMPTY) + second)
    with pytest.raises(DeviceError, match="holds 2 kernels: k, m") as caught:
        device.launch(grid=1, block=64, args=[None])
    assert "kernel=" in str(caught.value)
    with pytest.raises(DeviceError, match="has no kernel 'z'"):
        device.launch(grid=1, block=64, args=[], kernel="z")
    assert device.launch(grid=1, block=64, args=[None], kernel="m").instructions == 1


@pytest.mark.parametrize("text, message", [
    ("  s_endpgm", "names no chip"), ('.amdgcn_target "amdgcn-amd-amdhsa--gfx942"', "holds no kernel"),
    ('.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n.amdhsa_kernel k\n.end_amdhsa_kernel', "no instructions"),
])
def test_text_that_is_no_program(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        Program.from_assembly(text)


HIDDEN = """
define amdgpu_kernel void @k(ptr addrspace(1) %c) #0 {
  %p = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %q = getelementptr i8, ptr addrspace(4) %p, i64 4
  %blocks = load i32, ptr addrspace(4) %q
  %s = getelementptr i8, ptr addrspace(4) %p, i64 14
  %threads16 = load i16, ptr addrspace(4) %s
  %threads = zext i16 %threads16 to i32
  %u = getelementptr i8, ptr addrspace(4) %p, i64 64
  %dims16 = load i16, ptr addrspace(4) %u
  %dims = zext i16 %dims16 to i32
  %a = shl i32 %blocks, 16
  %b = shl i32 %threads, 4
  %ab = or i32 %a, %b
  %abc = or i32 %ab, %dims
  store i32 %abc, ptr addrspace(1) %c
  ret void
}
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }
"""


def test_the_runtime_fills_hidden_arguments() -> None:
    """Blocks along y, threads along y, and the number of dimensions, as code object version 5 places them."""
    found = np.zeros(1, "i4")
    program("gfx942", HIDDEN).launch(grid=(3, 5), block=(8, 2), args=[found])
    assert found[0] == 5 << 16 | 2 << 4 | 2


def test_packed_arguments() -> None:
    device = program("gfx942", kernel("ptr %a, i32 %x", element("%pa", "i32", "%a") +
                                      "  store i32 %x, ptr addrspace(1) %pa"))
    memory = np.zeros(64, "i4")
    segment = struct.pack("<Qi", memory.ctypes.data + 64, 7)
    buffers = [Buffer("left", memory.ctypes.data, 64), Buffer("right", memory.ctypes.data + 64, 64)]
    report = device.launch_packed("k", 1, 16, segment, buffers)
    assert memory.tolist() == [0] * 16 + [7] * 16 + [0] * 32 and report.waves == 1
    with pytest.raises(DeviceError, match="right after the end of 'right'"):
        device.launch_packed("k", (1, 1, 1), (17, 1, 1), segment, buffers)
    with pytest.raises(DeviceError, match="takes 12 bytes of arguments, and 8 were packed"):
        device.launch_packed("k", 1, 16, segment[:8], buffers)


def test_threads_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Program.from_assembly(assembly(EMPTY, arguments=0))
    for count in ("1", "3"):
        monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", count)
        assert device.launch(grid=1000, block=64, args=[]).instructions == 1000
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "many")
    with pytest.raises(FlylabError, match="FLYLAB_EMULATOR_THREADS='many' is no number from 1"):
        device.launch(grid=1000, block=64, args=[])


PLAIN = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
scaled:
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  s_load_dword s4, s[0:1], 0x8
  s_load_dwordx2 s[6:7], s[0:1], 0x10
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, s6
  v_mul_f32 v2, s4, v2
  global_store_dword v1, v2, s[2:3]
  s_endpgm
.amdhsa_kernel scaled
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 24
.end_amdhsa_kernel
"""


def test_arguments_without_metadata_lie_by_their_sizes() -> None:
    device, found = Program.from_assembly(PLAIN), np.zeros(64, "f4")
    device.launch(grid=1, block=64, args=[found, np.float32(1.5), np.array([4, 0], "f4").view("i8")[0]])
    assert np.all(found == 6)
    device.launch(grid=1, block=64, args=[found, np.float32(1.5), struct.pack("<ff", 8, 0)])
    assert np.all(found == 12)
    with pytest.raises(ArgumentError, match="argument 1 is 1.5, and the assembly does not say its size") as caught:
        device.launch(grid=1, block=64, args=[found, 1.5, 1])
    assert "numpy.float32(0.5)" in str(caught.value)
    with pytest.raises(ArgumentError, match="take 32 bytes, and its .amdhsa_kernarg_size is 24"):
        device.launch(grid=1, block=64, args=[found, np.float32(1), np.float64(1), np.float64(1)])


def test_arguments_that_the_descriptor_does_not_know_of() -> None:
    with pytest.raises(ArgumentError, match="kernel 'scaled' takes 24 bytes of arguments, and none were given"):
        Program.from_assembly(PLAIN).launch(grid=1, block=64, args=[])
    without = Program.from_assembly(PLAIN.replace("  .amdhsa_kernarg_size 24\n", ""))
    with pytest.raises(ArgumentError, match=r"takes 0 arguments \(none\), and 1 were given") as caught:
        without.launch(grid=1, block=64, args=[np.zeros(64, "f4")])
    assert ".amdhsa_kernarg_size says how many bytes they take: it is 0 for kernel 'scaled'" in str(caught.value)
    unasked = Program.from_assembly(PLAIN.replace("  .amdhsa_user_sgpr_kernarg_segment_ptr 1\n", ""))
    with pytest.raises(DeviceError, match="a null pointer") as caught:
        unasked.launch(grid=1, block=64, args=[np.zeros(64, "f4"), np.float64(1), np.float64(1)])
    assert "does not ask for its arguments: .amdhsa_user_sgpr_kernarg_segment_ptr 1" in str(caught.value)


def test_numbers_of_all_sizes_from_numpy() -> None:
    """bfloat16 of ml_dtypes, and 16 bytes as an integer, a complex number, and bytes."""
    wide = kernel("ptr %a, bfloat %b, i128 %w", """
  %pa = getelementptr i64, ptr addrspace(1) %a, i64 %i
  %high = lshr i128 %w, 64
  %even = and i64 %i, 1
  %lowest = icmp eq i64 %even, 0
  %picked = select i1 %lowest, i128 %w, i128 %high
  %bits = bitcast bfloat %b to i16
  %more = zext i16 %bits to i64
  %low = trunc i128 %picked to i64
  %sum = xor i64 %low, %more
  store i64 %sum, ptr addrspace(1) %pa""")
    device, found = program("gfx950", wide), np.zeros(2, "u8")
    one, value = ml_dtypes.bfloat16(1.0), (7 << 64) + 5
    for given in (value, value.to_bytes(16, "little"), np.array([5, 7], "u8").view("c16")[0]):
        device.launch(grid=1, block=2, args=[found, one, given])
        assert found.tolist() == [5 ^ 0x3F80, 7 ^ 0x3F80]


def test_kinds_of_arguments_that_are_not_here() -> None:
    device = Program.from_assembly(assembly("  s_endpgm").replace("global_buffer", "image"))
    with pytest.raises(ArgumentError, match="argument 'a0' is of the kind image"):
        device.launch(grid=1, block=64, args=[1])


def test_a_pointer_to_dynamic_lds_is_filled_in() -> None:
    """It is the offset behind the kernel's own LDS, and no argument of the launch."""
    text = assembly("""
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  s_load_dword s4, s[0:1], 0x8
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, s4
  global_store_dword v1, v2, s[2:3]
  s_endpgm""", arguments=2, group_segment_fixed_size=96)
    head, tail = text.rsplit("        .size: 8\n        .value_kind: global_buffer", 1)
    text = head + "        .size: 4\n        .value_kind: dynamic_shared_pointer" + tail
    found = np.zeros(64, "i4")
    Program.from_assembly(text).launch(grid=1, block=64, args=[found], shared=256)
    assert np.all(found == 96)


PRELOADED = """
define amdgpu_kernel void @k(ptr addrspace(1) inreg %a, i32 inreg %x, i16 inreg %s, i16 inreg %u, i64 inreg %l) #0 {
  %p = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
  %q = getelementptr i8, ptr addrspace(4) %p, i64 4
  %threads = load i16, ptr addrspace(4) %q
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %s32 = zext i16 %s to i32
  %u32 = zext i16 %u to i32
  %t32 = zext i16 %threads to i32
  %c0 = mul i32 %u32, %s32
  %c1 = add i32 %c0, %x
  %c2 = mul i32 %c1, %t32
  %c3 = zext i32 %c2 to i64
  %r = add i64 %c3, %l
  %at = getelementptr i64, ptr addrspace(1) %a, i32 %g
  store i64 %r, ptr addrspace(1) %at
  ret void
}
declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
declare i32 @llvm.amdgcn.workgroup.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("count, begin", [(0, False), (1, True), (3, True), (5, True)])
def test_kernel_arguments_in_registers(chip: str, count: int, begin: bool) -> None:
    """Preloaded by LLVM's own code, all or the first few; the prologue of old firmware is not run."""
    all_of_them = PRELOADED.count(" inreg")
    text = compile_for(chip, PRELOADED[::-1].replace(" inreg"[::-1], "", all_of_them - count)[::-1])
    assert ("kernarg_preload_length" in text and ".p2align\t8\n.LBB0_0:" in text) == begin
    device, found = Program.from_assembly(text), np.zeros(3, "i8")
    report = device.launch(grid=3, block=70, args=[found, 11, np.uint16(60000), np.uint16(5), -(1 << 40)])
    assert found.tolist() == [(60000 * 5 + 11) * 70 - (1 << 40)] * 3
    code = [i.address for i in device.isa.kernels["k"].instructions]
    assert report.instructions == 6 * len([a for a in code if a >= 256 * begin])


def test_a_part_of_the_arguments_in_registers() -> None:
    """The second argument's two dwords after the pointer of the first, in s[2:3]; the workgroup's number in s4."""
    body = "  s_trap 2\n.p2align 8\n  s_lshl_b32 s4, s4, 2\n  v_mov_b32_e32 v1, s4\n  v_mov_b32_e32 v2, s4\n"
    text = assembly(body + "  global_store_dword v1, v2, s[2:3]\n  s_endpgm", arguments=2, user_sgpr_count=4,
                    user_sgpr_kernarg_preload_length=2, user_sgpr_kernarg_preload_offset=2)
    found = np.zeros(4, "i4")
    Program.from_assembly(text).launch(grid=4, block=64, args=[None, found])
    assert found.tolist() == [0, 4, 8, 12]


@pytest.mark.parametrize("settings, text", [
    ({"user_sgpr_kernarg_preload_length": 2, "user_sgpr_count": 4}, "at byte 256, where it has no instruction"),
    ({"user_sgpr_kernarg_preload_length": 2, "user_sgpr_count": 3}, "a user_sgpr_count of 3, and what it asks for"),
    ({"user_sgpr_kernarg_preload_length": 16, "user_sgpr_count": 16}, "takes 18"),
])
def test_descriptors_that_cannot_be(settings: dict[str, int], text: str) -> None:
    with pytest.raises(DeviceError) as caught:
        Program.from_assembly(assembly(EMPTY, **settings)).launch(grid=1, block=64, args=[None])
    assert text in str(caught.value)


def test_one_program_for_both_chips() -> None:
    for chip in ("gfx942", "gfx950"):
        assert Program.from_assembly(compile_for(chip, SCALARS)).isa.target.arch == chip
