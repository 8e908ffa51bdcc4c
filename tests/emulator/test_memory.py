"""Loads and stores: widths, views, buffers that clamp, and every way of leaving the memory a kernel was given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.emulator import Program
from flylab.emulator.arrays import extent
from flylab.emulator.windows import ARRAYS
from flylab.errors import DeviceError, OutOfBounds
from tests.emulator.toolchain import CHIPS, assembly, element, kernel, program

WIDTHS = {"i8": 1, "i16": 2, "i32": 4, "<2 x i32>": 8, "<3 x i32>": 12, "<4 x i32>": 16}


def copy_kernel(chip: str, type_: str, align: int = 1) -> Program:
    """c[i] = a[i] where i < n, of a type of any width."""
    size = WIDTHS[type_]
    body = f"""
  %in = icmp ult i32 %i32, %n
  br i1 %in, label %work, label %end
work:
  %at = mul i64 %i, {size}
{element("%pa", "i8", "%a", "%at")}{element("%pc", "i8", "%c", "%at")}
  %x = load {type_}, ptr addrspace(1) %pa, align {align}
  store {type_} %x, ptr addrspace(1) %pc, align {align}
  br label %end
end:"""
    return program(chip, kernel("ptr %a, ptr %c, i32 %n", body))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("type_", WIDTHS)
@pytest.mark.parametrize("count", [1, 63, 64, 256, 300])
def test_copies_of_each_width(chip: str, type_: str, count: int) -> None:
    size = WIDTHS[type_]
    source = np.random.default_rng(count).integers(0, 256, size * count, dtype=np.uint8)
    guard = np.full(size * count + 64, 0xEE, np.uint8)
    # An odd start: global accesses need no alignment.
    result = guard[1:1 + size * count]
    copy_kernel(chip, type_).launch(grid=2, block=256, args=[source, result, count])
    assert np.array_equal(result, source)
    assert guard[0] == 0xEE and np.all(guard[1 + size * count:] == 0xEE)


GATHER = kernel("ptr %a, ptr %index, ptr %c", element("%pi", "i32", "%index") + """
  %j32 = load i32, ptr addrspace(1) %pi
  %j = sext i32 %j32 to i64
""" + element("%pa", "<2 x float>", "%a", "%j") + "  %x = load <2 x float>, ptr addrspace(1) %pa\n" +
                element("%pc", "<2 x float>", "%c") + "  store <2 x float> %x, ptr addrspace(1) %pc")


@pytest.mark.parametrize("order", ["same", "reversed", "random"])
def test_lanes_that_read_anywhere(order: str) -> None:
    source = np.arange(1000, dtype="f4").reshape(500, 2)
    index = {"same": np.full(256, 7), "reversed": np.arange(256)[::-1],
             "random": np.random.default_rng(0).integers(0, 500, 256)}[order].astype("i4")
    result = np.zeros((256, 2), "f4")
    program("gfx942", GATHER).launch(grid=1, block=256, args=[source, index, result])
    assert np.array_equal(result, source[index])


def test_lanes_in_two_arrays() -> None:
    """One instruction may reach into two arrays: half of the lanes take their address from the first."""
    body = ("  %odd = and i32 %t, 1\n  %is = icmp eq i32 %odd, 1\n"
            "  %p = select i1 %is, ptr addrspace(1) %a, ptr addrspace(1) %b\n" + element("%at", "i32", "%p") +
            "  %x = load i32, ptr addrspace(1) %at\n" + element("%pc", "i32", "%c") +
            "  store i32 %x, ptr addrspace(1) %pc")
    a, b, c = np.arange(256, dtype="i4"), -np.arange(256, dtype="i4"), np.zeros(256, "i4")
    program("gfx942", kernel("ptr %a, ptr %b, ptr %c", body)).launch(grid=1, block=256, args=[a, b, c])
    assert np.array_equal(c, np.where(np.arange(256) % 2 == 1, a, b))


def fails(device: Program, error: type[Exception] = OutOfBounds, **launch: object) -> str:
    with pytest.raises(error) as caught:
        device.launch(**launch)  # type: ignore[arg-type]
    return str(caught.value)


def test_one_element_too_far() -> None:
    a, c = np.zeros(300, "i4"), np.zeros(300, "i4")
    text = fails(copy_kernel("gfx942", "i32"), grid=2, block=256, args=[a, c, 301])
    assert f"a read of 4 bytes at address {ARRAYS + 1200:#x} is out of bounds" in text
    assert "right after the end of 'a' (shape (300,), strides (1,), i32), at element 300, " in text
    assert "and dimension 0 has 300\n" in text
    assert "block (1, 0, 0), thread (44, 0, 0) of kernel 'k', at 'global_load_dword" in text
    assert "(byte 0x" in text and "ISA line" in text and "hint: launch no more threads than there is data" in text


def test_a_wide_access_that_sticks_out() -> None:
    a, c = np.zeros(4 * 256 - 1, "i4"), np.zeros(4 * 256, "i4")
    text = fails(copy_kernel("gfx950", "<4 x i32>", 4), grid=1, block=256, args=[a, c, 256])
    assert "its last 4 bytes are after the end of 'a'" in text and "thread (255, 0, 0)" in text


def test_before_the_start() -> None:
    text = fails(program("gfx942", GATHER), grid=1, block=64,
                 args=[np.zeros((4, 2), "f4"), np.full(64, -3, "i4"), np.zeros((64, 2), "f4")])
    assert "24 bytes before the start of 'a'" in text and "thread (0, 0, 0)" in text


def test_a_write_out_of_bounds_changes_nothing_else() -> None:
    memory = np.zeros(600, "i4")
    text = fails(copy_kernel("gfx942", "i32"), grid=2, block=256, args=[np.ones(600, "i4"), memory[:300], 400])
    assert "a write of 4 bytes" in text and "'c' (shape (300,)" in text
    assert not memory[300:].any()


def test_the_lowest_block_is_reported() -> None:
    for _ in range(5):
        text = fails(copy_kernel("gfx942", "i32"), grid=400, block=256,
                     args=[np.zeros(256 * 37, "i4"), np.zeros(256 * 400, "i4"), 256 * 400])
        assert "block (37, 0, 0), thread (0, 0, 0)" in text


def test_null_and_read_only() -> None:
    device = copy_kernel("gfx942", "i32")
    a, c = np.zeros(64, "i4"), np.zeros(64, "i4")
    assert "null pointer" in fails(device, grid=1, block=64, args=[None, c, 64])
    c.setflags(write=False)
    text = fails(device, grid=1, block=64, args=[a, c, 64])
    assert "'c', which is read-only" in text and "hint: pass a writable array" in text


def test_an_empty_array_is_said_to_be_empty() -> None:
    device = copy_kernel("gfx942", "i32")
    some = np.zeros(64, "i4")
    text = fails(device, grid=1, block=64, args=[np.zeros(0, "i4"), some, 64])
    assert "is out of bounds: 'a' is empty\n" in text and "hint: launch only where there is data" in text
    assert "'c' is empty" in fails(device, grid=1, block=64, args=[some, np.zeros(0, "i4"), 64])


def test_wild_addresses_are_told_by_the_arguments() -> None:
    """What the device lays in memory for itself is named only by an access next to it."""
    wild = SCALAR.format("s_mov_b32 s5, 0x7fff\n  s_mov_b32 s4, 0\n  global_load_dword v2, v0, s[4:5]")
    text = fails(Program.from_assembly(assembly(wild)), grid=1, block=64, args=[np.zeros(64, "i4")])
    assert "'a0'" in text and "dispatch packet" not in text and "kernel arguments" not in text
    far = SCALAR.format("s_mov_b32 s5, 0x5000000\n  global_load_dword v2, v0, s[4:5]")
    text = fails(Program.from_assembly(assembly(far)), grid=1, block=64, args=[np.zeros(64, "i4")])
    assert "far from all memory that the kernel was given" in text and "'a0', the nearest" in text
    beside = SCALAR.format("s_load_dword s8, s[0:1], 0x200")
    text = fails(Program.from_assembly(assembly(beside)), grid=1, block=64, args=[np.zeros(64, "i4")])
    assert "bytes after the end of 'the kernel arguments'" in text or "'the dispatch packet'" in text
    assert "hint: look at the offset" in text
    text = fails(Program.from_assembly(assembly(wild, arguments=0)), grid=1, block=64, args=[])
    assert "no memory" in text
    store = SCALAR.format("v_mov_b32_e32 v2, 0\n  global_store_dword v2, v2, s[0:1]")
    text = fails(Program.from_assembly(assembly(store)), grid=1, block=64, args=[np.zeros(64, "i4")])
    assert "'the kernel arguments', which is read-only" in text and "hint: store to an array argument" in text


def test_a_guard_keeps_a_row_in_bounds() -> None:  # D05
    row, out = np.arange(3, dtype="i4"), np.zeros(3, "i4")
    device = copy_kernel("gfx942", "i32")
    device.launch(grid=1, block=4, args=[row, out, 3])
    assert out.tolist() == [0, 1, 2]
    text = fails(device, grid=1, block=4, args=[row, out, 4])
    assert "thread (3, 0, 0)" in text


def test_views_span_what_their_strides_reach() -> None:  # D04
    device = copy_kernel("gfx942", "i32")
    base, out = np.arange(5, dtype="i4"), np.zeros(8, "i4")
    assert "after the end of 'a'" in fails(device, grid=1, block=64, args=[base[::2], out, 6])
    expanded = np.broadcast_to(np.arange(3, dtype="i4"), (4, 3))
    device.launch(grid=1, block=64, args=[expanded, out, 3])
    assert out[:3].tolist() == [0, 1, 2]
    text = fails(device, grid=1, block=64, args=[expanded, out, 4])
    assert "end of 'a' (shape (4, 3), strides (0, 1), i32), at element (0, 3)" in text
    table = np.arange(20, dtype="i4").reshape(4, 5)
    device.launch(grid=1, block=64, args=[table[1:3, 1:4], out, 8])  # from element 6 to 13
    assert out.tolist() == list(range(6, 14))
    assert "right after the end of 'a'" in fails(device, grid=1, block=64,
                                                 args=[table[1:3, 1:4], np.zeros(9, "i4"), 9])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5)), max_size=3), st.sampled_from([1, 2, 4]))
def test_extent_against_every_element(dims: list[tuple[int, int]], size: int) -> None:
    touched = [1000]
    for count, step in dims:
        touched = [at + n * step for at in touched for n in range(count)]
    low, nbytes = extent(1000, [n for n, _ in dims], [s for _, s in dims], size)
    if not touched:
        assert nbytes == 0
    else:
        assert (low, low + nbytes) == (min(touched), max(touched) + size)


BUFFER_NAMES = {1: "float", 2: "<2 x float>", 3: "<3 x float>", 4: "<4 x float>"}


def buffer_kernel(chip: str, registers: int) -> Program:
    """Loads `registers` dwords at byte %shift + 4 * registers * thread of a raw buffer, and stores them to another."""
    type_, short = BUFFER_NAMES[registers], "f32" if registers == 1 else f"v{registers}f32"
    load, store = f"llvm.amdgcn.raw.ptr.buffer.load.{short}", f"llvm.amdgcn.raw.ptr.buffer.store.{short}"
    make = "llvm.amdgcn.make.buffer.rsrc.p8.p1"
    body = f"""
  %ra = call ptr addrspace(8) @{make}(ptr addrspace(1) %a, i16 0, i64 %na, i32 159744)
  %rc = call ptr addrspace(8) @{make}(ptr addrspace(1) %c, i16 0, i64 %nc, i32 159744)
  %o = mul i32 %t, {4 * registers}
  %oa = add i32 %o, %shift
  %x = call {type_} @{load}(ptr addrspace(8) %ra, i32 %oa, i32 0, i32 0)
  call void @{store}({type_} %x, ptr addrspace(8) %rc, i32 %o, i32 0, i32 0)"""
    return program(chip, kernel("ptr %a, ptr %c, i64 %na, i64 %nc, i32 %shift", body, f"""
declare ptr addrspace(8) @{make}(ptr addrspace(1), i16, i64, i32)
declare {type_} @{load}(ptr addrspace(8), i32, i32, i32)
declare void @{store}({type_}, ptr addrspace(8), i32, i32, i32)"""))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("registers", BUFFER_NAMES)
@pytest.mark.parametrize("given_a, given_c, shift", [
    (256, 256, 0), (101, 256, 0), (256, 77, 0), (130, 99, 12), (3, 0, 0)])
def test_buffers_clamp_by_dword(chip: str, registers: int, given_a: int, given_c: int, shift: int) -> None:
    """`given` is what the descriptor allows, in dwords; the arrays are larger."""
    a, c = np.arange(1, 1025, dtype="f4"), np.full(1024, -1, "f4")
    report = buffer_kernel(chip, registers).launch(grid=1, block=64, args=[a, c, 4 * given_a, 4 * given_c, shift])
    at = np.arange(64 * registers)
    read = np.where(at + shift // 4 < given_a, a[at + shift // 4], 0)
    assert np.array_equal(c[:at.size], np.where(at < given_c, read, -1)) and np.all(c[at.size:] == -1)
    last = (np.arange(64) + 1) * registers
    assert report.clamped == np.sum(last + shift // 4 > given_a) + np.sum(last > given_c)


def test_a_buffer_that_allows_too_much_is_held_to_the_array() -> None:
    a, c = np.zeros(60, "f4"), np.zeros(64, "f4")
    text = fails(buffer_kernel("gfx942", 1), grid=1, block=64, args=[a, c, 1 << 20, 256, 0])
    assert "thread (60, 0, 0)" in text and "buffer_load_dword" in text


def test_a_partial_last_dword_is_out_of_range() -> None:
    a, c = np.ones(64, "f4"), np.full(64, -1, "f4")
    buffer_kernel("gfx942", 1).launch(grid=1, block=64, args=[a, c, 4 * 10 + 2, 256, 0])
    assert c.tolist() == [1.0] * 10 + [0.0] * 54


SCALAR = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  {}
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v1, s8
  v_lshlrev_b32_e32 v0, 2, v0
  global_store_dword v0, v1, s[4:5]
  s_endpgm
"""


def test_scalar_loads_are_checked() -> None:
    a = np.arange(64, dtype="i4")
    Program.from_assembly(assembly(SCALAR.format("s_load_dword s8, s[4:5], 0x10"))).launch(grid=1, block=64, args=[a])
    assert np.all(a == 4)
    pair = Program.from_assembly(assembly(SCALAR.format("s_load_dwordx2 s[8:9], s[4:5], 0xfc")))
    text = fails(pair, grid=1, block=64, args=[a])
    assert "a read of 8 bytes" in text and "its last 4 bytes are after the end of 'a0'" in text
    text = fails(Program.from_assembly(assembly(SCALAR.format("s_load_dword s8, s[4:5], 0x2"))), DeviceError, grid=1,
                 block=64, args=[a])
    assert "no multiple of 4" in text


@pytest.mark.parametrize("records, wanted", [(256, [1, 2, 3, 4]), (8, [1, 2, 0, 0]), (0, [0, 0, 0, 0])])
def test_scalar_buffer_loads_clamp(records: int, wanted: list[int]) -> None:
    body = SCALAR.format(f"""s_mov_b32 s6, {records}
  s_mov_b32 s7, 0x27000
  s_buffer_load_dwordx4 s[8:11], s[4:7], 0x0
  s_waitcnt lgkmcnt(0)
  s_lshl_b32 s9, s9, 8
  s_lshl_b32 s10, s10, 16
  s_lshl_b32 s11, s11, 24
  s_or_b32 s8, s8, s9
  s_or_b32 s8, s8, s10
  s_or_b32 s8, s8, s11""")
    a = np.arange(1, 65, dtype="u4")
    report = Program.from_assembly(assembly(body)).launch(grid=1, block=64, args=[a])
    assert a[0].tobytes() == bytes(wanted) and report.clamped == (records < 16)


def test_halves_of_registers_are_stored() -> None:
    body = SCALAR.format("v_mov_b32_e32 v3, 0x12345678\n  v_lshlrev_b32_e32 v4, 2, v0\n"
                         "  global_store_short_d16_hi v4, v3, s[4:5]\n"
                         "  global_store_byte_d16_hi v4, v3, s[4:5] offset:2\n  s_endpgm")
    a = np.zeros(64, "u4")
    Program.from_assembly(assembly(body)).launch(grid=1, block=64, args=[a])
    assert np.all(a == 0x341234)
