"""The types of the Fly dialect as Python values, and one table between the two.

A type prints as `!fly.memref<"f32, global, (8,16):(1,8), align<16>">`. The parameters of a dynamic type cannot be read
from Python, so each type met is remembered with the Python value it was made from; one that was only ever read from
text is parsed from that text. Layouts and int tuples that hold runtime numbers are values with types of their own:
`!fly.layout<"(?,64):(64,1)">`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from flylab.dtypes import DTYPE_OF_TEXT, DType, dtype_text
from flylab.errors import CompileError
from flylab.layout import ComposedLayout, Layout, Swizzle, text, tile_text
from flylab.layout import parse as parse_layout
from flylab.layout.int_tuple import has_runtime
from flylab.layout.runtime_int import RuntimeInt
from flylab.layout.runtime_leaves import map_runtime, runtime_leaves
from flylab.locks import cached_property

SPACES = ("global", "register", "buffer", "shared")
"""Memory spaces: global memory, registers, global memory behind a buffer descriptor, and LDS."""
POINTERS = {"global": "!llvm.ptr<1>", "shared": "!llvm.ptr<3>"}
"""What a pointer into a memory space is in LLVM; AMDGPU's address spaces 1 and 3."""
DESCRIPTOR = "!llvm.ptr<8>"
"""A buffer descriptor."""
KERNARG = "!llvm.ptr<4>"
"""A pointer to the kernel's arguments; AMDGPU's address space for constants."""


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

    @property
    def known_align(self) -> int:
        """The alignment in bytes that its address is known to have."""
        return self.align or max(self.dtype.bits // 8, 1)


@dataclass(frozen=True)
class MemRef:
    """A view: a typed pointer and a layout. A ComposedLayout of a Swizzle changes the index, and leaves the pointer."""

    dtype: DType
    space: str
    layout: Layout | ComposedLayout
    align: int = 0

    NAME = "memref"

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """What tells a type: runtime leaves are equal to no other's, so such a layout counts by its text."""
        return self.dtype, self.space, str(self.layout) if self.is_runtime else self.layout, self.align

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, MemRef) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return f"{dtype_text(self.dtype)}, {self.space}, {self.layout}{_align_text(self.align)}"

    @property
    def pointer(self) -> Ptr:
        """The type of the view's pointer."""
        return Ptr(self.dtype, self.space, self.align)

    @cached_property
    def is_runtime(self) -> bool:
        """Whether an extent, a stride or the offset before a composed layout is known only on the device."""
        layout = self.layout
        if isinstance(layout, ComposedLayout):
            return bool(runtime_leaves(layout))
        return has_runtime((layout.shape, layout.stride))

    def facts(self) -> Any:
        """The layout, with RuntimeInts of its own for what is known only on the device."""
        return _anew(str(self.layout)) if self.is_runtime else self.layout

    def with_layout(self, layout: Layout | ComposedLayout, align: int = 0) -> MemRef:
        """The same memory seen through another layout."""
        return MemRef(self.dtype, self.space, layout, align)


@dataclass(frozen=True)
class Algebra:
    """A value of the layout algebra: the name of its type and its text, in which `?` are runtime leaves.

    >>> from flylab.layout import Layout
    >>> Algebra.of(Layout((4, 8), (1, 4)))
    Algebra(NAME='layout', spelling='(4,8):(1,4)')
    """

    NAME: str
    spelling: str

    def __str__(self) -> str:
        return self.spelling

    @classmethod
    def of(cls, value: Any) -> Algebra:
        """The type of an int tuple, tile, Swizzle, Layout or ComposedLayout."""
        if isinstance(value, tuple):
            name = "tile" if any(map(_holds_layout, value)) else INT_TUPLE
            return cls(name, (text if name == INT_TUPLE else tile_text)(value))
        return cls(_ALGEBRA.get(type(value), INT_TUPLE), text(value))

    @property
    def is_runtime(self) -> bool:
        """Whether some number in it is known only on the device."""
        return "?" in self.spelling

    def value(self) -> Any:
        """The value, with runtime leaves of its own."""
        return _anew(self.spelling) if self.is_runtime else _parsed(self.spelling)


_parsed = functools.lru_cache(4096)(parse_layout)


def _anew(spelling: str) -> Any:
    """The value of a text, with runtime leaves of its own: two of one text are two values. A text is read once."""
    return map_runtime(lambda leaf: RuntimeInt(leaf.low, leaf.high, leaf.divisor, leaf.bits, leaf.term),
                       _parsed(spelling))


def _holds_layout(value: Any) -> bool:
    return any(map(_holds_layout, value)) if isinstance(value, tuple) else isinstance(value, Layout)


INT_TUPLE = "int_tuple"
_ALGEBRA: dict[type, str] = {Layout: "layout", ComposedLayout: "composed_layout", Swizzle: "swizzle"}
TYPE_NAMES = (Ptr.NAME, MemRef.NAME, INT_TUPLE, "tile", *_ALGEBRA.values())

_mlir_of: dict[Any, Any] = {}
_python_of: dict[Any, Any] = {}


def to_mlir(spec: Ptr | MemRef | Algebra) -> Any:
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
        spelling = str(mlir_type)
        if not spelling.startswith("!fly."):
            return None
        found = parse(spelling)
        _python_of[mlir_type] = found
    return found


def parse(spelling: str) -> Ptr | MemRef | Algebra:
    """A Fly type from its text.

    >>> print(parse('!fly.ptr<"f32, global, align<16>">'))
    f32, global, align<16>

    Raises `CompileError` for text that is no type of this dialect.
    """
    match = re.fullmatch(r'!fly\.(\w+)<"([^"]*)">', spelling)
    name, inside = match.groups() if match else ("", "")
    if name not in (Ptr.NAME, MemRef.NAME):
        if name not in TYPE_NAMES:
            raise CompileError(f"{spelling} is no type of the Fly dialect")
        return Algebra(name, inside)
    fields = re.fullmatch(r"(\w+), (\w+)(?:, ((?!align<).+?))?(?:, align<(\d+)>)?", inside)
    if (
        not fields
        or fields[1] not in DTYPE_OF_TEXT
        or fields[2] not in SPACES
        or (name == MemRef.NAME) != bool(fields[3])
    ):
        raise CompileError(f"{spelling} is no type of the Fly dialect")
    dtype, space, align = DTYPE_OF_TEXT[fields[1]], fields[2], int(fields[4] or 0)
    if name == Ptr.NAME:
        return Ptr(dtype, space, align)
    layout = parse_layout(fields[3])
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise CompileError(f"{spelling} is no type of the Fly dialect")
    return MemRef(dtype, space, layout, align)
