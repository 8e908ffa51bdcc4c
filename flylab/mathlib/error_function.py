"""erf and erfc, in f64, rounded once."""

from __future__ import annotations

from flylab.mathlib.coefficients import ERF_EXPONENT, ERFC_SCALED
from flylab.mathlib.exponential import exp_wide, expm1_wide
from flylab.mathlib.machine import Machine, Value, limited, polynomial


def erf(m: Machine, x: Value) -> Value:
    """1 - e**-g with g = a h(a), a = |x|, and h a polynomial; beyond 4 it is 1 in f32."""
    a = m.to(m.absolute(limited(m, x, 4.0)), "f64")
    g = a * polynomial(m, m.fma(a, 0.5, m.constant(-1.0, a)), ERF_EXPONENT)
    return m.with_sign(m.to(expm1_wide(m, -g), "f32"), x)


def erfc(m: Machine, x: Value) -> Value:
    """e**(-a**2) s(q) / (1 + 2 a) with a = |x| and q = (a - 3) / (a + 3); 2 minus it for x < 0.

    One division gives q and 1 / (1 + 2 a). Beyond 10.2 erfc is 0 in f32.
    """
    a = m.to(m.absolute(limited(m, x, 10.2)), "f64")
    steep, sum_ = m.fma(a, 2.0, m.constant(1.0, a)), a + 3.0
    inverse = 1.0 / (steep * sum_)
    q = (a - 3.0) * (steep * inverse)
    result = exp_wide(m, -(a * a)) * (sum_ * inverse) * polynomial(m, q, ERFC_SCALED)
    return m.to(m.select(x < 0.0, 2.0 - result, result), "f32")
