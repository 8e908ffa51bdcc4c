"""Executions and active lanes, which are counted once a run of instructions, against stepping through the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.emulator.counters.instrument import run_starts
from flylab.emulator.counters.results import Counters
from tests.emulator.debugger.kernels import ATOMIC, DIVERGENT, numbers, program
from tests.emulator.test_calls import CALLS, FUNCTIONS
from tests.emulator.toolchain import CHIPS, kernel
from tests.emulator.toolchain import program as compiled


def _counted(device: Program, *, grid: int = 1, block: int = 64) -> Counters:
    report = device.launch(grid=grid, block=block, args=[numbers()], check=None, counters=True)
    counters = report.counters
    assert counters is not None
    assert counters.totals.executions == report.instructions
    return counters


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("body", [DIVERGENT, ATOMIC])
def test_executions_and_lanes_are_those_of_single_steps(body: str, chip: str) -> None:
    device = program(body, chip)
    counters = _counted(device)
    executions, lanes = np.zeros(len(counters), np.int64), np.zeros(len(counters), np.int64)
    debugger = device.debug(grid=1, block=64, args=[numbers()])
    while (instruction := debugger.instruction) is not None:
        here = instruction.index
        executions[here] += 1
        if counters.effects[here].kind in ("valu", "lds", "vmem"):
            lanes[here] += debugger.exec.bit_count()
        debugger.step()
    assert np.array_equal(counters["executions"], executions)
    assert np.array_equal(counters["lanes"], lanes)
    assert 0 < counters.totals.lanes < 64 * counters.totals.by_lanes


@pytest.mark.parametrize("chip", CHIPS)
def test_functions_that_pointers_lead_to_are_counted(chip: str) -> None:
    device = compiled(chip, kernel("ptr %a", CALLS, FUNCTIONS), 1)
    (loaded,) = device.isa.kernels.values()
    counters = _counted(device, grid=1, block=192)
    assert len(counters) > len(loaded.instructions)
    numbers_ = [n for n, text in enumerate(counters.texts) if "s_swappc_b64" in text or "s_setpc_b64" in text]
    assert counters.counts(numbers_).executions > 0


def test_a_run_ends_where_control_may_arrive_or_exec_changes() -> None:
    device = program(DIVERGENT, "gfx942")
    starts = run_starts(next(iter(device.isa.kernels.values())))
    texts = [i.text.strip() for i in next(iter(device.isa.kernels.values())).instructions]
    begins = [texts[n] for n, start in enumerate(starts) if n == start]
    assert begins == [
        "s_load_dwordx2 s[4:5], s[0:1], 0x0", "v_and_b32_e32 v2, 15, v0", "v_cmp_ne_u32_e32 vcc, 0, v2",
        "s_cbranch_execz .Ldone", "v_subrev_u32_e32 v2, 1, v2", "s_cbranch_execnz .Linner",
        "s_mov_b64 exec, s[10:11]", "ds_write_b32 v1, v3", "global_store_dword v1, v3, s[4:5]"]
