"""The steps of the division that LLVM builds from v_rcp, v_fma and these: v_div_scale, v_div_fmas, v_div_fixup.

Source: the operation descriptions of AMD's CDNA3 ISA document. Where those leave a choice, it is the one with which
LLVM's sequence gives the correctly rounded quotient, as it does on the chip: v_div_fmas multiplies by 2**64 (2**128 for
doubles) or its inverse by the size of the quotient, and v_div_scale makes a huge denominator smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

from flylab.emulator.handlers.ir import Value, width
from flylab.emulator.numbers.semantics import EXPONENT, biased_exponent, is_infinite, is_nan, quiet


@dataclass(frozen=True)
class Limits:
    """The figures of one format: powers of two, of which `vanishing` is half the smallest denormal."""

    scale: int
    far: int
    tiny: int
    vanishing: int


LIMITS = {"float": Limits(64, 96, 23, -150), "double": Limits(128, 768, 53, -1075)}


def div_scale(x: Value, denominator: Value, numerator: Value) -> tuple[Value, Value]:
    """v_div_scale: x (one of the others) scaled so that the division stays normal, and whether the result is to be."""
    limits = LIMITS[x.type]
    up, down = float(2.0**limits.scale), float(2.0**-limits.scale)
    top, bottom = biased_exponent(numerator), biased_exponent(denominator)
    of_denominator = x.cmp("oeq", denominator)
    of_numerator = x.cmp("oeq", numerator)
    zero = numerator.cmp("oeq", 0.0) | denominator.cmp("oeq", 0.0)
    near_max = (top - bottom).cmp("sge", limits.far)
    tiny_denominator = bottom.cmp("eq", 0)
    tiny_inverse = _denormal(1.0 / denominator)
    quotient = numerator / denominator
    tiny_quotient = _denormal(quotient) | quotient.cmp("oeq", 0.0)  # one too small for a denormal rounds like one
    tiny_numerator = top.cmp("sle", limits.tiny)
    grown, shrunk = x * up, x * down
    result = tiny_numerator.select(grown, x)
    result = tiny_quotient.select(of_numerator.select(grown, x), result)
    result = tiny_inverse.select(shrunk, result)
    result = (tiny_inverse & tiny_quotient).select(of_denominator.select(shrunk, x), result)
    result = tiny_denominator.select(grown, result)
    result = near_max.select(of_denominator.select(grown, x), result)
    result = zero.select(float("nan"), result)
    flag = near_max | ~tiny_denominator & tiny_quotient
    return result, ~zero & flag


def _denormal(x: Value) -> Value:
    return biased_exponent(x).cmp("eq", 0) & x.cmp("une", 0.0)


def div_fmas(x: Value, y: Value, z: Value, scaled: Value) -> Value:
    """v_div_fmas: x * y + z, with the scaling of v_div_scale undone in the lanes that VCC marks, rounded once."""
    limits, bias = LIMITS[x.type], EXPONENT[x.type][2]
    result = x.call("fma", y, z)
    large = biased_exponent(z).cmp("sgt", bias)
    shrunk = _shrunk(result, _remainder(x, y, z, result, limits), limits)
    return scaled.select(large.select(result * 2.0**limits.scale, shrunk), result)


def _remainder(x: Value, y: Value, z: Value, rounded: Value, limits: Limits) -> Value:
    """What x * y + z is above its rounded value: the errors of the product and of the sum, found by exact steps.

    0 where it would be 0 with a y that rounds to this one: y is an inverse, rounded, and a quotient can be exact. The
    scale keeps all parts of a small quotient from becoming denormal.
    """
    shift, mask, _, integer = EXPONENT[x.type]
    x, z, rounded = (value * 2.0**limits.scale for value in (x, z, rounded))
    product = x * y
    lost = x.call("fma", y, -product)
    total = product + z
    part = total - product
    remainder = (total - rounded) + ((product - (total - part)) + (z - part) + lost)
    power = (y.bits(integer) & mask << shift).bits(y.type)
    unsure = (x * power).call("fabs") * 2.0 ** -(shift + 1)  # x times half the last place of y
    return remainder.call("fabs").cmp("ole", unsure).select(0.0, remainder)


def _shrunk(value: Value, remainder: Value, limits: Limits) -> Value:
    """(value + remainder) * 2**-scale: a denormal that lies half way for `value` alone goes where `remainder` says."""
    integer = EXPONENT[value.type][3]
    near = value * 2.0**-limits.scale
    if value.b.rounding:
        return near  # rounded twice in one direction is rounded once
    left = value - near * 2.0**limits.scale
    half = left.call("fabs").cmp("oeq", 2.0 ** (limits.vanishing + limits.scale))
    outwards = left.bits(integer) ^ value.bits(integer)  # positive where `near` is the smaller in size
    step = outwards.cmp("sge", 0).select(near.bits(integer) + 1, near.bits(integer) - 1).bits(value.type)
    wrong = half & remainder.cmp("one", 0.0) & (left.bits(integer) ^ remainder.bits(integer)).cmp("sge", 0)
    return wrong.select(step, near)


def div_fixup(quotient: Value, denominator: Value, numerator: Value, refined: bool = True) -> Value:
    """v_div_fixup: the quotient, or what IEEE wants where an operand is zero, infinite or NaN.

    A quotient of halves is not `refined`: it is computed in floats, whose range it never leaves.
    """
    _, mask, _, integer = EXPONENT[quotient.type]
    limits = LIMITS[quotient.type]
    sign = (denominator.bits(integer) ^ numerator.bits(integer)) & (-1 << (width(integer) - 1))

    def signed(value: Value | float) -> Value:
        return (quotient.like(value).bits(integer) | sign).bits(quotient.type)

    top, bottom = biased_exponent(numerator), biased_exponent(denominator)
    result = signed(quotient.call("fabs"))
    if refined:  # a quotient beyond the range comes out of the refinement as infinity or NaN
        result = biased_exponent(quotient).cmp("eq", mask).select(signed(float("inf")), result)
        result = (top - bottom).cmp("slt", limits.vanishing).select(signed(0.0), result)
    zero_over, zero_under = numerator.cmp("oeq", 0.0), denominator.cmp("oeq", 0.0)
    inf_over, inf_under = is_infinite(numerator), is_infinite(denominator)
    result = (inf_under | zero_over).select(signed(0.0), result)
    result = (zero_under | inf_over).select(signed(float("inf")), result)
    invalid = zero_over & zero_under | inf_over & inf_under
    result = invalid.select(-quotient.like(float("nan")), result)
    result = is_nan(denominator).select(quiet(denominator), result)
    return is_nan(numerator).select(quiet(numerator), result)

