"""The divides: splitting a layout into a tile and the rest.

By a shape or tile (a tuple) the split is mode by mode; by a layout, or an int n (which is the layout n:1), it is over
the whole. A tile may have fewer modes than the layout, and None leaves a mode undivided. Where a tile does not
divide, the rest is rounded up, and `overcover` of the result says by how much.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.algebra import composition, gaps_of, of_modes, tiled_modes
from flylab.layout.construct import as_layout, as_tile, joined, size
from flylab.layout.int_tuple import IntTuple
from flylab.layout.layout import Layout, trusted
from flylab.layout.swizzle import ComposedLayout

_ONE = trusted(1, 0)
_Parts = tuple[Layout, Layout, IntTuple]


def _by_extent(layout: Layout, extent: int) -> _Parts:
    """Division of a layout by extent:1."""
    total = size(layout)
    count = -(-total // extent)
    over = count * extent - total
    if type(layout.shape) is int:
        step = layout.stride
        return (trusted(extent, step if extent > 1 else 0),
                trusted(count, step * extent if count > 1 else 0), over)
    return _by_layout(layout, trusted(extent, 1 if extent > 1 else 0))


def _by_layout(layout: Layout, tile: Layout) -> _Parts:
    gaps, span = gaps_of(tile)
    covered = 1
    for extent, stride in sorted(tile.modes(), key=lambda mode: mode[1]):
        if stride and stride % covered:
            raise LayoutError(
                f"dividing {layout} by {tile}: its stride {stride} is no multiple of the {covered} that lie below it, "
                f"so no repetition of the tile reaches index {_missed(tile, covered, stride)}",
                hint="give the tile strides that are multiples of what lies below them")
        covered = stride * extent if stride else covered
    total = size(layout)
    rest = -(-total // span)
    others = of_modes(gaps + [(rest, span)] if rest > 1 else gaps)
    both = composition(layout, joined([tile, others]))
    # span * rest counts what the tile (without its broadcast modes) and the rest reach together.
    return both[0], both[1], max(rest, 1) * span - total


def _missed(tile: Layout, covered: int, stride: int) -> int:
    """The first index that is reached by no copy of the tile."""
    return stride // covered * covered


def _parts(layout: Layout, tile: Any) -> _Parts:
    """The tile's part, the rest, and by how many elements each mode is covered too far."""
    if tile is None:
        return _ONE, layout, 0
    if isinstance(tile, Layout):
        return _by_layout(layout, tile)
    if isinstance(tile, int):
        return _by_extent(layout, tile)
    parts = [_parts(mode, each) for mode, each in tiled_modes(layout, tile)]
    more = list(layout)[len(tile):]
    over = tuple([part[2] for part in parts] + [0] * len(more))
    return (joined([part[0] for part in parts]), joined([part[1] for part in parts] + more),
            over if len(over) > 1 else over[0])


def _logical(layout: Layout, tile: Any) -> Layout:
    if tile is None:
        return layout
    if isinstance(tile, tuple):
        modes = [_logical(mode, each) for mode, each in tiled_modes(layout, tile)]
        return joined(modes + list(layout)[len(tile):])
    return joined(_parts(layout, tile)[:2])


def _divided(layout: Any, divisor: Any, form: Any) -> Any:
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, layout.offset, _divided(layout.inner, divisor, form))
    layout = as_layout(layout, "divided")
    tile = as_tile(divisor)
    parts = _parts(layout, tile)
    result = form(layout, tile, parts)
    return trusted(result.shape, result.stride, parts[2]) if any_over(parts[2]) else result


def any_over(over: IntTuple) -> bool:
    """Whether an overcover, nested or not, holds anything but 0.

    >>> any_over((0, (0, 1))), any_over(0)
    (True, False)
    """
    return any(map(any_over, over)) if isinstance(over, tuple) else over != 0


def logical_divide(layout: Any, divisor: Any) -> Any:
    """Splits a layout, or each mode that the tile names, into (tile, rest); a mode with None stays as it is.

    Raises LayoutError where the tile has more modes than the layout, or the parts are no layouts.

    >>> logical_divide(Layout(24, 1), Layout(4, 2))
    Layout((4, (2, 3)), (2, (1, 8)))
    >>> logical_divide(Layout((8, 16), (16, 1)), (None, 4))
    Layout((8, (4, 4)), (16, (1, 4)))
    """
    return _divided(layout, divisor, lambda whole, tile, parts: (
        _logical(whole, tile) if isinstance(tile, tuple) else whole if tile is None else joined(parts[:2])))


def zipped_divide(layout: Any, divisor: Any) -> Any:
    """Splits into ((tile modes), (rest modes)); a mode with None has a tile of 1 and all of it is rest.

    >>> zipped_divide(Layout((64, 50, 80), (16000, 160, 1)), (32, None, 40))
    Layout(((32, 1, 40), (2, 50, 2)), ((16000, 0, 1), (512000, 160, 40)))
    """
    return _divided(layout, divisor, lambda whole, tile, parts: joined(parts[:2]))


def tiled_divide(layout: Any, divisor: Any) -> Any:
    """Splits into ((tile modes), rest mode, rest mode, ...).

    >>> tiled_divide(Layout((8, 16), (16, 1)), (4, 4))
    Layout(((4, 4), 2, 4), ((16, 1), 64, 4))
    """
    return _divided(layout, divisor, lambda whole, tile, parts: joined([parts[0], *parts[1]]))


def flat_divide(layout: Any, divisor: Any) -> Any:
    """Splits into (tile mode, tile mode, ..., rest mode, rest mode, ...).

    >>> flat_divide(Layout((8, 16), (16, 1)), (4, 4))
    Layout((4, 4, 2, 4), (16, 1, 64, 4))
    """
    return _divided(layout, divisor, lambda whole, tile, parts: joined([*parts[0], *parts[1]]))


def overcover(layout: Any, divisor: Any) -> IntTuple:
    """By how many elements tiles of this kind cover each mode too far: 0 where they divide. One number for a division
    over the whole, one for each mode of a layout divided mode by mode. A divide keeps it in its result's `overcover`.

    >>> overcover(Layout((5, 8), (1, 5)), (2, 4)), overcover(Layout((8, 16), (16, 1)), (4, 4))
    ((1, 0), (0, 0))
    >>> zipped_divide(Layout((5, 8), (1, 5)), (2, 4)).overcover
    (1, 0)
    """
    if isinstance(layout, ComposedLayout):
        layout = layout.inner
    return _parts(as_layout(layout, "divided"), as_tile(divisor))[2]
