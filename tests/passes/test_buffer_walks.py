"""Buffers whose extents the device knows, far from their start: against the definition, beyond 2 and 4 GiB too.

The memory is mapped and not allocated: only the pages that are touched exist.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.codegen.isa import Isa
from flylab.errors import OutOfBounds
from tests.emulator.toolchain import CHIPS

SIZE = 5 * 2**30
NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python names from 3.13 on
MAPPED = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
REACH = 2**32 - 16
"""Bytes that a descriptor reaches at most."""
ADDRESSES = 2**47
"""Bytes that a process can address."""
TILE = 4, 64
LANES = range(64)


@flyc.kernel
def exchange_kernel(A: fx.Tensor, OUT: fx.Tensor, m: fx.Int32, k, row: fx.Int32, column: fx.Int32,
                    inner: fx.Constexpr, forward: fx.Constexpr):
    """Each thread reads an element of a row of a tile of an (m, k) tensor, and writes its number there."""
    if fx.const_expr(forward):
        row, column = fx.assume(row, low=0), fx.assume(column, low=0)
    buffer = fx.rocdl.make_buffer_tensor(fx.make_view(fx.get_iter(A), fx.make_layout((m, k), (k, 1))))
    tile = fx.slice(fx.flat_divide(buffer, fx.make_tile(*TILE)), (None, None, row, column))
    OUT[fx.thread_idx.x] = tile[inner, fx.thread_idx.x]
    tile[inner, fx.thread_idx.x] = (fx.thread_idx.x + 1).to(A.dtype)


@flyc.jit
def exchange(A: fx.Tensor, OUT: fx.Tensor, m: fx.Int32, k: fx.Int32, row: fx.Int32, column: fx.Int32,
             known: fx.Constexpr, inner: fx.Constexpr, forward: fx.Constexpr):
    exchange_kernel(A, OUT, m, known or k, row, column, inner, forward).launch(grid=1, block=64)


def check(size: int, m: int, k: int, row: int, column: int, inner: int, known: bool, forward: bool) -> None:
    """The exchange against the definition: what is read, what is written, and that nothing wraps to a place inside."""
    memory = np.frombuffer(MAPPED, f"u{size}")
    moved = TILE[0] * row * k + TILE[1] * column
    rest = [inner * k + lane for lane in LANES]
    places = [moved + step for step in rest]
    inside = [0 <= place < min(m * k, ADDRESSES // size) and (step + 1 if forward else place + 1) * size <= REACH
              for place, step in zip(places, rest, strict=True)]
    wrapped = {place % 2**28 + i * 2**28 for place in places for i in range(20)} - set(places)
    found, wanted = np.full(64, 99, memory.dtype), [100 + lane if inside[lane] else 0 for lane in LANES]
    mapped = range(len(memory))
    touched = [place for place in (*places, *wrapped) if place in mapped]
    for place in touched:
        memory[place] = 250
    for lane, place in zip(LANES, places, strict=True):
        if place in mapped:
            memory[place] = 100 + lane
    arguments = memory, found, m, k, row, column, k if known else 0, inner, forward
    if any(ok and place not in mapped for ok, place in zip(inside, places, strict=True)):
        with pytest.raises(OutOfBounds):
            exchange(*arguments)
    else:
        exchange(*arguments)
        assert found.tolist() == wanted
        for lane, place in zip(LANES, places, strict=True):
            assert place not in mapped or memory[place] == (lane + 1 if inside[lane] else 100 + lane)
        assert all(memory[place] == 250 for place in wrapped if place in mapped)
    for place in touched:
        memory[place] = 0


FAR = [0, 2**31, 2**32, 2**32 + 2**30, SIZE, 2**33, 2**40, 2**46, 2**47, 2**48, 2**49, 2**62]


@pytest.mark.parametrize("chip", CHIPS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_far_tiles(chip: str, data: Any) -> None:
    size, k, known = (data.draw(st.sampled_from(s)) for s in ([1, 2, 4], [1, 96, 4096, 2**16 + 1, 2**24], [1, 0]))
    inner, forward = data.draw(st.integers(0, 3)), data.draw(st.booleans())
    near = st.builds(lambda far, by: min(max(far // (k * size) + by, 0), 2**31 - 1), st.sampled_from(FAR),
                     st.integers(-5, 5))
    m = data.draw(near | st.just(2**31 - 1))
    row = data.draw(near | st.just(m)) // TILE[0]
    row = data.draw(st.sampled_from([row, 2**31 - 1] if forward else [row, -row, -1]))
    column = data.draw(st.sampled_from([0, 1, k // TILE[1], 2**31 - 1] if forward else [0, 1, -1]))
    with flylab.use(chip):
        check(size, m, k, row, column, inner, bool(known), forward)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("m, k, row", [
    (0, 64, 0), (0, 64, 3), (1, 64, 0), (2**31 - 1, 2**24, 0), (2**31 - 1, 2**20, 2**29 - 1), (2**31 - 1, 2**20, 2**24),
    (2**31 - 1, 2**20, 2**23 + 1), (5, 2**28, 1), (1, 2**28, 2**31 - 1),
    (2**26 + 5, 64, 2**24), (2**26 + 5, 64, 2**24 + 1), (2**26 + 5, 64, 2**24 + 2),
])
def test_ends(chip: str, known: bool, m: int, k: int, row: int) -> None:
    """No rows, one row, the last tile, one outside; of as many rows as an Int32 counts."""
    with flylab.use(chip):
        for inner in range(4):
            check(4, m, k, row, 0, inner, known, True)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("m, row", [(8, 0), (8, 1), (1, 2**29 + 1), (2**31 - 1, 2**29 + 1)])
def test_rows_of_4_gib(chip: str, m: int, row: int) -> None:
    """A thread's own part leaves 32 bits, and the way to the tile has 2**63 bytes and more."""
    with flylab.use(chip):
        for inner in range(4):
            check(4, m, 2**30, row, 0, inner, False, True)


def test_a_known_row_costs_no_vector_instruction_a_thread() -> None:
    """The tile moves the descriptor by scalar instructions; no offset of a thread is clamped."""
    arguments = np.zeros(64, "u4"), np.zeros(64, "u4"), 1, 0, 0, 0, 4096, 3

    def mnemonics(forward: bool) -> list[str]:
        (kernel,) = Isa.parse(flyc.compile(exchange, *arguments, forward).code.assembly).kernels.values()
        return [each.mnemonic for each in kernel.instructions]

    def clamps(names: list[str]) -> int:
        return sum(name.startswith("v_cndmask") for name in names)

    assert clamps(mnemonics(True)) == 0 < clamps(mnemonics(False))


@flyc.kernel
def double_kernel(A: fx.Tensor, B: fx.Tensor, m: fx.Int32, k: fx.Constexpr):
    """B = 2 * A, both (m, k), a row of 64 elements of a tile of 4 rows for each of 4 waves."""
    tiles = [fx.rocdl.make_buffer_tensor(fx.make_view(fx.get_iter(each), fx.make_layout((m, k), (k, 1))))
             for each in (A, B)]
    where = None, None, fx.block_idx.x, fx.block_idx.y
    source, target = (fx.slice(fx.flat_divide(each, fx.make_tile(4, 64)), where) for each in tiles)
    wave, lane = fx.thread_idx.x // 64, fx.thread_idx.x % 64
    target[wave, lane] = source[wave, lane] * 2


@flyc.jit
def double(A: fx.Tensor, B: fx.Tensor, m: fx.Int32, k: fx.Constexpr, blocks: fx.Int32):
    double_kernel(A, B, m, k).launch(grid=(blocks, k // 64, 1), block=256)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("m", [0, 1, 4, 37])
def test_any_number_of_rows_and_blocks_outside(chip: str, m: int) -> None:
    """Rows that the tensors do not have are neither read nor written, though the memory goes on."""
    A, B = np.arange(40 * 128, dtype="i4").reshape(40, 128), np.full((40, 128), -1, "i4")
    with flylab.use(chip):
        double(A, B, m, 128, 12)
    assert np.array_equal(B[:m], A[:m] * 2) and (B[m:] == -1).all()
