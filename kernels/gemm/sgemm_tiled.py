"""C = A @ B in Float32, a tile of C in the registers of each thread: from single multiplies to matrix instructions.

A block of 256 threads makes a tile of C, K in steps; tiles of A and B go from memory through registers to LDS. Each
variant is the one before it and one change:

 * `plain`: 128 x 128 of C, 8 of K at a time, 8 x 8 of C a thread: 64 multiplies for 16 elements read of LDS. Load,
   wait, write to LDS, wait, multiply.
 * `prefetch`: the loads of the next tile are under way, to registers, while this one is multiplied.
 * `ping_pong`: two LDS buffers in turn: the next tile is written while others still read this one; one barrier a tile.
 * `mfma`: matrix instructions of 16 x 16 x 4, a quarter of the tile (64 x 64) for each wave.
 * `tuned`: steps of 16 of K, and tiles small enough that each compute unit has one.

The tiled MMA says what a thread multiplies, so going from multiplies to matrix instructions changes one line. Both
tiles lie in LDS with neighbours along M or N side by side. A thread of the first variants takes two runs of four rows,
64 apart (and columns): 16 lanes read 16 runs next to each other, which lie in all banks. A matrix instruction takes 16
rows of neighbouring k at once; that these are in other banks is what the padding is for.

Rows of A past the last are read as 0 and those of C are not stored, by the bounds of the buffers: any M will do.
"""

from dataclasses import dataclass

from flylab.kernels.common.tiles import matrix_product, named, whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import const_expr, gpu

THREADS, RUN = 256, 4
"""Threads of a block, and neighbours that a thread loads at a time: 128 bits."""
UNITS = 256
"""Compute units to be kept busy: those of MI350X (MI300X has 304)."""


@dataclass(frozen=True)
class How:
    """What a variant does: the side of the tile of C, the step of K, and how it goes from one step to the next."""

    tile: int = 128
    step: int = 8
    mfma: bool = False
    prefetch: bool = True
    buffers: int = 2

    @property
    def stride(self):
        """Floats from one k to the next in LDS: padding of 16 keeps two of them in other banks for 16 lanes each, of 4
        keeps the writes of two lanes with a run along K each apart."""
        return self.tile + (16 if self.mfma else 4)


VARIANTS = {
    "plain": How(prefetch=False, buffers=1),
    "prefetch": How(buffers=1),
    "ping_pong": How(),
    "mfma": How(mfma=True),
    "tuned": How(mfma=True, step=16),
}


def tuned(M, N):
    """The tuned variant for a size: tiles of 128 where there is one for each compute unit, else of 64.

    >>> tuned(1024, 1024).tile, tuned(2048, 2048).tile
    (64, 128)
    """
    return How(mfma=True, step=16, tile=128 if -(-M // 128) * -(-N // 128) >= UNITS else 64)


def multiplier(how):
    """The tiled MMA: 16 x 16 threads with two runs of four rows and columns each, or 2 x 2 waves."""
    if how.mfma:
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32))
        return fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    runs = fx.make_layout((16, RUN, 2), (RUN, 1, 16 * RUN))
    atom = fx.make_mma_atom(fx.UniversalFMA(fx.Float32))
    return fx.make_tiled_mma(atom, fx.make_layout((16, 16, 1), (16, 1, 0)), fx.make_tile(runs, runs, None))


def runs_of_threads(how, along_k):
    """Where the threads lie on a tile (rows, K), and the run of each: neighbouring threads along the runs."""
    if along_k:
        side = how.step // RUN
        return fx.make_layout((THREADS // side, side), (side, 1)), fx.make_layout((1, RUN), (RUN, 1))
    side = how.tile // RUN
    return fx.make_layout((side, THREADS // side), (1, side)), fx.make_layout((RUN, 1), (1, RUN))


class Operand:
    """A thread's share of A or B, seen as (rows, K): in memory, on its way in registers, in LDS, when multiplied."""

    def __init__(self, tiles, how, tid, along_k):
        """Tiles in memory, (rows, K, steps), which threads load in runs of four: along K, or along the rows."""
        self.load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
        self.write = fx.make_copy_atom(fx.UniversalCopy(32 if along_k else 128), fx.Float32)
        self.read = fx.make_copy_atom(fx.UniversalCopy(32 if how.mfma else 128), fx.Float32)
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, how.stride * how.step * how.buffers]).peek()
        self.lds = lds.view(fx.make_layout((how.tile, how.step, how.buffers), (1, how.stride, how.stride * how.step)))
        share = fx.make_tiled_copy_tv(self.load, *runs_of_threads(how, along_k)).get_slice(tid)
        self.source, self.target = share.partition_S(tiles), share.partition_D(self.lds)
        self.next = fx.make_fragment_like(fx.slice(self.source, (None, None, None, 0)))

    def multiplied_as(self, fragment, tiled_copy, tid):
        """Say which registers it is multiplied from, and the tiled copy that fills them."""
        share = tiled_copy.get_slice(tid)
        self.fragment, self.into, self.inside = fragment, share.retile(fragment), share.partition_S(self.lds)

    def fetch(self, k):
        """Start the loads of step k."""
        fx.copy(self.load, fx.slice(self.source, (None, None, None, k)), self.next)

    def stage(self, buffer):
        """Write what was loaded to a buffer of LDS."""
        fx.copy(self.write, self.next, fx.slice(self.target, (None, None, None, buffer)))

    def take(self, buffer):
        """Read what is multiplied of a buffer of LDS."""
        fx.copy(self.read, fx.slice(self.inside, (None, None, None, buffer)), self.into)


def tiles(tensor, layout, tile, where):
    """The tiles at `where` (None: all of a mode) of a tensor in memory that is seen with this layout."""
    view = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(tensor)), layout)
    return fx.slice(fx.flat_divide(view, fx.make_tile(*tile)), (None, None, *where))


@flyc.kernel
def sgemm_tiled_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, how: fx.Constexpr):
    """A tile of C, made as the transpose of one: a thread's neighbours lie in a row of C then, for wide stores."""
    tid, column, row = gpu.thread_id("x"), gpu.block_id("x"), gpu.block_id("y")
    (M, K), N, count = A.shape, B.shape[1], A.shape[1] // how.step
    tile = (how.tile, how.step)
    tA = tiles(A, fx.make_layout((M, K), (K, 1)), tile, (row, None))
    tB = tiles(B, fx.make_layout((N, K), (1, N)), tile, (column, None))
    tC = tiles(C, fx.make_layout((N, M), (1, N)), (how.tile, how.tile), (column, row))
    mma = multiplier(how)
    share = mma.get_slice(tid)
    a, b = Operand(tA, how, tid, along_k=True), Operand(tB, how, tid, along_k=False)
    a.multiplied_as(share.make_fragment_B(fx.slice(a.lds, (None, None, 0))), fx.make_tiled_copy_B(a.read, mma), tid)
    b.multiplied_as(share.make_fragment_A(fx.slice(b.lds, (None, None, 0))), fx.make_tiled_copy_A(b.read, mma), tid)
    c = share.make_fragment_C(tC)
    c.fill(0)

    def each(what, number):
        """One of `fetch`, `stage` and `take` of both operands."""
        for operand in (a, b):
            getattr(operand, what)(number)

    each("fetch", 0)
    each("stage", 0)
    gpu.barrier()
    for k in range(count - 1):
        if const_expr(how.prefetch):
            each("fetch", k + 1)
            fx.rocdl.sched_barrier(0)  # LLVM would move the loads down to where they are used, to save registers
        each("take", k % how.buffers)
        fx.gemm(mma, c, b.fragment, a.fragment, c)
        if const_expr(how.buffers == 1):
            gpu.barrier()
        if const_expr(not how.prefetch):
            each("fetch", k + 1)
        each("stage", (k + 1) % how.buffers)
        gpu.barrier()
    each("take", (count - 1) % how.buffers)
    fx.gemm(mma, c, b.fragment, a.fragment, c)

    store = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
    out = fx.make_tiled_copy_C(store, mma).get_slice(tid)
    fx.copy(store, out.retile(c), out.partition_D(tC))


@flyc.jit
def sgemm_tiled(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, variant: fx.Constexpr[str] = "tuned",
                stream: fx.Stream = fx.Stream(None)):
    """C = A @ B for contiguous Float32 matrices (M, K), (K, N) and (M, N), by one of VARIANTS.

    N must be whole tiles of 128 ("tuned" takes 64 where it is), K whole steps of 8 (16).

    >>> import numpy as np
    >>> a, b, c = np.ones((70, 32), np.float32), np.ones((32, 128), np.float32), np.empty((70, 128), np.float32)
    >>> _ = sgemm_tiled(a, b, c)
    >>> bool((c == 32).all())
    True
    """
    M, N, K = matrix_product(A, B, C)
    how = tuned(M, N) if variant == "tuned" else named(VARIANTS, variant)
    whole_tiles(K, how.step, "a row of A")
    grid = (whole_tiles(N, how.tile, "a row of B"), fx.ceildiv(M, how.tile))
    sgemm_tiled_kernel(A, B, C, how).launch(grid=grid, block=(THREADS,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"sgemm_tiled": {"A,B,C": "f32[128,128]"}}
