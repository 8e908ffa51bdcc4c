"""Which number format the result of an arithmetic operation has: one rule for scalars, vectors and literals."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL, DTYPES, FLOAT, DType
from flylab.errors import TraceError


def promote(a: DType, b: DType) -> DType:
    """The common format of two operands.

    A float wins over an integer. Of two floats, or two integers, the wider wins; of two equally wide integers the
    unsigned one; Float16 with BFloat16 gives Float32. A Boolean takes the other's format. A float of fewer than 16
    bits has a common format with none but itself.

    >>> promote(DTYPES["Int32"], DTYPES["Uint32"]).name, promote(DTYPES["Float16"], DTYPES["BFloat16"]).name
    ('Uint32', 'Float32')

    Raises `TraceError` for two formats that have no common one.
    """
    if a == b or b.kind == BOOL:
        return a
    if a.kind == BOOL:
        return b
    if a.is_small_float or b.is_small_float:
        small = a if a.is_small_float else b
        raise TraceError(
            f"{a} and {b} have no common number format: nothing computes in {small}",
            hint="convert it first: x.to(fx.Float32)",
        )
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if not a.is_float:
        return a if not a.signed else b
    return DTYPES["Float32"]


def literal(value: int | float | bool, other: DType) -> DType:
    """The format that a Python number takes beside an operand of format `other`: the operand's, where it fits.

    A Python float beside an integer is a Float32; a Python integer that does not fit is an Int64. Raises `TraceError`
    for one that does not fit there either, and for a negative one beside an unsigned format of 64 bits or more: their
    common format would not hold it.

    >>> literal(1.5, DTYPES["BFloat16"]).name, literal(2**40, DTYPES["Int32"]).name
    ('BFloat16', 'Int64')
    """
    if other.kind == FLOAT:
        return other
    if isinstance(value, float):
        return DTYPES["Float32"]
    if isinstance(value, bool):
        return DTYPES["Boolean"]
    if other.kind == BOOL:
        other = DTYPES["Int32"]
    low, high = integer_range(other)
    if low <= value <= high:
        return other
    wide = DTYPES["Int64"]
    low, high = integer_range(promote(other, wide))
    if not low <= value <= high:
        wider = [k for k in ("Int64", "Int128", "Uint128") if DTYPES[k].bits >= other.bits and _holds(DTYPES[k], value)]
        number = f".to(fx.{wider[0]}) of the number, or " if wider else ""
        raise TraceError(
            f"{value} beside a {other}: their common format {promote(other, wide)} holds {low} to {high}",
            hint=f"convert {'one of them' if number else 'it'}: {number}fx.Float32(...) of the literal",
        )
    return wide


def _holds(dtype: DType, value: int) -> bool:
    low, high = integer_range(dtype)
    return low <= value <= high


_ARRAYS = frozenset({"numpy", "ml_dtypes", "torch"})


def plain(value: Any) -> Any:
    """A number of numpy, ml_dtypes or torch (a scalar, or an array of rank 0) as Python's; any other value as it is."""
    kind = type(value).__module__.partition(".")[0]
    if kind not in _ARRAYS or getattr(value, "ndim", None) != 0 or not hasattr(value, "item"):  # a format of numpy
        return value
    try:
        item = value.item()
    except RuntimeError:  # of a torch tensor that has no data
        return value
    return item if isinstance(item, (bool, int, float)) else float(value) if type(item) is type(value) else value


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer format."""
    if dtype.signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1
