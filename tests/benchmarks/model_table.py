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
from dataclasses import asdict, fields
from math import prod
from pathlib import Path
from typing import Any

import flylab
from flylab.model import Parameters, scaled, work
from flylab.model.calibration import Predicted, Published, error, fit_parameters, pairs_in_order, predict
from tests.benchmarks.published import DATA, Row, figures, rows

COUNTED = DATA / "model_work.json"
OTHERS = DATA / "published_other.csv"
PAGE = Path(__file__).resolve().parents[2] / "notebooks/reference/model.md"
GROUPS = 8
"""Workgroups that are run of each launch."""
LADDER_PRODUCT = "MI350X"
FITTED_SHAPES = ("N=256M", "M=16384,N=4096", "M=16384,N=64", "2048^3")
"""Shapes whose rows the parameters are fitted to. Those of the other shapes are held out."""
NOT_COVERED = "no kernel of ours yet"

ABOUT = """\
# The cycle model beside published results

Written by `python -m tests.benchmarks.model_table --write`. Every time in the column "modelled" is **modelled**, at the
product's peak clock; no device was at hand. Those in the column "published" are what others measured, from
`tests/data/published_mi350x_ladder.csv` and `tests/data/published_other.csv`.

For each row our kernel is compiled for the published launch, its first workgroups run on the software device with
counters, and the whole launch is taken to be so many times the same. The model knows nothing of the published kernel's
own text: where our listing keeps fewer loads in flight than the published one did, the model says so by its time. "Held
out" means that no parameter was fitted to a row; which resources the model has was decided with all rows in view.
"""


def launches(row: Row) -> dict[str, Any]:
    """A row as data: what its launches ask of the chip, counted on their first workgroups, and its traffic."""
    with flylab.watch(check=None, counters=True):
        reports = row.run(GROUPS)
    works = []
    for report, step in zip(reports, row.launches, strict=True):
        kernel = row.compiled.isa.kernels[step.kernel]
        counted = work(kernel, report.counters, prod(step.extents[3:]), step.smem)
        works.append(scaled(counted, prod(step.extents[:3])))
    # What is written is written once; of the published bytes the others are read.
    written = min(sum(each.counts.get("stored", 0.0) * each.groups for each in works), row.bytes)
    return {"op": row.op, "shape": row.shape, "variant": row.variant, "product": LADDER_PRODUCT, "clock": "peak",
            "microseconds": row.microseconds, "works": [each.as_json() for each in works],
            "traffic": {"read": row.bytes - written, "written": written}, "fitted": row.shape in FITTED_SHAPES}


def count() -> None:
    """Counts every row anew."""
    lines = [json.dumps(short(launches(row))) for row in rows()]
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
    return "\n".join([ABOUT, *_errors(predicted), "", *_rows(predicted), "", *_parameters(parameters), "",
                      *_missing(published), ""])


def _errors(predicted: Sequence[Predicted]) -> list[str]:
    fitted = [each for each in predicted if each.row.fitted]
    held_out = [each for each in predicted if not each.row.fitted]
    alike, pairs = pairs_in_order(predicted)
    lines = ["## Errors", "", "A row's ratio r is modelled over published. Two means: the geometric one of max(r, 1/r) "
             "and that of |r - 1|.", "", f"* All: {error(predicted)}.",
             f"* Rows that parameters were fitted to ({', '.join(FITTED_SHAPES)}): {error(fitted)}.",
             f"* Rows held out (all others): {error(held_out)}."]
    for op in dict.fromkeys(each.row.op for each in predicted):
        lines.append(f"* {op}: {error(each for each in predicted if each.row.op == op)}.")
    return [*lines, f"* Order: of {pairs} pairs of variants of a shape whose published times differ by 3 % or more, "
            f"the model orders {alike} as published."]


def _rows(predicted: Sequence[Predicted]) -> list[str]:
    lines = ["## Rows", "", "| op | shape | variant | chip | published, us | modelled, us | ratio | "
             "bound by (modelled) | used to fit |", "|---|---|---|---|---:|---:|---:|---|---|"]
    return lines + [f"| {p.row.op} | {p.row.shape} | {p.row.variant} | {p.row.product} | {p.row.microseconds:.4g} "
                    f"| {p.microseconds:.4g} | {p.ratio:.2f} | {p.bound_by} | {'yes' if p.row.fitted else 'no'} |"
                    for p in predicted]


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
    return lines + [f"| {' | '.join(row)} | {NOT_COVERED} |" for row in found if row[:4] not in covered]


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
