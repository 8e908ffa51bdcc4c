"""The sum of each block's elements, as a tree in LDS, and what makes it quick, one thing after the other.

A block adds 256 elements (or twice as many) to one. Each variant is the one before it and one change:

 * `divergent`: at distance s = 1, 2, 4 ... thread t adds element t + s to its own if t is a multiple of 2 s. Few lanes
   of each wave work, and every wave goes through every level.
 * `strided`: neighbouring threads take the places 2 s apart instead. Whole waves are done early, and lanes now stride
   over the banks of LDS: at s = 16 all 32 lanes of a phase want the same bank.
 * `halving`: s = 128, 64 ... 1, and thread t takes t and t + s: neighbouring lanes, neighbouring banks.
 * `two_loads`: a thread adds two elements while loading. The first level was half the threads.
 * `last_wave`: what is left when one wave remains stays in its registers, where lanes exchange it without a barrier.
 * `unrolled`: the levels before that are written one after the other. LLVM had unrolled the short loop, whose count it
   knows, by itself: the instructions are the same, and so is the published time.
"""

from dataclasses import dataclass

from flylab.kernels.common.tiles import named
from flylab.kernels.reduce.shares import BLOCK, WAVE, load, wave_sum

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError
from flylab.expr import const_expr, gpu, range_constexpr


@dataclass(frozen=True)
class Tree:
    """What a variant does: who adds at a level, elements a thread loads, the threads at which the tree ends."""

    order: str
    loads: int = 1
    down_to: int = 1
    unrolled: bool = False


VARIANTS = {
    "divergent": Tree("divergent"),
    "strided": Tree("strided"),
    "halving": Tree("halving"),
    "two_loads": Tree("halving", loads=2),
    "last_wave": Tree("halving", loads=2, down_to=WAVE),
    "unrolled": Tree("halving", loads=2, down_to=WAVE, unrolled=True),
}


def add_level(lds, tid, order, s):
    """One level: the elements at distance s are added."""
    if const_expr(order == "divergent"):
        if tid % (2 * s) == 0:
            lds[tid] = lds[tid] + lds[tid + s]
    elif const_expr(order == "strided"):
        at = 2 * s * tid
        if at < BLOCK:
            lds[at] = lds[at] + lds[at + s]
    else:
        if tid < s:
            lds[tid] = lds[tid] + lds[tid + s]
    gpu.barrier()


@flyc.kernel
def tree_kernel(A: fx.Tensor, Sums: fx.Tensor, how: fx.Constexpr):
    """One sum for each BLOCK * how.loads elements."""
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, BLOCK]).peek().view()
    first, whole = bid * (BLOCK * how.loads) + tid, A.shape[0] % (BLOCK * how.loads) == 0
    x = load(A, first, whole)
    for i in range_constexpr(1, how.loads):
        x = x + load(A, first + i * BLOCK, whole)
    lds[tid] = x
    gpu.barrier()

    levels = (BLOCK // how.down_to).bit_length() - 1
    if const_expr(how.unrolled):
        for level in range_constexpr(levels):
            add_level(lds, tid, how.order, BLOCK >> (level + 1))
    else:
        for level in range(levels):
            add_level(lds, tid, how.order, BLOCK // 2 >> level if how.order == "halving" else 1 << level)

    if tid < how.down_to:
        total = wave_sum(lds[tid], how.down_to)
        if tid == 0:
            Sums[bid] = total


@flyc.jit
def tree_sums(A: fx.Tensor, Sums: fx.Tensor, variant: fx.Constexpr[str] = "unrolled",
              stream: fx.Stream = fx.Stream(None)):
    """Sums[b] = the sum of the b-th 256 elements of the vector A, or 512 from "two_loads" on, as Float32.

    The last may have fewer. `variant` is one of VARIANTS.

    >>> import numpy as np
    >>> a, sums = np.arange(1000, dtype=np.float32), np.empty(2, np.float32)
    >>> _ = tree_sums(a, sums)
    >>> sums.tolist() == [a[:512].sum(), a[512:].sum()]
    True
    """
    how = named(VARIANTS, variant)
    blocks = fx.ceildiv(A.shape[0], BLOCK * how.loads)
    if Sums.shape != (blocks,):
        raise ArgumentError(f"'Sums' has shape {Sums.shape}, and {blocks} blocks write one sum each",
                            hint=f"pass ({blocks},)")
    tree_kernel(A, Sums, how).launch(grid=(blocks,), block=(BLOCK,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"tree_sums": {"A": "f32[4096]", "Sums": "f32[8]"}}
