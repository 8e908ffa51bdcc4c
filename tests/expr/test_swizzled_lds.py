"""Tiles in LDS through a swizzle: what one thread writes another reads; and how few instructions that takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flylab.kernels.gemm.preshuffle import preshuffle_gemm

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from flylab.layout import Swizzle
from tests.layout.test_swizzle import bit_by_bit
from tests.samples import cell, kernel_of

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


TURNS = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, first: fx.Int32):
        t = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 2 * 8 * 64])
        rows = fx.make_composed_layout(fx.Swizzle(3, 3, 3), fx.make_layout((8, 64), (64, 1)))
        one, other = fx.make_view(lds.ptr, rows), fx.make_view(lds.ptr + 512, rows)
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        for i in range(n):
            f = fx.make_rmem_tensor(8, fx.Float16)
            fx.copy(atom, fx.slice(fx.zipped_divide(A, (1, 8)), ((0, None), (i * 8 + t // 8, t % 8))), f)
            fx.copy(atom, f, fx.slice(fx.zipped_divide(one, (1, 8)), ((0, None), (t // 8, t % 8))))
            gpu.barrier()
            # A row of which nothing is known: its offset would need 64 bits, and in LDS has 32.
            place = ((0, None), (first - t // 8, t % 8))
            fx.copy(atom, fx.slice(fx.zipped_divide(one, (1, 8)), place), f)
            fx.slice(fx.zipped_divide(B, (1, 8)), ((0, None), (i * 8 + t // 8, t % 8))).store(f.load())
            one, other = other, one

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, first: fx.Int32):
        k(A, B, n, first).launch(grid=1, block=64)
""")["launch"]


def test_swizzled_buffers_that_change_places() -> None:
    A, B = np.arange(2048, dtype=np.float16).reshape(32, 64), np.zeros((32, 64), np.float16)
    TURNS(A, B, 4, 7)
    assert (B.reshape(4, 8, 64) == A.reshape(4, 8, 64)[:, ::-1]).all()


RECAST = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, out: fx.Tensor, swizzle: fx.Constexpr, shape: fx.Constexpr):
        t = fx.thread_idx.x
        elements = shape[0] * shape[1]
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, elements])
        layout = fx.make_composed_layout(swizzle, fx.make_layout(shape, (shape[1], 1)))
        tile = lds.view(layout)
        for i in range(t, elements, 64):
            tile[i // shape[1], i % shape[1]] = A[i]
        gpu.barrier()
        dtype, bits = out.dtype, out.dtype.dtype.bits
        seen = fx.make_view(fx.recast_iter(dtype, lds.ptr), fx.recast_layout(layout, 16, bits))
        columns = shape[1] * 16 // bits
        for i in range(t, shape[0] * columns, 64):
            out[i] = seen[i // columns, i % columns]

    @flyc.jit
    def launch(A: fx.Tensor, out: fx.Tensor, swizzle: fx.Constexpr, shape: fx.Constexpr):
        k(A, out, swizzle, shape).launch(grid=1, block=64)
""")["launch"]


@pytest.mark.parametrize(("swizzle", "shape", "kind"), [
    (Swizzle(3, 3, 3), (16, 64), np.uint32),
    (Swizzle(3, 3, 3), (16, 64), np.float32),
    (Swizzle(2, 1, 5), (16, 64), np.uint32),
    (Swizzle(2, 3, 3), (8, 32), np.uint8),
    (Swizzle(2, 0, 3), (8, 32), np.uint8),
])  # fmt: skip
def test_a_swizzled_tile_in_elements_of_another_width(swizzle: Swizzle, shape: tuple[int, int], kind: type) -> None:
    """T14: the halves that lie side by side in the tile are the bytes of what is read."""
    A = np.arange(shape[0] * shape[1], dtype=np.float16)
    out = np.zeros(A.nbytes // np.dtype(kind).itemsize, kind)
    RECAST(A, out, swizzle, shape)
    np.testing.assert_array_equal(out.view(np.uint8), A.view(np.uint8))


def test_halves_that_a_swizzle_parts_are_no_whole_float() -> None:
    """T14: refused where no element of the tile's bytes is whole."""
    with pytest.raises(flylab.errors.LayoutError, match=r"S<2,0,3> would have to move bits inside an element"):
        RECAST(np.zeros(1024, np.float16), np.zeros(512, np.uint32), Swizzle(2, 0, 3), (16, 64))


def instructions_of(launcher: Any, *arguments: Any) -> list[str]:
    return [str(i) for i in flyc.compile(launcher, *arguments).isa.kernels["k"].instructions]


def accesses(name: str, instructions: list[str]) -> list[list[int]]:
    """The offsets of the LDS instructions of this name, for each register that holds an address."""
    offsets: dict[str, list[int]] = {}
    for text in instructions:
        if text.startswith(name):
            operands = re.findall(r"v\d+|v\[[\d:]+\]", text)
            address = operands[0] if "write" in name else operands[1]
            found = re.search(r"offset:(\d+)", text)
            offsets.setdefault(address, []).append(int(found[1]) if found else 0)
    return [sorted(each) for each in offsets.values()]


def exclusive_ors(instructions: list[str]) -> list[str]:
    """Those that compute one; gfx950 has it in an instruction of three operands."""
    return [text for text in instructions if re.match(r"v_xor_b32|v_bitop3_b32", text)]


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
    instructions = instructions_of(COPY, A, B, Swizzle(3, 3, 3))
    # Rows 32 apart are beyond what the swizzle reads: one address, and offsets of 32 rows of 128 bytes. The second half
    # of K is in the bits that it changes: two addresses; rows 16 apart are an offset.
    assert accesses("ds_write_b128", instructions) == [[0, 4096, 8192, 12288]]
    assert accesses("ds_read_b128", instructions) == [[0, 2048], [0, 2048]]
    # One to write, one to read, and one of a constant for the other half.
    assert len(exclusive_ors(instructions)) == 3


ADDRESSES = cell("""
    @flyc.kernel
    def k(out: fx.Tensor, dtype: fx.Constexpr, swizzle: fx.Constexpr):
        t = fx.thread_idx.x
        lds = fx.SharedAllocator(1024).allocate(fx.Array[dtype, 512])
        pointer = fx.apply_swizzle(lds.ptr, swizzle)
        tile = fx.make_view(pointer + t // 32 * 256, fx.make_layout((32, 8), (8, 1)))
        for j in fx.range_constexpr(8):
            tile[t % 32, j] = t * 8 + j
        gpu.barrier()
        for j in fx.range_constexpr(8):
            out[0, t * 8 + j] = lds.ptr[t * 8 + j].to(fx.Int32)
            out[1, t * 8 + j] = fx.add_offset(pointer, t * 8)[j].to(fx.Int32)

    @flyc.jit
    def launch(out: fx.Tensor, dtype: fx.Constexpr, swizzle: fx.Constexpr):
        k(out, dtype, swizzle).launch(grid=1, block=64)
""")["launch"]


@pytest.mark.parametrize(("dtype", "width"), [(fx.Int32, 4), (fx.Float16, 2), (fx.Uint64, 8)])
def test_a_pointer_with_a_swizzle_of_its_addresses(dtype: type, width: int) -> None:
    swizzle, out = Swizzle(2, 4, 3), np.zeros((2, 512), np.int32)
    ADDRESSES(out, dtype, swizzle)
    for i in range(512):
        assert out[0, bit_by_bit(swizzle, i * width) // width] == i
    assert out[1].tolist() == list(range(512))


@pytest.mark.parametrize(("call", "message", "hint"), [
    ("fx.apply_swizzle(first, fx.Swizzle(3, 4, 4))", r"'first' .* is not known to be a multiple of 2048 bytes",
     r"fx\.SharedAllocator\(2048\)"),
    ("fx.apply_swizzle(first, fx.Swizzle(2, 1, 2))", r"would part those of one Float32 that 'first' points to",
     "use a base of 2 or more"),
    ("fx.apply_swizzle(A, fx.Swizzle(3, 4, 3))", r"apply_swizzle\(Tensor, Swizzle\)", "give a pointer and a swizzle"),
    ("fx.make_view(fx.apply_swizzle(first, fx.Swizzle(3, 4, 3)), "
     "fx.make_composed_layout(fx.Swizzle(1, 1, 1), fx.make_layout(8)))",
     r"a pointer with the swizzle S<3,2,3> and S<1,1,1>", "give a plain layout"),
])  # fmt: skip
def test_a_swizzle_of_addresses_that_are_not_known(call: str, message: str, hint: str) -> None:
    body = f"lds = fx.SharedAllocator(1024).allocate(fx.Array[fx.Float32, 512])\nfirst = lds.ptr\n{call}"
    with pytest.raises(TraceError, match=message) as refusal:
        kernel_of(body)["launch"](np.zeros(64, np.float32))
    assert re.search(hint, refusal.value.hint or "")


# The copies of a GEMM of one tile of A, with the layouts of its tiled copies and MMA.
TILED = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, swizzle: fx.Constexpr):
        t = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 2 * 128 * 64])
        stages = lds.view(fx.make_composed_layout(swizzle, fx.make_layout((128, 64, 2), (64, 1, 8192))))
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        bring = fx.make_tiled_copy(atom, fx.make_layout(((8, 32), (1, 8)), ((256, 1), (1, 32))), fx.make_tile(32, 64))
        bring = bring.get_slice(t)
        given, brought = bring.partition_S(A), bring.partition_D(stages)
        note(brought.spec.layout)
        f = fx.make_fragment_like(fx.slice(brought, (None, None, None, 1)))
        note(f.spec.layout)
        fx.copy(atom, given, f)
        fx.copy(atom, f, fx.slice(brought, (None, None, None, 1)))
        gpu.barrier()
        along_k = fx.make_layout((4, 4, 2), (1, 8, 4))
        mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
                                fx.make_layout((1, 4, 1), (0, 1, 0)), fx.make_tile(None, None, along_k))
        tile = fx.slice(stages, (None, None, 1))
        take = fx.make_tiled_copy_A(atom, mma).get_slice(t)
        r = mma.get_slice(t).make_fragment_A(tile)
        fx.copy(atom, take.partition_S(tile), take.retile(r))
        fx.copy(atom, take.retile(r), take.partition_S(B))

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, swizzle: fx.Constexpr):
        k(A, B, swizzle).launch(grid=1, block=256)
""")  # fmt: skip


def test_tiled_copies_through_a_swizzle(chip: str) -> None:
    """Layouts as the published wheel prints them, and no more exclusive-ors than there are patterns."""
    A, B = np.arange(8192, dtype=np.float16).reshape(128, 64), np.zeros((128, 64), np.float16)
    seen: list[str] = []
    TILED["note"] = lambda layout: seen.append(str(layout))
    TILED["launch"](A, B, Swizzle(3, 3, 3))
    assert (A == B).all()
    assert seen[0].startswith("S<3,3,3> o ") and seen[0].endswith(" o ((8,1),4,1,2):((1,0),2048,0,8192)")
    assert seen[1] == "((8,1),4,1):((1,0),8,0)"
    instructions = instructions_of(TILED["launch"], A, B, Swizzle(3, 3, 3))
    assert accesses("ds_write_b128", instructions) == [[16384, 20480, 24576, 28672]]
    assert accesses("ds_read_b128", instructions) == [list(range(16384, 32768, 2048))] * 2
    assert len(exclusive_ors(instructions)) == 3


def test_a_whole_gemm_has_three_addresses_in_lds() -> None:
    """A's tiles, in two buffers: one address to write, two to read (the halves of K), all else is offsets."""
    m, n, k = 128, 128, 512
    A, B, C = np.zeros((m, k), np.float16), np.zeros((n, k), np.float16), np.zeros((m, n), np.float16)
    isa = flyc.compile(preshuffle_gemm, A, B, C, m, n, k).isa
    instructions = [str(i) for i in isa.kernels["preshuffle_kernel"].instructions]
    assert len(accesses("ds_write_b128", instructions)) == 1 and len(accesses("ds_read_b128", instructions)) == 2
    assert len(exclusive_ors(instructions)) == 3
