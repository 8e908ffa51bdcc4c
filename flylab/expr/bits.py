"""The bits of a number known while tracing, and the number with given bits, NaNs with their payload.

A NaN is a Python float whose 64 bits hold the sign and the payload of the narrower format: converting one the ordinary
way would set its quiet bit.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from flylab.dtypes import DType


def mantissa_of(dtype: DType) -> int | None:
    """The bits of the mantissa of a format that has many NaNs, which tell them apart; else None."""
    encoding = dtype.encoding
    return encoding.mantissa if encoding and encoding.has_infinity else None


def to_bits(value: Any, dtype: DType) -> int:
    """The bits of a number as a format holds it, as an unsigned integer.

    >>> from flylab.dtypes import DTYPES
    >>> hex(to_bits(-1.0, DTYPES["BFloat16"]))
    '0xbf80'
    """
    if not dtype.is_float:
        return int(value) & ((1 << dtype.bits) - 1)
    mantissa = mantissa_of(dtype)
    if mantissa is not None and math.isnan(value):
        wide: int = struct.unpack("<Q", struct.pack("<d", value))[0]
        payload = (wide & ((1 << 52) - 1)) >> (52 - mantissa)
        quiet = 1 << (mantissa - 1)
        return (wide >> 63) << (dtype.bits - 1) | _exponent(dtype, mantissa) | (payload or quiet)
    import numpy

    kind = dtype.to_numpy()
    bits: int = numpy.array(value).astype(kind).view(f"u{kind.itemsize}").item()
    return bits


def of_bits(bits: int, dtype: DType) -> Any:
    """The number that these bits are in a format.

    >>> from flylab.dtypes import DTYPES
    >>> of_bits(0x3F800000, DTYPES["Float32"]), of_bits(0xFF, DTYPES["Int8"])
    (1.0, -1)
    """
    if not dtype.is_float:
        return bits - (1 << dtype.bits) if dtype.signed and bits >> (dtype.bits - 1) else bits
    mantissa = mantissa_of(dtype)
    if mantissa is not None:
        exponent, payload = _exponent(dtype, mantissa), bits & ((1 << mantissa) - 1)
        if bits & exponent == exponent and payload:
            wide = (bits >> (dtype.bits - 1)) << 63 | 0x7FF << 52 | payload << (52 - mantissa)
            return struct.unpack("<d", struct.pack("<Q", wide))[0]
    import numpy

    kind = dtype.to_numpy()
    return float(numpy.array(bits, f"u{kind.itemsize}").view(kind))


def _exponent(dtype: DType, mantissa: int) -> int:
    """The bits of an exponent of all ones."""
    return ((1 << (dtype.bits - 1 - mantissa)) - 1) << mantissa
