"""The functions that take a step or two: rounding, roots, sorting numbers by kind, clamping, integer powers."""

from __future__ import annotations

import math

from flylab.mathlib.machine import Machine, Value


def absf(m: Machine, x: Value) -> Value:
    """|x|."""
    return m.absolute(x)


def copysign(m: Machine, x: Value, sign: Value) -> Value:
    """|x| with the sign of `sign`."""
    return m.with_sign(x, sign)


def fma(m: Machine, x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once."""
    return m.fma(x, y, z)


def floor(m: Machine, x: Value) -> Value:
    """The nearest integer that is not above x."""
    return m.rounded(x, "floor")


def ceil(m: Machine, x: Value) -> Value:
    """The nearest integer that is not below x."""
    return m.rounded(x, "ceil")


def trunc(m: Machine, x: Value) -> Value:
    """The nearest integer that is not larger in size."""
    return m.rounded(x, "trunc")


def round_away(m: Machine, x: Value) -> Value:
    """The nearest integer, of halves the one that is larger in size."""
    return m.rounded(x, "round")


def roundeven(m: Machine, x: Value) -> Value:
    """The nearest integer, of halves the even one."""
    return m.rounded(x, "roundeven")


def sqrt(m: Machine, x: Value) -> Value:
    """The square root."""
    return m.sqrt(x)


def native_sqrt(m: Machine, x: Value) -> Value:
    """The hardware's square root."""
    return m.native("llvm.amdgcn.sqrt", x)


def rsqrt(m: Machine, x: Value) -> Value:
    """1 / sqrt(x), in f64."""
    return 1.0 / m.sqrt(m.to(x, "f64"))


def native_rsqrt(m: Machine, x: Value) -> Value:
    """The hardware's reciprocal square root."""
    return m.native("llvm.amdgcn.rsq", x)


def clampf(m: Machine, x: Value, low: Value, high: Value) -> Value:
    """x, but not below `low` and not above `high`, which wins; NaN stays."""
    x = m.select(x < low, low, x)
    return m.select(x > high, high, x)


def isnan(m: Machine, x: Value) -> Value:
    """Whether x is no number."""
    return x != x


def isinf(m: Machine, x: Value) -> Value:
    """Whether x is infinite."""
    return m.absolute(x) == math.inf


def isfinite(m: Machine, x: Value) -> Value:
    """Whether x is neither infinite nor NaN."""
    return m.absolute(x) < math.inf


def isnormal(m: Machine, x: Value) -> Value:
    """Whether x is neither 0, denormal, infinite nor NaN."""
    size = m.absolute(x)
    return (size < math.inf) & (size >= m.smallest_normal(x))


def ipowi(m: Machine, x: Value, n: Value) -> Value:
    """x**n of integers, wrapped; for n < 0 the quotient 1 / x**-n without its fraction (0 of 0).

    Squaring, once for each bit of the exponent up to the highest that is 1.
    """
    one = m.constant(1, x)

    def step(state: list[Value]) -> list[Value]:
        result, square, left = state
        result = m.select((left & 1) != 0, m.product(result, square), result)
        return [result, m.product(square, square), m.shifted_down(left, 1)]

    size = m.select(n < 0, 0, n)
    result = m.loop(lambda state: state[2] != 0, step, [one, x, size])[0]
    inverse = m.select(x == 1, one, m.select(x == -1, m.select((n & 1) != 0, m.constant(-1, x), 1), 0))
    return m.select(n < 0, inverse, result)
