"""An f16 GEMM of 1024**3 through LDS on the software device, beside numpy's float32 matmul in the same run. By hand.

    .venv/bin/python tests/benchmarks/bench_emulator_gemm.py

For each chip prints the median of 5 warm runs on two threads, GFLOP/s, and the ratio to numpy's rate (the goal: at
least 0.3); the result is checked against float64. Then the rate of some matrix instructions alone, on one thread.

The kernel is LLVM IR: C[m, n] = sum of A[m, k] B[n, k], a tile of 128 x 128 by 4 waves of 64 x 64 each, 32 elements of
K at a time from memory to LDS (rows padded by 16 bytes) and from there 16 bytes a lane to the matrix instruction.
tests/emulator/test_gemm.py runs it at a smaller size.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.timing import RUNS, median_seconds

SIZE = 1024
TILE, STEP, ROW = 128, 32, 40
"""Rows and columns of a workgroup's tile, elements of K of a round, halves from a row to the next in LDS."""
GOAL = 0.3
THREADS = 2
ALONE = {"gfx942": ("v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x4_f32",
                    "v_mfma_f32_32x32x16_fp8_fp8", "v_mfma_i32_32x32x16_i8", "v_mfma_f64_16x16x4_f64"),
         "gfx950": ("v_mfma_f32_32x32x16_f16", "v_mfma_i32_16x16x64_i8", "v_mfma_f32_16x16x128_f8f6f4",
                    "v_mfma_scale_f32_32x32x64_f8f6f4", "v_smfmac_f32_16x16x64_f16")}


def matrix_call(chip: str) -> tuple[str, int]:
    """The intrinsic of the chip's 32 x 32 instruction, and the halves of A and B that a lane gives it."""
    return ("llvm.amdgcn.mfma.f32.32x32x8f16", 4) if chip == "gfx942" else ("llvm.amdgcn.mfma.f32.32x32x16.f16", 8)


def kernel_ir(chip: str, size: int = SIZE) -> str:
    """The kernel for matrices of size**2: arguments A, B (f16, rows of K) and C (f32), 256 threads for each tile."""
    name, halves = matrix_call(chip)
    sums = [f"%s{i}{j}" for i in range(2) for j in range(2)]
    phis = "\n".join(f"  {s} = phi <16 x float> [ zeroinitializer, %entry ], [ {s}n, %round ]" for s in sums)
    return f"""
@a = internal addrspace(3) global [{TILE * ROW} x half] poison, align 16
@b = internal addrspace(3) global [{TILE * ROW} x half] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare void @llvm.amdgcn.s.barrier()
declare <16 x float> @{name}(<{halves} x half>, <{halves} x half>, <16 x float>, i32, i32, i32)
define amdgpu_kernel void @gemm(ptr addrspace(1) %A, ptr addrspace(1) %B, ptr addrspace(1) %C) #0 {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %gx = call i32 @llvm.amdgcn.workgroup.id.x()
  %gy = call i32 @llvm.amdgcn.workgroup.id.y()
  %lane = and i32 %t, 63
  %wave = lshr i32 %t, 6
  %half = lshr i32 %lane, 5
  %column = and i32 %lane, 31
  %wm = and i32 %wave, 1
  %wn = lshr i32 %wave, 1
  %row = lshr i32 %t, 2
  %piece = and i32 %t, 3
  %at = mul i32 %piece, 8
{"".join(_staging("a", "%gy", size))}{"".join(_staging("b", "%gx", size))}{"".join(_reading())}  br label %round
round:
  %k = phi i32 [ 0, %entry ], [ %kn, %round ]
{phis}
{"".join(_round(name, halves))}  %kn = add i32 %k, {STEP}
  %more = icmp ult i32 %kn, {size}
  br i1 %more, label %round, label %done
done:
{"".join(_result(size))}  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="256,256" "amdgpu-waves-per-eu"="1,2" }}
"""


def _staging(name: str, group: str, size: int) -> Iterator[str]:
    """Where a thread reads 16 bytes of each of two rows of A or B, and where they go in LDS."""
    for n in range(2):
        yield f"""  %{name}l{n} = add i32 %row, {64 * n}
  %{name}first{n} = mul i32 {group}, {TILE}
  %{name}r{n} = add i32 %{name}first{n}, %{name}l{n}
  %{name}o{n} = mul i32 %{name}r{n}, {size}
  %{name}g{n} = add i32 %{name}o{n}, %at
  %{name}m{n} = mul i32 %{name}l{n}, {ROW}
  %{name}w{n} = add i32 %{name}m{n}, %at
  %{name}to{n} = getelementptr half, ptr addrspace(3) @{name}, i32 %{name}w{n}
"""


def _reading() -> Iterator[str]:
    """Where a lane reads 16 bytes of the rows of its wave's two tiles of A and of B."""
    for name, wave in (("a", "%wm"), ("b", "%wn")):
        for n in range(2):
            yield f"""  %{name}base{n} = mul i32 {wave}, 64
  %{name}line{n} = add i32 %{name}base{n}, {32 * n}
  %{name}own{n} = add i32 %{name}line{n}, %column
  %{name}start{n} = mul i32 %{name}own{n}, {ROW}
  %{name}part{n} = mul i32 %half, 8
  %{name}place{n} = add i32 %{name}start{n}, %{name}part{n}
  %{name}from{n} = getelementptr half, ptr addrspace(3) @{name}, i32 %{name}place{n}
"""


def _round(name: str, halves: int) -> Iterator[str]:
    """One round: memory to LDS, LDS to registers, products. A lane's 8 halves of K serve one or two instructions."""
    for side in "ab":
        for n in range(2):
            yield f"""  %{side}i{n} = add i32 %{side}g{n}, %k
  %{side}p{n} = getelementptr half, ptr addrspace(1) %{side.upper()}, i32 %{side}i{n}
  %{side}v{n} = load <8 x half>, ptr addrspace(1) %{side}p{n}, align 16
"""
    yield "  fence syncscope(\"workgroup\") release\n  call void @llvm.amdgcn.s.barrier()\n"
    for side in "ab":
        for n in range(2):
            yield f"  store <8 x half> %{side}v{n}, ptr addrspace(3) %{side}to{n}, align 16\n"
    yield ("  fence syncscope(\"workgroup\") release\n  call void @llvm.amdgcn.s.barrier()\n"
           "  fence syncscope(\"workgroup\") acquire\n")
    last = {(i, j): f"%s{i}{j}" for i in range(2) for j in range(2)}
    steps = [(k, first) for k in range(0, STEP, 16) for first in range(0, 8, halves)]
    for k, first in steps:
        for side in "ab":
            for n in range(2):
                if not first:
                    yield f"""  %{side}q{n}_{k} = getelementptr half, ptr addrspace(3) %{side}from{n}, i32 {k}
  %{side}x{n}_{k} = load <8 x half>, ptr addrspace(3) %{side}q{n}_{k}, align 16
"""
                order = ", ".join(f"i32 {first + e}" for e in range(halves))
                yield (f"  %{side}y{n}_{k}_{first} = shufflevector <8 x half> %{side}x{n}_{k}, <8 x half> poison, "
                       f"<{halves} x i32> <{order}>\n")
        for (i, j), before in last.items():
            after = f"%s{i}{j}n" if (k, first) == steps[-1] else f"%s{i}{j}_{k}_{first}"
            yield (f"  {after} = call <16 x float> @{name}(<{halves} x half> %ay{i}_{k}_{first}, "
                   f"<{halves} x half> %by{j}_{k}_{first}, <16 x float> {before}, i32 0, i32 0, i32 0)\n")
            last[i, j] = after


def _result(size: int) -> Iterator[str]:
    """Each lane stores its column's elements of the four tiles of its wave."""
    for i in range(2):
        for j in range(2):
            yield f"""  %gm{i}{j} = mul i32 %gy, {TILE}
  %wr{i}{j} = mul i32 %wm, 64
  %hr{i}{j} = mul i32 %half, 4
  %mr{i}{j} = add i32 %gm{i}{j}, %wr{i}{j}
  %nr{i}{j} = add i32 %mr{i}{j}, %hr{i}{j}
  %m{i}{j} = add i32 %nr{i}{j}, {32 * i}
  %gn{i}{j} = mul i32 %gx, {TILE}
  %wc{i}{j} = mul i32 %wn, 64
  %mc{i}{j} = add i32 %gn{i}{j}, %wc{i}{j}
  %nc{i}{j} = add i32 %mc{i}{j}, %column
  %n{i}{j} = add i32 %nc{i}{j}, {32 * j}
  %mo{i}{j} = mul i32 %m{i}{j}, {size}
  %o{i}{j} = add i32 %mo{i}{j}, %n{i}{j}
"""
            for r in range(16):
                yield f"""  %e{i}{j}_{r} = extractelement <16 x float> %s{i}{j}n, i32 {r}
  %u{i}{j}_{r} = add i32 %o{i}{j}, {size * (8 * (r // 4) + r % 4)}
  %z{i}{j}_{r} = getelementptr float, ptr addrspace(1) %C, i32 %u{i}{j}_{r}
  store float %e{i}{j}_{r}, ptr addrspace(1) %z{i}{j}_{r}, align 4
"""


def alone(chip: str, name: str) -> float:
    """GFLOP/s of one matrix instruction in a loop of one wave, on the time of one processor."""
    import numpy as np

    from flylab.emulator import Program
    from flylab.mfma import mfma
    from tests.emulator.toolchain import assembly
    from tests.emulator.waves import names

    row = mfma(name)
    count = int(4e9 / (2 * row.m * row.n * row.k * row.blocks))
    operands = [names("v", 64, row.result_registers), names("v", 0, row.a.registers), names("v", 16, row.b.registers)]
    operands += ["v32"] if row.sparse else [operands[0]] + ["v32", "v33"] * row.scaled
    body = f"""  s_mov_b32 s4, {count}
.Lnext:
  {name} {", ".join(operands)}
  s_sub_u32 s4, s4, 1
  s_cmp_lg_u32 s4, 0
  s_cbranch_scc1 .Lnext
  s_endpgm"""
    device, nothing = Program.from_assembly(assembly(body, chip, vgprs=128)), np.zeros(1, "u4")
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        device.launch(grid=1, block=64, args=[nothing])
        best = min(best, time.process_time() - start)
    return 2.0 * row.m * row.n * row.k * row.blocks * count / best / 1e9


def main() -> None:
    """Measures and prints."""
    import numpy as np

    from flylab.emulator import Program
    from tests.emulator.toolchain import compile_for

    random = np.random.default_rng(0)
    a, b = (random.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in range(2))
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    bound = 2 * SIZE * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64).T)
    x, y = a.astype(np.float32), np.ascontiguousarray(b.T.astype(np.float32))
    out = np.empty((SIZE, SIZE), np.float32)
    operations = 2.0 * SIZE**3 / 1e9
    for chip in ALONE:
        device = Program.from_assembly(compile_for(chip, kernel_ir(chip)))
        c = np.zeros((SIZE, SIZE), np.float32)

        def launch(device: Program = device, c: np.ndarray = c) -> object:
            return device.launch(grid=(SIZE // TILE, SIZE // TILE), block=256, args=[a, b, c])

        ours = operations / median_seconds(launch)
        assert np.all(np.abs(c - wanted) <= bound)
        numpys = operations / median_seconds(lambda: np.matmul(x, y, out=out))
        times = [f"{operations / rate * 1e3:.1f} ms, {rate:.0f} GFLOP/s" for rate in (ours, numpys)]
        print(f"{chip}: {times[0]}; numpy {times[1]}; ratio {ours / numpys:.2f} (goal {GOAL})")
    for chip, instructions in ALONE.items():
        for name in instructions:
            print(f"{chip} {name}: {alone(chip, name):.0f} GFLOP/s on one thread")


if __name__ == "__main__":
    for variable in [n for n in os.environ if n.startswith("OPENBLAS_")]:
        del os.environ[variable]
    os.environ["FLYLAB_EMULATOR_THREADS"] = str(THREADS)
    main()
