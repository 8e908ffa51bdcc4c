"""The only place where tracing creates operations of upstream dialects: each gets the user's line as its location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flylab.dtypes import BOOL, FLOAT, DType
from flylab.errors import TraceError
from flylab.expr.bits import to_bits
from flylab.expr.location import mlir_location
from flylab.expr.state import active


def require_trace(what: str) -> None:
    """Refuse `what` outside of a kernel or launcher: there is no place to put an operation."""
    from mlir import ir

    try:
        _ = ir.InsertionPoint.current  # raises where there is none
    except ValueError:
        raise TraceError(
            f"{what} only has a meaning inside an @flyc.kernel or @flyc.jit function",
            hint="call it from a kernel, or use flylab.layout to compute with layouts in plain Python",
        ) from None


def op(
    name: str,
    operands: Sequence[Any],
    result: Any = None,
    attributes: Mapping[str, Any] | None = None,
    loc: Any = None,
) -> Any:
    """Create an operation at the insertion point; its result, or None where `result` (a type) is None.

    Its location is the user's line that runs now, unless `loc` gives another.
    """
    results = operation(name, operands, [] if result is None else [result], attributes, loc)
    return results[0] if results else None


def operation(
    name: str,
    operands: Sequence[Any],
    results: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    loc: Any = None,
) -> list[Any]:
    """As `op`, with any number of results (their types)."""
    from mlir import ir

    made = ir.Operation.create(
        name,
        results=list(results),
        operands=list(operands),
        attributes=dict(attributes or {}),
        loc=loc or mlir_location(),
    )
    found = list(made.results)
    if found:
        active.latest = found[-1]
    return found


def intrinsic(name: str, operands: Sequence[Any], result: Any = None) -> Any:
    """A call of an intrinsic of LLVM; its result, or None where `result` (a type) is None."""
    from mlir import ir

    attributes = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    return op("llvm.call_intrinsic", operands, result, attributes)


def fly(name: str, operands: Sequence[Any] = (), results: Sequence[Any] = (), **attributes: Any) -> Any:
    """Create an operation of the Fly dialect, placed at the user's line."""
    from flylab.dialect.operations import build

    require_trace(f"fly.{name}")
    active.latest = build(f"fly.{name}", operands, results, attributes, loc=mlir_location())
    return active.latest


_types: dict[tuple[str, int], Any] = {}


def mlir_type(dtype: DType, lanes: int = 0) -> Any:
    """The MLIR type of a scalar (`lanes=0`) or of a vector of `lanes` elements."""
    found = _types.get((dtype.mlir, lanes))
    if found is None:
        from mlir import ir

        text = dtype.mlir if not lanes else f"vector<{lanes}x{dtype.mlir}>"
        found = _types[dtype.mlir, lanes] = ir.Type.parse(text)
    return found


def constant(value: int | float | bool, dtype: DType, lanes: int = 0) -> Any:
    """An `arith.constant`: a scalar, or a vector with `value` in each of `lanes` elements."""
    from mlir import ir

    require_trace("a constant of the device")
    attr = _attribute(value, dtype)
    if lanes:
        attr = ir.DenseElementsAttr.get_splat(mlir_type(dtype, lanes), attr)
    return op("arith.constant", [], mlir_type(dtype, lanes), {"value": attr})


def constants(values: Sequence[int | float | bool], dtype: DType) -> Any:
    """An `arith.constant`: a vector of these elements."""
    from mlir import ir

    require_trace("a constant of the device")
    kind = mlir_type(dtype, len(values))
    attr = ir.DenseElementsAttr.get([_attribute(value, dtype) for value in values], kind)
    return op("arith.constant", [], kind, {"value": attr})


def _attribute(value: int | float | bool, dtype: DType) -> Any:
    """A number as MLIR's attribute of its format, bit by bit."""
    from mlir import ir

    scalar = mlir_type(dtype)
    if dtype.kind == FLOAT:
        # An attribute made from a Python float would set the quiet bit of a NaN.
        exact = f"{to_bits(value, dtype):#x} : {dtype.mlir}" if value != value else ""
        return ir.Attribute.parse(exact) if exact else ir.FloatAttr.get(scalar, float(value))
    if dtype.kind == BOOL:
        return ir.IntegerAttr.get(scalar, int(bool(value)))
    # IntegerAttr takes the signed reading of the bits.
    bits = int(value) & ((1 << dtype.bits) - 1)
    if dtype.bits > 64:
        return ir.Attribute.parse(f"{bits} : {dtype.mlir}")
    return ir.IntegerAttr.get(scalar, bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits)
