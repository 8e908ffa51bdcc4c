"""Looking back: who wrote a register last, the way here, and what is on its way still; against a Python replay."""

from __future__ import annotations

import pytest

from flylab.codegen.assembly.effects import effects
from flylab.emulator.debugger.debugger import Debugger
from tests.emulator.debugger.kernels import KERNELS, START, numbers, program
from tests.emulator.toolchain import CHIPS


def walked(debugger: Debugger, wave: int, most: int = 400) -> list[tuple[int, int, int]]:
    """(time, number of the instruction, EXEC) before each step of a wave."""
    debugger.start().wave = wave
    found = []
    while not debugger.ended and len(found) < most:
        assert debugger.instruction is not None
        found.append((debugger.time, debugger.instruction.index, debugger.exec))
        debugger.step()
    return found


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name, lane", [("v3", None), ("v4", 5), ("v4", 0), ("s8", None), ("vcc", None), ("exec", None),
                                        ("v6", None), ("v9", None)])
def test_the_last_write_is_that_of_a_replay(chip: str, name: str, lane: int | None) -> None:
    debugger = program(KERNELS["divergent"], chip).debug(grid=1, block=192, args=[numbers()])
    steps = walked(debugger, 1)
    before = debugger.time
    wanted = None
    for step, (_, number, exec_) in enumerate(steps):
        instruction = debugger._kernel.instructions[number]
        effect = effects(instruction, debugger._kernel.target)
        spans = {name: ("v", int(name[1:]))} if name[0] == "v" and name != "vcc" else {
            "s8": ("s", 8), "vcc": ("s", 106), "exec": ("s", 126)}
        file, first = spans[name]
        lanes = (1 << 64) - 1 if lane is None else 1 << lane
        if any(s.file == file and s.first <= first < s.first + s.count for s in effect.writes) and (
                file == "s" or exec_ & lanes):
            wanted = step, instruction
    found = debugger.last_write(name, lane)
    assert (found and (found.step, found.instruction)) == wanted
    assert debugger.time == before and (wanted is None) == (name == "v9")
    if found:
        debugger.goto(found.time)
        assert debugger.steps == found.step and debugger.instruction == found.instruction


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_path_is_that_of_a_replay(chip: str, kernel: str) -> None:
    debugger = program(KERNELS[kernel], chip).debug(grid=1, block=192, args=[numbers()])
    steps = walked(debugger, 1, 150)
    time = debugger.time
    path = debugger.path(40)
    assert [(m.step, m.instruction.index) for m in path] == [
        (step, number) for step, (_, number, _) in enumerate(steps)][-40:]
    assert debugger.time == time and len(debugger.path(1000)) == len(steps)
    for moment in path[::7]:
        debugger.goto(moment.time)
        assert (debugger.steps, debugger.instruction) == (moment.step, moment.instruction)


@pytest.mark.parametrize("chip", CHIPS)
def test_what_is_on_its_way(chip: str) -> None:
    """By hand: loads and stores are queued by counter, and a wait takes the oldest ones away."""
    body = START + """
  global_load_dwordx2 v[2:3], v1, s[4:5]
  global_load_dword v4, v1, s[4:5] offset:4
  global_store_dword v1, v0, s[4:5]
  ds_write_b32 v1, v0
  ds_read_b32 v5, v1
  s_waitcnt vmcnt(2)
  s_nop 0
  s_waitcnt lgkmcnt(1)
  flat_load_dword v6, v[8:9]
  s_waitcnt vmcnt(1)
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_endpgm"""
    first = [("lgkmcnt", ("s[4:5]",), 0)]
    loads = [("vmcnt", ("v[2:3]",), 5), ("vmcnt", ("v4",), 4), ("vmcnt", (), 3)]
    lds = [("lgkmcnt", (), 2), ("lgkmcnt", ("v5",), 1)]
    debugger = program(body, chip).debug(grid=1, block=64, args=[numbers()])

    def queue() -> list[tuple[str, tuple[str, ...], int]]:
        return [(one.counter, one.registers, one.age) for one in debugger.outstanding]

    assert queue() == [] and [*queue_at(debugger, 1)] == first
    assert queue_at(debugger, 3) == []
    assert queue_at(debugger, 8) == [(c, r, age - 1) for c, r, age in (*loads, *lds)]
    assert queue_at(debugger, 9) == [*loads[1:], *lds]
    assert [one[:2] for one in queue_at(debugger, 11)] == [one[:2] for one in (*loads[1:], lds[1])]
    assert debugger.time == 11 and "fills v5" in str(debugger.outstanding[-1])


def queue_at(debugger: Debugger, step: int) -> list[tuple[str, tuple[str, ...], int]]:
    debugger.start().step(step)
    return [(one.counter, one.registers, one.age) for one in debugger.outstanding]


def test_flat_and_scalar_loads_are_waited_for_by_nothing_but_0() -> None:
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v8, s4
  v_mov_b32_e32 v9, s5
  flat_load_dword v6, v[8:9]
  global_load_dword v7, v[8:9], off
  s_waitcnt vmcnt(1)
  s_load_dword s6, s[0:1], 0x0
  s_load_dword s7, s[0:1], 0x0
  s_waitcnt lgkmcnt(1)
  s_waitcnt vmcnt(0)
  s_endpgm"""
    debugger = program(body, "gfx942").debug(grid=1, block=64, args=[numbers()])
    both = [("vmcnt", ("v6",)), ("vmcnt", ("v7",)), ("lgkmcnt", ("v6",))]
    assert [one[:2] for one in queue_at(debugger, 7)] == both
    scalars = [("lgkmcnt", ("s6",)), ("lgkmcnt", ("s7",))]
    assert [one[:2] for one in queue_at(debugger, 10)] == both + scalars
    assert [one[:2] for one in queue_at(debugger, 11)] == both[2:] + scalars


def test_what_is_on_its_way_after_a_long_way() -> None:
    """A load that nothing waits for in 5,000 instructions."""
    body = START + """
  global_load_dword v2, v1, s[4:5]
  s_movk_i32 s8, 2500
.Lloop:
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lloop
  s_endpgm"""
    debugger = program(body, "gfx942").debug(grid=1, block=64, args=[numbers()]).finish()
    (one,) = debugger.outstanding
    assert (one.counter, one.registers, one.issued.step) == ("vmcnt", ("v2",), 3)
    assert one.age == debugger.steps - 4 > 7500 and debugger.ended
