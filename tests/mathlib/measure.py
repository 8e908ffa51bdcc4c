"""Measuring `fx.math` on the software device: points, exact values in Float64, and distances in ulp."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import flylab
import flylab.expr as fx
from flylab.mathlib.accuracy import APPROXIMATE, PROMISED, Promise
from tests.mathlib.off import off_by
from tests.samples import on_device

CHIPS = ("gfx942", "gfx950")
FORMATS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
# Mantissa bits with the leading one, and the exponents of the smallest denormal and of what is just too large.
SHAPES = {"f32": (24, -149, 128), "f16": (11, -24, 16), "bf16": (8, -133, 128)}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 2.5, math.inf, -math.inf, math.nan, 2.0**-149,
           -(2.0**-149), 2.0**-126, 1e-40, 65504.0, 3.4028234663852886e38,
           -3.4028234663852886e38, 1e10, 16777216.0, 16777218.0, 1e22]

_erf, _erfc = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc))
EXACT: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "powf": np.power,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": _erf, "erfc": _erfc,
}
"""The functions in Float64: numpy's and the C library's are within a few units of its last place."""


class Found(NamedTuple):
    """The largest distance, and the arguments where it is."""

    ulp: float
    at: tuple[float, ...]


def points(promise: Promise, count: int, seed: int = 0) -> Any:
    """Float32 arguments: special ones, all magnitudes, the row's intervals, and close to its special points."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    sets = [np.array(SPECIAL, np.float32), bits[np.isfinite(bits)]]
    sets += [random.uniform(low, high, count).astype(np.float32) for low, high in promise.spans]
    if promise.name in ("sin", "cos", "tan"):
        quarters = np.round(2.0 ** random.uniform(0, 90, count // 4)) * (math.pi / 2)
        sets.append(_around(quarters.astype(np.float32), 1))
    sets += [_around(np.array([x], np.float32), 60) for x in promise.near]
    return np.concatenate(sets)


def _around(centres: Any, steps: int) -> Any:
    """Numbers and their next neighbours."""
    distance = np.arange(-steps, steps + 1, dtype=np.int32)
    with np.errstate(invalid="ignore"):
        return (centres.view(np.int32)[:, None] + distance).ravel().view(np.float32)


def every(kind: str) -> Any:
    """All numbers of a format of 16 bits."""
    return np.arange(2**16, dtype=np.uint32).astype(np.uint16).view(FORMATS[kind])


def arguments(promise: Promise, kind: str, count: int, seed: int = 0) -> tuple[Any, ...]:
    """Arguments of a format; for functions of two, pairs, all of special ones among them."""
    if promise.name not in ("powf", "atan2"):
        return (points(promise, count, seed) if kind == "f32" else every(kind),)
    random = np.random.default_rng(seed + 1)
    with np.errstate(over="ignore"):
        pool = points(promise, count, seed).astype(FORMATS[kind])
        special = np.array(list(product(SPECIAL, SPECIAL))).astype(FORMATS[kind])
    pairs = [np.concatenate([special[:, n], random.permutation(pool)]) for n in range(2)]
    return tuple(pairs)


def distance(found: Any, exact: Any, kind: str) -> Any:
    """How far numbers of a format are from exact ones, in ulp at the exact ones; infinite where they differ in kind.

    What is too large for the format rounds to infinity, which stands for the next power of 2.
    """
    digits, lowest, highest = SHAPES[kind]
    got = found.astype(np.float64)
    with np.errstate(all="ignore"):
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(np.isfinite(exact), exact, 1.0))[1] - digits, lowest))
        limit = 2.0**highest
        wanted = np.clip(exact, -limit, limit)
        reached = np.where(np.isinf(got), np.copysign(limit, got), got)
        unit = np.minimum(unit, 2.0 ** (highest - digits))
        error = np.abs(reached - wanted) / unit
    both_nan = np.isnan(got) & np.isnan(exact)
    signs = (exact == 0) & (np.signbit(got) != np.signbit(exact))
    return np.where(both_nan, 0.0, np.where(np.isnan(error) | signs, np.inf, error))


def measure(name: str, kind: str, chip: str, count: int, seed: int = 0) -> Found:
    """The largest distance of a function on the software device."""
    inputs = arguments(PROMISED[name], kind, count, seed)
    with flylab.use(chip):
        found = on_device(getattr(fx.math, name), *inputs, out=FORMATS[kind])
    with np.errstate(all="ignore"):
        errors = distance(found, EXACT[name](*(x.astype(np.float64) for x in inputs)), kind)
    worst = int(np.argmax(errors))
    return Found(float(errors[worst]), tuple(float(x[worst]) for x in inputs))


def measure_approximation(name: str, count: int, step: int, seed: int = 0) -> float:
    """The largest error of a function under `afn`, with the table instructions off by `step` ulps."""
    row, random = APPROXIMATE[name], np.random.default_rng(seed)
    low, high = (np.log2(row.low), np.log2(row.high)) if row.low > 0 else (row.low, row.high)
    x = random.uniform(low, high, count)
    x = (np.exp2(x) if row.low > 0 else np.concatenate([x, random.uniform(-1, 1, count)])).astype(np.float32)
    with off_by(step):
        found = on_device(lambda v: getattr(fx.math, name)(v, fastmath="afn"), x, out=np.float32)
    exact = EXACT[name](x.astype(np.float64))
    return float(np.max(np.abs(found - exact) if row.absolute else distance(found, exact, "f32")))
