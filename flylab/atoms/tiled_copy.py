"""Tiled copies: a copy atom, repeated over the threads and values of a tile, and which part of a tensor a thread has.

The thread-value layout of a tiled copy maps (thread, value) to an element of its tile, in column-major order. A tensor
is divided into such tiles; a thread's part of it is (the atoms' values, the tiles along each mode). The rules follow
those of NVIDIA's CuTe (BSD): divide, compose with the thread-value layout, slice at the thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from flylab.atoms.copy import CopyAtom
from flylab.atoms.threads import Tile, check_tv, stays_inside, threads_of, tile_extents
from flylab.errors import LayoutError
from flylab.layout import (
    ComposedLayout,
    Layout,
    coalesce,
    composition,
    left_inverse,
    make_identity_layout,
    parse,
    right_inverse,
    size,
    tile_text,
    zipped_divide,
)
from flylab.layout.construct import as_tile, joined
from flylab.layout.int_tuple import leaves
from flylab.locks import cached_property


@dataclass(frozen=True)
class TiledCopy:
    """A copy atom for each thread and each of its values of a tile.

    >>> atom = CopyAtom.parse("copy_atom<fly.universal_copy<128>, f32>")
    >>> tiled = TiledCopy(atom, Layout(((16, 8), 4), ((32, 1), 8)), (8, 64))
    >>> print(tiled.num_threads, tiled.layout_src_tv_tiled)
    128 ((16,8),(4,1)):((32,1),(8,0))

    Raises `LayoutError` where the layout does not have (thread, value), does not hold each element of the tile once
    for the threads among which it is not repeated, or is not made of whole atoms.
    """

    atom: CopyAtom
    layout_tv_tiled: Layout
    """(thread, value) -> element of the tile."""
    tile_mn: Tile

    def __post_init__(self) -> None:
        object.__setattr__(self, "tile_mn", as_tile(self.tile_mn))
        check_tv("the thread-value layout", self.layout_tv_tiled, self.extents)
        for what, held, whole in (("threads", self.num_threads, self.atom.num_threads),
                                  ("values", self.num_values, size(self.atom.layout_ref_tv[1]))):
            if held % whole:
                raise LayoutError(
                    f"the thread-value layout {self.layout_tv_tiled} has {held} {what}, one atom ({self.atom}) {whole}",
                    hint=f"give it a multiple of {whole} {what}, or take a narrower atom",
                )
        self._check_atoms()

    def _check_atoms(self) -> None:
        """Refuse where an atom's threads or values do not stay inside of the modes of the tile."""
        try:
            sides = (self.layout_src_tv_tiled, self.layout_dst_tv_tiled)
            whole = all([stays_inside(tv, self.extents) for tv in sides])
        except LayoutError:
            whole = False
        if not whole:
            raise LayoutError(
                f"the values {self.layout_tv_tiled[1]} of a thread, taken {self.atom.num_values} at a time by "
                f"{self.atom}, cross the modes of the tile ({','.join(map(str, self.extents))})",
                hint="let an atom's values divide a mode of the value layout, or take a narrower atom",
            )

    @property
    def num_threads(self) -> int:
        """The threads that do it together."""
        return int(size(self.layout_tv_tiled[0]))

    @property
    def num_values(self) -> int:
        """The elements of a tile that each thread has."""
        return int(size(self.layout_tv_tiled[1]))

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The elements of a tile along each of its modes."""
        return tile_extents(self.tile_mn)

    @cached_property
    def layout_src_tv_tiled(self) -> Layout:
        """(thread, (atom's value, atom)) -> element of the tile, on the source side."""
        return self._tiled(self.atom.layout_src_tv)

    @cached_property
    def layout_dst_tv_tiled(self) -> Layout:
        """(thread, (atom's value, atom)) -> element of the tile, on the destination side."""
        if self.atom.layout_dst_tv == self.atom.layout_src_tv:
            return self.layout_src_tv_tiled
        return self._tiled(self.atom.layout_dst_tv)

    def _tiled(self, side: Layout) -> Layout:
        """The thread-value layout with its first threads and values, an atom's, as one side of the atom has them."""
        reference = self.atom.layout_ref_tv
        atoms = zipped_divide(self.layout_tv_tiled, tuple([size(mode) for mode in reference]))
        inside = atoms[0]
        if side != reference:
            inside = composition(inside, composition(right_inverse(reference), side))
        pairs = [joined(pair) for pair in zip(inside, atoms[1], strict=True)]
        return coalesce(joined(pairs), (1, (1, 1)))  # type: ignore[no-any-return]

    def threads_src(self, layout: Any) -> Any:
        """((thread, value), rest of each mode) of a source: the parts of all threads. See `threads_of`."""
        return threads_of(layout, self.tile_mn, self.layout_src_tv_tiled)

    def threads_dst(self, layout: Any) -> Any:
        """((thread, value), rest of each mode) of a destination: the parts of all threads. See `threads_of`."""
        return threads_of(layout, self.tile_mn, self.layout_dst_tv_tiled)

    def retile(self, layout: Any, held: TiledCopy | None = None) -> Any:
        """A thread's fragment (value, rest of each mode), made for other atoms on the same tiles, as this copy has it.

        Its first mode holds the first values of the tile in this copy's order, the next values are in the other modes;
        or, where it is a part of the copy `held`, in the order of that.

        >>> atom = CopyAtom.parse("copy_atom<fly.universal_copy<128>, f16>")
        >>> tiled = TiledCopy(atom, Layout(((16, 4), (4, 2)), ((1, 128), (16, 64))), (16, 32))
        >>> print(tiled.retile(Layout((4, 3, 2), (1, 8, 4))))
        ((8,1),3,1):((1,0),8,0)

        Raises `LayoutError` for a fragment of other values or modes.
        """
        if isinstance(layout, ComposedLayout):
            return layout.with_inner(self.retile(layout.inner, held))
        blocks, values = self._fragment_order(layout)
        if held is not None and held.layout_tv_tiled != self.layout_tv_tiled:
            values = composition(values, self._values_of(held))
        parts = zipped_divide(layout, blocks)
        order = zipped_divide(values, size(self.atom.layout_ref_tv[1]))
        return joined([composition(parts[0], order), *list(parts[1])[1:]])

    def _values_of(self, held: TiledCopy) -> Layout:
        """This copy's values as numbers of the values of another one, which gives each thread the same elements."""
        (threads, values), (others, theirs) = self.layout_tv_tiled, held.layout_tv_tiled
        held_elements, elements = ({each(value) for value in range(size(each))} for each in (theirs, values))
        if held.tile_mn != self.tile_mn or coalesce(threads) != coalesce(others) or held_elements != elements:
            raise LayoutError(
                f"retile: the fragment is a part by the (thread, value) layout {held.layout_tv_tiled} of the tile "
                f"{tile_text(held.tile_mn)}, which gives a thread other elements than this copy's, "
                f"{self.layout_tv_tiled} of {tile_text(self.tile_mn)}",
                hint="let both have the same threads and the same block of values, or go through LDS",
            )
        return composition(left_inverse(theirs), values)  # type: ignore[no-any-return]

    def _fragment_order(self, layout: Layout) -> tuple[tuple[int, ...], Layout]:
        """How much of each mode of a fragment one tile is, and a tile's values as places in that."""
        if len(layout) < 1 + len(self.extents):
            raise LayoutError(
                f"retile: the fragment {layout} has {len(layout)} modes, the tile {tile_text(self.tile_mn)} needs "
                f"{1 + len(self.extents)}",
                hint="give all of a fragment, (value, rest of each mode of the tile), and slice what retile gives",
            )
        first = size(layout[0])
        if self.num_values % first:
            raise LayoutError(
                f"retile: the fragment {layout} has {first} values in its first mode, a tile of this copy "
                f"{self.num_values}",
                hint="retile a fragment of the tiled MMA that the copy was made of: make_tiled_copy_A(atom, tiled_mma)",
            )
        places = self._chunk_places(first)
        blocks = [1] * len(self.extents)
        shape, inside = [first], []
        for extent, mode in places:
            shape.append(extent)
            inside.append(blocks[mode])
            blocks[mode] *= extent
        below = Layout((first, *blocks)).stride[1:]
        stride = [1, *[below[mode] * step for (_, mode), step in zip(places, inside, strict=True)]]
        return (first, *blocks), coalesce(Layout(tuple(shape), tuple(stride)))

    def _chunk_places(self, first: int) -> list[tuple[int, int]]:
        """The modes of the chunks of `first` values, in the order of the values: (extent, mode of the tile) each.

        A fragment has the chunks along one mode of the tile in this order.
        """
        chunks = zipped_divide(self.layout_tv_tiled[1], first)[1]
        where = composition(make_identity_layout(self.extents), chunks)
        modes = zip(leaves(where.shape), leaves(where.stride), strict=True)
        return [(extent, step.path[0]) for extent, step in modes if extent != 1]

    def __repr__(self) -> str:
        return f"tiled_copy<{self.atom}, {self.layout_tv_tiled}, {tile_text(self.tile_mn)}>"

    @staticmethod
    @cache
    def parse(written: str) -> TiledCopy:
        """A tiled copy from its text, as it stands in the IR.

        >>> TiledCopy.parse("tiled_copy<copy_atom<fly.universal_copy<128>, f32>, (64,4):(4,1), [256]>").num_threads
        64
        """
        match = re.fullmatch(r"tiled_copy<(.*>), ([^<>]*), ([^<>:]*|\[[^<>]*\])>", written)
        if not match:
            raise LayoutError(f"{written!r} is no tiled copy")
        return TiledCopy(CopyAtom.parse(match[1]), parse(match[2]), parse(match[3]))
