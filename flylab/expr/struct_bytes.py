"""The value of a union: bytes, read and written as any of its fields.

Outside of a kernel the bytes are a tuple of Uint8, in a kernel a Vector of them.
"""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL
from flylab.expr.bits import of_bits, to_bits
from flylab.expr.numeric import CLASSES, Numeric
from flylab.expr.struct_layout import Array, Laid, in_memory, is_number, sizeof
from flylab.expr.struct_values import Elements, Struct, blank
from flylab.expr.vector import Vector


def read(kind: Any, raw: Any, offset: int) -> Any:
    """The value of a type that lies at an offset of the bytes."""
    if isinstance(kind, Laid):
        made = blank(kind)
        for name, field in kind.stored.items():
            vars(made)[name] = read(field.kind, raw, offset + field.offset)
        return made
    if isinstance(kind, Array):
        if is_number(kind.element) and isinstance(raw, Vector):
            return _numbers(kind.element, raw, offset, kind.count)
        return Elements(read(kind.element, raw, offset + i * kind.stride) for i in range(kind.count))
    if isinstance(raw, Vector):
        return _numbers(kind, raw, offset, 1)[0]
    bits = int.from_bytes(bytes(int(b) for b in raw[offset : offset + sizeof(kind)]), "little")
    return kind(bool(bits) if kind.dtype.kind == BOOL else of_bits(bits, kind.dtype))


def _numbers(kind: type[Numeric], raw: Vector, offset: int, count: int) -> Any:
    part = raw[offset : offset + count * sizeof(kind)]
    if kind.dtype.kind == BOOL:
        return Vector.compared("!=", part, 0)
    return part.bitcast(kind)


def write(kind: Any, value: Any, raw: Any, offset: int) -> Any:
    """The bytes with a value of a type at an offset."""
    byte = CLASSES["Uint8"]
    if isinstance(value, Vector) and offset == 0 and value.dtype is byte and value.numel == len(raw):
        return value
    new = list(raw)
    for at, bits in _pieces(kind, value, offset):
        new[at : at + len(bits)] = bits
    return Vector.from_elements(new, byte) if isinstance(raw, Vector) else Elements(map(byte, new))


def _pieces(kind: Any, value: Any, offset: int) -> list[tuple[int, list[Any]]]:
    """The offsets and bytes of the numbers in a value; padding is in none."""
    if isinstance(value, Struct):
        fields = type(value).stored.values()
        return [p for f in fields for p in _pieces(f.kind, getattr(value, f.name), offset + f.offset)]
    if isinstance(value, Vector):
        stored = in_memory(kind.element)
        return [(offset, list(value.to(stored).bitcast(CLASSES["Uint8"])))]
    if isinstance(value, Elements):
        places = range(offset, offset + sizeof(kind), kind.stride)
        return [p for at, each in zip(places, value, strict=True) for p in _pieces(kind.element, each, at)]
    number = in_memory(kind)(value)
    if number.is_static:
        return [(offset, list(to_bits(number.value, number.dtype).to_bytes(sizeof(kind), "little")))]
    return [(offset, list(Vector.from_elements([number], type(number)).bitcast(CLASSES["Uint8"])))]
