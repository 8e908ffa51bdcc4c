"""The instructions that the hardware answers from tables to about 1 ulp: reciprocals, roots, exp2, log2, sine, cosine.

AMD publishes their accuracy and not their bits, so each is computed here in double, from series written out below, and
rounded once to its format: at least as near to the true value as the hardware. 32-bit ones flush denormals, as
documented; LLVM scales their operands where that matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flylab.emulator.handlers.ir import Value
from flylab.emulator.numbers.semantics import is_infinite, is_nan, power_of_two, quiet


def flushed(x: Value) -> Value:
    """A float with denormals made zero."""
    if x.type != "float":
        return x
    bits = x.bits("i32")
    return (bits & 0x7F800000).cmp("eq", 0).select(bits & -0x80000000, bits).bits("float")


def precise(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """A float function by way of double, denormals flushed on both sides, NaN passed on; no mode rounds it."""

    def compute(x: Value) -> Value:
        with x.b.to_nearest():
            result = flushed(function(flushed(x).to("double")).to(x.type))
        return is_nan(x).select(quiet(x), result)

    return compute


def reciprocal(x: Value) -> Value:
    """1 / x."""
    return 1.0 / x


def reciprocal_root(x: Value) -> Value:
    """1 / sqrt(x)."""
    return 1.0 / x.call("sqrt")


def root(x: Value) -> Value:
    """sqrt(x)."""
    return x.call("sqrt")


def _series(x: Value, terms: list[float]) -> Value:
    """The polynomial with these coefficients, lowest first."""
    result = x.like(terms[-1])
    for term in reversed(terms[:-1]):
        result = result.call("fma", x, term)
    return result


def exp2(x: Value) -> Value:
    """2**x: the nearest integer goes to the exponent, the rest through e**(r ln 2)."""
    capped = x.cmp("olt", 1100.0).select(x, 1100.0)
    capped = capped.cmp("ogt", -1070.0).select(capped, -1070.0)
    whole = capped.call("roundeven")
    rest = capped - whole
    value = _series(rest, [math.log(2) ** n / math.factorial(n) for n in range(14)])
    scale = whole.to_int("i64", True)
    half = scale.sar(1)
    return value * power_of_two(half) * power_of_two(scale - half)


def log2(x: Value) -> Value:
    """log2(x): exponent plus 2 atanh(s) / ln 2 with s = (m - 1) / (m + 1), m in [sqrt 1/2, sqrt 2)."""
    bits = x.bits("i64")
    shifted = bits - 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    exponent = shifted.sar(52)
    mantissa = (bits - exponent.shl(52)).bits("double")
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    value = s * _series(square, [2 / math.log(2) / (2 * n + 1) for n in range(12)])
    result = exponent.to_float("double", True) + value
    result = is_infinite(x).select(float("inf"), result)
    result = x.cmp("oeq", 0.0).select(-math.inf, result)
    return x.cmp("olt", 0.0).select(math.nan, result)


def _sine_of_turns(turns: Value) -> Value:
    """sin(2 pi t) for |t| <= 1/4."""
    angle = turns * (2 * math.pi)
    return angle * _series(angle * angle, [(-1) ** n / math.factorial(2 * n + 1) for n in range(12)])


def sine(x: Value) -> Value:
    """v_sin: sin(2 pi x)."""
    rest = x - x.call("roundeven")
    size = rest.call("fabs")
    folded = size.cmp("ogt", 0.25).select(0.5 - size, size).call("copysign", rest)
    return is_infinite(x).select(math.nan, _sine_of_turns(folded))


def cosine(x: Value) -> Value:
    """v_cos: cos(2 pi x)."""
    rest = x - x.call("roundeven")
    return is_infinite(x).select(math.nan, _sine_of_turns(0.25 - rest.call("fabs")))
