"""C = A @ B, one element a thread and one load for each multiply: for understanding, not for speed.

The tensors are seen through buffer descriptors. A block at the lower edge computes rows that C does not have: their
loads give 0 and their stores are dropped by the hardware, so no guard is written. At the right edge that would not
hold (past the end of a row is the next row), so N must be a multiple of the tile.
"""

from flylab.kernels.common.tiles import matrix_product, whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu, range_constexpr

TILE = 16
"""A block computes TILE x TILE elements of C."""


@flyc.kernel
def naive_gemm_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, M: fx.Constexpr[int], N: fx.Constexpr[int], K: fx.Constexpr[int]
):
    """One element of C for each thread; K is unrolled."""
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    row = bid // (N // TILE) * TILE + tid // TILE
    col = bid % (N // TILE) * TILE + tid % TILE

    tA = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(A)), fx.make_layout((M, K), (K, 1)))
    tB = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(B)), fx.make_layout((K, N), (N, 1)))
    tC = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(C)), fx.make_layout((M, N), (N, 1)))

    acc = fx.Float32(0.0)
    for k in range_constexpr(K):
        acc = acc + tA[row, k] * tB[k, col]
    tC[row, col] = acc


@flyc.jit
def naive_gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    """C = A @ B for contiguous Float32 matrices of shapes (M, K), (K, N) and (M, N); N a multiple of 16.

    >>> import numpy as np
    >>> a, b = np.ones((20, 8), np.float32), np.ones((8, 32), np.float32)
    >>> c = np.empty((20, 32), np.float32)
    >>> _ = naive_gemm(a, b, c)
    >>> bool((c == 8).all())
    True
    """
    M, N, K = matrix_product(A, B, C)
    blocks = fx.ceildiv(M, TILE) * whole_tiles(N, TILE, "a row of B")
    naive_gemm_kernel(A, B, C, M, N, K).launch(grid=(blocks,), block=(TILE * TILE,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"naive_gemm": {"A,B,C": "f32[64,64]"}}
