"""Loads straight to LDS, as LLVM emits them and by hand: where each lane's data goes, and what is out of range."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import DeviceError, OutOfBounds, UnknownInstruction
from tests.emulator.toolchain import assembly, element, kernel, program

WIDTHS = [("gfx942", 4), ("gfx950", 4), ("gfx950", 12), ("gfx950", 16), ("gfx942", 1), ("gfx942", 2)]
DATA = np.random.default_rng(5).integers(0, 1 << 32, 2048, "u4")
BUFFER_LOAD, GLOBAL_LOAD = "llvm.amdgcn.raw.ptr.buffer.load.lds", "llvm.amdgcn.global.load.lds"
MAKE = "llvm.amdgcn.make.buffer.rsrc.p8.p1"


def through_lds(chip: str, size: int, load: str) -> Program:
    """A wave loads `size` bytes a lane to LDS from byte 64 on, and copies 256 dwords of LDS to %c, flat."""
    body = f"""
  %rsrc = call ptr addrspace(8) @{MAKE}(ptr addrspace(1) %a, i16 0, i64 %n, i32 159744)
  %scaled = mul i32 %t, 20
  %at = zext i32 %scaled to i64
  %pa = getelementptr i8, ptr addrspace(1) %a, i64 %at
  %to = getelementptr i8, ptr addrspace(3) @cells, i32 64
{load}
  fence syncscope("workgroup") acq_rel
  call void @llvm.amdgcn.s.waitcnt(i32 0)
  %flat = addrspacecast ptr addrspace(3) @cells to ptr
  br label %copy
copy:
  %k = phi i32 [ 0, %entry ], [ %next, %copy ]
  %cell = add i32 %k, %t
  %from = getelementptr i32, ptr %flat, i32 %cell
  %x = load volatile i32, ptr %from
  %wide = zext i32 %cell to i64
""" + element("%pc", "i32", "%c", "%wide") + """  store i32 %x, ptr addrspace(1) %pc
  %next = add i32 %k, 64
  %more = icmp ult i32 %next, 320
  br i1 %more, label %copy, label %out
out:"""
    return program(chip, "@cells = internal addrspace(3) global [320 x i32] poison, align 16\n" + kernel(
        "ptr %a, ptr %c, i64 %n", body, f"""
declare void @llvm.amdgcn.s.waitcnt(i32)
declare ptr addrspace(8) @{MAKE}(ptr addrspace(1), i16, i64, i32)
declare void @{BUFFER_LOAD}(ptr addrspace(8), ptr addrspace(3), i32, i32, i32, i32, i32)
declare void @{GLOBAL_LOAD}(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)"""))


def wanted(size: int, records: int = 1 << 30) -> np.ndarray:
    """What the wave's part of LDS is: cells of at least 4 bytes, one a lane, each dword within range or 0."""
    cells = []
    for lane in range(64):
        cell = bytearray(DATA.tobytes()[20 * lane:20 * lane + size].ljust(max(size, 4), b"\0"))
        unit = min(size, 4)
        for at in range(0, size, unit):
            if 20 * lane + at + unit > records:
                cell[at:at + unit] = bytes(unit)
        cells.append(bytes(cell))
    return np.frombuffer(b"".join(cells), "u4")


@pytest.mark.parametrize("chip, size", WIDTHS)
@pytest.mark.parametrize("records", [4096, 1000, 1004, 0])
def test_buffers_to_lds(chip: str, size: int, records: int) -> None:
    load = f"  call void @{BUFFER_LOAD}(ptr addrspace(8) %rsrc, ptr addrspace(3) %to, i32 {size}, i32 %scaled, i32 0," \
           " i32 0, i32 0)"
    c = np.zeros(320, "u4")
    through_lds(chip, size, load).launch(grid=1, block=64, args=[DATA, c, np.uint64(records)])
    cells = wanted(size, records)
    assert np.array_equal(c[16:16 + cells.size], cells)
    # What the load did not write still has what LDS begins with.
    rest = np.delete(c, np.s_[16:16 + cells.size])
    assert np.all(rest == rest[0])


@pytest.mark.parametrize("chip, size", WIDTHS)
def test_global_memory_to_lds(chip: str, size: int) -> None:
    """The instruction's offset counts on both sides."""
    load = f"  call void @{GLOBAL_LOAD}(ptr addrspace(1) %pa, ptr addrspace(3) @cells, i32 {size}, i32 64, i32 0)"
    c, shifted = np.zeros(320, "u4"), np.concatenate([np.zeros(16, "u4"), DATA])
    through_lds(chip, size, load).launch(grid=1, block=64, args=[shifted, c, np.uint64(0)])
    cells = wanted(size)
    assert np.array_equal(c[16:16 + cells.size], cells)


def by_hand(*lines: str, chip: str = "gfx942", shared: int = 512, scratch: int = 0) -> np.ndarray:
    """Runs lines with the argument at s[4:5] and its descriptor at s[4:7], 4 * lane in v1; gives LDS back."""
    body = ["s_load_dwordx4 s[8:11], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_mov_b64 s[4:5], s[8:9]",
            "s_movk_i32 s6, 0x1000", "s_mov_b32 s7, 0x27000", "v_lshlrev_b32 v1, 2, v0", "s_mov_b32 m0, 0", *lines,
            "s_mov_b64 exec, -1", "s_mov_b64 s[12:13], src_shared_base", "v_mov_b32 v2, v1", "v_mov_b32 v3, s13",
            "flat_load_dword v4, v[2:3]", "flat_load_dword v5, v[2:3] offset:256",
            "global_store_dword v1, v4, s[10:11]", "global_store_dword v1, v5, s[10:11] offset:256", "s_endpgm"]
    out = np.zeros(128, "u4")
    text = assembly("\n".join(f"  {x}" for x in body), chip, arguments=2, private_segment_fixed_size=scratch)
    Program.from_assembly(text).launch(grid=1, block=64, args=[DATA, out], shared=shared)
    return out


def test_bytes_are_extended_and_lanes_that_are_off_write_nothing() -> None:
    low = DATA[:64] & 0xFF
    got = by_hand("buffer_load_sbyte v1, s[4:7], 0 offen lds", "s_mov_b64 exec, 0xf",
                  "buffer_load_ubyte v1, s[4:7], 0 offen lds")
    signed = low.astype("u1").view("i1").astype("i4").view("u4")
    assert np.array_equal(got[:64], np.where(np.arange(64) < 4, low, signed))
    got = by_hand("s_mov_b32 m0, 256", "global_load_lds_sshort v1, s[4:5]")
    assert np.array_equal(got[64:], DATA[:64].astype("u2").view("i2").astype("i4").view("u4"))


def test_only_the_active_lanes_must_fit() -> None:
    """Lanes 0 to 7 and 9 write up to the last byte of 512; the lanes above would be beyond."""
    got = by_hand("v_mov_b32 v2, 0", "s_movk_i32 m0, 256", "global_load_lds_dword v1, s[4:5]", "s_movk_i32 m0, 472",
                  "s_movk_i32 exec_lo, 0x2ff", "s_mov_b32 exec_hi, 0", "global_load_lds_dword v1, s[4:5]")
    wanted = DATA[:64].copy()
    wanted[[*range(54, 62), 63]] = DATA[[*range(8), 9]]
    assert np.array_equal(got[64:], wanted)


def test_private_memory_to_lds() -> None:
    got = by_hand("v_add_u32 v2, 9, v0", "scratch_store_dword off, v2, off offset:4", "s_mov_b32 s12, 4",
                  "scratch_load_lds_dword off, s12", "v_mov_b32 v3, 4", "s_mov_b32 m0, 256",
                  "scratch_load_lds_ubyte v3, off", scratch=16)
    assert np.array_equal(got, np.tile(np.arange(64) + 9, 2))


@pytest.mark.parametrize("line, error, message", [
    ("s_movk_i32 m0, 260\n  global_load_lds_dword v1, s[4:5]", OutOfBounds,
     r"an LDS access of 4 bytes at byte 512, the workgroup has 512 bytes.*\n.*thread \(63, 0, 0\)"),
    ("s_mov_b32 m0, 0xffffff04\n  s_mov_b32 exec_lo, 0\n  s_brev_b32 exec_hi, 1\n  global_load_lds_dword v1, s[4:5]",
     OutOfBounds, r"at byte 4294967296, the workgroup has 512 .*\n.*thread \(63, 0, 0\)"),
    ("s_movk_i32 m0, 2\n  global_load_lds_dword v1, s[4:5]", DeviceError, "byte 2 of LDS, which is no multiple of 4"),
    ("global_load_lds_dword v1, s[4:5] offset:-4", OutOfBounds, "at byte -4, the workgroup has 512"),
    ("v_add_u32 v1, 0x1f04, v1\n  global_load_lds_dword v1, s[4:5]", OutOfBounds,
     r"a read of 4 bytes .* right after the end of 'a0'"),
    ("global_load_lds_dwordx4 v1, s[4:5]", UnknownInstruction, "gfx942 has no such instruction, gfx950 has"),
    ("buffer_load_dwordx2 off, s[4:7], 0 lds", UnknownInstruction, "the modifier 'lds'"),
    ("scratch_load_lds_dword off, off offset:16", OutOfBounds, "at byte 16 of the thread's private memory"),
])
def test_refusals(line: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        by_hand(line, scratch=16)
