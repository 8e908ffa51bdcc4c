"""The vector add of the cold-compile benchmark: one element a thread, and four.

`bench_cold_compile.py` compiles this text twice, as it is and with `flylab` replaced by `flydsl` in the imports.
"""

import flylab.compiler as flyc
import flylab.expr as fx

Vec = fx.Vector


@flyc.kernel
def add_scalar(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, BLOCK: fx.Constexpr[int]):
    bid = fx.block_idx.x
    tid = fx.thread_idx.x
    tA = fx.slice(fx.logical_divide(A, fx.make_layout(BLOCK, 1)), (None, bid))
    tB = fx.slice(fx.logical_divide(B, fx.make_layout(BLOCK, 1)), (None, bid))
    tC = fx.slice(fx.logical_divide(C, fx.make_layout(BLOCK, 1)), (None, bid))
    tA = fx.logical_divide(tA, fx.make_layout(1, 1))
    tB = fx.logical_divide(tB, fx.make_layout(1, 1))
    tC = fx.logical_divide(tC, fx.make_layout(1, 1))
    copy = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    rA = fx.make_rmem_tensor(1, fx.Float32)
    rB = fx.make_rmem_tensor(1, fx.Float32)
    rC = fx.make_rmem_tensor(1, fx.Float32)
    fx.copy(copy, fx.slice(tA, (None, tid)), rA)
    fx.copy(copy, fx.slice(tB, (None, tid)), rB)
    fx.memref_store_vec(Vec(fx.memref_load_vec(rA)) + Vec(fx.memref_load_vec(rB)), rC)
    fx.copy(copy, rC, fx.slice(tC, (None, tid)))


@flyc.kernel
def add_wide(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, BLOCK: fx.Constexpr[int], VEC: fx.Constexpr[int]):
    bid = fx.block_idx.x
    tid = fx.thread_idx.x
    tile = BLOCK * VEC
    tA = fx.slice(fx.logical_divide(A, fx.make_layout(tile, 1)), (None, bid))
    tB = fx.slice(fx.logical_divide(B, fx.make_layout(tile, 1)), (None, bid))
    tC = fx.slice(fx.logical_divide(C, fx.make_layout(tile, 1)), (None, bid))
    tA = fx.logical_divide(tA, fx.make_layout(VEC, 1))
    tB = fx.logical_divide(tB, fx.make_layout(VEC, 1))
    tC = fx.logical_divide(tC, fx.make_layout(VEC, 1))
    copy = fx.make_copy_atom(fx.UniversalCopy(VEC * 32), fx.Float32)
    rA = fx.make_rmem_tensor(VEC, fx.Float32)
    rB = fx.make_rmem_tensor(VEC, fx.Float32)
    rC = fx.make_rmem_tensor(VEC, fx.Float32)
    fx.copy(copy, fx.slice(tA, (None, tid)), rA)
    fx.copy(copy, fx.slice(tB, (None, tid)), rB)
    fx.memref_store_vec(Vec(fx.memref_load_vec(rA)) + Vec(fx.memref_load_vec(rB)), rC)
    fx.copy(copy, rC, fx.slice(tC, (None, tid)))


@flyc.jit
def launch_scalar(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, N: fx.Constexpr[int],
                  stream: fx.Stream = fx.Stream(None)):
    add_scalar(A, B, C, 256).launch(grid=(N // 256,), block=(256,), stream=stream)


@flyc.jit
def launch_wide(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, N: fx.Constexpr[int],
                stream: fx.Stream = fx.Stream(None)):
    add_wide(A, B, C, 256, 4).launch(grid=(N // 1024,), block=(256,), stream=stream)
