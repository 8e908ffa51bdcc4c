"""exp, exp2, expm1, sinh, cosh and tanh."""

from __future__ import annotations

import math

from flylab.mathlib.coefficients import EXP2_SLOPE, EXP_REST, EXPM1
from flylab.mathlib.machine import Machine, Value, limited, polynomial

LOG2_E = 1 / math.log(2)
# ln 2 as a Float32, and what is left of it.
LN2_HIGH, LN2_LOW = 0.693147182464599609375, -1.904654299957767e-09
# Beyond it each of these functions is 0, infinite or a constant in Float32, also after a division by 2.
FAR = 200.0


def exp(m: Machine, x: Value) -> Value:
    """e**x = 2**n e**r with n the nearest integer to x / ln 2, in f32."""
    x = limited(m, x, FAR)
    n = m.rounded(x * LOG2_E, "roundeven")
    r = m.fma(n, -LN2_LOW, m.fma(n, -LN2_HIGH, x))
    return m.scaled(polynomial(m, r, (1.0, 1.0, *EXP_REST)), m.integer(n))


def exp2(m: Machine, x: Value) -> Value:
    """2**x = 2**n 2**r with n the nearest integer to x, in f32."""
    x = limited(m, x, FAR)
    n = m.rounded(x, "roundeven")
    return m.scaled(polynomial(m, x - n, (1.0, *EXP2_SLOPE)), m.integer(n))


def _power_and_rest(m: Machine, x: Value) -> tuple[Value, Value]:
    """2**n and e**r - 1 with x = n ln 2 + r, for an f64 of at most 200."""
    n = m.rounded(x * LOG2_E, "roundeven")
    r = m.fma(n, -math.log(2), x)
    return m.scaled(m.constant(1.0, x), m.integer(n)), r * polynomial(m, r, EXPM1)


def exp_wide(m: Machine, x: Value) -> Value:
    """e**x of an f64 of at most 200 in size, to 2**-36."""
    power, rest = _power_and_rest(m, x)
    return m.fma(rest, power, power)


def expm1_wide(m: Machine, x: Value) -> Value:
    """e**x - 1 of an f64 of at most 200 in size, to 2**-36 of its value."""
    power, rest = _power_and_rest(m, x)
    return m.fma(rest, power, power - 1.0)


def exp2_wide(m: Machine, x: Value) -> Value:
    """2**x of an f64, to 2**-36; 0 and what is infinite in f32 beyond 400."""
    x = limited(m, x, 400.0)
    n = m.rounded(x, "roundeven")
    r = (x - n) * math.log(2)
    power = m.scaled(m.constant(1.0, x), m.integer(n))
    return m.fma(r * polynomial(m, r, EXPM1), power, power)


def expm1(m: Machine, x: Value) -> Value:
    """e**x - 1; of x near 0 too."""
    return m.with_sign(m.to(expm1_wide(m, m.to(limited(m, x, FAR), "f64")), "f32"), x)


def _size(m: Machine, x: Value) -> Value:
    return m.to(m.absolute(limited(m, x, FAR)), "f64")


def sinh(m: Machine, x: Value) -> Value:
    """(p + p / (p + 1)) / 2 with p = e**|x| - 1."""
    p = expm1_wide(m, _size(m, x))
    return m.with_sign(m.to((p + p / (p + 1.0)) * 0.5, "f32"), x)


def cosh(m: Machine, x: Value) -> Value:
    """(p + 1 / p) / 2 with p = e**|x|."""
    p = exp_wide(m, _size(m, x))
    return m.to((p + 1.0 / p) * 0.5, "f32")


def tanh(m: Machine, x: Value) -> Value:
    """p / (p + 2) with p = e**(2 |x|) - 1."""
    p = expm1_wide(m, m.to(m.absolute(limited(m, x, FAR / 2)) * 2.0, "f64"))
    return m.with_sign(m.to(p / (p + 2.0), "f32"), x)


def native_tanh(m: Machine, x: Value) -> Value:
    """1 - 2 / (e**(2 |x|) + 1) by the hardware's exp2 and reciprocal."""
    power = m.native("llvm.exp2", m.absolute(x) * (2 * LOG2_E))
    return m.with_sign(m.fma(m.native("llvm.amdgcn.rcp", power + 1.0), -2.0, m.constant(1.0, x)), x)
