"""The machine that computes while tracing: arrays of numpy, bit for bit what the device gives.

The fused product and sum, which numpy lacks, is built from exact steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from flylab.dtypes import DTYPES

Array = Any
KINDS = {d.mlir: d for d in (DTYPES["Float16"], DTYPES["BFloat16"], DTYPES["Float32"], DTYPES["Float64"])}
SPLIT = 2.0**27 + 1
# Sizes between which products of doubles and their errors are exact.
SAFE_LOW, SAFE_HIGH = 2.0**-450, 2.0**450


class Known:
    """A machine of numpy arrays; see `flylab.mathlib.machine`."""

    def constant(self, value: float, beside: Array) -> Array:
        return np.full_like(beside, value)

    def to(self, x: Array, kind: str) -> Array:
        return x.astype(KINDS[kind].to_numpy())

    def fma(self, x: Array, y: Any, z: Any) -> Array:
        """Floats by way of doubles, in which their product is exact."""
        y, z = (np.asarray(v, x.dtype) for v in (y, z))
        if x.dtype == np.float64:
            return _fused_doubles(*np.broadcast_arrays(x, y, z))
        a, b, c = (v.astype(np.float64) for v in (x, y, z))
        return _odd_sum(a * b, c).astype(x.dtype)

    def select(self, condition: Array, x: Any, y: Any) -> Array:
        return np.where(condition, x, y)

    def rounded(self, x: Array, how: str) -> Array:
        """numpy's functions, but for halves that go away from zero."""
        if how == "round":
            whole = np.trunc(x)
            return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x).astype(x.dtype)
        return (np.rint if how == "roundeven" else getattr(np, how))(x)

    def absolute(self, x: Array) -> Array:
        return np.abs(x)

    def with_sign(self, x: Array, sign: Array) -> Array:
        return np.copysign(x, sign)

    def sqrt(self, x: Array) -> Array:
        return np.sqrt(x)

    def scaled(self, x: Array, exponent: Array) -> Array:
        return np.ldexp(x, exponent)

    def integer(self, x: Array) -> Array:
        return np.where(np.abs(x) < 2.0**31, x, 0).astype(np.int32)

    def number(self, i: Array) -> Array:
        return i.astype(np.float64)

    def bits(self, x: Array) -> Array:
        return x.view(f"i{x.dtype.itemsize}")

    def of_bits(self, i: Array) -> Array:
        return i.view(f"f{i.dtype.itemsize}")

    def wide(self, i: Array) -> Array:
        return i.astype(np.int64) & 0xFFFFFFFF

    def low(self, i: Array) -> Array:
        return i.astype(np.int32)

    def shifted_down(self, i: Array, count: Any) -> Array:
        """By way of unsigned integers."""
        unsigned = f"u{i.dtype.itemsize}"
        return (i.view(unsigned) >> np.asarray(count).astype(unsigned)).view(i.dtype)

    def product(self, x: Array, y: Array) -> Array:
        return x * y

    def where(self, condition: Array, compute: Callable[[], tuple[Array, ...]], other: Sequence[Array]) -> list[Array]:
        return [np.where(condition, x, y) for x, y in zip(compute(), other, strict=True)]

    def loop(self, condition: Callable[[list[Array]], Array], step: Callable[[list[Array]], list[Array]],
             state: list[Array]) -> list[Array]:
        """All elements, while one of them needs it."""
        while np.any(condition(state)):
            state = step(state)
        return state

    def smallest_normal(self, x: Array) -> float:
        return 2.0**-14 if x.dtype == np.float16 else 2.0**-126 if x.dtype == np.float32 else 2.0**-1022

    def native(self, name: str, x: Array) -> Array:
        raise ValueError(f"{name} is known to the hardware alone")


def _lost(x: Array, y: Array, total: Array) -> Array:
    """What a sum of doubles has lost by rounding, exactly (Knuth)."""
    part = total - x
    return (x - (total - part)) + (y - part)


def _odd_sum(x: Array, y: Array) -> Array:
    """x + y of doubles, rounded to odd where it is not exact: a rounding to a narrower format after it is the only one.

    Source: Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, IEEE Transactions on Computers 57, 2008.
    """
    total = x + y
    lost = _lost(x, y, total)
    inexact = np.isfinite(total) & (lost != 0) & ((total.view(np.int64) & 1) == 0)
    outwards = (lost > 0) == (total > 0)
    step = np.where(outwards, 1, -1)
    return np.where(inexact, total.view(np.int64) + step, total.view(np.int64)).view(np.float64)


def _halves(x: Array) -> tuple[Array, Array]:
    """A double as the sum of two of 26 bits (Dekker)."""
    large = x * SPLIT
    high = large - (large - x)
    return high, x - high


def _fused_doubles(x: Array, y: Array, z: Array) -> Array:
    """x * y + z of doubles, rounded once, after the same source; by rational numbers where a step is not exact."""
    product = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    error = b * d - (((product - a * c) - b * c) - a * d)
    above = z + error
    total = product + above
    result = total + _odd_sum(_lost(product, above, total), _lost(z, error, above))
    result = np.where(error == 0, product + z, result)
    sizes = np.abs(np.stack([x, y, product, z]))
    odd = (sizes != 0) & ((sizes < SAFE_LOW) | (sizes > SAFE_HIGH))
    for at in np.flatnonzero(odd.any(0)):
        result.flat[at] = _fused(float(x.flat[at]), float(y.flat[at]), float(z.flat[at]))
    return result


def _fused(x: float, y: float, z: float) -> float:
    """x * y + z, rounded once."""
    if not all(map(math.isfinite, (x, y))):
        return x * y + z
    if not math.isfinite(z):
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:  # the sign of a zero is the machine's own
        return math.copysign(0.0, x) * math.copysign(1.0, y) + z if x * y == 0 or z == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
