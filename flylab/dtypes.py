"""Number formats, one row each: the name a kernel author writes, the MLIR type, the width, the numpy type.

The small float formats are those of the OCP specifications (FN, E5M2, MX) and of AMD's CDNA3 (FNUZ); numpy arrays of
them come from the package `ml_dtypes`. How the bits of a float are divided is from IEEE 754, the OCP specifications of
8-bit floats and of MX, and for FNUZ from LLVM's APFloat; the tests compare each row with `ml_dtypes.finfo`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.errors import FlylabError

INT, UINT, FLOAT, BOOL = "int", "uint", "float", "bool"


@dataclass(frozen=True)
class Encoding:
    """The bits of a float: a sign, `exponent` bits, `mantissa` bits. Codes are without the sign, as integers.

    `largest` is the code of the largest finite number, `overflow` of what is beyond (an infinity, NaN, or the largest
    again, where a conversion saturates), `nan` of NaN (None where there is none). With `unsigned_zero` (FNUZ) the code
    of -0 is the one NaN. E8M0 has no sign and no zero.
    """

    exponent: int
    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int | None
    unsigned_zero: bool = False

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def has_infinity(self) -> bool:
        """True where an overflow gives an infinity."""
        return self.nan is not None and self.largest < self.overflow < self.nan

    def value(self, code: int) -> float:
        """The finite number with this code (without the sign)."""
        field, rest = divmod(code, 1 << self.mantissa)
        if field == 0 and self.mantissa:
            return float(rest * 2.0 ** (1 - self.bias - self.mantissa))
        return float((1 + rest / (1 << self.mantissa)) * 2.0 ** (field - self.bias))


def _ieee(exponent: int, mantissa: int) -> Encoding:
    """IEEE's scheme: an exponent of all ones is infinity, or a NaN (the quiet one)."""
    infinity = ((1 << exponent) - 1) << mantissa
    bias = (1 << (exponent - 1)) - 1
    return Encoding(exponent, mantissa, bias, infinity - 1, infinity, infinity | 1 << (mantissa - 1))


def _fnuz(exponent: int, mantissa: int, bias: int) -> Encoding:
    """Finite, NaN in the place of -0, unsigned zero."""
    sign = 1 << (exponent + mantissa)
    return Encoding(exponent, mantissa, bias, sign - 1, sign, sign, unsigned_zero=True)


def _finite(exponent: int, mantissa: int) -> Encoding:
    """Of MX: every code is a number."""
    largest = (1 << (exponent + mantissa)) - 1
    return Encoding(exponent, mantissa, (1 << (exponent - 1)) - 1, largest, largest, None)


@dataclass(frozen=True)
class DType:
    """One number format. `bits` is the width in memory of a packed element; `numpy_name` is empty where none exists."""

    name: str
    kind: str
    bits: int
    mlir: str
    numpy_name: str = ""
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        if self.kind not in (INT, UINT, FLOAT, BOOL) or self.bits < 1 or self.is_float != bool(self.encoding):
            raise ValueError(f"bad row for {self.name}")

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == FLOAT

    @property
    def is_small_float(self) -> bool:
        """True for the floats of fewer than 16 bits: no chip computes in them but by matrix instructions."""
        return self.is_float and self.bits < 16

    @property
    def signed(self) -> bool:
        """True where arithmetic on the format is signed."""
        return self.kind in (INT, FLOAT)

    def to_numpy(self) -> Any:
        """The numpy dtype of an element.

        >>> DTYPES["Float32"].to_numpy()
        dtype('float32')

        Raises `FlylabError` where numpy and ml_dtypes have none (sub-byte integers of odd kinds, 128 bits).
        """
        import numpy

        if not self.numpy_name:
            raise FlylabError(f"numpy has no type for {self.name}")
        if hasattr(numpy, self.numpy_name):
            return numpy.dtype(getattr(numpy, self.numpy_name))
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, self.numpy_name))


DTYPES = {
    d.name: d
    for d in (
        DType("Boolean", BOOL, 1, "i1", "bool_"),
        DType("Int4", INT, 4, "i4", "int4"),
        DType("Int8", INT, 8, "i8", "int8"),
        DType("Int16", INT, 16, "i16", "int16"),
        DType("Int32", INT, 32, "i32", "int32"),
        DType("Int64", INT, 64, "i64", "int64"),
        DType("Int128", INT, 128, "i128"),
        DType("Uint8", UINT, 8, "i8", "uint8"),
        DType("Uint16", UINT, 16, "i16", "uint16"),
        DType("Uint32", UINT, 32, "i32", "uint32"),
        DType("Uint64", UINT, 64, "i64", "uint64"),
        DType("Uint128", UINT, 128, "i128"),
        DType("Float16", FLOAT, 16, "f16", "float16", _ieee(5, 10)),
        DType("BFloat16", FLOAT, 16, "bf16", "bfloat16", _ieee(8, 7)),
        DType("Float32", FLOAT, 32, "f32", "float32", _ieee(8, 23)),
        DType("Float64", FLOAT, 64, "f64", "float64", _ieee(11, 52)),
        DType("Float8E4M3FN", FLOAT, 8, "f8E4M3FN", "float8_e4m3fn", Encoding(4, 3, 7, 0x7E, 0x7F, 0x7F)),
        DType("Float8E4M3FNUZ", FLOAT, 8, "f8E4M3FNUZ", "float8_e4m3fnuz", _fnuz(4, 3, 8)),
        DType("Float8E4M3B11FNUZ", FLOAT, 8, "f8E4M3B11FNUZ", "float8_e4m3b11fnuz", _fnuz(4, 3, 11)),
        DType("Float8E4M3", FLOAT, 8, "f8E4M3", "float8_e4m3", _ieee(4, 3)),
        DType("Float8E5M2", FLOAT, 8, "f8E5M2", "float8_e5m2", _ieee(5, 2)),
        DType("Float8E5M2FNUZ", FLOAT, 8, "f8E5M2FNUZ", "float8_e5m2fnuz", _fnuz(5, 2, 16)),
        DType("Float8E8M0FNU", FLOAT, 8, "f8E8M0FNU", "float8_e8m0fnu", Encoding(8, 0, 127, 0xFE, 0xFF, 0xFF)),
        DType("Float6E2M3FN", FLOAT, 6, "f6E2M3FN", "float6_e2m3fn", _finite(2, 3)),
        DType("Float6E3M2FN", FLOAT, 6, "f6E3M2FN", "float6_e3m2fn", _finite(3, 2)),
        DType("Float4E2M1FN", FLOAT, 4, "f4E2M1FN", "float4_e2m1fn", _finite(2, 1)),
    )
}


def dtype_text(dtype: DType) -> str:
    """The spelling of a number format in a Fly type: MLIR's, with `ui` for unsigned integers.

    >>> dtype_text(DTYPES["Uint8"])
    'ui8'
    """
    return "u" + dtype.mlir if dtype.kind == UINT else dtype.mlir


DTYPE_OF_TEXT = {dtype_text(d): d for d in DTYPES.values()}


def of_numpy(numpy_dtype: Any) -> DType:
    """The format of a numpy (or ml_dtypes) dtype.

    >>> of_numpy("float32").name
    'Float32'

    Raises `FlylabError` for one that flylab has no row for (complex numbers, strings, dates).
    """
    name = str(numpy_dtype)
    for row in DTYPES.values():
        if name in (row.numpy_name, row.numpy_name.rstrip("_")):
            return row
    known = ", ".join(d.numpy_name for d in DTYPES.values() if d.numpy_name and d.bits >= 8)
    raise FlylabError(f"flylab has no number format for numpy's {name!r}", hint=f"convert the array to one of {known}")
