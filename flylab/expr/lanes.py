"""The elements of a vector: read and replaced at a place known while tracing or on the device, sliced and shuffled.

A place known only on the device is looked up by its bits, in a tree of choices: n - 1 selects for n elements of 32
bits, whether or not the threads agree on the place. Smaller elements are looked up by the word that holds them, and
shifted out of it. (LLVM's own way compares with every place, unless all threads agree on it and there are 16 or more.)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flylab.dtypes import BOOL, DTYPES
from flylab.errors import TraceError
from flylab.expr import arithmetic
from flylab.expr.emit import mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, as_numeric, interval, is_mlir_value

if TYPE_CHECKING:
    from flylab.expr.vector import Vector

WORD = 32


class OutOfRange(TraceError, IndexError):
    """An index that a vector does not have."""


def read(vector: Vector, index: Any) -> Any:
    """The element at an index or coordinate."""
    place = position(vector, index)
    return _at(vector, place) if isinstance(place, Numeric) else _element(vector, place)


def replaced(vector: Vector, index: Any, number: Any) -> Vector:
    """The vector with another number at an index or coordinate."""
    place, value = position(vector, index), vector.dtype(as_numeric(number, vector.dtype.dtype))
    if isinstance(place, Numeric):
        return _with(vector, place, value)
    made = op("vector.insert", [value.ir_value(), vector.value], vector.value.type, _static([place]))
    return type(vector)(made, vector.shape, vector.dtype)


def part(vector: Vector, cut: slice) -> Vector:
    """The elements of a slice, in its order, as a vector."""
    name, dtype = name_of(vector, "a vector"), vector.dtype.dtype
    try:
        wanted = range(*cut.indices(vector.numel))
    except (TypeError, ValueError) as error:
        raise TraceError(f"{name}[{cut}]: {error}", hint="slice it by known integers: v[0:4], v[::2]") from None
    if not wanted:
        raise TraceError(f"an empty slice of {name}", hint=f"it has elements 0 to {vector.numel - 1}")
    if wanted.step != 1:
        made = _picked(vector.value, wanted, dtype)
    else:
        from mlir import ir

        i64 = ir.IntegerType.get_signless(64)
        span = {
            key: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, v)])
            for key, v in (("offsets", wanted.start), ("sizes", len(wanted)), ("strides", 1))
        }
        made = op("vector.extract_strided_slice", [vector.value], mlir_type(dtype, len(wanted)), span)
    return type(vector)(made, None, vector.dtype)


def shuffled(vector: Vector, other: Vector, mask: Sequence[Any]) -> Vector:
    """The elements of two vectors at the places of `mask`, which counts on from the first into the second."""
    if other.dtype is not vector.dtype:
        raise TraceError(
            f"shuffle of {name_of(vector, 'a vector')} ({vector.dtype.dtype}) with {name_of(other, 'one')} "
            f"({other.dtype.dtype})",
            hint="both must have one format: convert one with .to(...)",
        )
    total = vector.numel + other.numel
    try:
        places = [operator.index(place) for place in mask]
    except TypeError as error:
        raise TraceError(f"shuffle mask {mask!r}: {error}", hint="give a list of known integers") from None
    wrong = [place for place in places if not 0 <= place < total]
    if wrong or not places:
        raise OutOfRange(
            f"shuffle mask {places}: {wrong[0] if wrong else 'nothing'} is no place in {vector.numel} + {other.numel} "
            "elements",
            hint=f"the places are 0 to {total - 1}, those of the second vector from {vector.numel} on",
        )
    return type(vector)(_picked(vector.value, places, vector.dtype.dtype, other.value), None, vector.dtype)


def position(vector: Vector, index: Any) -> Any:
    """The place of an index, or of a coordinate of the vector's shape (its first mode counts fastest).

    Below 0 an index counts from the end. Raises `OutOfRange` for one known to be out of range; one of the device is
    brought into the range: modulo an extent that is a power of 2, else to the last.
    """
    return _position(vector, index, vector.shape, index)


def _position(vector: Vector, index: Any, shape: Any, written: Any) -> Any:
    if not isinstance(index, tuple):
        return _one(vector, index, count(shape), written)
    if not isinstance(shape, tuple) or len(index) != len(shape):
        raise _wrong(vector, written)
    place: Any = 0
    stride = 1
    for each, extent in zip(index, shape, strict=True):
        place = place + _position(vector, each, extent, written) * stride
        stride *= count(extent)
    return place


def _one(vector: Vector, index: Any, extent: int, written: Any) -> Any:
    if is_mlir_value(index):
        index = as_numeric(index)
    if isinstance(index, Numeric) and not (index.is_static or index.dtype.is_float):
        return _wrapped(index, extent)
    try:
        i = operator.index(index)
    except TypeError:
        raise _wrong(vector, written) from None
    if not -extent <= i < extent:
        has = f"{extent} elements" if not isinstance(written, tuple) else f"the shape {vector.shape}"
        raise OutOfRange(
            f"index {written} of {name_of(vector, 'a vector')}, which has {has}",
            hint=f"{i} is not in {-extent} to {extent - 1}",
        )
    return i % extent


def _wrong(vector: Vector, written: Any) -> TraceError:
    shape = vector.shape
    hint = "index it by an integer" + (f", or by a coordinate of its shape {shape}" if shape != (vector.numel,) else "")
    return TraceError(f"[{written!r}] of {name_of(vector, 'a vector')}", hint=f"{hint}; slice it by v[a:b]")


def _wrapped(index: Numeric, extent: int) -> Any:
    """A runtime index as an Int32 in 0 to `extent` - 1."""
    int32 = CLASSES["Int32"]
    i: Any = int32(index) if index.dtype.bits < WORD else index
    low, high = interval(i)
    if low >= 0 and high < extent:
        return int32(i)
    if extent & (extent - 1) == 0:
        masked: Any = int32(i)
        return masked & (extent - 1)
    if low < 0:
        i = (i < 0).select(i + extent, i)
    unsigned = CLASSES["Uint" + i.dtype.name.removeprefix("Uint").removeprefix("Int")]
    last = unsigned(extent - 1)
    i = i.bitcast(unsigned)
    return int32((i < last).select(i, last)).with_facts((0, extent - 1), 1)


def count(shape: Any) -> int:
    """How many elements a shape has."""
    total = 1
    for extent in shape if isinstance(shape, tuple) else (shape,):
        total *= count(extent) if isinstance(extent, tuple) else operator.index(extent)
    return total


def _element(vector: Vector, place: int) -> Any:
    return vector.dtype(op("vector.extract", [vector.value], mlir_type(vector.dtype.dtype), _static([place])))


def _at(vector: Vector, place: Any) -> Any:
    """The element at a runtime place that is in range."""
    dtype, lanes = vector.dtype.dtype, vector.numel
    if dtype.kind == BOOL:
        return _at(vector.to(CLASSES["Uint8"]), place) != 0
    if _in_words(vector):
        word, shift = _word(vector, place)
        return _of_word(word >> shift, vector.dtype)
    value = vector.value
    while lanes > 1:
        half = 1 << ((lanes - 1).bit_length() - 1)
        upper = [min(half + i, lanes - 1) for i in range(half)]
        low, high = _picked(value, range(half), dtype), _picked(value, upper, dtype)
        value = arithmetic.select(((place & half) != 0).ir_value(), high, low, dtype, half)
        lanes = half
    return _element(type(vector)(value, None, vector.dtype), 0)


def _with(vector: Vector, place: Any, number: Any) -> Vector:
    """The vector with another number at a runtime place that is in range."""
    cls, kind = type(vector), vector.dtype
    if kind.dtype.kind == BOOL:
        byte = CLASSES["Uint8"]
        return _with(vector.to(byte), place, byte(number)).to(kind)
    if _in_words(vector):
        word, shift = _word(vector, place)
        ones = CLASSES["Uint32"]((1 << kind.dtype.bits) - 1)
        word = (word & ~(ones << shift)) | (_to_word(number) << shift)
        words = vector.bitcast(CLASSES["Uint32"])
        return cls(_with(words, _word_of(vector, place), word).bitcast(kind), vector.shape, kind)
    places = cls.from_elements(range(vector.numel), CLASSES["Int32"])
    made = (places == place).select(cls.filled(vector.numel, number, kind), cls(vector, (vector.numel,)))
    return cls(made, vector.shape, kind)


def _in_words(vector: Vector) -> bool:
    """Whether the elements are smaller than a word, and fill words."""
    bits = vector.dtype.dtype.bits
    return bits < WORD and WORD % bits == 0 and vector.numel * bits % WORD == 0


def _word_of(vector: Vector, place: Any) -> Any:
    return place >> (WORD // vector.dtype.dtype.bits).bit_length() - 1


def _word(vector: Vector, place: Any) -> tuple[Any, Any]:
    """The word that holds an element, and the element's first bit in it."""
    bits = vector.dtype.dtype.bits
    inside = (place & (WORD // bits - 1)) * bits
    return _at(vector.bitcast(CLASSES["Uint32"]), _word_of(vector, place)), CLASSES["Uint32"](inside)


def _of_word(word: Any, kind: type[Numeric]) -> Numeric:
    """The low bits of a word as a number of a format."""
    dtype, bits = kind.dtype, _bits_type(kind)
    value = op("arith.trunci", [word.value], bits)
    return kind(value if dtype.mlir == str(bits) else op("arith.bitcast", [value], mlir_type(dtype)))


def _to_word(number: Any) -> Numeric:
    """The bits of a number as a word."""
    bits, value = _bits_type(type(number)), number.ir_value()
    if number.dtype.mlir != str(bits):
        value = op("arith.bitcast", [value], bits)
    return CLASSES["Uint32"](op("arith.extui", [value], mlir_type(DTYPES["Uint32"])))


def _bits_type(kind: type[Numeric]) -> Any:
    from mlir import ir

    return ir.IntegerType.get_signless(kind.dtype.bits)


def _picked(value: Any, places: Sequence[int], dtype: Any, other: Any = None) -> Any:
    """The elements of an MLIR vector (and of another behind it) at these places, as an MLIR vector."""
    from mlir import ir

    mask = {"mask": ir.DenseI64ArrayAttr.get(list(places))}
    return op("vector.shuffle", [value, value if other is None else other], mlir_type(dtype, len(places)), mask)


def _static(positions: Sequence[int]) -> dict[str, Any]:
    from mlir import ir

    return {"static_position": ir.DenseI64ArrayAttr.get(list(positions))}
