"""Rounding towards zero or an infinity, from a result rounded to nearest and the sign of what that rounding lost.

A handler whose mode asks for it has a `Rounding` in its builder; `Value` gives each float operation that rounds to it.
What was lost is found by exact steps (error-free transformations), so the host's own rounding mode is never touched:
Dekker's and Knuth's sums and products, and for fused multiply-add those of Boldo and Muller (2005). A result that lies
beyond the true value, seen from where the mode points, goes back by one unit in the last place.
"""

from __future__ import annotations

from flylab.emulator.handlers.ir import Value, width
from flylab.emulator.numbers.semantics import frexp_exponent, frexp_fraction, ldexp_double, power_of_two

# The two bits of a rounding mode: as FP_ROUND in MODE, and as float_round_mode_* in a kernel's descriptor have them.
NEAREST_EVEN, UP, DOWN, TOWARD_ZERO = range(4)
# Of two terms, the smaller counts with its sign alone when it is this many powers of two below the other.
_FAR = -300


class Rounding:
    """Rounds by `mode`, an i32 that may be known only as the wave runs; nearest even leaves a result as it is."""

    def __init__(self, mode: Value):
        self.mode = mode

    def __call__(self, operation: str, near: Value, *sources: Value) -> Value:
        """The result of an operation in this mode; `near` is the one rounded to nearest."""
        with near.b.to_nearest():
            if operation == "fptrunc":
                lost = sources[0] - near.to(sources[0].type)
            elif operation in ("sitofp", "uitofp"):
                lost = sources[0].to_float("double", operation == "sitofp") - near.to("double")
            else:
                x, y, z = _as_fused(operation, *sources)
                lost = (_lost_double if near.type == "double" else _lost_single)(near, x, y, z)
                near = self._zero(near, lost, x, y, z)
            return self._stepped(near, lost)

    def _is(self, mode: int, lanes: int) -> Value:
        return self.mode.cmp("eq", mode).splat(lanes)

    def _zero(self, near: Value, lost: Value, x: Value, y: Value, z: Value | None) -> Value:
        """A sum that is exactly zero, of terms with different signs, is -0 when rounded down."""
        if z is None:
            return near
        sign = (_bits(x) ^ _bits(y) ^ _bits(z)).cmp("slt", 0)
        wrong = near.cmp("oeq", 0.0) & lost.cmp("oeq", 0.0) & sign & self._is(DOWN, near.lanes)
        return wrong.select(-0.0, near)

    def _stepped(self, near: Value, lost: Value) -> Value:
        bits = _bits(near)
        negative, zero = bits.cmp("slt", 0), near.cmp("oeq", 0.0)
        to_zero = self._is(TOWARD_ZERO, near.lanes)
        up = lost.cmp("ogt", 0.0) & (self._is(UP, near.lanes) | to_zero & negative)
        down = lost.cmp("olt", 0.0) & (self._is(DOWN, near.lanes) | to_zero & ~negative)
        grown = zero.select(up.select(bits.like(1), bits.like(1 - (1 << width(near.type) - 1))), bits + 1)
        outwards = ~zero & (up & negative | down & ~negative)
        stepped = outwards.select(bits - 1, grown)
        return (up | down).select(stepped, bits).bits(near.type)


def _bits(x: Value) -> Value:
    return x.bits(f"i{width(x.type)}")


def _as_fused(operation: str, x: Value, y: Value, z: Value | None = None) -> tuple[Value, Value, Value | None]:
    """A sum or product as the terms of x * y + z."""
    if operation in ("fadd", "fsub"):
        return x, x.like(1.0), y if operation == "fadd" else -y
    return x, y, z


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b rounded, and what that lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _lost_single(near: Value, x: Value, y: Value, z: Value | None) -> Value:
    """The sign of x * y + z - near, of floats: their product is exact in double."""
    product = x.to("double") * y.to("double")
    if z is None:
        return product - near.to("double")
    total, rest = _sum(product, z.to("double"))
    return (total - near.to("double")) + rest


def _lost_double(near: Value, x: Value, y: Value, z: Value | None) -> Value:
    """The sign of x * y + z - near, of doubles: with the larger term brought to about 1, no step is out of range."""
    def far_if_zero(exponent: Value, *factors: Value) -> Value:
        for factor in factors:
            exponent = factor.cmp("oeq", 0.0).select(-5000, exponent)
        return exponent

    a, b = frexp_fraction(x), frexp_fraction(y)
    high = a * b
    low = a.call("fma", b, -high)
    exponent = far_if_zero(frexp_exponent(x) + frexp_exponent(y), x, y)
    if z is None:
        return (high - ldexp_double(near, -exponent)) + low
    other = far_if_zero(frexp_exponent(z), z)
    frame = exponent.call("smax", other)

    def scale(exponent: Value) -> Value:
        return power_of_two((exponent - frame).call("smax", _FAR).to("i64", True))

    high, low, addend = high * scale(exponent), low * scale(exponent), frexp_fraction(z) * scale(other)
    part, rest = _sum(addend, low)
    total, more = _sum(high, part)
    return ((total - ldexp_double(near, -frame)) + more) + rest


def narrow(value: Value) -> Value:
    """A float or double as half, rounded once: a double goes to float with the lost bits kept in its last one."""
    if value.type != "double":
        return value.to("half")
    with value.b.to_nearest():
        near = value.to("float")
        back = near.to("double")
        bits = near.bits("i32")
        further = back.call("fabs").cmp("ogt", value.call("fabs"))
        odd = (further.select(bits - 1, bits)) | 1
        found = back.cmp("one", value).select(odd, bits).bits("float").to("half")
    return value.b.rounded("fptrunc", found, value)
