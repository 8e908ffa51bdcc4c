"""C = A @ B with tiles in LDS: each element loaded from memory serves 16 threads.

The 256 threads of a block load a 16 x 16 tile of A and one of B, an element each, and then each takes a row and a
column of these. Memory is read a sixteenth as often; now LDS is read twice for each multiply, which is what limits it.
Elements of any format are multiplied and added up in Float32.
"""

from flylab.kernels.common.tiles import matrix_product

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu, range_constexpr

TILE = 16
"""A block computes TILE x TILE elements of C, TILE of K at a time."""


def element(tensor, row, column):
    """An element, and 0 outside; nothing is compared where whole tiles lie inside."""
    rows, columns = tensor.shape
    if rows % TILE == 0 and columns % TILE == 0:
        return tensor[row, column]
    x = tensor.dtype(0)
    if (row < rows) & (column < columns):
        x = tensor[row, column]
    return x


@flyc.kernel
def lds_gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """One element of C for each thread."""
    (M, K), N = A.shape, B.shape[1]
    i, j = gpu.thread_id("x") // TILE, gpu.thread_id("x") % TILE
    row, column = gpu.block_id("y") * TILE + i, gpu.block_id("x") * TILE + j
    square = fx.make_layout((TILE, TILE), (TILE, 1))
    sA, sB = (fx.SharedAllocator().allocate(fx.Array[t.dtype, TILE * TILE]).peek().view(square) for t in (A, B))
    total = fx.Float32(0.0)
    for tile in range(-(-K // TILE)):
        sA[i, j] = element(A, row, tile * TILE + j)
        sB[i, j] = element(B, tile * TILE + i, column)
        gpu.barrier()
        with fx.arith.fastmath("contract"):
            for k in range_constexpr(TILE):
                total += fx.Float32(sA[i, k]) * fx.Float32(sB[k, j])
        gpu.barrier()
    if (row < M) & (column < N):
        C[row, column] = total.to(C.dtype)


@flyc.jit
def lds_gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    """C = A @ B for matrices (M, K), (K, N) and (M, N) of any size, strides and floats.

    >>> import numpy as np
    >>> a, b, c = np.ones((20, 8), np.float32), np.ones((8, 33), np.float32), np.empty((20, 33), np.float32)
    >>> _ = lds_gemm(a, b, c)
    >>> bool((c == 8).all())
    True
    """
    M, N, K = matrix_product(A, B, C)
    lds_gemm_kernel(A, B, C).launch(grid=(fx.ceildiv(N, TILE), fx.ceildiv(M, TILE)), block=(TILE * TILE,),
                                     stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"lds_gemm": {"A,B,C": "f32[64,64]"}}
