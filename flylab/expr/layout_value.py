"""A layout of which a part is known only on the device: what `fx.make_layout((n, 64))` gives in a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flylab.dialect.types import Algebra, of_mlir
from flylab.errors import TraceError
from flylab.expr.emit import fly, mlir_type
from flylab.expr.numeric import CLASSES
from flylab.expr.operators import refuse
from flylab.expr.state import Owned, active
from flylab.layout import ComposedLayout, has_none
from flylab.layout.runtime_int import RuntimeInt
from flylab.layout.runtime_leaves import runtime_leaves


class LayoutValue(Owned):
    """A Layout or ComposedLayout with runtime leaves. Every function of the algebra takes it, as it takes a Layout.

    Its text shows what is known: `(?{div=8},64):(64,1)`.
    """

    __slots__ = ("form",)

    def __init__(self, value: Any):
        self._own(value)
        self.form: Algebra = of_mlir(value.type)
        """The type: its text, with `?` for the runtime leaves."""

    @classmethod
    def of(cls, form: Algebra, numbers: list[Any]) -> LayoutValue:
        """The layout of this type with these numbers as its runtime leaves."""
        return cls(fly("from_leaves", of_one_width(numbers), [form]))

    def numbers(self) -> list[Any]:
        """The runtime leaves, as numbers of the device."""
        return leaves_of(self.value, self.form.value())

    @property
    def is_composed(self) -> bool:
        """Whether it is a ComposedLayout."""
        return self.form.NAME == "composed_layout"

    @property
    def shape(self) -> Any:
        """The shape, its runtime extents as numbers of the device."""
        return _applied("get_shape", self)

    @property
    def stride(self) -> Any:
        """The stride, its runtime leaves as numbers of the device."""
        return _applied("get_stride", self)

    def __call__(self, *coord: Any) -> Any:
        """The index at a coordinate, as `fx.crd2idx` gives it."""
        return _applied("crd2idx", coord[0] if len(coord) == 1 else coord, self)

    def __getitem__(self, index: Any) -> Any:
        """The mode at an index, or of a coordinate tensor the element at a coordinate; with None in it, the slice."""
        if has_none(index):
            return _applied("slice", self, index)
        facts = self.form.value()
        return self(index) if isinstance(facts, ComposedLayout) and facts.holds_places else _applied("get", self, index)

    def __len__(self) -> int:
        return int(_applied("rank", self))

    def __iter__(self) -> Iterator[Any]:
        return iter([_applied("get", self, i) for i in range(len(self))])

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        raise TraceError(f"whether the layouts {self} and {other} are equal is known only on the device",
                         hint="compare numbers of the device: fx.equal(a.shape, b.shape)")

    __hash__ = object.__hash__

    @property
    def overcover(self) -> Any:
        """Refused: the operation that gives it is `fx.overcover(layout, divisor)`."""
        raise TraceError(f"the overcover of {self} is not kept", hint="ask for it: fx.overcover(layout, divisor)")

    def __str__(self) -> str:
        return str(self.form)

    def __repr__(self) -> str:
        return f"LayoutValue({self.form})"

    def __bool__(self) -> bool:
        raise TraceError(f"the layout {self} as a condition", hint="compare its size or extents")

    def offsets(self) -> Any:
        """Refused: the indices are known only on the device."""
        raise TraceError(f"the indices of {self} are known only on the device",
                         hint="ask for one: layout(coord); or list a layout of known extents")


def _applied(name: str, *args: Any) -> Any:
    """The function of the algebra of this name, of arguments of which one is a LayoutValue."""
    from flylab import layout
    from flylab.expr.algebra import apply, known

    return apply(getattr(layout, name), known(args))


def leaves_of(value: Any, facts: Any) -> list[Any]:
    """The runtime leaves of a value of the algebra (an MLIR value), as numbers of the device."""
    return [number("get_leaf", [value], leaf, index=i) for i, leaf in enumerate(runtime_leaves(facts))]


def number(name: str, operands: list[Any], facts: RuntimeInt, **attributes: Any) -> Any:
    """The integer that a Fly operation gives, with what is known of it. Only the algebra takes an extent for 1 or more.
    """
    kind = CLASSES[f"Int{facts.bits}"]
    value = fly(name, operands, [mlir_type(kind.dtype)], **attributes)
    if active.function is not None:
        active.function.terms[value, kind.dtype] = facts.term
    return kind(value).with_facts((min(facts.low, 0), facts.high), facts.divisor)


def term_known(number: Any) -> Any:
    """Which number a runtime integer is, as a Term, or None. One MLIR value read as signed and as unsigned is two."""
    return active.function.terms.get((number.value, number.dtype)) if active.function else None


def of_one_width(numbers: list[Any]) -> list[Any]:
    """Integers as MLIR values of one type, which MLIR wants of the leaves of a tuple: i32, or i64 if one of them is.

    The type of the tuple keeps the width of each.
    """
    wide = any([given.dtype.bits > 32 for given in numbers])
    target = CLASSES["Int64" if wide else "Int32"]
    return [(given if given.dtype.bits == target.dtype.bits else target(given)).ir_value() for given in numbers]


refuse(LayoutValue, "compute with its size, its extents or an index: fx.size(layout), layout.shape, layout(coord)")
