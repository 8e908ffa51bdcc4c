"""`fx.math`: functions of numbers and vectors, each within a stated distance of the exact value.

Floats are Float16, BFloat16 and Float32 (some functions have Float64 too); the result has the operands' common format.
A number known while tracing is computed at once, with the very bits that the device would give. `fastmath=` gives one
call flags of its own; under `afn`, from there or from a scope, exp, exp2, log, log2, log10, sin, cos, sincos, tan,
tanh, sqrt and rsqrt are the hardware's own approximations, but for numbers known while tracing. What each function
promises is in `flylab.mathlib.accuracy`, and measured in `notebooks/reference/math_accuracy.md`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from flylab.dtypes import BOOL, DTYPES, DType
from flylab.errors import NotSupportedError, TraceError
from flylab.expr import integer_math
from flylab.expr.arithmetic import require_arithmetic
from flylab.expr.emit import mlir_type, operation
from flylab.expr.fastmath import attributes, within
from flylab.expr.numeric import CLASSES, Numeric, as_numeric
from flylab.expr.planned import missing
from flylab.expr.predicates import dtype_of
from flylab.expr.promotion import promote
from flylab.expr.raw import typed
from flylab.expr.vector import Vector
from flylab.mathlib.functions import FUNCTIONS, Function
from flylab.mathlib.known import Known
from flylab.mathlib.logarithm import fpowi as fpowi_recipe
from flylab.shown import a_kind

absi, ctlz, ctpop, cttz, ipowi = (
    integer_math.absi, integer_math.ctlz, integer_math.ctpop, integer_math.cttz, integer_math.ipowi
)


def _common_format(name: str, values: list[Any]) -> type[Numeric]:
    """The float format of operands. Python's numbers take that of the others, alone their own."""
    formats = [dtype_of(x) for x in values if isinstance(x, (Vector, Numeric))]
    formats = formats or [dtype_of(as_numeric(x)) for x in values]
    for dtype in formats:
        if not dtype.is_float:
            plain = [x for x in values if isinstance(x, int)]
            hint = "convert it first: " + (f"{plain[0]}.0, fx.Float32(x)" if plain else "x.to(fx.Float32)")
            raise TraceError(f"{name} of {dtype}: it takes floats", hint=hint)
        require_arithmetic(dtype)
    return CLASSES[functools.reduce(promote, formats).name]


def operands_of(name: str, given: tuple[Any, ...]) -> list[Any]:
    """Operands as numbers, or as vectors where one is, all in their common float format.

    Raises `TraceError` for integers (Python's count as floats beside one), and `NotSupportedError` for small floats.
    """
    values = [typed(x) for x in given]
    for x in values:
        if not isinstance(x, (Vector, Numeric, bool, int, float)):
            raise TraceError(f"{name} of {x!r} ({a_kind(x)})", hint="give an fx number or vector")
    kind = _common_format(name, values)
    return _in_one_shape(name, [x.to(kind) if isinstance(x, Vector) else kind(x) for x in values])


def _in_one_shape(name: str, values: list[Any]) -> list[Any]:
    """Numbers as they are, or, where one operand is a vector, all as vectors of its shape."""
    shape = next((x.shape for x in values if isinstance(x, Vector)), None)
    if shape is None:
        return values
    for x in values:
        if isinstance(x, Vector) and x.shape != shape:
            raise TraceError(
                f"{name} of vectors of shape {shape} and {x.shape}",
                hint="operands must have one shape; Vector(v, shape) renames the shape of the same data",
            )
    return [x if isinstance(x, Vector) else Vector.filled(shape, x, type(x)) for x in values]


def _compute(row: Function, given: tuple[Any, ...], fastmath: Any) -> tuple[Any, ...]:
    """The results of a function of floats."""
    numbers = operands_of(row.name, given)
    dtype = dtype_of(numbers[0])
    if not row.kind_within(dtype.mlir):
        raise NotSupportedError(
            f"{row.name} of {dtype}: it is computed in Float16, BFloat16 and Float32 only",
            hint="convert it first: x.to(fx.Float32)",
        )
    with within(fastmath):
        flags = attributes()
    result = DTYPES["Boolean"] if row.truth else dtype
    if all(isinstance(x, Numeric) and x.is_static for x in numbers):
        return tuple(map(CLASSES[result.name], _folded(row, [x.value for x in numbers], dtype)))
    return _on_device(f"math.{row.name}", numbers, [result] * row.results, flags)


def _folded(row: Function, values: list[float], dtype: DType) -> list[float]:
    """The results on known numbers."""
    import numpy

    with numpy.errstate(all="ignore"):
        arrays = tuple(numpy.array([v]).astype(dtype.to_numpy()) for v in values)
        return [x.item() if row.truth else float(x[0]) for x in row(Known(), arrays, dtype.mlir)]


def _on_device(name: str, numbers: list[Any], results: list[DType], flags: dict[str, Any]) -> tuple[Any, ...]:
    """The operation's results, as numbers or vectors like the first operand."""
    model = numbers[0]
    lanes = model.numel if isinstance(model, Vector) else 0
    made = operation(name, [x.ir_value() for x in numbers], [mlir_type(d, lanes) for d in results], flags)
    kinds = [CLASSES[d.name] for d in results]
    if lanes:
        return tuple(Vector(v, model.shape, k) for v, k in zip(made, kinds, strict=True))
    return tuple(k(v) for v, k in zip(made, kinds, strict=True))


def fpowi(base: Any, exp: Any, *, fastmath: Any = None) -> Any:
    """base**exp for a float and an integer, or vectors of them.

    >>> fpowi(-2.0, 3)
    Float32(-8.0)

    Raises `TraceError` for an exponent that is no integer or that Int64 does not hold, `NotSupportedError` for Float64.
    """
    (x,) = operands_of("fpowi", (base,))
    dtype, n = dtype_of(x), _exponent(exp)
    if dtype.name == "Float64":
        raise NotSupportedError("fpowi of Float64: it is computed in Float32", hint="convert: x.to(fx.Float32)")
    if isinstance(x, Numeric) and isinstance(n, Numeric) and x.is_static and n.is_static:
        return CLASSES[dtype.name](_folded_power(x.value, n.value, dtype, dtype_of(n)))
    with within(fastmath):
        return _on_device("math.fpowi", _in_one_shape("fpowi", [x, n]), [dtype], attributes())[0]


def _exponent(given: Any) -> Any:
    """An integer exponent as Int32, or as Int64 where that might not hold it."""
    n = typed(given)
    n = n if isinstance(n, Vector) else as_numeric(n)
    dtype = dtype_of(n)
    if dtype.is_float or dtype.kind == BOOL or not (dtype.bits <= 32 or dtype.name == "Int64"):
        raise TraceError(
            f"fpowi with an exponent of {dtype}", hint="give an integer of at most Int64; powf takes floats"
        )
    return n.to(CLASSES["Int32" if dtype.bits < 32 or dtype.signed and dtype.bits == 32 else "Int64"])


def _folded_power(base: float, exponent: int, dtype: DType, integers: DType) -> float:
    import numpy

    with numpy.errstate(all="ignore"):
        x = numpy.array([base]).astype(dtype.to_numpy()).astype(numpy.float32)
        result = fpowi_recipe(Known(), x, numpy.array([exponent], integers.to_numpy()))
        return float(result.astype(dtype.to_numpy())[0])


def _function(name: str, operands: str, meaning: str, example: str) -> Callable[..., Any]:
    """A function of the module, from its row in `flylab.mathlib.functions`."""
    row, names = FUNCTIONS[name], operands.split()

    def function(*given: Any, fastmath: Any = None, **named: Any) -> Any:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            raise TraceError(f"{name}: {error}", hint=f"call it as fx.math.{name}({', '.join(names)})") from None
        results = _compute(row, tuple(bound.arguments.values()), fastmath)
        return results if row.results > 1 else results[0]

    positional = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    signature = inspect.Signature(positional)
    flags = inspect.Parameter("fastmath", inspect.Parameter.KEYWORD_ONLY, default=None)
    function.__signature__ = inspect.Signature([*positional, flags])  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{meaning}\n\n    >>> {example.replace(' == ', chr(10) + '    ')}\n\n"
        "    Raises `TraceError` for what is no float, `NotSupportedError` for a float format that it does not have."
    )
    return function


absf = _function("absf", "x", "The absolute value of floats.", "absf(-1.5) == Float32(1.5)")
copysign = _function("copysign", "mag sign", "`mag` with the sign of `sign`.", "copysign(1.5, -0.0) == Float32(-1.5)")
fma = _function("fma", "a b c", "a * b + c, rounded once.", "fma(2.0, 3.0, 4.0) == Float32(10.0)")
floor = _function("floor", "x", "The nearest integer not above x, as a float.", "floor(-1.5) == Float32(-2.0)")
ceil = _function("ceil", "x", "The nearest integer not below x, as a float.", "ceil(-1.5) == Float32(-1.0)")
trunc = _function("trunc", "x", "The nearest integer towards zero, as a float.", "trunc(-1.5) == Float32(-1.0)")
round = _function("round", "x", "The nearest integer, halves away from zero, as a float.", "round(2.5) == Float32(3.0)")
roundeven = _function(
    "roundeven", "x", "The nearest integer, halves to the even one, as a float.", "roundeven(2.5) == Float32(2.0)")
clampf = _function(
    "clampf", "x lo hi", "x, not below `lo` and not above `hi` (which wins); NaN stays.",
    "clampf(7.0, 0.0, 1.0) == Float32(1.0)")
isnan = _function("isnan", "x", "Whether x is no number, as a Boolean.", "isnan(1.0) == Boolean(False)")
isinf = _function("isinf", "x", "Whether x is infinite, as a Boolean.", "isinf(float('-inf')) == Boolean(True)")
isfinite = _function(
    "isfinite", "x", "Whether x is neither infinite nor NaN, as a Boolean.", "isfinite(1.0) == Boolean(True)")
isnormal = _function(
    "isnormal", "x", "Whether x is neither 0, denormal, infinite nor NaN, as a Boolean.",
    "isnormal(1e-40) == Boolean(False)")
sqrt = _function("sqrt", "x", "The square root, rounded correctly.", "sqrt(9.0) == Float32(3.0)")
rsqrt = _function("rsqrt", "x", "1 / sqrt(x).", "rsqrt(4.0) == Float32(0.5)")
cbrt = _function("cbrt", "x", "The cube root.", "cbrt(-8.0) == Float32(-2.0)")
exp = _function("exp", "x", "e to the power x.", "exp(0.0) == Float32(1.0)")
exp2 = _function("exp2", "x", "2 to the power x; exact for integers.", "exp2(-3.0) == Float32(0.125)")
expm1 = _function(
    "expm1", "x", "e to the power x, minus 1, without loss near 0.", "expm1(1e-10) == Float32(1.000000013351432e-10)")
log = _function("log", "x", "The natural logarithm.", "log(1.0) == Float32(0.0)")
log2 = _function("log2", "x", "The logarithm to base 2; exact for powers of it.", "log2(0.125) == Float32(-3.0)")
log10 = _function("log10", "x", "The logarithm to base 10.", "log10(1000.0) == Float32(3.0)")
log1p = _function("log1p", "x", "The natural logarithm of 1 + x, without loss near 0.", "log1p(0.0) == Float32(0.0)")
sin = _function("sin", "x", "The sine of an angle of any size, in radians.", "sin(0.0) == Float32(0.0)")
cos = _function("cos", "x", "The cosine of an angle of any size, in radians.", "cos(0.0) == Float32(1.0)")
sincos = _function("sincos", "x", "The sine and the cosine, as a pair.", "sincos(0.0) == (Float32(0.0), Float32(1.0))")
tan = _function("tan", "x", "The tangent of an angle of any size, in radians.", "tan(0.0) == Float32(0.0)")
asin = _function("asin", "x", "The angle whose sine is x.", "asin(0.0) == Float32(0.0)")
acos = _function("acos", "x", "The angle whose cosine is x.", "acos(1.0) == Float32(0.0)")
atan = _function("atan", "x", "The angle whose tangent is x.", "atan(0.0) == Float32(0.0)")
atan2 = _function("atan2", "y x", "The angle of the point (x, y), from -pi to pi.", "atan2(0.0, 1.0) == Float32(0.0)")
sinh = _function("sinh", "x", "The hyperbolic sine.", "sinh(0.0) == Float32(0.0)")
cosh = _function("cosh", "x", "The hyperbolic cosine.", "cosh(0.0) == Float32(1.0)")
tanh = _function("tanh", "x", "The hyperbolic tangent.", "tanh(100.0) == Float32(1.0)")
asinh = _function("asinh", "x", "The inverse of sinh.", "asinh(0.0) == Float32(0.0)")
acosh = _function("acosh", "x", "The inverse of cosh.", "acosh(1.0) == Float32(0.0)")
atanh = _function("atanh", "x", "The inverse of tanh.", "atanh(0.0) == Float32(0.0)")
erf = _function("erf", "x", "The error function.", "erf(9.0) == Float32(1.0)")
erfc = _function("erfc", "x", "1 - erf(x), without loss where that is small.", "erfc(0.0) == Float32(1.0)")
powf = _function(
    "powf", "base exp", "base to the power exp; special values as in C's pow.", "powf(2.0, -1.0) == Float32(0.5)")

__all__ = sorted([*FUNCTIONS, "absi", "ctlz", "ctpop", "cttz", "fpowi", "ipowi"])


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    raise missing("fx.math", name, globals())
