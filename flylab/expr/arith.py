"""The `arith` names of the language: choosing, and the larger or smaller of two."""

from __future__ import annotations

from typing import Any

from flylab.expr.fastmath import FastMathFlags, fastmath
from flylab.expr.planned import missing
from flylab.expr.select import ceildiv, maxnumf, minnumf, select
from flylab.expr.select import maximum as maximumf
from flylab.expr.select import minimum as minimumf

__all__ = ["FastMathFlags", "ceildiv", "fastmath", "maximumf", "maxnumf", "minimumf", "minnumf", "select"]


def __getattr__(name: str) -> Any:
    raise missing("fx.arith", name, globals())
