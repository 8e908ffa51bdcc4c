"""Conversions between number formats on raw MLIR values, scalar or vector; `folding.normalise` has those of known ones.

Integers wrap. A float becomes the nearest integer towards zero: NaN gives 0, and what is out of range the nearest
integer of the format. A number becomes the nearest float, rounded once, ties to even; what a format does not reach,
and NaN, become what `ml_dtypes` makes of them. Floats of fewer than 16 bits go through Float32, which holds all of
their numbers: `fly.convert_float` is that step, and `passes/small_floats.py` lowers it.
"""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL, DTYPES, DType
from flylab.expr.arithmetic import absolute, binary, compare, resize, select
from flylab.expr.emit import constant, fly, intrinsic, mlir_type, op
from flylab.expr.promotion import integer_range

FLOAT32, DOUBLE = DTYPES["Float32"], DTYPES["Float64"]


def convert(a: Any, source: DType, target: DType, lanes: int = 0) -> Any:
    """A value in another format."""
    if source == target or source.mlir == target.mlir:
        return a
    if source.is_small_float:
        single = fly("convert_float", [a], [mlir_type(FLOAT32, lanes)])
        return convert(single, FLOAT32, target, lanes)
    if target.kind == BOOL:
        return compare("!=", a, constant(0, source, lanes), source, lanes)
    if target.is_float:
        return _to_float(a, source, target, lanes)
    return _to_integer(a, source, target, lanes) if source.is_float else resize(a, source, target, lanes)


def _to_float(a: Any, source: DType, target: DType, lanes: int) -> Any:
    """A number as a float of another format (the source is no small float)."""
    kind = mlir_type(target, lanes)
    if target.is_small_float:
        single = _to_single(a, source, target, lanes)
        return fly("convert_float", [single], [kind])
    if not source.is_float:
        if target.name == "BFloat16" and source.bits > 16:
            return convert(_to_odd_single(a, source, lanes), FLOAT32, target, lanes)
        return op("arith.sitofp" if source.signed else "arith.uitofp", [a], kind)
    if source.bits == target.bits:  # Float16 and BFloat16 meet in Float32
        return convert(convert(a, source, FLOAT32, lanes), FLOAT32, target, lanes)
    return op("arith.truncf" if source.bits > target.bits else "arith.extf", [a], kind)


def _to_single(a: Any, source: DType, target: DType, lanes: int) -> Any:
    """A number as a Float32 whose rounding to the small float `target` is that of the number itself."""
    if source.name == "Float64":
        return _narrow_to_odd(a, lanes)
    if source.is_float:
        return convert(a, source, FLOAT32, lanes)
    # All but E8M0 end far below 2**24, from where on an integer is rounded to a Float32.
    if target.name == "Float8E8M0FNU" and source.bits > 16:
        return _to_odd_single(a, source, lanes)
    return convert(a, source, FLOAT32, lanes)


def _to_integer(a: Any, source: DType, target: DType, lanes: int) -> Any:
    """A float as an integer, out of range the nearest. LLVM's plain conversions are undefined there."""
    if target.bits > 64:
        return _to_long(convert(a, source, DOUBLE, lanes), target, lanes)
    return intrinsic(f"llvm.fpto{'s' if target.signed else 'u'}i.sat", [a], mlir_type(target, lanes))


def _narrow_to_odd(a: Any, lanes: int) -> Any:
    """A Float64 as the Float32 below or above it whose last bit is 1, or as the equal one.

    Rounding that further, to a format of at most 22 bits, is rounding the Float64 once.
    """
    bits, flag, wide = DTYPES["Uint32"], DTYPES["Boolean"], DOUBLE
    near = op("arith.truncf", [a], mlir_type(FLOAT32, lanes))
    back = op("arith.extf", [near], mlir_type(wide, lanes))
    inexact = compare("<", back, a, wide, lanes), compare(">", back, a, wide, lanes)
    further = compare(">", absolute(back, wide, lanes), absolute(a, wide, lanes), wide, lanes)
    word = op("arith.bitcast", [near], mlir_type(bits, lanes))
    word = binary("-", word, convert(further, flag, bits, lanes), bits, lanes)
    odd = convert(binary("|", *inexact, flag, lanes), flag, bits, lanes)
    return op("arith.bitcast", [binary("|", word, odd, bits, lanes)], mlir_type(FLOAT32, lanes))


def _to_odd_single(a: Any, source: DType, lanes: int) -> Any:
    """As `_narrow_to_odd`, of an integer of more than 24 bits.

    With the bits of x >> 24 cleared, the first bit of x that a Float32 has no room for is 0, so the conversion does
    not round up. x fits exactly where its lowest set bit is above x >> 24.
    """
    bits, flag = DTYPES["Uint32"], DTYPES["Boolean"]
    unsigned = DTYPES["Uint" + source.name.removeprefix("Uint").removeprefix("Int")]
    size = absolute(a, source, lanes)
    rest = binary(">>", size, constant(24, unsigned, lanes), unsigned, lanes, (24, 24))
    ones = constant(-1, unsigned, lanes)
    cleared = binary("&", size, binary("^", rest, ones, unsigned, lanes), unsigned, lanes)
    single = op("arith.uitofp", [cleared], mlir_type(FLOAT32, lanes))
    lowest = binary("&", size, binary("-", constant(0, unsigned, lanes), size, unsigned, lanes), unsigned, lanes)
    inexact = convert(compare(">=", rest, lowest, unsigned, lanes), flag, bits, lanes)
    word = op("arith.bitcast", [single], mlir_type(bits, lanes))
    # Of 0, which has no lowest bit, the word is 0 too.
    inexact = select(compare("==", word, constant(0, bits, lanes), bits, lanes), word, inexact, bits, lanes)
    word = binary("|", word, inexact, bits, lanes)
    if source.signed:
        below = compare("<", a, constant(0, source, lanes), source, lanes)
        sign = select(below, constant(1 << 31, bits, lanes), constant(0, bits, lanes), bits, lanes)
        word = binary("|", word, sign, bits, lanes)
    return op("arith.bitcast", [word], mlir_type(FLOAT32, lanes))


def _to_long(a: Any, target: DType, lanes: int) -> Any:
    """A Float64 as an integer of 128 bits, in two halves, each exact: LLVM cannot do it on AMDGPU."""
    half, whole = DTYPES["Uint64"], DTYPES["Uint128"]
    zero = constant(0.0, DOUBLE, lanes)
    size = absolute(a, DOUBLE, lanes)
    high = _to_integer(binary("*", size, constant(2.0**-64, DOUBLE, lanes), DOUBLE, lanes), DOUBLE, half, lanes)
    above = binary("*", convert(high, half, DOUBLE, lanes), constant(2.0**64, DOUBLE, lanes), DOUBLE, lanes)
    low = _to_integer(binary("-", size, above, DOUBLE, lanes), DOUBLE, half, lanes)
    high, low = (resize(part, half, whole, lanes) for part in (high, low))
    high = binary("<<", high, constant(64, whole, lanes), whole, lanes, (64, 64))
    number = binary("|", high, low, whole, lanes)
    least, most = integer_range(target)
    beyond = compare(">=", size, constant(float(most + 1), DOUBLE, lanes), DOUBLE, lanes)
    number = select(beyond, constant(most, target, lanes), number, target, lanes)
    negative = binary("-", constant(0, target, lanes), number, target, lanes)
    negative = select(beyond, constant(least, target, lanes), negative, target, lanes)
    if not target.signed:
        negative = constant(0, target, lanes)
    return select(compare("<", a, zero, DOUBLE, lanes), negative, number, target, lanes)
