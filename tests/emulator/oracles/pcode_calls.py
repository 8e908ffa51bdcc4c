"""The functions that AMD's pseudo-code calls without defining them, by the names they have there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.oracles import exact
from tests.emulator.oracles.exact import FORMATS
from tests.emulator.oracles.pcode_parser import PseudocodeError, document

Typed = tuple[str, int, int]
_CONVERSION = re.compile(r"(bf|fp|[uif])(\d+)_to_(bf|fp|[uif])(\d+)")
# Of each chip: the kind of an 8-bit float in the document, and what it is.
EIGHT_BITS = {
    "gfx942": {"fp": ml_dtypes.float8_e4m3fnuz, "bf": ml_dtypes.float8_e5m2fnuz},
    "gfx950": {"fp": ml_dtypes.float8_e4m3fn, "bf": ml_dtypes.float8_e5m2},
}


def call(machine: Any, name: str, values: list[Typed]) -> Typed:
    """The result of a function on these values; one named as an instruction is that instruction."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*values)
    found = _CONVERSION.fullmatch(name)
    if found and values[0][:2] == (found[1], int(found[2])):
        return _convert(machine, values[0], found[3], int(found[4]))
    if name in document():
        inner = dict(machine.names) | {f"S{n}": value for n, value in enumerate(values)} | {"D0": ("b", 128, 0)}
        result: Typed = type(machine)(inner, machine.chip).run(name)["D0"]
        kind, width = values[0][:2] if values[0][0] != "b" else ("u", 32)
        return kind, width, result[2] & ((1 << width) - 1)
    raise PseudocodeError(f"it calls {name}, which the document does not have")


def _convert(machine: Any, value: Typed, kind: str, width: int) -> Typed:
    source, raw = (value[0], value[1]), value[2]
    if source in FORMATS and (kind, width) in FORMATS:
        toward_zero = machine.names.get("ROUND_MODE", ("u", 2, 0))[2] == 3
        form = FORMATS[kind, width]
        found = exact.converted(raw, FORMATS[source], form, toward_zero)
        return kind, width, found | form.quiet if exact.is_nan(found, form) else found
    if width == 8 and kind in ("fp", "bf"):
        with np.errstate(all="ignore"):
            code = np.float32(exact.number(raw, FORMATS[source])).astype(EIGHT_BITS[machine.chip][kind])
        return kind, 8, int(code.view(np.uint8))
    if value[1] == 8 and value[0] in ("fp", "bf"):
        number = float(np.uint8(raw).view(EIGHT_BITS[machine.chip][value[0]]))
        return kind, width, exact.of_float(number, FORMATS[kind, width])
    if source in FORMATS:
        number = exact.number(raw, FORMATS[source])
        return kind, width, exact.to_integer(number, width, kind == "i") & ((1 << width) - 1)
    whole = raw - (1 << value[1]) if value[0] == "i" and raw >> (value[1] - 1) else raw
    if (kind, width) in FORMATS:
        return kind, width, exact.rounded(Fraction(whole), FORMATS[kind, width])
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind == "i" else (0, (1 << width) - 1)
    return kind, width, min(max(whole, low), high) & ((1 << width) - 1)


def scaled(value: Typed, power: int) -> Typed:
    """value * 2**power, rounded once."""
    form = FORMATS[value[0], value[1]]
    number = exact.number(value[2], form)
    if not math.isfinite(number):
        return value[0], value[1], form.any_nan if math.isnan(number) else value[2]
    power = max(min(power, 5000), -5000)  # beyond that every value overflows or vanishes
    return value[0], value[1], exact.rounded(Fraction(number) * Fraction(2) ** power, form, bool(value[2] & form.sign))


def _ldexp(value: Typed, power: Typed) -> Typed:
    return scaled(value, power[2] - (1 << power[1]) if power[2] >> (power[1] - 1) else power[2])


def _whole(function: Callable[[float], float]) -> Callable[[Typed], Typed]:
    """A rounding to an integer; zeros, infinities and NaNs stay, and so does the sign of what becomes zero."""

    def compute(value: Typed) -> Typed:
        form = FORMATS[value[0], value[1]]
        number = exact.number(value[2], form)
        if math.isnan(number):
            return value[0], value[1], form.any_nan
        if math.isinf(number):
            return value
        result = function(number)
        return value[0], value[1], exact.rounded(Fraction(result), form, bool(value[2] & form.sign))

    return compute


def _fract(value: Typed) -> Typed:
    number = exact.number(value[2], FORMATS[value[0], value[1]])
    part = number - math.floor(number) if math.isfinite(number) else math.nan
    return value[0], value[1], exact.of_float(part, FORMATS[value[0], value[1]])


def _mantissa(value: Typed) -> Typed:
    form = FORMATS[value[0], value[1]]
    return value[0], value[1], exact.of_float(math.frexp(exact.number(value[2], form))[0], form)


def _quiet(value: Typed) -> Typed:
    return value[0], value[1], value[2] | FORMATS[value[0], value[1]].quiet


def _test(function: Callable[[int, exact.Format], bool]) -> Callable[[Typed], Typed]:
    return lambda value: ("u", 1, int(function(value[2], FORMATS[value[0], value[1]])))


def _sign_extended(value: Typed, width: int) -> Typed:
    raw = value[2] & ((1 << width) - 1)
    if width and raw >> (width - 1):
        raw -= 1 << width
    return "i", value[1], raw & ((1 << value[1]) - 1)


def _signext(value: Typed) -> Typed:
    found = _sign_extended(value, value[1])
    return "i", 64, (found[2] - (1 << found[1]) if found[2] >> (found[1] - 1) else found[2]) & ((1 << 64) - 1)


def _norm(name: str) -> Callable[[Typed], Typed]:
    """A float of [-1, 1] or [0, 1] as a 16-bit fixed-point number, nearest even."""
    scale = 32767 if name == "snorm" else 65535

    def compute(value: Typed) -> Typed:
        number = exact.number(value[2], FORMATS[value[0], value[1]])
        if math.isnan(number):
            return "i", 16, 0
        number = min(max(number, -1.0 if name == "snorm" else 0.0), 1.0)
        return "i", 16, round(Fraction(number) * scale) & 0xFFFF

    return compute


_FUNCTIONS: dict[str, Callable[..., Typed]] = {
    "fma": lambda x, y, z: (x[0], x[1], exact.fused(x[2], y[2], z[2], FORMATS[x[0], x[1]])),
    "abs": lambda x: (x[0], x[1], x[2] & ~(1 << (x[1] - 1))),
    "sign": lambda x: ("u", 1, x[2] >> (x[1] - 1)),
    "exponent": lambda x: ("i", 32, exact.exponent_field(x[2], FORMATS[x[0], x[1]])),
    "mantissa": _mantissa, "fract": _fract, "ldexp": _ldexp,
    "trunc": _whole(math.trunc), "floor": _whole(math.floor),
    "isNAN": _test(exact.is_nan), "isSignalNAN": _test(exact.is_signalling),
    "isQuietNAN": _test(lambda raw, form: exact.is_nan(raw, form) and not exact.is_signalling(raw, form)),
    "isEven": lambda x: ("u", 1, int(exact.number(x[2], FORMATS[x[0], x[1]]) % 2 == 0)),
    "cvtToQuietNAN": _quiet,
    "signext": _signext, "signext_from_bit": lambda x, n: _sign_extended(x, n[2]),
    **{f"{kind}{bits}_to_{name}": _norm(name) for kind, bits in (("f", 16), ("f", 32)) for name in ("snorm", "unorm")},
}
