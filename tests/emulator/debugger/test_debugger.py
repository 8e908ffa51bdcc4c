"""What the debugger shows, and where it goes: held against what each instruction of small kernels must do."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.emulator.debugger.debugger import Debugger
from flylab.errors import DeviceError, OutOfBounds
from tests.emulator.debugger.kernels import KERNELS, START, numbers, program
from tests.emulator.test_calls import CALLS, COUNTED, FUNCTIONS, READS
from tests.emulator.toolchain import CHIPS, assembly, kernel
from tests.emulator.toolchain import program as compiled

# Two waves: thread n writes n + 1 to LDS and to its element; the second loop is run by the even threads.
BODY = START + """
  v_add_u32_e32 v2, 1, v0
  ds_write_b32 v1, v2
  s_barrier
  s_movk_i32 s8, 5
.Lloop:
  v_lshlrev_b32_e32 v3, 1, v3
  v_or_b32_e32 v3, 1, v3
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lloop
  v_and_b32_e32 v4, 1, v0
  v_cmp_eq_u32_e32 vcc, 0, v4
  s_and_b64 exec, exec, vcc
  global_store_dword v1, v2, s[4:5]
  s_mov_b32 m0, 0x1234
  s_endpgm"""
ADD, WRITE, LOOP, STORE, M0_SET = 3, 4, 7, 15, 16
PER_WAVE = 3 + 4 + 5 * 5 + 6


def begun(chip: str, body: str = BODY, block: int = 128, **more: int) -> Debugger:
    return program(body, chip, **more).debug(grid=1, block=block, args=[numbers()])


@pytest.mark.parametrize("chip", CHIPS)
def test_a_step_does_one_instruction(chip: str) -> None:
    debugger = begun(chip)
    assert (debugger.time, debugger.steps, debugger.block, debugger.kernel) == (0, 0, (0, 0, 0), "k")
    debugger.goto(ADD)
    assert debugger.instruction is not None and debugger.instruction.text == "v_add_u32_e32 v2, 1, v0"
    assert not debugger.vgpr(2).any()
    debugger.step()
    lanes = np.arange(64)
    assert np.array_equal(debugger.vgpr(2), lanes + 1) and debugger.vgpr(2).dtype == np.uint32
    (change,) = debugger.changes()
    assert change.name == "v2" and change.at == tuple(lanes)
    assert np.array_equal(change.after, lanes + 1) and not change.before.any()
    debugger.back()
    assert debugger.time == ADD and not debugger.vgpr(2).any()


@pytest.mark.parametrize("chip", CHIPS)
def test_lds_registers_and_memory(chip: str) -> None:
    debugger = begun(chip).run_to(WRITE)
    assert np.all(debugger.lds.view("u2") == 0x7FFF)  # what LDS holds at first
    debugger.step()
    assert np.array_equal(debugger.lds.view("u4")[:64], np.arange(1, 65))
    (change,) = debugger.changes()
    assert (change.name, change.at[:3], len(change.at)) == ("LDS", (0, 1, 2), 256)
    debugger.run_to(STORE)
    even = 0x5555555555555555
    assert debugger.exec == even == debugger.vcc == debugger.register("exec")
    assert debugger.register("v3")[2] == 31 == debugger.vgpr(3)[2]
    assert debugger.scc == 1  # of the s_and that is not 0
    assert (debugger.sgpr(8), debugger.sgprs[8]) == (0, 0)
    lane = debugger.lane(6)
    assert (lane.thread, lane.active, lane.v[2]) == ((6, 0, 0), True, 7) and not debugger.lane(7).active
    debugger.step()
    (change,) = debugger.changes()
    assert change.name == "a0" and change.at == tuple((n,) for n in range(0, 64, 2))
    assert np.array_equal(debugger.memory("a0")[:64:2], np.arange(1, 65, 2)) and not debugger.memory("a0")[1::2].any()
    debugger.step()
    assert debugger.m0 == 0x1234 and str(debugger.changes()) == "m0: 0x0 -> 0x1234"


@pytest.mark.parametrize("chip", CHIPS)
def test_visits_are_counted_both_ways(chip: str) -> None:
    debugger = begun(chip)
    for visit in range(1, 6):
        debugger.run_to(".Lloop")
        assert debugger.vgpr(3)[0] == (1 << (visit - 1)) - 1
    assert debugger.steps == LOOP + 4 * 5
    assert debugger.run_back_to(LOOP, visit=3).steps == LOOP + 5
    assert debugger.run_to(pc=debugger.pc, visit=2).steps == LOOP + 15
    assert debugger.run_back_to(0).time == 0
    assert debugger.run_to(".Lloop", visit=5).steps == LOOP + 20
    assert debugger.run_back_to(".Lloop", visit=4).steps == LOOP


@pytest.mark.parametrize("chip", CHIPS)
def test_waves_take_turns_at_barriers(chip: str) -> None:
    debugger = begun(chip).run_to(LOOP - 1)
    assert debugger.at_barrier and debugger.time == LOOP - 1
    debugger.wave = 1
    assert debugger.steps == 0
    debugger.step()
    assert debugger.time == LOOP
    debugger.run_to(LOOP - 1)
    assert debugger.at_barrier and debugger.lane(0).thread == (64, 0, 0)
    debugger.wave = 0
    debugger.step()
    assert debugger.time == 2 * (LOOP - 1) + 1 and not debugger.at_barrier
    debugger.wave = 1
    assert debugger.at_barrier is False
    debugger.finish()
    assert debugger.finished and debugger.ended and debugger.time == 2 * PER_WAVE
    assert debugger.instruction is None and debugger.pc is None and debugger.line is None
    expected = np.where(np.arange(256) % 2, 0, np.arange(1, 257)) * (np.arange(256) < 128)
    assert np.array_equal(debugger.result()["a0"], expected)


def test_lines_are_those_of_the_assembly_where_there_are_no_others() -> None:
    debugger = begun("gfx942")
    text = debugger._kernel.instructions[WRITE]
    debugger.run_to(line=text.isa_line)
    assert debugger.instruction == text and debugger.line is not None
    assert (debugger.line.file, debugger.line.line, debugger.line.text) == ("assembly", text.isa_line, text.text)


FAULTS = {
    "outside": ("  v_mov_b32_e32 v2, 0x100000\n  global_store_dword v2, v0, s[4:5]\n", OutOfBounds, "out of bounds"),
    "trap": ("  s_nop 0\n  s_trap 2\n", DeviceError, "trapped"),
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("which", FAULTS)
def test_it_stops_at_the_instruction_that_fails(chip: str, which: str) -> None:
    lines, kind, says = FAULTS[which]
    debugger = begun(chip, f"{START}  s_barrier\n{lines}  s_endpgm").finish()
    assert isinstance(debugger.error, kind) and says in str(debugger.error)
    assert debugger.instruction is not None and debugger.steps == 5
    assert debugger.instruction.text == lines.splitlines()[1].strip()
    assert "stopped before an error" in repr(debugger) and says in repr(debugger)
    with pytest.raises(kind):
        debugger.step()
    assert debugger.steps == 5
    assert debugger.back().error is None and debugger.steps == 4
    assert debugger.step(100).error is not None and debugger.steps == 5
    with pytest.raises(kind):
        program(f"{START}  s_barrier\n{lines}  s_endpgm", chip).launch(grid=1, block=128, args=[numbers()])


def test_a_block_after_others() -> None:
    """Those before it have run, and those after it have not."""
    body = START + """
  s_lshl_b32 s9, s2, 8
  v_add_u32_e32 v1, s9, v1
  v_mov_b32_e32 v2, s2
  v_add_u32_e32 v2, 1, v2
  global_store_dword v1, v2, s[4:5]
  s_endpgm"""
    given = numbers()
    debugger = program(body, "gfx950").debug(grid=4, block=64, args=[given], at_block=2)
    assert debugger.block == (2, 0, 0)
    assert np.array_equal(debugger.memory("a0"), np.repeat([1, 2, 0, 0], 64))
    assert np.array_equal(debugger.finish().memory("a0"), np.repeat([1, 2, 3, 0], 64))
    assert not given.any()
    made = program(body, "gfx950")
    assert made.debug(grid=(3, 2), block=64, args=[numbers()], at_block=(2, 1)).block == (2, 1, 0)


def test_views_of_one_array_stay_views() -> None:
    body = ("  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32_e32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
            "  global_store_dword v1, v0, s[4:5]\n  s_endpgm")
    array = np.zeros(128, "u4")
    made = Program.from_assembly(assembly(body, arguments=2))
    debugger = made.debug(grid=1, block=64, args=[array, array[32:]]).finish()
    assert np.array_equal(debugger.memory("a1")[:32], np.arange(32, 64)) and not array.any()


@pytest.mark.parametrize("chip", CHIPS)
def test_the_data_of_a_program_is_a_copy_too(chip: str) -> None:
    """A counter that launches raise: the debugger begins with it as it is, and leaves it as it is."""
    made, found = compiled(chip, kernel("ptr %a", READS, COUNTED)), np.zeros(64, "u4")
    first = 5 + 9 + ord("c")
    for turn in range(2):
        debugger = made.debug(grid=1, block=64, args=[found]).finish()
        debugger.start().finish()
        assert np.all(debugger.memory("a") == first + turn)
        made.launch(grid=1, block=64, args=[found])
        assert np.all(found == first + turn)


@pytest.mark.parametrize("chip", CHIPS)
def test_calls_and_private_memory(chip: str) -> None:
    """Recursion through pointers: forward, back, and to the results of a plain launch."""
    made, found = compiled(chip, kernel("ptr %a", CALLS, FUNCTIONS), 1), np.zeros(64, "u4")
    debugger = made.debug(grid=1, block=64, args=[found]).finish()
    end = debugger.time
    for time in (end // 2, end // 3, end - 2):
        debugger.goto(time).step().back()
        assert debugger.time == time
    made.launch(grid=1, block=64, args=[found])
    assert np.array_equal(debugger.finish().memory("a"), found) and found.any()


def test_an_address_of_the_host_leads_to_the_copy() -> None:
    """A kernel that gets an address as a number, beside the array that it is of."""
    body = ("  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32_e32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
            "  global_store_dword v1, v0, s[6:7]\n  s_endpgm")
    text = assembly(body, arguments=2).replace(".name: a1\n        .offset: 8\n        .size: 8\n        "
                                               ".value_kind: global_buffer", ".name: a1\n        .offset: 8\n        "
                                               ".size: 8\n        .value_kind: by_value")
    array = np.zeros(64, "u4")
    debugger = Program.from_assembly(text).debug(grid=1, block=64, args=[array, array.ctypes.data]).finish()
    assert debugger.error is None and np.array_equal(debugger.memory("a0"), np.arange(64)) and not array.any()


def test_its_text() -> None:
    debugger = begun("gfx942").run_to(STORE).step()
    assert repr(debugger).splitlines() == [
        f"block (0, 0, 0), wave 0 of kernel 'k' at time {debugger.time} (step {PER_WAVE - 2} of the wave)",
        "    next: 16  s_mov_b32 m0, 0x1234  (byte 0x4c)",
        "    assembly, line 24, in k",
        "        s_mov_b32 m0, 0x1234",
        "    exec 0x5555555555555555: 32 lanes",
        "the last instruction changed",
        "    a0[0 and 2 and 30 more]: 0x0 -> 0x1 at the first",
    ]


def test_every_kernel_of_the_walks_uses_what_it_is_there_for() -> None:
    """Divergence, barriers, atomics, and waves that wait for each other."""
    text = "\n".join(KERNELS.values())
    assert all(word in text for word in ("s_cbranch_execz", "s_barrier", "ds_add_rtn", "global_atomic", "s_memtime"))
    debugger = program(KERNELS["spinning"], "gfx942").debug(grid=1, block=192, args=[numbers()]).finish()
    debugger.wave = 1
    assert debugger.sgpr(9) > 100  # it has looked that often
