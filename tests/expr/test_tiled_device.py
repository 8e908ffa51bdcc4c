"""Tiled copies and tiled MMAs on the software device, on both chips, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import LayoutError, OutOfBounds, TraceError

CHIPS = ("gfx942", "gfx950")
F32, F16, U8 = np.float32, np.float16, np.uint8


@pytest.fixture(params=CHIPS, autouse=True)
def chip(request: Any) -> Any:
    with flylab.use(request.param):
        yield request.param


def numbers(shape: tuple[int, ...], dtype: Any = F32) -> np.ndarray:
    """Whole numbers that each format holds."""
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@flyc.kernel
def copy_kernel(A: fx.Tensor, B: fx.Tensor, make: fx.Constexpr, buffer: fx.Constexpr):
    """Each block copies its tile: through registers, as the tiled copy divides it."""
    tiled = make(A.dtype)
    if fx.const_expr(buffer):
        A, B = fx.rocdl.make_buffer_tensor(A), fx.rocdl.make_buffer_tensor(B)
    tile = tuple([2 * extent for extent in tiled.extents])
    where = (None, (fx.block_idx.x, fx.block_idx.y))
    source, target = (fx.slice(fx.zipped_divide(t, tile), where) for t in (A, B))
    thread = tiled.get_slice(fx.thread_idx.x)
    part = thread.partition_S(source)
    fragment = fx.make_fragment_like(part)
    fx.copy(tiled.atom, part, fragment)
    fx.copy(tiled.atom, thread.retile(fragment), thread.partition_D(target))


@flyc.jit
def copy(A: fx.Tensor, B: fx.Tensor, make: fx.Constexpr, grid: fx.Constexpr, block: fx.Constexpr, buffer: fx.Constexpr):
    copy_kernel(A, B, make, buffer).launch(grid=grid, block=block)


def by_layouts(bits: int, thr: Any, val: Any) -> Any:
    return lambda dtype: fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(bits), dtype), thr, val)


def by_tv(bits: int, tv: Any, tile: Any) -> Any:
    return lambda dtype: fx.make_tiled_copy(fx.make_copy_atom(fx.UniversalCopy(bits), dtype), tv, tile)


LAYOUT = fx.make_layout
COPIES = {
    "rows of 4": (F32, by_layouts(128, LAYOUT((8, 16), (16, 1)), LAYOUT((1, 4), (1, 1)))),
    "blocks of 2 x 4": (F32, by_layouts(64, LAYOUT((4, 16), (1, 4)), LAYOUT((2, 4), (4, 1)))),
    "single elements": (F32, by_layouts(32, LAYOUT((16, 4), (1, 16)), LAYOUT((2, 3), (1, 2)))),
    "halves": (F16, by_layouts(128, LAYOUT((16, 8), (8, 1)), LAYOUT((1, 8), (1, 1)))),
    "halves, two atoms": (F16, by_layouts(32, LAYOUT((32, 2), (2, 1)), LAYOUT((2, 4), (4, 1)))),
    "bytes": (U8, by_layouts(32, LAYOUT((4, 16), (16, 1)), LAYOUT((3, 4), (4, 1)))),
    "an explicit layout": (F16, by_tv(128, LAYOUT(((8, 32), (1, 8)), ((256, 1), (1, 32))), fx.make_tile(32, 64))),
    "nested threads": (F32, by_tv(64, LAYOUT((((2, 2), 16), (2, 2)), (((1, 64), 2), (32, 128))), (32, 8))),
}


@pytest.mark.parametrize("buffer", (False, True))
@pytest.mark.parametrize("name", COPIES)
def test_a_tiled_copy_copies_all(name: str, buffer: bool) -> None:
    dtype, make = COPIES[name]
    tiled = make({F32: fx.Float32, F16: fx.Float16, U8: fx.Uint8}[dtype])
    shape = tuple(2 * extent * count for extent, count in zip(tiled.extents, (2, 3), strict=True))
    source, target = numbers(shape, dtype), np.zeros(shape, dtype)
    copy(source, target, make, (2, 3), tiled.num_threads, buffer)
    assert (target == source).all()


@flyc.kernel
def transpose_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    """B = the transpose of A, whose rows lie n apart, through swizzled LDS of 16 x 64."""
    wide, narrow = (fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float32) for bits in (128, 32))
    load = fx.make_tiled_copy_tv(wide, fx.make_layout((16, 16), (16, 1)), fx.make_layout((1, 4), (1, 1)))
    store = fx.make_tiled_copy_tv(narrow, fx.make_layout((16, 16), (1, 16)), fx.make_layout((1, 1), (1, 1)))
    whole = fx.make_view(fx.get_iter(A), fx.make_layout((16, n), (n, 1)))
    source = fx.slice(fx.zipped_divide(whole, (16, 64)), (None, (0, fx.block_idx.x)))
    target = fx.slice(fx.zipped_divide(fx.make_view(fx.get_iter(B), fx.make_layout((16, n), (1, 16))), (16, 64)),
                      (None, (0, fx.block_idx.x)))
    pointer = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 1024, 16]).ptr
    shared = fx.make_view(pointer, fx.make_composed_layout(fx.Swizzle(3, 2, 4), fx.make_layout((16, 64), (64, 1))))
    into, out = load.get_slice(fx.thread_idx.x), store.get_slice(fx.thread_idx.x)
    first = into.partition_S(source)
    fragment = fx.make_fragment_like(first)
    fx.copy(load.atom, first, fragment)
    fx.copy(load.atom, fragment, into.partition_D(shared))
    fx.gpu.barrier()
    second = out.partition_S(shared)
    moved = fx.make_fragment_like(second)
    fx.copy(store.atom, second, moved)
    fx.copy(store.atom, moved, out.partition_D(target))


@flyc.jit
def transpose(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    transpose_kernel(A, B, fx.assume(n, div=64)).launch(grid=n // 64, block=256)


def test_a_tiled_copy_through_swizzled_lds_with_a_runtime_width() -> None:
    source, target = numbers((16, 192)), np.zeros((192, 16), F32)
    transpose(source, target, 192)
    assert (target == source.T).all()
    isa = flyc.compile(transpose, source, target, 192).isa
    assert "ds_write_b128" in str(isa), "the partition's alignment is known"


@flyc.kernel
def steps_kernel(A: fx.Tensor, B: fx.Tensor, threads: fx.Constexpr, swizzle: fx.Constexpr):
    """Two steps along K of a 64 x 16 tile into swizzled LDS, a buffer each, and back."""
    tiled = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32),
                                  fx.make_ordered_layout(threads, (1, 0)), fx.make_layout((1, 1), (1, 1)))
    thread = tiled.get_slice(fx.thread_idx.x)
    pointer = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 2 * 64 * 16, 16]).ptr
    stages = fx.make_view(pointer, fx.make_composed_layout(swizzle, fx.make_layout((64, 16, 2), (16, 1, 1024))))
    source, target = thread.partition_S(A), thread.partition_D(B)
    into, out = thread.partition_D(stages), thread.partition_S(stages)
    half = fx.size(source.shape[2]) // 2
    for stage in fx.range_constexpr(2):
        for k in fx.range_constexpr(half):
            fx.copy(tiled, fx.slice(source, (None, None, stage * half + k)), fx.slice(into, (None, None, k, stage)))
    fx.gpu.barrier()
    for stage in range(fx.Int32(2)):
        for k in fx.range_constexpr(half):
            fx.copy(tiled, fx.slice(out, (None, None, k, stage)), fx.slice(target, (None, None, stage * half + k)))


@flyc.jit
def steps(A: fx.Tensor, B: fx.Tensor, threads: fx.Constexpr, swizzle: fx.Constexpr):
    steps_kernel(A, B, threads, swizzle).launch(grid=1, block=threads[0] * threads[1])


@pytest.mark.parametrize("swizzle", [fx.Swizzle(*s) for s in ((0, 2, 3), (1, 2, 3), (2, 2, 3), (3, 1, 4))])
@pytest.mark.parametrize("threads", ((8, 8), (16, 4), (4, 16), (64, 2)))
def test_steps_through_swizzled_lds_and_back(threads: tuple[int, int], swizzle: fx.Swizzle) -> None:
    """T07: the identity, with the stage known, and on the device."""
    source, target = numbers((64, 32)), np.zeros((64, 32), F32)
    steps(source, target, threads, swizzle)
    assert (target == source).all()


@flyc.kernel
def gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, make: fx.Constexpr, bits: fx.Constexpr):
    """C = A x B^T by one block: fragments by retiled copies, C by its partition."""
    tiled, thread = make(), fx.thread_idx.x
    mine = tiled.get_slice(thread)
    a, b, c = mine.make_fragment_A(A), mine.make_fragment_B(B), mine.make_fragment_C(C)
    for make_copy, matrix, fragment in ((fx.make_tiled_copy_A, A, a), (fx.make_tiled_copy_B, B, b)):
        moving = make_copy(fx.make_copy_atom(fx.UniversalCopy(bits), matrix.dtype), tiled).get_slice(thread)
        fx.copy(moving.atom, moving.partition_S(matrix), moving.retile(fragment))
    c.fill(0)
    fx.gemm(tiled, c, a, b, c)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), c, mine.partition_C(C))


@flyc.jit
def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, make: fx.Constexpr, bits: fx.Constexpr, block: fx.Constexpr):
    gemm_kernel(A, B, C, make, bits).launch(grid=1, block=block)


def mma(shape: Any, dtype: Any, layout: Any, permutation: Any = None) -> Any:
    def atom() -> Any:
        return fx.make_mma_atom(fx.UniversalFMA(dtype) if shape is None else fx.rocdl.MFMA(*shape, dtype))

    return lambda: fx.make_tiled_mma(atom(), layout, permutation)


MMAS = {
    "one wave": (F16, 16, mma((16, 16, 16), fx.Float16, LAYOUT((1, 1, 1)))),
    "four waves": (F32, 32, mma((16, 16, 4), fx.Float32, LAYOUT((2, 2, 1), (1, 2, 0)))),
    "waves by rows": (F16, 64, mma((32, 32, 8), fx.Float16, LAYOUT((2, 2, 1), (2, 1, 0)))),
    "permuted K": (F16, 128, mma((16, 16, 16), fx.Float16, LAYOUT((1, 4, 1), (0, 1, 0)),
                                 (None, None, LAYOUT((4, 4, 2), (1, 8, 4))))),
    "permuted M and N": (F16, 64, mma((16, 16, 16), fx.Float16, LAYOUT((2, 1, 1)),
                                      fx.make_tile(LAYOUT((4, 2, 4), (1, 16, 4)), LAYOUT((16, 2), (2, 1)), 16))),
    "one thread an element": (F32, 32, mma(None, fx.Float32, LAYOUT((16, 16, 1), (16, 1, 0)))),
}


@pytest.mark.parametrize("name", MMAS)
def test_a_tiled_mma_multiplies(name: str) -> None:
    dtype, bits, make = MMAS[name]
    tiled = make()
    m, n, k = tiled.tile_size_mnk
    m, n, k = 2 * m, n, 32 if k == 1 else 2 * k
    a, b = numbers((m, k), dtype) % 7, numbers((n, k), dtype)[::-1] % 5
    b = np.ascontiguousarray(b)
    c = np.zeros((m, n), F32)
    gemm(a, b, c, make, bits, tiled.num_threads)
    assert (c == a.astype(F32) @ b.astype(F32).T).all()


@flyc.kernel
def waves_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """Each wave of 64 threads multiplies its own 16 rows by one tiled MMA of a single wave."""
    tid = fx.thread_idx.x
    tiled = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), fx.make_layout((1, 1, 1)))
    mine, wave = tiled.get_slice(tid), tid // 64
    A, C = (fx.slice(fx.zipped_divide(t, (16, t.shape[1])), (None, (wave, 0))) for t in (A, C))
    a, b, c = mine.make_fragment_A(A), mine.make_fragment_B(B), mine.make_fragment_C(C)
    narrow = fx.make_copy_atom(fx.UniversalCopy(64), fx.Float16)
    fx.copy(narrow, mine.partition_A(A), a)
    fx.copy(narrow, mine.partition_B(B), b)
    c.fill(0)
    fx.gemm(tiled, c, a, b, c)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), c, mine.partition_C(C))


@flyc.jit
def waves(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, block: fx.Constexpr):
    waves_kernel(A, B, C).launch(grid=1, block=block)


def test_four_waves_each_with_its_own_tile_do_what_one_wave_does() -> None:
    """T11: a lane is a lane in each wave: the threads of a tiled MMA of one wave wrap."""
    a, b = numbers((64, 32), F16) % 7, numbers((16, 32), F16) % 5
    together, one_by_one = np.zeros((64, 16), F32), np.zeros((64, 16), F32)
    waves(a, b, together, 256)
    for wave in range(4):
        rows = slice(16 * wave, 16 * wave + 16)
        alone = np.zeros((16, 16), F32)
        waves(np.ascontiguousarray(a[rows]), b, alone, 64)
        one_by_one[rows] = alone
    assert (together == one_by_one).all() and (together == a.astype(F32) @ b.astype(F32).T).all()


@flyc.kernel
def transposing_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """C = A x B with B as (K, N), rows of N: read from LDS by transposing reads into the fragment of (N, K)."""
    tid = fx.thread_idx.x
    tiled = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Float16)), fx.make_layout((1, 2, 1)))
    mine, (k, n) = tiled.get_slice(tid), B.shape
    pointer = fx.SharedAllocator().allocate(fx.Array[fx.Float16, n * k, 16]).ptr
    fill = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(64), fx.Float16),
                                 fx.make_layout((16, 8), (8, 1)), fx.make_layout((1, 4), (1, 1))).get_slice(tid)
    fx.copy(fill.atom, fill.partition_S(B), fill.partition_D(fx.make_view(pointer, fx.make_layout((k, n), (n, 1)))))
    fx.gpu.barrier()
    shared = fx.make_view(pointer, fx.make_layout((n, k), (1, n)))
    a, b, c = mine.make_fragment_A(A), mine.make_fragment_B(shared), mine.make_fragment_C(C)
    reads = fx.make_tiled_copy_B(fx.make_copy_atom(fx.rocdl.cdna4.LDSReadTrans(16, 64), fx.Float16), tiled)
    fx.copy(reads.atom, reads.get_slice(tid).partition_S(shared), reads.get_slice(tid).retile(b))
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float16), mine.partition_A(A), a)
    c.fill(0)
    fx.gemm(tiled, c, a, b, c)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), c, mine.partition_C(C))


@flyc.jit
def transposing(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    transposing_kernel(A, B, C).launch(grid=1, block=128)


def test_transposing_reads_of_sixteen_threads_each(chip: str) -> None:
    a, b, c = numbers((16, 64), F16) % 7, numbers((64, 64), F16)[::-1].copy() % 5, np.zeros((16, 64), F32)
    if chip == "gfx942":
        with pytest.raises(TraceError, match="gfx950"):
            transposing(a, b, c)
        return
    transposing(a, b, c)
    assert (c == a.astype(F32) @ b.astype(F32)).all()
    assert "ds_read_b64_tr_b16" in str(flyc.compile(transposing, a, b, c).isa)


@flyc.kernel
def rows_kernel(A: fx.Tensor, B: fx.Tensor, how: fx.Constexpr):
    """A and B have fewer rows and columns than the tile; coordinates say which atoms are outside."""
    tiled = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(64), fx.Float32), fx.make_layout((8, 8), (8, 1)),
                                  fx.make_layout((1, 2), (1, 1)))
    thread = tiled.get_slice(fx.thread_idx.x)
    at = thread.partition_S(fx.make_view((0, 0), fx.make_identity_layout(A.shape)))
    source, target = thread.partition_S(A), thread.partition_D(B)
    fragment = fx.make_fragment_like(source)
    if fx.const_expr(how == "guarded"):
        modes = source.shape[1:]
        inside = fx.make_rmem_tensor((1, *modes), fx.Boolean)
        for i, j in [(i, j) for j in range(modes[1]) for i in range(modes[0])]:
            inside[0, i, j] = fx.elem_less(at(0, i, j), A.shape)
        fx.copy(tiled, source, fragment, pred=inside)
        fx.copy(tiled, fragment, target, pred=inside)
    elif fx.const_expr(how == "whole"):
        fx.copy(tiled, source, fragment)
    else:
        for i in range(fx.Int32(2)):
            fx.copy(tiled, fx.slice(source, (None, i, None)), fx.slice(fragment, (None, 0, None)))
            fx.copy(tiled, fx.slice(fragment, (None, 0, None)), fx.slice(target, (None, i, None)))


@flyc.jit
def rows(A: fx.Tensor, B: fx.Tensor, how: fx.Constexpr):
    rows_kernel(A, B, how).launch(grid=1, block=64)


def test_ten_rows_and_tiles_of_eight() -> None:
    """T08: predicated by coordinates it is right; without it is refused, or where the tile is known on the device only,
    the overrun is reported with the thread and the line."""
    source, target = numbers((10, 32)), np.zeros((10, 32), F32)
    for columns in (24, 32):
        a, b = source[:, :columns].copy(), target[:, :columns].copy()
        rows(a, b, "guarded")
        assert (a == b).all()
    with pytest.raises(TraceError, match=r"tile \(8,16\) of the tiled copy does not divide 'A' \(10,32\)") as caught:
        rows(source, target, "whole")
    assert caught.value.where is not None and "coordinate tensor" in str(caught.value.hint)
    with pytest.raises(OutOfBounds, match="thread") as caught:
        rows(source, target, "each")
    assert "fx.copy(tiled, fx.slice(source, (None, i, None)), " in str(caught.value)


@flyc.kernel
def retiled_kernel(A: fx.Tensor, B: fx.Tensor, load: fx.Constexpr, store: fx.Constexpr):
    """Loaded by one tiled copy, stored by another."""
    threads = fx.make_layout((8, 8), (8, 1))
    first, second = [fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float32), threads,
                                           values).get_slice(fx.thread_idx.x) for bits, values in (load, store)]
    source = first.partition_S(A)
    fragment = fx.make_fragment_like(source)
    fx.copy(first.atom, source, fragment)
    fx.copy(second.atom, second.retile(fragment), second.partition_D(B))


@flyc.jit
def retiled(A: fx.Tensor, B: fx.Tensor, load: fx.Constexpr, store: fx.Constexpr):
    retiled_kernel(A, B, load, store).launch(grid=1, block=64)


@pytest.mark.parametrize(("load", "store"), (
    ((128, LAYOUT((2, 4), (4, 1))), (32, LAYOUT((2, 4), (4, 1)))),
    ((128, LAYOUT((2, 4), (4, 1))), (32, LAYOUT((2, 4), (1, 2)))),
    ((64, LAYOUT((4, 2), (2, 1))), (32, LAYOUT((4, 2), (1, 4)))),
    ((32, LAYOUT((4, 4), (1, 4))), (32, LAYOUT((4, 4), (4, 1)))),
    ((32, LAYOUT(((2, 2), 4), ((8, 1), 2))), (32, LAYOUT((4, 4), (4, 1)))),
))
def test_a_store_of_another_value_layout_takes_the_retiled_fragment(load: Any, store: Any) -> None:
    """T02: it works by retile: each element goes to its own place."""
    source, target = numbers((32, 64)), np.zeros((32, 64), F32)
    retiled(source, target, load, store)
    assert (target == source).all()


def test_a_fragment_of_other_elements_is_not_retiled() -> None:
    """T02: four values along a row are no four values along a column."""
    source, target = numbers((32, 64)), np.zeros((32, 64), F32)
    with pytest.raises(LayoutError, match="gives a thread other elements") as caught:
        retiled(source, target, (128, LAYOUT((1, 4), (1, 1))), (32, LAYOUT((4, 1), (1, 1))))
    assert "retile of 'fragment'" in caught.value.message and "go through LDS" in str(caught.value.hint)
    assert caught.value.where is not None and not target.any()
