"""The products: repeating a layout over a layout of its copies.

Each copy is put where the complement of the block has room for it: into its gaps first, then past its end. By a
tuple of layouts or extents a product is mode by mode.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.algebra import composition, of_modes, tiled_modes
from flylab.layout.complements import gaps_of
from flylab.layout.construct import as_layout, as_tile, joined, remade
from flylab.layout.layout import Layout, trusted
from flylab.layout.swizzle import ComposedLayout

_ONE = trusted(1, 0)


def _copies(block: Layout, tiler: Any) -> Layout:
    """Where the copies of the block begin, nested like the tiler."""
    if tiler is None:
        return _ONE
    if not isinstance(tiler, Layout):
        tiler = trusted(tiler, 0 if tiler == 1 else 1)
    gaps, span = gaps_of(block)
    # The block may be repeated past its end as often as the tiler asks for: a last mode is not bounded.
    try:
        return composition(of_modes([*gaps, (2, span)]), tiler)  # type: ignore[no-any-return]
    except LayoutError as error:
        room = "".join([f"for {extent} at stride {step}, then " for extent, step in gaps])
        raise type(error)(f"the product of {block} and {tiler} is no layout: the block has room {room}past its end; "
                          f"{error.message.partition(': ')[2] or error.message}",
                          hint="let the number of copies be a multiple of the room, or a block without gaps") from None


def _parts(block: Layout, tiler: Any) -> tuple[Layout, Layout]:
    if not isinstance(tiler, tuple):
        return block, _copies(block, tiler)
    parts = [_parts(mode, each) for mode, each in tiled_modes(block, tiler)]
    more = list(block)[len(tiler):]
    return joined([part[0] for part in parts] + more), joined([part[1] for part in parts])


def _logical(block: Layout, tiler: Any) -> Layout:
    if not isinstance(tiler, tuple):
        return block if tiler is None else joined(_parts(block, tiler))
    modes = [_logical(mode, each) for mode, each in tiled_modes(block, tiler)]
    return remade(block, modes + list(block)[len(tiler):])


def _with_inner(block: Any, tiler: Any, form: Any) -> Any:
    if isinstance(block, ComposedLayout):
        return block.with_inner(_with_inner(block.inner, tiler, form))
    return form(as_layout(block, "block"), as_tile(tiler))


def logical_product(block: Any, tiler: Any) -> Any:
    """(block, copies): the layout `block` repeated once for each coordinate of `tiler`.

    Raises LayoutError where the block is not injective, negative or empty, or the copies are no layout.

    >>> logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))
    Layout(((2, 2), (2, 3)), ((4, 1), (2, 8)))
    """
    return _with_inner(block, tiler, _logical)


def zipped_product(block: Any, tiler: Any) -> Any:
    """((block modes), (copies' modes)).

    Raises LayoutError as `logical_product` does.

    >>> zipped_product(Layout((2, 2), (1, 2)), Layout((3, 4), (1, 3)))
    Layout(((2, 2), (3, 4)), ((1, 2), (4, 12)))
    """
    return _with_inner(block, tiler, lambda each, tile: joined(_parts(each, tile)))


def tiled_product(block: Any, tiler: Any) -> Any:
    """((block modes), copies' mode, copies' mode, ...).

    Raises LayoutError as `logical_product` does.

    >>> tiled_product(Layout((2, 2), (1, 2)), Layout((3, 4), (1, 3)))
    Layout(((2, 2), 3, 4), ((1, 2), 4, 12))
    """
    def form(each: Layout, tile: Any) -> Layout:
        first, copies = _parts(each, tile)
        return joined([first, *copies])

    return _with_inner(block, tiler, form)


def flat_product(block: Any, tiler: Any) -> Any:
    """(block mode, ..., copies' mode, ...).

    Raises LayoutError as `logical_product` does.

    >>> flat_product(Layout((2, 2), (1, 2)), Layout((3, 4), (1, 3)))
    Layout((2, 2, 3, 4), (1, 2, 4, 12))
    """
    def form(each: Layout, tile: Any) -> Layout:
        first, copies = _parts(each, tile)
        return joined([*first, *copies])

    return _with_inner(block, tiler, form)


def _by_mode(block: Layout, tiler: Any) -> tuple[list[Layout], list[Layout]]:
    """The modes of the block and those of its copies, as many of each."""
    tiler = as_layout(tiler, "tiler")
    count = max(len(block), len(tiler))
    tiler = joined([*tiler] + [_ONE] * (count - len(tiler)))
    copies = _copies(block, tiler)
    return [*block] + [_ONE] * (count - len(block)), [copies] if count == 1 else [*copies]


def blocked_product(block: Any, tiler: Any) -> Any:
    """For each mode (block, copies): the block stays together, and its copies lie side by side in each mode.

    The shorter of both is filled up with unit modes. Raises LayoutError as `logical_product` does, and for a tiler that
    is no layout.

    >>> blocked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    Layout(((2, 3), (5, 4)), ((5, 10), (1, 30)))
    """
    def form(each: Layout, tile: Any) -> Layout:
        return remade(each, [joined(pair) for pair in zip(*_by_mode(each, tile), strict=True)])

    return _with_inner(block, tiler, form)


def raked_product(block: Any, tiler: Any) -> Any:
    """For each mode (copies, block): the copies interleave, the elements of one block lie apart.

    Raises LayoutError as `logical_product` does, and for a tiler that is no layout.

    >>> raked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    Layout(((3, 2), (4, 5)), ((10, 5), (30, 1)))
    """
    def form(each: Layout, tile: Any) -> Layout:
        return remade(each, [joined(pair[::-1]) for pair in zip(*_by_mode(each, tile), strict=True)])

    return _with_inner(block, tiler, form)
