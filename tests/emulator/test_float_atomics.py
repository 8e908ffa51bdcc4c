"""Atomics of floats: what threads that run in parallel leave behind, and each operation bit by bit against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flylab.emulator import Program
from tests.emulator.toolchain import CHIPS, assembly, kernel, program

RAW = "llvm.amdgcn.make.buffer.rsrc.p7.p1"
# Said to be neither LDS nor private memory, which LLVM would take apart first.
AGENT = 'syncscope("agent") monotonic, !amdgpu.no.fine.grained.memory !0, !noalias.addrspace !1'
METADATA = "\n!0 = !{}\n!1 = !{i32 3, i32 4, i32 5, i32 6}\n"


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("space", ["global", "flat", "buffer"])
@pytest.mark.parametrize("type_, dtype", [("float", "f4"), ("double", "f8"), ("<2 x half>", "f2"),
                                          ("<2 x bfloat>", ml_dtypes.bfloat16)])
def test_parallel_additions_lose_nothing(chip: str, space: str, type_: str, dtype: object,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 20 x 64 threads adds 1 to one of 16 cells; the sums are exact in every format."""
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "4")
    pointer = {"global": "ptr addrspace(1) %pa", "flat": "ptr %pf", "buffer": "ptr addrspace(7) %pb"}[space]
    one = type_.replace("<2 x ", "").strip(">")
    value = f"<{one} 1.0, {one} 1.0>" if "<" in type_ else "1.0"
    body = f"""
  %cell = and i32 %t, 15
  %pa = getelementptr {type_}, ptr addrspace(1) %a, i32 %cell
  %cast = addrspacecast ptr addrspace(1) %pa to ptr
  %pf = call ptr asm "", "=v,0"(ptr %cast)
  %buffer = call ptr addrspace(7) @{RAW}(ptr addrspace(1) %a, i16 0, i64 4096, i32 159744)
  %pb = getelementptr {type_}, ptr addrspace(7) %buffer, i32 %cell
  %old = atomicrmw fadd {pointer}, {type_} {value} {AGENT}"""
    ir = kernel("ptr %a", body, f"declare ptr addrspace(7) @{RAW}(ptr addrspace(1), i16, i64, i32)") + METADATA
    a = np.zeros((16, 2 if "<" in type_ else 1), dtype)
    device = program(chip, ir)
    device.launch(grid=20, block=64, args=[a])
    assert np.all(a == 80)
    used = {i.mnemonic.split("_atomic_")[0] for i in device.isa.kernels["k"].instructions if "_atomic_" in i.text}
    # gfx942 has no bf16 addition through a buffer, so LLVM makes a loop of compare and swap of it.
    assert used == {space}


# 32-bit patterns: zeros, denormals, the largest, infinities, NaN, ordinary ones.
FLOATS = np.array([0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.1754944e-38, 1.0, -1.5, 3.4028235e38, -3.4028235e38,
                   np.inf, -np.inf, np.nan, 0.1, 1e-20, 16777216.0], "f4")


def combinations(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(values, len(values)), np.tile(values, len(values))


def run(mnemonic: str, old: np.ndarray, data: np.ndarray, chip: str = "gfx942") -> tuple[np.ndarray, np.ndarray]:
    """What the operation leaves of `old`, and what it returns; each element is its own cell."""
    size = old.dtype.itemsize
    wide = size == 8
    registers, result = ("v[4:5]", "v[6:7]") if wide else ("v4", "v6")
    load = "dwordx2" if wide else "dword"
    body = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_load_dwordx2 s[8:9], s[0:1], 0x10", "s_waitcnt lgkmcnt(0)",
            "s_lshl_b32 s3, s2, 6", "v_add_u32 v1, s3, v0", f"v_lshlrev_b32 v1, {3 if wide else 2}, v1",
            f"global_load_{load} {registers}, v1, s[6:7]", "s_waitcnt vmcnt(0)",
            f"global_atomic_{mnemonic} {result}, v1, {registers}, s[4:5] sc0", "s_waitcnt vmcnt(0)",
            f"global_store_{load} v1, {result}, s[8:9]", "s_endpgm"]
    device = Program.from_assembly(assembly("\n".join(f"  {x}" for x in body), chip, arguments=3))
    count = -(-old.size // 64) * 64
    cells, given, before = (np.zeros(count, old.dtype) for _ in range(3))
    cells[:old.size], given[:old.size] = old, data
    device.launch(grid=count // 64, block=64, args=[cells, given, before])
    assert before[:old.size].tobytes() == old.tobytes()
    return cells[:old.size], before[:old.size]


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    """The same bits, where any NaN is as good as another."""
    nan = np.isnan(wanted.astype("f8"))
    bits = f"u{wanted.dtype.itemsize}"
    return bool(np.all(np.isnan(found.astype("f8")) == nan) and
                np.array_equal(found.view(bits)[~nan], wanted.view(bits)[~nan]))


@pytest.mark.parametrize("chip", CHIPS)
def test_add_f32_and_f64_round_once_and_keep_denormals(chip: str) -> None:
    """Both chips keep them: LLVM's feature memory-atomic-fadd-f32-denormal-support."""
    old, data = combinations(FLOATS)
    with np.errstate(all="ignore"):
        assert same(run("add_f32", old, data, chip)[0], old + data)
        wide = np.concatenate([FLOATS.astype("f8"), np.array([5e-324, -2.2e-308, 1.7e308])])
        old, data = combinations(wide)
        assert same(run("add_f64", old, data, chip)[0], old + data)


@pytest.mark.parametrize("name", ["min_f64", "max_f64"])
def test_min_and_max_as_the_pseudo_code_says(name: str) -> None:
    """MEM = src < tmp ? src : tmp, and > for max: neither takes a NaN, nor one zero for the other."""
    old, data = combinations(FLOATS.astype("f8"))
    with np.errstate(invalid="ignore"):
        wanted = np.where(data < old if name == "min_f64" else data > old, data, old)
    assert same(run(name, old, data)[0], wanted)


@pytest.mark.parametrize("name, dtype", [("pk_add_f16", np.dtype("f2")), ("pk_add_bf16", ml_dtypes.bfloat16)])
def test_packed_additions(name: str, dtype: object) -> None:
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 16, (2, 4096), "u2")
    old, data = bits.view(dtype)
    with np.errstate(all="ignore"):
        wanted = (old.astype("f4") + data.astype("f4")).astype(dtype)
    found = run(name, np.ascontiguousarray(bits[0]).view("u4"), np.ascontiguousarray(bits[1]).view("u4"))[0]
    assert same(found.view(dtype), wanted)


def test_gfx950_adds_bfloats_through_a_buffer() -> None:
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s6, 128
  s_mov_b32 s7, 0x27000
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 0x3f804000
  buffer_atomic_pk_add_bf16 v2, v1, s[4:7], 0 offen
  s_endpgm"""
    a = np.ones(128, ml_dtypes.bfloat16)
    Program.from_assembly(assembly(body, "gfx950")).launch(grid=1, block=64, args=[a])
    assert np.array_equal(a[:64].astype("f4").reshape(-1, 2), np.tile([3.0, 2.0], (32, 1))) and np.all(a[64:] == 1)
