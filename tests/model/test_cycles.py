"""The cycle model on listings written by hand, whose waits and bounds are known, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.codegen.isa import Isa, IsaKernel
from flylab.errors import FlylabError
from flylab.model import Parameters, Traffic, Wait, Work, estimate, fit, scaled, work
from flylab.model.path import standing
from tests.emulator.toolchain import CHIPS, assembly

LOOP = """
  s_mov_b32 s3, 10
  global_load_dword v1, v0, s[4:5]
.Lloop:
  s_waitcnt vmcnt(0)
  v_add_f32_e32 v2, v2, v1
  global_load_dword v1, v0, s[4:5]
  v_exp_f32_e32 v3, v3
  s_add_u32 s3, s3, -1
  s_cmp_lg_u32 s3, 0
  s_cbranch_scc1 .Lloop
  ds_read_b32 v4, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  s_endpgm
"""


class Counted(dict):
    """Counters given by hand: what is not given is 0 everywhere."""

    def __init__(self, kernel: IsaKernel, workgroups: int, **figures: list[int]):
        empty = {name: np.zeros(len(kernel.instructions) + 1, int)
                 for name in ("executions", "bytes", "accesses", "lines", "lds_cycles")}
        super().__init__(empty | {name: np.array([*values, 0]) for name, values in figures.items()})
        self.workgroups = workgroups


def parsed(body: str, chip: str = "gfx950") -> IsaKernel:
    return Isa.parse(assembly(body, chip)).kernels["k"]


def loop_work(trips: int = 10, groups: int = 4, block: int = 128) -> Work:
    kernel = parsed(LOOP)
    waves = groups * block // 64
    executions = [waves] * 2 + [waves * trips] * 7 + [waves] * 4
    bytes_ = [0, 256 * waves, 0, 0, 256 * waves * trips, 0, 0, 0, 0, 256 * waves, 0, 0, 0]
    lines = [0, 2 * waves, 0, 0, 2 * waves * trips] + [0] * 8
    accesses = [8 * n for n in lines]
    cycles = [0] * 9 + [2 * waves, 0, 0, 0]
    return work(kernel, Counted(kernel, groups, executions=executions, bytes=bytes_, lines=lines, accesses=accesses,
                                lds_cycles=cycles), block)


def test_what_a_wave_waits_for() -> None:
    """Of the trips of the loop the first waits for the load before it, the others for that of the trip before: 4 slots
    of v_exp_f32, two scalar instructions, the jump and the load itself lie between."""
    found = loop_work()
    memory = {wait.distance: wait.times for wait in found.waits if wait.kind == "memory"}
    assert memory == {1: pytest.approx(1), 8: pytest.approx(9)}
    assert [(wait.kind, wait.times) for wait in found.waits if wait.kind != "memory"] == [
        ("lds", pytest.approx(1)), ("barrier", pytest.approx(1))]
    # Executions of a wave, and three more slots of each v_exp_f32.
    assert found.issue == pytest.approx(2 + 7 * 10 + 3 * 10 + 4)


def test_what_a_workgroup_asks_for() -> None:
    found = loop_work().counts
    wanted = {"valu": 20, "trans": 20, "vmem": 22, "lds": 2, "lds_cycles": 4, "lines": 44, "cache_accesses": 352,
              "bytes": 22 * 256, "line_bytes": 22 * 256, "barrier": 2}
    assert {name: found[name] for name in wanted} == wanted and "stored" not in found


def of_counts(groups: int = 256, threads: int = 256, arch: str = "gfx950", issue: float = 0, **counts: float) -> Work:
    return Work("k", arch, threads, 32, 16, 0, groups, 1, counts, issue, ())


NONE = Traffic(0)
ALONE = replace(Parameters(), overlap=replace(Parameters().overlap, value=200))
"""With so high a power only the largest resource counts."""


def modelled(work_: Work, traffic: Traffic = NONE, **named) -> float:
    return estimate(replace(work_, counts={**work_.counts}), traffic, parameters=ALONE, **named).busy


@pytest.mark.parametrize("arch, units, megahertz", [("gfx942", 304, 2100), ("gfx950", 256, 2200)])
def test_peak_rates_come_out(arch: str, units: int, megahertz: int) -> None:
    """64 lanes x 2 operations in 4 clocks on each of 4 SIMDs are 128 a clock: the published 81.7 (and 72) TFLOP/s."""
    fmas = 100_000.0
    time = modelled(of_counts(units, arch=arch, valu=4 * fmas))
    assert 2 * 64 * 4 * fmas * units / time / 1e6 == pytest.approx(128 * units * megahertz / 1e6)
    # v_mfma_f32_16x16x16_f16: 4 passes, 8192 operations.
    time = modelled(of_counts(units, arch=arch, mfma_passes=4 * 4 * fmas))
    assert 8192 * 4 * fmas * units / time / 1e6 == pytest.approx(2048 * units * megahertz / 1e6)


def test_matrix_instructions_on_f32_leave_no_room_for_vector_ones() -> None:
    both = {"mfma_passes": 4000.0, "valu": 4000.0}
    assert modelled(of_counts(**both)) == pytest.approx(modelled(of_counts(mfma_passes=4000.0)), rel=0.01)
    assert modelled(of_counts(**both, mfma_alone=4000.0)) == pytest.approx(
        2 * modelled(of_counts(mfma_passes=4000.0)), rel=0.01)


def test_bounds_by_name() -> None:
    one = {"vector units": {"valu": 1e6}, "LDS": {"lds_cycles": 1e6}, "scalar units": {"salu": 1e6},
           "vector memory": {"cache_accesses": 1e7, "lines": 1e6}, "matrix units": {"mfma_passes": 1e6}}
    for name, counts in one.items():
        assert estimate(of_counts(**counts), NONE).bound_by == name
    assert estimate(of_counts(valu=1), NONE).bound_by == "launch"
    assert estimate(of_counts(), Traffic(1e10)).bound_by == "memory"
    assert estimate(of_counts(1 << 20), NONE).bound_by == "starting waves"
    assert estimate(of_counts(issue=1e5), NONE).bound_by == "a wave's path"


def test_what_fits_the_infinity_cache_is_quicker() -> None:
    inside, outside = (modelled(of_counts(), Traffic(bytes_)) / bytes_ for bytes_ in (200e6, 400e6))
    assert inside < outside


def test_tails_and_occupancy() -> None:
    """One workgroup more than compute units takes another turn; more waves hide a path."""
    assert modelled(of_counts(257, valu=4000.0)) == pytest.approx(2 * modelled(of_counts(256, valu=4000.0)))
    many = of_counts(256 * 64, 64, issue=1000.0)
    assert modelled(replace(many, vector=512)) == pytest.approx(8 * modelled(replace(many, vector=64)), rel=0.01)


@given(st.sampled_from(CHIPS), st.integers(1, 5000), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e9))
def test_more_work_is_never_quicker(chip: str, groups: int, valu: float, lds: float, moved: float) -> None:
    small = estimate(of_counts(groups, arch=chip, valu=valu, lds_cycles=lds), Traffic(moved))
    for more in (estimate(of_counts(groups + 1, arch=chip, valu=valu, lds_cycles=lds), Traffic(moved)),
                 estimate(of_counts(groups, arch=chip, valu=valu * 2, lds_cycles=lds + 1), Traffic(moved))):
        assert more.microseconds >= small.microseconds * (1 - 1e-12)
    assert small.busy >= max(small.shares.values()) * (1 - 1e-9)


def test_every_text_says_modelled_and_at_which_clock() -> None:
    for clock, said in (("peak", "2400 MHz [S]"), ("sustained", "1611 MHz [D]"), (1000, "1000 MHz [D]")):
        text = str(estimate(loop_work(), Traffic(1e9), "MI355X", clock))
        assert f"modelled at {said}" in text
        assert all("modelled" in line for line in text.splitlines())
    slow, quick = (estimate(of_counts(valu=1e7), NONE, clock=clock) for clock in (1100, "peak"))
    assert slow.microseconds == pytest.approx(2 * quick.microseconds, rel=1e-3)
    assert all(getattr(Parameters(), each.name).source for each in fields(Parameters))


def test_work_goes_through_json_and_scales() -> None:
    found = loop_work()
    assert Work.from_json(json.loads(json.dumps(found.as_json()))) == found
    large = scaled(found, 1000)
    assert (large.groups, large.counted, large.counts) == (1000, 4, found.counts)


def test_a_fit_over_trips_is_the_count_at_the_size() -> None:
    sizes = [10, 20, 40]
    line, wanted = fit(sizes, [loop_work(n) for n in sizes], 1000), loop_work(1000)
    assert line.counts == pytest.approx(wanted.counts) and line.issue == pytest.approx(wanted.issue)
    assert {(w.kind, w.distance): w.times for w in line.waits} == pytest.approx(
        {(w.kind, w.distance): w.times for w in wanted.waits})


def test_a_matrix_result_is_waited_for() -> None:
    """The second one adds to the first: it is issued when the unit is free, 4 slots after, and its sum waited for."""
    kernel = parsed("""
  v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
  v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]
  v_add_f32_e32 v8, v0, v1
  s_endpgm""")
    found = work(kernel, Counted(kernel, 1, executions=[1, 1, 1, 1]), 64)
    assert found.waits == (Wait("matrix", 1, 1.0, 1.0, 4),) and found.counts["mfma_passes"] == 8
    assert found.issue == 1 + 4 + 1 + 1


def test_what_is_issued_under_a_matrix_instruction_takes_no_time() -> None:
    """Three moves fit beside one of 4 passes; a wait between two of them leaves the second one less to wait for."""
    matrix = "  v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]\n"
    plain = parsed(matrix + 3 * "  v_mov_b32_e32 v9, v10\n" + matrix + "  s_endpgm")
    found = work(plain, Counted(plain, 1, executions=[1] * 6), 64)
    assert (found.issue, found.waits) == (6, ())
    between = parsed("  ds_read_b32 v9, v10\n" + matrix + "  s_waitcnt lgkmcnt(0)\n" + matrix + "  s_endpgm")
    found = work(between, Counted(between, 1, executions=[1] * 5), 64)
    assert found.waits == (Wait("lds", 2, 1.0, 1.0), Wait("unit", 2, 1.0, 1.0, 4, 1)) and found.issue == 5
    assert standing(found.waits, lambda wait: {"lds": 10, "unit": 16}[wait.kind], 4) == 2 + (16 - 8 - 2)


def test_sixteen_loads_in_flight_are_one_round_trip() -> None:
    """Loads one after the other come one after the other: only the first is waited for in full."""
    kernel = parsed("".join(f"  global_load_dword v{n}, v30, s[0:1]\n" for n in range(16)) + "".join(
        f"  s_waitcnt vmcnt({15 - n})\n  v_add_f32_e32 v20, v20, v{n}\n" for n in range(16)) + "  s_endpgm")
    found = work(kernel, Counted(kernel, 1, executions=[1] * 49), 64)
    assert len(found.waits) == 16 and {wait.kind for wait in found.waits} == {"memory"}
    assert standing(found.waits, lambda wait: 1000, 4) == 1000 - 16 * 4


@given(st.lists(st.tuples(st.sampled_from("lx"), st.integers(0, 3)), min_size=1, max_size=40), st.integers(1, 400))
def test_a_straight_path_stands_as_long_as_a_clock_says(text: list[tuple[str, int]], latency: int) -> None:
    """Beside a wave that is followed clock by clock: an instruction every 4, loads come `latency` later, in order."""
    lines, clock, queue, stood = [], 0, [], 0
    for does, left in text:
        if does == "l":
            lines.append("  global_load_dword v1, v0, s[4:5]")
            queue.append(clock + latency)
        else:
            lines.append(f"  s_waitcnt vmcnt({left})")
            gone, queue = queue[:max(len(queue) - left, 0)], queue[max(len(queue) - left, 0):]
            now = max([clock, *gone])
            stood, clock = stood + now - clock, now
        clock += 4
    kernel = parsed("\n".join([*lines, "  s_endpgm"]))
    found = work(kernel, Counted(kernel, 1, executions=[1] * (len(text) + 1)), 64)
    assert standing(found.waits, lambda wait: latency, 4) == pytest.approx(stood)
    assert found.issue == len(text) + 1


@pytest.mark.parametrize("ask, message", [
    (lambda: estimate(of_counts(), NONE, "MI300X"), "counted on gfx950, and MI300X is gfx942"),
    (lambda: estimate(replace(of_counts(threads=1024), vector=512), NONE), "no workgroup of kernel 'k' fits"),
    (lambda: scaled(of_counts(), 0), "a launch of 0 workgroups"),
    (lambda: fit([1], [of_counts()], 2), "1 works of 1 sizes"),
    (lambda: fit([1, 2], [of_counts(), of_counts(threads=64)], 3), "works of different launches"),
    (lambda: work(parsed(LOOP), Counted(parsed("  s_endpgm"), 1, executions=[1]), 64), "2 counters of 1 workgroups"),
    (lambda: work(parsed("  s_endpgm"), Counted(parsed("  s_endpgm"), 1, executions=[1, 1]), 64), "calls functions")])
def test_refused(ask, message: str) -> None:
    with pytest.raises(FlylabError, match=message) as caught:
        ask()
    assert caught.value.hint
