"""The types of the Fly dialect as Python values, and one table between the two.

A type prints as `!fly.memref<"f32, global, (8,16):(1,8), align<16>">`. The parameters of a dynamic type cannot be read
from Python, so each type met is remembered with the Python value it was made from; one that was only ever read from
text is parsed from that text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from flylab.dtypes import DTYPES, UINT, DType
from flylab.errors import CompileError
from flylab.layout import Layout

SPACES = ("global", "register", "buffer")
"""Memory spaces: global memory, registers, and global memory behind a buffer descriptor."""


def dtype_text(dtype: DType) -> str:
    """The spelling of a number format in a Fly type: MLIR's, with `ui` for unsigned integers."""
    return "u" + dtype.mlir if dtype.kind == UINT else dtype.mlir


_DTYPE_OF_TEXT = {dtype_text(d): d for d in DTYPES.values()}


def _align_text(align: int) -> str:
    return f", align<{align}>" if align else ""


@dataclass(frozen=True)
class Ptr:
    """A typed pointer: element format, memory space, known alignment in bytes (0 means that of the element)."""

    dtype: DType
    space: str
    align: int = 0

    NAME = "ptr"

    def __str__(self) -> str:
        return f"{dtype_text(self.dtype)}, {self.space}{_align_text(self.align)}"


@dataclass(frozen=True)
class MemRef:
    """A view: a typed pointer and a static layout."""

    dtype: DType
    space: str
    layout: Layout
    align: int = 0

    NAME = "memref"

    def __str__(self) -> str:
        return f"{dtype_text(self.dtype)}, {self.space}, {self.layout}{_align_text(self.align)}"

    @property
    def pointer(self) -> Ptr:
        """The type of the view's pointer."""
        return Ptr(self.dtype, self.space, self.align)

    def with_layout(self, layout: Layout, align: int = 0) -> MemRef:
        """The same memory seen through another layout."""
        return MemRef(self.dtype, self.space, layout, align)


TYPE_NAMES = (Ptr.NAME, MemRef.NAME)

_mlir_of: dict[Any, Any] = {}
_python_of: dict[Any, Any] = {}


def to_mlir(spec: Ptr | MemRef) -> Any:
    """The MLIR type of a Fly type (in the process-wide context)."""
    found = _mlir_of.get(spec)
    if found is None:
        from mlir import ir

        found = ir.Type.parse(f'!fly.{spec.NAME}<"{spec}">')
        _mlir_of[spec] = found
        _python_of[found] = spec
    return found


def of_mlir(mlir_type: Any) -> Any:
    """The Python value of a Fly type, or None for a type of another dialect."""
    found = _python_of.get(mlir_type)
    if found is None:
        text = str(mlir_type)
        if not text.startswith("!fly."):
            return None
        found = parse(text)
        _python_of[mlir_type] = found
    return found


def parse(text: str) -> Ptr | MemRef:
    """A Fly type from its text.

    >>> print(parse('!fly.ptr<"f32, global, align<16>">'))
    f32, global, align<16>

    Raises `CompileError` for text that is no type of this dialect.
    """
    match = re.fullmatch(r'!fly\.(ptr|memref)<"(\w+), (\w+)(?:, ([^a-z"]+?))?(?:, align<(\d+)>)?">', text)
    if (
        not match
        or match[2] not in _DTYPE_OF_TEXT
        or match[3] not in SPACES
        or (match[1] == "memref") != bool(match[4])
    ):
        raise CompileError(f"{text} is no type of the Fly dialect")
    dtype, space, align = _DTYPE_OF_TEXT[match[2]], match[3], int(match[5] or 0)
    if match[1] == "ptr":
        return Ptr(dtype, space, align)
    return MemRef(dtype, space, Layout.parse(match[4]), align)
