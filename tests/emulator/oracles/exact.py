"""Floats as bits, and rational arithmetic on them rounded once: plain Python, independent of any processor."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary format: bits in all, bits of the fraction."""

    bits: int
    fraction: int

    @property
    def ones(self) -> int:
        """The exponent field of infinities and NaNs."""
        return (1 << (self.bits - 1 - self.fraction)) - 1

    @property
    def bias(self) -> int:
        return self.ones >> 1

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return self.ones << self.fraction

    @property
    def quiet(self) -> int:
        """The bit of a NaN that makes it quiet."""
        return 1 << (self.fraction - 1)

    @property
    def any_nan(self) -> int:
        """The NaN that stands here for any quiet one."""
        return self.infinity | self.quiet


FORMATS = {("f", 16): Format(16, 10), ("f", 32): Format(32, 23), ("f", 64): Format(64, 52), ("bf", 16): Format(16, 7)}
_CODES = {16: "e", 32: "f", 64: "d"}


def is_nan(raw: int, form: Format) -> bool:
    return raw & ~form.sign > form.infinity


def is_signalling(raw: int, form: Format) -> bool:
    return is_nan(raw, form) and not raw & form.quiet


def exponent_field(raw: int, form: Format) -> int:
    return raw >> form.fraction & form.ones


def is_denormal(raw: int, form: Format) -> bool:
    return not exponent_field(raw, form) and bool(raw & (form.sign - 1))


def number(raw: int, form: Format) -> float:
    """The value as a Python float, which holds any of these formats exactly."""
    if form.fraction == 7:
        raw, form = raw << 16, FORMATS["f", 32]
    value: float = struct.unpack("<" + _CODES[form.bits], raw.to_bytes(form.bits // 8, "little"))[0]
    return value


def rounded(value: Fraction, form: Format, negative_zero: bool = False, toward_zero: bool = False) -> int:
    """The bits of the nearest float, ties to even (or of the next towards zero); too large a value is infinite."""
    sign = form.sign if value < 0 or (value == 0 and negative_zero) else 0
    size = abs(value)
    if size == 0:
        return sign
    power = max(_log2(size), 1 - form.bias)
    units = size / Fraction(2) ** (power - form.fraction)
    whole = math.floor(units) if toward_zero else round(units)  # Python rounds ties to even
    raw = (power + form.bias - 1 << form.fraction) + whole  # the hidden bit adds one to the exponent
    if raw >= form.infinity:
        raw = form.infinity - 1 if toward_zero else form.infinity
    return sign | raw


def _log2(value: Fraction) -> int:
    """The exponent of the power of two at or below a positive number."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def converted(raw: int, source: Format, target: Format, toward_zero: bool = False) -> int:
    """A float in another format. A NaN keeps its sign, the upper bits of its payload, and whether it signals."""
    sign = target.sign if raw & source.sign else 0
    if is_nan(raw, source):
        payload = raw & (1 << source.fraction) - 1
        shift = target.fraction - source.fraction
        payload = payload << shift if shift >= 0 else payload >> -shift
        return sign | target.infinity | (payload or target.quiet)
    value = number(raw, source)
    if math.isinf(value):
        return sign | target.infinity
    return rounded(Fraction(value), target, bool(sign), toward_zero)


def of_float(value: float, form: Format) -> int:
    """The bits of a Python float rounded to a format; any NaN is the one that stands for all."""
    if math.isnan(value):
        return form.any_nan
    if math.isinf(value):
        return form.infinity | (form.sign if value < 0 else 0)
    return rounded(Fraction(value), form, math.copysign(1, value) < 0)


def fused(x: int, y: int, z: int, form: Format) -> int:
    """x * y + z rounded once."""
    a, b, c = (number(raw, form) for raw in (x, y, z))
    if not (math.isfinite(a) and math.isfinite(b)):
        return of_float(a * b + c, form)
    if not math.isfinite(c):
        return of_float(c, form)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return rounded(exact, form)
    product_negative = math.copysign(1, a) * math.copysign(1, b) < 0
    sums_to_nothing = Fraction(a) * Fraction(b) != 0
    return form.sign if not sums_to_nothing and product_negative and math.copysign(1, c) < 0 else 0


def quotient(x: int, y: int, form: Format) -> int:
    """x / y rounded once."""
    a, b = number(x, form), number(y, form)
    if math.isnan(a) or math.isnan(b):
        return form.any_nan
    sign = form.sign & (x ^ y)
    if math.isinf(a) or b == 0:
        invalid = math.isinf(b) if math.isinf(a) else a == 0
        return form.any_nan if invalid else sign | form.infinity
    if math.isinf(b) or a == 0:
        return sign
    return rounded(Fraction(a) / Fraction(b), form)


def to_integer(value: float, width: int, signed: bool) -> int:
    """A float as an integer, towards zero, saturating; NaN gives 0."""
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(math.trunc(value), low), high)
