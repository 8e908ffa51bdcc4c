"""Between the numbers and vectors of the language and the raw MLIR values that they hold."""

from __future__ import annotations

from typing import Any

from flylab.errors import TraceError
from flylab.expr.numeric import Numeric, as_numeric, is_mlir_value
from flylab.expr.promotion import plain
from flylab.expr.vector import Vector
from flylab.shown import a_kind


def typed(value: Any) -> Any:
    """A raw MLIR value as the number or vector that it is, one of numpy's as Python's; anything else as it is.

    MLIR's integers have no sign: they are read as signed. `index` is an Int64. Raises `TraceError` for an MLIR value
    that is no number and no vector.
    """
    if not is_mlir_value(value):
        return plain(value)
    return Vector(value) if str(value.type).startswith("vector<") else as_numeric(value)


def as_dsl_value(value: Any, exemplar: Any = None) -> Any:
    """A raw MLIR value as a number, vector, tensor or pointer of the language; what is one already, as it is.

    `exemplar` says what MLIR's type does not: a number (or a format) whose format it has, a vector whose format and
    shape. Raises `TraceError` for an MLIR value of another type.
    """
    from flylab.expr.tensor import Pointer, Tensor

    if isinstance(exemplar, Vector):
        return Vector(value, exemplar.shape, exemplar.dtype)
    if isinstance(exemplar, Numeric):
        return type(exemplar)(value)
    if isinstance(exemplar, type) and issubclass(exemplar, Numeric):
        return exemplar(value)
    text = str(value.type) if is_mlir_value(value) else ""
    for prefix, cls in (("!fly.memref<", Tensor), ("!fly.ptr<", Pointer)):
        if text.startswith(prefix):
            return cls(value)
    return typed(value)


def as_ir_value(value: Any, *, keep_static: bool = False) -> Any:
    """The MLIR value of a number, vector, tensor or pointer, for a builder of MLIR that takes no other.

    A number known while tracing becomes a constant; with `keep_static` it is given back as a Python number. Raises
    `TraceError` for what has no MLIR value.
    """
    from flylab.expr.tensor import Pointer, Tensor

    if is_mlir_value(value):
        return value
    if isinstance(value, (Vector, Tensor, Pointer)):
        return value.value
    number = plain(value)
    if not isinstance(number, (Numeric, bool, int, float)):
        raise TraceError(
            f"{value!r} ({a_kind(value)}) has no MLIR value", hint="give a number, a vector or a tensor"
        )
    number = as_numeric(number)
    return number.value if keep_static and number.is_static else number.ir_value()
