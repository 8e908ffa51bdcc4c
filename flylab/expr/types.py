"""`fx.T`: MLIR's types by name, for builders of MLIR and for functions that take a type."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import DTYPES
from flylab.errors import TraceError
from flylab.expr.emit import mlir_type, require_trace
from flylab.expr.numeric import CLASSES, numeric_class
from flylab.expr.planned import unknown

NAMES = {row.mlir: row for row in DTYPES.values() if row.name.startswith(("Int", "Float", "BFloat", "Boolean"))}
"""MLIR's number types by their text; its integers have no sign."""


class Types:
    """`T.i32`, `T.f32`, `T.f8E4M3FN` and their kin are MLIR types, `T.vec(4, T.f32)` is `vector<4xf32>`.

    Every function of the language that takes a number format takes such a type too (an integer is signed then).
    Raises `TraceError` outside of a kernel or launcher, where MLIR has no types.
    """

    def __getattr__(self, name: str) -> Any:
        row = NAMES.get(name)
        if row is None:
            if name.startswith("__"):
                raise AttributeError(name)
            raise unknown("T", name, NAMES)
        require_trace(f"T.{name}")
        return mlir_type(row)

    @property
    def index(self) -> Any:
        """MLIR's `index`, an integer of 64 bits; no number format of the language."""
        from mlir import ir

        require_trace("T.index")
        return ir.IndexType.get()

    def vec(self, lanes: int, element: Any) -> Any:
        """The type of a vector of `lanes` elements of a type or number format: `T.vec(4, T.f32)`."""
        if not isinstance(lanes, int) or lanes < 1:
            raise TraceError(f"T.vec({lanes!r}, ...)", hint="the count is an integer of at least 1: T.vec(4, T.f32)")
        require_trace("T.vec")
        return mlir_type(numeric_class(element).dtype, lanes)

    def __dir__(self) -> list[str]:
        return sorted([*NAMES, "index", "vec"])

    def __repr__(self) -> str:
        return "T"


T = Types()


def of_type(kind: Any) -> tuple[Any, int]:
    """The number class of a type or format, and how many elements a vector type has (0 for a scalar).

    Raises `TraceError` for what is neither.
    """
    text = str(kind)
    if text.startswith("vector<") and not isinstance(kind, type):
        lanes, element = text.removeprefix("vector<").removesuffix(">").split("x", 1)
        for cls in CLASSES.values():
            if cls.dtype.mlir == element and lanes.isdigit():
                return cls, int(lanes)
        raise TraceError(f"{text} is no vector of numbers of one dimension", hint="give T.vec(4, T.f32)")
    return numeric_class(kind), 0
