"""A pointer with a swizzle: `fx.apply_swizzle`."""

from __future__ import annotations

from typing import Any

from flylab.errors import TraceError
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric
from flylab.expr.promotion import plain
from flylab.expr.tensor import Pointer
from flylab.layout import ComposedLayout, Layout, Swizzle, recast_layout


class SwizzledPointer:
    """A pointer whose accesses go to the swizzled address: `p + n` moves it by n elements, `p[n]` is the element there,
    `fx.make_view(p, layout)` the tensor of a swizzled layout."""

    __slots__ = ("pointer", "swizzle", "offset")

    def __init__(self, pointer: Pointer, swizzle: Swizzle, offset: Any = 0):
        self.pointer = pointer
        self.swizzle = swizzle
        """Of the number of an element from the pointer on."""
        self.offset = offset

    @property
    def dtype(self) -> type[Numeric]:
        """The class of an element."""
        return self.pointer.dtype

    def __add__(self, offset: Any) -> SwizzledPointer:
        return SwizzledPointer(self.pointer, self.swizzle, self.offset + plain(offset))

    def __getitem__(self, offset: Any) -> Any:
        return self._element(offset)[0]

    def __setitem__(self, offset: Any, number: Any) -> None:
        self._element(offset)[0] = number

    def _element(self, offset: Any) -> Any:
        from flylab.expr.views import make_view

        return make_view(self + offset, Layout(1, 0))

    def __repr__(self) -> str:
        return f"SwizzledPointer({self.pointer.spec}, {self.swizzle} o {self.offset})"


def apply_swizzle(ptr: Pointer, swizzle: Swizzle) -> SwizzledPointer:
    """The pointer with a swizzle of its addresses, in bytes: `fx.apply_swizzle(lds.ptr, fx.Swizzle(3, 4, 3))`.

    What it points to must be aligned so that no bit that the swizzle reads or changes is set in its address: to 1024
    bytes for S<3,4,3>. Raises `TraceError` where that is not known, and for a swizzle that parts the bytes of an
    element.
    """
    if not isinstance(ptr, Pointer) or not isinstance(swizzle, Swizzle):
        raise TraceError(f"apply_swizzle({type(ptr).__name__}, {type(swizzle).__name__})",
                         hint="give a pointer and a swizzle: fx.apply_swizzle(lds.ptr, fx.Swizzle(3, 4, 3))")
    spec, name = ptr.spec, name_of(ptr, "the pointer")
    width = spec.dtype.bits // 8
    if not width or swizzle.bits and 1 << swizzle.base < width:
        raise TraceError(f"apply_swizzle: {swizzle} changes addresses in bytes, and would part those of one "
                         f"{spec.dtype} that {name} points to", hint=f"use a base of {width.bit_length() - 1} or more")
    if spec.known_align % swizzle.reach:
        raise TraceError(
            f"apply_swizzle: {name} ({spec}) is not known to be a multiple of {swizzle.reach} bytes, and {swizzle} "
            "reads or changes bits of an address below that",
            hint=f"allocate it aligned, fx.SharedAllocator({swizzle.reach}), or use a swizzle of the elements: "
            "fx.make_view(pointer, fx.make_composed_layout(swizzle, layout))",
        )
    in_elements = recast_layout(ComposedLayout(swizzle, 0, Layout(width, 1)), 8, spec.dtype.bits).outer
    return SwizzledPointer(ptr, in_elements)
