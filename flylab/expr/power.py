"""`x ** n` of numbers and vectors: products for small known exponents, else the functions of `fx.math`."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import TraceError

LARGEST_PRODUCT = 3
"""The largest known exponent of a float for which the power is a product, which is as near then as `fx.math`'s."""


def power(symbol: str, a: Any, b: Any) -> Any:
    """`a ** b` of two numbers or vectors, at least one of them the language's.

    A known exponent of an integer gives products, which wrap; of a float, products up to x ** 3. Any other power is
    `fx.math.ipowi` of integers, `fpowi` of a float with an integer exponent, `powf` with a float.

    >>> import flylab.expr as fx
    >>> fx.Int8(3) ** 5, fx.Float32(0.5) ** -2, fx.Int32(9) ** 0.5
    (Int8(-13), Float32(4.0), Float32(3.0))

    Raises `TraceError` for a known negative power of an integer.
    """
    from flylab.expr import math
    from flylab.expr.numeric import CLASSES, Numeric, as_numeric
    from flylab.expr.predicates import dtype_of, pair

    if isinstance(b, float) or not isinstance(b, int) and dtype_of(b).is_float:
        return math.powf(*pair(a, b))
    known = int(b) if isinstance(b, int) else int(b.value) if isinstance(b, Numeric) and b.is_static else None
    base = as_numeric(a, dtype_of(b)) if isinstance(a, (int, float)) else a
    if dtype_of(base).is_float:
        if known is None or not 0 <= known <= LARGEST_PRODUCT:
            return math.fpowi(base, b)
        return _product(base, known)
    if known is None:
        return math.ipowi(*pair(base, b))
    if known < 0:
        raise TraceError(
            f"{dtype_of(base)} ** {known}: an integer has no negative power",
            hint=f"convert it first: x.to(fx.Float32) ** {known}",
        )
    return _product(base.to(CLASSES["Int32"]) if dtype_of(base).kind == BOOL else base, known)


def _product(x: Any, n: int) -> Any:
    """x to the power n, by squaring."""
    from flylab.expr.vector import Vector

    if n == 0:
        return Vector.filled(x.shape, 1, x.dtype) if isinstance(x, Vector) else type(x)(1)
    if n == 1:
        return x
    half = _product(x, n // 2)
    return half * half * x if n % 2 else half * half
