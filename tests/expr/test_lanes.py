"""Lanes of a wave: `lane_id`, shuffles of every mode, width and format, and AMD's own operations; ids and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import FlylabError
from flylab.expr import gpu
from tests.samples import cell, compile_body, kernel_of

MODES = ("xor", "up", "down", "idx")
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
OFFSETS = (0, 1, 2, 3, 5, 8, 16, 31, 32, 63, 64, 1000)
# Two waves; the number of a thread is not its x.
BLOCK, THREADS = (16, 8), 128


@pytest.fixture(params=["gfx942", "gfx950"])
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


def peer(mode: str, thread: int, offset: int, width: int) -> int:
    """The thread whose value a thread gets: its own, where the lane named is not in its group of `width`."""
    first = thread // width * width
    named = {"xor": thread ^ offset, "up": thread - offset, "down": thread + offset, "idx": first + offset}[mode]
    return named if first <= named < first + width else thread


def expected(mode: str, offsets: Any, width: int) -> list[int]:
    return [peer(mode, t, int(o), width) for t, o in enumerate(np.broadcast_to(offsets, THREADS))]


@flyc.kernel
def known_offsets(A: fx.Tensor, R: fx.Tensor, mode: fx.Constexpr[str], width: fx.Constexpr[int]):
    t = fx.thread_idx.y * 16 + fx.thread_idx.x
    value = A[t]
    for n in fx.range_constexpr(len(OFFSETS)):
        R[n, t] = gpu.shuffle(value, OFFSETS[n], width, mode=mode)


@flyc.kernel
def runtime_offsets(A: fx.Tensor, R: fx.Tensor, mode: fx.Constexpr[str], Offsets: fx.Tensor, width: fx.Int32):
    t = fx.thread_idx.y * 16 + fx.thread_idx.x
    by = {"xor": gpu.shuffle_xor, "up": gpu.shuffle_up, "down": gpu.shuffle_down, "idx": gpu.shuffle_idx}[mode]
    R[t] = by(A[t], Offsets[t], width)


@flyc.jit
def launch_known(A: fx.Tensor, R: fx.Tensor, mode: fx.Constexpr[str], width: fx.Constexpr[int]):
    known_offsets(A, R, mode, width).launch(grid=1, block=BLOCK)


@flyc.jit
def launch_runtime(A: fx.Tensor, R: fx.Tensor, mode: fx.Constexpr[str], Offsets: fx.Tensor, width: fx.Int32):
    runtime_offsets(A, R, mode, Offsets, width).launch(grid=1, block=BLOCK)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WIDTHS)
def test_known_offsets(mode: str, width: int, chip: str) -> None:
    result = np.zeros((len(OFFSETS), THREADS), np.int32)
    launch_known(np.arange(THREADS, dtype=np.int32), result, mode, width)
    for found, offset in zip(result, OFFSETS, strict=True):
        assert found.tolist() == expected(mode, offset, width), (mode, width, offset)


@pytest.mark.parametrize("mode", MODES)
def test_offsets_and_widths_of_the_device(mode: str, chip: str) -> None:
    """Each lane may have an offset of its own; a negative one lies outside, as one that is too large."""
    random = np.random.default_rng(0)
    for width in WIDTHS:
        offsets = random.choice([*OFFSETS, -1, -64, 2**31 - 1, -(2**31), *range(64)], THREADS).astype(np.int32)
        result = np.zeros(THREADS, np.int32)
        launch_runtime(np.arange(THREADS, dtype=np.int32), result, mode, offsets, width)
        reached = [t if o < 0 else peer(mode, t, int(o), width) for t, o in enumerate(offsets)]
        assert result.tolist() == reached


FORMATS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
           "bfloat16", "float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mode", ["xor", "idx"])
def test_every_format_keeps_its_bits(name: str, mode: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    bits = np.random.default_rng(1).integers(0, 256, (THREADS, dtype.itemsize), np.uint8)
    result = np.zeros((len(OFFSETS), THREADS), dtype)
    launch_known(bits.view(dtype).ravel(), result, mode, 64)
    for found, offset in zip(result, OFFSETS, strict=True):
        assert np.array_equal(found.view(np.uint8).reshape(bits.shape), bits[expected(mode, offset, 64)])


@pytest.mark.parametrize("dtype, count", [("float16", 4), ("float16", 3), ("bfloat16", 8), ("int8", 5), ("float64", 2),
                                          ("int8", 16), ("float32", 1)])
def test_vectors_move_as_they_are(dtype: str, count: int) -> None:
    names = kernel_of(f"""
        t = fx.thread_idx.x
        v = fx.Vector(fx.slice(A, (t, None)).load(), ({count}, 1))
        moved = gpu.shuffle_down(v, 3, 16)
        assert moved.shape == ({count}, 1) and moved.dtype is v.dtype
        fx.slice(A, (t, None)).store(moved)
    """)
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    bits = np.random.default_rng(2).integers(0, 120, (64, count * kind.itemsize), np.uint8)
    array = bits.copy().view(kind)
    names["launch"](array)
    assert np.array_equal(array.view(np.uint8), bits[expected("down", 3, 16)[:64]])


def test_booleans_and_wide_integers(capsys: pytest.CaptureFixture[str]) -> None:
    names = kernel_of("""
        lane = gpu.lane_id()
        fx.printf("{} {} {} {}", gpu.shuffle_xor(lane < 10, 8), gpu.shuffle_up(fx.Int128(lane) << 100, 1),
                  gpu.shuffle_xor(3.5, 1), gpu.shuffle_idx((lane + 1).to(fx.Int4), 5))
    """)
    names["launch"](np.zeros(64, np.float32))
    assert capsys.readouterr().out.splitlines() == [
        f"{lane ^ 8 < 10} {max(lane - 1, 0) << 100} 3.5 6" for lane in range(64)]


def test_a_wave_sums_itself(chip: str) -> None:
    """The reduction of the reference: 32, 16 ... 1, each lane with every value in it at the end."""
    names = kernel_of("""
        t = fx.thread_idx.x
        val = fx.Float32(A[t])
        for sh in [32, 16, 8, 4, 2, 1]:
            val = val + fx.Float32(gpu.shuffle_xor(val, sh, fx.Int32(64)))
        A[t] = val
    """)
    array = np.random.default_rng(3).integers(0, 1000, 64).astype(np.float32)
    total = array.sum()
    names["launch"](array)
    assert np.all(array == total)


def test_a_known_offset_costs_one_permutation() -> None:
    """No selection where no lane leaves its group, nothing at all where each does, a scalar where all read one."""
    def moves(body: str) -> list[str]:
        texts = [i.mnemonic for i in compile_body(body).isa.kernels["k"].instructions]
        return [m for m in texts if m.startswith(("ds_", "v_cndmask", "v_readlane", "v_cmp"))]

    line = "t = fx.thread_idx.x\nA[t] = gpu.shuffle_{}(A[t], {}, {})"
    assert moves(line.format("xor", 5, 8)) == ["ds_bpermute_b32"]
    assert moves(line.format("xor", 8, 8)) == moves(line.format("idx", 99, 64)) == []
    assert moves(line.format("idx", 7, 64)) == ["v_readlane_b32"]
    assert moves(line.format("up", 1, 64)).count("ds_bpermute_b32") == 1


def test_amds_own_operations(chip: str) -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, R: fx.Tensor):
            t = fx.thread_idx.x
            low = fx.rocdl.ballot(fx.Int64, A[t] > 0)
            again = fx.rocdl.ballot(None, A[t] > 0)
            high = fx.rocdl.ballot(fx.Int64(0).ir_value().type, A[t] < 0)
            R[0, t], R[1, t], R[2, t] = low, high, again
            R[3, t] = fx.rocdl.readfirstlane(fx.Int64, A[t] * 2)
            R[4, t] = fx.rocdl.readlane(None, A[t], 9)
            R[5, t] = fx.rocdl.readlane(fx.Int64, A[t], fx.Int32(fx.rocdl.readfirstlane(None, A[t]) & 63))
            R[6, t] = fx.rocdl.ds_bpermute(fx.Int32, (t * 7) * 4, t)
            R[7, t] = gpu.lane_id() + fx.lane_id()

        @flyc.jit
        def launch(A: fx.Tensor, R: fx.Tensor):
            k(A, R).launch(grid=1, block=128)
    """)
    values = np.random.default_rng(4).integers(-9, 9, 128)
    result = np.zeros((8, 128), np.int64)
    names["launch"](values, result)
    for wave in range(2):
        mine, found = values[64 * wave:64 * wave + 64], result[:, 64 * wave:64 * wave + 64]
        bits = [np.array([sum(int(flag) << n for n, flag in enumerate(flags))], np.uint64).view(np.int64)[0]
                for flags in (mine > 0, mine < 0)]
        assert np.all(found[0] == bits[0]) and np.all(found[1] == bits[1]) and np.all(found[2] == bits[0])
        assert np.all(found[3] == mine[0] * 2) and np.all(found[4] == mine[9])
        assert np.all(found[5] == mine[mine[0] & 63])
        assert np.array_equal(found[6], 64 * wave + (64 * wave + np.arange(64)) * 7 % 64)
        assert np.array_equal(found[7], 2 * np.arange(64))


def test_ids_and_sizes_of_three_dimensions() -> None:
    names = cell("""
        seen = []

        @flyc.kernel
        def k(R: fx.Tensor):
            x, y, z = fx.thread_idx
            seen.append((gpu.known_block_size(), gpu.num_warp_threads(), len(fx.grid_dim), repr(fx.block_idx)))
            R[z, y, x] = fx.thread_idx[0] + 100 * fx.thread_idx[-2] + 1000 * gpu.thread_idx.z + fx.block_dim[2] * 0

        @flyc.jit
        def launch(R: fx.Tensor):
            k(R).launch(grid=1, block=(5, 3, 2))

        @flyc.jit
        def runtime(R: fx.Tensor, n: fx.Int32):
            k(R).launch(grid=1, block=(n, 3, 2))
    """)
    for launcher, block in ((names["launch"], (5, 3, 2)), (lambda r: names["runtime"](r, 5), None)):
        result = np.zeros((2, 3, 5), np.int32)
        launcher(result)
        z, y, x = np.indices((2, 3, 5))
        assert np.array_equal(result, x + 100 * y + 1000 * z)
        assert names["seen"].pop() == (block, 64, 3, "fx.block_idx")


REFUSALS = {
    "a width of 3": ("gpu.shuffle_xor(t, 1, 3)", "gpu.shuffle_xor: a width of 3", "give 1, 2, 4"),
    "a width of 128": ("gpu.shuffle_up(t, 1, 128)", "gpu.shuffle_up: a width of 128", "whole wave"),
    "a width of 0": ("gpu.shuffle_down(t, 1, fx.Int32(0))", "a width of 0", "whole wave"),
    "a width that is a float": ("gpu.shuffle_idx(t, 1, 64.0)", "the width is 64.0", "give 1, 2, 4"),
    "a negative offset": ("gpu.shuffle_up(t, -1)", "an offset of -1 lanes", "the two ways"),
    "an offset that is a float": ("gpu.shuffle_xor(t, A[t])", "the offset is", "an int or an Int32"),
    "an offset that is a truth": ("gpu.shuffle_xor(t, True)", "the offset is True", "an int or an Int32"),
    "an unknown mode": ('gpu.shuffle(t, 1, 64, mode="rotate")', "gpu.shuffle(mode='rotate')", "xor, up, down, idx"),
    "a tensor": ("gpu.shuffle_xor(A, 1)", "is not a number", "give an fx number"),
    "a ballot of a number": ("fx.rocdl.ballot(None, t)", "rocdl.ballot of a Int32", "x != 0"),
    "a ballot of 32 bits": ("fx.rocdl.ballot(fx.Int32, t > 1)", "a result of Int32, and the value has 64", "convert"),
    "a result of another width": ("fx.rocdl.readlane(fx.Int64, t, 1)", "a result of Int64", "convert the result"),
    "a result of no format": ('fx.rocdl.readfirstlane("i33", t)', "no number format", "fx.Int32, or None"),
    "a lane that is a float": ("fx.rocdl.readlane(None, t, 1.5)", "the lane is a Float32", "give an integer"),
    "a dimension that is none": ("fx.thread_idx.w", "fx.thread_idx has no attribute 'w'", ".x, .y and .z"),
    "a fourth dimension": ("fx.block_dim[3]", "fx.block_dim[3]", "0, 1 or 2"),
    "arithmetic with all three": ("fx.thread_idx + 1", "fx.thread_idx has no operator '+'", "fx.thread_idx.x"),
    "a misspelt name": ("gpu.shufle_xor(t, 1)", "fx.gpu has no name 'shufle_xor'", "fx.gpu.shuffle_xor"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_at_its_line(name: str) -> None:
    body, message, hint = REFUSALS[name]
    with pytest.raises(FlylabError) as caught:
        compile_body("t = fx.thread_idx.x\n" + body)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.where is not None and caught.value.where.line == 4


@pytest.mark.parametrize("call", ["fx.lane_id()", "gpu.shuffle_xor(1, 1)", "fx.rocdl.ballot(None, True)",
                                  "gpu.known_block_size()"])
def test_only_in_a_kernel(call: str) -> None:
    with pytest.raises(FlylabError, match="only has a meaning inside an @flyc.kernel"):
        eval(call, {"fx": fx, "gpu": gpu})
