"""Published results beside what the model says of the same launches, and fitting of what nobody has published.

The table that comes of it is notebooks/reference/model.md, written by tests/benchmarks/model_table.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flylab.errors import FlylabError
from flylab.model.cycles import DEFAULT, Traffic, estimate
from flylab.model.parameters import Parameters
from flylab.model.work import Work

STEPS = (1.5, 1.2, 1.07, 1.02)
"""Factors by which a parameter is tried, larger and smaller, one after the other."""


@dataclass(frozen=True)
class Published:
    """A result that was published, in microseconds, and the launches of ours that do the same, one after the other.

    `fitted` tells whether the parameters may be fitted to it; the others are held out.
    """

    op: str
    shape: str
    variant: str
    product: str
    clock: str
    microseconds: float
    works: tuple[Work, ...]
    traffic: Traffic
    fitted: bool

    @property
    def group(self) -> str:
        """The rows beside which its order means something."""
        return f"{self.op} {self.shape} {self.product}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Published:
        """A row from data that JSON holds."""
        return cls(**{**data, "works": tuple(Work.from_json(each) for each in data["works"]),
                      "traffic": Traffic(**data["traffic"])})


@dataclass(frozen=True)
class Predicted:
    """A published result and the modelled one, in microseconds."""

    row: Published
    microseconds: float
    bound_by: str

    @property
    def ratio(self) -> float:
        """Modelled over published."""
        return self.microseconds / self.row.microseconds


def predict(row: Published, parameters: Parameters = DEFAULT) -> Predicted:
    """What the model says of a row: the sum of its launches, which share the traffic; the longest tells the bound."""
    parts = [estimate(each, row.traffic if number == 0 else Traffic(0), row.product, row.clock, parameters)
             for number, each in enumerate(row.works)]
    return Predicted(row, sum(part.microseconds for part in parts), max(parts, key=lambda p: p.microseconds).bound_by)


@dataclass(frozen=True)
class Error:
    """How far modelled times are from published ones: two means over some rows, and the worst ratio.

    `factor` is the geometric mean of max(r, 1/r) of the ratios r; `percent` the mean of |r - 1| in percent.
    """

    rows: int
    factor: float
    percent: float
    worst: float

    def __str__(self) -> str:
        return f"{self.rows} rows: off by a factor of {self.factor:.2f} in the geometric mean, {self.percent:.0f} % " \
               f"in the mean absolute percentage; the worst by a factor of {self.worst:.2f}"


def error(predicted: Iterable[Predicted]) -> Error:
    """The error of some rows. Raises `FlylabError` where there are none."""
    ratios = [each.ratio for each in predicted]
    if not ratios:
        raise FlylabError("there is no row to tell the error of", hint="give at least one")
    off = [abs(math.log(ratio)) for ratio in ratios]
    return Error(len(ratios), math.exp(sum(off) / len(off)), 100 * sum(abs(r - 1) for r in ratios) / len(ratios),
                 math.exp(max(off)))


def pairs_in_order(predicted: Sequence[Predicted], least: float = 1.03) -> tuple[int, int]:
    """How many pairs of a group's rows, whose published times differ by a factor of `least`, the model orders alike.

    The second number is that of all such pairs. Rows of one work are one variant to the model, and no pair.
    """
    alike = total = 0
    for n, a in enumerate(predicted):
        for b in predicted[:n]:
            published = a.row.microseconds / b.row.microseconds
            if a.row.group == b.row.group and max(published, 1 / published) >= least:
                total += 1
                alike += (a.microseconds > b.microseconds) == (published > 1)
    return alike, total


def fit_parameters(rows: Sequence[Published], start: Parameters = DEFAULT) -> Parameters:
    """Parameters whose "?" ones fit the rows marked `fitted`: each is changed by itself while the error falls.

    What is made small is the mean distance of the logarithms of the ratios.
    """
    chosen = [row for row in rows if row.fitted]

    def off(parameters: Parameters) -> float:
        return error(predict(row, parameters) for row in chosen).factor

    best, least = start, off(start)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for name in start.unknown():
                for factor in (step, 1 / step):
                    figure = getattr(best, name)
                    tried = replace(best, **{name: replace(figure, value=figure.value * factor)})
                    found = off(tried)
                    if found < least - 1e-6:
                        best, least, moved = tried, found, True
    return best
