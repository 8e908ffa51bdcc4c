"""Tiled copies and tiled MMAs on the software device, on both chips, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import OutOfBounds

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
    """A lane is a lane in each wave: the threads of a tiled MMA of one wave wrap."""
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
def rows_kernel(A: fx.Tensor, B: fx.Tensor, guarded: fx.Constexpr):
    """A and B have fewer rows than the tile; coordinates say which elements are outside."""
    tiled = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), fx.make_layout((16, 4), (4, 1)),
                                  fx.make_layout((1, 1), (1, 1)))
    thread = tiled.get_slice(fx.thread_idx.x)
    at = thread.partition_S(fx.make_view((0, 0), fx.make_identity_layout(A.shape)))
    source, target = thread.partition_S(A), thread.partition_D(B)
    for i in fx.range_constexpr(fx.size(source)):
        if fx.const_expr(guarded):
            if fx.elem_less(at(i), A.shape):
                target[0, 0, i] = source[0, 0, i]
        else:
            target[0, 0, i] = source[0, 0, i]


@flyc.jit
def rows(A: fx.Tensor, B: fx.Tensor, guarded: fx.Constexpr):
    rows_kernel(A, B, guarded).launch(grid=1, block=64)


def test_ten_rows_and_a_tile_of_sixteen() -> None:
    source, target = numbers((10, 12)), np.zeros((10, 12), F32)
    rows(source, target, True)
    assert (target == source).all()
    with pytest.raises(OutOfBounds, match="thread") as caught:
        rows(source, target, False)
    assert "rows_kernel" in str(caught.value)
