"""B = A for matrices, a tile a block: the tiled copy says which thread moves which elements.

The 256 threads lie over the tile as 8 rows of 32, and each moves VEC neighbours of a row at a time, so that a wave
reads whole lines of memory. `get_slice(tid)` is one thread's share of the tile; its registers have the same shape.

The tensors are seen through buffer descriptors: rows past the last are read as 0 and their stores dropped by the
hardware, so any number of rows will do. Past the end of a row is the next row, so rows must be whole tiles.
"""

from flylab.kernels.common.tiles import whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx

ROWS, COLUMNS = 8, 32
"""How the 256 threads of a block lie over its tile."""
REPEAT = 2
"""How many times these rows are repeated in a tile: loads that are under way together."""


@flyc.kernel
def tiled_copy_kernel(A: fx.Tensor, B: fx.Tensor, N: fx.Constexpr[int], VEC: fx.Constexpr[int]):
    """A tile of (REPEAT * ROWS, COLUMNS * VEC) elements."""
    tid, column, row = fx.thread_idx.x, fx.block_idx.x, fx.block_idx.y
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy(VEC * A.dtype.width), A.dtype)
    threads = fx.make_layout((ROWS, COLUMNS), (COLUMNS, 1))
    share = fx.make_tiled_copy_tv(atom, threads, fx.make_layout((1, VEC), (VEC, 1))).get_slice(tid)

    tile = fx.make_tile(REPEAT * ROWS, COLUMNS * VEC)
    tA = fx.slice(fx.zipped_divide(fx.rocdl.make_buffer_tensor(A, max_size=False), tile), (None, (row, column)))
    tB = fx.slice(fx.zipped_divide(fx.rocdl.make_buffer_tensor(B, max_size=False), tile), (None, (row, column)))
    source, target = share.partition_S(tA), share.partition_D(tB)
    registers = fx.make_fragment_like(source)
    fx.copy(atom, source, registers)
    fx.copy(atom, registers, target)


@flyc.jit
def tiled_copy(A: fx.Tensor, B: fx.Tensor, M: fx.Constexpr[int], N: fx.Constexpr[int], VEC: fx.Constexpr[int] = 4,
               stream: fx.Stream = fx.Stream(None)):
    """B = A for contiguous matrices of shape (M, N); N a multiple of 32 * VEC."""
    columns = whole_tiles(N, COLUMNS * VEC, "a row of A")
    rows = fx.ceildiv(M, REPEAT * ROWS)
    tiled_copy_kernel(A, B, N, VEC).launch(grid=(columns, rows, 1), block=(ROWS * COLUMNS, 1, 1), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"tiled_copy": {"A,B": "f32[64,256]", "M": 64, "N": 256}}
