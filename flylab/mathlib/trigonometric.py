"""sin, cos, tan and their inverses, in f64, rounded once; arguments of any size are reduced as their bits say."""

from __future__ import annotations

import math

from flylab.mathlib.coefficients import ARCTANGENT, COSINE, SINE
from flylab.mathlib.machine import Machine, Value, polynomial

INFINITY, NAN = math.inf, math.nan
TWO_OVER_PI = 2 / math.pi
# pi / 2 as an f64, and what is left of it as another.
HALF_PI, HALF_PI_REST = math.pi / 2, 6.123233995736766e-17
# Above it the quotient by pi / 2 does not fit an i32.
FAR = 2.0**30
# The first 224 bits of 2 / pi, 32 each: what an f32 of up to 2**128 needs. They can be had from Machin's formula.
TWO_OVER_PI_BITS = (0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
SIGN = -(2**31)


def _far_reduction(m: Machine, size: Value) -> tuple[Value, Value]:
    """As `_reduced` for sizes of at least 2**30, after Payne and Hanek: a product with 96 of the bits of 2 / pi.

    With size = M 2**e, the bits of 2 / pi above 2**(1 - e) make multiples of 4 quadrants and are left out; the product
    of M with the next 96, mod 2**96, is the place within 4 quadrants in units of 2**-94 of one.
    """
    bits = m.bits(size)
    first = (bits >> 23) - 152
    words = [m.constant(w - 2**32 if w >= 2**31 else w, bits) for w in TWO_OVER_PI_BITS]
    for step in (2, 1):
        later = (first & (32 * step)) != 0
        words = [m.select(later, words[n + step], words[n]) for n in range(len(words) - step)]
    count = m.wide(32 - (first & 31))
    pairs = [m.wide(high) << 32 | m.wide(low) for high, low in zip(words, words[1:], strict=False)]
    high, middle, low = (m.wide(m.low(m.shifted_down(pair, count))) for pair in pairs[:3])
    mantissa = m.wide((bits & 0x7FFFFF) | 0x800000)
    tail = m.product(mantissa, low)
    tail = m.product(mantissa, middle) + m.shifted_down(tail, 32)
    place = (m.product(mantissa, high) << 32) + tail
    quadrant = m.shifted_down(place + 2**61, 62)
    rest = m.number(place - (quadrant << 62)) * (HALF_PI * 2.0**-62)
    return m.select(size < INFINITY, rest, NAN), m.low(quadrant)


def _reduced(m: Machine, x: Value) -> tuple[Value, Value]:
    """r (f64, at most pi / 4 in size) and q (i32) with |x| = q pi / 2 + r, q counted mod 4."""
    size = m.absolute(x)
    wide = m.to(size, "f64")
    n = m.rounded(wide * TWO_OVER_PI, "roundeven")
    rest = m.fma(n, -HALF_PI_REST, m.fma(n, -HALF_PI, wide))
    rest, quadrant = m.where(size >= FAR, lambda: _far_reduction(m, size), (rest, m.integer(n)))
    return rest, quadrant


def _sine_and_cosine(m: Machine, r: Value) -> tuple[Value, Value]:
    """Of at most pi / 4, in f64."""
    square = r * r
    return r * polynomial(m, square, SINE), polynomial(m, square, COSINE)


def _signed(m: Machine, value: Value, negative: Value) -> Value:
    """An f64 as f32, its sign turned where bit 31 of an i32 is set."""
    return m.of_bits(m.bits(m.to(value, "f32")) ^ (negative & SIGN))


def sincos(m: Machine, x: Value) -> tuple[Value, Value]:
    """The sine and the cosine."""
    r, q = _reduced(m, x)
    sine, cosine = _sine_and_cosine(m, r)
    odd = (q & 1) != 0
    return (_signed(m, m.select(odd, cosine, sine), (q << 30) ^ m.bits(x)),
            _signed(m, m.select(odd, sine, cosine), (q + 1) << 30))


def sin(m: Machine, x: Value) -> Value:
    """The sine."""
    return sincos(m, x)[0]


def cos(m: Machine, x: Value) -> Value:
    """The cosine."""
    return sincos(m, x)[1]


def tan(m: Machine, x: Value) -> Value:
    """sin / cos of the rest, or -cos / sin."""
    r, q = _reduced(m, x)
    sine, cosine = _sine_and_cosine(m, r)
    odd = (q & 1) != 0
    quotient = m.select(odd, cosine, sine) / m.select(odd, sine, cosine)
    return _signed(m, quotient, (q << 31) ^ m.bits(x))


def native_sincos(m: Machine, x: Value) -> tuple[Value, Value]:
    """The hardware's sine and cosine."""
    return m.native("llvm.sin", x), m.native("llvm.cos", x)


def native_tan(m: Machine, x: Value) -> Value:
    """Their quotient, by the hardware's reciprocal."""
    sine, cosine = native_sincos(m, x)
    return sine * m.native("llvm.amdgcn.rcp", cosine)


def _angle(m: Machine, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), neither negative nor both 0 or infinite, in f64: a quotient below tan(pi / 8)."""
    steep, middle = y > x * (1 + math.sqrt(2)), y > x * (math.sqrt(2) - 1)
    over = m.select(steep, -x, m.select(middle, y - x, y))
    under = m.select(steep, y, m.select(middle, y + x, x))
    base = m.select(steep, m.constant(math.pi / 2, x), m.select(middle, m.constant(math.pi / 4, x), 0.0))
    quotient = over / under
    return m.fma(quotient, polynomial(m, quotient * quotient, ARCTANGENT), base)


def atan(m: Machine, x: Value) -> Value:
    """The angle of (1, x)."""
    y = m.to(m.absolute(x), "f64")
    return m.with_sign(m.to(_angle(m, y, m.constant(1.0, y)), "f32"), x)


def atan2(m: Machine, y: Value, x: Value) -> Value:
    """The angle of (x, y), from -pi to pi; for zeros and infinities as in C (Annex F.10.1.4)."""
    up, right = (m.to(m.absolute(v), "f64") for v in (y, x))
    diagonal = (up == INFINITY) & (right == INFINITY)
    right = m.select(diagonal | (up + right == 0.0), 1.0, right)
    angle = _angle(m, m.select(diagonal, 1.0, up), right)
    return m.with_sign(m.to(m.select(m.bits(x) < 0, math.pi - angle, angle), "f32"), y)


def asin(m: Machine, x: Value) -> Value:
    """The angle of (sqrt(1 - x**2), x)."""
    y = m.to(m.absolute(x), "f64")
    return m.with_sign(m.to(_angle(m, y, m.sqrt((1.0 - y) * (1.0 + y))), "f32"), x)


def acos(m: Machine, x: Value) -> Value:
    """The angle of (x, sqrt(1 - x**2))."""
    size = m.to(m.absolute(x), "f64")
    angle = _angle(m, m.sqrt((1.0 - size) * (1.0 + size)), size)
    return m.to(m.select(x < 0.0, math.pi - angle, angle), "f32")
