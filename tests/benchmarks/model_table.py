"""The cycle model beside published results: writes notebooks/reference/model.md from tests/data/model_work.json.

    python -m tests.benchmarks.model_table --count     runs the first workgroups of each published launch, counts anew
    python -m tests.benchmarks.model_table --fit       fits the parameters marked "?", and prints them
    python -m tests.benchmarks.model_table --write     writes the page from what was counted

The published results are tests/data/published_mi350x_ladder.csv and tests/data/published_other.csv. What is counted is
kept, so that the page can be checked without running a kernel: a test holds that it is what the model says.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from math import prod
from pathlib import Path
from typing import Any

import flylab
from flylab.model import Parameters, product, scaled, work
from flylab.model.calibration import Predicted, Published, error, fit_parameters, pairs_in_order, predict
from tests.benchmarks.published import DATA, LADDER_PRODUCT, Row, figures, rows

COUNTED = DATA / "model_work.json"
OTHERS = DATA / "published_other.csv"
PAGE = Path(__file__).resolve().parents[2] / "notebooks/reference/model.md"
GROUPS = 8
"""Workgroups that are run of each launch."""
LOGGED = 1 << 16
"""Accesses that are followed through the caches."""
FITTED_SHAPES = ("N=256M", "M=16384,N=4096", "M=16384,N=64", "2048^3")
"""Shapes of the ladder whose rows the parameters are fitted to. All other rows are held out, but for one:"""
OF_THE_CLOCK = ("GEMM fp8", "16384^3")
"""The row from whose published rate the sustained clock of MI355X is derived."""
FAR = 1.4
"""Rows that are off by a larger factor are explained."""
WHY = {
    "1M rows, skewed": "how the lengths of its rows are spread was not published",
    "4096x4096, skewed, n=256": "how the lengths of its rows are spread was not published",
    "ping-pong": "no kernel of ours yet: two groups of waves that take turns",
    "attention D128": "no kernel of ours yet"}
"""Why a row is not covered, by its shape, its variant or its op."""
STEPS_TO = "the steps to the best"
STEPS = "only the name of its step is published; ours has {}"
FAR_BECAUSE = {
    ("sgemm", "v1_lds_tile"): "ours reads 16 steps from LDS in 12 instructions of 8 and 16 bytes; with an instruction "
                              "for each operand LDS, which bounds it, would be busy 1.3 times as long",
    ("spmm", "v1_lds_row"): "ours has 8 rows of B in flight at once; a text that waits for each of the 32 makes 8 "
                            "times as many round trips to the L2",
    ("spmm", "v0_scalar"): "ours waits for an element, and only then for its row of B, 32 times",
    ("GEMM f16", "tile 128x64"): "ours has the loads of one step in flight, and a step of a small tile is shorter than "
                                 "a load takes",
    ("GEMM f16", "tile 64x128"): "as 128x64",
    ("GEMM fp8", "naive"): STEPS.format("5 vector operations for each product, and reads lines that its neighbours "
                                        "left in the L1"),
    ("GEMM fp8", "LDS"): STEPS.format("4 vector operations for each product, and most of its lines from the L1"),
    ("GEMM fp8", "MFMA"): STEPS.format("loads of a byte of which those of a wave fall in one line or a few"),
    ("GEMM fp8", "wide loads"): STEPS.format("no bank conflicts, and 3 workgroups on a compute unit"),
    ("GEMM fp8", "direct to LDS"): STEPS.format("no bank conflicts, and 3 workgroups on a compute unit"),
    ("GEMM fp8", "double buffer"): STEPS.format("no bank conflicts, and 2 workgroups on a compute unit")}
"""Why the model is far off, by op and variant, as far as the listing tells."""

ABOUT = """\
# The cycle model beside published results

Written by `python -m tests.benchmarks.model_table --write`. Every time in the column "modelled" is **modelled**; no
device was at hand. Those in the column "published" are what others measured, from
`tests/data/published_mi350x_ladder.csv` and `tests/data/published_other.csv`.

For each row our kernel is compiled for the published launch, its first workgroups run on the software device with
counters, the accesses of its first workgroup are followed through its share of the caches, and the whole launch is
taken to be so many times the same. The model knows nothing of the published kernel's own text: where our listing keeps
fewer loads in flight than the published one did (or more), the model says so by its time. "Held out" means that no
parameter was fitted to a row; which resources the model has, how it takes waits and caches, and the rule for the clock
were decided with the results of all rows known.

The clock follows one rule: a launch with matrix instructions runs at the product's sustained clock, any other at its
peak clock. AMD measured the sustained one under matrix load (1.1 to 1.23 GHz on MI300X at 750 W); vector work draws
less power, and the large f32 products without matrix instructions are as quick as the peak clock allows. For MI355X it
is derived from one row, which therefore counts as fitted; for MI350X it is taken to be the same.
"""


def launches(row: Row) -> dict[str, Any]:
    """A row as data: what its launches ask of the chip, counted on their first workgroups, and its traffic."""
    with flylab.watch(check=None, counters=True):
        reports = row.run(GROUPS)
    with flylab.watch(check=None, log=LOGGED):
        logged = row.run(1)
    works = []
    for report, first, step in zip(reports, logged, row.launches, strict=True):
        groups = prod(step.extents[:3])
        counted = work(row.compiled.isa.kernels[step.kernel], report.counters, prod(step.extents[3:]), step.smem,
                       first.log.where(block=0), groups)
        works.append(scaled(counted, groups))
    matrix = any("mfma_passes" in each.counts for each in works)
    # What is written is written once; of the published bytes the others are read.
    written = min(sum(each.counts.get("stored", 0.0) * each.groups for each in works), row.bytes)
    return {"op": row.op, "shape": row.shape, "variant": row.variant, "product": row.product,
            "clock": "sustained" if matrix else "peak",
            "microseconds": row.microseconds, "works": [each.as_json() for each in works],
            "traffic": {"read": row.bytes - written, "written": written}, "fitted": fitted(row)}


def fitted(row: Row) -> bool:
    """Whether parameters may be fitted to a row."""
    return row.product == LADDER_PRODUCT and row.shape in FITTED_SHAPES or (row.op, row.shape) == OF_THE_CLOCK


def count() -> None:
    """Counts every row anew."""
    lines = [json.dumps(short(launches(row)), separators=(",", ":")) for row in rows()]
    COUNTED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def short(data: Any) -> Any:
    """The same data with six digits of each number that is not whole."""
    if isinstance(data, dict):
        return {name: short(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [short(value) for value in data]
    return data if not isinstance(data, float) else int(data) if data.is_integer() else float(f"{data:.6g}")


def counted() -> list[Published]:
    """The rows that were counted."""
    return [Published.from_json(each) for each in json.loads(COUNTED.read_text())]


def page(published: Sequence[Published], parameters: Parameters) -> str:
    """The page's text."""
    predicted = [predict(row, parameters) for row in published]
    return "\n".join([ABOUT, *_errors(predicted, parameters), "", *_rows(predicted), "", *_far(predicted), "",
                      *_parameters(parameters), "", *_missing(published), ""])


def group(row: Published) -> str:
    """The rows whose error is told together: those of an op; of GEMMs, the steps to the best one by themselves."""
    steps = row.op.startswith("GEMM") and row.variant != "best" and not row.variant.startswith("tile")
    return f"{row.op}, {STEPS_TO}" if steps else row.op


def _errors(predicted: Sequence[Predicted], parameters: Parameters) -> list[str]:
    def told(name: str, rows: list[Predicted]) -> str:
        alike, pairs = pairs_in_order(rows)
        return f"* {name}: {error(rows)}; {alike} of {pairs} pairs in order."

    lines = ["## Errors", "", "A row's ratio r is modelled over published. Two means: the geometric one of max(r, 1/r) "
             "and that of |r - 1|. In", "order is a pair of variants of one shape whose published times differ by 3 % "
             "or more, and which the model orders alike.", "", told("All", list(predicted)),
             told(f"Rows that parameters were fitted to ({', '.join(FITTED_SHAPES)} of the ladder, and "
                  f"{' '.join(OF_THE_CLOCK)})", [each for each in predicted if each.row.fitted]),
             told("Rows held out (all others)", [each for each in predicted if not each.row.fitted])]
    lines += [told(name, [each for each in predicted if group(each.row) == name])
              for name in dict.fromkeys(group(each.row) for each in predicted)]
    return [*lines, *_of_the_clock(predicted, parameters)]


def _of_the_clock(predicted: Sequence[Predicted], parameters: Parameters) -> list[str]:
    """What the rule of the clock is worth: the rows that it tells apart, at either clock."""
    lines = []
    for name, kind in (("with", "sustained"), ("without", "peak")):
        chosen = [each.row for each in predicted if each.row.clock == kind and STEPS_TO not in group(each.row)]
        found = {clock: error(predict(replace(row, clock=clock), parameters) for row in chosen)
                 for clock in ("peak", "sustained")}
        lines.append(f"* The {len(chosen)} rows {name} matrix instructions (without the steps to the best) at the peak "
                     f"clock: a factor of {found['peak'].factor:.2f}; at the sustained clock: "
                     f"{found['sustained'].factor:.2f}.")
    return lines


def _rows(predicted: Sequence[Predicted]) -> list[str]:
    lines = ["## Rows", "", "| op | shape | variant | chip | clock | published, us | modelled, us | ratio | "
             "bound by (modelled) | used to fit |", "|---|---|---|---|---|---:|---:|---:|---|---|"]
    return lines + [f"| {p.row.op} | {p.row.shape} | {p.row.variant} | {p.row.product} | {_clock(p.row)} "
                    f"| {p.row.microseconds:.4g} | {p.microseconds:.4g} | {p.ratio:.2f} | {p.bound_by} "
                    f"| {'yes' if p.row.fitted else 'no'} |" for p in predicted]


def _clock(row: Published) -> str:
    return f"{row.clock}, {product(row.product).clock(row.clock)}"


def far(predicted: Sequence[Predicted]) -> list[Predicted]:
    """The rows that are far off."""
    return [each for each in predicted if max(each.ratio, 1 / each.ratio) > FAR]


def _far(predicted: Sequence[Predicted]) -> list[str]:
    lines = [f"## Rows that are off by more than a factor of {FAR}", "", "| op | shape | variant | ratio | why |",
             "|---|---|---|---:|---|"]
    return lines + [f"| {p.row.op} | {p.row.shape} | {p.row.variant} | {p.ratio:.2f} "
                    f"| {FAR_BECAUSE[p.row.op, p.row.variant]} |" for p in far(predicted)]


def _parameters(parameters: Parameters) -> list[str]:
    lines = ["## Parameters", "", "S: published by AMD; M: measured on the chip by others; D: derived; ?: fitted.", "",
             "| parameter | value | mark | source |", "|---|---|---|---|"]
    for each in fields(parameters):
        figure = getattr(parameters, each.name)
        lines.append(f"| {each.name} | {figure.value:g} {figure.unit} | {figure.mark} | {figure.source} |")
    return lines


def _missing(published: Sequence[Published]) -> list[str]:
    """The published rows that nothing covers."""
    covered = {(row.op, row.shape, row.variant, row.product) for row in published}
    lines = ["## Published rows that are not covered", "", "| op | shape | variant | chip | published | reason |",
             "|---|---|---|---|---|---|"]
    found = [(*key, LADDER_PRODUCT, f"{line['us']} us") for key, line in figures().items()]
    with OTHERS.open() as file:
        found += [(line["op"], line["shape"], line["variant"], line["product"], f"{line['value']} {line['metric']}")
                  for line in csv.DictReader(file)]
    return lines + [f"| {' | '.join(row)} | {next(WHY[name] for name in (row[1], row[2], row[0]) if name in WHY)} |"
                    for row in found if row[:4] not in covered]


def main() -> None:
    """Does what the options ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("count", "fit", "write"):
        parser.add_argument(f"--{name}", action="store_true")
    asked = parser.parse_args()
    if asked.count:
        count()
    if asked.fit:
        found = fit_parameters(counted())
        for name in found.unknown():
            print(f"{name}: {asdict(found)[name]['value']:.3g}")
        print(page(counted(), found).split("## Rows")[0])
    if asked.write:
        PAGE.write_text(page(counted(), Parameters()))


if __name__ == "__main__":
    main()
