"""Dot products against brute force, as instructions and as LLVM's intrinsics on both chips."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from tests.emulator.oracles.device import Device
from tests.emulator.test_dpp import EXECS, moved, state
from tests.emulator.toolchain import CHIPS, assembly, compile_for, element, kernel


def halves(row: np.ndarray, bfloat: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The low and high halves of a register, as floats."""
    if bfloat:
        return (row << np.uint32(16)).view(np.float32), (row & np.uint32(0xFFFF0000)).view(np.float32)
    pair = row.view(np.float16).reshape(-1, 2).astype(np.float32)
    return pair[:, 0], pair[:, 1]


def near_one(v: np.ndarray, bfloat: bool) -> np.ndarray:
    """Registers whose halves are floats within a few powers of two of 1."""
    exponent = (np.arange(64, dtype=np.uint32) % 7 + 12) << 10 if not bfloat else (
        np.arange(64, dtype=np.uint32) % 7 + 124) << 7
    kept = 0x83FF if not bfloat else 0x807F
    return v & (kept * 0x10001) | exponent * np.uint32(0x10001)


@pytest.mark.parametrize("bfloat", [False, True])
def test_dots_of_floats(bfloat: bool) -> None:
    kind = "bf16" if bfloat else "f16"
    device = Device("gfx950", [
        f"v_dot2_f32_{kind} v2, v3, v4, v5", f"v_dot2_f32_{kind} v2, v3, s4, v5 neg_lo:[1,0,1] neg_hi:[1,1,0]",
        f"v_dot2c_f32_{kind}_e32 v2, v3, v4", f"v_dot2c_f32_{kind}_dpp v2, v3, v4 row_ror:3",
        f"v_dot2_f32_{kind} v2, v3, v4, v5 clamp"])
    for seed in range(5):
        v, s = state(seed, EXECS[seed % 3])
        v[3:5] = near_one(v[3:5], bfloat)
        s[4:5] = near_one(v[6], bfloat)[:1]
        v[2], v[5] = (np.random.default_rng(seed + n).normal(size=64).astype(np.float32).view(np.uint32)
                      for n in (0, 1))
        active = np.array([EXECS[seed % 3] >> lane & 1 for lane in range(64)], bool)
        (a, b), (c, d) = halves(v[3], bfloat), halves(v[4], bfloat)
        e, f = (x[0] for x in halves(np.full(64, s[4]), bfloat))
        old, z = v[2].view(np.float32), v[5].view(np.float32)

        def dot(x: np.ndarray, y: np.ndarray, total: np.ndarray, first: bool) -> np.ndarray:
            return total + x + y if first else x + y + total

        added_first = not bfloat
        plain = dot(a * c, b * d, z, added_first)
        moved_v3, part = moved(v[3], "row_ror:3", 15, 15, False, EXECS[seed % 3])
        p, q = halves(moved_v3, bfloat)
        wanted = [(plain, active), (dot(-a * e, b * f, -z, added_first), active),
                  (dot(a * c, b * d, old, True), active),
                  (dot(p * c, q * d, old, True), part), (np.clip(plain, 0, 1), active)]
        for n, (result, lanes) in enumerate(wanted):
            found = device.run(n, v, s)[0][2].view(np.float32)
            assert np.array_equal(found[lanes], result[lanes]), n
            assert np.array_equal(found[~lanes].view(np.uint32), v[2][~lanes])


def test_packed_multiply_add_onto_the_result() -> None:
    device = Device("gfx942", ["v_pk_fmac_f16_e32 v2, v3, v4", "v_pk_fmac_f16_dpp v2, v3, v4 row_mirror"])
    v, s = state(8)
    v[2:5] = near_one(v[2:5], False)
    for n, first in enumerate((v[3], moved(v[3], "row_mirror", 15, 15, False, EXECS[0])[0])):
        x, y, z = (row.view(np.float16).astype(float) for row in (first, v[4], v[2]))
        assert np.array_equal(device.run(n, v, s)[0][2].view(np.float16), (x * y + z).astype(np.float16))


def fields(row: np.ndarray, bits: int, signed: bool) -> np.ndarray:
    """The parts of each lane's register, as int64, lane by lane."""
    parts = np.stack([row >> np.uint32(at) & np.uint32((1 << bits) - 1) for at in range(0, 32, bits)]).astype(np.int64)
    return np.where(signed & (parts >> (bits - 1) == 1), parts - (1 << bits), parts)


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("sign", ["i", "u"])
def test_dots_of_integers(bits: int, sign: str) -> None:
    name = f"v_dot{32 // bits}_{sign}32_{sign}{bits}"
    texts = [f"{name} v2, v3, v4, v5", f"{name} v2, v3, v4, v5 clamp"]
    texts += [f"v_dot{32 // bits}c_i32_i{bits}_dpp v2, v3, v4 row_shr:2 bound_ctrl:1"] * (sign == "i")
    device = Device("gfx942", texts)
    for seed in range(4):
        v, s = state(seed)
        v[3:6, :20] |= 0x7FFF7F77
        exact = (fields(v[3], bits, sign == "i") * fields(v[4], bits, sign == "i")).sum(axis=0)
        z = v[5].view(np.int32).astype(np.int64) if sign == "i" else v[5].astype(np.int64)
        low, high = (-(1 << 31), (1 << 31) - 1) if sign == "i" else (0, (1 << 32) - 1)
        assert np.array_equal(device.run(0, v, s)[0][2], (exact + z).astype(np.uint32))
        assert np.array_equal(device.run(1, v, s)[0][2], np.clip(exact + z, low, high).astype(np.uint32))
        if sign == "i":
            first = moved(v[3], "row_shr:2", 15, 15, True, EXECS[0])[0]
            total = (fields(first, bits, True) * fields(v[4], bits, True)).sum(axis=0) + v[2]
            assert np.array_equal(device.run(2, v, s)[0][2], total.astype(np.uint32))


INTRINSICS = {
    "sdot4": ("i32", 8, True), "udot4": ("i32", 8, False), "sdot8": ("i32", 4, True), "udot8": ("i32", 4, False),
    "sdot2": ("<2 x i16>", 16, True), "udot2": ("<2 x i16>", 16, False),
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", INTRINSICS)
@pytest.mark.parametrize("clamp", ["false", "true"])
def test_intrinsics(name: str, chip: str, clamp: str) -> None:
    type_, bits, signed = INTRINSICS[name]
    body = "".join(element(f"%p{n}", "i32", f"%a{n}") + f"  %x{n} = load {type_ if n < 2 else 'i32'}, "
                   f"ptr addrspace(1) %p{n}\n" for n in range(3))
    body += (f"  %r = call i32 @llvm.amdgcn.{name}({type_} %x0, {type_} %x1, i32 %x2, i1 {clamp})\n"
             + element("%q", "i32", "%out") + "  store i32 %r, ptr addrspace(1) %q")
    text = compile_for(chip, kernel("ptr %a0, ptr %a1, ptr %a2, ptr %out", body,
                                    f"declare i32 @llvm.amdgcn.{name}({type_}, {type_}, i32, i1)"))
    assert "v_dot" in text
    a, b, c = np.random.default_rng(3).integers(0, 1 << 32, (3, 512), dtype=np.uint64).astype(np.uint32)
    out = np.zeros(512, np.uint32)
    Program.from_assembly(text).launch(grid=2, block=256, args=[a, b, c, out])
    total = (fields(a, bits, signed) * fields(b, bits, signed)).sum(axis=0) + (
        c.view(np.int32) if signed else c).astype(np.int64)
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    assert np.array_equal(out, (np.clip(total, low, high) if clamp == "true" else total).astype(np.uint32))


@pytest.mark.parametrize("chip, type_, name", [
    ("gfx942", "half", "fdot2"), ("gfx950", "half", "fdot2"), ("gfx950", "bfloat", "fdot2.f32.bf16")])
def test_float_intrinsics(chip: str, type_: str, name: str) -> None:
    pair = f"<2 x {type_}>"
    body = "".join(element(f"%p{n}", t, f"%a{n}") + f"  %x{n} = load {t}, ptr addrspace(1) %p{n}\n"
                   for n, t in enumerate((pair, pair, "float")))
    body += (f"  %r = call float @llvm.amdgcn.{name}({pair} %x0, {pair} %x1, float %x2, i1 false)\n"
             + element("%q", "float", "%out") + "  store float %r, ptr addrspace(1) %q")
    text = compile_for(chip, kernel("ptr %a0, ptr %a1, ptr %a2, ptr %out", body,
                                    f"declare float @llvm.amdgcn.{name}({pair}, {pair}, float, i1)"))
    assert "v_dot2" in text
    v, _ = state(1)
    a, b = np.resize(near_one(v[3:5], type_ == "bfloat"), (2, 256))
    c, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    Program.from_assembly(text).launch(grid=1, block=256, args=[a, b, c, out])
    (p, q), (r, t) = halves(a, type_ == "bfloat"), halves(b, type_ == "bfloat")
    assert np.allclose(out, p.astype(float) * r + q.astype(float) * t + c, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("text, why", [
    ("v_dot2_f32_bf16 v1, v2, v3, v4", "gfx942 has no such instruction"),
    ("v_dot2c_f32_f16_e64 v1, -v2, v3", "no source modifier"),
    ("v_dot2_f32_f16 v1, v2, v3, v4 op_sel:[1,0,0]", "it takes no op_sel"),
    ("v_dot2_i32_i16 v1, v2, v3, v4 neg_lo:[1,0,0]", "it takes no neg_lo"),
    ("v_dot2c_f32_f16 v1, v2, v3 neg_lo:[1,0]", "only those of three can be negated"),
    ("v_dot4_i32_i8 v1, v2, v3, v4 mul:2", "no float that could be scaled"),
])
def test_what_dots_cannot_do(text: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match="ISA line 6") as caught:
        Program.from_assembly(assembly(f"  {text}\n  s_endpgm")).load("k")
    assert why in str(caught.value)
