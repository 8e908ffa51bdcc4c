"""A layout of which a part is known only on the device: what `fx.make_layout((n, 64))` gives in a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flylab.dialect.types import Algebra, of_mlir
from flylab.errors import TraceError
from flylab.expr.operators import refuse
from flylab.expr.state import Owned


class LayoutValue(Owned):
    """A Layout or ComposedLayout with runtime leaves. Every function of the algebra takes it, as it takes a Layout.

    Its text shows what is known: `(?{div=8},64):(64,1)`.
    """

    __slots__ = ("form",)

    def __init__(self, value: Any):
        self._own(value)
        self.form: Algebra = of_mlir(value.type)
        """The type: its text, with `?` for the runtime leaves."""

    @property
    def shape(self) -> Any:
        """The shape, its runtime extents as numbers of the device."""
        return self._ask("get_shape")

    @property
    def stride(self) -> Any:
        """The stride, its runtime leaves as numbers of the device."""
        return self._ask("get_stride")

    def _ask(self, name: str, *args: Any) -> Any:
        from flylab import layout
        from flylab.expr.algebra import traced

        return traced(getattr(layout, name))(self, *args)

    def __call__(self, *coord: Any) -> Any:
        """The index at a coordinate, as `fx.crd2idx` gives it."""
        from flylab.expr.algebra import traced
        from flylab.layout import crd2idx

        return traced(crd2idx)(coord[0] if len(coord) == 1 else coord, self)

    def __getitem__(self, index: Any) -> Any:
        return self._ask("get", index)

    def __len__(self) -> int:
        return int(self._ask("rank"))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

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


refuse(LayoutValue, "compute with its size, its extents or an index: fx.size(layout), layout.shape, layout(coord)")
