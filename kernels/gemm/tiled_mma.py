"""C = A @ B.T with matrix instructions, operands straight from memory: the tiled MMA says which lane holds what.

A matrix instruction multiplies a tile of 16 x 16 x K that the 64 lanes of a wave hold together. `make_tiled_mma` lays
2 x 2 waves over a block's tile; `make_tiled_copy_A/B/C` are copies in the very order in which the lanes hold A, B and
C, so each lane loads just what its instructions take. There is no LDS and no overlap of loads with arithmetic:
preshuffle.py has both.

B is (N, K), as PyTorch keeps weights: both operands are read along K. Rows of A past the last are read as 0 and those
of C are not stored, by the bounds of the buffer descriptors, so any M will do.
"""

from flylab.kernels.common.tiles import whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx

TILE_M, TILE_N = 64, 64
"""The tile of C of a block, 32 x 32 for each of its 4 waves."""


STEP = 32
"""Elements of K in a step: two matrix instructions deep for elements of 16 bits, eight for those of 32."""


def depth_of(dtype):
    """K of the matrix instruction that gfx942 and gfx950 share: 4 for Float32, 16 for Float16 and BFloat16."""
    return {32: 4, 16: 16}[dtype.width]


@flyc.kernel
def tiled_mma_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, K: fx.Constexpr[int]):
    """One tile of C, K in steps."""
    tid, row, column = fx.thread_idx.x, fx.block_idx.x, fx.block_idx.y
    depth = depth_of(A.dtype)
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, depth, A.dtype))
    mma = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    # A lane holds depth / 4 neighbours along K, and four rows of a column of C.
    load = fx.make_copy_atom(fx.rocdl.BufferCopy(depth // 4 * A.dtype.width), A.dtype)
    store = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    copy_A = fx.make_tiled_copy_A(load, mma).get_slice(tid)
    copy_B = fx.make_tiled_copy_B(load, mma).get_slice(tid)
    copy_C = fx.make_tiled_copy_C(store, mma).get_slice(tid)

    tile_A, tile_B = fx.make_tile(TILE_M, STEP), fx.make_tile(TILE_N, STEP)
    tA = fx.slice(fx.flat_divide(fx.rocdl.make_buffer_tensor(A, max_size=False), tile_A), (None, None, row, None))
    tB = fx.slice(fx.flat_divide(fx.rocdl.make_buffer_tensor(B), tile_B), (None, None, column, None))
    tC = fx.slice(fx.flat_divide(fx.rocdl.make_buffer_tensor(C, max_size=False), fx.make_tile(TILE_M, TILE_N)),
                  (None, None, row, column))
    share = mma.get_slice(tid)
    steps_A, steps_B, out = copy_A.partition_S(tA), copy_B.partition_S(tB), copy_C.partition_D(tC)
    a = share.make_fragment_A(fx.slice(tA, (None, None, 0)))
    b = share.make_fragment_B(fx.slice(tB, (None, None, 0)))
    c = share.make_fragment_C(tC)
    into_A, into_B = copy_A.retile(a), copy_B.retile(b)
    c.fill(0)
    for k in range(K // STEP):
        fx.copy(load, fx.slice(steps_A, (None, None, None, k)), into_A)
        fx.copy(load, fx.slice(steps_B, (None, None, None, k)), into_B)
        fx.gemm(mma, c, a, b, c)
    fx.copy(store, copy_C.retile(c), out)


@flyc.jit
def tiled_mma(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, M: fx.Constexpr[int], N: fx.Constexpr[int],
              K: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    """C = A @ B.T for contiguous A (M, K) and B (N, K) of one type (Float32, Float16, BFloat16) and Float32 C (M, N).

    N must be a multiple of 64, and K one of 32.
    """
    whole_tiles(K, STEP, "a row of A")
    grid = (fx.ceildiv(M, TILE_M), whole_tiles(N, TILE_N, "a row of C"), 1)
    tiled_mma_kernel(A, B, C, K).launch(grid=grid, block=(256, 1, 1), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"tiled_mma": {"A,B": "f16[256,256]", "C": "f32[256,256]", "M": 256, "N": 256, "K": 256}}
