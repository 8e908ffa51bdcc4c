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
        return _rounded(value, dtype)
    if isinstance(value, float):
        low, high = integer_range(dtype)
        if math.isnan(value):
            return 0
        return low if value <= low else high if value >= high else int(value)
    bits = int(value) & ((1 << dtype.bits) - 1)
    return bits - (1 << dtype.bits) if dtype.signed and bits >> (dtype.bits - 1) else bits


def _rounded(value: Any, dtype: DType) -> float:
    """A number as the nearest of a float format, ties to even, rounded once; of Float8E8M0FNU, ties away from zero.

    What the format does not reach, and NaN, become what `ml_dtypes` makes of them.
    """
    import numpy

    if dtype.name in ("Float16", "Float32", "Float64"):
        wide = _to_odd(value, 53) if dtype.bits < 64 else _nearest_double(value)
        with numpy.errstate(over="ignore", invalid="ignore"):
            return float(dtype.to_numpy().type(wide))
    # ml_dtypes rounds a double to a float first, which must not round to a tie.
    with numpy.errstate(over="ignore", invalid="ignore"):
        return float(numpy.float32(_to_odd(value, 24)).astype(dtype.to_numpy()))


def _nearest_double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _to_odd(value: Any, precision: int) -> float:
    """A number with `precision` bits (53: a double, 24: a float), of two neighbours the one with an odd last bit.

    Rounding that to a format of at least 2 bits fewer gives what rounding the number at once would.
    """
    if isinstance(value, int):
        extra = value.bit_length() - precision
        if extra > 0:
            value = value >> extra << extra | (value & ((1 << extra) - 1) != 0) << extra
        return _nearest_double(value)
    if precision == 53 or value != value or math.isinf(value) or value == 0:
        return float(value)
    # A float has 24 bits down to its least normal number, 2**-126, and its last bit is worth 2**-149 from there on.
    unit = max(math.frexp(value)[1] - precision, -149)
    scaled = math.ldexp(value, -unit)
    whole = math.floor(scaled)
    return min(max(math.ldexp(whole | (whole != scaled), unit), -FLOAT_MAX), FLOAT_MAX)


FLOAT_MAX = (2 - 2.0**-23) * 2.0**127
"""The largest Float32."""


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
