"""What an operation gives for values known while tracing: the same as the machine would."""

from __future__ import annotations

import math
from typing import Any

from flylab.dtypes import BOOL, DType
from flylab.errors import TraceError
from flylab.expr.arithmetic import BINARY
from flylab.expr.promotion import integer_range


def normalise(value: Any, dtype: DType) -> int | float | bool:
    """A Python number as the format holds it: integers wrap, floats round to nearest even, a float given to an integer
    format is truncated (NaN gives 0, and what is out of range the nearest value)."""
    if dtype.kind == BOOL:
        return bool(value)
    if dtype.is_float:
        import numpy

        try:
            wide = float(value)
        except OverflowError:
            wide = math.inf if value > 0 else -math.inf
        with numpy.errstate(over="ignore", invalid="ignore"):
            return float(dtype.to_numpy().type(wide))
    if isinstance(value, float):
        low, high = integer_range(dtype)
        if math.isnan(value):
            return 0
        return low if value <= low else high if value >= high else int(value)
    bits = int(value) & ((1 << dtype.bits) - 1)
    return bits - (1 << dtype.bits) if dtype.signed and bits >> (dtype.bits - 1) else bits


def check_right(symbol: str, b: Any, dtype: DType) -> None:
    """Raise `TraceError` for a known right operand that the operator has no result for."""
    if symbol in ("//", "%") and b == 0:
        raise TraceError(f"division by zero: {dtype} {symbol} 0", hint="check the divisor first")
    if symbol in ("<<", ">>") and not 0 <= b < dtype.bits:
        raise TraceError(f"a shift of {dtype} by {b} bits", hint=f"shift by 0 to {dtype.bits - 1}")


def binary(symbol: str, a: Any, b: Any, dtype: DType) -> int | float | bool:
    """`a symbol b` on two known values of one format."""
    if dtype.is_float and symbol in ("max", "min", "maxnum", "minnum"):
        return _extremum(symbol, a, b)
    check_right(symbol, b, dtype)
    if symbol == "/" and b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    try:
        return normalise(BINARY[symbol].fold(a, b), dtype)
    except OverflowError:
        return math.inf


def _extremum(symbol: str, a: float, b: float) -> float:
    """Float max and min: `max`/`min` give NaN if either is NaN, `maxnum`/`minnum` the other one."""
    if math.isnan(a) or math.isnan(b):
        if symbol in ("max", "min"):
            return math.nan
        return b if math.isnan(a) else a
    if a == b == 0:  # -0.0 is less than 0.0
        negative = [math.copysign(1.0, x) < 0 for x in (a, b)]
        lower = any(negative) if symbol.startswith("min") else all(negative)
        return -0.0 if lower else 0.0
    return max(a, b) if symbol.startswith("max") else min(a, b)
