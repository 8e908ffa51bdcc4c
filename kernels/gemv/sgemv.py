"""y = A @ x for a row-major Float32 matrix: how many threads should share a row?

Each element of A is used once, so the time is that of reading A; all that can be lost is loads that are too few, too
narrow or scattered. The lanes of a row take neighbouring pieces of it, so that what they load together is one run of
memory; each adds up its own products, and at the end the lanes add up theirs.

 * `wave`: a wave for each row, an element a lane at a time.
 * `wave_vec4`: the same, 128 bits a lane at a time: a quarter of the loads.
 * `lanes`: for short rows, a wave for several of them, with just as many lanes as a row has elements (up to 64).
 * `block`: for few long rows, a block for each; its waves meet in four words of LDS.

A row's end need not be a whole round of its lanes; lanes past it load nothing.
"""

from dataclasses import dataclass

from flylab.kernels.common.tiles import named, whole_tiles
from flylab.kernels.reduce.shares import BLOCK, WAVE, block_sum, wave_sum

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError
from flylab.expr import const_expr, gpu


@dataclass(frozen=True)
class Share:
    """What a variant does: the threads that share a row (0: as many lanes as it has elements), elements a load."""

    threads: int
    vec: int = 1


VARIANTS = {"wave": Share(WAVE), "wave_vec4": Share(WAVE, 4), "lanes": Share(0), "block": Share(BLOCK, 4)}


def lanes_for(elements):
    """The lanes for a row of so many elements: the next power of two, 64 at most.

    >>> [lanes_for(n) for n in (1, 3, 16, 1000)]
    [1, 4, 16, 64]
    """
    return min(WAVE, 1 << (elements - 1).bit_length())


def products(row, x, at, vec):
    """The products of `vec` neighbouring elements of a row and of x, added up; `at` counts such pieces."""
    copy = fx.make_copy_atom(fx.UniversalCopy(32 * vec), fx.Float32)
    a, b = fx.make_rmem_tensor(vec, fx.Float32), fx.make_rmem_tensor(vec, fx.Float32)
    fx.copy(copy, fx.slice(fx.logical_divide(row, fx.make_layout(vec, 1)), (None, at)), a)
    fx.copy(copy, fx.slice(fx.logical_divide(x, fx.make_layout(vec, 1)), (None, at)), b)
    return a.load() * b.load()


@flyc.kernel
def sgemv_kernel(A: fx.Tensor, x: fx.Tensor, y: fx.Tensor, threads: fx.Constexpr[int], vec: fx.Constexpr[int]):
    """BLOCK / threads rows a block."""
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    M, N = A.shape
    lane, row = tid % threads, bid * (BLOCK // threads) + tid // threads
    inside = fx.min(row, M - 1)                     # past the last row, that one once more, and nothing is stored
    line = fx.slice(A, (inside, None))
    pieces = N // vec

    with fx.arith.fastmath("contract"):
        sums = fx.Vector.filled(vec, 0.0, fx.Float32)
        for i in range(pieces // threads):
            sums = sums + products(line, x, i * threads + lane, vec)
        if const_expr(pieces % threads):
            at = pieces // threads * threads + lane
            if at < pieces:
                sums = sums + products(line, x, at, vec)
    total = sums.reduce("add")

    if const_expr(threads > WAVE):
        slots = fx.SharedAllocator().allocate(fx.Array[fx.Float32, threads // WAVE]).peek().view()
        total = block_sum(total, tid, slots)
    else:
        total = wave_sum(total, threads)
    if (lane == 0) & (row < M):
        y[row] = total


@flyc.jit
def sgemv(A: fx.Tensor, x: fx.Tensor, y: fx.Tensor, variant: fx.Constexpr[str] = "wave",
          stream: fx.Stream = fx.Stream(None)):
    """y = A @ x for Float32 A (M, N), x (N,) and y (M,); "wave_vec4" and "block" take N in whole fours.

    >>> import numpy as np
    >>> a, x, y = np.ones((5, 100), np.float32), np.arange(100, dtype=np.float32), np.empty(5, np.float32)
    >>> _ = sgemv(a, x, y)
    >>> y.tolist()
    [4950.0, 4950.0, 4950.0, 4950.0, 4950.0]
    """
    how, (M, N) = named(VARIANTS, variant), A.shape
    if x.shape != (N,) or y.shape != (M,):
        raise ArgumentError(f"A {A.shape} times x {x.shape} into y {y.shape}", hint="pass (M, N), (N,) and (M,)")
    whole_tiles(N, how.vec, "a row of A")
    threads = how.threads or lanes_for(N)
    grid = fx.ceildiv(M, BLOCK // threads)
    sgemv_kernel(A, x, y, threads, how.vec).launch(grid=(grid,), block=(BLOCK,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"sgemv": {"A": "f32[64,1024]", "x": "f32[1024]", "y": "f32[64]"}}
