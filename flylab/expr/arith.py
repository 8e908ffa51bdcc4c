"""The `arith` names of the language: MLIR's operations on numbers, for code that is written close to it.

Operators and `fx.` functions say the same and read better, but for a float operation with fast-math flags of its own:
`arith.addf(a, b, fastmath="contract")`, or `arith.AddFOp(a, b, fastmath=arith.FastMathFlags.contract).result`. All take
numbers, vectors, Python's numbers and raw MLIR values, and give numbers and vectors; `arith.unwrap(x)` is the MLIR
value of one.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.errors import NotSupportedError, TraceError
from flylab.expr import select as choices
from flylab.expr.emit import op
from flylab.expr.fastmath import FastMathFlags, fastmath, within
from flylab.expr.numeric import CLASSES, as_numeric
from flylab.expr.planned import missing
from flylab.expr.predicates import CmpFPredicate, CmpIPredicate, cmpf, cmpi, dtype_of, pair
from flylab.expr.raw import as_dsl_value, as_ir_value, typed
from flylab.expr.select import ceildiv, select
from flylab.expr.types import of_type
from flylab.expr.vector import Vector


class RoundingMode(enum.IntEnum):
    """How a conversion between floats rounds. Source: MLIR's `arith.truncf`; these chips have the first only."""

    to_nearest_even, downward, upward, toward_zero, to_nearest_away = range(5)


def constant(value: Any, type: Any = None) -> Any:
    """A number known while tracing, of a format or MLIR type: `arith.constant(4, T.i32)` is `fx.Int32(4)`.

    A vector type gives a vector with `value` in each element; without a type it is an Int32, Float32 or Boolean.
    `index` is an Int64. Raises `TraceError` for what is no number, or no type of one.
    """
    if type is None:
        return as_numeric(value)
    kind, lanes = of_type(type)
    return Vector.filled(lanes, value, kind) if lanes else kind(value)


def constant_vector(element_value: Any, vector_type: Any) -> Vector:
    """A vector with one number in each element: `arith.constant_vector(0.0, T.vec(4, T.f32))`."""
    kind, lanes = of_type(vector_type)
    if not lanes:
        raise TraceError(f"constant_vector of {vector_type}, which is no vector type", hint="give T.vec(4, T.f32)")
    return Vector.filled(lanes, element_value, kind)


def index_cast(target_type: Any, value: Any) -> Any:
    """An integer, or a vector of them, in another integer format: `arith.index_cast(T.i32, x)` is `fx.Int32(x)`."""
    given, (kind, lanes) = typed(value), of_type(target_type)
    number = given if isinstance(given, Vector) else as_numeric(given)
    if kind.dtype.is_float or dtype_of(number).is_float:
        raise TraceError(f"index_cast of {dtype_of(number)} to {kind.dtype}", hint="use .to(...) between other formats")
    if lanes and (not isinstance(number, Vector) or number.numel != lanes):
        raise TraceError(f"index_cast of {number!r} to a vector of {lanes}", hint="the number of elements must agree")
    return number.to(kind)


def shrui(value: Any, amount: Any, *, is_exact: Any = None) -> Any:
    """`value` shifted right with zeros coming in, whatever its sign; in the common format of the two.

    `is_exact` promises that only zeros are shifted out; nothing is made of it. Raises `TraceError` for floats.
    """
    x, y = pair(value, amount)
    dtype = dtype_of(x)
    if dtype.is_float:
        raise TraceError(f"shrui of {dtype}", hint="read the bits first: x.bitcast(fx.Uint32)")
    unsigned = CLASSES[f"Uint{dtype.bits}"] if dtype.bits > 1 else CLASSES["Boolean"]
    shifted: Any = x.bitcast(unsigned) >> y.bitcast(unsigned)
    return shifted.bitcast(CLASSES[dtype.name])


def unwrap(value: Any, type: Any = None) -> Any:
    """The MLIR value of a number, vector or tensor, for a builder of MLIR that takes no other.

    With a type, a number is brought to it first; `T.index` gives MLIR's `index`.
    """
    if type is None:
        return as_ir_value(value)
    if str(type) == "index":
        from mlir import ir

        return op("arith.index_cast", [CLASSES["Int64"](value).ir_value()], ir.IndexType.get())
    kind, lanes = of_type(type)
    return Vector(value).to(kind).value if lanes else kind(as_numeric(value)).ir_value()


def ArithValue(value: Any) -> Any:
    """A raw MLIR value as a number or vector. Deprecated: they are taken as they are wherever a number is."""
    warnings.warn("ArithValue is deprecated: use fx.Int32(x), fx.Float32(x) or fx.Vector(x)", DeprecationWarning, 2)
    return as_dsl_value(value)


def _described(function: Callable[..., Any], name: str, meaning: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


def _between_floats(name: str, narrower: bool) -> Callable[..., Any]:
    def convert(target_type: Any, value: Any, *, roundingmode: Any = None) -> Any:
        given, (kind, _) = typed(value), of_type(target_type)
        number = given if isinstance(given, Vector) else as_numeric(given)
        source, target = dtype_of(number), kind.dtype
        if not (source.is_float and target.is_float) or (source.bits > target.bits) != narrower:
            raise TraceError(f"{name} of {source} to {target}", hint=f"x.to(fx.{target}) converts between any two")
        if roundingmode not in (None, "to_nearest_even", RoundingMode.to_nearest_even):
            raise NotSupportedError(
                f"{name} with rounding mode {getattr(roundingmode, 'name', roundingmode)}: the hardware's conversions "
                "round to nearest even",
                hint="leave roundingmode out",
            )
        return number.to(kind)

    how = "narrower format, rounded to nearest even" if narrower else "wider format"
    return _described(convert, name, f"A float, or a vector of them, in a {how}: `{name}(T.f32, x)`.")


truncf = trunc_f = _between_floats("truncf", True)
extf = ext_f = _between_floats("extf", False)


@dataclass(frozen=True)
class Operation:
    """What `arith.AddFOp(a, b)` gives: an operation whose `result` is a number or a vector."""

    result: Any


def _float_operation(name: str, symbol: str) -> Callable[..., Any]:
    def operation(a: Any, b: Any, *, fastmath: Any = None) -> Any:
        x, y = pair(a, b)
        if not dtype_of(x).is_float:
            raise TraceError(f"{name} of {dtype_of(x)}", hint="it is for floats: use an operator, fx.max or fx.min")
        with within(fastmath):
            return choices.fold(symbol, (x, y))

    return _described(operation, name, f"`{symbol}` of two floats or vectors of them, with fast-math flags of its own.")


def negf(a: Any, *, fastmath: Any = None) -> Any:
    """A float, or a vector of them, negated, with fast-math flags of its own."""
    given = typed(a)
    number = given if isinstance(given, Vector) else as_numeric(given)
    if not dtype_of(number).is_float:
        raise TraceError(f"negf of {dtype_of(number)}", hint="it is for floats: use -x")
    with within(fastmath):
        return -number


def _largest(symbol: str) -> Callable[..., Any]:
    def operation(*operands: Any, fastmath: Any = None) -> Any:
        with within(fastmath):
            return choices.fold(symbol, operands)

    return _described(operation, symbol, f"`fx.{symbol}` with fast-math flags of its own.")


def _as_class(name: str, function: Callable[..., Any]) -> Callable[..., Operation]:
    def build(*operands: Any, fastmath: Any = None) -> Operation:
        return Operation(function(*operands, fastmath=fastmath))

    return _described(build, name, f"`{function.__name__}` as MLIR's operation: its value is `.result`.")


addf = _float_operation("addf", "+")
subf = _float_operation("subf", "-")
mulf = _float_operation("mulf", "*")
divf = _float_operation("divf", "/")
maximumf = _float_operation("maximumf", "max")
minimumf = _float_operation("minimumf", "min")
maxnumf = _float_operation("maxnumf", "maxnum")
minnumf = _float_operation("minnumf", "minnum")
max = _largest("max")
min = _largest("min")
AddFOp, SubFOp, MulFOp = _as_class("AddFOp", addf), _as_class("SubFOp", subf), _as_class("MulFOp", mulf)
DivFOp, NegFOp = _as_class("DivFOp", divf), _as_class("NegFOp", negf)
MaximumFOp, MinimumFOp = _as_class("MaximumFOp", maximumf), _as_class("MinimumFOp", minimumf)
MaxNumFOp, MinNumFOp = _as_class("MaxNumFOp", maxnumf), _as_class("MinNumFOp", minnumf)

__all__ = [
    "AddFOp", "ArithValue", "CmpFPredicate", "CmpIPredicate", "DivFOp", "FastMathFlags", "MaxNumFOp", "MaximumFOp",
    "MinNumFOp", "MinimumFOp", "MulFOp", "NegFOp", "RoundingMode", "SubFOp", "addf", "ceildiv", "cmpf",
    "cmpi", "constant", "constant_vector", "divf", "ext_f", "extf", "fastmath", "index_cast", "max", "maximumf",
    "maxnumf", "min", "minimumf", "minnumf", "mulf", "negf", "select", "shrui", "subf", "trunc_f", "truncf",
    "unwrap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing("fx.arith", name, globals())
