"""C = A @ B for A in compressed sparse rows and B a matrix: a block makes a row of C, or 256 pieces of one.

All threads of a block go through the same row of A, and each adds up its own columns of C: neighbours read neighbours
of a row of B. Which row of B, and times what, is the same for all.

 * `scalar`: a column a thread; the row's elements are read as they are needed, by all threads alike.
 * `staged`: the threads first read 256 of the row's elements into LDS together, one each.
 * `vec4`: four columns a thread: a quarter of the loads of B, and of the steps through the row.
"""

from dataclasses import dataclass

from flylab.kernels.common.tiles import named, whole_tiles
from flylab.kernels.sparse.rows import compressed, row_count

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError
from flylab.expr import const_expr, gpu

THREADS = 256


@dataclass(frozen=True)
class How:
    """What a variant does: columns of a thread, and whether the row's elements come from LDS."""

    vec: int = 1
    staged: bool = False


VARIANTS = {"scalar": How(), "staged": How(staged=True), "vec4": How(vec=4)}


def add(total, value, B, row, column, vec):
    """total + value * the columns of a row of B."""
    piece = fx.make_rmem_tensor(vec, fx.Float32)
    line = fx.logical_divide(fx.slice(B, (row, None)), fx.make_layout(vec, 1))
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(32 * vec), fx.Float32), fx.slice(line, (None, column)), piece)
    with fx.arith.fastmath("contract"):
        return total + piece.load() * value


@flyc.kernel
def spmm_kernel(starts: fx.Tensor, columns: fx.Tensor, values: fx.Tensor, B: fx.Tensor, C: fx.Tensor,
                threads: fx.Constexpr[int], how: fx.Constexpr):
    """A piece of how.vec elements of C for each thread; past the end, the last once more, not stored."""
    tid, row, pieces = gpu.thread_id("x"), gpu.block_id("y"), C.shape[1] // how.vec
    piece = gpu.block_id("x") * threads + tid
    column = fx.min(piece, pieces - 1)
    total = fx.Vector.filled(how.vec, 0.0, fx.Float32)
    first, end = starts[row], starts[row + 1]
    if const_expr(how.staged):
        lds = fx.SharedAllocator()
        of_lds = lds.allocate(fx.Array[fx.Int32, threads]).peek().view()
        by_lds = lds.allocate(fx.Array[fx.Float32, threads]).peek().view()
        for begin in range(first, end, threads):
            if begin + tid < end:
                of_lds[tid], by_lds[tid] = columns[begin + tid], values[begin + tid]
            gpu.barrier()
            for i in range(fx.min(threads, end - begin)):
                total = add(total, by_lds[i], B, of_lds[i], column, how.vec)
            gpu.barrier()
    else:
        for i in range(first, end):
            total = add(total, values[i], B, columns[i], column, how.vec)
    if piece < pieces:
        result = fx.make_rmem_tensor(how.vec, fx.Float32)
        result.store(total)
        line = fx.logical_divide(fx.slice(C, (row, None)), fx.make_layout(how.vec, 1))
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(32 * how.vec), fx.Float32), result, fx.slice(line, (None, piece)))


@flyc.jit
def spmm(starts: fx.Tensor, columns: fx.Tensor, values: fx.Tensor, B: fx.Tensor, C: fx.Tensor,
         variant: fx.Constexpr[str] = "vec4", stream: fx.Stream = fx.Stream(None)):
    """C = A @ B for A (M, K) in compressed rows and B (K, N), all Float32; "vec4" takes N in whole fours.

    >>> import numpy as np
    >>> from flylab.kernels.sparse.rows import compressed
    >>> a, b = np.diag(np.arange(3, dtype=np.float32)), np.ones((3, 8), np.float32)
    >>> c = np.empty((3, 8), np.float32)
    >>> _ = spmm(*compressed(a), b, c)
    >>> c[:, 0].tolist()
    [0.0, 1.0, 2.0]
    """
    how, N = named(VARIANTS, variant), B.shape[1]
    M = row_count(starts, columns, values)
    if C.shape != (M, N):
        raise ArgumentError(f"A of {M} rows times B {B.shape} into C {C.shape}", hint=f"pass a C of {M, N}")
    pieces = whole_tiles(N, how.vec, "a row of B")
    threads = min(THREADS, fx.ceildiv(pieces, 64) * 64)
    spmm_kernel(starts, columns, values, B, C, threads, how).launch(
        grid=(fx.ceildiv(pieces, threads), M), block=(threads,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    import numpy as np

    return {"spmm": {**compressed(np.eye(64, dtype=np.float32))._asdict(), "B,C": "f32[64,128]"}}
