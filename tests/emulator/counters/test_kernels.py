"""What the counters say of ready kernels: conflicts without their swizzle, operations, and the bytes they must move."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from flylab.kernels.copy import transpose_swizzled
from flylab.kernels.elementwise.vector_add import vector_add
from flylab.kernels.gemm import preshuffle
from flylab.kernels.gemm.tiled_mma import TILE_M, TILE_N, tiled_mma

import flylab
import flylab.expr as fx
from flylab.emulator.counters.results import Counters


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


def counted(launch: Callable[..., Any], *args: Any, **named: Any) -> Counters:
    """The counters of the one kernel that a launcher launches."""
    with flylab.watch(check=None, counters=True):
        (report,) = launch(*args, **named).reports
    assert isinstance(report.counters, Counters)
    return report.counters


def operand(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (rows, columns)).astype(np.float16)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_transpose_has_conflicts_without_its_swizzle_alone(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(0).random((128, 256)).astype(dtype), np.zeros((256, 128), dtype)
    with_it = counted(transpose_swizzled.transpose, a, b, 128, 256)
    assert with_it.totals.lds_conflicts == 0
    assert (with_it.bytes_read, with_it.bytes_written, with_it.bytes_of("lds")) == (a.nbytes, a.nbytes, 2 * a.nbytes)

    def plain(width: int, stride: Any) -> Any:
        side = transpose_swizzled.tile_side(width)
        return fx.make_layout((side, side), stride)

    monkeypatch.setattr(transpose_swizzled, "swizzled", plain)
    without = counted(transpose_swizzled.transpose, a, b, 128, 256)
    assert np.array_equal(b, a.T)
    # As the kernel's text has it: 8 lanes read the same column of rows that all begin at the same bank.
    (line,) = [row for row in without.by_line() if row.counts.lds_conflicts]
    assert line.where is not None and "lds_elements, across" in line.where.text
    assert line.counts.lds_cycles == 8 * line.counts.lds_phases


def test_the_preshuffle_gemm_has_more_conflicts_without_its_swizzle(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = operand(64, 256), operand(128, 256, 1), np.zeros((64, 128), np.float16)
    arguments = (a, preshuffle.shuffle_b(b), c, 64, 128, 256)
    with_it = counted(preshuffle.preshuffle_gemm, *arguments, TILE_M=32, TILE_N=64)

    def plain(rows: int, piece: int) -> Any:
        columns = preshuffle.PIECES * piece
        return fx.make_layout((rows, columns, 2), (columns, 1, rows * columns))

    monkeypatch.setattr(preshuffle, "lds_layout", plain)
    without = counted(preshuffle.preshuffle_gemm, *arguments, TILE_M=32, TILE_N=64)
    np.testing.assert_allclose(c.astype(float), a.astype(float) @ b.astype(float).T, atol=0.05)
    assert with_it.totals.lds_conflicts == 0 < without.totals.lds_conflicts
    assert with_it.totals.lds_accesses == without.totals.lds_accesses
    assert with_it.totals.operations == without.totals.operations == 2 * 64 * 128 * 256


def test_a_gemm_has_2mnk_operations_and_moves_what_its_waves_take() -> None:
    m, n, k = 128, 192, 96
    a, b, c = operand(m, k), operand(n, k, 1), np.zeros((m, n), np.float32)
    counters = counted(tiled_mma, a, b, c, m, n, k)
    assert counters.totals.operations == 2 * m * n * k
    # Of a block's 2 x 2 waves, two take each row of A and two each row of B.
    assert counters.bytes_read == 2 * (a.nbytes * (n // TILE_N) + b.nbytes * (m // TILE_M))
    assert counters.bytes_written == c.nbytes
    assert counters.workgroups == m // TILE_M * (n // TILE_N) and counters.waves == 4 * counters.workgroups


def test_rows_past_the_last_are_clamped_and_move_no_bytes() -> None:
    m, n, k = 70, 64, 32
    a, b, c = operand(m, k), operand(n, k, 1), np.zeros((m, n), np.float32)
    counters = counted(tiled_mma, a, b, c, m, n, k)
    assert counters.bytes_written == c.nbytes
    assert counters.bytes_read == 2 * (a.nbytes + 2 * b.nbytes)
    lanes_of_c, lanes_of_a = (2 * TILE_M - m) * n, (2 * TILE_M - m) * k * 2 * a.itemsize
    pieces = [row for row in counters.by_instruction() if row.counts.clamped and row.counts.operations == 0]
    size = {row.number: counters.effects[row.number].bytes for row in pieces}
    assert sum(row.counts.clamped * size[row.number] for row in pieces) == 4 * lanes_of_c + lanes_of_a


@pytest.mark.parametrize("odd", [0, 4, 68])
def test_coalescing_hangs_on_where_an_array_begins_in_its_allocation_and_not_on_the_host(odd: int) -> None:
    # Of whole pages: where a part of it is rounder on the host by chance, it is as round on the device.
    memory = [np.frombuffer(mmap.mmap(-1, 4096 * 5), np.uint8) for _ in range(3)]
    a, b, c = (m[odd:odd + 4096 * 4].view(np.float32) for m in memory)
    counters = counted(vector_add, a, b, c, VEC=1)
    assert (counters.bytes_read, counters.bytes_written) == (2 * a.nbytes, a.nbytes)
    # Of 32 lanes that fill a line, four share the quad that reaches over its end, where their 16 bytes begin odd.
    quads = 3 * 4096 // 4
    assert counters.totals.least_accesses == quads
    assert counters.totals.accesses == quads + (3 * 4096 // 32 if odd else 0)
    assert counters.totals.lines == 3 * 4096 // 64 * (3 if odd else 2)
