"""What the debugger refuses, in the user's words and with a way out; it stays where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flylab.emulator.debugger import session
from flylab.emulator.debugger.debugger import Debugger
from flylab.errors import ArgumentError, DebugError
from tests.emulator.debugger.kernels import LOOP, START, numbers, program


@pytest.fixture
def debugger() -> Debugger:
    return program(LOOP.replace("9999", "9"), "gfx942").debug(grid=1, block=100, args=[numbers()]).goto(20)


def set_wave(debugger: Debugger, number: int) -> None:
    debugger.wave = number


CASES: list[tuple[Callable[[Debugger], Any], str, str]] = [
    (lambda d: d.vgpr(16), "no register v16", "v0 to v15"),
    (lambda d: d.vgpr(-1), "no register v-1", "v0 to v15"),
    (lambda d: d.agpr(0), "no register a0", "no registers a"),
    (lambda d: d.sgpr(102), "no register s102", "s0 to s101"),
    (lambda d: d.vgpr(1, "zz"), "cannot be seen as 'zz'", "float32"),
    (lambda d: d.vgpr(1, "float64"), "has 32 bits a lane", "float32"),
    (lambda d: d.vgpr(1, object), "cannot be seen as <class 'object'>", "float32"),
    (lambda d: d.register("v[14:16]"), "no register v16", "v0 to v15"),
    (lambda d: d.register("x1"), "'x1' is no register", "s0, vcc"),
    (lambda d: d.register("v[3:2]"), "'v[3:2]' is no register", "v[2:3]"),
    (lambda d: d.lane(64), "no lane 64", "lanes 0 to 63"),
    (lambda d: d.lane(-1), "no lane -1", "lanes 0 to 63"),
    (lambda d: set_wave(d, 2), "no wave 2: a block of 100 threads has 2", "numbered 0 to 1"),
    (lambda d: d.goto(100_000), "no time 100000: the workgroup ended after", "finish()"),
    (lambda d: d.goto(-1), "no time -1", "start()"),
    (lambda d: d.back(21), "has executed 20 instructions, and is asked to go back 21", "start()"),
    (lambda d: d.back(0), "is 0, and 1 or more", "other way"),
    (lambda d: d.step(-1), "is -1, and 1 or more", "other way"),
    (lambda d: d.run_to(3, visit=0), "the number of visits is 0", "other way"),
    (lambda d: d.run_to(), "one place is needed", "run_to(line=12)"),
    (lambda d: d.run_to(3, pc=4), "one place is needed", "run_to(line=12)"),
    (lambda d: d.run_to(15), "no instruction 15", "0 to 14"),
    (lambda d: d.run_to(".Lx"), "no label '.Lx'", ".Lloop"),
    (lambda d: d.run_to(""), "no label ''", "listing()"),
    (lambda d: d.run_to("v_lshlref"), "none of its instructions begins so", "v_lshlrev"),
    (lambda d: d.run_to(1), "wave 0 does not come there from here on: it ends at time", "run_back_to()"),
    (lambda d: d.listing(0), "is 0, and 1 or more", ""),
    (lambda d: d.run_to(pc=0x9), "begins at byte 0x9", "0x8: v_lshlrev"),
    (lambda d: d.run_to(line=9), "line 9 has no code", "7, 8, 10, 12"),
    (lambda d: d.run_to(line=1000), "line 1000 has no code", "21, 22"),
    (lambda d: d.run_to(line=("other.py", 3)), "no line of the file 'other.py'", "assembly"),
    (lambda d: d.run_to(".Lloop", visit=9), "comes there 7 times from here on, and not 9: it ends", "run_back_to()"),
    (lambda d: d.run_back_to(".Lloop", visit=3), "was there 2 times before, and not 3", "run_to()"),
    (lambda d: d.run_back_to(0, visit=2), "was there 1 times before, and not 2", "run_to()"),
    (lambda d: d.last_write("v16"), "no register v16", "v0 to v15"),
    (lambda d: d.last_write("v1", 64), "no lane 64", "lanes 0 to 63"),
    (lambda d: d.path(0), "is 0, and 1 or more", ""),
    (lambda d: d.memory("b"), "no array argument 'b'", "a0"),
    (lambda d: d.changes(since=21), "time 21 is not before now, 20", "since=0"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_is_refused(debugger: Debugger, number: int) -> None:
    call, says, hint = CASES[number]
    with pytest.raises(DebugError) as caught:
        call(debugger)
    assert says in caught.value.message and hint in (caught.value.hint or "")
    assert debugger.time == debugger.steps == 20


def test_an_ended_wave_makes_no_step(debugger: Debugger) -> None:
    debugger.finish()
    with pytest.raises(DebugError, match="wave 0 has ended"):
        debugger.step()
    with pytest.raises(DebugError, match="wave 0 has ended"):
        debugger.run_to(3)


@pytest.mark.parametrize("value", [1.5, "3", None, True])
def test_numbers_are_whole(debugger: Debugger, value: Any) -> None:
    for call in (debugger.goto, debugger.step, debugger.vgpr, debugger.lane):
        with pytest.raises(ArgumentError, match="whole numbers"):
            call(value)


def test_a_workgroup_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MOST", 50_000)
    debugger = program(f"{START}.Lspin:\n  s_nop 0\n  s_branch .Lspin\n  s_endpgm", "gfx942").debug(
        grid=1, block=128, args=[numbers()])
    with pytest.raises(DebugError, match=r"wave 0 at 's_(nop 0|branch .Lspin)', wave 1 at") as caught:
        debugger.goto(7).finish()
    assert "spin" in (caught.value.hint or "") and debugger.time == 7
    assert debugger.step(1000).steps == 1007


@pytest.mark.parametrize("room", ["much", None, 1.5])
def test_room_is_a_number(room: Any) -> None:
    with pytest.raises(ArgumentError, match="room is"):
        program(LOOP, "gfx942").debug(grid=1, block=64, args=[numbers()], room=room)


@pytest.mark.parametrize("place, says", [(4, "no block 4: the grid has 4"), ((0, 2), r"no block \(0, 2\)"),
                                         ((0, 0, 0, 0), r"no block \(0, 0, 0, 0\)")])
def test_a_workgroup_that_is_not_there(place: Any, says: str) -> None:
    with pytest.raises(DebugError, match=says):
        program(LOOP, "gfx942").debug(grid=(2, 2), block=64, args=[numbers()], at_block=place)


def test_ctrl_c_leaves_the_time_as_it_was(debugger: Debugger, monkeypatch: pytest.MonkeyPatch) -> None:
    before = debugger.state()
    real, calls = debugger._session._next_turn, []

    def interrupted() -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real()

    monkeypatch.setattr(debugger._session, "_next_turn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        debugger.finish()
    assert debugger.time == 20 and (debugger.state().vectors == before.vectors).all()
    assert (debugger.memory("a0") == before.memory["a0"]).all()
