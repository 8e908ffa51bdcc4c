"""Generic pointers: one flat instruction whose lanes reach global memory, LDS and their own private memory."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import DeviceError, OutOfBounds, UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly, element, kernel, program

# Lane t takes LDS, private or global memory as t % 3 says; the cell's number is t // 3 (private: 5).
CHOOSE = """
  %mine = alloca [8 x i64], align 8, addrspace(5)
  %own = getelementptr [8 x i64], ptr addrspace(5) %mine, i32 0, i32 5
  %third = udiv i32 %t, 3
  %which = urem i32 %t, 3
  %shared = getelementptr [128 x i64], ptr addrspace(3) @cells, i32 0, i32 %third
  %far = zext i32 %third to i64
  %there = getelementptr i64, ptr addrspace(1) %a, i64 %far
  %p0 = addrspacecast ptr addrspace(3) %shared to ptr
  %p1 = addrspacecast ptr addrspace(5) %own to ptr
  %p2 = addrspacecast ptr addrspace(1) %there to ptr
  %is0 = icmp eq i32 %which, 0
  %is1 = icmp eq i32 %which, 1
  %q = select i1 %is1, ptr %p1, ptr %p2
  %p = select i1 %is0, ptr %p0, ptr %q
"""
CELLS = "@cells = internal addrspace(3) global [128 x i64] poison, align 8\n"


def generic(type_: str, value: str, operation: str) -> str:
    """Stores `value` of each lane where its pointer says, works on it, and puts what is there then in %c."""
    body = CHOOSE + value + f"""
  store {type_} %v, ptr %p, align 4
  call void @llvm.amdgcn.s.barrier()
{operation}
  %y = load volatile {type_}, ptr %p, align 4
""" + element("%pc", type_, "%c") + f"  store {type_} %y, ptr addrspace(1) %pc"
    return CELLS + kernel("ptr %a, ptr %c", body, "declare void @llvm.amdgcn.s.barrier()")


@pytest.mark.parametrize("chip", CHIPS)
def test_loads_and_stores_where_each_lane_points(chip: str) -> None:
    a, c = np.zeros(64, "i8"), np.zeros(128, "i8")
    value = "  %v0 = zext i32 %t to i64\n  %v1 = mul i64 %v0, 4294967299\n  %v = add i64 %v1, 7"
    device = program(chip, generic("i64", value, ""))
    assert "flat_store_dwordx2" in str([i.text for i in device.isa.kernels["k"].instructions])
    device.launch(grid=1, block=128, args=[a, c])
    lane = np.arange(128)
    assert np.array_equal(c, lane * 4294967299 + 7)
    assert np.array_equal(a[:42], (np.arange(42) * 3 + 2) * 4294967299 + 7) and not a[42:].any()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("operation, new", [("add", lambda old: old + 5), ("xchg", lambda old: 0 * old + 5),
                                            ("umax", lambda old: np.maximum(old, 5))])
def test_integer_atomics_where_each_lane_points(chip: str, operation: str, new: object) -> None:
    a, c = np.zeros(64, "i4").repeat(2), np.zeros(128, "i4")
    text = f"  %old = atomicrmw {operation} ptr %p, i32 5 syncscope(\"agent\") monotonic, !noalias.addrspace !1"
    ir = generic("i32", "  %v = mul i32 %t, 1", text) + "\n!1 = !{i32 6, i32 7}\n"
    program(chip, ir).launch(grid=1, block=128, args=[a, c])
    assert np.array_equal(c, new(np.arange(128)))  # type: ignore[operator]


@pytest.mark.parametrize("chip", CHIPS)
def test_float_atomics_where_each_lane_points(chip: str) -> None:
    """LLVM asks which memory it is (is.shared, is.private) before some of them."""
    a, c = np.zeros(128, "f4"), np.zeros(128, "f4")
    text = ("  %old = atomicrmw fadd ptr %p, float 0.5 syncscope(\"agent\") monotonic, "
            "!amdgpu.no.fine.grained.memory !0, !amdgpu.ignore.denormal.mode !0")
    ir = generic("float", "  %v = uitofp i32 %t to float", text) + "\n!0 = !{}\n"
    device = program(chip, ir)
    try:
        device.load("k")
    except UnknownInstruction as missing:
        pytest.skip(f"LDS atomics are not there yet: {missing}")
    device.launch(grid=1, block=128, args=[a, c])
    assert np.array_equal(c, np.arange(128) + np.float32(0.5))


def flat(*lines: str, shared: int = 0, scratch: int = 0) -> tuple[Program, dict[str, object]]:
    """v[2:3] points to the first argument, v[4:5] to LDS, v[6:7] to private memory; v1 is 4 times the lane."""
    body = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_mov_b64 s[6:7], src_shared_base",
            "s_mov_b64 s[8:9], src_private_base", "v_lshlrev_b32 v1, 2, v0", "v_mov_b32 v2, s4", "v_mov_b32 v3, s5",
            "v_mov_b32 v4, s6", "v_mov_b32 v5, s7", "v_mov_b32 v6, s8", "v_mov_b32 v7, s9", "v_mov_b32 v8, 77", *lines]
    text = assembly("\n".join(f"  {x}" for x in (*body, "s_endpgm")), private_segment_fixed_size=scratch)
    return Program.from_assembly(text), {"grid": 1, "block": 64, "args": [np.zeros(64, "i4")], "shared": shared}


@pytest.mark.parametrize("line, message", [
    ("flat_load_dword v8, v[4:5] offset:253", "an LDS access of 4 bytes at byte 253, the workgroup has 256 bytes"),
    ("flat_store_dwordx2 v[6:7], v[8:9] offset:12", "an access of 8 bytes at byte 12 of the thread's private memory, "
                                                    "which has 16"),
    ("v_mov_b32 v4, -1\n  flat_load_dword v8, v[4:5] offset:4", "0x4000000100000003 is far from all memory"),
    ("v_mov_b32 v6, -4\n  flat_atomic_add v[6:7], v8", "at byte -4 of the thread's private memory"),
    ("v_add_u32 v4, v4, v1\n  flat_load_ubyte v8, v[4:5] offset:4\n  flat_load_ubyte v8, v[4:5] offset:5",
     None),
    ("v_mov_b32 v4, v0\n  flat_load_ubyte v8, v[4:5] offset:193", r"byte 256, .*\n.*thread \(63, 0, 0\)"),
])
def test_each_aperture_has_its_bounds(line: str, message: str | None) -> None:
    device, launch = flat(line, shared=256, scratch=16)
    if message is None:
        message = r"at byte 256, .*\n.*thread \(63, 0, 0\) .*offset:4'"
    with pytest.raises(OutOfBounds, match=message):
        device.launch(**launch)  # type: ignore[arg-type]


def test_apertures_are_read_in_pairs_alone() -> None:
    """On these chips a 32-bit operand does not give their upper half, and LLVM never writes one."""
    device, _ = flat("s_mov_b32 s10, src_shared_base")
    with pytest.raises(UnknownInstruction, match="names 2 registers where the instruction takes 1"):
        device.load("k")
    device, launch = flat("s_mov_b64 s[10:11], src_shared_limit", "s_mov_b64 s[12:13], src_private_limit",
                          "s_sub_u32 s12, s12, s8", "v_mov_b32 v9, s10", "v_mov_b32 v10, s12",
                          "global_store_dword v1, v9, s[4:5]", "v_cmp_eq_u32 vcc, 0, v0", "s_and_b64 exec, exec, vcc",
                          "global_store_dword v1, v10, s[4:5]")
    device.launch(**launch)  # type: ignore[arg-type]
    assert np.all(launch["args"][0] == -1)  # type: ignore[index]


def test_a_misaligned_atomic_in_lds() -> None:
    device, launch = flat("flat_atomic_add_x2 v[4:5], v[8:9] offset:4", shared=256)
    with pytest.raises(DeviceError, match="an atomic of 8 bytes at address 0x4000000000000004, which is no multiple"):
        device.launch(**launch)  # type: ignore[arg-type]
