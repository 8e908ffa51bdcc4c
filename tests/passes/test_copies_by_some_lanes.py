"""Copies past the registers where only some lanes go: the chip counts from the wave's first lane, on or off."""

from __future__ import annotations

import numpy as np
import pytest

from tests.expr.copying import chips, of, run

SOURCE = "fx.slice(parts(fx.rocdl.make_buffer_tensor(A), 1), (None, {}))"
COPY = f"fx.copy(atom(fx.rocdl.BufferCopyLDS32b(), fx.Float32), {SOURCE}, {{}})"
AROUND = """
tile = lds(fx.Float32, 512)
tile[i], tile[i + 256] = -1.0, -1.0
fx.barrier()
wave = i // 64
{body}
fx.rocdl.s_waitcnt(vmcnt=0)
fx.barrier()
B[i], B[i + 256] = tile[i], tile[i + 256]
"""
OWN = COPY.format("i", "fx.slice(parts(tile, 1), (None, i))")
SECOND = COPY.format("i + 256", "fx.slice(parts(tile, 1), (None, i + 256))")
EACH = COPY.format("i + k * 256", "fx.slice(parts(tile, 1), (None, i + k * 256))")
OF_WAVE = COPY.format("i", "fx.make_view(tile_pointer + wave * 64, fx.make_layout(1, 1))")
T = np.arange(256)
# The body, and which elements of A it moves: of the first 256 and of the second.
BODIES = {
    "a branch": (f"if i % 64 >= 10:\n    {OWN}", (T % 64 >= 10, False)),
    "the other arm": (f"if i % 64 < 10:\n    {SECOND}\nelse:\n    {OWN}", (T % 64 >= 10, T % 64 < 10)),
    "a branch in a branch": (f"if i > 20:\n    if i % 3 == 1:\n        {OWN}", ((T > 20) & (T % 3 == 1), False)),
    "a predicate in a branch": (f"if i % 2 == 1:\n    {OWN[:-1]}, pred=i > 200)", ((T % 2 == 1) & (T > 200), False)),
    "a loop in a branch": (f"if i > 20:\n    for k in range(2):\n        {EACH}", (T > 20, T > 20)),
    "a loop of each lane": (f"for k in range((i + 1) % 3):\n    {EACH}", ((T + 1) % 3 > 0, (T + 1) % 3 > 1)),
    "a while of each lane": (f"k = 0\nwhile k < (i + 1) % 3:\n    {EACH}\n    k += 1",
                             ((T + 1) % 3 > 0, (T + 1) % 3 > 1)),
    "a place of the wave, some lanes": (f"if B[0] == B[1] and i % 64 >= 10:\n    {OF_WAVE}", (T % 64 >= 10, False)),
}


def moved(chip: str, body: str, flags: tuple[np.ndarray | bool, np.ndarray | bool]) -> list[str]:
    given, got = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    if "tile_pointer" in body:
        body = f"tile_pointer = fx.get_iter(tile)\n{body}"
    instructions = run(AROUND.format(body=body), given, got, chip=chip, block=256)
    wanted = np.concatenate([np.broadcast_to(each, 256) for each in flags])
    np.testing.assert_array_equal(got, np.where(wanted, given, -1))
    assert of(instructions, "buffer_load_dword")
    return instructions


@chips
@pytest.mark.parametrize("name", BODIES)
def test_lanes_that_go_alone_reach_their_own_place(chip: str, name: str) -> None:
    moved(chip, *BODIES[name])


WHOLE = {
    "a branch of whole waves": (f"if wave < 2:\n    {OWN}", (T < 128, False)),
    "a place of the wave, in a branch of it": (f"if wave != 1:\n    {OF_WAVE}", (T // 64 != 1, False)),
    "a branch of the block": (f"if fx.block_idx.x == 0:\n    {OWN}", (True, False)),
    "a loop of all": (f"for k in range(2):\n    {EACH}", (True, True)),
    "a bound from memory": (f"for k in range(B[0].to(fx.Int32) + 2):\n    {EACH}", (True, True)),
    "shifted to a wave": (f"if i >> 7 == 1:\n    {OWN}", (T >= 128, False)),
    "the number in the grid": (f"i = i + fx.block_idx.x * 256\nif i // 128 == 1:\n    {OWN}", (T >= 128, False)),
}


@chips
@pytest.mark.parametrize("name", WHOLE)
def test_whole_waves_pay_nothing(chip: str, name: str) -> None:
    assert not of(moved(chip, *WHOLE[name]), "v_mbcnt")


@chips
def test_return_before_the_copy(chip: str) -> None:
    given, got = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    body = f"tile = lds(fx.Float32, 64)\nif i < 20:\n    return\n{OWN}\nfx.rocdl.s_waitcnt(vmcnt=0)\nB[i] = tile[i]"
    run(body, given, got, chip=chip)
    np.testing.assert_array_equal(got, np.where(np.arange(64) >= 20, given, 0))


@chips
def test_a_wave_is_of_one_row_of_a_block_of_64_columns(chip: str) -> None:
    """A thread's row is one for a wave where a row has 64 threads, and not where it has 32."""
    for columns, free in ((64, True), (32, False)):
        given, got = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
        body = f"""
tile, row = lds(fx.Float32, 256), fx.thread_idx.y
i = i + row * {columns}
tile[i] = -1.0
fx.barrier()
if row % 2 == 1:
    {OWN}
fx.rocdl.s_waitcnt(vmcnt=0)
fx.barrier()
B[i] = tile[i]
"""
        instructions = run(body, given, got, chip=chip, block=columns, rows=256 // columns)
        np.testing.assert_array_equal(got, np.where(np.arange(256) // columns % 2 == 1, given, -1))
        assert bool(of(instructions, "v_mbcnt")) is not free
