"""Vectors in the passes: their types, and taking parts out of them and putting parts in."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from flylab.dialect.operations import mlir_ir
from flylab.dtypes import BOOL, DTYPES
from flylab.passes.rewriter import Builder, parse_type

BITS = {d.mlir: d.bits for d in DTYPES.values()} | {f"i{d.bits}": d.bits for d in DTYPES.values()}
"""The bits of an element, by the text of its MLIR type."""
NARROW = {kind for kind, bits in BITS.items() if bits < 8} - {d.mlir for d in DTYPES.values() if d.kind == BOOL}
"""Types of elements of fewer than 8 bits, Booleans aside: see `subbyte`."""


@functools.cache
def vector_type(element: str, count: int) -> Any:
    """`vector<count x element>`."""
    return parse_type(f"vector<{count}x{element}>")


_shapes: dict[Any, tuple[int, str]] = {}


def shape_of(value: Any) -> tuple[int, str]:
    """The number of elements of a vector value and the text of their type."""
    found = _shapes.get(value.type)
    if found is None:
        count, element = str(value.type).removeprefix("vector<").removesuffix(">").split("x", 1)
        found = _shapes[value.type] = int(count), element
    return found


@functools.cache
def _array(value: int) -> Any:
    ir = mlir_ir()
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
    ir = mlir_ir()
    lanes, element = shape_of(part)
    if lanes == count:
        return part
    kind = vector_type(element, count)
    if whole is None:
        whole = builder.op("ub.poison", [], kind, value=ir.Attribute.parse("#ub.poison"))
    return builder.op("vector.insert_strided_slice", [part, whole], kind, offsets=_array(start), strides=_array(1))


def element(builder: Builder, vector: Any, index: int) -> Any:
    """One element of a vector."""
    ir = mlir_ir()
    return builder.op(
        "vector.extract", [vector], shape_of(vector)[1], static_position=ir.DenseI64ArrayAttr.get([index])
    )


def from_elements(builder: Builder, parts: list[Any], element: str) -> Any:
    """A vector of given elements."""
    return builder.op("vector.from_elements", parts, vector_type(element, len(parts)))


def shuffle(builder: Builder, a: Any, b: Any, places: Sequence[int]) -> Any:
    """The elements at some places of two vectors of one type; the second vector's count on from the first's."""
    ir = mlir_ir()
    kind = vector_type(shape_of(a)[1], len(places))
    return builder.op("vector.shuffle", [a, b], kind, mask=ir.DenseI64ArrayAttr.get(list(places)))


def zeros(builder: Builder, element: str, count: int) -> Any:
    """`count` elements of 0, as a vector."""
    ir = mlir_ir()
    kind = vector_type(element, count)
    scalar = parse_type(element)
    zero = ir.IntegerAttr.get(scalar, 0) if element[0] == "i" else ir.FloatAttr.get(scalar, 0.0)
    return builder.op("arith.constant", [], kind, value=ir.DenseElementsAttr.get_splat(kind, zero))
