"""Swizzles and composed layouts: index maps that exclusive-or some bits of an index into others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flylab.errors import LayoutError
from flylab.layout.basis import add_coordinates
from flylab.layout.int_tuple import IntTuple, as_int
from flylab.layout.layout import Layout

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True, slots=True)
class Swizzle:
    """S<bits, base, shift>: `bits` bits at position base + shift are exclusive-ored into the bits at `base`.

    A negative shift takes the lower bits into the higher. Raises LayoutError for negative bits or base and for bit
    fields that overlap (|shift| < bits).

    >>> swizzle = Swizzle(3, 3, 3)
    >>> str(swizzle), swizzle(197)
    ('S<3,3,3>', 221)
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, as_int(getattr(self, name), f"{name} of a swizzle"))
        if self.bits < 0 or self.base < 0:
            raise LayoutError(f"{self} has a negative number of bits or a negative base",
                              hint="bits and base are 0 or more")
        if abs(self.shift) < self.bits:
            raise LayoutError(f"{self}: the {self.bits} bits read and the {self.bits} bits changed overlap",
                              hint=f"give a shift of at least {self.bits}")

    @classmethod
    def get(cls, bits: int, base: int, shift: int) -> Swizzle:
        """The same as Swizzle(bits, base, shift).

        >>> Swizzle.get(2, 3, 3)
        Swizzle(bits=2, base=3, shift=3)
        """
        return cls(bits, base, shift)

    @property
    def mask(self) -> int:
        """The bits that are read, as a mask."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    def __call__(self, index: Any) -> Any:
        """The index with its bits exclusive-ored; ints, numpy arrays and runtime values with `&`, `^`, `<<`, `>>`."""
        if not self.bits:
            return index
        picked = index & self.mask
        return index ^ (picked >> self.shift if self.shift >= 0 else picked << -self.shift)

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True, slots=True)
class ComposedLayout:
    """outer(offset + inner(coord)), where outer is a Swizzle or a Layout, and inner a Layout.

    >>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)))
    >>> str(tile), tile((3, 5))
    ('S<3,3,3> o 0 o (64,64):(64,1)', 221)
    """

    outer: Any
    offset: Any
    inner: Layout

    def __post_init__(self) -> None:
        if not isinstance(self.outer, (Swizzle, Layout, ComposedLayout)):
            raise LayoutError(f"the outer part {self.outer!r} is neither a Swizzle nor a Layout",
                              hint="write ComposedLayout(outer, offset, inner)")
        if not isinstance(self.inner, Layout):
            raise LayoutError(f"the inner part {self.inner!r} is not a Layout",
                              hint="write ComposedLayout(outer, offset, inner)")

    @property
    def shape(self) -> IntTuple:
        """The shape of the coordinates, which is the inner layout's."""
        return self.inner.shape

    def __call__(self, *coord: Any) -> Any:
        """The index at a coordinate."""
        return self.outer(add_coordinates(self.offset, self.inner(*coord)))

    def __getitem__(self, index: int) -> ComposedLayout:
        return ComposedLayout(self.outer, self.offset, self.inner[index])

    def __len__(self) -> int:
        return len(self.inner)

    def offsets(self) -> numpy.ndarray:
        """All indices in colexicographic order of the coordinates, as int64.

        >>> ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4, 1)).offsets().tolist()
        [0, 1, 3, 2]
        """
        return map_indices(self.outer, self.inner.offsets() + self.offset)

    def __str__(self) -> str:
        return f"{self.outer} o {self.offset} o {self.inner}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from flylab.viz.layout_view import bundle

        return bundle(self, include, exclude)


def map_indices(layout: Any, indices: numpy.ndarray) -> numpy.ndarray:
    """`layout` (a Swizzle, Layout or ComposedLayout) at each integer coordinate of an array.

    >>> import numpy as np
    >>> map_indices(Layout((2, 2), (1, 8)), np.arange(4)).tolist()
    [0, 1, 8, 9]
    """
    import numpy as np

    if isinstance(layout, Swizzle):
        return layout(indices)  # type: ignore[no-any-return]
    if isinstance(layout, ComposedLayout):
        return map_indices(layout.outer, map_indices(layout.inner, indices) + layout.offset)
    total = np.zeros_like(indices)
    modes = layout.modes()
    for extent, stride in modes[:-1]:
        total += indices % extent * stride
        indices = indices // extent
    return total + indices * modes[-1][1] if modes else total


def make_composed_layout(outer: Any, *rest: Any) -> ComposedLayout:
    """outer(offset + inner(coord)), from (outer, inner) or (outer, offset, inner).

    >>> str(make_composed_layout(Swizzle(2, 3, 3), 16, Layout((64, 64), (64, 1))))
    'S<2,3,3> o 16 o (64,64):(64,1)'
    """
    if len(rest) == 1:
        return ComposedLayout(outer, 0, rest[0])
    if len(rest) == 2:
        return ComposedLayout(outer, as_int(rest[0], "offset"), rest[1])
    raise LayoutError(f"make_composed_layout takes two or three parts, not {1 + len(rest)}",
                      hint="write make_composed_layout(outer, offset, inner)")
