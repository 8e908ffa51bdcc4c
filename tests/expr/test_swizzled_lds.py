"""Tiles in LDS through a swizzle: what one thread writes another reads; and how few instructions that takes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.layout import Swizzle
from tests.layout.test_swizzle import bit_by_bit
from tests.samples import cell

SWIZZLES = (Swizzle(2, 0, 2), Swizzle(2, 2, 2), Swizzle(3, 2, 3), Swizzle(1, 3, 1), Swizzle(2, 2, -3))
THREADS = ((8, 8), (16, 4), (32, 2), (64, 1))
CHIPS = ("gfx942", "gfx950")


@pytest.fixture(params=CHIPS, autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(f"emulated:{request.param}"):
        yield request.param


# Each thread brings its part of each half (a step along K) to LDS; another thread takes it from there.
TILE = cell("""
    def part(tensor, step, threads, thread):
        rows, columns = threads
        half = fx.slice(fx.zipped_divide(tensor, (64, 8)), (None, (0, step)))
        parts = fx.zipped_divide(half, (64 // rows, 8 // columns))
        return fx.slice(parts, (None, (thread // columns, thread % columns)))

    @flyc.kernel
    def k(A: fx.Tensor, out: fx.Tensor, swizzles: fx.Constexpr, threads: fx.Constexpr, sides: fx.Constexpr):
        t = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64 * 16])
        plain = fx.make_layout((64, 16), (16, 1))
        for n, swizzle in enumerate(swizzles):
            written, read = [lds.view(fx.make_composed_layout(swizzle, plain) if s else plain) for s in sides]
            result = fx.slice(out, (n, None, None))
            for step in fx.range_constexpr(2):
                part(written, step, threads, t).store(part(A, step, threads, t).load())
            gpu.barrier()
            for step in fx.range_constexpr(2):
                part(result, step, threads, 63 - t).store(part(read, step, threads, 63 - t).load())
            gpu.barrier()

    @flyc.jit
    def launch(A: fx.Tensor, out: fx.Tensor, swizzles: fx.Constexpr, threads: fx.Constexpr, sides: fx.Constexpr):
        k(A, out, swizzles, threads, sides).launch(grid=1, block=64)
""")["launch"]


def through_lds(threads: tuple[int, int], *sides: bool) -> tuple[np.ndarray, np.ndarray]:
    """A tile of 64 x 16, and what comes back from LDS with each swizzle, on the sides (written, read) that have it."""
    A = np.arange(1024, dtype=np.float32).reshape(64, 16)
    out = np.zeros((len(SWIZZLES), 64, 16), np.float32)
    TILE(A, out, SWIZZLES, threads, sides)
    return A, out


@pytest.mark.parametrize("threads", THREADS)
def test_a_tile_comes_back_as_it_was(threads: tuple[int, int]) -> None:
    A, out = through_lds(threads, True, True)
    assert (out == A).all()


@pytest.mark.parametrize("sides", [(True, False), (False, True)])
def test_a_swizzle_on_one_side_alone_moves_the_numbers(sides: tuple[bool, bool]) -> None:
    """And moves them as it says: a swizzle is its own inverse, so it does not matter on which side."""
    A, out = through_lds((8, 8), *sides)
    for swizzle, found in zip(SWIZZLES, out, strict=True):
        wanted = [A.flat[bit_by_bit(swizzle, i)] for i in range(1024)]
        assert found.ravel().tolist() == wanted != A.ravel().tolist()


RECAST = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, out: fx.Tensor, swizzle: fx.Constexpr, shape: fx.Constexpr, wide: fx.Constexpr):
        t = fx.thread_idx.x
        elements = shape[0] * shape[1]
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, elements])
        layout = fx.make_composed_layout(swizzle, fx.make_layout(shape, (shape[1], 1)))
        tile = lds.view(layout)
        for i in range(t, elements, 64):
            tile[i // shape[1], i % shape[1]] = A[i]
        gpu.barrier()
        dtype, bits = (fx.Uint32, 32) if wide else (fx.Uint8, 8)
        seen = fx.make_view(fx.recast_iter(dtype, lds.ptr), fx.recast_layout(layout, 16, bits))
        columns = shape[1] * 16 // bits
        for i in range(t, shape[0] * columns, 64):
            out[i] = seen[i // columns, i % columns]

    @flyc.jit
    def launch(A: fx.Tensor, out: fx.Tensor, swizzle: fx.Constexpr, shape: fx.Constexpr, wide: fx.Constexpr):
        k(A, out, swizzle, shape, wide).launch(grid=1, block=64)
""")["launch"]


@pytest.mark.parametrize(("swizzle", "shape", "kind"), [
    (Swizzle(3, 3, 3), (16, 64), np.uint32),
    (Swizzle(2, 1, 5), (16, 64), np.uint32),
    (Swizzle(2, 3, 3), (8, 32), np.uint8),
    (Swizzle(2, 0, 3), (8, 32), np.uint8),
])  # fmt: skip
def test_a_swizzled_tile_in_elements_of_another_width(swizzle: Swizzle, shape: tuple[int, int], kind: type) -> None:
    A = np.arange(shape[0] * shape[1], dtype=np.float16)
    out = np.zeros(A.nbytes // np.dtype(kind).itemsize, kind)
    RECAST(A, out, swizzle, shape, kind is np.uint32)
    assert (out == A.view(kind)).all()


def test_halves_that_a_swizzle_parts_are_no_whole_float() -> None:
    with pytest.raises(flylab.errors.LayoutError, match=r"S<2,0,3> would have to move bits inside an element"):
        RECAST(np.zeros(1024, np.float16), np.zeros(512, np.uint32), Swizzle(2, 0, 3), (16, 64), True)


# A tile of halves, 128 x 64, in granules of 16 bytes: written as a copy from global memory is, read as operands of
# MFMA 16x16 are, by four waves.
COPY = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, swizzle: fx.Constexpr):
        t = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 128 * 64])
        tile = lds.view(fx.make_composed_layout(swizzle, fx.make_layout((128, 64), (64, 1))))
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        rows = fx.slice(fx.logical_divide(tile, fx.make_tile(32, 8)), ((t // 8, None), (None, t % 8)))
        given = fx.slice(fx.logical_divide(A, fx.make_tile(32, 8)), ((t // 8, None), (None, t % 8)))
        for j in fx.range_constexpr(4):
            f = fx.make_rmem_tensor(8, fx.Float16)
            fx.copy(atom, fx.slice(given, (j, None)), f)
            fx.copy(atom, f, fx.slice(rows, (j, None)))
        gpu.barrier()
        operands, results = [fx.logical_divide(x, fx.make_tile(16, 8)) for x in (tile, B)]
        for m in fx.range_constexpr(2):
            for k in fx.range_constexpr(2):
                place = ((t % 16, t // 64 * 2 + m), (None, k * 4 + t % 64 // 16))
                f = fx.make_rmem_tensor(8, fx.Float16)
                fx.copy(atom, fx.slice(operands, place), f)
                fx.copy(atom, f, fx.slice(results, place))

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, swizzle: fx.Constexpr):
        k(A, B, swizzle).launch(grid=1, block=256)
""")["launch"]


def test_a_swizzled_copy_costs_one_exclusive_or_for_each_pattern(chip: str) -> None:
    A, B = np.arange(8192, dtype=np.float16).reshape(128, 64), np.zeros((128, 64), np.float16)
    COPY(A, B, Swizzle(3, 3, 3))
    assert (A == B).all()
    instructions = [str(i) for i in flyc.compile(COPY, A, B, Swizzle(3, 3, 3)).isa.kernels["k"].instructions]
    written = [re.match(r"ds_write_b128 (v\d+), v\[\d+:\d+\](?: offset:(\d+))?", i) for i in instructions]
    read = [re.match(r"ds_read_b128 v\[\d+:\d+\], (v\d+)(?: offset:(\d+))?", i) for i in instructions]
    # Rows 32 apart are beyond what the swizzle reads: one address, and offsets of 32 rows of 128 bytes.
    assert [int(m[2] or 0) for m in written if m] == [0, 4096, 8192, 12288]
    assert len({m[1] for m in written if m}) == 1
    # The second half of K is in the bits that it changes: two addresses; rows 16 apart are an offset.
    assert sorted(int(m[2] or 0) for m in read if m) == [0, 0, 2048, 2048]
    assert len({m[1] for m in read if m}) == 2
    # One to write, one to read, and one of a constant for the other half; gfx950 has them with two operands more.
    assert len([i for i in instructions if re.match(r"v_xor_b32|v_bitop3_b32", i)]) == 3
