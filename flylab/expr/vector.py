"""`fx.Vector`: several numbers of one format in the registers of one thread, with Python operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import NotKnown, TraceError
from flylab.expr import arithmetic, folding, lanes, reductions
from flylab.expr.conversion import convert
from flylab.expr.emit import constant, constants, mlir_type, op
from flylab.expr.helpers import check_unpacked
from flylab.expr.location import name_of
from flylab.expr.numeric import (
    CLASSES,
    Numeric,
    as_numeric,
    class_of_mlir,
    interval,
    is_mlir_value,
    mixed,
    numeric_class,
    unify,
)
from flylab.expr.operators import install
from flylab.expr.planned import unknown
from flylab.expr.promotion import promote
from flylab.expr.state import Owned

MAX_VECTOR = 1024
"""The most elements that a vector, a fragment in registers or one copy has: more than a thread has registers for."""
# What is looked for on a vector and is elsewhere.
ELSEWHERE = {
    "load": "tensor.load() gives a tensor's elements as a vector",
    "store": "tensor.store(v) stores a vector",
    "sum": "v.reduce(fx.ReductionOp.ADD)",
    "max": "v.reduce(fx.ReductionOp.MAX), or fx.max(a, b) element by element",
    "min": "v.reduce(fx.ReductionOp.MIN), or fx.min(a, b) element by element",
}


class Vector(Owned):
    """A vector of `n` numbers of one format.

    `Vector(raw)` wraps an MLIR vector or another Vector; `shape` is its logical shape (its product is `n`) and `dtype`
    the class of its elements where the MLIR type alone does not say (unsigned integers). Operators work element by
    element, with another vector of the same shape or with a number. A vector is a value: `v.with_element(i, x)` is
    another one. Raises `TraceError` where shapes differ.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, value: Any, shape: Any = None, dtype: Any = None):
        if isinstance(value, Vector):
            shape = value.shape if shape is None else shape
            dtype = value.dtype if dtype is None else dtype
            value = value.value
        text = str(value.type) if is_mlir_value(value) else ""
        form = re.fullmatch(r"vector<(\d+)x([a-z]\w*)>", text)
        if form is None:
            what = f"an MLIR value of type {text}" if text else type(value).__name__
            raise TraceError(
                f"Vector({what}): not a vector of one dimension",
                hint="Vector.filled(n, x, dtype) or Vector.from_elements([...], dtype) make one",
            )
        found = class_of_mlir(form[2])
        self._own(value)
        self.dtype: type[Numeric] = found if dtype is None else numeric_class(dtype)
        if self.dtype.dtype.mlir != form[2]:
            raise TraceError(
                f"a vector of {form[2]} is not one of {self.dtype.dtype} ({self.dtype.dtype.mlir})",
                hint="use .bitcast(...) to read its bits, .to(...) to convert",
            )
        self.shape: tuple[Any, ...] = _shape(shape, int(form[1]))

    @classmethod
    def filled(cls, shape: Any, value: Any, dtype: Any = None) -> Vector:
        """A vector with `value` in each element: `Vector.filled(4, 0.0, fx.Float32)`.

        Raises `TraceError` without a number format.
        """
        kind = _format("filled(n, x", dtype)
        count = _count(shape)
        number = _number(value, kind)
        if number.is_static:
            return cls(constant(number.value, kind.dtype, count), shape, kind)
        return cls(op("vector.broadcast", [number.value], mlir_type(kind.dtype, count)), shape, kind)

    @classmethod
    def from_elements(cls, elements: Sequence[Any], dtype: Any = None) -> Vector:
        """A vector of the given numbers, converted to `dtype`. Raises `TraceError` without one."""
        kind = _format("from_elements([x, y]", dtype)
        if not isinstance(elements, Iterable):
            raise TraceError(f"Vector.from_elements({elements!r})", hint="give a list of numbers: [x, y]")
        given = list(elements)
        if not given:
            raise TraceError("Vector.from_elements([]): a vector has at least one element", hint="give a number")
        _count(len(given))
        numbers = [_number(x, kind) for x in given]
        if all(number.is_static for number in numbers):
            return cls(constants([number.value for number in numbers], kind.dtype), None, kind)
        values = [number.ir_value() for number in numbers]
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

        `v[i]` takes an integer, `v[i, j]` a coordinate of the shape (whose first mode counts fastest); both may be
        known only on the device. An index out of range raises `OutOfRange`, an IndexError, if it is known; one of the
        device then reads some element of this vector.
        """
        if isinstance(index, slice):
            return lanes.part(self, index)
        return lanes.read(self, index)

    def __setitem__(self, index: Any, number: Any) -> None:
        raise TraceError(
            f"{name_of(self, 'a vector')}[...] = ...: a vector is a value, its elements cannot be set",
            hint="make another one: v = v.with_element(i, x)",
        )

    def with_element(self, index: Any, number: Any) -> Vector:
        """A vector like this one, with `number` (converted) at an index or coordinate as `v[...]` takes them.

        One of the device that is out of range replaces some element.
        """
        return lanes.replaced(self, index, number)

    def shuffle(self, other: Any, mask: Sequence[int]) -> Vector:
        """The elements at the places that `mask` lists: those of this vector count from 0, those of `other` on from
        there.

        Both have one format, their counts may differ. Raises `OutOfRange` for a place that there is not.
        """
        return lanes.shuffled(self, Vector(other), mask)

    def reduce(self, by: Any, *, fastmath: Any = None) -> Any:
        """One number of the vector's format from all elements: `v.reduce(fx.ReductionOp.ADD)`.

        Elements are joined strictly from the left to the right: `((v[0] + v[1]) + v[2]) + v[3]`; with the fast-math
        flag `reassoc`, of the scope or given, in any order. `MAX` and `MIN` give NaN where an element is NaN, `MAXNUM`
        and `MINNUM` the largest and smallest of the others (NaN where there is none). Booleans count as Int32 but in
        `AND`, `OR` and `XOR`. Raises `TraceError` for bits of floats.
        """
        return reductions.reduced(self, by, fastmath)

    def any(self) -> Any:
        """Whether one element of a vector of Booleans holds."""
        return reductions.truth(self, reductions.ReductionOp.OR, "any")

    def all(self) -> Any:
        """Whether every element of a vector of Booleans holds."""
        return reductions.truth(self, reductions.ReductionOp.AND, "all")

    def __iter__(self) -> Any:
        check_unpacked(name_of(self, "a vector"), self.numel)
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
        count = _count(bits // kind.dtype.bits)
        if kind.dtype.mlir == self.dtype.dtype.mlir:
            return Vector(self.value, self.shape, kind)
        shape = self.shape if count == self.numel else None
        return Vector(op("vector.bitcast", [self.value], mlir_type(kind.dtype, count)), shape, kind)

    def __abs__(self) -> Vector:
        return Vector(arithmetic.absolute(self.value, self.dtype.dtype, self.numel), self.shape, self.dtype)

    def __neg__(self) -> Vector:
        if self.dtype.dtype.kind == BOOL:
            return Vector.combine("-", 0, self)
        return Vector(arithmetic.negate(self.value, self.dtype.dtype, self.numel), self.shape, self.dtype)

    def __pos__(self) -> Vector:
        return self

    def __invert__(self) -> Vector:
        kind = self.dtype
        if kind.dtype.is_float:
            raise arithmetic.refuse("~", kind.dtype)
        return Vector.combine("^", self, kind(True if kind.dtype.kind == BOOL else -1))

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

    def __int__(self) -> int:
        raise self._no_number("int", "fx.Int32")

    def __float__(self) -> float:
        raise self._no_number("float", "fx.Float32")

    def _no_number(self, function: str, cls: str) -> TraceError:
        return TraceError(
            f"Python's {function}() of {name_of(self, 'a vector')}, which has {self.numel} elements",
            hint=f"v.to({cls}) converts all of them, {cls}(v[i]) one",
        )

    def __bool__(self) -> bool:
        raise NotKnown(
            f"{name_of(self, 'a vector')} is only known on the device, and Python needs it now (as a condition)",
            hint="use mask.select(a, b)",
        )

    def __getattr__(self, name: str) -> Any:
        raise unknown("Vector", name, vars(type(self)), ELSEWHERE.get(name))

    @staticmethod
    def together(a: Any, b: Any) -> tuple[Vector, Vector]:
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
        x, y = Vector.together(a, b)
        if x.dtype.dtype.kind == BOOL and symbol not in "&|^":
            x, y = x.to(CLASSES["Int32"]), y.to(CLASSES["Int32"])
        dtype = x.dtype.dtype
        if dtype.is_float and not arithmetic.BINARY[symbol].float:
            raise arithmetic.refuse(symbol, dtype, mixed(symbol, a, b))
        right = None
        if not isinstance(b, Vector) and as_numeric(b).is_static:
            folding.check_right(symbol, as_numeric(b).value, dtype)
            right = None if dtype.is_float else interval(as_numeric(b))
        return Vector(arithmetic.binary(symbol, x.value, y.value, dtype, x.numel, right), x.shape, x.dtype)

    @staticmethod
    def compared(symbol: str, a: Any, b: Any) -> Vector:
        """The comparison, element by element, as a vector of Booleans."""
        x, y = Vector.together(a, b)
        value = arithmetic.compare(symbol, x.value, y.value, x.dtype.dtype, x.numel)
        return Vector(value, x.shape, CLASSES["Boolean"])

    @staticmethod
    def choose(condition: Any, if_true: Any, if_false: Any) -> Vector:
        """`if_true` where `condition` (a Boolean or a vector of them) holds, else `if_false`."""
        if not isinstance(if_true, Vector) and not isinstance(if_false, Vector):
            first, if_false, _ = unify(if_true, if_false)
            if_true = Vector.filled(condition.shape, first, type(first))
        x, y = Vector.together(if_true, if_false)
        mask = condition if isinstance(condition, Vector) else as_numeric(condition)
        kind = mask.dtype.dtype if isinstance(mask, Vector) else mask.dtype
        if kind.kind != BOOL or (isinstance(mask, Vector) and mask.shape != x.shape):
            raise TraceError(
                f"select by {mask!r} between {x!r} and {y!r}",
                hint="the condition must be a Boolean, or a vector of them of the same shape",
            )
        return Vector(arithmetic.select(mask.ir_value(), x.value, y.value, x.dtype.dtype, x.numel), x.shape, x.dtype)


def _format(call: str, dtype: Any) -> type[Numeric]:
    if dtype is None:
        raise TraceError(
            f"Vector.{call}) has no number format", hint=f"say which its elements have: fx.Vector.{call}, fx.Float32)"
        )
    return numeric_class(dtype)


def _number(value: Any, kind: type[Numeric]) -> Numeric:
    """A number converted to a format."""
    return kind(as_numeric(value) if is_mlir_value(value) else value)


def _count(shape: Any) -> int:
    """The elements of a vector of this shape. Raises `TraceError` for one that is no shape, or that no thread holds."""
    try:
        total = lanes.count(shape)
    except TypeError:
        raise TraceError(f"a vector of shape {shape!r}", hint="give an integer, or a tuple of integers") from None
    if total < 1:
        raise TraceError(f"a vector of shape {shape}", hint="every extent must be at least 1")
    if total > MAX_VECTOR:
        raise TraceError(
            f"a vector of {total} elements in one thread, which has registers for {MAX_VECTOR} at most",
            hint="divide the work into tiles and slice one for each thread first",
        )
    return total


def _shape(shape: Any, count: int) -> tuple[Any, ...]:
    logical = (count,) if shape is None else shape if isinstance(shape, tuple) else (shape,)
    if _count(logical) != count:
        raise TraceError(
            f"shape {logical} has {_count(logical)} elements, the vector {count}",
            hint="the product of the shape must be the number of elements",
        )
    return logical


install(Vector, (Vector, Numeric, bool, int, float), Vector.combine, Vector.compared)
