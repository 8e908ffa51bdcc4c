"""Going forward and back gives the states of fresh runs, and a plain launch's results at the end."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.emulator.debugger import snapshots
from flylab.emulator.debugger.debugger import Debugger
from tests.emulator.debugger.kernels import KERNELS, LOOP, ZEROS, numbers, program, state
from tests.emulator.toolchain import CHIPS

BLOCK = 192
_programs = cache(program)


@pytest.fixture(autouse=True)
def close_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many snapshots, thinned often, in runs that are short."""
    monkeypatch.setattr(snapshots, "FIRST_INTERVAL", 32)
    monkeypatch.setattr(snapshots, "INTERVAL_PER_PAGE", 0)
    monkeypatch.setattr(snapshots, "MOST", 16)


def begun(kernel: str, chip: str) -> Debugger:
    return _programs(KERNELS[kernel], chip).debug(grid=1, block=BLOCK, args=[ZEROS])


@cache
def fresh(kernel: str, chip: str, time: int, wave: int) -> dict[str, Any]:
    """The state at a time of a run that only went forward."""
    debugger = begun(kernel, chip).goto(time)
    debugger.wave = wave
    return state(debugger)


@cache
def length(kernel: str, chip: str) -> int:
    return begun(kernel, chip).finish().time


def move(debugger: Debugger, what: str, wave: int, amount: int, end: int) -> None:
    debugger.wave = wave
    if what == "goto":
        debugger.goto(amount * end // 1000)
    elif what == "finish":
        debugger.finish()
    elif what == "step" and not debugger.ended:
        debugger.step(1 + amount % 70)
    elif what == "back" and debugger.steps:
        debugger.back(1 + amount % min(debugger.steps, 70))
    elif what == "changes":
        debugger.changes()


MOVES = st.tuples(st.sampled_from(["step", "back", "goto", "finish", "changes", "step", "back"]),
                  st.integers(0, BLOCK // 64 - 1), st.integers(0, 1000))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=12, deadline=None)
@given(moves=st.lists(MOVES, min_size=4, max_size=12))
def test_random_walks_meet_the_states_of_fresh_runs(kernel: str, chip: str, moves: list[Any]) -> None:
    debugger, end = begun(kernel, chip), length(kernel, chip)
    for what, wave, amount in moves:
        move(debugger, what, wave, amount, end)
        assert state(debugger) == fresh(kernel, chip, debugger.time, debugger.wave)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_step_back_undoes_a_step(kernel: str, chip: str) -> None:
    debugger = begun(kernel, chip)
    debugger.wave = 1
    seen = []
    while len(seen) < 60 and not debugger.ended:
        seen.append(state(debugger))
        debugger.step()
    assert len(seen) > 20
    for before in reversed(seen):
        assert debugger.steps == before["where 1"][1] + 1
        assert state(debugger.back()) == before


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("back", [0, 500])
def test_the_end_is_that_of_a_plain_launch(kernel: str, chip: str, back: int, monkeypatch: Any) -> None:
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "1")
    array, given_ = numbers(), numbers()
    report = _programs(KERNELS[kernel], chip).launch(grid=1, block=BLOCK, args=[array])
    debugger = _programs(KERNELS[kernel], chip).debug(grid=1, block=BLOCK, args=[given_]).finish()
    if back:
        debugger.goto(debugger.time - back).finish()
    assert debugger.finished and debugger.time == report.instructions
    assert np.array_equal(debugger.result()["a0"], array) and array.any()
    assert not given_.any()


@pytest.mark.parametrize("chip", CHIPS)
def test_a_wave_of_100_000_instructions(chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many registers as there are, and snapshots as they are by default."""
    monkeypatch.undo()
    made = program(LOOP, chip, next_free_vgpr=512, accum_offset=256)
    debugger = made.debug(grid=1, block=64, args=[ZEROS]).finish()
    end = debugger.time
    assert end > 99_990
    history = debugger._session.history
    gaps = [later.time - one.time for one, later in zip(history.snapshots, history.snapshots[1:], strict=False)]
    print(f"{history.nbytes} bytes in {len(history.snapshots)} snapshots, at most {max(gaps)} instructions apart")
    assert history.nbytes < 4 << 20 and max(gaps) <= 4096
    for time in (end - 1, 3, 77_777, 50_000):
        there = state(debugger.goto(time))
        debugger.step().back()
        assert state(debugger) == there == state(made.debug(grid=1, block=64, args=[ZEROS]).goto(time))
    assert history.nbytes < 4 << 20


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_write_is_counted(kernel: str, chip: str) -> None:
    """What the handlers themselves count as changes of memory, one by one, is among the counted instructions."""
    debugger = begun(kernel, chip)
    session, changed = debugger._session, 0
    for _ in range(min(length(kernel, chip), 1500)):
        changes, writes = session.worker.changes, sum(session.writes)
        debugger.goto(debugger.time + 1)
        changed += session.worker.changes != changes
        assert session.worker.changes == changes or sum(session.writes) > writes
    assert changed


def test_snapshots_keep_to_their_room() -> None:
    """A workgroup that writes other bytes all over its registers at every step."""
    lines = "".join(f"  v_mad_u32_u24 v{n}, v{n}, v0, s8\n" for n in range(2, 250))
    body = f"  s_movk_i32 s8, 400\n.Lloop:\n{lines}  s_sub_u32 s8, s8, 1\n  s_cmp_lg_u32 s8, 0\n" \
           "  s_cbranch_scc1 .Lloop\n  s_endpgm"
    made = program(body, "gfx942", next_free_vgpr=256, accum_offset=256)
    debugger = made.debug(grid=1, block=512, args=[numbers()], room=8 << 20)
    debugger.goto(150_000)
    history = debugger._session.history
    first = sum(len(page) for page in {id(p): p for pages in history.snapshots[0].pages for p in pages}.values())
    assert history.nbytes - first <= max(8 << 20, snapshots.FEWEST * 8 * 256 * 256)
    assert debugger.back(9).time < 150_000
