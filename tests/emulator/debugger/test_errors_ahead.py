"""A workgroup that meets an error: it is told at its time however that was reached, and in a debugger's text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flylab.emulator.debugger.debugger import Debugger
from flylab.errors import DebugError, DeviceError, OutOfBounds
from tests.emulator.debugger.kernels import START, numbers, program, state
from tests.emulator.toolchain import CHIPS

# The second wave of two writes beyond the array's 1,024 bytes; instruction 6 does.
BEYOND = START + """
  v_readfirstlane_b32 s8, v0
  s_lshl_b32 s8, s8, 4
  v_add_u32_e32 v1, s8, v1
  global_store_dword v1, v0, s[4:5]
  s_barrier
  s_endpgm"""
STORE = 6
# A flag that the first block waits for and the second one sets.
WAITING = START + """
  v_mov_b32_e32 v7, 0
  v_mov_b32_e32 v8, 1
  s_cmp_eq_u32 s2, 1
  s_cbranch_scc1 .Lset
.Lspin:
  global_load_dword v2, v7, s[4:5] sc0 sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s8, v2
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 .Lspin
.Lset:
  global_store_dword v7, v8, s[4:5] sc0 sc1
  s_endpgm"""
# Each thread reads what its neighbour writes at the same time.
RACE = START + """
  ds_write_b32 v1, v0
  v_xor_b32_e32 v2, 4, v1
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v3, s[4:5]
  s_endpgm"""


def begun(chip: str, body: str = BEYOND, block: int = 128, check: Any = "auto") -> Debugger:
    return program(body, chip).debug(grid=1, block=block, args=[numbers()], check=check)


@pytest.mark.parametrize("chip", CHIPS)
def test_an_error_is_there_however_its_time_is_reached(chip: str) -> None:
    ended = begun(chip).finish()
    assert isinstance(ended.error, OutOfBounds) and ended.time >= STORE
    there = begun(chip).goto(ended.time)
    before = state(there)
    assert str(there.error) == str(ended.error) and repr(there) == repr(ended)
    assert "stopped before an error:\n    a write of 4 bytes" in repr(there)
    assert state(there) == before == state(ended)
    assert begun(chip).goto(ended.time - 1).error is None


@pytest.mark.parametrize("chip", CHIPS)
def test_a_step_into_an_error_raises_it_the_first_time_too(chip: str) -> None:
    time = begun(chip).finish().time
    for move in (Debugger.step, lambda debugger: debugger.run_to(STORE + 1)):
        debugger = begun(chip).goto(time)
        debugger.wave = 1
        with pytest.raises(OutOfBounds):
            move(debugger)
        assert debugger.time == time


@pytest.mark.parametrize("chip", CHIPS)
def test_findings_are_in_the_text(chip: str) -> None:
    debugger = begun(chip, RACE, 64, ("races",))
    assert "the checks have found" not in repr(debugger)
    debugger.finish()
    assert [finding.kind for finding in debugger.findings] == ["race"]
    assert "the checks have found\n    a race in LDS (RAW): thread" in repr(debugger)
    assert "the checks have found" not in repr(debugger.start())


@pytest.mark.parametrize("chip", CHIPS)
def test_blocks_before_that_wait_for_later_ones(chip: str) -> None:
    made, flag = program(WAITING, chip), np.zeros(4, "u4")
    made.launch(grid=2, block=64, args=[flag])
    assert flag[0] == 1
    with pytest.raises(DebugError, match=r"the blocks before block \(1, 0, 0\) do not end without it") as caught:
        made.debug(grid=2, block=64, args=[np.zeros(4, "u4")], at_block=1)
    assert "at_block=0" in (caught.value.hint or "") and isinstance(caught.value.__cause__, DeviceError)
