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


def joined(builder: Builder, pieces: Sequence[tuple[Any, int, int]]) -> Any:
    """Parts of vectors, (vector, first element, count) each, one behind the other as one vector."""
    if len(pieces) == 1:
        return extract(builder, *pieces[0])
    places = [(vector, first + i) for vector, first, count in pieces for i in range(count)]
    kind = shape_of(pieces[0][0])[1]
    if kind not in NARROW:
        sources = list({id(vector): vector for vector, _, _ in pieces}.values())
        if len(sources) <= 2 and sources[0].type == sources[-1].type:
            width = shape_of(sources[0])[0]
            mask = [index if vector is sources[0] else width + index for vector, index in places]
            return shuffle(builder, sources[0], sources[-1], mask)
        counts = {count for _, _, count in pieces}
        if len(counts) == 1 and counts != {1} and len(pieces) & (len(pieces) - 1) == 0:
            return _in_pairs(builder, [extract(builder, *piece) for piece in pieces])
    return from_elements(builder, [element(builder, vector, index) for vector, index in places], kind)


def _in_pairs(builder: Builder, parts: list[Any]) -> Any:
    """Vectors of one length, a power of 2 of them, one behind the other: in pairs, so that few vectors are long."""
    while len(parts) > 1:
        wide = range(2 * shape_of(parts[0])[0])
        parts = [shuffle(builder, a, b, wide) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def zeros(builder: Builder, element: str, count: int) -> Any:
    """`count` elements of 0, as a vector."""
    ir = mlir_ir()
    kind = vector_type(element, count)
    scalar = parse_type(element)
    zero = ir.IntegerAttr.get(scalar, 0) if element[0] == "i" else ir.FloatAttr.get(scalar, 0.0)
    return builder.op("arith.constant", [], kind, value=ir.DenseElementsAttr.get_splat(kind, zero))
