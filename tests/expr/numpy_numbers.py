"""Numbers of one format as numpy computes with them: a second opinion on programs of the language.

Formats of results follow the table of promotion; values come from numpy's fixed-width arithmetic alone. A program is
called with `fx` being the namespace made here.
"""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import numpy as np

from flylab.dtypes import BOOL, DTYPES, DType
from flylab.expr.promotion import integer_range, literal, promote

NAMES = [name for name, d in DTYPES.items() if d.numpy_name and d.bits in (1, 16, 32, 64) and name != "BFloat16"]
NAMES += ["Int8", "Uint8"]


class Model:
    """An array of numbers of one format."""

    def __init__(self, dtype: DType, values: Any):
        self.dtype, self.values = dtype, values

    def to(self, dtype: DType) -> Model:
        values = self.values
        if dtype.kind == BOOL:
            return Model(dtype, values != 0)
        if self.dtype.is_float and not dtype.is_float:
            low, high = integer_range(dtype)
            wide = np.nan_to_num(values.astype(np.float64), nan=0.0)
            cut = [low if v <= low else high if v >= high else int(v) for v in wide.tolist()]
            return Model(dtype, np.array(cut, dtype.to_numpy()))
        return Model(dtype, values.astype(dtype.to_numpy()))

    def _beside(self, other: Any) -> Model:
        if isinstance(other, Model):
            return other
        dtype = literal(other, self.dtype)
        made = np.full(self.values.shape, other, np.float64 if isinstance(other, float) else object)
        return Model(dtype, made.astype(dtype.to_numpy()))

    def together(self, other: Any) -> tuple[Model, Model, DType]:
        right = self._beside(other)
        common = promote(self.dtype, right.dtype)
        return self.to(common), right.to(common), common

    def binary(self, rule: Any, other: Any, reflected: bool = False, bits: bool = False) -> Model:
        x, y, dtype = self.together(other)
        if dtype.kind == BOOL and not bits:
            dtype = DTYPES["Int32"]
            x, y = x.to(dtype), y.to(dtype)
        values = rule(y.values, x.values) if reflected else rule(x.values, y.values)
        return Model(dtype, values.astype(dtype.to_numpy()))

    def compare(self, rule: Any, other: Any) -> Model:
        x, y, _ = self.together(other)
        return Model(DTYPES["Boolean"], rule(x.values, y.values))

    def __neg__(self) -> Model:
        return self.binary(operator.sub, 0, True) if self.dtype.kind == BOOL else Model(self.dtype, -self.values)

    def __abs__(self) -> Model:
        return Model(self.dtype, np.abs(self.values))

    __hash__ = None  # type: ignore[assignment]


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    _rule = getattr(operator, _name if _name not in ("and", "or") else _name + "_")
    _bits = _name in ("and", "or", "xor")
    setattr(Model, f"__{_name}__", lambda x, y, r=_rule, b=_bits: x.binary(r, y, bits=b))
    setattr(Model, f"__r{_name}__", lambda x, y, r=_rule, b=_bits: x.binary(r, y, True, b))


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _rule = getattr(operator, _name)
    setattr(Model, f"__{_name}__", lambda x, y, r=_rule: x.compare(r, y))


def _number(value: Any) -> Model:
    """A Python number that stands alone."""
    if isinstance(value, Model):
        return value
    default = DTYPES["Float32" if isinstance(value, float) else "Boolean" if isinstance(value, bool) else "Int32"]
    dtype = literal(value, default)
    return Model(dtype, np.array([value]).astype(dtype.to_numpy()))


def _made(name: str) -> Any:
    dtype = DTYPES[name]

    def make(value: Any) -> Model:
        if isinstance(value, Model):
            return value.to(dtype)
        source = DTYPES["Float64" if isinstance(value, float) else "Int64"]
        return Model(source, np.array([value], source.to_numpy())).to(dtype)

    return make


def _pair(a: Any, b: Any) -> tuple[Model, Model, DType]:
    """Two numbers in their common format."""
    if isinstance(a, Model) or not isinstance(b, Model):
        return _number(a).together(b)
    right, left, dtype = b.together(a)
    return left, right, dtype


def _extreme(rule: Any) -> Any:
    def apply(a: Any, b: Any) -> Model:
        x, y, _ = _pair(a, b)
        return x.binary(rule, y)

    return apply


def _select(condition: Model, a: Any, b: Any) -> Model:
    x, y, dtype = _pair(a, b)
    return Model(dtype, np.where(condition.values, x.values, y.values).astype(dtype.to_numpy()))


fx = SimpleNamespace(
    max=_extreme(np.maximum), min=_extreme(np.minimum), arith=SimpleNamespace(select=_select),
    **{name: _made(name) for name in NAMES},
)  # fmt: skip
