"""C = A @ B.T, tiled and pipelined, with B shuffled beforehand: f16, bf16, fp8 and int8.

How the bytes flow:
 1. B (N, K) is shuffled once on the host (`shuffle_b`) to (N/16, K/64 bytes, 4, 16, 16 bytes). A lane feeds 16 bytes of
    a row of B to two matrix instructions; the 64 lanes of a wave find their 64 pieces in one run of 1024 bytes. So B
    goes from memory straight to registers, and needs no LDS.
 2. A goes through LDS, since all four waves read it. A row of a tile there is 8 pieces of 16 bytes, once around the 32
    banks; the swizzle exchanges pieces by the number of the row (an XOR of 3 bits), so that the 16 rows that a matrix
    instruction takes at once are spread over all banks.
 3. K goes in micro-steps of 64 bytes: for each 16 x 16 tile of C one read of 16 bytes of A and B a lane, and two matrix
    instructions. The tiled MMA's permutation of K says so: the first takes the first half of each piece.
 4. While a tile is multiplied, the next one is under way: A to registers, and after the multiplication to the other of
    two LDS buffers; B to registers that the loop carries. So one barrier a tile is enough.
 5. The epilogue scales (if asked to), converts, and stores C by rows as the lanes hold it.

Rows of A past the last are read as 0 and those of C are not stored, by the bounds of the buffers: any M will do.
"""

from flylab.kernels.common.tiles import whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import const_expr, range_constexpr

PIECE, PIECES = 16, 8
"""Bytes that a lane moves at a time, and how many of these are in a row of a tile: two micro-steps of 64 bytes."""
THREADS = 256


def shuffle_b(b):
    """B (N, K), a torch tensor or a numpy array, in the order that the kernel reads; N and K in whole 16 and 64 bytes.

    >>> import numpy as np
    >>> b = np.arange(16 * 64, dtype=np.int16).reshape(16, 64)
    >>> bool((shuffle_b(b).reshape(2, 4, 16, 8)[1, 2, 5] == b[5, 48:56]).all())     # K-block, piece, row
    True
    """
    rows, columns = b.shape
    piece = PIECE // b.itemsize
    blocks = whole_tiles(rows, 16, "a column of B"), whole_tiles(columns, 4 * piece, "a row of B")
    pieces = b.reshape(blocks[0], 16, blocks[1], 4, piece)
    order = (0, 2, 3, 1, 4)
    moved = pieces.permute(order).contiguous() if hasattr(b, "permute") else pieces.transpose(order)
    return moved.reshape(rows, columns)


def matrix_instructions(dtype):
    """The tiled MMA: four waves side by side along N, and lanes that take K in pieces of 16 bytes."""
    half = PIECE * 4 // dtype.width
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4 * half, dtype, fx.Int32 if dtype is fx.Int8 else fx.Float32))
    micro_step = fx.make_layout((half, 4, 2), (1, 2 * half, half))
    return fx.make_tiled_mma(atom, fx.make_layout((1, 4, 1), (0, 1, 0)), fx.make_tile(None, None, micro_step))


def tiles(tensor, layout, tile, where):
    """The tiles at `where` (None: all of a mode) of a tensor in memory that is seen with this layout."""
    view = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(tensor, max_size=False)), layout)
    return fx.slice(fx.flat_divide(view, fx.make_tile(*tile)), (None, None, *where))


def lds_layout(rows, piece):
    """Two LDS buffers of (rows, K of a tile), the pieces of a row exchanged by its number."""
    swizzle = fx.static(fx.SwizzleType.get(3, piece.bit_length() - 1, 3))
    columns = PIECES * piece
    return fx.make_composed_layout(swizzle, fx.make_layout((rows, columns, 2), (columns, 1, rows * columns)))


class Operands:
    """A thread's share of A and B under way: in memory, in LDS, and in registers."""

    def __init__(self, mma, tid, tA, tB, in_lds):
        """Tiles of A and B in memory, (rows, K of a tile, tiles along K), and of A in LDS, (rows, K of a tile, 2)."""
        dtype, piece = tA.dtype, PIECE * 8 // tA.dtype.width
        self.mma = mma
        self.load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), dtype)
        self.move = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
        first_A, first_B = fx.slice(tA, (None, None, 0)), fx.slice(tB, (None, None, 0))
        share = mma.get_slice(tid)
        self.a, self.b = share.make_fragment_A(first_A), share.make_fragment_B(first_B)
        self.next_b = share.make_fragment_B(first_B)

        # A: memory -> registers -> LDS by rows, 8 threads each; LDS -> registers as the matrix instructions want it.
        threads = fx.make_layout((THREADS // PIECES, PIECES), (PIECES, 1))
        by_rows = fx.make_tiled_copy_tv(self.load, threads, fx.make_layout((1, piece), (piece, 1))).get_slice(tid)
        copy_A = fx.make_tiled_copy_A(self.move, mma).get_slice(tid)
        self.rows_A, self.next_a = by_rows.partition_S(tA), fx.make_fragment_like(by_rows.partition_S(first_A))
        self.to_lds, self.from_lds = by_rows.partition_D(in_lds), copy_A.partition_S(in_lds)
        self.into_a = copy_A.retile(self.a)

        # B: memory -> registers.
        copy_B = fx.make_tiled_copy_B(self.load, mma).get_slice(tid)
        self.pieces_B, self.into_next_b = copy_B.partition_S(tB), copy_B.retile(self.next_b)

    def fetch(self, k):
        """Start the loads of tile k."""
        fx.copy(self.load, fx.slice(self.rows_A, (None, None, None, k)), self.next_a)
        fx.copy(self.load, fx.slice(self.pieces_B, (None, None, None, k)), self.into_next_b)

    def stage(self, buffer):
        """Take up the tile that has arrived: A into this LDS buffer, which all waves have then, B where it is used."""
        fx.copy(self.move, self.next_a, fx.slice(self.to_lds, (None, None, None, buffer)))
        fx.gpu.barrier()
        self.b.store(self.next_b.load())

    def multiply(self, buffer, c):
        """Add the product of the tile whose A is in this LDS buffer, in two micro-steps."""
        for step in range_constexpr(2):
            source = fx.slice(self.from_lds, (None, None, step, buffer))
            fx.copy(self.move, source, fx.slice(self.into_a, (None, None, step)))
            a, b = (fx.slice(fragment, (None, None, (None, step))) for fragment in (self.a, self.b))
            fx.gemm(self.mma, c, a, b, c)
            fx.rocdl.sched_barrier(0)  # the next step's reads would cost registers, not save time


def store_tile(mma, tid, c, tC, scales):
    """The epilogue: C = c, times the scales of its rows and columns, which are seen as tiles of C with strides of 0."""
    result = c.load()
    read = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    share = fx.make_tiled_copy_C(read, mma).get_slice(tid)
    for scale in scales:
        factors = fx.make_fragment_like(c, fx.Float32)
        fx.copy(read, share.partition_S(scale), share.retile(factors))
        result = result.to(fx.Float32) * factors.load()
    out = fx.make_fragment_like(c, tC.dtype)
    out.store(result.to(tC.dtype))
    write = fx.make_copy_atom(fx.rocdl.BufferCopy(tC.dtype.width), tC.dtype)
    share = fx.make_tiled_copy_C(write, mma).get_slice(tid)
    fx.copy(write, share.retile(out), share.partition_D(tC))


@flyc.kernel
def preshuffle_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, scale_A: fx.Tensor, scale_B: fx.Tensor, M: fx.Constexpr[int],
    N: fx.Constexpr[int], K: fx.Constexpr[int], TILE_M: fx.Constexpr[int], TILE_N: fx.Constexpr[int],
    SCALED: fx.Constexpr[bool],
):
    """A tile of (TILE_M, TILE_N) of C."""
    tid, row, column = fx.thread_idx.x, fx.block_idx.x, fx.block_idx.y
    piece = PIECE * 8 // A.dtype.width
    tile_k, count = PIECES * piece, K // (PIECES * piece)
    mma = matrix_instructions(A.dtype)
    shuffled = fx.make_layout(((16, N // 16), (piece, 4, K // (4 * piece))),
                              ((piece, 16 * K), (1, 16 * piece, 64 * piece)))
    tA = tiles(A, fx.make_layout((M, K), (K, 1)), (TILE_M, tile_k), (row, None))
    tB = tiles(B, shuffled, (TILE_N, tile_k), (column, None))
    tC = tiles(C, fx.make_layout((M, N), (N, 1)), (TILE_M, TILE_N), (row, column))
    storage = fx.SharedAllocator().allocate(fx.Array[A.dtype, 2 * TILE_M * tile_k]).peek()
    operands = Operands(mma, tid, tA, tB, fx.make_view(storage.ptr, lds_layout(TILE_M, piece)))
    fetch, stage, multiply, b = operands.fetch, operands.stage, operands.multiply, operands.b
    c = mma.get_slice(tid).make_fragment_C(tC)

    fetch(0)
    stage(0)
    c.fill(0)
    pairs = (count - 1) // 2
    for pair, state in range(fx.Int32(0), fx.Int32(pairs), fx.Int32(1), init=[c.load(), b.load()]):
        c.store(state[0])
        b.store(state[1])
        for buffer in range_constexpr(2):
            fetch(2 * pair + buffer + 1)
            multiply(buffer, c)
            stage(1 - buffer)
        results = yield [c.load(), b.load()]
    c.store(results[0])
    b.store(results[1])
    if const_expr(count - 2 * pairs == 2):
        fetch(count - 1)
        multiply(0, c)
        stage(1)
    multiply((count - 1) % 2, c)

    scales = []
    if const_expr(SCALED):
        scales = [tiles(scale, fx.make_layout((M, N), strides), (TILE_M, TILE_N), (row, column))
                  for scale, strides in ((scale_A, (1, 0)), (scale_B, (0, 1)))]
    store_tile(mma, tid, c, tC, scales)


def grid_of(dtype, M, N, K, TILE_M, TILE_N):
    """Blocks along M and N. Raises `ArgumentError` for an N or K, or a tile, that the kernel would not do whole."""
    whole_tiles(K, PIECES * PIECE * 8 // dtype.width, "a row of A")
    whole_tiles(TILE_M, THREADS // PIECES, "a column of a tile of A")
    whole_tiles(TILE_N, 64, "a column of a tile of B")
    return fx.ceildiv(M, TILE_M), whole_tiles(N, TILE_N, "a row of C"), 1


@flyc.jit
def preshuffle_gemm(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, M: fx.Constexpr[int], N: fx.Constexpr[int], K: fx.Constexpr[int],
    TILE_M: fx.Constexpr[int] = 128, TILE_N: fx.Constexpr[int] = 128, stream: fx.Stream = fx.Stream(None),
):
    """C = A @ B.T for contiguous A (M, K), B (N, K) in the order of `shuffle_b`, and C (M, N).

    A and B are Float16, BFloat16, Int8 or the chip's 8-bit float (Float8E4M3FNUZ on gfx942, Float8E4M3FN on gfx950).
    K must be whole 128 bytes, N whole tiles, TILE_M a multiple of 32 and TILE_N of 64. Int8 sums are Int32.
    """
    preshuffle_kernel(A, B, C, C, C, M, N, K, TILE_M, TILE_N, False).launch(
        grid=grid_of(A.dtype, M, N, K, TILE_M, TILE_N), block=(THREADS, 1, 1), stream=stream)


@flyc.jit
def preshuffle_gemm_scaled(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, scale_A: fx.Tensor, scale_B: fx.Tensor, M: fx.Constexpr[int],
    N: fx.Constexpr[int], K: fx.Constexpr[int], TILE_M: fx.Constexpr[int] = 128, TILE_N: fx.Constexpr[int] = 128,
    stream: fx.Stream = fx.Stream(None),
):
    """C[i, j] = (A @ B.T)[i, j] * scale_A[i] * scale_B[j], for Float32 scales (M,) and (N,).

    The rest is as in `preshuffle_gemm`.
    """
    preshuffle_kernel(A, B, C, scale_A, scale_B, M, N, K, TILE_M, TILE_N, True).launch(
        grid=grid_of(A.dtype, M, N, K, TILE_M, TILE_N), block=(THREADS, 1, 1), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launchers with."""
    numbers = {"M": 256, "N": 256, "K": 1024}
    return {"preshuffle_gemm": {"A,B": "i8[256,1024]", "C": "i32[256,256]", **numbers},
            "preshuffle_gemm_scaled": {"A,B": "fp8[256,1024]", "C": "bf16[256,256]", "scale_A,scale_B": "f32[256]",
                                       **numbers}}
