"""Vectors by name (`fx.Float32x4`), and vectors filled with one number (`fx.full`, `fx.zeros_like`)."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL, DTYPES
from flylab.errors import TraceError
from flylab.expr import formats
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric, numeric_class
from flylab.expr.raw import typed
from flylab.expr.vector import Vector

LANES = {
    4: (2, 4, 8, 16, 32),
    8: (1, 2, 4, 8, 16),
    16: (1, 2, 4, 8, 16),
    32: (1, 2, 4, 8),
    64: (1, 2, 4),
    128: (1,),
}
"""How many elements the named vectors of a format of so many bits have. Source: the published list of names."""


class NamedVector(type):
    """The type of `fx.Float32x4`: calling it types a vector, and `isinstance` asks for the format and the count."""

    dtype: type[Numeric]
    lanes: int

    def __call__(cls, value: Any, shape: Any = None, dtype: Any = None) -> Vector:
        given = typed(value)
        wanted = cls.dtype if dtype is None else numeric_class(dtype)
        if not isinstance(given, Vector):
            raise TraceError(
                f"{cls.__name__}({type(value).__name__}): not a vector",
                hint=f"Vector.filled({cls.lanes}, x, fx.{cls.dtype.__name__}) or Vector.from_elements([...]) make one",
            )
        if wanted is not cls.dtype or given.numel != cls.lanes:
            raise TraceError(
                f"{cls.__name__}({name_of(value, repr(given))}): it has {given.numel} elements of {wanted.dtype}",
                hint=f"give a vector of {cls.lanes} elements of {cls.dtype.dtype}",
            )
        return Vector(given, shape, cls.dtype)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Vector) and value.dtype is cls.dtype and value.numel == cls.lanes


def VectorAlias(alias_dtype: Any, lanes: int) -> Any:
    """The name of vectors of one format and count: `VectorAlias(fx.Float32, 4)` is `fx.Float32x4`.

    `Float32x4(raw)` types a raw MLIR vector, and `isinstance(v, Float32x4)` tells whether `v` is such a vector.

    >>> VectorAlias(formats.Float32, 3).__name__
    'Float32x3'

    Raises `TraceError` for what is no number format, or no count.
    """
    kind = numeric_class(alias_dtype)
    if not isinstance(lanes, int) or lanes < 1:
        raise TraceError(f"VectorAlias({kind.__name__}, {lanes!r})", hint="the count is an integer of at least 1")
    name = f"{kind.__name__}x{lanes}"
    made = ALIASES.get(name)
    if made is None:
        members = {"dtype": kind, "lanes": lanes, "__doc__": f"A vector of {lanes} {kind.__name__}s."}
        made = ALIASES[name] = NamedVector(name, (), members)
    return made


ALIASES: dict[str, NamedVector] = {}
"""The named vectors by their names."""


def full(shape: Any, fill_value: Any, dtype: Any) -> Vector:
    """A vector of a shape with `fill_value` in each element: `fx.full((4, 1), 0.0, fx.Float32)`."""
    return Vector.filled(shape, fill_value, dtype)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Vector:
    """A vector of the shape (and format, unless `dtype` is given) of `a`, with `fill_value` in each element."""
    model = typed(a)
    if not isinstance(model, Vector):
        raise TraceError(f"full_like of {name_of(a, repr(a))}: not a vector", hint="fx.full(shape, x, dtype) makes one")
    return Vector.filled(model.shape, fill_value, model.dtype if dtype is None else dtype)


def zeros_like(a: Any, dtype: Any = None) -> Vector:
    """A vector like `a` of zeros."""
    return full_like(a, 0, dtype)


def ones_like(a: Any, dtype: Any = None) -> Vector:
    """A vector like `a` of ones."""
    return full_like(a, 1, dtype)


def empty_like(a: Any, dtype: Any = None) -> Vector:
    """A vector like `a` whose elements are to be replaced: they are zeros, which costs nothing where they are."""
    return full_like(a, 0, dtype)


for _row in DTYPES.values():
    for _lanes in LANES.get(_row.bits, ()) if _row.kind != BOOL else ():
        VectorAlias(formats.__dict__[_row.name], _lanes)
