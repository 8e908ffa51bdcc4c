"""C = A @ B in Float32 with tiles in LDS: each element loaded from memory serves 16 threads.

The 256 threads of a block load a 16 x 16 tile of A and one of B, an element each, and then each takes a row and a
column of these. Memory is read a sixteenth as often; now LDS is read twice for each multiply, which is what limits it.
"""

from flylab.kernels.common.tiles import matrix_product

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu, range_constexpr

TILE = 16
"""A block computes TILE x TILE elements of C, TILE of K at a time."""


@fx.struct
class Tiles:
    """A tile of A and one of B."""

    a: fx.Array[fx.Float32, TILE * TILE]
    b: fx.Array[fx.Float32, TILE * TILE]


def element(tensor, row, column):
    """An element, and 0 outside; nothing is compared where whole tiles lie inside."""
    rows, columns = tensor.shape
    if rows % TILE == 0 and columns % TILE == 0:
        return tensor[row, column]
    x = fx.Float32(0.0)
    if (row < rows) & (column < columns):
        x = tensor[row, column]
    return x


@flyc.kernel
def sgemm_lds_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """One element of C for each thread."""
    (M, K), N = A.shape, B.shape[1]
    i, j = gpu.thread_id("x") // TILE, gpu.thread_id("x") % TILE
    row, column = gpu.block_id("y") * TILE + i, gpu.block_id("x") * TILE + j
    lds = fx.SharedAllocator().allocate(Tiles).peek()
    square = fx.make_layout((TILE, TILE), (TILE, 1))
    sA, sB = lds.a.view(square), lds.b.view(square)
    total = fx.Float32(0.0)
    for tile in range(-(-K // TILE)):
        sA[i, j] = element(A, row, tile * TILE + j)
        sB[i, j] = element(B, tile * TILE + i, column)
        gpu.barrier()
        with fx.arith.fastmath("contract"):
            for k in range_constexpr(TILE):
                total += sA[i, k] * sB[k, j]
        gpu.barrier()
    if (row < M) & (column < N):
        C[row, column] = total


@flyc.jit
def sgemm_lds(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    """C = A @ B for Float32 matrices (M, K), (K, N) and (M, N) of any size.

    >>> import numpy as np
    >>> a, b, c = np.ones((20, 8), np.float32), np.ones((8, 33), np.float32), np.empty((20, 33), np.float32)
    >>> _ = sgemm_lds(a, b, c)
    >>> bool((c == 8).all())
    True
    """
    M, N, K = matrix_product(A, B, C)
    sgemm_lds_kernel(A, B, C).launch(grid=(fx.ceildiv(N, TILE), fx.ceildiv(M, TILE)), block=(TILE * TILE,),
                                     stream=stream)
