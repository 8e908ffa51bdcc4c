"""The users' cases of races in LDS: told with both lines, both threads and the byte, and silent where all is well."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.errors import CheckError
from tests.samples import cell

chips = pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
TEXT = """\
@flyc.kernel(known_block_size=[{block}, 1, 1])
def k(A: fx.Tensor):
    t = gpu.thread_idx.x
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, {size}]).view(fx.make_layout({size}, 1))
{body}

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block={block})
"""
FIRST = 5  # the line of the body's first statement


def launched(body: str, chip: str, monkeypatch: pytest.MonkeyPatch, block: int = 64, size: int = 0) -> np.ndarray:
    """What a kernel of this body leaves in A, where lds is an array of floats."""
    monkeypatch.setenv("FLYLAB_DEVICE", f"emulated:{chip}")
    inner = "\n".join("    " + line for line in body.strip().split("\n"))
    names = cell(TEXT.format(block=block, body=inner, size=size or block))
    A = np.arange(block, dtype=np.float32)
    names["launch"](A)
    return A


def races(body: str, chip: str, monkeypatch: pytest.MonkeyPatch, block: int = 64, size: int = 0) -> list:
    """The findings of a kernel of this body."""
    with pytest.raises(CheckError) as error:
        launched(body, chip, monkeypatch, block, size)
    return [finding for finding in error.value.findings if finding.kind == "race"]


EXCHANGE = """
lds[t] = A[t]
y = lds[t ^ 1] + 1.0
A[t] = y
"""


@chips
@pytest.mark.parametrize("block", [64, 256])
def test_a_neighbour_is_read_with_no_barrier(chip, block, monkeypatch):
    """D03: within a wave too."""
    found = races(EXCHANGE, chip, monkeypatch, block)
    assert [(f.kind, f.details["race"]) for f in found] == [("race", "RAW")]
    race = found[0]
    assert (race.where.line, race.thread, race.details["other"], race.details["byte"]) == (6, (0, 0, 0), (1, 0, 0), 4)
    assert race.block == (0, 0, 0) and "line 5" in race.message and race.hint == \
        "put gpu.barrier() between line 5 and line 6"


@chips
@pytest.mark.parametrize("block", [64, 256])
def test_a_neighbour_is_read_behind_a_barrier(chip, block, monkeypatch):
    got = launched(EXCHANGE.replace("y =", "gpu.barrier()\ny ="), chip, monkeypatch, block)
    np.testing.assert_array_equal(got, (np.arange(block) ^ 1) + 1)


PING_PONG = """
lds[t] = A[t]
gpu.barrier()
x = fx.Float32(0)
for n in range(fx.Int32(A[3]) + 1):
    here = (n % 2) * {block}
    x = x + lds[here + ((t + 64) % {block})]
    lds[({block} - here) + t] = x
    gpu.barrier()
A[t] = x
"""


def ping_pong(block: int) -> np.ndarray:
    """What PING_PONG computes."""
    x, values = np.zeros(block, np.float32), np.arange(block, dtype=np.float32)
    for _ in range(4):
        x = x + np.roll(values, -64)
        values = x
    return x


@chips
def test_two_buffers_in_turn(chip, monkeypatch):
    """D03: the correct version is silent."""
    got = launched(PING_PONG.format(block=128), chip, monkeypatch, 128, 256)
    np.testing.assert_array_equal(got, ping_pong(128))


@chips
def test_a_buffer_that_is_used_again_one_barrier_early(chip, monkeypatch):
    """D03: both buffers are one, so that a wave writes what another one still reads."""
    body = PING_PONG.format(block=128).replace("(128 - here)", "here")
    found = races(body, chip, monkeypatch, 128, 256)
    assert [(f.details["race"], f.where.line, "line 10" in f.message) for f in found] == [("WAR", 11, True)]
    assert found[0].hint == "put gpu.barrier() between line 10 and line 11"
    assert {found[0].thread[0] // 64, found[0].details["other"][0] // 64} == {0, 1}


LOOP = """
for n in range(fx.Int32(A[3])):
    lds[t] = A[t] + n
    gpu.barrier()
    A[t] = lds[{block} - 1 - t]
    {barrier}
"""


@chips
@pytest.mark.parametrize("block", [64, 128])
def test_a_barrier_is_missing_at_the_end_of_a_round(chip, block, monkeypatch):
    """The write of the next round races with the read, whichever wave runs first."""
    found = races(LOOP.format(block=block, barrier=""), chip, monkeypatch, block)
    assert [(f.details["race"], f.where.line) for f in found] == [("WAR", 6)] and "line 8" in found[0].message
    assert found[0].hint == "put gpu.barrier() between line 8 and line 6 of the next round"
    launched(LOOP.format(block=block, barrier="gpu.barrier()"), chip, monkeypatch, block)


@chips
def test_two_threads_write_one_place(chip, monkeypatch):
    """Lanes of one instruction race where they write different values."""
    found = races("lds[t // 2] = A[t]\ngpu.barrier()\nA[t] = lds[t]", chip, monkeypatch)
    assert [(f.details["race"], f.where.line, f.thread, f.details["other"]) for f in found] == [
        ("WAW", 5, (1, 0, 0), (0, 0, 0))]
    assert "in the same instruction" in found[0].message
    launched("lds[t // 64] = A[0]\ngpu.barrier()\nA[t] = lds[0]", chip, monkeypatch)


@chips
def test_a_wave_barrier_orders_the_lanes_of_a_wave_alone(chip, monkeypatch):
    body = EXCHANGE.replace("y =", "fx.rocdl.wave_barrier()\ny =")
    np.testing.assert_array_equal(launched(body, chip, monkeypatch, 256), (np.arange(256) ^ 1) + 1)
    found = races(body.replace("t ^ 1", "t ^ 64"), chip, monkeypatch, 256)
    assert {(f.details["race"], f.where.line) for f in found} == {("RAW", 7)}


@chips
def test_masked_threads_race_with_nobody(chip, monkeypatch):
    """D05: threads that are off do nothing; a thread that reads what is written on the other side is told."""
    launched("if t < 3:\n    lds[t] = A[t]\n    A[t] = lds[t]", chip, monkeypatch, 64)
    found = races("if t < 3:\n    lds[t] = A[t]\n    A[t] = lds[(t + 1) % 3]", chip, monkeypatch, 64)
    assert [(f.details["race"], f.where.line, f.thread, f.details["other"]) for f in found] == [
        ("RAW", 7, (0, 0, 0), (1, 0, 0))]
