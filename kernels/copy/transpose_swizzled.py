"""B = transpose of A, through LDS, whose swizzle lets rows be written and columns be read without bank conflicts.

A row of the tile has 8 pieces of 16 bytes: 128 bytes, which is once around the 32 banks. Rows are written in such
pieces, 8 lanes a row, each to banks of its own. Columns are read an element at a time: 8 lanes read the same column of
rows that are VEC apart, which without a swizzle is 8 times the same bank. The swizzle exchanges the pieces of a row by
the number of the row divided by VEC, so that these 8 lanes find their elements in 8 different pieces.

Both global accesses move 16 bytes a lane: without LDS one of the two would move single elements.
"""

from flylab.kernels.common.tiles import whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx

ROWS, PIECES = 32, 8
"""How the 256 threads of a block lie over its tile: rows, and pieces of a row."""


def tile_side(width):
    """Rows and columns of the tile for elements of so many bits: 8 pieces of 16 bytes, 32 for Float32."""
    return PIECES * (128 // width)


def swizzled(width, stride):
    """The tile in LDS: (rows, columns) with these strides, its pieces exchanged by the row."""
    vec_log = (128 // width).bit_length() - 1
    side = tile_side(width)
    swizzle = fx.static(fx.SwizzleType.get(3, vec_log, vec_log + 3))
    return fx.make_composed_layout(swizzle, fx.make_layout((side, side), stride))


@flyc.kernel
def transpose_kernel(A: fx.Tensor, B: fx.Tensor):
    """One tile: rows into LDS, a barrier, columns out of it."""
    tid, column, row = fx.thread_idx.x, fx.block_idx.x, fx.block_idx.y
    width, side = A.dtype.width, tile_side(A.dtype.width)
    vec = 128 // width
    pieces = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), A.dtype)
    lds_pieces = fx.make_copy_atom(fx.UniversalCopy128b(), A.dtype)
    lds_elements = fx.make_copy_atom(fx.UniversalCopy(width), A.dtype)
    threads, values = fx.make_layout((ROWS, PIECES), (PIECES, 1)), fx.make_layout((1, vec), (vec, 1))
    by_pieces = fx.make_tiled_copy_tv(pieces, threads, values).get_slice(tid)
    by_elements = fx.make_tiled_copy_tv(lds_elements, threads, values).get_slice(tid)

    lds = fx.SharedAllocator().allocate(fx.Array[A.dtype, side * side]).peek()
    rows_of_lds = fx.make_view(lds.ptr, swizzled(width, (side, 1)))
    columns_of_lds = fx.make_view(lds.ptr, swizzled(width, (1, side)))

    tile = fx.make_tile(side, side)
    tA = fx.slice(fx.zipped_divide(fx.rocdl.make_buffer_tensor(A), tile), (None, (row, column)))
    source = by_pieces.partition_S(tA)
    registers = fx.make_fragment_like(source)
    fx.copy(pieces, source, registers)
    fx.copy(lds_pieces, registers, by_pieces.partition_D(rows_of_lds))
    fx.gpu.barrier()

    tB = fx.slice(fx.zipped_divide(fx.rocdl.make_buffer_tensor(B), tile), (None, (column, row)))
    across = by_elements.partition_S(columns_of_lds)
    turned = fx.make_fragment_like(across)
    fx.copy(lds_elements, across, turned)
    fx.copy(pieces, by_pieces.retile(turned), by_pieces.partition_D(tB))


@flyc.jit
def transpose(A: fx.Tensor, B: fx.Tensor, M: fx.Constexpr[int], N: fx.Constexpr[int],
              stream: fx.Stream = fx.Stream(None)):
    """B = A.T for contiguous A of shape (M, N), both multiples of the tile: 32 for elements of 4 bytes, 64 of 2."""
    side = tile_side(A.dtype.width)
    columns, rows = whole_tiles(N, side, "a row of A"), whole_tiles(M, side, "a column of A")
    transpose_kernel(A, B).launch(grid=(columns, rows, 1), block=(ROWS * PIECES, 1, 1), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"transpose": {"A": "f16[64,256]", "B": "f16[256,64]", "M": 64, "N": 256}}
