"""Workgroups that wait for each other: what makes progress as on the chip, and what is reported to stand still."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.emulator.execution.geometry import Geometry
from flylab.emulator.execution.residents import resident_workgroups, workgroups_per_unit
from flylab.errors import DeviceError, OutOfBounds
from flylab.targets import target
from tests.emulator.toolchain import CHIPS, assembly

# s[4:5] is the array's address, v0 the thread, s2 the workgroup; v1 is 0.
START = "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_mov_b32_e32 v1, 0\n  v_readfirstlane_b32 s12, v0\n"


def spin(flag: str = "s3", step: str = "") -> str:
    """Loops until the first element equals `flag`."""
    return f"""
.Lspin:
{step}
  global_load_dword v3, v1, s[4:5] sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s8, v3
  s_cmp_lg_u32 s8, {flag}
  s_cbranch_scc1 .Lspin
"""


ARRIVE = """
  s_cmp_lg_u32 s12, 0
  s_cbranch_scc1 .Larrived
  s_mov_b64 exec, 1
  v_mov_b32_e32 v2, 1
  global_atomic_add v1, v2, s[4:5]
  s_mov_b64 exec, -1
.Larrived:
"""
END = "  s_endpgm"


def launch(body: str, chip: str, grid: int, block: int = 64, size: int = 4, **descriptor: int) -> np.ndarray:
    found = np.zeros(size, "i4")
    Program.from_assembly(assembly(START + body, chip, **descriptor)).launch(grid=grid, block=block, args=[found])
    return found


@pytest.fixture(params=["1", "3"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", request.param)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("step", ["", "  s_add_u32 s9, s9, 1", "  s_barrier", "  s_cmp_eq_u32 s9, 0\n"
                                  "  s_cbranch_scc1 .Lon\n.Lon:\n  s_not_b32 s9, s9"],
                         ids=["load", "counting", "barrier", "period 2"])
def test_every_workgroup_waits_for_all(threads: None, chip: str, step: str) -> None:
    """A barrier across the grid, whatever the loop does meanwhile; several waves of each block wait."""
    found = launch(f"  s_movk_i32 s3, 12\n{ARRIVE}{spin(step=step)}" + END, chip, grid=12, block=192)
    assert found[0] == 12


@pytest.mark.parametrize("chip", CHIPS)
def test_each_workgroup_waits_for_the_next(threads: None, chip: str) -> None:
    """Workgroup n waits for the number n + 1 and then writes n, so they end in falling order."""
    body = f"""
  s_add_u32 s3, s2, 1
{spin()}
  v_mov_b32_e32 v2, s2
  global_store_dword v1, v2, s[4:5]
  v_mov_b32_e32 v4, 4
  global_atomic_add v1, v4, s[4:5] offset:4
  s_endpgm
"""
    found = np.zeros(4, "i4")
    found[0] = 40
    Program.from_assembly(assembly(START + body, chip)).launch(grid=40, block=64, args=[found])
    assert found.tolist() == [0, 4 * 40 * 64, 0, 0]


@pytest.mark.parametrize("chip", CHIPS)
def test_registers_and_memory_survive_a_suspension(threads: None, chip: str) -> None:
    """Vector registers of every lane and the address of a later instruction, across the wait for the whole grid."""
    body = f"""
  s_lshl_b32 s13, s2, 7
  v_add_u32_e32 v5, s13, v0
  v_lshlrev_b32_e32 v6, 2, v5
  s_getpc_b64 s[14:15]
.Lhere:
  s_add_u32 s14, s14, (.Lafter-.Lhere)&4294967295
  s_addc_u32 s15, s15, (.Lafter-.Lhere)>>32
  s_movk_i32 s3, 20
{ARRIVE}{spin()}
  s_setpc_b64 s[14:15]
  s_trap 2
.Lafter:
  global_store_dword v6, v5, s[4:5] offset:256
  s_endpgm
"""
    found = launch(body, chip, grid=20, block=128, size=64 + 20 * 128)
    assert np.array_equal(found[64:], np.arange(20 * 128))


@pytest.mark.parametrize("chip", CHIPS)
def test_as_many_as_the_chip_holds_can_wait_for_each_other(chip: str) -> None:
    """With 512 registers a wave, a compute unit holds four workgroups of one wave."""
    resident = 4 * target(chip).compute_units
    body = f"  s_movk_i32 s3, {resident}\n{ARRIVE}{spin()}" + END
    assert launch(body, chip, grid=resident, vgprs=512)[0] == resident
    with pytest.raises(DeviceError, match="stands still") as caught:
        launch(body.replace(f"s3, {resident}", f"s3, {resident + 1}"), chip, grid=resident + 1, vgprs=512)
    text = str(caught.value)
    assert f"1 of {resident + 1} workgroups were never started: {chip} holds {resident} of them at once" in text
    assert f"block (0, 0, 0) and {resident - 1} more" in text and "spins through 'global_load_dword" in text
    assert f"launch at most {resident} workgroups" in text


STILL = {
    "each wave waits for itself": (
        "  s_movk_i32 s3, 7" + spin() + END, "each of waves 0, 1, 2 spins through 'global_load_dword"),
    "one wave spins, another is at the barrier": (
        f"  s_cmp_eq_u32 s12, 0\n  s_cbranch_scc1 .Lspin0\n  s_barrier\n  s_endpgm\n.Lspin0:\n"
        f"  s_movk_i32 s3, 7\n{spin()}  s_barrier\n{END}", "each of waves 1, 2 waits at 's_barrier'"),
    "a loop of barriers": (f"  s_movk_i32 s3, 7\n{spin(step='  s_barrier')}{END}", "each of waves 0, 1, 2 spins"),
    "no memory at all": (f".L0:\n  s_nop 0\n  s_branch .L0\n{END}", "each of waves 0, 1, 2 spins through 's_nop 0'"),
    "a lock that nobody gives back": (
        "  v_mov_b32_e32 v4, 1\n  v_mov_b32_e32 v5, 0\n.L0:\n  global_atomic_cmpswap v3, v1, v[4:5], s[4:5] sc0\n"
        "  s_waitcnt vmcnt(0)\n  v_cmp_ne_u32_e32 vcc, 0, v3\n  s_and_b64 exec, exec, vcc\n  s_cbranch_execnz .L0\n"
        f"{END}", "spins through 'global_atomic_cmpswap"),
    "one thread reads the flag for all, by way of LDS": (
        """
  s_movk_i32 s3, 7
.L0:
  s_cmp_lg_u32 s12, 0
  s_cbranch_scc1 .Lread
  s_mov_b64 exec, 1
  global_load_dword v3, v1, s[4:5]
  ds_write_b32 v1, v3
  s_mov_b64 exec, -1
.Lread:
  s_barrier
  ds_read_b32 v4, v1
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s8, v4
  s_barrier
  s_cmp_lg_u32 s8, s3
  s_cbranch_scc1 .L0
  s_endpgm
""", "each of waves 0, 1, 2 spins through 'ds_read_b32"),
    "the same value is stored again and again": (
        f"  s_movk_i32 s3, 7\n  s_mov_b64 exec, 1\n{spin(step='  global_store_dword v1, v1, s[4:5]')}{END}", "spins"),
}


def test_one_workgroup_that_stands_still() -> None:
    with pytest.raises(DeviceError, match="its workgroup only spins or waits at a barrier") as caught:
        launch(STILL["no memory at all"][0], "gfx942", grid=1, block=64)
    assert "would end the loop" in str(caught.value)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("body, text", STILL.values(), ids=STILL)
def test_what_stands_still_is_reported(threads: None, chip: str, body: str, text: str) -> None:
    with pytest.raises(DeviceError, match="kernel 'k' stands still: its 3 workgroups") as caught:
        launch(body, chip, grid=3, block=192, group_segment_fixed_size=64)
    assert text in str(caught.value) and "block (0, 0, 0) and 2 more" in str(caught.value)


def test_the_source_line_is_named() -> None:
    body = START + '  .file 1 "/lab" "kernel.py"\n  .loc 1 5 0\n  s_movk_i32 s3, 7\n' + spin(step="  .loc 1 6 0")
    with pytest.raises(DeviceError, match="stands still") as caught:
        Program.from_assembly(assembly(body + END)).launch(grid=1, block=64, args=[np.zeros(1, "i4")])
    assert caught.value.where is not None and caught.value.where.line == 6
    assert "its workgroup only spins" in str(caught.value) and "kernel.py, line 6" in str(caught.value)


def test_the_host_may_set_the_flag() -> None:
    """A thread of the host that writes soon is what the kernel waits for, and no dead-lock."""
    found = np.zeros(4, "i4")

    def later() -> None:
        time.sleep(0.1)
        found[0] = 7

    device = Program.from_assembly(assembly(START + "  s_movk_i32 s3, 7" + spin() + END))
    thread = threading.Thread(target=later)
    thread.start()
    device.launch(grid=3, block=64, args=[found])
    thread.join()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("clock", ["s_memtime", "s_memrealtime"])
def test_a_wait_for_a_time_does_not_stand_still(threads: None, chip: str, clock: str) -> None:
    """The registers are the same each time around, so only the clock tells; the other workgroups wait for this one."""
    body = f"""
  s_movk_i32 s3, 7
  s_cmp_lg_u32 s2, 2
  s_cbranch_scc1 .Lspin
  {clock} s[6:7]
.Llater:
  {clock} s[10:11]
  s_sub_u32 s10, s10, s6
  s_lshr_b32 s10, s10, 24
  s_cmp_eq_u32 s10, 0
  s_mov_b64 s[10:11], 0
  s_cbranch_scc1 .Llater
  v_mov_b32_e32 v2, 7
  global_store_dword v1, v2, s[4:5]
{spin()}{END}"""
    program = Program.from_assembly(assembly(START + body, chip))
    report = program.launch(grid=3, block=64, args=[np.zeros(4, "i4")])
    assert report.instructions > 1 << 24


def test_a_clock_that_was_read_before_does_not_hide_a_standstill() -> None:
    with pytest.raises(DeviceError, match="stands still"):
        launch(f"  s_memtime s[6:7]\n  s_movk_i32 s3, 7\n{spin()}{END}", "gfx942", grid=3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_fork_does_not_wait_for_launches_of_the_parent() -> None:
    """A thread launches while the process forks; in the child, where it is not, a standstill is found all the same."""
    counting = assembly(f"{START}.L0:\n  s_add_u32 s9, s9, 1\n  s_branch .L0\n{END}")
    spinning = assembly(f".L0:\n  s_branch .L0\n{END}")
    script = textwrap.dedent(f"""
        import os, signal, threading, time, numpy
        from flylab.emulator import Program
        from flylab.emulator.execution import run
        busy, still = (Program.from_assembly(text) for text in ({counting!r}, {spinning!r}))
        still.load("k")
        arguments = dict(grid=2, block=64, args=[numpy.zeros(4, "i4")])
        threading.Thread(target=busy.launch, kwargs=arguments, daemon=True).start()
        while not run._running:
            time.sleep(0.01)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                still.launch(**arguments)
            except Exception as error:
                os._exit("stands still" in str(error))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1\n", done.stderr


def test_two_launches_may_wait_for_each_other() -> None:
    """The second kernel is launched by another thread, and long after a launch alone is found to stand still."""
    found = np.zeros(4, "i4")
    first = Program.from_assembly(assembly(START + "  s_movk_i32 s3, 7" + spin() + END))
    body = START + f"""
  s_mov_b32 s9, 0x100000
.Llong:
  s_sub_u32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 .Llong
  v_mov_b32_e32 v2, 7
  global_store_dword v1, v2, s[4:5]
{END}"""
    second = Program.from_assembly(assembly(body))
    second.load("k")
    errors: list[BaseException] = []

    def run(program: Program, grid: int) -> None:
        try:
            program.launch(grid=grid, block=64, args=[found])
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=run, args=args) for args in ((first, 3), (second, 60))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == [] and found[0] == 7


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("wait", [
    "  s_movk_i32 s3, 7" + spin(), "  s_movk_i32 s3, 7" + spin(step="  s_add_u32 s9, s9, 1"), "  s_barrier\n"],
    ids=["spin", "counting spin", "barrier"])
@pytest.mark.parametrize("failing", [0, 5])
def test_a_fault_ends_the_wait_of_the_others(threads: None, chip: str, wait: str, failing: int) -> None:  # D02
    """Wave 1 of one workgroup reads beyond the array, while its other waves and the other workgroups wait for it."""
    body = f"""
  s_cmp_lg_u32 s2, {failing}
  s_cbranch_scc1 .Lwait
  s_cmp_lg_u32 s12, 64
  s_cbranch_scc1 .Lwait
  s_mov_b64 exec, 4
  global_load_dword v3, v1, s[4:5] offset:16
.Lwait:
{wait}
  s_endpgm
"""
    with pytest.raises(OutOfBounds, match="right after the end of 'a0'") as caught:
        launch(body, chip, grid=8, block=192)
    assert f"in block ({failing}, 0, 0), thread (66, 0, 0)" in str(caught.value)
    assert caught.value.workgroup == failing


def test_ctrl_c_ends_a_wait_that_nobody_can_prove_endless() -> None:
    """The loops count, so no state comes back; a launch after it works."""
    text = assembly(START + f"  s_movk_i32 s3, 7\n{spin(step='  s_add_u32 s9, s9, 1')}{END}")
    script = textwrap.dedent(f"""
        import os, signal, threading, numpy
        from flylab.emulator import Program
        device = Program.from_assembly({text!r})
        device.load("k")
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            device.launch(grid=1000, block=256, args=[numpy.zeros(1, "i4")])
        except KeyboardInterrupt as error:
            print(*error.__notes__)
            print(device.launch(grid=1000, block=256, args=[numpy.full(1, 7, "i4")]).workgroups)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    first, *places, last = done.stdout.splitlines()
    assert (first, last) == ("kernel 'k' was interrupted in", "1000"), done.stderr
    assert places[0].startswith("    block (")
    assert all("spins through '" in place for place in places if "wave" in place)


def kernel_like(chip: str, registers: int, lds: int = 0, sgprs: int = 32, block: int = 1024) -> tuple:
    program = Program.from_assembly(assembly(END, chip, vgprs=registers, group_segment_fixed_size=lds))
    kernel = replace(program.isa.kernels["k"], sgprs=sgprs)
    return kernel, Geometry.of(kernel, 1, block, 0)


@pytest.mark.parametrize("chip, registers, lds, block, wanted", [
    ("gfx942", 16, 0, 64, 32), ("gfx942", 64, 0, 64, 32), ("gfx942", 65, 0, 64, 28), ("gfx942", 128, 0, 64, 16),
    ("gfx942", 512, 0, 64, 4), ("gfx942", 16, 0, 128, 16), ("gfx942", 16, 0, 256, 8), ("gfx942", 16, 0, 1024, 2),
    ("gfx942", 16, 0, 192, 10), ("gfx942", 128, 0, 1024, 1), ("gfx942", 16, 32 * 1024, 64, 2),
    ("gfx942", 16, 32 * 1024 + 1, 64, 1), ("gfx950", 16, 32 * 1024, 64, 4), ("gfx950", 16, 33 * 1024, 64, 4),
    ("gfx942", 256, 0, 1024, 0), ("gfx950", 16, 160 * 1024, 256, 1)])
def test_workgroups_of_a_compute_unit(chip: str, registers: int, lds: int, block: int, wanted: int) -> None:
    """By the table of the hardware guide: waves a SIMD by registers, LDS in granules, 16 barriers."""
    kernel, _ = kernel_like(chip, registers, lds, block=64)
    assert workgroups_per_unit(kernel, -(-block // 64), lds) == wanted
    if wanted:
        _, geometry = kernel_like(chip, registers, lds, block=block)
        assert resident_workgroups(kernel, geometry) == wanted * {"gfx942": 304, "gfx950": 256}[chip]


def test_many_scalar_registers_leave_seven_waves() -> None:
    kernel, geometry = kernel_like("gfx942", 16, sgprs=102, block=64)
    assert resident_workgroups(kernel, geometry) == 28 * 304
