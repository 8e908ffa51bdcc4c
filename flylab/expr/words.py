"""Numbers and vectors as words of 32 bits, which is what the hardware moves between lanes and what printing records."""

from __future__ import annotations

from typing import Any

from flylab.errors import TraceError
from flylab.expr.emit import mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Integer, Numeric
from flylab.expr.raw import typed
from flylab.expr.vector import Vector

BITS = 32


def word_count(bits: int) -> int:
    """How many words hold so many bits."""
    return -(-bits // BITS)


def word(what: str, name: str, given: Any) -> Numeric:
    """The 32 bits of an integer as an Int32; one of Python may be read as signed or unsigned.

    Raises `TraceError` for what is no integer of at most 32 bits.
    """
    number = typed(given)
    if isinstance(number, int) and not isinstance(number, bool) and -(1 << BITS - 1) <= number < 1 << BITS:
        return CLASSES["Int32"](number - (number >> BITS - 1 << BITS if number > 0 else 0))
    if isinstance(number, Integer) and number.dtype.bits <= BITS:
        return CLASSES["Int32"](number)
    kind = number.dtype if isinstance(number, Numeric) else type(given).__name__
    raise TraceError(f"{what}: the {name} is {name_of(given, repr(given))} of {kind}",
                     hint="give an fx.Int32 that holds its 32 bits")


def words_of(value: Numeric | Vector) -> list[Any]:
    """The words of a number, lowest bits first, as MLIR values of type i32; a vector's elements lie side by side.

    What is above a number's own bits is 0. A vector whose bits are no whole number of words, and one of elements below
    8 bits, has words of their own for each element.
    """
    if isinstance(value, Vector):
        if not _side_by_side(value.dtype, value.numel):
            return [word for element in value for word in words_of(element)]
        return [element.ir_value() for element in value.bitcast(CLASSES["Uint32"])]
    number, bits = value.ir_value(), value.dtype.bits
    if value.dtype.is_float:
        number = op("arith.bitcast", [number], _integer(bits))
    if bits <= BITS:
        return [number if bits == BITS else op("arith.extui", [number], _integer(BITS))]
    parts = [number if not at else op("arith.shrui", [number, _constant(at, bits)], _integer(bits))
             for at in range(0, bits, BITS)]
    return [op("arith.trunci", [part], _integer(BITS)) for part in parts]


def of_words(words: list[Any], like: Numeric | Vector) -> Any:
    """The number or vector, in the format and shape of `like`, whose words these are."""
    if isinstance(like, Vector):
        if _side_by_side(like.dtype, like.numel):
            joined = op("vector.from_elements", words, mlir_type(CLASSES["Uint32"].dtype, len(words)))
            return Vector(Vector(joined, None, CLASSES["Uint32"]).bitcast(like.dtype).value, like.shape, like.dtype)
        each = word_count(like.dtype.dtype.bits)
        numbers = [_number(words[at:at + each], like.dtype) for at in range(0, len(words), each)]
        return Vector(Vector.from_elements(numbers, like.dtype).value, like.shape, like.dtype)
    return _number(words, type(like))


def _number(words: list[Any], kind: type[Numeric]) -> Numeric:
    number, bits = words[0], kind.dtype.bits
    if bits < BITS:
        number = op("arith.trunci", [number], _integer(bits))
    elif bits > BITS:
        number = op("arith.extui", [number], _integer(bits))
        for at, word in enumerate(words[1:], start=1):
            wide = op("arith.extui", [word], _integer(bits))
            placed = op("arith.shli", [wide, _constant(BITS * at, bits)], _integer(bits))
            number = op("arith.ori", [number, placed], _integer(bits))
    if kind.dtype.is_float:
        number = op("arith.bitcast", [number], mlir_type(kind.dtype))
    return kind(number)


def _side_by_side(kind: type[Numeric], count: int) -> bool:
    return kind.dtype.bits >= 8 and kind.dtype.bits * count % BITS == 0


def _integer(bits: int) -> Any:
    from mlir import ir

    return ir.IntegerType.get_signless(bits)


def _constant(value: int, bits: int) -> Any:
    from mlir import ir

    return op("arith.constant", [], _integer(bits), {"value": ir.IntegerAttr.get(_integer(bits), value)})
