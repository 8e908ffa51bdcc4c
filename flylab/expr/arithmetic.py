"""Arithmetic on raw MLIR values, scalar or vector: one row an operator, shared by numbers and vectors.

Integers wrap; `//` and `%` round towards minus infinity for signed formats, as Python does, so that
`(a // b) * b + a % b == a`. A shift by a count that the format does not have (known on the device only) moves every
bit out, as numpy's does: 0 is left, of a signed number shifted right its sign. Floats are IEEE: nothing is contracted
or reordered, unless a fast-math scope allows it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.dtypes import BOOL, DTYPES, FLOAT, INT, UINT, DType
from flylab.errors import NotSupportedError, TraceError
from flylab.expr.emit import constant, mlir_type, op
from flylab.expr.fastmath import attributes
from flylab.expr.promotion import integer_range
from flylab.expr.state import current_kernel


@dataclass(frozen=True)
class Binary:
    """An operator: its operation for signed, unsigned and float operands ('' where it has none) and its fold."""

    signed: str
    unsigned: str
    float: str
    fold: Callable[[Any, Any], Any]


BINARY = {
    "+": Binary("arith.addi", "arith.addi", "arith.addf", operator.add),
    "-": Binary("arith.subi", "arith.subi", "arith.subf", operator.sub),
    "*": Binary("arith.muli", "arith.muli", "arith.mulf", operator.mul),
    "/": Binary("", "", "arith.divf", operator.truediv),
    "//": Binary("floordiv", "arith.divui", "", operator.floordiv),
    "%": Binary("floormod", "arith.remui", "", operator.mod),
    "&": Binary("arith.andi", "arith.andi", "", operator.and_),
    "|": Binary("arith.ori", "arith.ori", "", operator.or_),
    "^": Binary("arith.xori", "arith.xori", "", operator.xor),
    "<<": Binary("arith.shli", "arith.shli", "", operator.lshift),
    ">>": Binary("arith.shrsi", "arith.shrui", "", operator.rshift),
    "max": Binary("arith.maxsi", "arith.maxui", "arith.maximumf", max),
    "min": Binary("arith.minsi", "arith.minui", "arith.minimumf", min),
    "maxnum": Binary("arith.maxsi", "arith.maxui", "arith.maxnumf", max),
    "minnum": Binary("arith.minsi", "arith.minui", "arith.minnumf", min),
}

# Predicates by MLIR's numbering of arith.cmpi (signed, unsigned) and arith.cmpf (ordered; != is true for NaN).
COMPARE = {"==": (0, 0, 1), "!=": (1, 1, 13), "<": (2, 6, 4), "<=": (3, 7, 5), ">": (4, 8, 2), ">=": (5, 9, 3)}
COMPARE_FOLD = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def refuse(symbol: str, dtype: DType, mixed: str = "") -> TraceError:
    """The error for an operator that a number format does not have; `mixed` says how operands led to that format."""
    hint = f"convert with .to(fx.Int32), or read the bits: x.bitcast(fx.Uint{dtype.bits})"
    if mixed:
        hint = "convert the float to an integer: .to(fx.Int32)"
    hint = {
        "/": "use // for integers, or convert with .to(fx.Float32)",
        "//": "fx.math.floor(x / y) is the quotient; for integers convert with .to(fx.Int32)",
        "%": "x - y * fx.math.floor(x / y) is the remainder; for integers convert with .to(fx.Int32)",
    }.get(symbol, hint)
    return TraceError(f"{mixed}{dtype} has no operator '{symbol}'", hint=hint)


def require_arithmetic(dtype: DType) -> None:
    """Refuse a float of less than 16 bits, known or of the device: the hardware only converts and multiplies them."""
    if dtype.is_small_float:
        raise NotSupportedError(
            f"arithmetic in {dtype} is not part of the hardware: no operators, no comparisons",
            hint="convert to a format that has it, and the result back: x.to(fx.Float32)",
        )


def binary(
    symbol: str, a: Any, b: Any, dtype: DType, lanes: int = 0, right: tuple[int, int] | None = None
) -> Any:
    """The operation `a symbol b` on two values of one format (scalars, or vectors of `lanes`).

    `right` is the least and greatest value that `b` can have, where that is known.
    """
    row = BINARY[symbol]
    name = row.float if dtype.kind == FLOAT else row.unsigned if dtype.kind in (UINT, BOOL) else row.signed
    if not name or (dtype.kind == BOOL and symbol not in "&|^"):
        raise refuse(symbol, dtype)
    require_arithmetic(dtype)
    wide = _computed_in(dtype, symbol)
    if wide != dtype:
        right = right or integer_range(dtype)
        a, b = (resize(v, dtype, wide, lanes) for v in (a, b))
        return resize(binary(symbol, a, b, wide, lanes, right), wide, dtype, lanes)
    if symbol in ("//", "%"):
        b = _safe_divisor(a, b, dtype, lanes, right or integer_range(dtype))
    if symbol in ("<<", ">>"):
        return _shift(name, a, b, dtype, lanes, right or integer_range(dtype))
    if name in ("floordiv", "floormod"):
        return _floor(name, a, b, dtype, lanes)
    if symbol in ("maxnum", "minnum") and dtype.name == "BFloat16":
        return _other_than_nan(name, a, b, dtype, lanes)
    return op(name, [a, b], mlir_type(dtype, lanes), attributes() if dtype.is_float else None)


def _computed_in(dtype: DType, symbol: str = "") -> DType:
    """The format in which an operation on integers of `dtype` is computed: 32 bits where LLVM has nothing narrower.

    It has no division of fewer bits at optimisation level 0, and keeps vectors of 4 bits in memory.
    """
    if dtype.kind not in (INT, UINT) or dtype.bits >= (32 if symbol in ("//", "%") else 8):
        return dtype
    return DTYPES["Int32" if dtype.signed else "Uint32"]


def _safe_divisor(a: Any, b: Any, dtype: DType, lanes: int, bounds: tuple[int, int]) -> Any:
    """The divisor, but 1 where it is 0 or where the quotient would not fit (the least integer by -1, which wraps to 1).

    LLVM takes a division as proof that neither is so, and would drop a program's own test of it. A launcher divides on
    the host, where a divisor of 0 is an error.
    """
    if current_kernel() is None:
        return b
    boolean = DTYPES["Boolean"]
    unsafe = []
    if bounds[0] <= 0 <= bounds[1]:
        unsafe.append(compare("==", b, constant(0, dtype, lanes), dtype, lanes))
    if dtype.signed and bounds[0] <= -1 <= bounds[1]:
        minus_one = compare("==", b, constant(-1, dtype, lanes), dtype, lanes)
        least = compare("==", a, constant(integer_range(dtype)[0], dtype, lanes), dtype, lanes)
        unsafe.append(binary("&", minus_one, least, boolean, lanes))
    if not unsafe:
        return b
    condition = unsafe[0] if len(unsafe) == 1 else binary("|", unsafe[0], unsafe[1], boolean, lanes)
    return select(condition, constant(1, dtype, lanes), b, dtype, lanes)


def _shift(name: str, a: Any, b: Any, dtype: DType, lanes: int, bounds: tuple[int, int]) -> Any:
    """A shift whose count may be any number: LLVM's has no result for one of the width or more.

    A launcher shifts on the host, where such a count is an error.
    """
    kind = mlir_type(dtype, lanes)
    if current_kernel() is None or (bounds[0] >= 0 and bounds[1] < dtype.bits):
        return op(name, [a, b], kind)
    last = constant(dtype.bits - 1, dtype, lanes)
    if name == "arith.shrsi":
        return op(name, [a, op("arith.minui", [b, last], kind)], kind)
    shifted = op(name, [a, op("arith.andi", [b, last], kind)], kind)
    unsigned = DTYPES["Uint" + dtype.name.removeprefix("Uint").removeprefix("Int")]
    within = compare("<=", b, last, unsigned, lanes)
    return select(within, shifted, constant(0, dtype, lanes), dtype, lanes)


def _floor(name: str, a: Any, b: Any, dtype: DType, lanes: int) -> Any:
    """Signed division or remainder towards minus infinity, from the machine's, which round towards zero."""
    kind = mlir_type(dtype, lanes)
    remainder = op("arith.remsi", [a, b], kind)
    zero = constant(0, dtype, lanes)
    inexact = compare("!=", remainder, zero, dtype, lanes)
    apart = compare("<", op("arith.xori", [remainder, b], kind), zero, dtype, lanes)
    adjust = op("arith.andi", [inexact, apart], mlir_type(DTYPES["Boolean"], lanes))
    if name == "floormod":
        return select(adjust, op("arith.addi", [remainder, b], kind), remainder, dtype, lanes)
    quotient = op("arith.divsi", [a, b], kind)
    lower = op("arith.subi", [quotient, constant(1, dtype, lanes)], kind)
    return select(adjust, lower, quotient, dtype, lanes)


def _other_than_nan(name: str, a: Any, b: Any, dtype: DType, lanes: int) -> Any:
    """The larger or smaller of two BFloat16s, or the one that is no NaN.

    LLVM widens them to Float32 without quieting a signalling NaN, for which the hardware's instruction then gives NaN.
    """
    chosen = op(name, [a, b], mlir_type(dtype, lanes), attributes())
    chosen = select(compare("!=", b, b, dtype, lanes), a, chosen, dtype, lanes)
    return select(compare("!=", a, a, dtype, lanes), b, chosen, dtype, lanes)


def compare(symbol: str, a: Any, b: Any, dtype: DType, lanes: int = 0) -> Any:
    """The comparison `a symbol b` as an i1 (or a vector of them); every comparison with NaN but != is false."""
    from mlir import ir

    require_arithmetic(dtype)
    wide = _computed_in(dtype)
    a, b = (resize(v, dtype, wide, lanes) for v in (a, b))
    signed, unsigned, ordered = COMPARE[symbol]
    if dtype.is_float:
        return compare_floats(ordered, a, b, lanes)
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), signed if dtype.signed else unsigned)
    return op("arith.cmpi", [a, b], mlir_type(DTYPES["Boolean"], lanes), {"predicate": predicate})


def compare_floats(number: int, a: Any, b: Any, lanes: int = 0) -> Any:
    """The comparison of two floats by a predicate of `arith.cmpf`, given by its number."""
    from mlir import ir

    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    return op("arith.cmpf", [a, b], mlir_type(DTYPES["Boolean"], lanes), {"predicate": predicate} | attributes())


def select(condition: Any, a: Any, b: Any, dtype: DType, lanes: int = 0) -> Any:
    """`a` where the condition holds, else `b`."""
    return op("arith.select", [condition, a, b], mlir_type(dtype, lanes))


def absolute(a: Any, dtype: DType, lanes: int = 0) -> Any:
    """The absolute value; of an unsigned format the value itself; of the least signed integer, itself (it wraps)."""
    require_arithmetic(dtype)
    if dtype.kind == FLOAT:
        return op("math.absf", [a], mlir_type(dtype, lanes), attributes())
    if not dtype.signed:
        return a
    wide = _computed_in(dtype)
    return resize(op("math.absi", [resize(a, dtype, wide, lanes)], mlir_type(wide, lanes)), wide, dtype, lanes)


def negate(a: Any, dtype: DType, lanes: int = 0) -> Any:
    """The negated value; integers wrap."""
    require_arithmetic(dtype)
    if dtype.kind == FLOAT:
        return op("arith.negf", [a], mlir_type(dtype, lanes), attributes())
    return binary("-", constant(0, dtype, lanes), a, dtype, lanes)


def resize(a: Any, source: DType, target: DType, lanes: int = 0) -> Any:
    """An integer in another width: wrapped, or extended by its own sign."""
    if source.bits == target.bits:
        return a
    name = "arith.trunci" if source.bits > target.bits else "arith.extsi" if source.signed else "arith.extui"
    return op(name, [a], mlir_type(target, lanes))
