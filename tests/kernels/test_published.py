"""The rows of published results: each compiles at its published size, spills nothing, and its first groups run."""

from __future__ import annotations

import pytest

from tests.benchmarks.published import figures, rates, rows

ROWS = rows()


def name(row):
    return f"{row.op} {row.shape} {row.variant}"


def test_a_row_stands_once():
    keys = [(row.op, row.shape, row.variant) for row in ROWS]
    assert len(keys) == len(set(keys))


def test_what_is_left_out_is_known():
    left = figures().keys() - {(row.op, row.shape, row.variant) for row in ROWS}
    assert {shape for _, shape, _ in left} == {"1M rows, skewed", "4096x4096, skewed, n=256"}
    covered = {(row.op, row.shape, row.variant, row.product) for row in ROWS}
    assert [rate[2] for rate in rates() if rate[:4] not in covered] == ["ping-pong"]


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_published_launch_is_compiled_and_begun(row):
    for kernel in row.compiled.isa.kernels.values():
        assert (kernel.spills, kernel.scratch_bytes) == (0, 0)
    for report, launch in zip(row.run(2), row.launches, strict=True):
        assert report.workgroups >= min(2, row.grid) and report.workgroups % launch.extents[0] in (0, 2)


@pytest.mark.parametrize("row", [row for row in ROWS if (row.op, row.shape, row.variant) in figures()], ids=name)
def test_published_rates_are_bytes_or_operations_over_the_time(row):
    """The csv's rate times its time is the work that the row states."""
    line = figures()[row.op, row.shape, row.variant]
    work = {"GB/s": row.bytes / 1e9, "TFLOP/s": row.operations / 1e12, "GFLOP/s": row.operations / 1e9}
    assert float(line["value"]) * row.microseconds * 1e-6 == pytest.approx(work[line["metric"]], rel=3e-3)
