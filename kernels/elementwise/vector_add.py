"""C = A + B: one element a thread, two, four, and several times four.

All walk the same path: divide the tensor into tiles, one for each block; slice the block's own; divide that into what
a thread handles; copy it to registers, compute, copy it back. The wide forms move up to 128 bits at a time, which is a
quarter of the instructions. REPEAT is how many such pieces a thread takes, a whole round of the block apart, so that
neighbouring lanes always take neighbouring pieces: all their loads are under way before the first is waited for.
"""

from flylab.kernels.common.tiles import same_shape, whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu, range_constexpr

BLOCK = 256
"""Threads of a block."""


@flyc.kernel
def vector_add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, VEC: fx.Constexpr[int], REPEAT: fx.Constexpr[int]):
    """One tile of BLOCK * VEC * REPEAT elements a block, REPEAT pieces of VEC elements a thread."""
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    tile = fx.make_layout(BLOCK * VEC * REPEAT, 1)

    # This block's tile, cut into pieces of VEC consecutive elements: mode 0 is a piece, mode 1 counts them.
    tA = fx.logical_divide(fx.slice(fx.logical_divide(A, tile), (None, bid)), fx.make_layout(VEC, 1))
    tB = fx.logical_divide(fx.slice(fx.logical_divide(B, tile), (None, bid)), fx.make_layout(VEC, 1))
    tC = fx.logical_divide(fx.slice(fx.logical_divide(C, tile), (None, bid)), fx.make_layout(VEC, 1))

    copy = fx.make_copy_atom(fx.UniversalCopy(VEC * A.dtype.width), A.dtype)
    loaded = []
    for i in range_constexpr(REPEAT):
        rA, rB = fx.make_rmem_tensor(VEC, A.dtype), fx.make_rmem_tensor(VEC, A.dtype)
        fx.copy(copy, fx.slice(tA, (None, i * BLOCK + tid)), rA)
        fx.copy(copy, fx.slice(tB, (None, i * BLOCK + tid)), rB)
        loaded.append((rA, rB))
    for i in range_constexpr(REPEAT):
        rA, rB = loaded[i]
        rC = fx.make_rmem_tensor(VEC, C.dtype)
        fx.memref_store_vec(fx.memref_load_vec(rA) + fx.memref_load_vec(rB), rC)
        fx.copy(copy, rC, fx.slice(tC, (None, i * BLOCK + tid)))


@flyc.jit
def vector_add(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, VEC: fx.Constexpr[int] = 1, REPEAT: fx.Constexpr[int] = 1,
    stream: fx.Stream = fx.Stream(None),
):
    """C = A + B for three vectors of one length, a multiple of 256 * VEC * REPEAT.

    >>> import numpy as np
    >>> a = np.arange(1024, dtype=np.float32)
    >>> c = np.empty_like(a)
    >>> _ = vector_add(a, a, c, VEC=4)
    >>> float(c[3])
    6.0
    """
    same_shape(A=A, B=B, C=C)
    tiles = whole_tiles(A.shape[0], BLOCK * VEC * REPEAT, "A")
    vector_add_kernel(A, B, C, VEC, REPEAT).launch(grid=(tiles,), block=(BLOCK,), stream=stream)


def reference(A, B):
    """The same in torch or numpy."""
    return A + B


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"vector_add": {"A,B,C": "f32[4096]", "VEC": 4, "REPEAT": 2}}
