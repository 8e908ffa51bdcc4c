"""The number formats as classes, one for each row of `flylab.dtypes`."""

from __future__ import annotations

from typing import Any

from flylab.expr.numeric import Float, Integer, Numeric, numeric_class


class Boolean(Numeric):
    """A truth value (`i1`): what a comparison gives."""

    __slots__ = ()


class Int4(Integer):
    """Signed integer of 4 bits; arithmetic wraps."""

    __slots__ = ()


class Int8(Integer):
    """Signed integer of 8 bits; arithmetic wraps."""

    __slots__ = ()


class Int16(Integer):
    """Signed integer of 16 bits; arithmetic wraps."""

    __slots__ = ()


class Int32(Integer):
    """Signed integer of 32 bits; arithmetic wraps."""

    __slots__ = ()


class Int64(Integer):
    """Signed integer of 64 bits; arithmetic wraps."""

    __slots__ = ()


class Int128(Integer):
    """Signed integer of 128 bits; arithmetic wraps."""

    __slots__ = ()


class Index(Int64):
    """The old name of Int64, deprecated: `fx.Index(x)` is `fx.Int64(x)`, and warns once for each line that says it."""

    __slots__ = ()
    deprecated = True

    def __new__(cls, value: Any) -> Any:
        """An Int64."""
        return numeric_class(cls)(value)


class Uint8(Integer):
    """Unsigned integer of 8 bits; arithmetic wraps."""

    __slots__ = ()


class Uint16(Integer):
    """Unsigned integer of 16 bits; arithmetic wraps."""

    __slots__ = ()


class Uint32(Integer):
    """Unsigned integer of 32 bits; arithmetic wraps."""

    __slots__ = ()


class Uint64(Integer):
    """Unsigned integer of 64 bits; arithmetic wraps."""

    __slots__ = ()


class Uint128(Integer):
    """Unsigned integer of 128 bits; arithmetic wraps."""

    __slots__ = ()


class Float16(Float):
    """IEEE half precision."""

    __slots__ = ()


class BFloat16(Float):
    """Brain float: Float32's exponent, 8 bits of precision."""

    __slots__ = ()


class Float32(Float):
    """IEEE single precision."""

    __slots__ = ()


class Float64(Float):
    """IEEE double precision."""

    __slots__ = ()


class Float8E4M3FN(Float):
    """8-bit float of gfx950 (OCP): no infinity, largest 448."""

    __slots__ = ()


class Float8E4M3FNUZ(Float):
    """8-bit float of gfx942: no infinity, no negative zero, largest 240."""

    __slots__ = ()


class Float8E4M3B11FNUZ(Float):
    """8-bit float with bias 11, no infinity and no negative zero."""

    __slots__ = ()


class Float8E4M3(Float):
    """8-bit float with infinities, largest 240."""

    __slots__ = ()


class Float8E5M2(Float):
    """8-bit float of gfx950 (OCP): wide range, with infinities."""

    __slots__ = ()


class Float8E5M2FNUZ(Float):
    """8-bit float of gfx942: wide range, no infinity, no negative zero, largest 57344."""

    __slots__ = ()


class Float8E8M0FNU(Float):
    """8-bit power of two: the scale of the MX formats."""

    __slots__ = ()


class Float6E2M3FN(Float):
    """6-bit MX float, largest 7.5."""

    __slots__ = ()


class Float6E3M2FN(Float):
    """6-bit MX float, largest 28."""

    __slots__ = ()


class Float4E2M1FN(Float):
    """4-bit MX float, largest 6."""

    __slots__ = ()
