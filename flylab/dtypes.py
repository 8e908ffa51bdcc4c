"""Number formats, one row each: the name a kernel author writes, the MLIR type, the width, the numpy type.

The small float formats are those of the OCP specifications (FN, E5M2, MX) and of AMD's CDNA3 (FNUZ); numpy arrays of
them come from the package `ml_dtypes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.errors import FlylabError

INT, UINT, FLOAT, BOOL = "int", "uint", "float", "bool"


@dataclass(frozen=True)
class DType:
    """One number format. `bits` is the width in memory of a packed element; `numpy_name` is empty where none exists."""

    name: str
    kind: str
    bits: int
    mlir: str
    numpy_name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in (INT, UINT, FLOAT, BOOL) or self.bits < 1:
            raise ValueError(f"bad row for {self.name}")

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == FLOAT

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
        DType("Float16", FLOAT, 16, "f16", "float16"),
        DType("BFloat16", FLOAT, 16, "bf16", "bfloat16"),
        DType("Float32", FLOAT, 32, "f32", "float32"),
        DType("Float64", FLOAT, 64, "f64", "float64"),
        DType("Float8E4M3FN", FLOAT, 8, "f8E4M3FN", "float8_e4m3fn"),
        DType("Float8E4M3FNUZ", FLOAT, 8, "f8E4M3FNUZ", "float8_e4m3fnuz"),
        DType("Float8E4M3B11FNUZ", FLOAT, 8, "f8E4M3B11FNUZ", "float8_e4m3b11fnuz"),
        DType("Float8E4M3", FLOAT, 8, "f8E4M3", "float8_e4m3"),
        DType("Float8E5M2", FLOAT, 8, "f8E5M2", "float8_e5m2"),
        DType("Float8E8M0FNU", FLOAT, 8, "f8E8M0FNU", "float8_e8m0fnu"),
        DType("Float6E2M3FN", FLOAT, 6, "f6E2M3FN", "float6_e2m3fn"),
        DType("Float6E3M2FN", FLOAT, 6, "f6E3M2FN", "float6_e3m2fn"),
        DType("Float4E2M1FN", FLOAT, 4, "f4E2M1FN", "float4_e2m1fn"),
    )
}


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
