"""The committed table of modelled beside published times is what the model says of the committed counts."""

from __future__ import annotations

import csv
import json
import math
import re

import pytest

from flylab.model import Parameters
from flylab.model.calibration import error, fit_parameters, predict
from tests.benchmarks.model_table import (
    COUNTED,
    FAR,
    FAR_BECAUSE,
    FITTED_SHAPES,
    OF_THE_CLOCK,
    OTHERS,
    PAGE,
    counted,
    launches,
    page,
    short,
)
from tests.benchmarks.published import figures, rates
from tests.benchmarks.published import rows as published_rows

ROWS = counted()


def cells(section: str) -> list[list[str]]:
    """The rows of the table in a section of the page, without its header."""
    text = PAGE.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]


def test_the_page_is_what_the_model_says() -> None:
    """Where this fails after a change of the model: python -m tests.benchmarks.model_table --write."""
    assert PAGE.read_text() == page(ROWS, Parameters())


def test_published_times_are_those_of_the_csv() -> None:
    """A rate is that of the operations of a dense product."""
    rows = cells("Rows")
    assert len(rows) == len(ROWS) == 104
    for op, shape, variant, product, _, published, *_ in rows:
        if product == "MI350X":
            wanted = float(figures()[op, shape, variant]["us"])
        else:
            (rate,) = [rate for *key, rate in rates() if key == [op, shape, variant, product]]
            m, n, k = extents(shape, variant)
            wanted = 2 * m * n * k / rate * 1e-6
        assert float(published) == pytest.approx(wanted, rel=1e-3)


def extents(shape: str, variant: str) -> tuple[int, int, int]:
    """M, N and K of a published product; of 256 tiles, 16 x 16 of them."""
    if variant.startswith("tile"):
        m, n = map(int, variant.split()[1].split("x"))
        return 16 * m, 16 * n, 8192
    side = 8192 if shape == "large" else int(shape.split("^")[0])
    return side, side, side


def test_one_rule_tells_the_clock() -> None:
    """Launches with matrix instructions run at the sustained clock, and others at the peak."""
    matrix = {(row.op, row.shape, row.variant, row.product) for row in ROWS if any(
        each.counts.get("mfma") for each in row.works)}
    clocks = {"MI300X": ("2100 MHz [S]", "1200 MHz [M]"), "MI350X": ("2200 MHz [S]", "1611 MHz [?]"),
              "MI355X": ("2400 MHz [S]", "1611 MHz [D]")}
    for *key, clock in (row[:5] for row in cells("Rows")):
        peak, sustained = clocks[key[3]]
        assert clock == (f"sustained, {sustained}" if tuple(key) in matrix else f"peak, {peak}")
    assert {row.op for row in ROWS if row.clock == "sustained"} == {"sgemm", "GEMM f16", "GEMM bf16", "GEMM fp8"}
    told = re.findall(r"matrix instructions .* at the peak clock: a factor of (\S+); at the sustained clock: (\S+)\.\n",
                      PAGE.read_text())
    (with_peak, with_sustained), (without_peak, without_sustained) = [map(float, pair) for pair in told]
    assert with_sustained < with_peak and without_peak < without_sustained


def test_every_published_row_is_in_one_of_the_tables() -> None:
    with OTHERS.open() as file:
        others = [(line["op"], line["shape"], line["variant"], line["product"]) for line in csv.DictReader(file)]
    wanted = [(*key, "MI350X") for key in figures()] + others
    found = [tuple(row[:4]) for name in ("Rows", "Published rows that are not covered") for row in cells(name)]
    assert sorted(found) == sorted(wanted)
    assert all(row[-1] for row in cells("Published rows that are not covered"))


def test_the_means_from_the_table_itself() -> None:
    text, ratios = PAGE.read_text(), [float(row[6]) / float(row[5]) for row in cells("Rows")]
    held_out = [ratio for row, ratio in zip(cells("Rows"), ratios, strict=True) if row[-1] == "no"]
    for name, chosen in (("All", ratios), ("Rows held out", held_out)):
        found = re.search(rf"\* {name}[^:]*: (\d+) rows: off by a factor of ([\d.]+) in .*?, (\d+) %", text)
        assert found and int(found[1]) == len(chosen)
        assert float(found[2]) == pytest.approx(math.prod(max(r, 1 / r) for r in chosen) ** (1 / len(chosen)), abs=0.01)
        assert float(found[3]) == pytest.approx(100 * sum(abs(r - 1) for r in chosen) / len(chosen), abs=1)
    for op, shape, _, product, *_, used in cells("Rows"):
        assert (used == "yes") == (product == "MI350X" and shape in FITTED_SHAPES or (op, shape) == OF_THE_CLOCK)


def test_rows_that_are_far_off_are_explained() -> None:
    wanted = [row[:3] for row in cells("Rows") if not 1 / FAR <= float(row[6]) / float(row[5]) <= FAR]
    assert [row[:3] for row in cells(f"Rows that are off by more than a factor of {FAR}")] == wanted
    assert {key[:2] for key in FAR_BECAUSE} == {(row[0], row[2]) for row in wanted}


def test_no_time_without_its_label() -> None:
    head = next(line for line in PAGE.read_text().splitlines() if line.startswith("| op "))
    assert "published, us" in head and "modelled, us" in head and "bound by (modelled)" in head
    assert {row[2] for row in cells("Parameters")} == {"S", "M", "D", "?"}


def test_fitted_parameters_are_at_their_best() -> None:
    """Fitting starts from the committed ones and finds nothing that is better by more than their rounding."""
    chosen = [row for row in ROWS if row.fitted]
    ours = error(predict(row) for row in chosen).factor
    fitted = fit_parameters(ROWS)
    best = error(predict(row, fitted) for row in chosen).factor
    assert best <= ours <= best * 1.01


def test_the_ladder_comes_out_in_order() -> None:
    """Large launches, as published: each step that took 5 % off is quicker."""
    for op, shape in (("reduce", "N=256M"), ("sgemm", "4096^3"), ("elementwise", "N=256M"),
                      ("spmv", "1M rows, 32 nnz/row"), ("spmv", "1M rows, 8 nnz/row"),
                      ("GEMM f16", "K=8192 256 workgroups")):
        rows = [predict(row) for row in ROWS if (row.op, row.shape) == (op, shape)]
        for a in rows:
            for b in rows:
                if a.row.microseconds > 1.05 * b.row.microseconds:
                    assert a.microseconds > b.microseconds, (a.row.variant, b.row.variant)


@pytest.mark.parametrize("key", [("elementwise", "N=32M", "v2_float4"), ("reduce", "N=32M", "v0_baseline"),
                                 ("sgemv", "M=16384,N=256", "v1_wave_per_row_vec4"),
                                 ("spmv", "1M rows, 8 nnz/row", "v1_4_lanes"), ("GEMM bf16", "1024^3", "best")],
                         ids=lambda key: key[0])
def test_counting_anew_gives_the_committed_counts(key: tuple[str, str, str]) -> None:
    """Where this fails after a change of a kernel or the compiler: model_table with --count, then --write."""
    row = next(row for row in published_rows() if (row.op, row.shape, row.variant) == key)
    kept = next(row for row in json.loads(COUNTED.read_text()) if (row["op"], row["shape"], row["variant"]) == key)
    assert json.loads(json.dumps(short(launches(row)))) == kept


def test_counts_are_small_data() -> None:
    assert COUNTED.stat().st_size < 200_000
    assert all(row["works"] for row in json.loads(COUNTED.read_text()))
