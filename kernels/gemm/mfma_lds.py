"""C = A @ B.T with matrix instructions, both operands through swizzled LDS: Float16, BFloat16 and 8-bit floats.

A block takes tiles of A and B, 128 bytes of K at a time: a row of a tile is 8 pieces of 16 bytes, once around 32 banks.
A matrix instruction wants 16 rows at once, so the pieces of a row are exchanged by its number (an XOR of 3 bits), which
spreads them over all banks. Each variant is the one before it and one change:

 * `narrow`: an element a load: many loads, each of them small.
 * `wide`: 16 bytes a load.
 * `direct`: memory straight to LDS, past the registers. The chip puts the lanes of a wave side by side there, so it is
   the loads that are swizzled: a thread reads the piece that belongs where it writes. (gfx942 does 4 bytes a lane.)
 * `double`: two LDS buffers in turn: one is filled while the other is multiplied.
 * `large`: a tile of 256 x 256 for 8 waves: half the bytes of A and B for each multiply.

The tile is made as the transpose of one of C: a thread's neighbours lie in a row of C then, for wide stores. Rows of A
past the last are read as 0 and those of C are not stored, by the bounds of the buffers: any M will do.
"""

from dataclasses import dataclass, replace

from flylab.kernels.common.tiles import named, whole_tiles

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError
from flylab.expr import const_expr, gpu, range_constexpr

ROW, PIECE = 128, 16
"""Bytes of K in a step, and bytes that are exchanged as one."""
WAVE = 64


@dataclass(frozen=True)
class How:
    """What a variant does: elements of C of a block, bytes of a load (0: an element), and ways to LDS."""

    tile_m: int = 128
    tile_n: int = 128
    bytes: int = PIECE
    direct: bool = False
    buffers: int = 1

    @property
    def waves(self):
        """Waves along M and N, whose parts of the tile are as square as can be: 8 for the largest, else 4."""
        count = 8 if self.tile_m * self.tile_n > 256 * 128 else 4
        choices = [(1 << n, count >> n) for n in range(count.bit_length())]
        return min(choices, key=lambda w: (abs(self.tile_m * w[1] - self.tile_n * w[0]), w))

    @property
    def threads(self):
        """Threads of a block."""
        return WAVE * self.waves[0] * self.waves[1]


VARIANTS = {
    "narrow": How(bytes=0),
    "wide": How(),
    "direct": How(direct=True),
    "double": How(direct=True, buffers=2),
    "large": How(tile_m=256, tile_n=256, direct=True, buffers=2),
}


def matrix_instructions(dtype, how):
    """The tiled MMA. Its first operand is B, and lanes take K in pieces of 16 bytes."""
    rows, columns = how.waves
    waves = fx.make_layout((columns, rows, 1), (1, columns, 0))
    if flylab.device().target.arch == "gfx950":     # instructions that take whole pieces, at twice the rate
        wide = fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, dtype) if dtype.width == 8 else fx.rocdl.MFMA(16, 16, 32, dtype)
        return fx.make_tiled_mma(fx.make_mma_atom(wide), waves)
    half = PIECE * 8 // dtype.width // 2            # the first of two instructions takes the first half of each piece
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4 * half, dtype))
    halves = fx.make_layout((half, 4, 2), (1, 2 * half, half))
    return fx.make_tiled_mma(atom, waves, fx.make_tile(None, None, halves))


class Operand:
    """A thread's share of A or B, (rows, K): in memory, on its way in registers, in LDS, and when multiplied."""

    def __init__(self, tiles, rows, how, tid):
        """Tiles in memory, (rows, K of a step, steps)."""
        dtype, self.how, self.rows = tiles.dtype, how, rows
        columns, piece = ROW * 8 // dtype.width, PIECE * 8 // dtype.width
        bits = load_bits(dtype, how)
        atom = fx.rocdl.BufferCopyLDS if how.direct else fx.rocdl.BufferCopy
        self.load, self.write = fx.make_copy_atom(atom(bits), dtype), fx.make_copy_atom(fx.UniversalCopy(bits), dtype)
        self.read = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
        across, threads = ROW * 8 // bits, how.threads
        loads = fx.make_tiled_copy_tv(self.load, fx.make_layout((threads // across, across), (across, 1)),
                                      fx.make_layout((1, bits // dtype.width), (bits // dtype.width, 1)))
        plain = fx.make_layout((rows, columns), (columns, 1))
        swizzled = fx.make_composed_layout(fx.Swizzle(3, piece.bit_length() - 1, 3), plain)
        places = [fx.SharedAllocator().allocate(fx.Array[dtype, rows * columns]).peek() for _ in range(how.buffers)]
        self.lds = [fx.make_view(place.ptr, swizzled) for place in places]
        if how.direct:
            exchanged = tid ^ tid // across % 8 * (PIECE * 8 // bits)
            self.source = loads.get_slice(exchanged).partition_S(tiles)
            # Where the first lane of the wave writes says it for all: as a scalar, computed once for the wave.
            first = fx.rocdl.readfirstlane(fx.Int32, tid // WAVE) * WAVE
            self.targets = [loads.get_slice(first).partition_D(place.view(plain)) for place in places]
        else:
            self.source = loads.get_slice(tid).partition_S(tiles)
            self.targets = [loads.get_slice(tid).partition_D(view) for view in self.lds]
            self.next = fx.make_fragment_like(fx.slice(self.source, (None, None, None, 0)))

    def multiplied_as(self, fragment, tiled_copy, tid):
        """Say which registers it is multiplied from, and the tiled copy that fills them."""
        share = tiled_copy.get_slice(tid)
        self.fragment, self.into = fragment, share.retile(fragment)
        self.sources = [share.partition_S(view) for view in self.lds]

    def fetch(self, k, buffer):
        """Bring step k to a buffer of LDS."""
        source, target = fx.slice(self.source, (None, None, None, k)), self.targets[buffer]
        if const_expr(self.how.direct):
            fx.copy(self.load, source, target)
        else:
            fx.copy(self.load, source, self.next)
            fx.copy(self.write, self.next, target)

    def take(self, buffer):
        """Read what is multiplied from a buffer of LDS."""
        fx.copy(self.read, self.sources[buffer], self.into)


def load_bits(dtype, how):
    """Bits of a load: an element, 16 bytes, or the 4 bytes that gfx942 can load straight into LDS."""
    if how.direct and flylab.device().target.arch == "gfx942":
        return 32
    return 8 * how.bytes or dtype.width


def tiles(tensor, layout, tile, where):
    """The tiles at `where` (None: all of a mode) of a tensor in memory that is seen with this layout."""
    view = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(tensor)), layout)
    return fx.slice(fx.flat_divide(view, fx.make_tile(*tile)), (None, None, *where))


@flyc.kernel
def mfma_lds_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, how: fx.Constexpr):
    """A tile of (how.tile_m, how.tile_n) of C."""
    tid, column, row = gpu.thread_id("x"), gpu.block_id("x"), gpu.block_id("y")
    (M, K), N, step = A.shape, B.shape[0], ROW * 8 // A.dtype.width
    mma, count = matrix_instructions(A.dtype, how), K // step
    share = mma.get_slice(tid)
    a = Operand(tiles(A, fx.make_layout((M, K), (K, 1)), (how.tile_m, step), (row, None)), how.tile_m, how, tid)
    b = Operand(tiles(B, fx.make_layout((N, K), (K, 1)), (how.tile_n, step), (column, None)), how.tile_n, how, tid)
    a.multiplied_as(share.make_fragment_B(a.lds[0]), fx.make_tiled_copy_B(a.read, mma), tid)
    b.multiplied_as(share.make_fragment_A(b.lds[0]), fx.make_tiled_copy_A(b.read, mma), tid)
    tC = tiles(C, fx.make_layout((N, M), (1, N)), (how.tile_n, how.tile_m), (column, row))
    c = share.make_fragment_C(tC)
    c.fill(0)

    def fetch(k, buffer):
        a.fetch(k, buffer)
        b.fetch(k, buffer)
        fx.rocdl.sched_barrier(0)  # LLVM would move the loads down between the multiplies

    def multiply(buffer):
        a.take(buffer)
        b.take(buffer)
        fx.gemm(mma, c, b.fragment, a.fragment, c)

    if const_expr(how.buffers == 1):
        for k in range(count):
            fetch(k, 0)
            gpu.barrier()
            multiply(0)
            gpu.barrier()
    else:
        fetch(0, 0)
        gpu.barrier()
        for pair in range((count - 1) // 2):
            for buffer in range_constexpr(2):
                fetch(2 * pair + buffer + 1, 1 - buffer)
                multiply(buffer)
                gpu.barrier()
        if const_expr(count % 2 == 0):
            fetch(count - 1, 1)
            multiply(0)
            gpu.barrier()
        multiply((count - 1) % 2)

    out = fx.make_fragment_like(c, C.dtype)
    out.store(c.load().to(C.dtype))
    store = fx.make_copy_atom(fx.rocdl.BufferCopy(4 * C.dtype.width), C.dtype)
    share = fx.make_tiled_copy_C(store, mma).get_slice(tid)
    fx.copy(store, share.retile(out), share.partition_D(tC))


@flyc.jit
def mfma_lds(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, variant: fx.Constexpr[str] = "double",
             TILE_M: fx.Constexpr[int] = 0, TILE_N: fx.Constexpr[int] = 0, stream: fx.Stream = fx.Stream(None)):
    """C = A @ B.T for contiguous A (M, K) and B (N, K) of one type, and C (M, N) of 16 or 32 bits, by one of VARIANTS.

    A and B are Float16, BFloat16 or the chip's 8-bit float (Float8E4M3FNUZ on gfx942, Float8E4M3FN on gfx950). K must
    be whole 128 bytes, N whole tiles. TILE_M and TILE_N are multiples of 64, up to 256, instead of the variant's own.
    """
    how, (M, K), N = named(VARIANTS, variant), A.shape, B.shape[0]
    how = replace(how, tile_m=TILE_M or how.tile_m, tile_n=TILE_N or how.tile_n)
    if B.shape[1] != K or C.shape != (M, N):
        raise ArgumentError(f"A {A.shape} times B {B.shape} into C {C.shape}", hint="pass (M, K), (N, K) and (M, N)")
    whole_tiles(K, ROW * 8 // A.dtype.width, "a row of A")
    grid = (whole_tiles(N, how.tile_n, "a row of C"), fx.ceildiv(M, how.tile_m))
    mfma_lds_kernel(A, B, C, how).launch(grid=grid, block=(how.threads,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"mfma_lds": {"A,B": "fp8[128,512]", "C": "f32[128,128]"}}
