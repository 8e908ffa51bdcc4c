"""Buffers whose records have a stride, are interleaved or numbered by lanes, against numpy; what is out of range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.emulator import Program
from flylab.emulator.windows import ARRAYS
from flylab.errors import DeviceError, OutOfBounds, UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly, kernel, program

PLAIN = 0x27000  # 32-bit floats
ADD_LANE, SWIZZLE = 1 << 23, 1 << 31
MAKE = "llvm.amdgcn.make.buffer.rsrc.p8.p1"
LOAD, STORE = "llvm.amdgcn.struct.ptr.buffer.load.i32", "llvm.amdgcn.struct.ptr.buffer.store.i32"
STRUCT = f"""
declare ptr addrspace(8) @{MAKE}(ptr addrspace(1), i16, i64, i32)
declare i32 @{LOAD}(ptr addrspace(8), i32, i32, i32, i32)
declare void @{STORE}(i32, ptr addrspace(8), i32, i32, i32, i32)"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("stride, records", [(12, 64), (12, 50), (4, 20), (32, 0)])
def test_records_of_a_structured_buffer(chip: str, stride: int, records: int) -> None:
    """Element `offset` of record `t` goes to another structured buffer, 8 bytes a record; both have `records`."""
    body = f"""
  %ra = call ptr addrspace(8) @{MAKE}(ptr addrspace(1) %a, i16 {stride}, i64 %n, i32 {PLAIN})
  %rc = call ptr addrspace(8) @{MAKE}(ptr addrspace(1) %c, i16 8, i64 60, i32 {PLAIN})
  %x = call i32 @{LOAD}(ptr addrspace(8) %ra, i32 %t, i32 4, i32 0, i32 0)
  call void @{STORE}(i32 %x, ptr addrspace(8) %rc, i32 %t, i32 0, i32 4, i32 0)"""
    a, c = np.arange(64 * 32, dtype="i4"), np.full(256, -1, "i4")
    report = program(chip, kernel("ptr %a, ptr %c, i64 %n", body, STRUCT)).launch(
        grid=1, block=64, args=[a, c, np.uint64(records)])
    lane, wanted = np.arange(64), np.full(256, -1)
    wanted[2 * lane[:60] + 1] = np.where(lane < records, a[(lane * stride + 4) // 4], 0)[:60]
    assert np.array_equal(c, wanted)
    assert report.clamped == 64 - records + 4


def by_hand(*lines: str, chip: str = "gfx942", words: tuple[int, int, int] = (0, 4096, PLAIN)) -> Program:
    """A kernel with the descriptor of the first argument in s[4:7], the lane in v0 and 4 * lane in v1.

    The second argument gets v[4:7] of each lane. `words` are what is or-ed into the second, and the third and fourth.
    """
    body = ["s_load_dwordx4 s[8:11], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_mov_b64 s[4:5], s[8:9]",
            f"s_or_b32 s5, s5, {words[0]:#x}", f"s_mov_b32 s6, {words[1]:#x}", f"s_mov_b32 s7, {words[2]:#x}",
            "v_lshlrev_b32 v1, 2, v0", "v_lshlrev_b32 v2, 4, v0", "v_mov_b32 v3, 0",
            *(f"v_mov_b32 v{n}, {n - 3}" for n in range(4, 8)), *lines, "s_waitcnt vmcnt(0)",
            "global_store_dwordx4 v2, v[4:7], s[10:11]", "s_endpgm"]
    return Program.from_assembly(assembly("\n".join(f"  {x}" for x in body), chip, arguments=2, vgprs=32))


def result(device: Program, a: np.ndarray) -> np.ndarray:
    out = np.zeros((64, 4), "u4")
    device.launch(grid=1, block=64, args=[a, out])
    return out


DATA = np.random.default_rng(3).integers(0, 1 << 32, 4096, "u4")
LANES = np.arange(64)


def swizzled(index: int, offset: int, stride: int, shift: int) -> int:
    """The byte of a swizzled buffer, as the ISA document's equations say; elements are 4 bytes."""
    group = 8 << shift
    return ((index // group) * stride + offset // 4 * 4) * group + index % group * 4 + offset % 4


@settings(max_examples=30, deadline=None)
@given(stride=st.sampled_from([4, 8, 16, 40]), shift=st.integers(0, 3), offset=st.sampled_from([0, 4, 8]),
       scalar=st.sampled_from([0, 64]), swizzle=st.booleans(), add=st.booleans())
def test_every_kind_of_descriptor(stride: int, shift: int, offset: int, scalar: int, swizzle: bool,
                                  add: bool) -> None:
    """Four dwords of the record whose number is the lane's, by `idxen` or ADD_TID_ENABLE, linear or interleaved."""
    words = stride << 16 | SWIZZLE * swizzle, 64 << (2 * add), 4 << 15 | shift << 21 | ADD_LANE * add
    # With ADD_TID_ENABLE the data format is the upper part of the stride.
    words = (words[0], words[1], words[2] & ~(15 << 15) if add else words[2])
    text = f"buffer_load_dwordx4 v[4:7], {'off' if add else 'v0'}, s[4:7], {scalar}" + " idxen" * (not add)
    got = result(by_hand(f"{text} offset:{offset}", words=words), DATA)
    for lane in range(64):
        for n in range(4):
            at = offset + 4 * n
            byte = scalar + (swizzled(lane, at, stride, shift) if swizzle else lane * stride + at)
            assert got[lane, n] == DATA[byte // 4]


def test_the_lane_counts_beside_the_index_and_the_format_widens_the_stride() -> None:
    big = np.arange(1 << 18, dtype="u4")
    # Data format 1 makes the stride 0x4000 + 4 bytes.
    device = by_hand("v_mov_b32 v8, 3", "buffer_load_dword v4, v8, s[4:7], 0 idxen",
                     words=(4 << 16, 1, 1 << 15 | ADD_LANE))
    with pytest.raises(OutOfBounds, match="'a0'"):
        result(device, big)
    big = np.arange(67 * 0x4004 // 4 + 1, dtype="u4")
    assert np.array_equal(result(device, big)[:, 0], (LANES + 3) * 0x4004 // 4)


@pytest.mark.parametrize("chip", CHIPS)
def test_index_and_offset_together(chip: str) -> None:
    device = by_hand("v_mov_b32 v8, v0", "v_lshlrev_b32 v9, 1, v1",
                     "buffer_load_dword v4, v[8:9], s[4:7], 0 idxen offen", words=(16 << 16, 40, PLAIN), chip=chip)
    assert np.array_equal(result(device, DATA)[:, 0], np.where(LANES < 40, DATA[(LANES * 16 + 8 * LANES) // 4], 0))


def test_a_stride_without_an_index_only_steers_caches() -> None:
    """As compilers use it for the cache swizzle (bit 62): the size is in bytes then."""
    device = by_hand("buffer_load_dword v4, v1, s[4:7], 0 offen", words=(64 << 16 | 1 << 30, 100, PLAIN))
    assert np.array_equal(result(device, DATA)[:, 0], np.where(LANES < 25, DATA[LANES], 0))


def test_the_scalar_offset_counts_against_the_size() -> None:
    device = by_hand("s_mov_b32 s12, 40", "buffer_load_dword v4, v1, s[4:7], s12 offen", words=(0, 100, PLAIN))
    assert np.array_equal(result(device, DATA)[:, 0], np.where(LANES < 15, DATA[LANES + 10], 0))


def test_offsets_of_a_lane_wrap_and_sums_of_addresses_do_not() -> None:
    """LLVM folds a constant into the instruction whatever the sign of the rest; 3 GiB and 2 GiB are out of range."""
    device = by_hand("v_subrev_u32 v8, 8, v1", "buffer_load_dword v4, v8, s[4:7], 0 offen offset:8")
    assert np.array_equal(result(device, DATA)[:, 0], DATA[LANES])
    device = by_hand("s_mov_b32 s12, 0x80000000", "v_mov_b32 v8, 0xc0000000",
                     "buffer_load_dword v4, v8, s[4:7], s12 offen", words=(0, 0xFFFFFFFF, PLAIN))
    assert not result(device, DATA)[:, 0].any()
    device = by_hand("v_mov_b32 v8, 0x40000001", "buffer_load_dword v4, v8, s[4:7], 0 idxen",
                     words=(4 << 16, 0xFFFFFFFF, PLAIN))
    with pytest.raises(OutOfBounds, match=f"address {ARRAYS + (4 << 30) + 4:#x} "):
        result(device, DATA)


@pytest.mark.parametrize("name", ["ubyte_d16", "sbyte_d16", "short_d16_hi", "short_d16", "ubyte_d16_hi"])
def test_halves_keep_the_other_half_where_out_of_range_too(name: str) -> None:
    text = f"buffer_load_{name} v4, v1, s[4:7], 0 offen"
    for records in (4096, 77):
        got = result(by_hand("v_mov_b32 v4, 0xabcd1234", text, words=(0, records, PLAIN)), DATA)[:, 0]
        size = 1 if "byte" in text else 2
        half = DATA[LANES] & (0xFF if size == 1 else 0xFFFF)
        if "sbyte" in text:
            half = (half.astype("u1").view("i1").astype("i2").view("u2")).astype("u4")
        half = np.where(4 * LANES + size <= records, half, 0)
        assert np.array_equal(got, half << 16 | 0x1234 if "hi" in text else 0xABCD0000 | half)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("records", [256, 100])
def test_integer_atomics_drop_what_is_out_of_range(chip: str, records: int) -> None:
    a = np.arange(64, dtype="u4") * 10
    device = by_hand("v_mov_b32 v4, 7", "buffer_atomic_add v4, v1, s[4:7], 0 offen sc0",
                     words=(0, records, PLAIN), chip=chip)
    given = a.copy()
    got, inside = result(device, given)[:, 0], records >= 4 * LANES + 4
    assert np.array_equal(given, np.where(inside, a + 7, a)) and np.array_equal(got, np.where(inside, a, 0))


@pytest.mark.parametrize("name, old, data, new", [
    ("swap", 5, 9, 9), ("sub", 5, 9, 2**64 - 4), ("smin", -5, 3, -5), ("umin", -5, 3, 3), ("smax", -5, 3, 3),
    ("umax", -5, 3, -5), ("and", 12, 10, 8), ("or", 12, 10, 14), ("xor", 12, 10, 6), ("inc", 5, 9, 6), ("inc", 9, 9, 0),
    ("dec", 0, 9, 9), ("dec", 5, 9, 4)])
@pytest.mark.parametrize("wide", [False, True])
def test_each_buffer_atomic(name: str, old: int, data: int, new: int, wide: bool) -> None:
    bits = 64 if wide else 32
    mask = (1 << bits) - 1
    a = np.full(64, old & mask, f"u{bits // 8}")
    high = data >> 32 & 0xFFFFFFFF
    text = (f"buffer_atomic_{name}_x2 v[4:5], v8, s[4:7], 0 offen sc0" if wide else
            f"buffer_atomic_{name} v4, v1, s[4:7], 0 offen sc0")
    got = result(by_hand(f"v_mov_b32 v4, {data}", f"v_mov_b32 v5, {high}", "v_lshlrev_b32 v8, 3, v0", text), a)
    assert np.all(a == new & mask)
    assert np.all(got[:, 0] == old & 0xFFFFFFFF) and np.all(got[:, 1] == (old & mask) >> 32 if wide else 2)


@pytest.mark.parametrize("wide", [False, True])
def test_compare_and_swap(wide: bool) -> None:
    """Data first, then what to compare with: lanes 0 to 31 find what they expect."""
    a = np.where(LANES < 32, 3, 4).astype("u8" if wide else "u4")
    text = ("v_mov_b32 v5, 0\nv_mov_b32 v6, 3\nv_mov_b32 v7, 0\nv_lshlrev_b32 v8, 3, v0\n"
            "buffer_atomic_cmpswap_x2 v[4:7], v8, s[4:7], 0 offen sc0" if wide else
            "v_mov_b32 v5, 3\nbuffer_atomic_cmpswap v[4:5], v1, s[4:7], 0 offen sc0")
    got = result(by_hand("v_mov_b32 v4, 1", text), a)
    assert np.array_equal(a, np.where(LANES < 32, 1, 4)) and np.array_equal(got[:, 0], np.where(LANES < 32, 3, 4))


@pytest.mark.parametrize("text, words, error, message", [
    ("buffer_load_dword v4, off, s[4:7], 0", (0, 64, 1 << 30), DeviceError, "are no buffer descriptor"),
    ("buffer_load_dword v4, off, s[4:7], 0", (SWIZZLE, 64, PLAIN), DeviceError, "a swizzle and used without an index"),
    ("buffer_load_dword v4, v0, s[4:7], 0 idxen offset:2", (SWIZZLE | 8 << 16, 64, PLAIN), DeviceError,
     r"an access of 4 bytes at byte 2 of a record reaches over the 4 bytes.*\n.*thread \(0, 0, 0\)"),
    ("buffer_load_dword v4, v0, s[4:7], 0 offen idxen", (0, 64, PLAIN), UnknownInstruction, "names 1 registers"),
    ("buffer_load_dword v4, off, s[4:7], 0 offen", (0, 64, PLAIN), UnknownInstruction, "'offen' and 'idxen'"),
    ("buffer_load_dword v4, v0, s[4:7], 0 offen offset:4096", (0, 64, PLAIN), UnknownInstruction, "from 0 to 4095"),
    ("buffer_load_dwordx4 off, s[4:7], 0 lds", (0, 64, PLAIN), UnknownInstruction, "gfx942 has no such instruction"),
    ("buffer_atomic_add v4, v1, s[4:7], 0 offen offset:2", (0, 640, PLAIN), DeviceError, "no multiple of 4"),
    ("buffer_load_dword v4, v0, s[4:7], 0 idxen", (0x1000 << 16, 64, PLAIN), OutOfBounds,
     r"a read of 4 bytes at address .* is out of bounds: right after the end of 'a0' .*, at element 4096,.*\n"
     r".*thread \(4, 0, 0\)"),
])
def test_refusals(text: str, words: tuple[int, int, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        result(by_hand(text, words=words), DATA)
