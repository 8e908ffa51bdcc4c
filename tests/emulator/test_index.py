"""Registers by number: VGPR indexing and relative scalar moves, against brute force and as LLVM uses them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from tests.emulator.oracles.device import Device
from tests.emulator.test_dpp import EXECS, state, wide
from tests.emulator.toolchain import CHIPS, Host, aligned, assembly, compile_for, element, kernel

M0, MODE = 124, 129
VECTORS = 32  # of a Device, behind which its accumulators lie
SRC0, SRC1, SRC2, DST = 1, 2, 4, 8


def indexed(*texts: str, chip: str = "gfx942") -> Device:
    """Instructions that stand where indexing is on, from number 1 up."""
    return Device(chip, ["s_set_gpr_idx_on s3, gpr_idx(SRC0)", *texts, "s_set_gpr_idx_off"])


@pytest.mark.parametrize("chip", CHIPS)
def test_each_operand_counts_from_m0_where_its_bit_is_set(chip: str) -> None:
    device = indexed("v_add3_u32 v2, v3, v4, v5", "v_fma_f32 v2, v3, v4, v5", chip=chip)
    for seed in range(48):
        bits, index, exec_ = seed % 16, seed % 23, EXECS[seed % 3]
        v, s = state(seed, exec_)
        s[M0] = s[M0] & 0xFFFF0F00 | bits << 12 | index
        d, x, y, z = (first + (index if bits & bit else 0)
                      for first, bit in ((2, DST), (3, SRC0), (4, SRC1), (5, SRC2)))
        active = np.array([exec_ >> lane & 1 for lane in range(64)], bool)
        wanted = v.copy()
        wanted[d] = np.where(active, v[x] + v[y] + v[z], v[d])
        assert np.array_equal(device.run(1, v, s)[0], wanted), (bits, index)
        v = (v % 100).astype(np.float32).view(np.uint32)
        numbers = v.view(np.float32)
        wanted = v.copy()
        wanted[d] = np.where(active, (numbers[x] * numbers[y] + numbers[z]).view(np.uint32), v[d])
        assert np.array_equal(device.run(2, v, s)[0], wanted), (bits, index)


def test_wide_packed_and_mask_operands() -> None:
    device = indexed("v_lshlrev_b64 v[2:3], v4, v[6:7]", "v_pk_add_u16 v2, v4, v5", "v_cmp_lt_u32_e32 vcc, v4, v5",
                     "v_fmac_f32_e32 v2, v4, v5", "v_max_f32_e32 v2, v4, v5", "v_pk_add_f32 v[2:3], v[4:5], v[6:7]")
    for index in (0, 3, 11):
        v, s = state(index)
        s[M0] = index | (DST | SRC1) << 12
        found = device.run(1, v, s)[0]
        value = v[6 + index].astype(np.uint64) | v[7 + index].astype(np.uint64) << np.uint64(32)
        shifted = value << (v[4] & np.uint32(63)).astype(np.uint64)
        assert np.array_equal(found[2 + index], shifted.astype(np.uint32))
        assert np.array_equal(found[3 + index], (shifted >> np.uint64(32)).astype(np.uint32))
        low, high = ((v[4] >> at & 0xFFFF) + (v[5 + index] >> at & 0xFFFF) & 0xFFFF for at in (0, 16))
        assert np.array_equal(device.run(2, v, s)[0][2 + index], low | high << np.uint32(16))
        less = sum(1 << lane for lane in range(64) if v[4, lane] < v[5 + index, lane])
        assert wide(device.run(3, v, s)[1], 106) == less
        v = (v % 100).astype(np.float32).view(np.uint32)
        numbers = v.view(np.float32)
        found = device.run(4, v, s)[0][2 + index].view(np.float32)
        assert np.array_equal(found, numbers[4] * numbers[5 + index] + numbers[2 + index])
        found = device.run(5, v, s)[0][2 + index].view(np.float32)
        assert np.array_equal(found, np.maximum(numbers[4], numbers[5 + index]))
        found = device.run(6, v, s)[0].view(np.float32)
        assert np.array_equal(found[2 + index:4 + index], numbers[4:6] + numbers[6 + index:8 + index])


def test_beyond_the_registers_a_source_is_v0_and_a_result_is_dropped() -> None:
    device = indexed("v_add_u32_e32 v28, v29, v5", "v_lshlrev_b64 v[28:29], v5, v[28:29]",
                     "v_cmp_ne_u32_e32 vcc, v28, v5", "v_add_co_u32_e32 v28, vcc, v29, v5")
    for index, inside in ((2, True), (3, False), (4, False), (255, False)):
        v, s = state(index)
        s[M0] = index | SRC0 << 12
        first = v[29 + index] if inside else v[0]
        assert np.array_equal(device.run(1, v, s)[0][28], first + v[5])
        s[M0] = index | DST << 12
        wanted = v.copy()
        if 28 + index < VECTORS:
            wanted[28 + index] = v[29] + v[5]
        assert np.array_equal(device.run(1, v, s)[0], wanted)
        s[M0] = index | (DST | SRC1) << 12
        assert np.array_equal(device.run(2, v, s)[0], v) != inside
        s[M0] = index | DST << 12
        vectors, scalars = device.run(4, v, s)
        if 28 + index > VECTORS - 1:
            assert np.array_equal(vectors, v) and np.array_equal(scalars, s)


@pytest.mark.parametrize("chip", CHIPS)
def test_the_state_that_the_instructions_set(chip: str) -> None:
    texts = ["s_set_gpr_idx_on s3, gpr_idx(SRC0,DST)", "s_set_gpr_idx_idx s4", "s_set_gpr_idx_mode gpr_idx(SRC1, SRC2)",
             "s_set_gpr_idx_mode gpr_idx()", "s_set_gpr_idx_off", "s_set_gpr_idx_on 9, 0xf", "s_set_gpr_idx_off"]
    device = Device(chip, texts)
    v, s = state(1)
    kept, mode = int(s[M0]), int(s[MODE]) & ~(1 << 27)
    s[MODE] = mode
    wanted = [(kept & ~0xF0FF | 9 << 12 | int(s[3]) & 255, 1), (kept & ~0xFF | int(s[4]) & 255, 0),
              (kept & ~0xF000 | 6 << 12, 0), (kept & ~0xF000, 0), (kept, 0), (kept & ~0xF0FF | 15 << 12 | 9, 1)]
    for n, (m0, on) in enumerate(wanted):
        found = device.run(n, v, s)[1]
        assert (int(found[M0]), int(found[MODE])) == (m0, mode | on << 27), texts[n]
    s[MODE] = mode | 1 << 27
    assert device.run(4, v, s)[1][MODE] == mode


def refusal(body: str) -> str:
    """The error for a listing."""
    with pytest.raises(UnknownInstruction) as caught:
        Program.from_assembly(assembly(body)).load("k")
    return str(caught.value)


@pytest.mark.parametrize("text, why", [
    ("v_readfirstlane_b32 s4, v1", "no such form"), ("v_swap_b32 v1, v2", "no such form"),
    ("s_setpc_b64 s[4:5]", "it leaves for other code with VGPR indexing on"),
    ("s_set_gpr_idx_mode gpr_idx(SRC3)", "is no list of SRC0"), ("s_set_gpr_idx_mode 16", "from 0 to 15"),
    ("s_set_gpr_idx_mode gpr_idx(SRC0,SRC0)", "is no list of SRC0"),
    ("s_set_gpr_idx_idx v1", "a vector register stands"),
    ("s_set_gpr_idx_on s4", "it has 1 operands, and takes 2"), ("v_accvgpr_write_b32 a1, v1", "is beyond the 0"),
])
def test_what_indexing_cannot_do(text: str, why: str) -> None:
    body = f"  s_set_gpr_idx_on s3, gpr_idx(SRC0)\n  {text}\n  s_set_gpr_idx_off\n  s_endpgm"
    assert why in refusal(body)


def test_an_accumulator_is_not_indexed() -> None:
    body = "  s_set_gpr_idx_on s3, gpr_idx(SRC0)\n  v_accvgpr_read_b32 v1, a1\n  s_set_gpr_idx_off\n  s_endpgm"
    with pytest.raises(UnknownInstruction, match="holds for v0, v1 ... only"):
        Program.from_assembly(assembly(body, vgprs=16, accum_offset=8)).load("k")


def test_indexing_that_is_on_by_one_way_only_is_refused() -> None:
    assert "reached with VGPR indexing on and with it off" in refusal("""
  s_cbranch_scc0 .Lx
  s_set_gpr_idx_on s3, gpr_idx(SRC0)
.Lx:
  v_mov_b32_e32 v1, v2
  s_set_gpr_idx_off
  s_endpgm""")
    Program.from_assembly(assembly("""
  s_set_gpr_idx_on s3, gpr_idx(SRC0)
.Lx:
  v_mov_b32_e32 v1, v2
  s_set_gpr_idx_idx s4
  s_cbranch_scc0 .Lx
  s_branch .Ly
.Lz:
  v_mov_b32_e32 v1, s1
  s_endpgm
.Ly:
  s_set_gpr_idx_off
  s_branch .Lz""")).load("k")


def test_relative_moves_of_scalars() -> None:
    device = Device("gfx950", ["s_movrels_b32 s2, s5", "s_movrels_b64 s[2:3], s[6:7]", "s_movreld_b32 s5, s2",
                               "s_movreld_b64 s[6:7], s[2:3]", "s_movreld_b32 s5, 0x12345", "s_movreld_b64 s[6:7], -2",
                               "s_movrels_b32 vcc_lo, s5"])
    v, _ = state(0)
    for index in (0, 1, 2, 17, 94, 95, 96, 97, 200, 0xFFFFFFFF, 0xFFFFFFFC, 0x40000000):
        _, s = state(index % 1000)
        s[M0] = index
        for n, (first, registers) in enumerate([(5, 1), (6, 2), (5, 1), (6, 2), (5, 1), (6, 2), (5, 1)]):
            wanted, place = s.copy(), first + (index if registers == 1 else index & ~1)
            inside = place + registers <= 102
            source = place if inside else 0
            if n < 2:
                wanted[2:2 + registers] = s[source:source + registers]
            elif n == 6:
                wanted[106] = s[source]
            elif inside:
                wanted[place:place + registers] = (s[2:2 + registers] if n < 4 else 0x12345 if n == 4 else
                                                   np.array([0xFFFFFFFE, 0xFFFFFFFF]))
            assert np.array_equal(device.run(n, v, s)[1], wanted), (n, index)
    assert "counts from one of the numbered" in refusal("  s_movrels_b32 s2, vcc_lo")
    assert "a constant stands" in refusal("  s_movrels_b32 s2, 5")


def dynamic(count: int, type_: str) -> str:
    """Reads and writes of elements of a vector by numbers that are the wave's, and each lane's own."""
    vector = f"<{count} x {type_}>"
    return f"""
  %v0 = load {vector}, ptr addrspace(1) %p
  %v = mul {vector} %v0, %v0
  %m = and {type_} %u, {count - 1}
  %n = and {type_} %z, {count - 1}
  %x = extractelement {vector} %v, {type_} %m
  %d = and {type_} %x, {count - 1}
  %y = extractelement {vector} %v, {type_} %d
  %w = insertelement {vector} %v, {type_} %y, {type_} %n
  %s = add {vector} %w, %v0
  %a = insertelement {vector} %s, {type_} %x, {type_} %d
  %b = extractelement {vector} %a, {type_} %n
  %c = insertelement {vector} %a, {type_} %b, {type_} %m
  store {vector} %c, ptr addrspace(1) %q
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("count, type_", [(16, "i32"), (32, "i32"), (16, "i64")])
def test_vectors_by_a_number_of_run_time(chip: str, count: int, type_: str) -> None:
    """LLVM reads registers by number where the wave agrees on it. The oracle is the same IR on this machine."""
    vector, body = f"<{count} x {type_}>", dynamic(count, type_)
    places = element("%p", vector, "%in") + element("%q", vector, "%out")
    text = compile_for(chip, kernel(f"ptr %in, ptr %out, {type_} %u, {type_} %z", places + body))
    assert "s_set_gpr_idx_on" in text
    plain = (places + body).replace(" addrspace(1)", "")
    host = Host(f"define void @f(ptr %in, ptr %out, i64 %i, {type_} %u, {type_} %z) {{\n{plain}  ret void\n}}")
    number = ctypes.c_int32 if type_ == "i32" else ctypes.c_int64
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, number, number)
    function = signature(host.address("f"))
    data = np.random.default_rng(count).integers(0, 1 << 31, (256, count)).astype("i4" if type_ == "i32" else "i8")
    source, program = aligned(data), Program.from_assembly(text)
    for u, z in ((0, count - 1), (5, 5), (count + 3, 2)):
        found, wanted = np.zeros_like(data), aligned(np.zeros_like(data))
        program.launch(grid=1, block=256, args=[data, found, data.dtype.type(u), data.dtype.type(z)])
        for lane in range(256):
            function(source.ctypes.data, wanted.ctypes.data, lane, u, z)
        assert np.array_equal(found, wanted.reshape(data.shape))


def test_scalar_vectors_by_a_number_of_run_time() -> None:
    body = """
  %v = load <16 x i32>, ptr addrspace(4) %p, !invariant.load !0
  %s = mul <16 x i32> %v, splat (i32 3)
  %m = and i32 %u, 15
  %x = extractelement <16 x i32> %s, i32 %m
  %d = and i32 %x, 15
  %w = insertelement <16 x i32> %s, i32 77, i32 %d
  %y = extractelement <16 x i32> %w, i32 %m
  %z = shl i32 %y, 2
  %e = xor i32 %z, %x
""" + element("%q", "i32", "%out") + "  store i32 %e, ptr addrspace(1) %q"
    text = compile_for("gfx942", kernel("ptr addrspace(4) %p, ptr %out, i32 %u", body, "!0 = !{}").replace(
        "ptr addrspace(1) addrspace(4)", "ptr addrspace(4)"))
    assert "s_movrel" in text or "s_set_gpr_idx_on" in text
    data, out = np.arange(16, dtype=np.int32) * 7 + 1, np.zeros(256, np.int32)
    program = Program.from_assembly(text)
    for u in range(16):
        program.launch(grid=1, block=256, args=[data, out, np.int32(u)])
        scaled = data * 3
        x = scaled[u]
        scaled[x & 15] = 77
        assert np.all(out == (scaled[u] << 2 ^ x))
