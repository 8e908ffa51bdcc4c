"""A function of one argument on every Float32, by hand: `python -m tests.mathlib.every exp2`, about 10 minutes each.

Its worst argument belongs into `near` of the function's row in `flylab/mathlib/accuracy.py`, where tests find it again.
"""

from __future__ import annotations

import sys

import numpy as np

import flylab.expr as fx
from tests.mathlib.measure import EXACT, Found, distance
from tests.samples import on_device

STEP = 1 << 22


def every_single(name: str) -> Found:
    """The largest distance, and where it is."""
    worst = Found(0.0, ())
    for first in range(0, 1 << 32, STEP):
        x = np.arange(first, first + STEP, dtype=np.uint64).astype(np.uint32).view(np.float32)
        found = on_device(getattr(fx.math, name), x, out=np.float32)
        with np.errstate(all="ignore"):
            errors = distance(found, EXACT[name](x.astype(np.float64)), "f32")
        at = int(np.argmax(errors))
        worst = max(worst, Found(float(errors[at]), (float(x[at]),)))
    return worst


if __name__ == "__main__":
    for function in sys.argv[1:]:
        print(function, every_single(function))
