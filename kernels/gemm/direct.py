"""C = A @ B, one element a thread, all operands from memory: where the ladder of GEMMs begins.

A thread goes along its row of A and its column of B. The 16 lanes of a row read the same element of A and neighbours of
B, so the loads are not scattered; there are just too many: two for each multiply.
"""

from flylab.kernels.common.tiles import matrix_product

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu

TILE = 16
"""A block computes TILE x TILE elements of C."""


@flyc.kernel
def direct_gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """One element of C for each thread; a thread past an edge computes the element at the edge, and stores nothing."""
    (M, K), N = A.shape, B.shape[1]
    row = gpu.block_id("y") * TILE + gpu.thread_id("x") // TILE
    column = gpu.block_id("x") * TILE + gpu.thread_id("x") % TILE
    i, j = fx.min(row, M - 1), fx.min(column, N - 1)
    total = fx.Float32(0.0)
    with fx.arith.fastmath("contract"):
        for k in range(K):
            total += fx.Float32(A[i, k]) * fx.Float32(B[k, j])
    if (row < M) & (column < N):
        C[row, column] = total.to(C.dtype)


@flyc.jit
def direct_gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    """C = A @ B for matrices (M, K), (K, N) and (M, N) of any size, strides and floats.

    >>> import numpy as np
    >>> a, b, c = np.ones((20, 8), np.float32), np.ones((8, 33), np.float32), np.empty((20, 33), np.float32)
    >>> _ = direct_gemm(a, b, c)
    >>> bool((c == 8).all())
    True
    """
    M, N, K = matrix_product(A, B, C)
    direct_gemm_kernel(A, B, C).launch(grid=(fx.ceildiv(N, TILE), fx.ceildiv(M, TILE)), block=(TILE * TILE,),
                                        stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"direct_gemm": {"A,B,C": "f32[64,64]"}}
