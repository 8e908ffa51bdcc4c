"""One number from the elements of a vector."""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Any

from flylab.dtypes import BOOL, FLOAT, UINT
from flylab.errors import TraceError
from flylab.expr import arithmetic
from flylab.expr.emit import constant, mlir_type, op
from flylab.expr.fastmath import attributes, within
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, binary

if TYPE_CHECKING:
    from flylab.expr.vector import Vector


class ReductionOp(enum.Enum):
    """What a reduction joins two elements with; the value is the operator (see `fx.max`, `fx.maxnumf`)."""

    ADD = "+"
    MUL = "*"
    MAX = "max"
    MIN = "min"
    MAXNUM = "maxnum"
    MINNUM = "minnum"
    AND = "&"
    OR = "|"
    XOR = "^"


# MLIR's name of the reduction by an operation of arith, where it is not the operation's own.
KIND = {"addi": "add", "addf": "add", "muli": "mul", "mulf": "mul", "andi": "and", "ori": "or", "xori": "xor"}
# What a float reduction starts with; MLIR's own start of a sum is 0.0, which would lose the sign of a -0.0.
START = {"+": -0.0, "*": 1.0}


def reduction_op(given: Any) -> ReductionOp:
    """A ReductionOp from itself or its name. Raises `TraceError` for anything else.

    >>> reduction_op("add")
    <ReductionOp.ADD: '+'>
    """
    if isinstance(given, ReductionOp):
        return given
    if isinstance(given, str) and given.upper() in ReductionOp.__members__:
        return ReductionOp[given.upper()]
    known = ", ".join(ReductionOp.__members__)
    raise TraceError(f"reduce by {given!r}", hint=f"give one of fx.ReductionOp: {known}")


def reduced(vector: Vector, by: Any, fastmath: Any = None) -> Any:
    """See `Vector.reduce`."""
    symbol = reduction_op(by).value
    if vector.dtype.dtype.kind == BOOL and symbol not in "&|^":
        vector = vector.to(CLASSES["Int32"])
    dtype, row = vector.dtype.dtype, arithmetic.BINARY[symbol]
    name = row.float if dtype.kind == FLOAT else row.unsigned if dtype.kind in (UINT, BOOL) else row.signed
    if not name:
        raise arithmetic.refuse(symbol, dtype)
    arithmetic.require_arithmetic(dtype)
    if dtype.name == "BFloat16" and symbol in ("maxnum", "minnum"):  # of which arithmetic.binary takes care
        with within(fastmath):
            return functools.reduce(functools.partial(binary, symbol), vector)
    operands = [vector.value]
    if dtype.is_float and symbol in START:
        operands.append(constant(START[symbol], dtype))
    from mlir import ir

    bare = name.removeprefix("arith.")
    kind = {"kind": ir.Attribute.parse(f"#vector.kind<{KIND.get(bare, bare)}>")}
    flags = attributes(fastmath) if dtype.is_float else {}
    return vector.dtype(op("vector.reduction", operands, mlir_type(dtype), kind | flags))


def truth(vector: Vector, by: ReductionOp, name: str) -> Any:
    """`any` or `all` of a vector of Booleans."""
    if vector.dtype.dtype.kind != BOOL:
        raise TraceError(
            f"{name}() of {name_of(vector, 'a vector')}, whose elements are {vector.dtype.dtype}",
            hint=f"compare it: (v != 0).{name}()",
        )
    return reduced(vector, by)
