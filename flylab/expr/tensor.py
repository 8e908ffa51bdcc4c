"""`fx.Tensor` and `fx.Pointer`: memory as a kernel sees it, with the layout known while tracing."""

from __future__ import annotations

from math import gcd
from typing import Any

from flylab.dialect.types import Algebra, MemRef, Ptr, of_mlir
from flylab.errors import TraceError
from flylab.expr.emit import fly, mlir_type
from flylab.expr.enums import ADDRESS_SPACES, AddressSpace, TargetAddressSpace
from flylab.expr.layout_value import LayoutValue
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, as_numeric, divisor_of, interval
from flylab.expr.operators import refuse
from flylab.expr.room import ONE, Room, check_room
from flylab.expr.span import LEAST, MOST, Span, extent
from flylab.expr.state import Owned, current_kernel, require_kernel
from flylab.expr.vector import MAX_VECTOR, Vector
from flylab.layout import ComposedLayout, Layout, has_none, size


class Pointer(Owned):
    """A typed pointer: `p + n` moves it by n elements, `p[n]` reads and writes the element there."""

    __slots__ = ("spec", "reach", "room")

    def __init__(self, value: Any, reach: Span | None = None, room: Room | None = None):
        self._own(value)
        self.spec: Ptr = of_mlir(value.type)
        self.reach = reach
        """Of a buffer: the elements from its descriptor's base that the pointer can have moved; else None."""
        self.room = room
        """What lies behind it at most, where that is known."""

    @property
    def dtype(self) -> type[Numeric]:
        """The class of an element."""
        return CLASSES[self.spec.dtype.name]

    @property
    def type(self) -> Ptr:
        """Its type: element format, memory space and alignment. `fx.PointerType.get` makes one from nothing."""
        return self.spec

    @property
    def address_space(self) -> AddressSpace | TargetAddressSpace:
        """The memory space that it points into."""
        return ADDRESS_SPACES[self.spec.space]

    def __add__(self, offset: Any) -> Pointer:
        if isinstance(offset, float) or (isinstance(offset, Numeric) and offset.dtype.is_float):
            raise TraceError(f"a pointer moved by {offset!r} elements", hint="give an integer")
        given = as_numeric(offset)
        if given.dtype.bits > 64:
            raise TraceError(f"a pointer moved by {given.dtype} elements", hint="convert it with .to(fx.Int64)")
        narrow = self.spec.space == "shared" or self.spec.space == "register" and given.dtype.bits <= 32
        reach, width = None, "Int32" if narrow else "Int64"
        if self.reach is not None:
            low, high = interval(given)
            by = Span(low, high, low >= LEAST and high <= MOST)
            reach = moved_reach(self.reach, by, Layout(1, 0), self.spec)
            # What is given as Int64 stays so: `make_view` marks with it what may leave the descriptor's 32 bits.
            width = "Int32" if reach.fits and given.dtype.bits <= 32 else "Int64"
        moved = CLASSES[width](given).ir_value()
        own = max(self.spec.dtype.bits // 8, 1)
        known = gcd(self.spec.known_align, own * divisor_of(given))
        spec = Ptr(self.spec.dtype, self.spec.space, known if known > own else 0)
        room = self.room and self.room.after(Span(*interval(given)))
        return Pointer(fly("add_offset", [self.value, moved], [spec]), reach, room)

    def _element(self, offset: Any) -> Tensor:
        moved = self + offset
        if moved.spec.space != "buffer":
            check_room(moved.room, ONE)
        return Tensor(fly("make_view", [moved.value], [MemRef(self.spec.dtype, self.spec.space, ONE)]))

    def __getitem__(self, offset: Any) -> Any:
        return self._element(offset).load()[0]

    def __setitem__(self, offset: Any, number: Any) -> None:
        self._element(offset).fill(number)

    def __repr__(self) -> str:
        return f"Pointer({self.spec})"


class Tensor(Owned):
    """Memory with a layout: the parameter type `fx.Tensor` of a kernel, and what views of it are.

    `t[i, j]` reads and writes one element, `load()` and `store(vector)` all of them, `fill(x)` sets all to one value.
    `t[None, j]` is the part at `j`, as `fx.slice(t, (None, j))`.
    """

    __slots__ = ("spec", "reach", "room", "part_of")

    def __init__(self, value: Any, reach: Span | None = None, room: Room | None = None):
        self._own(value)
        self.spec: MemRef = of_mlir(value.type)
        self.reach = reach
        self.room = room
        """Both as a pointer's."""
        self.part_of: Any = None
        """Whose part it is, a `Part`: of a part of one thread, a fragment made like it, and slices of these."""

    @property
    def dtype(self) -> type[Numeric]:
        """The class of an element."""
        return CLASSES[self.spec.dtype.name]

    @property
    def type(self) -> MemRef:
        """Its type: element format, memory space, layout and alignment."""
        return self.spec

    @property
    def layout(self) -> Any:
        """Coordinates to element offsets: a Layout or ComposedLayout; a LayoutValue where a part is known only on the
        device."""
        if not self.spec.is_runtime:
            return self.spec.layout
        return LayoutValue(fly("get_layout", [self.value], [Algebra.of(self.spec.layout)]))

    @property
    def shape(self) -> Any:
        """The (nested) extents; a rank-1 shape is a tuple of one, as numpy's."""
        return _as_tuple(self.layout.shape)

    @property
    def stride(self) -> Any:
        """The (nested) strides in elements, of a composed layout those of its inner layout."""
        layout = self.layout
        return _as_tuple(layout.inner.stride if isinstance(layout, ComposedLayout) else layout.stride)

    @property
    def space(self) -> str:
        """The memory space: global, register, buffer or shared."""
        return self.spec.space

    @property
    def address_space(self) -> AddressSpace | TargetAddressSpace:
        """The memory space that it lies in."""
        return ADDRESS_SPACES[self.spec.space]

    def __repr__(self) -> str:
        return f"Tensor({self.spec})"

    def load(self) -> Any:
        """All elements, in the order of the layout's coordinates, as a Vector of this shape."""
        count = _elements(self, "load")
        value = fly("memref_load_vec", [self.value], [mlir_type(self.spec.dtype, count)])
        return Vector(value, self.shape, self.dtype)

    def store(self, vector: Any) -> None:
        """Store a vector with as many elements, in the order of the layout's coordinates."""
        given = Vector(vector)
        count = _elements(self, "store")
        if given.numel != count:
            raise TraceError(
                f"{name_of(vector, 'the vector')} has {given.numel} elements, "
                f"{name_of(self, 'the tensor')} {self.spec.layout} holds {count}",
                hint="store a vector with as many elements as the tensor",
            )
        if given.dtype is not self.dtype:
            raise TraceError(
                f"{name_of(vector, 'the vector')} is {given.dtype.dtype}, "
                f"{name_of(self, 'the tensor')} {self.spec.dtype}",
                hint=f"convert it: v.to(fx.{self.spec.dtype})",
            )
        fly("memref_store_vec", [given.value, self.value])

    def fill(self, number: Any) -> None:
        """Set every element to one number."""
        self.store(Vector.filled(_elements(self, "fill"), number, self.dtype))

    def __bool__(self) -> bool:
        raise TraceError(f"{self!r} as a condition", hint="compare elements, or test `is None`")

    def __len__(self) -> int:
        raise TraceError(f"len of {self!r}", hint="t.shape[0] is its first extent, fx.size(t) the number of elements")

    def __iter__(self) -> Any:
        raise TraceError(f"a `for` over {self!r}", hint="for i in fx.range_constexpr(fx.size(t)): ... t[i]")

    def __getitem__(self, coord: Any) -> Any:
        if has_none(coord):
            from flylab.expr.views import slice_view

            return slice_view(self, coord)
        return self._element(coord).load()[0]

    def __setitem__(self, coord: Any, number: Any) -> None:
        self._element(coord).fill(number)

    def _element(self, coord: Any) -> Tensor:
        from flylab.expr.views import slice_view

        part: Tensor = slice_view(self, coord)
        if size(part.spec.layout) != 1:
            raise TraceError(
                f"[{coord}] of {self!r} is a tensor {part.spec.layout}, not one element",
                hint="give a coordinate for each mode; fx.slice(t, coord) gives a sub-tensor",
            )
        return part


def moved_reach(before: Span, offset: Span, layout: Any, spec: Ptr | MemRef, name: str = "the buffer") -> Span:
    """The reach of a buffer's pointer moved by `offset` elements; it fits where all of `layout` there has an offset of
    32 unsigned bits in bytes.

    Raises `TraceError` where no place that it can have moved to has one.
    """
    after = before + offset
    low, high = ((end * spec.dtype.bits) // 8 for end in (after.low, after.high))
    whole = extent(layout)
    inside = (after.low + whole.low) >= 0 and (after.high + whole.high + 1) * spec.dtype.bits <= 8 * 2**32
    if low >= 2**32 or high < 0:
        raise TraceError(
            f"{name} is read or written {low if low >= 2**32 else high} bytes from its start, and a buffer reaches "
            "0 to 4294967295",
            hint="slice the tensor first, and make the part a buffer tensor",
        )
    return Span(after.low, after.high, inside and offset.fits)


def elements(tensor: Tensor, use: str) -> int:
    """How many elements a tensor has. Raises `TraceError` where that is known only on the device."""
    count = size(tensor.spec.layout)
    if not isinstance(count, int):
        raise TraceError(
            f"{use} of {name_of(tensor, 'a tensor')} {tensor.spec.layout}: how many elements it has is known only on "
            "the device",
            hint="divide it into tiles of known extents, and slice one for each thread",
        )
    return count


def _elements(tensor: Tensor, use: str) -> int:
    if current_kernel() is None:
        require_kernel(f"{use} of {name_of(tensor, 'a tensor')}")
    count = elements(tensor, use)
    if count > MAX_VECTOR:
        raise TraceError(
            f"{use} of a tensor {tensor.spec.layout}: {count} elements in one thread",
            hint="divide it into tiles and slice one for each thread first",
        )
    return count


refuse(Tensor, "load it first: t.load() is a vector, t[i] one element")
refuse(Pointer, "a pointer moves by p + n, backwards by p + (-n)", but=("__add__",))


def _as_tuple(tree: Any) -> Any:
    return tree if isinstance(tree, tuple) else (tree,)
