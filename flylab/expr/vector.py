"""`fx.Vector`: several numbers of one format in the registers of one thread, with Python operators."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import NotSupportedError, TraceError
from flylab.expr import arithmetic, folding
from flylab.expr.conversion import convert
from flylab.expr.emit import constant, mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, as_numeric, interval, is_mlir_value, numeric_class, unify
from flylab.expr.operators import install
from flylab.expr.promotion import promote
from flylab.expr.state import Owned

MAX_VECTOR = 1024
"""The most elements that a vector, a fragment in registers or one copy has: more than a thread has registers for."""
LATER = ("reduce", "shuffle", "load", "store")


class Vector(Owned):
    """A vector of `n` numbers of one format.

    `Vector(raw)` wraps an MLIR vector or another Vector; `shape` is its logical shape (its product is `n`) and `dtype`
    the class of its elements where the MLIR type alone does not say (unsigned integers). Operators work element by
    element, with another vector of the same shape or with a number. Raises `TraceError` where shapes differ.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, value: Any, shape: Any = None, dtype: Any = None):
        if isinstance(value, Vector):
            shape = value.shape if shape is None else shape
            dtype = value.dtype if dtype is None else dtype
            value = value.value
        if not is_mlir_value(value) or not str(value.type).startswith("vector<"):
            raise TraceError(
                f"Vector({type(value).__name__}): not a vector",
                hint="Vector.filled(n, x, dtype) or Vector.from_elements([...], dtype) make one",
            )
        lanes, element = str(value.type)[len("vector<") : -1].split("x", 1)
        found = next(c for c in CLASSES.values() if c.dtype.mlir == element)
        self._own(value)
        self.dtype: type[Numeric] = found if dtype is None else numeric_class(dtype)
        if self.dtype.dtype.mlir != element:
            raise TraceError(
                f"a vector of {element} is not one of {self.dtype.dtype} ({self.dtype.dtype.mlir})",
                hint="use .bitcast(...) to read its bits, .to(...) to convert",
            )
        self.shape: tuple[Any, ...] = _shape(shape, int(lanes))

    @classmethod
    def filled(cls, shape: Any, value: Any, dtype: Any) -> Vector:
        """A vector with `value` in each element: `Vector.filled(4, 0.0, fx.Float32)`."""
        kind = numeric_class(dtype)
        lanes = _count(shape)
        number = kind(value)
        if number.is_static:
            return cls(constant(number.value, kind.dtype, lanes), shape, kind)
        return cls(op("vector.broadcast", [number.value], mlir_type(kind.dtype, lanes)), shape, kind)

    @classmethod
    def from_elements(cls, elements: Sequence[Any], dtype: Any) -> Vector:
        """A vector of the given numbers, converted to `dtype`."""
        kind = numeric_class(dtype)
        if not isinstance(elements, Iterable):
            raise TraceError(f"Vector.from_elements({elements!r})", hint="give a list of numbers: [x, y]")
        given = list(elements)
        if not given:
            raise TraceError("Vector.from_elements([]): a vector has at least one element", hint="give a number")
        _count(len(given))
        values = [kind(x).ir_value() for x in given]
        return cls(op("vector.from_elements", values, mlir_type(kind.dtype, len(values))), None, kind)

    @property
    def numel(self) -> int:
        """How many elements."""
        return _count(self.shape)

    def __len__(self) -> int:
        return self.numel

    def ir_value(self) -> Any:
        """The MLIR value."""
        return self.value

    def __repr__(self) -> str:
        return f"Vector({self.dtype.dtype} x {self.shape if len(self.shape) > 1 else self.numel})"

    def __getitem__(self, index: Any) -> Any:
        """An element, or a slice as a vector. Negative indices count from the end.

        Raises IndexError out of range, and `NotSupportedError` for an index known only on the device.
        """
        if isinstance(index, slice):
            return self._part(range(*index.indices(self.numel)))
        if isinstance(index, Numeric) and not index.is_static:
            raise NotSupportedError(
                f"indexing {name_of(self, 'a vector')} by a value known only on the device",
                hint="loop over its elements with fx.range_constexpr",
            )
        try:
            i = operator.index(index)
        except TypeError:
            raise TraceError(f"[{index!r}] of {name_of(self, 'a vector')}", hint="index it by an integer") from None
        if not -self.numel <= i < self.numel:
            raise IndexError(f"index {i} of {name_of(self, 'a vector')}, which has {self.numel} elements")
        return self.dtype(op("vector.extract", [self.value], mlir_type(self.dtype.dtype), _static([i % self.numel])))

    def _part(self, wanted: range) -> Vector:
        if not wanted:
            raise TraceError(
                f"an empty slice of {name_of(self, 'a vector')}", hint=f"it has elements 0 to {self.numel - 1}"
            )
        if wanted.step != 1:
            return Vector.from_elements([self[i] for i in wanted], self.dtype)
        from mlir import ir

        i64 = ir.IntegerType.get_signless(64)
        span = {
            name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, v)])
            for name, v in (("offsets", wanted.start), ("sizes", len(wanted)), ("strides", 1))
        }
        kind = mlir_type(self.dtype.dtype, len(wanted))
        return Vector(op("vector.extract_strided_slice", [self.value], kind, span), None, self.dtype)

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.numel))

    def to(self, dtype: Any) -> Vector:
        """Each element converted to another format."""
        kind = numeric_class(dtype)
        value = convert(self.value, self.dtype.dtype, kind.dtype, self.numel)
        return Vector(value, self.shape, kind)

    def bitcast(self, dtype: Any) -> Vector:
        """The same bits as elements of another format; the number of elements follows from the widths."""
        kind = numeric_class(dtype)
        bits = self.numel * self.dtype.dtype.bits
        if bits % kind.dtype.bits:
            raise TraceError(
                f"{bits} bits ({self!r}) are no whole number of {kind.dtype} elements",
                hint="bitcast to a format whose width divides them",
            )
        lanes = _count(bits // kind.dtype.bits)
        if kind.dtype.mlir == self.dtype.dtype.mlir:
            return Vector(self.value, self.shape, kind)
        shape = self.shape if lanes == self.numel else None
        return Vector(op("vector.bitcast", [self.value], mlir_type(kind.dtype, lanes)), shape, kind)

    def __abs__(self) -> Vector:
        return Vector(arithmetic.absolute(self.value, self.dtype.dtype, self.numel), self.shape, self.dtype)

    def __neg__(self) -> Vector:
        if self.dtype.dtype.kind == BOOL:
            return Vector.combine("-", 0, self)
        return Vector(arithmetic.negate(self.value, self.dtype.dtype, self.numel), self.shape, self.dtype)

    def select(self, if_true: Any, if_false: Any) -> Vector:
        """Element by element: `if_true` where this vector of Booleans holds, else `if_false`."""
        return Vector.choose(self, if_true, if_false)

    __hash__ = object.__hash__

    def __format__(self, spec: str) -> str:
        if spec:
            raise TraceError(
                f"{name_of(self, 'a vector')} is only known on the device, and a format string needs it now",
                hint="write it into a tensor, and print that after the launch",
            )
        return str(self)

    def __bool__(self) -> bool:
        raise TraceError(
            f"{name_of(self, 'a vector')} is only known on the device, and Python needs it now (as a condition)",
            hint="use mask.select(a, b)",
        )

    def __getattr__(self, name: str) -> Any:
        if name in LATER:
            raise NotSupportedError(
                f"Vector.{name} is part of the language, but this version of flylab does not have it yet",
                hint="index the elements, or use operators",
            )
        raise AttributeError(f"Vector has no attribute {name!r}")

    @staticmethod
    def _together(a: Any, b: Any) -> tuple[Vector, Vector]:
        """Two operands (at least one a Vector) as vectors of one shape and format."""
        model = a if isinstance(a, Vector) else b
        pair = [x if isinstance(x, Vector) else as_numeric(x, model.dtype.dtype) for x in (a, b)]
        kinds = [x.dtype.dtype if isinstance(x, Vector) else x.dtype for x in pair]
        common = CLASSES[promote(kinds[0], kinds[1]).name]
        x, y = (v.to(common) if isinstance(v, Vector) else Vector.filled(model.shape, v, common) for v in pair)
        if x.shape != y.shape:
            raise TraceError(
                f"{name_of(a, 'the left vector')} has shape {x.shape} and {name_of(b, 'the right one')} {y.shape}",
                hint="operands must have one shape; Vector(v, shape) renames the shape of the same data",
            )
        return x, y

    @staticmethod
    def combine(symbol: str, a: Any, b: Any) -> Vector:
        """`a symbol b`, element by element; Booleans count as Int32 but in `&`, `|` and `^`."""
        x, y = Vector._together(a, b)
        if x.dtype.dtype.kind == BOOL and symbol not in "&|^":
            x, y = x.to(CLASSES["Int32"]), y.to(CLASSES["Int32"])
        dtype = x.dtype.dtype
        right = None
        if not isinstance(b, Vector) and as_numeric(b).is_static:
            folding.check_right(symbol, as_numeric(b).value, dtype)
            right = None if dtype.is_float else interval(as_numeric(b))
        return Vector(arithmetic.binary(symbol, x.value, y.value, dtype, x.numel, right), x.shape, x.dtype)

    @staticmethod
    def compared(symbol: str, a: Any, b: Any) -> Vector:
        """The comparison, element by element, as a vector of Booleans."""
        x, y = Vector._together(a, b)
        value = arithmetic.compare(symbol, x.value, y.value, x.dtype.dtype, x.numel)
        return Vector(value, x.shape, CLASSES["Boolean"])

    @staticmethod
    def choose(condition: Any, if_true: Any, if_false: Any) -> Vector:
        """`if_true` where `condition` (a Boolean or a vector of them) holds, else `if_false`."""
        if not isinstance(if_true, Vector) and not isinstance(if_false, Vector):
            first, if_false, _ = unify(if_true, if_false)
            if_true = Vector.filled(condition.shape, first, type(first))
        x, y = Vector._together(if_true, if_false)
        mask = condition if isinstance(condition, Vector) else as_numeric(condition)
        kind = mask.dtype.dtype if isinstance(mask, Vector) else mask.dtype
        if kind.kind != BOOL or (isinstance(mask, Vector) and mask.shape != x.shape):
            raise TraceError(
                f"select by {mask!r} between {x!r} and {y!r}",
                hint="the condition must be a Boolean, or a vector of them of the same shape",
            )
        return Vector(arithmetic.select(mask.ir_value(), x.value, y.value, x.dtype.dtype, x.numel), x.shape, x.dtype)


def _static(positions: Sequence[int]) -> dict[str, Any]:
    from mlir import ir

    return {"static_position": ir.DenseI64ArrayAttr.get(list(positions))}


def _count(shape: Any) -> int:
    """The elements of a vector of this shape. Raises `TraceError` for one that is no shape, or that no thread holds."""
    total = 1
    try:
        for extent in shape if isinstance(shape, tuple) else (shape,):
            total *= _count(extent) if isinstance(extent, tuple) else operator.index(extent)
    except TypeError:
        raise TraceError(f"a vector of shape {shape!r}", hint="give an integer, or a tuple of integers") from None
    if total < 1:
        raise TraceError(f"a vector of shape {shape}", hint="every extent must be at least 1")
    if total > MAX_VECTOR:
        raise TraceError(
            f"a vector of {total} elements in one thread, which has registers for fewer than {MAX_VECTOR}",
            hint="divide the work into tiles and slice one for each thread first",
        )
    return total


def _shape(shape: Any, lanes: int) -> tuple[Any, ...]:
    logical = (lanes,) if shape is None else shape if isinstance(shape, tuple) else (shape,)
    if _count(logical) != lanes:
        raise TraceError(
            f"shape {logical} has {_count(logical)} elements, the vector {lanes}",
            hint="the product of the shape must be the number of elements",
        )
    return logical


install(Vector, (Vector, Numeric, bool, int, float), Vector.combine, Vector.compared)
