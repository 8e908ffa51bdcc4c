"""Comparisons by predicate, as MLIR spells them: `arith.cmpi(arith.CmpIPredicate.slt, a, b)`."""

from __future__ import annotations

import enum
import math
from typing import Any

from flylab.dtypes import BOOL, DType
from flylab.errors import TraceError
from flylab.expr import arithmetic
from flylab.expr.fastmath import within
from flylab.expr.numeric import CLASSES, Numeric, compare, unify
from flylab.expr.raw import typed
from flylab.expr.vector import Vector


class CmpIPredicate(enum.IntEnum):
    """How integers are compared: s reads both as signed, u as unsigned. Source: MLIR's `arith.cmpi`."""

    eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge = range(10)


class CmpFPredicate(enum.IntEnum):
    """How floats are compared: with a NaN those with O (ordered) are false, those with U true. Source: `arith.cmpf`."""

    AlwaysFalse, OEQ, OGT, OGE, OLT, OLE, ONE, ORD, UEQ, UGT, UGE, ULT, ULE, UNE, UNO, AlwaysTrue = range(16)


SYMBOL = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# What each float predicate holds for: equal 1, greater 2, less 4, one of them NaN 8 (LLVM's numbering of fcmp).
HOLDS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 8, 15)


def _predicate(kind: type[enum.IntEnum], given: Any) -> Any:
    """A predicate from itself, from MLIR's enumeration or its number, or from its name in any case."""
    names = {name.lower(): member for name, member in kind.__members__.items()}
    names |= {"false": names["alwaysfalse"], "true": names["alwaystrue"]} if "alwaysfalse" in names else {}
    found = names.get(given.lower()) if isinstance(given, str) else None
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(kind):
        # An enumeration of the other kind has the same numbers and other names.
        found = kind(given) if not isinstance(given, enum.Enum) or given.name in kind.__members__ else None
    if found is None:
        function = "cmpi" if kind is CmpIPredicate else "cmpf"
        raise TraceError(
            f"{function}: {given!r} is not a predicate",
            hint=f"the first argument is one of {', '.join(kind.__members__)}",
        )
    return found


def pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands (numbers, vectors, Python's numbers, MLIR values) in one format: both numbers, or both vectors."""
    x, y = typed(a), typed(b)
    if isinstance(x, Vector) or isinstance(y, Vector):
        return Vector.together(x, y)
    return unify(x, y)[:2]


def dtype_of(x: Any) -> DType:
    """The number format of a number, or of a vector's elements."""
    found: DType = x.dtype.dtype if isinstance(x, Vector) else x.dtype
    return found


def cmpi(predicate: Any, lhs: Any, rhs: Any) -> Any:
    """Compare two integers or vectors of them: a Boolean, or a vector of them. The predicate comes first.

    Operands are brought to their common format, and read as signed or unsigned as the predicate says. `predicate` is a
    CmpIPredicate or its name. Raises `TraceError` for floats, and for Booleans in order.
    """
    chosen = _predicate(CmpIPredicate, predicate)
    x, y = pair(lhs, rhs)
    dtype, sign, symbol = dtype_of(x), chosen.name[0], SYMBOL[chosen.name[-2:]]
    if dtype.is_float:
        raise TraceError(f"cmpi of {dtype}", hint="use arith.cmpf, or an operator: <, == ...")
    if chosen.name not in ("eq", "ne"):
        if dtype.kind == BOOL:
            raise TraceError(f"cmpi {chosen.name} of Booleans", hint="convert them: x.to(fx.Int32)")
        bits = CLASSES[f"{'Uint' if sign == 'u' else 'Int'}{dtype.bits}"]
        x, y = x.bitcast(bits), y.bitcast(bits)
    return Vector.compared(symbol, x, y) if isinstance(x, Vector) else compare(symbol, x, y)


def cmpf(predicate: Any, lhs: Any, rhs: Any, *, fastmath: Any = None) -> Any:
    """Compare two floats or vectors of them: a Boolean, or a vector of them. The predicate comes first.

    `predicate` is a CmpFPredicate or its name in any case ("olt"); `fastmath` the flags of this comparison. Raises
    `TraceError` for integers.
    """
    chosen = _predicate(CmpFPredicate, predicate)
    x, y = pair(lhs, rhs)
    if not dtype_of(x).is_float:
        raise TraceError(f"cmpf of {dtype_of(x)}", hint="use arith.cmpi, or an operator: <, == ...")
    arithmetic.require_arithmetic(dtype_of(x))
    boolean = CLASSES["Boolean"]
    if isinstance(x, Numeric) and x.is_static and y.is_static:
        return boolean(_holds(chosen, x.value, y.value))
    with within(fastmath):
        count = x.numel if isinstance(x, Vector) else 0
        value = arithmetic.compare_floats(int(chosen), x.ir_value(), y.ir_value(), count)
    return Vector(value, x.shape, boolean) if isinstance(x, Vector) else boolean(value)


def _holds(predicate: CmpFPredicate, a: float, b: float) -> bool:
    relation = 8 if math.isnan(a) or math.isnan(b) else 1 if a == b else 2 if a > b else 4
    return bool(HOLDS[predicate] & relation)
