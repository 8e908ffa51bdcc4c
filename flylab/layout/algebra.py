"""coalesce and composition: what the rest of the algebra is made of, with complements.py. All of it is exact.

Composition follows the digits of an index in the mixed radix of the outer layout's merged modes. A mode of the inner
layout becomes a few pieces, each inside one digit; the pieces of all modes add up without carries. Where either
fails, the values themselves decide whether there is a layout all the same, and if not, at which coordinate.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import LayoutError, Undecided
from flylab.layout.arrays import comparable, multiples, reach, stacked
from flylab.layout.basis import Basis
from flylab.layout.construct import as_layout, as_tile, nested_like, remade, size
from flylab.layout.decisions import last, surely_divides, surely_less
from flylab.layout.int_tuple import IntTuple, as_int, as_profile, at_path, has_runtime, leaves, text
from flylab.layout.layout import Layout, Mode, has_basis, trusted, with_units
from flylab.layout.swizzle import ComposedLayout, Swizzle


def coalesce(layout: Any, profile: Any = None) -> Any:
    """The layout with the fewest modes that is the same map; with a profile, one such for each leaf of the profile.

    Raises LayoutError where the profile has more modes than the layout.

    >>> coalesce(Layout((2, (1, 6)), (1, (6, 2))))
    Layout(12, 1)
    >>> coalesce(Layout(((2, 4), (3, 5)), ((1, 2), (8, 24))), (1, 1))
    Layout((8, 15), (1, 8))
    """
    if profile is not None:
        profile = as_profile(profile, "profile", as_int)
    if isinstance(layout, ComposedLayout):
        return layout.with_inner(_coalesced(layout.inner, profile))
    return _coalesced(as_layout(layout), profile)


def _coalesced(layout: Layout, profile: Any) -> Layout:
    if not isinstance(profile, tuple):
        return of_modes(with_units(list(layout.modes()), layout.stride))
    modes = list(layout)
    if len(profile) > len(modes):
        raise LayoutError(f"profile {text(profile)} has {len(profile)} modes, layout {layout} has {len(modes)}",
                          hint="give one entry for each mode, or fewer")
    changed = [_coalesced(mode, each) for mode, each in zip(modes, profile, strict=False)]
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
        return outer.with_inner(composition(outer.inner, inner))
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
    by_digits = _through_coordinates if has_basis(inner.stride) else _through_digits
    try:
        result = by_digits(outer, inner)
    except LayoutError:
        if 0 not in leaves(inner.shape):
            raise
        result = trusted(inner.shape, _zeros(inner.shape))  # of no elements, any layout is the composition
    return _with_all_coordinates(result, outer)


def _with_all_coordinates(result: Layout, outer: Layout) -> Layout:
    """`result` with a unit mode for each mode of the coordinates that `outer` gives and `result` does not name.

    It takes the place of a unit mode, or else stands beside the last mode, which is nested for it.
    """
    if not has_basis(outer.stride):
        return result
    modes = list(zip(leaves(result.shape), leaves(result.stride), strict=True))
    missing = with_units(modes, outer.stride)[len(modes):]
    if not missing:
        return result
    for i, (extent, stride) in enumerate(modes):
        if missing and extent == 1 and type(stride) is int:
            modes[i] = missing.pop(0)
    extents, strides = [list(each) for each in zip(*modes, strict=True)]
    if missing:
        extents[-1] = (extents[-1], *[extent for extent, _ in missing])
        strides[-1] = (strides[-1], *[stride for _, stride in missing])
    return trusted(nested_like(result.shape, extents), nested_like(result.shape, strides))


def _through_digits(outer: Layout, inner: Layout) -> Layout:
    modes = outer.modes()
    if any([extent == 0 for extent, _ in modes]):
        if size(inner) == 0:
            return trusted(inner.shape, _zeros(inner.shape))
        raise LayoutError(f"composition: the outer layout {outer} has no elements", hint="give it extents above 0")
    digits: list[list[Any]] = [[] for _ in modes]
    result = trusted(*_pieces(modes, inner.shape, inner.stride, digits, outer))
    # One piece stays inside its digit; several may carry.
    if any([reached and (reached[0] is None or len(reached) > 1 and sum(reached) >= modes[i][0])
            for i, reached in enumerate(digits[:-1])]):
        _compare(outer, inner, result)
    return result


def _zeros(shape: IntTuple) -> IntTuple:
    return tuple(map(_zeros, shape)) if isinstance(shape, tuple) else 0


def _pieces(modes: tuple[Mode, ...], shape: IntTuple, stride: IntTuple, digits: list[list[Any]],
            outer: Layout) -> tuple[IntTuple, IntTuple]:
    """Shape and stride of the composition; `digits` collects how far each piece takes the digit of its mode."""
    if isinstance(shape, tuple):
        parts = [_pieces(modes, extent, step, digits, outer) for extent, step in zip(shape, stride, strict=True)]
        return tuple([part[0] for part in parts]), tuple([part[1] for part in parts])
    if type(shape) is int and shape <= 1 or stride == 0 or not modes:
        return shape, 0
    if len(modes) == 1:
        return shape, stride * modes[0][1]
    if stride < 0:
        raise LayoutError(
            f"composition: the inner mode {shape}:{stride} takes negative indices, before the first element of {outer}",
            hint="compose with the positive stride, or with an outer layout of one mode")
    pieces = _digit_pieces(modes, shape, stride, digits)
    if pieces is None:
        pieces = _pieces_by_value(outer, shape, stride)
        digits[0].insert(0, None)  # the values must decide
    if len(pieces) == 1:
        return pieces[0]
    return tuple([extent for extent, _ in pieces]), tuple([step for _, step in pieces])


def _digit_pieces(modes: tuple[Mode, ...], extent: Any, stride: Any, digits: list[list[Any]]) -> list[Mode] | None:
    """The pieces of one inner mode, each inside one digit of the outer layout; None where it crosses digits."""
    pieces: list[Mode] = []
    for i, (width, step) in enumerate(modes[:-1]):
        if surely_divides(width, stride):
            stride //= width
            continue
        inside = surely_less(last(extent) * stride, width) or surely_divides(extent * stride, width)
        count = extent if inside else width // stride if surely_divides(stride, width) else None
        if count is None or not surely_divides(count, extent):
            if has_runtime((extent, stride, width)):
                raise _undecided(trusted(extent, stride), width, step)
            return None
        digits[i].append(last(count) * stride)
        pieces.append((count, stride * step))
        extent //= count
        if extent == 1:
            return pieces
        stride = 1
    pieces.append((extent, stride * modes[-1][1]))
    return pieces


def _undecided(inner: Layout, width: Any, step: Any) -> Undecided:
    span = inner.shape * inner.stride
    hint = f"say that {span} divides it: fx.assume(n, div={span})" if type(span) is int else (
        "compose with numbers that are known")
    return Undecided(f"whether {inner} stays inside the outer mode {width}:{step} is known only while the kernel runs",
                     hint=hint)


def _pieces_by_value(outer: Layout, extent: int, stride: int) -> list[Mode]:
    """The only pieces that can follow outer(i * stride): each runs as long as its step holds. Not yet compared."""
    inner = trusted(extent, stride)
    if has_runtime((outer.shape, outer.stride, extent, stride)):
        raise Undecided(f"composition of {outer} with {inner}: the mode {inner} crosses modes that are known only "
                        "while the kernel runs", hint="let it divide the modes it crosses")
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
    begin = 2
    while begin < most:
        if not comparable(begin, most * max(stride, abs(step))):
            raise LayoutError(f"composition of {outer} with {inner}: the mode {inner} crosses the outer modes, and has "
                              "too many coordinates to be compared one by one",
                              hint="let the inner mode divide the outer modes it crosses, or stay inside one")
        end = min(most, 4 * begin)
        differing = (outer(multiples(begin, end, stride)) != multiples(begin, end, step)).nonzero()[0]
        if differing.size:
            return begin + int(differing[0])
        begin = end
    return most


def _compare(outer: Layout, inner: Layout, result: Layout) -> None:
    """Refuses unless result(c) == outer(inner(c)) everywhere; the first coordinate that differs is the witness."""
    from flylab.layout.coordinates import idx2crd

    hint = "let the inner modes together stay inside the outer modes they meet"
    if has_basis(outer.stride) or not comparable(size(inner), reach(outer, reach(inner))):
        raise LayoutError(f"composition of {outer} with {inner}: the inner modes carry from one outer mode into the "
                          "next, so their parts do not add up", hint=hint)
    indices = inner.offsets()
    got, want = result.offsets(), stacked(outer(indices), len(indices))
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
