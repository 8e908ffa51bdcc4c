"""What a value says as a condition."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, compare, is_mlir_value
from flylab.expr.vector import Vector


def is_runtime(value: Any) -> bool:
    """Whether only the device knows what a value says as a condition."""
    return (isinstance(value, Numeric) and not value.is_static) or isinstance(value, Vector) or is_mlir_value(value)


def truth(value: Any, use: str) -> Numeric:
    """A value as a Boolean of the device: a number holds where it is not 0. Raises `TraceError` for a vector."""
    if isinstance(value, Vector):
        raise TraceError(
            f"{name_of(value, 'a vector')} as the condition of a runtime {use}: it has {value.numel} truth values",
            hint="choose by element with mask.select(a, b), or take one element: v[0]",
        )
    if is_mlir_value(value):
        value = CLASSES["Boolean"](value)
    if not isinstance(value, Numeric):
        return CLASSES["Boolean"](bool(value))
    return value if value.dtype.kind == BOOL else compare("!=", value, 0)
