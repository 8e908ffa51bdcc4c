"""coalesce, composition and complement: what the rest of the algebra is made of. All of it is exact.

Composition follows the digits of an index in the mixed radix of the outer layout's merged modes. A mode of the inner
layout becomes a few pieces, each inside one digit; the pieces of all modes add up without carries. Where either
fails, the values themselves decide whether there is a layout all the same, and if not, at which coordinate.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError
from flylab.layout.basis import Basis
from flylab.layout.construct import as_layout, as_tile, remade, size
from flylab.layout.int_tuple import IntTuple, as_int_tuple, at_path, leaves, product, text
from flylab.layout.layout import Layout, Mode, has_basis, trusted
from flylab.layout.swizzle import ComposedLayout, Swizzle, map_indices

MOST_COMPARED = 1 << 22  # coordinates; larger layouts are not decided by comparing values
_COMPARE = -1  # in place of a digit's reach: the values must decide


def coalesce(layout: Any, profile: Any = None) -> Any:
    """The layout with the fewest modes that is the same map; with a profile, one such for each leaf of the profile.

    Raises LayoutError where the profile has more modes than the layout.

    >>> coalesce(Layout((2, (1, 6)), (1, (6, 2))))
    Layout(12, 1)
    >>> coalesce(Layout(((2, 4), (3, 5)), ((1, 2), (8, 24))), (1, 1))
    Layout((8, 15), (1, 8))
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, layout.offset, coalesce(layout.inner, profile))
    layout = as_layout(layout)
    if not isinstance(profile, (tuple, list)):
        return of_modes(layout.modes())
    modes = list(layout)
    if len(profile) > len(modes):
        raise LayoutError(f"profile {text(profile)} has {len(profile)} modes, layout {layout} has {len(modes)}",
                          hint="give one entry for each mode, or fewer")
    changed = [coalesce(mode, each) for mode, each in zip(modes, profile, strict=False)]
    return remade(layout, changed + modes[len(profile):])


def of_modes(modes: tuple[Mode, ...] | list[Mode]) -> Layout:
    """The flat layout of (extent, stride) pairs; of none, 1:0.

    >>> of_modes([(4, 1), (8, 4)])
    Layout((4, 8), (1, 4))
    """
    if len(modes) == 1:
        return trusted(*modes[0])
    if not modes:
        return trusted(1, 0)
    shape, stride = zip(*modes, strict=True)
    return trusted(shape, stride)


def composition(outer: Any, inner: Any) -> Any:
    """The layout R with R(c) = outer(inner(c)), nested like `inner`; by a tile (a tuple), mode by mode.

    `outer` may be a Layout, a Swizzle or a ComposedLayout. Indices past its end extend its last mode. Raises
    LayoutError, with a coordinate as witness, where no layout is that map.

    >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    Layout(((2, 2), 3), ((24, 2), 8))
    >>> composition(Layout((12, (4, 8)), (59, (13, 1))), (3, 8))
    Layout((3, (4, 2)), (59, (13, 1)))
    """
    if isinstance(outer, Swizzle):
        return ComposedLayout(outer, 0, as_layout(inner, "inner layout"))
    if isinstance(outer, ComposedLayout):
        return ComposedLayout(outer.outer, outer.offset, composition(outer.inner, inner))
    outer = as_layout(outer, "outer layout")
    if isinstance(inner, Layout):
        return _composed(outer, inner)
    tile = as_tile(inner)
    if tile is None:
        return outer
    if isinstance(tile, tuple):
        modes = tiled_modes(outer, tile)
        return remade(outer, [composition(mode, each) for mode, each in modes] + list(outer)[len(tile):])
    return _composed(outer, trusted(tile, 0 if tile == 1 else 1))


def tiled_modes(layout: Layout, tile: tuple[Any, ...]) -> list[tuple[Layout, Any]]:
    """Each mode of the layout beside its mode of the tile, which may be shorter but not longer.

    >>> tiled_modes(Layout((8, 16), (16, 1)), (4,))
    [(Layout(8, 16), 4)]
    """
    if len(tile) > len(layout):
        raise LayoutError(f"the tile {text(tile)} has {len(tile)} modes, but the layout {layout} has {len(layout)}",
                          hint="drop modes of the tile, or give the layout more modes")
    return list(zip(layout, tile, strict=False))


def _composed(outer: Layout, inner: Layout) -> Layout:
    if has_basis(inner.stride):
        return _through_coordinates(outer, inner)
    modes = outer.modes()
    if not all([extent for extent, _ in modes]):
        if not size(inner):
            return trusted(inner.shape, _zeros(inner.shape))
        raise LayoutError(f"composition: the outer layout {outer} has no elements", hint="give it extents above 0")
    reach = [0] * len(modes)
    result = trusted(*_pieces(modes, inner.shape, inner.stride, reach, outer))
    if any(digit == _COMPARE or digit >= modes[i][0] for i, digit in enumerate(reach[:-1])):
        _compare(outer, inner, result)
    return result


def _zeros(shape: IntTuple) -> IntTuple:
    return tuple(map(_zeros, shape)) if isinstance(shape, tuple) else 0


def _pieces(modes: tuple[Mode, ...], shape: IntTuple, stride: IntTuple, reach: list[int],
            outer: Layout) -> tuple[IntTuple, IntTuple]:
    """Shape and stride of the composition; `reach` collects how far the digit of each outer mode may go."""
    if isinstance(shape, tuple):
        parts = [_pieces(modes, extent, step, reach, outer) for extent, step in zip(shape, stride, strict=True)]
        return tuple([part[0] for part in parts]), tuple([part[1] for part in parts])
    if shape <= 1 or stride == 0 or not modes:
        return shape, 0
    if len(modes) == 1:
        return shape, stride * modes[0][1]
    if stride < 0:
        raise LayoutError(
            f"composition: the inner mode {shape}:{stride} takes negative indices, which {outer} does not have",
            hint="compose with the positive stride and reverse the result, or use an outer layout of one mode")
    pieces = _digit_pieces(modes, shape, stride, reach)
    if pieces is None:
        pieces = _pieces_by_value(outer, shape, stride)
        reach[0] = _COMPARE
    if len(pieces) == 1:
        return pieces[0]
    return tuple([extent for extent, _ in pieces]), tuple([step for _, step in pieces])


def _digit_pieces(modes: tuple[Mode, ...], extent: int, stride: int, reach: list[int]) -> list[Mode] | None:
    """The pieces of one inner mode, each inside one digit of the outer layout; None where it crosses digits."""
    pieces: list[Mode] = []
    for i, (width, step) in enumerate(modes[:-1]):
        if stride % width == 0:
            stride //= width
            continue
        inside = (extent - 1) * stride < width
        if not inside and width % stride:
            return None
        count = extent if inside else width // stride
        if extent % count:
            return None
        if reach[i] != _COMPARE:
            reach[i] += (count - 1) * stride
        pieces.append((count, stride * step))
        extent //= count
        if extent == 1:
            return pieces
        stride = 1
    pieces.append((extent, stride * modes[-1][1]))
    return pieces


def _pieces_by_value(outer: Layout, extent: int, stride: int) -> list[Mode]:
    """The only pieces that can follow outer(i * stride): each runs as long as its step holds. Not yet compared."""
    inner = trusted(extent, stride)
    if has_basis(outer.stride):
        raise LayoutError(f"composition of {outer} with {inner}: the mode {inner} crosses the modes of a layout of "
                          "coordinates", hint="let it divide the modes it crosses, or stay inside one")
    pieces: list[Mode] = []
    unit, left = 1, extent
    while left > 1:
        step = outer(unit * stride)
        run = _run(outer, unit * stride, step, left, inner)
        if left % run:
            at = unit * run
            raise LayoutError(
                f"composition of {outer} with {inner} is no layout: at coordinate {at} it is {outer}({at * stride}) = "
                f"{outer(at * stride)}; coordinate {unit} gives {step}, and {run} does not divide {left}, so that "
                f"coordinate {at} would have to give {run * step}",
                hint="let the inner mode divide the outer modes it crosses, or stay inside one")
        pieces.append((run, step))
        unit, left = unit * run, left // run
    return pieces


def _run(outer: Layout, stride: int, step: int, most: int, inner: Layout) -> int:
    """For how many i, up to `most`, outer(i * stride) is i * step; looked up in growing chunks."""
    import numpy as np

    begin = 2
    while begin < most:
        if begin > MOST_COMPARED:
            raise LayoutError(f"composition of {outer} with {inner}: the mode {inner} crosses the outer modes, and has "
                              "too many coordinates to be compared one by one",
                              hint="let the inner mode divide the outer modes it crosses, or stay inside one")
        factors = np.arange(begin, min(most, 4 * begin))
        differing = (map_indices(outer, factors * stride) != factors * step).nonzero()[0]
        if differing.size:
            return begin + int(differing[0])
        begin = min(most, 4 * begin)
    return most


def _compare(outer: Layout, inner: Layout, result: Layout) -> None:
    """Refuses unless result(c) == outer(inner(c)) everywhere; the first coordinate that differs is the witness."""
    from flylab.layout.coordinates import idx2crd

    hint = "let the inner modes together stay inside the outer modes they meet"
    if has_basis(outer.stride) or size(inner) > MOST_COMPARED:
        raise LayoutError(f"composition of {outer} with {inner}: the inner modes carry from one outer mode into the "
                          "next, so their parts do not add up", hint=hint)
    indices = inner.offsets()
    got, want = result.offsets(), map_indices(outer, indices)
    differing = (got != want).nonzero()[0]
    if differing.size:
        first = int(differing[0])
        coord = idx2crd(first, inner.shape)
        raise LayoutError(
            f"composition of {outer} with {inner} is no layout: at coordinate {text(coord)} it is "
            f"{outer}({indices[first]}) = {want[first]}, but its modes add up to {got[first]}", hint=hint)


def _through_coordinates(outer: Layout, inner: Layout) -> Layout:
    """Composition with an inner layout that gives coordinates of `outer`: each mode goes to the outer mode it names."""
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    results: list[tuple[IntTuple, IntTuple]] = []
    for extent, stride in zip(leaves(inner.shape), leaves(inner.stride), strict=True):
        if not isinstance(stride, Basis):
            results.append((extent, 0))
            continue
        mode = trusted(at_path(outer.shape, stride.path), at_path(outer.stride, stride.path))
        part = _composed(mode, trusted(extent, stride.scale))
        groups.setdefault(stride.path, []).append((extent, stride.scale))
        results.append((part.shape, part.stride))
    for path, modes in groups.items():
        # Modes that meet in one outer mode must add up there; composing them together shows it.
        if len(modes) > 1:
            mode = trusted(at_path(outer.shape, path), at_path(outer.stride, path))
            _composed(mode, of_modes(modes))
    return trusted(*_fill(inner.shape, iter(results)))


def _fill(shape: IntTuple, parts: Any) -> tuple[IntTuple, IntTuple]:
    if not isinstance(shape, tuple):
        return next(parts)  # type: ignore[no-any-return]
    inner = [_fill(mode, parts) for mode in shape]
    return tuple([part[0] for part in inner]), tuple([part[1] for part in inner])


def complement(layout: Layout, target: Any = 1) -> Layout:
    """The layout of what `layout` leaves out of the indices up to `target` (a size or a shape), rounded up.

    Put beside `layout` it makes an injective layout, which covers [0, target) where each stride is a multiple of what
    lies below it; where it is not, the gap stays. Modes of stride 0 are skipped. Raises LayoutError, with two
    coordinates as witness, where `layout` is not injective, and where it is negative or empty.

    >>> complement(Layout(4, 2), 24), complement(Layout((2, 2), (1, 6)), 24)
    (Layout((2, 3), (1, 8)), Layout((3, 2), (2, 12)))
    """
    gaps, span = gaps_of(as_layout(layout))
    rest = -(-product(as_int_tuple(target, "target")) // span)
    return of_modes(gaps + [(rest, span)] if rest > 1 else gaps)


def gaps_of(layout: Layout) -> tuple[list[Mode], int]:
    """The modes of the indices that `layout` leaves out below its end, and the stride at which it may be repeated.

    >>> gaps_of(Layout((2, 2), (1, 6)))
    ([(3, 2)], 12)
    """
    pairs = []
    for extent, stride in layout.modes():
        if isinstance(stride, Basis) or stride < 0 or not extent:
            why = ("it gives coordinates" if isinstance(stride, Basis) else
                   f"the stride {stride} is negative" if extent else "it has no elements")
            raise LayoutError(f"complement of {layout}: {why}", hint="use positive extents and strides")
        if stride:
            pairs.append((stride, extent))
    gaps: list[Mode] = []
    span = 1
    for stride, extent in sorted(pairs):
        if stride < span:
            raise _not_disjoint(layout, stride, extent, span)
        if stride // span > 1:
            gaps.append((stride // span, span))
        span = stride * extent
    return gaps, span


def _not_disjoint(layout: Layout, stride: int, extent: int, span: int) -> LayoutError:
    collision = colliding(layout)
    if collision:
        a, b, index = collision
        return LayoutError(f"complement of {layout}: it is not injective, the coordinates {text(a)} and {text(b)} "
                           f"both have index {index}", hint="give the modes strides that do not meet")
    return LayoutError(f"complement of {layout}: its mode {extent}:{stride} begins inside what its smaller strides "
                       f"span, {span}", hint="give the modes strides that do not interleave")


def colliding(layout: Layout) -> tuple[IntTuple, IntTuple, int] | None:
    """Two coordinates with the same index, and it; None where there are none. Modes of stride 0 stay at 0.

    >>> colliding(Layout((3, 2), (1, 2)))
    ((2, 0), (0, 1), 2)
    """
    shape, stride = layout.shape, layout.stride
    narrowed = trusted(_without_broadcast(shape, stride), stride)
    if size(narrowed) > MOST_COMPARED:
        return None
    import numpy as np

    from flylab.layout.coordinates import idx2crd

    offsets = narrowed.offsets()
    order = np.argsort(offsets, kind="stable")
    same = np.flatnonzero(offsets[order][1:] == offsets[order][:-1])
    if not same.size:
        return None
    seconds = order[same + 1]
    pick = int(np.argmin(seconds))
    first, second = int(order[same[pick]]), int(seconds[pick])
    return idx2crd(first, narrowed.shape), idx2crd(second, narrowed.shape), int(offsets[first])


def _without_broadcast(shape: IntTuple, stride: IntTuple) -> IntTuple:
    if isinstance(shape, tuple):
        return tuple(map(_without_broadcast, shape, stride))
    return 1 if stride == 0 else shape


