"""The sum of a long vector by a grid of a fixed size: each thread adds up many elements before any of them meet.

However long the vector is, the work after the loop is the same, so the loop is nearly all of the time. All threads of
the grid take neighbouring pieces, then the next round of pieces. Each variant is the one before it and one change:

 * `tree`: the threads of a block meet in the tree of tree.py.
 * `shuffle`: lanes add in registers, and the four waves of a block meet in four words of LDS: one barrier.
 * `vec4`: 128 bits a load.
 * `vec4_wide`: 8192 blocks instead of 1024, 32 for each compute unit of MI350X: the more waves, the more loads at once.

Each block writes one sum. `total` is a second launch, of one block, on these.
"""

from dataclasses import dataclass

from flylab.kernels.common.tiles import named
from flylab.kernels.reduce.shares import BLOCK, WAVE, block_sum, load, wave_sum
from flylab.kernels.reduce.tree import add_level

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import const_expr, gpu, range_constexpr


@dataclass(frozen=True)
class GridStride:
    """What a variant does: blocks of the grid, elements a load, and how the threads of a block meet."""

    blocks: int = 1024
    vec: int = 1
    tree: bool = False


VARIANTS = {
    "tree": GridStride(tree=True),
    "shuffle": GridStride(),
    "vec4": GridStride(vec=4),
    "vec4_wide": GridStride(blocks=8192, vec=4),
}


def tree_sum(x, tid, lds):
    """The sum over a block, in its first wave, by the unrolled tree."""
    lds[tid] = x
    gpu.barrier()
    for level in range_constexpr((BLOCK // WAVE).bit_length() - 1):
        add_level(lds, tid, "halving", BLOCK >> (level + 1))
    return wave_sum(lds[tid % WAVE])


@flyc.kernel
def grid_stride_kernel(A: fx.Tensor, Sums: fx.Tensor, how: fx.Constexpr):
    """One sum for each block; what is left after whole rounds is taken an element at a time."""
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    thread, threads = bid * BLOCK + tid, Sums.shape[0] * BLOCK
    rounds = A.shape[0] // (threads * how.vec)

    pieces = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), fx.make_layout(how.vec, 1))
    copy = fx.make_copy_atom(fx.rocdl.BufferCopy(how.vec * A.dtype.width), A.dtype)
    sums = fx.Vector.filled(how.vec, 0.0, fx.Float32)
    for i in range(rounds):
        piece = fx.make_rmem_tensor(how.vec, A.dtype)
        fx.copy(copy, fx.slice(pieces, (None, i * threads + thread)), piece)
        sums = sums + piece.load().to(fx.Float32)
    x = sums.reduce("add")
    for first in range_constexpr(rounds * threads * how.vec, A.shape[0], threads):
        x = x + load(A, first + thread, False)

    slots = fx.SharedAllocator().allocate(fx.Array[fx.Float32, BLOCK if how.tree else BLOCK // WAVE]).peek().view()
    x = tree_sum(x, tid, slots) if const_expr(how.tree) else block_sum(x, tid, slots)
    if tid == 0:
        Sums[bid] = x


@flyc.jit
def grid_stride_sums(A: fx.Tensor, Sums: fx.Tensor, variant: fx.Constexpr[str] = "vec4_wide",
                     stream: fx.Stream = fx.Stream(None)):
    """The sum of a vector A in parts, as Float32: one for each block, as many as `Sums` has room for.

    `variant` is one of VARIANTS, each of which is meant for its own number of `blocks`.

    >>> import numpy as np
    >>> a, sums = np.ones(10000, dtype=np.float32), np.empty(4, np.float32)
    >>> _ = grid_stride_sums(a, sums)
    >>> float(sums.sum())
    10000.0
    """
    how = named(VARIANTS, variant)
    grid_stride_kernel(A, Sums, how).launch(grid=Sums.shape, block=(BLOCK,), stream=stream)


@flyc.jit
def total(A: fx.Tensor, Sums: fx.Tensor, Out: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    """Out[0] = the sum of a vector A, as Float32; `Sums` is room for the sums of as many blocks as it is long."""
    grid_stride_kernel(A, Sums, VARIANTS["vec4_wide"]).launch(grid=Sums.shape, block=(BLOCK,), stream=stream)
    grid_stride_kernel(Sums, Out, VARIANTS["vec4_wide"]).launch(grid=(1,), block=(BLOCK,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launchers with."""
    return {"grid_stride_sums": {"A": "f32[65536]", "Sums": "f32[16]"},
            "total": {"A": "f32[65536]", "Sums": "f32[16]", "Out": "f32[1]"}}
