"""Choosing between two values without a branch, and the larger or smaller of several."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr import arithmetic
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, as_numeric, binary, unify
from flylab.expr.raw import typed
from flylab.expr.vector import Vector
from flylab.shown import a_kind


def select(condition: Any, if_true: Any, if_false: Any) -> Any:
    """`if_true` where `condition` holds, else `if_false`, in their common format; scalars or vectors.

    A vector condition chooses element by element. Raises `TraceError` for a condition that is no Boolean.
    """
    condition, if_true, if_false = typed(condition), typed(if_true), typed(if_false)
    if isinstance(condition, Vector) or isinstance(if_true, Vector) or isinstance(if_false, Vector):
        return Vector.choose(condition, if_true, if_false)
    chosen = as_numeric(condition)
    if chosen.dtype.kind != BOOL:
        raise TraceError(
            f"select by {name_of(condition, 'a number')}, a {chosen.dtype}: the condition must be a Boolean",
            hint="compare it: (x != 0).select(a, b)",
        )
    x, y, dtype = unify(if_true, if_false)
    if chosen.is_static:
        return x if chosen.value else y
    return CLASSES[dtype.name](arithmetic.select(chosen.value, x.ir_value(), y.ir_value(), dtype))


def fold(symbol: str, operands: tuple[Any, ...]) -> Any:
    """Numbers or vectors joined by an operator of `arithmetic.BINARY`, from the left to the right."""
    if not operands:
        raise TraceError(f"{symbol}() of nothing", hint="give at least one value")
    result, *others = values = [typed(operand) for operand in operands]
    for value in values:
        if not isinstance(value, (Vector, Numeric, bool, int, float)):
            several = isinstance(value, (list, tuple))
            raise TraceError(
                f"{symbol} of {name_of(value, repr(value))} ({a_kind(value)}): no number and no vector",
                hint=f"give its items: fx.{symbol}(*xs)" if several else "give numbers or vectors",
            )
    for other in others:
        if isinstance(result, Vector) or isinstance(other, Vector):
            result = Vector.combine(symbol, result, other)
        elif isinstance(result, Numeric) or isinstance(other, Numeric):
            result = binary(symbol, result, other)
        else:
            result = binary(symbol, as_numeric(result), other)
    return result


def maximum(*operands: Any) -> Any:
    """The largest of numbers or vectors, element by element; a NaN anywhere gives NaN. `fx.max`."""
    return fold("max", operands)


def minimum(*operands: Any) -> Any:
    """The smallest of numbers or vectors, element by element; a NaN anywhere gives NaN. `fx.min`."""
    return fold("min", operands)


def maxnumf(a: Any, b: Any) -> Any:
    """The larger of two; where one is NaN, the other.

    A signalling NaN, which no operation gives, may count as a result of NaN where calls follow each other: the hardware
    has one instruction for two calls, which does not quiet it. Of BFloat16 it never does.
    """
    return fold("maxnum", (a, b))


def minnumf(a: Any, b: Any) -> Any:
    """The smaller of two; where one is NaN, the other.

    A signalling NaN, which no operation gives, may count as a result of NaN where calls follow each other: the hardware
    has one instruction for two calls, which does not quiet it. Of BFloat16 it never does.
    """
    return fold("minnum", (a, b))


def _kind(value: Any) -> str:
    """The format of a number or of a vector's elements, for an error; of anything else, its Python type."""
    dtype = getattr(value, "dtype", None)
    return str(getattr(dtype, "dtype", dtype) or type(value).__name__)


def _is_integer(value: Any) -> bool:
    if isinstance(value, Vector):
        value = value.dtype
    return not value.dtype.is_float if hasattr(value, "dtype") else isinstance(value, int)


def ceildiv(count: Any, size: Any) -> Any:
    """The quotient of two integers, or vectors of them, rounded up; Python integers give a Python integer.

    >>> ceildiv(1000, 256)
    4
    """
    count, size = typed(count), typed(size)
    if isinstance(count, int) and isinstance(size, int):
        if size == 0:
            raise TraceError(f"ceildiv({count}, 0)", hint="check the divisor first")
        return -(-count // size)
    if not all(map(_is_integer, (count, size))):
        shown = " and ".join(name_of(v, repr(v)) + f" ({_kind(v)})" for v in (count, size))
        raise TraceError(f"ceildiv of {shown}", hint="give integers, or vectors of them: x.to(fx.Int32)")
    quotient, rest = count // size, count % size
    return quotient + (rest != 0).to(quotient.dtype if isinstance(quotient, Vector) else type(quotient))
