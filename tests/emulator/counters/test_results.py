"""Counters as people read them: rows by line and instruction, the table, the summary, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import flylab
from flylab.emulator.counters.results import Counters, Counts
from flylab.errors import DeviceError
from flylab.places import SourceLine
from tests.samples import cell

TEXT = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    tid = fx.thread_idx.x
    shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 2048]).peek()
    view = fx.make_view(shared.ptr, fx.make_layout(64, 32))
    view[tid] = A[tid]
    fx.gpu.barrier()
    if tid < 16:
        B[tid] = view[tid]

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor):
    k(A, B).launch(grid=1, block=64)
"""


@pytest.fixture(params=["gfx942", "gfx950"])
def counters(request: pytest.FixtureRequest) -> Counters:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    names = cell(TEXT)
    with flylab.use(request.param), flylab.watch(check=None, counters=True):
        found = names["launch"](a, b).reports[0].counters
    assert np.array_equal(b[:16], a[:16]) and isinstance(found, Counters)
    return found


def test_lines_have_the_figures_of_their_instructions(counters: Counters) -> None:
    lines = {row.where.line: row for row in counters.by_line() if row.where is not None}
    # Each lane's word lies in bank 0: 32 cycles for each half of the wave, and for the half with 16 lanes 16.
    assert (lines[6].counts.lds_cycles, lines[6].counts.lds_conflicts, lines[6].counts.lds_phases) == (64, 62, 2)
    assert (lines[9].counts.lds_cycles, lines[9].counts.lds_conflicts, lines[9].counts.lds_phases) == (16, 15, 1)
    assert counters.bytes_read == 64 * 4 and counters.bytes_written == 16 * 4
    assert counters.bytes_of("lds", store=True) == 64 * 4 and counters.bytes_of("lds", load=True) == 16 * 4
    total = sum((row.counts for row in counters.by_line()), Counts())
    assert total == counters.totals == sum((row.counts for row in counters.by_instruction()), Counts())
    reads = [row for row in counters.by_instruction() if row.text.strip().startswith("ds_read")]
    assert [(row.where.line if row.where else 0, row.space, row.counts.active) for row in reads] == [(9, "lds", 0.25)]


def test_the_table_reads_well(counters: Counters) -> None:
    text = str(counters)
    assert text.startswith(f"k on {counters.chip}: 1 workgroup, 1 wave, {counters.totals.executions} instructions "
                           "(emulated)\n  memory: 256 bytes read, 64 written, in ")
    assert "\n  LDS: 2 accesses in 80 cycles, of which 77 are of bank conflicts\n" in text
    above, heading, *rows = counters.table().split("\n")
    assert heading.startswith("line of ") and heading.endswith("cycles  conflicts") and above.endswith(" LDS")
    (row,) = [row for row in rows if "view[tid] = A[tid]" in row]
    assert row.split()[0] == "6" and row.split()[-2:] == ["64", "62"]
    assert len({len(row) for row in (heading, row)}) == 1 and max(map(len, rows)) < 120
    assert above.index("LDS") + 3 == heading.index("cycles") + 6
    assert "ds_read_b32" in counters.table(by="instruction")


def test_lines_of_several_files_are_named_with_them(counters: Counters) -> None:
    places = tuple(SourceLine("/far/" * 20 + "b.py", 3, "  f(x)  # twice") if n % 2 else SourceLine("a.py", 12, "g()")
                   for n in range(len(counters)))
    _, heading, *rows = replace(counters, places=places).table().split("\n")
    assert heading.startswith("line  ") and [row[:12] for row in rows] == ["b.py:3  f(x)", "a.py:12  g()"]


def test_what_is_not_counted_is_refused(counters: Counters) -> None:
    with pytest.raises(DeviceError, match="'cycles' is no figure that is counted") as raised:
        counters["cycles"]
    assert "lds_cycles" in str(raised.value.hint)
    with pytest.raises(DeviceError, match="a table by 'block'") as raised:
        counters.table(by="block")
    assert raised.value.hint
    for number in (len(counters), -1):
        with pytest.raises(DeviceError, match=f"kernel '{counters.kernel}' has no instruction {number}") as raised:
            counters.counts([0, number])
        assert raised.value.hint == f"they are numbered 0 to {len(counters) - 1}"


def test_a_cell_shows_the_table(counters: Counters) -> None:
    assert repr(counters) == str(counters)


def test_counters_can_be_pickled(counters: Counters) -> None:
    again = pickle.loads(pickle.dumps(counters))
    assert (again.totals, again.effects) == (counters.totals, counters.effects)
    assert again.by_line() == counters.by_line()


def test_a_launch_that_is_not_watched_has_none() -> None:
    names = cell(TEXT)
    with flylab.use("gfx942"):
        (report,) = names["launch"](np.zeros(64, np.float32), np.zeros(64, np.float32)).reports
    assert report.counters is None and report.log is None
