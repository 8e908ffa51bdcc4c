"""log, log2, log10, log1p, the inverse hyperbolic functions, powers and the cube root, all in f64, rounded once.

An f32, a denormal too, is a normal f64, so nothing is scaled first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flylab.mathlib.coefficients import LOG1P, LOG1P_FINE
from flylab.mathlib.exponential import LOG2_E, exp2_wide
from flylab.mathlib.machine import Machine, Value, polynomial

ROOT_HALF = 0x3FE6A09E
"""The upper half of the bits of sqrt(1/2), about: mantissas are taken from [sqrt(1/2), sqrt(2))."""
INFINITY, NAN = math.inf, math.nan
# What stands for the logarithm of 0 and of infinity, and for an infinite exponent: a product with either is far out,
# but that with 0 is 0.
HUGE, HUGE_EXPONENT = 1e300, 1e30


def _split(m: Machine, x: Value) -> tuple[Value, Value]:
    """e (an integer as f64) and f with x = 2**e (1 + f) and 1 + f in [sqrt(1/2), sqrt(2)), for a normal f64 above 0."""
    bits = m.bits(x)
    high = m.low(m.shifted_down(bits, 32))
    e = (high - ROOT_HALF) >> 20
    mantissa = m.wide(high - (e << 20)) << 32 | m.wide(m.low(bits))
    return m.number(e), m.of_bits(mantissa) - 1.0


def _logarithm(m: Machine, f: Value, coefficients: Sequence[float] = LOG1P) -> Value:
    return f * polynomial(m, f, coefficients)


def log1p_wide(m: Machine, x: Value) -> Value:
    """log(1 + x) of an f64 above -1, to 2**-35 of its value."""
    e, f = _split(m, x + 1.0)
    f = m.select(e == 0.0, x, f)  # 1 + x has lost digits of x
    return m.fma(e, math.log(2), _logarithm(m, f))


def _log2_wide(m: Machine, x: Value) -> Value:
    """log2(x) of a size as f64, to 2**-42 of its value; of 0 and infinity a huge number."""
    e, f = _split(m, x)
    found = m.fma(_logarithm(m, f, LOG1P_FINE), LOG2_E, e)
    return m.select(x > 0.0, m.select(x < INFINITY, found, HUGE), -HUGE)


def _of_positive(m: Machine, x: Value, result: Value) -> Value:
    """A logarithm of x: the result where x is above 0 and finite, else what C says."""
    result = m.select(x < INFINITY, result, x)
    return m.select(x > 0.0, result, m.select(x == 0.0, m.constant(-INFINITY, x), NAN))


def log(m: Machine, x: Value) -> Value:
    """e ln 2 + log(1 + f)."""
    e, f = _split(m, m.to(x, "f64"))
    return _of_positive(m, x, m.to(m.fma(e, math.log(2), _logarithm(m, f)), "f32"))


def log2(m: Machine, x: Value) -> Value:
    """e + log(1 + f) / ln 2."""
    e, f = _split(m, m.to(x, "f64"))
    return _of_positive(m, x, m.to(m.fma(_logarithm(m, f), LOG2_E, e), "f32"))


def log10(m: Machine, x: Value) -> Value:
    """e log10(2) + log(1 + f) / ln 10."""
    e, f = _split(m, m.to(x, "f64"))
    return _of_positive(m, x, m.to(m.fma(e, math.log10(2), _logarithm(m, f) * (1 / math.log(10))), "f32"))


def log1p(m: Machine, x: Value) -> Value:
    """log(1 + x); of x near 0 too."""
    result = m.with_sign(m.to(log1p_wide(m, m.to(x, "f64")), "f32"), x)
    result = m.select(x < INFINITY, result, x)
    return m.select(x > -1.0, result, m.select(x == -1.0, m.constant(-INFINITY, x), NAN))


def asinh(m: Machine, x: Value) -> Value:
    """log1p(a + a**2 / (1 + sqrt(a**2 + 1))) with a = |x|."""
    a = m.to(m.absolute(x), "f64")
    square = a * a
    result = log1p_wide(m, a + square / (m.sqrt(square + 1.0) + 1.0))
    return m.select(m.absolute(x) < INFINITY, m.with_sign(m.to(result, "f32"), x), x)


def acosh(m: Machine, x: Value) -> Value:
    """log1p(t + sqrt(t (t + 2))) with t = x - 1."""
    t = m.to(x, "f64") - 1.0
    result = m.to(log1p_wide(m, t + m.sqrt(t * (t + 2.0))), "f32")
    return m.select(x >= 1.0, m.select(x < INFINITY, result, x), NAN)


def atanh(m: Machine, x: Value) -> Value:
    """log1p(2 a / (1 - a)) / 2 with a = |x|."""
    size = m.absolute(x)
    a = m.to(size, "f64")
    result = m.to(log1p_wide(m, (a + a) / (1.0 - a)) * 0.5, "f32")
    result = m.select(size < 1.0, result, m.select(size == 1.0, m.constant(INFINITY, x), NAN))
    return m.with_sign(result, x)


def _power(m: Machine, x: Value, y: Value, odd: Value) -> Value:
    """|x|**y for an f64 y, as f32, with the sign of x where the exponent is odd."""
    size = m.to(m.absolute(x), "f64")
    result = m.to(exp2_wide(m, y * _log2_wide(m, size)), "f32")
    return m.select((m.bits(x) < 0) & odd, -result, result)


def powf(m: Machine, x: Value, y: Value) -> Value:
    """2**(y log2 |x|), and C's table for what is special (Annex F.10.4.4)."""
    whole, half = m.rounded(y, "trunc") == y, y * 0.5
    far = m.absolute(y) == INFINITY
    exponent = m.to(m.select(far, m.with_sign(m.constant(HUGE_EXPONENT, y), y), y), "f64")
    result = _power(m, x, exponent, whole & (m.rounded(half, "trunc") != half))
    invalid = (x < 0.0) & (x > -INFINITY) & ~whole | (x != x) | (y != y)
    result = m.select(invalid, NAN, result)
    return m.select((y == 0.0) | (x == 1.0), 1.0, result)


def fpowi(m: Machine, x: Value, n: Value) -> Value:
    """x**n for an integer n."""
    result = _power(m, x, m.number(n), (n & 1) != 0)
    return m.select((x != x) & (n != 0), x, result)


def cbrt(m: Machine, x: Value) -> Value:
    """2**(log2(|x|) / 3)."""
    size = m.to(m.absolute(x), "f64")
    result = m.to(exp2_wide(m, _log2_wide(m, size) * (1 / 3)), "f32")
    return m.select(x == x, m.with_sign(result, x), x)
