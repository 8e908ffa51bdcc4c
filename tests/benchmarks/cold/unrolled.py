"""The larger kernel of the tracing benchmark: a loop that carries two vectors, with 40 unrolled steps in its body.

`bench_tracing.py` traces this text twice, as it is and with `flylab` replaced by `flydsl` in the imports.
"""

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import range_constexpr

Vec = fx.Vector


@flyc.kernel
def steps(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, BLOCK: fx.Constexpr[int], STEPS: fx.Constexpr[int]):
    bid = fx.block_idx.x
    tid = fx.thread_idx.x
    tA = fx.slice(fx.logical_divide(A, fx.make_layout(BLOCK * 4, 1)), (None, bid))
    tB = fx.slice(fx.logical_divide(B, fx.make_layout(BLOCK * 4, 1)), (None, bid))
    tC = fx.slice(fx.logical_divide(C, fx.make_layout(BLOCK * 4, 1)), (None, bid))
    tA = fx.logical_divide(tA, fx.make_layout(4, 1))
    tB = fx.logical_divide(tB, fx.make_layout(4, 1))
    tC = fx.logical_divide(tC, fx.make_layout(4, 1))
    copy = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    rA = fx.make_rmem_tensor(4, fx.Float32)
    rB = fx.make_rmem_tensor(4, fx.Float32)
    rC = fx.make_rmem_tensor(4, fx.Float32)
    fx.copy(copy, fx.slice(tA, (None, tid)), rA)
    fx.copy(copy, fx.slice(tB, (None, tid)), rB)
    a = Vec(fx.memref_load_vec(rA))
    b = Vec(fx.memref_load_vec(rB))
    for _, state in range(fx.Int64(0), fx.Int64(64), fx.Int64(1), init=[a, b]):
        x = state[0]
        y = state[1]
        for _ in range_constexpr(STEPS):
            x = x * a + y
            y = y - x * b
        results = yield [x, y]
    fx.memref_store_vec(results[0] + results[1], rC)
    fx.copy(copy, rC, fx.slice(tC, (None, tid)))


@flyc.jit
def launch_steps(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, N: fx.Constexpr[int],
                 stream: fx.Stream = fx.Stream(None)):
    steps(A, B, C, 256, 40).launch(grid=(N // 1024,), block=(256,), stream=stream)
