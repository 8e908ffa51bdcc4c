"""Vectors in the passes: their types, and taking parts out of them and putting parts in."""

from __future__ import annotations

from typing import Any

from flylab.passes.rewriter import Builder, parse_type


def vector_type(element: str, count: int) -> Any:
    """`vector<count x element>`."""
    return parse_type(f"vector<{count}x{element}>")


def shape_of(value: Any) -> tuple[int, str]:
    """The number of elements of a vector value and the text of their type."""
    count, element = str(value.type).removeprefix("vector<").removesuffix(">").split("x", 1)
    return int(count), element


def _array(value: int) -> Any:
    from mlir import ir

    return ir.ArrayAttr.get([ir.IntegerAttr.get(parse_type("i64"), value)])


def extract(builder: Builder, vector: Any, start: int, count: int) -> Any:
    """`count` elements of a vector from `start`, as a vector; the vector itself where that is all of it."""
    lanes, element = shape_of(vector)
    if count == lanes:
        return vector
    return builder.op(
        "vector.extract_strided_slice",
        [vector],
        vector_type(element, count),
        offsets=_array(start),
        sizes=_array(count),
        strides=_array(1),
    )


def insert(builder: Builder, part: Any, whole: Any, start: int, count: int) -> Any:
    """A vector of `count` elements with `part` from `start` on; `whole` is what it was before, or None for nothing."""
    from mlir import ir

    lanes, element = shape_of(part)
    if lanes == count:
        return part
    kind = vector_type(element, count)
    if whole is None:
        whole = builder.op("ub.poison", [], kind, value=ir.Attribute.parse("#ub.poison"))
    return builder.op("vector.insert_strided_slice", [part, whole], kind, offsets=_array(start), strides=_array(1))


def element(builder: Builder, vector: Any, index: int) -> Any:
    """One element of a vector."""
    from mlir import ir

    return builder.op(
        "vector.extract", [vector], shape_of(vector)[1], static_position=ir.DenseI64ArrayAttr.get([index])
    )


def zeros(builder: Builder, element: str, count: int) -> Any:
    """`count` elements of 0, as a vector."""
    from mlir import ir

    kind = vector_type(element, count)
    scalar = parse_type(element)
    zero = ir.IntegerAttr.get(scalar, 0) if element[0] == "i" else ir.FloatAttr.get(scalar, 0.0)
    return builder.op("arith.constant", [], kind, value=ir.DenseElementsAttr.get_splat(kind, zero))
