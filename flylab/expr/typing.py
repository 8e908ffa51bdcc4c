"""The types of the language in one place, beside the numbers: of parameters, of values and of MLIR."""

from __future__ import annotations

from typing import Any

from flylab.atoms import CopyAtom, MmaAtom
from flylab.expr.aliases import ALIASES, VectorAlias, empty_like, full, full_like, ones_like, zeros_like
from flylab.expr.gpu import Tuple3D
from flylab.expr.planned import missing
from flylab.expr.raw import as_dsl_value, as_ir_value
from flylab.expr.reductions import ReductionOp
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.tiled import TiledCopy, TiledMma
from flylab.expr.types import T, Types
from flylab.expr.vector import Vector
from flylab.layout import Basis, ComposedLayout, E, Layout, Swizzle


class Constexpr:
    """A compile-time constant: a parameter annotated `fx.Constexpr[int]` is a plain Python value in the kernel.

    Each value gives a kernel of its own.
    """

    def __init__(self, kind: Any = None):
        self.kind = kind

    def __class_getitem__(cls, kind: Any) -> Constexpr:
        return cls(kind)

    def __repr__(self) -> str:
        return f"Constexpr[{getattr(self.kind, '__name__', self.kind)}]" if self.kind is not None else "Constexpr"


class Stream:
    """A stream of the device to launch on: `fx.Stream(None)` is the default one.

    `value` is a stream handle of HIP, an object with one (`torch.cuda.Stream`), or None. The software device runs
    every launch at once and has no streams.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any = None):
        self.value = value

    def __repr__(self) -> str:
        return f"Stream({self.value!r})"


globals().update(ALIASES)
__all__ = [
    "Basis", "ComposedLayout", "Constexpr", "CopyAtom", "E", "Layout", "MmaAtom", "Pointer", "ReductionOp", "Stream",
    "Swizzle", "T", "Tensor", "TiledCopy", "TiledMma", "Tuple3D", "Types", "Vector", "VectorAlias", "as_dsl_value",
    "as_ir_value", "empty_like", "full", "full_like", "ones_like", "zeros_like", *ALIASES,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing("fx.typing", name, globals())
