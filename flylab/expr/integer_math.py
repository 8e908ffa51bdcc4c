"""The functions of `fx.math` on integers: bits counted, sizes, powers."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL, DType
from flylab.errors import TraceError
from flylab.expr.bits import to_bits
from flylab.expr.emit import mlir_type, op
from flylab.expr.folding import normalise
from flylab.expr.numeric import CLASSES, Numeric, as_numeric
from flylab.expr.predicates import dtype_of, pair
from flylab.expr.promotion import integer_range
from flylab.expr.raw import typed
from flylab.expr.vector import Vector


def _integers(name: str, x: Any, hint: str) -> Any:
    """An operand as a number or vector of integers. Raises `TraceError` for anything else."""
    given = typed(x)
    number = given if isinstance(given, Vector) else as_numeric(given)
    dtype = dtype_of(number)
    if dtype.is_float or dtype.kind == BOOL:
        raise TraceError(f"{name} of {dtype}: it takes integers", hint=hint)
    return number


def absi(x: Any) -> Any:
    """The absolute value of integers; that of the least one wraps to itself.

    >>> absi(-3)
    Int32(3)

    Raises `TraceError` for what is no integer.
    """
    return abs(_integers("absi", x, "absf takes floats, abs(x) both"))


def _counted(name: str, x: Any, count: Any) -> Any:
    number = _integers(name, x, "read the bits first: x.bitcast(fx.Uint32)")
    dtype = dtype_of(number)
    if isinstance(number, Numeric) and number.is_static:
        return type(number)(count(to_bits(number.value, dtype), dtype.bits))
    lanes = number.numel if isinstance(number, Vector) else 0
    value = op(f"math.{name}", [number.ir_value()], mlir_type(dtype, lanes))
    if lanes:
        return Vector(value, number.shape, number.dtype)
    low, high = integer_range(dtype)
    return type(number)(value, bounds=(0, dtype.bits) if dtype.bits <= high else None)


def ctlz(x: Any) -> Any:
    """How many bits of an integer are 0 above the highest that is 1; its width for 0.

    >>> import flylab.expr as fx
    >>> ctlz(fx.Int16(1))
    Int16(15)

    Raises `TraceError` for what is no integer.
    """
    return _counted("ctlz", x, lambda bits, width: width - bits.bit_length())


def cttz(x: Any) -> Any:
    """How many bits of an integer are 0 below the lowest that is 1; its width for 0.

    >>> cttz(8)
    Int32(3)

    Raises `TraceError` for what is no integer.
    """
    return _counted("cttz", x, lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width)


def ctpop(x: Any) -> Any:
    """How many bits of an integer are 1.

    >>> ctpop(-1)
    Int32(32)

    Raises `TraceError` for what is no integer.
    """
    return _counted("ctpop", x, lambda bits, width: bits.bit_count())


def ipowi(base: Any, exp: Any) -> Any:
    """base**exp of integers in their common format; it wraps.

    For a negative exponent it is the quotient 1 / base**-exp without its fraction: 0 but for a base of 1 or -1.

    >>> ipowi(3, 4), ipowi(-1, -3)
    (Int32(81), Int32(-1))

    Raises `TraceError` for what is no integer, for a known 0 to a known negative power, and for an unsigned format with
    an exponent of the device, which could be taken for a negative one.
    """
    x, n = pair(_integers("ipowi", base, "powf takes floats"), _integers("ipowi", exp, "powf takes floats"))
    dtype = dtype_of(x)
    if isinstance(x, Numeric) and x.is_static and n.is_static:
        return CLASSES[dtype.name](_power(x.value, n.value, dtype))
    given = typed(exp)
    known = None if isinstance(given, Vector) else as_numeric(given)
    small = known is not None and known.is_static and 0 <= known.value < 1 << (dtype.bits - 1)
    if not dtype.signed and not small:
        raise TraceError(f"ipowi of {dtype} with an exponent of the device", hint="convert both: x.to(fx.Int32)")
    lanes = x.numel if isinstance(x, Vector) else 0
    value = op("math.ipowi", [x.ir_value(), n.ir_value()], mlir_type(dtype, lanes))
    return Vector(value, x.shape, x.dtype) if lanes else CLASSES[dtype.name](value)


def _power(base: int, exponent: int, dtype: DType) -> int:
    if exponent >= 0:
        return int(normalise(pow(base, exponent, 1 << dtype.bits), dtype))
    if base == 0:
        raise TraceError(f"ipowi(0, {exponent}) divides by zero", hint="check the base first")
    return 0 if abs(base) != 1 else base if exponent & 1 else 1
