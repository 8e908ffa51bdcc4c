"""The divides: splitting a layout into a tile and the rest.

By a shape or tile (a tuple) the split is mode by mode; by a layout, or an int n (which is the layout n:1), it is over
the whole. A tile may have fewer modes than the layout, and None leaves a mode undivided. Where a tile does not
divide, the rest is rounded up, and `overcover` of the result says by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.algebra import composition, of_modes, tiled_modes
from flylab.layout.basis import unit_stride
from flylab.layout.complements import gaps_of, with_rest
from flylab.layout.construct import as_layout, as_tile, joined, remade, size
from flylab.layout.decisions import at_least_one, divides, last, rounded_up, surely_divides
from flylab.layout.int_tuple import IntTuple
from flylab.layout.layout import Layout, Mode, has_basis, trusted
from flylab.layout.runtime_int import RuntimeInt
from flylab.layout.swizzle import ComposedLayout

_ONE = trusted(1, 0)
_Parts = tuple[Layout, Layout, IntTuple]


def _cut(layout: Layout, tile: Any) -> _Parts:
    """The tile, the rest, and by how much they cover too far, of a division of the whole by a Layout or an int."""
    if not isinstance(tile, Layout):
        extent, step = tile, 1
    elif type(tile.shape) is not tuple:
        extent, step = tile.shape, tile.stride
    else:
        return _by_layout(layout, tile)
    if extent == 0 or step != 1 and extent != 1:
        return _by_layout(layout, tile)
    if type(layout.shape) is tuple:
        return _in_order(layout, extent) or _by_layout(layout, tile if isinstance(tile, Layout) else Layout(tile, 1))
    # A mode by extent:1, nearly all divides there are, needs no composition.
    count = rounded_up(layout.shape, extent)
    unit = unit_stride(layout.stride)
    return (trusted(extent, layout.stride if extent != 1 else unit),
            trusted(count, layout.stride * extent if count != 1 else unit), _too_many(count, extent, layout.shape))


def _too_many(count: Any, extent: Any, whole: Any) -> Any:
    """By how many elements `count` tiles of `extent` cover too far."""
    over = 0 if surely_divides(extent, whole) else count * extent - whole
    return over.known(0, last(extent) if type(extent) is int else over.high) if isinstance(over, RuntimeInt) else over


def _in_order(layout: Layout, extent: int) -> _Parts | None:
    """The parts of a division by extent:1 that cuts through one mode at most, so that the others stay as they are."""
    if type(extent) is not int or has_basis(layout.stride):
        return None
    tile: list[Mode] = []
    rest: list[Mode] = []
    for count, stride in layout.modes():
        if type(count) is not int or not count:
            return None
        inside = min(extent, count)
        if extent % inside or count % inside:
            return None
        if inside > 1:
            tile.append((inside, stride))
        if inside < count:
            rest.append((count // inside, stride * inside))
        extent //= inside
    return (of_modes(tile), of_modes(rest), 0) if extent == 1 else None


def _by_layout(layout: Layout, tile: Layout) -> _Parts:
    gaps, span = gaps_of(tile)
    covered = 1
    for extent, stride in sorted(tile.modes(), key=lambda mode: mode[1]):
        if stride != 0 and not divides(covered, stride):
            raise LayoutError(
                f"dividing {layout} by {tile}: its stride {stride} is no multiple of the {covered} that lie below it, "
                f"so no copy of the tile reaches index {stride // covered * covered}",
                hint="give the tile strides that are multiples of what lies below them")
        covered = stride * extent if stride != 0 else covered
    total = size(layout)
    rest = at_least_one(rounded_up(total, span))
    both = composition(layout, joined([tile, with_rest(gaps, rest, span)]))
    # Without its broadcast modes the tile reaches, together with the rest, each index below rest * span once.
    return both[0], both[1], _too_many(rest, span, total)


def _parts(layout: Layout, tile: Any) -> _Parts:
    """The tiles' modes, the rests' modes, and by how many elements each mode is covered too far."""
    if tile is None:
        return _ONE, layout, 0
    if not isinstance(tile, tuple):
        return _cut(layout, tile)
    tiles, rests, overs = zip(*[_parts(mode, each) for mode, each in tiled_modes(layout, tile)], strict=True)
    more = list(layout)[len(tile):]
    return joined(tiles), joined([*rests, *more]), _grouped(overs, len(more))


def _grouped(overs: tuple[IntTuple, ...], more: int) -> IntTuple:
    overs += (0,) * more
    return overs if len(overs) > 1 else overs[0]


def _logical(layout: Layout, tile: Any) -> tuple[Layout, IntTuple]:
    """Each divided mode as (tile, rest), and by how many elements each mode is covered too far."""
    if tile is None:
        return layout, 0
    if not isinstance(tile, tuple):
        first, rest, over = _cut(layout, tile)
        return joined([first, rest]), over
    modes, overs = zip(*[_logical(mode, each) for mode, each in tiled_modes(layout, tile)], strict=True)
    more = list(layout)[len(tile):]
    return remade(layout, [*modes, *more]), _grouped(overs, len(more))


def _divided(layout: Any, divisor: Any, form: Callable[[Layout, Any], tuple[Layout, IntTuple]]) -> Any:
    if isinstance(layout, ComposedLayout):
        return layout.with_inner(_divided(layout.inner, divisor, form))
    result, over = form(as_layout(layout, "the divided"), as_tile(divisor))
    return trusted(result.shape, result.stride, over) if any_over(over) else result


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
    return _divided(layout, divisor, _logical)


def zipped_divide(layout: Any, divisor: Any) -> Any:
    """Splits into ((tile modes), (rest modes)); a mode with None has a tile of 1 and all of it is rest.

    Raises LayoutError as `logical_divide` does.

    >>> zipped_divide(Layout((64, 50, 80), (16000, 160, 1)), (32, None, 40))
    Layout(((32, 1, 40), (2, 50, 2)), ((16000, 0, 1), (512000, 160, 40)))
    """
    def form(whole: Layout, by: Any) -> tuple[Layout, IntTuple]:
        tile, rest, over = _parts(whole, by)
        return joined([tile, rest]), over

    return _divided(layout, divisor, form)


def tiled_divide(layout: Any, divisor: Any) -> Any:
    """Splits into ((tile modes), rest mode, rest mode, ...).

    Raises LayoutError as `logical_divide` does.

    >>> tiled_divide(Layout((8, 16), (16, 1)), (4, 4))
    Layout(((4, 4), 2, 4), ((16, 1), 64, 4))
    """
    def form(whole: Layout, by: Any) -> tuple[Layout, IntTuple]:
        tile, rest, over = _parts(whole, by)
        return joined([tile, *rest]), over

    return _divided(layout, divisor, form)


def flat_divide(layout: Any, divisor: Any) -> Any:
    """Splits into (tile mode, tile mode, ..., rest mode, rest mode, ...).

    Raises LayoutError as `logical_divide` does.

    >>> flat_divide(Layout((8, 16), (16, 1)), (4, 4))
    Layout((4, 4, 2, 4), (16, 1, 64, 4))
    """
    def form(whole: Layout, by: Any) -> tuple[Layout, IntTuple]:
        tile, rest, over = _parts(whole, by)
        return joined([*tile, *rest]), over

    return _divided(layout, divisor, form)


def overcover(layout: Any, divisor: Any) -> IntTuple:
    """By how many elements tiles of this kind cover each mode too far: 0 where they divide. One number for a division
    over the whole, one for each mode of a layout divided mode by mode. A divide keeps it in its result's `overcover`.

    Raises LayoutError as the divides do.

    >>> overcover(Layout((5, 8), (1, 5)), (2, 4)), overcover(Layout((8, 16), (16, 1)), (4, 4))
    ((1, 0), (0, 0))
    >>> zipped_divide(Layout((5, 8), (1, 5)), (2, 4)).overcover
    (1, 0)
    """
    if isinstance(layout, ComposedLayout):
        layout = layout.inner
    return _parts(as_layout(layout, "the divided"), as_tile(divisor))[2]
