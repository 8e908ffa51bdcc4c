"""Swizzles and composed layouts: index maps that exclusive-or some bits of an index into others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flylab.errors import LayoutError
from flylab.layout.arithmetic import has_none
from flylab.layout.basis import add_coordinates
from flylab.layout.int_tuple import IntTuple, as_int, as_profile, leaves, map_leaves, product, shown, text
from flylab.layout.layout import Layout, has_basis
from flylab.layout.runtime import BITWISE, index_leaf, is_array
from flylab.layout.runtime_int import RuntimeInt

if TYPE_CHECKING:
    import numpy


_BITS = 64  # of an index; what a swizzle reads and changes lies in them


@dataclass(frozen=True, slots=True, init=False)
class Swizzle:
    """S<bits, base, shift>: `bits` bits at position base + shift are exclusive-ored into the bits at `base`.

    A negative shift takes the lower bits into the higher. Raises LayoutError for negative bits or base, for bit
    fields that overlap (|shift| < bits), and for bits beyond the 64 of an index.

    >>> swizzle = Swizzle(3, 3, 3)
    >>> str(swizzle), swizzle(197)
    ('S<3,3,3>', 221)
    """

    bits: int
    base: int
    shift: int

    def __new__(cls, bits: int, base: int, shift: int) -> Swizzle:
        self = object.__new__(cls)
        for name, value in (("bits", bits), ("base", base), ("shift", shift)):
            object.__setattr__(self, name, as_int(value, f"{name} of a swizzle"))
        self._check()
        return self

    def __reduce__(self) -> Any:
        return Swizzle, (self.bits, self.base, self.shift)

    def _check(self) -> None:
        if self.bits < 0 or self.base < 0:
            raise LayoutError(f"{self} has a negative number of bits or a negative base",
                              hint="bits and base are 0 or more")
        if abs(self.shift) < self.bits:
            raise LayoutError(f"{self}: the {self.bits} bits read and the {self.bits} bits changed overlap",
                              hint=f"give a shift of at least {self.bits}")
        if self.base + self.bits + abs(self.shift) > _BITS:
            raise LayoutError(f"{self} reaches past bit {_BITS} of an index", hint="give a smaller base or shift")

    @classmethod
    def get(cls, bits: int, base: int, shift: int) -> Swizzle:
        """The same as Swizzle(bits, base, shift).

        >>> Swizzle.get(2, 3, 3)
        Swizzle(bits=2, base=3, shift=3)
        """
        return cls(bits, base, shift)

    @property
    def mask(self) -> int:
        """The bits that are read, as a mask.

        >>> hex(Swizzle(3, 3, 3).mask)
        '0x1c0'
        """
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    @property
    def reach(self) -> int:
        """All bits that are read or changed lie below this: a multiple of it passes through, swizzle(x + m) being
        swizzle(x) + m.

        >>> Swizzle(3, 3, 3).reach, Swizzle(3, 3, 3)(8 + 512) == Swizzle(3, 3, 3)(8) + 512
        (512, True)
        """
        return 1 << self.base + self.bits + abs(self.shift) if self.bits else 1

    def __call__(self, index: Any) -> Any:
        """The index with its bits exclusive-ored; ints, numpy arrays and runtime values with `&`, `^`, `<<`, `>>`."""
        if type(index) is not int:
            if isinstance(index, RuntimeInt):
                return index.swizzled(self)
            index = self._checked(index)
        if not self.bits:
            return index
        picked = index & self.mask
        return index ^ (picked >> self.shift if self.shift >= 0 else picked << -self.shift)

    def _checked(self, index: Any) -> Any:
        leaf = index_leaf(index, BITWISE)
        if leaf is None:
            raise LayoutError(f"{shown(index)} is not an index that {self} could change", hint="give an integer")
        if is_array(leaf):
            from flylab.layout.arrays import dtype_for, furthest

            most = 2 * max(furthest(leaf), 1 << self.base + self.bits + abs(self.shift))
            return leaf.astype(dtype_for(most), copy=False)
        return leaf

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True, slots=True, init=False)
class ComposedLayout:
    """outer(offset + inner(coord)), where outer is a Swizzle, a Layout or None, and inner a Layout.

    Without an outer part (None) it is offset + inner(coord): a coordinate tensor where the inner layout gives
    coordinates (see `make_view`). The offset is an int, a coordinate or a runtime value; modes of a coordinate that it
    lacks are 0. An inner layout that gives coordinates takes an outer layout of such coordinates; LayoutError for a
    swizzle, which has no coordinates.

    >>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)))
    >>> str(tile), tile((3, 5))
    ('S<3,3,3> o 0 o (64,64):(64,1)', 221)
    """

    outer: Any
    offset: Any
    inner: Layout

    def __new__(cls, outer: Any, offset: Any, inner: Layout) -> ComposedLayout:
        self = object.__new__(cls)
        offset = as_profile(offset, "offset", index_leaf)
        for name, value in (("outer", outer), ("offset", offset), ("inner", inner)):
            object.__setattr__(self, name, value)
        self._check()
        return self

    def __reduce__(self) -> Any:
        return ComposedLayout, (self.outer, self.offset, self.inner)

    def _check(self) -> None:
        if self.outer is not None and not isinstance(self.outer, (Swizzle, Layout, ComposedLayout)):
            raise LayoutError(f"the outer part {self.outer!r} is neither a Swizzle nor a Layout",
                              hint="write ComposedLayout(outer, offset, inner)")
        if not isinstance(self.inner, Layout):
            raise LayoutError(f"the inner part {self.inner!r} is not a Layout",
                              hint="write ComposedLayout(outer, offset, inner)")
        if any([number is None or is_array(number) for number in leaves(self.offset)]):
            raise LayoutError(f"the offset {shown(self.offset)} is not one place", hint="give an int or a coordinate")
        if has_basis(self.inner.stride):
            # An offset with all modes of the coordinates: what keeps only some modes of the inner layout loses none.
            origin = self.inner(map_leaves(lambda _: 0, self.inner.shape))
            object.__setattr__(self, "offset", add_coordinates(self.offset, origin))
        elif isinstance(self.offset, tuple) and any([step != 0 for step in leaves(self.inner.stride)]):
            raise LayoutError(f"the offset {text(self.offset)} is a coordinate, and {self.inner} gives indices",
                              hint="give an int as offset")
        if self.outer is not None and isinstance(self.offset, tuple):
            self._check_coordinates()

    def _check_coordinates(self) -> None:
        """Refuses an outer part that does not take the coordinates it is given."""
        first = map_leaves(lambda number: number if type(number) is int else 0, self.offset)
        if isinstance(self.outer, Swizzle):
            raise LayoutError(f"{self.outer} changes bits of an index, and {self.inner} gives coordinates, such as "
                              f"{text(first)}", hint="put a layout between them: composition(layout, inner)")
        self.outer(first)

    @property
    def shape(self) -> IntTuple:
        """The shape of the coordinates, which is the inner layout's.

        >>> ComposedLayout(Swizzle(1, 0, 1), 0, Layout((4, 8))).shape
        (4, 8)
        """
        return self.inner.shape

    def __call__(self, *coord: Any) -> Any:
        """The index at a coordinate."""
        return self._at(self.inner(*coord))

    def _at(self, index: Any) -> Any:
        """What lies at an index or coordinate that the inner layout gives."""
        place = add_coordinates(self.offset, index)
        return place if self.outer is None else self.outer(place)

    def with_inner(self, inner: Layout) -> ComposedLayout:
        """The same outer part and offset, with another inner layout.

        >>> str(ComposedLayout(Swizzle(3, 3, 3), 8, Layout((64, 64))).with_inner(Layout(64, 2)))
        'S<3,3,3> o 8 o 64:2'
        """
        return ComposedLayout(self.outer, self.offset, inner)

    @property
    def is_static(self) -> bool:
        """Whether all its offsets are known numbers, and none is a runtime value."""
        known = all([type(number) is int for number in leaves(self.offset)])
        return known and (not isinstance(self.outer, ComposedLayout) or self.outer.is_static)

    @property
    def is_coordinate_tensor(self) -> bool:
        """Whether it gives coordinates, and has no outer part: a tensor whose elements are their own places.

        >>> from flylab.layout import make_identity_layout
        >>> ComposedLayout(None, (0, 8), make_identity_layout((4, 8))).is_coordinate_tensor
        True
        """
        return self.outer is None and isinstance(self.offset, tuple)

    @property
    def holds_places(self) -> bool:
        """Whether an index takes an element: of a coordinate tensor, and of one mode without an outer part.

        >>> from flylab.layout import make_identity_layout, make_view
        >>> make_view(8, make_identity_layout(64)).holds_places
        True
        """
        return self.outer is None and (isinstance(self.offset, tuple) or not isinstance(self.inner.shape, tuple))

    def __getitem__(self, index: Any) -> Any:
        """The element at a coordinate of a coordinate tensor, as of the tensor beside it; with None in it, the slice.

        Of other composed layouts an int is the number of a mode, as of a `Layout`; `slice` takes None there too.

        >>> from flylab.layout import make_identity_layout, make_view
        >>> places = make_view((0, 8), make_identity_layout((4, 8)))
        >>> places[3, 5], str(places[None, 5]), places[None, 5][3], make_view(8, make_identity_layout(64))[3]
        ((3, 13), '(0,13) o 4:1E0', (3, 13), 11)
        """
        if has_none(index):
            from flylab.layout.coordinates import slice

            return slice(self, index)
        return self(index) if self.holds_places else self.with_inner(self.inner[index])

    def __iter__(self) -> Iterator[ComposedLayout]:
        return map(self.with_inner, self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def offsets(self) -> numpy.ndarray:
        """All indices or coordinates, in colexicographic order, as `Layout.offsets` gives them.

        >>> ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4, 1)).offsets().tolist()
        [0, 1, 3, 2]
        """
        from flylab.layout import arrays

        if not self.is_static:
            raise LayoutError(f"the offset of {self} is known only while its kernel runs",
                              hint="list the inner layout, or call this one with a coordinate")
        if has_basis(self.inner.stride):
            index = arrays.coordinates(self.inner)
        else:
            # Beside an offset that is a coordinate all strides are 0.
            index = 0 if isinstance(self.offset, tuple) else arrays.listed(self.inner)
        return arrays.stacked(self._at(index), product(self.shape))

    @property
    def front(self) -> str:
        """The text of what stands before the inner layout."""
        return text(self.offset) if self.outer is None else f"{self.outer} o {text(self.offset)}"

    def __str__(self) -> str:
        return f"{self.front} o {self.inner}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from flylab.viz.layout_view import bundle

        return bundle(self, include, exclude)


def make_composed_layout(outer: Any, *rest: Any) -> ComposedLayout:
    """outer(offset + inner(coord)), from (outer, inner) or (outer, offset, inner).

    Raises LayoutError for other parts, as ComposedLayout does.

    >>> str(make_composed_layout(Swizzle(2, 3, 3), 16, Layout((64, 64), (64, 1))))
    'S<2,3,3> o 16 o (64,64):(64,1)'
    """
    if len(rest) == 1:
        return ComposedLayout(outer, 0, rest[0])
    if len(rest) == 2:
        return ComposedLayout(outer, rest[0], rest[1])
    raise LayoutError(f"make_composed_layout takes two or three parts, not {1 + len(rest)}",
                      hint="write make_composed_layout(outer, offset, inner)")
