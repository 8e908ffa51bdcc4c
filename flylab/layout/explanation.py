"""Explanations: the steps of an operation as data and text, for people and for pictures.

    >>> print(explain("coalesce", Layout((2, (1, 6)), (1, (6, 2)))))
    coalesce of (2,(1,6)):(1,(0,2))
    1. begin with 2:1 -> 2:1
    2. drop a unit mode, it has one coordinate -> 2:1
    3. 6:2 goes on where 2:1 ends, at 2 * 1 = 2: one mode -> 12:1
    = 12:1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flylab.errors import LayoutError
from flylab.layout import algebra, complements, coordinates, divides, inverse, products
from flylab.layout.construct import as_tile, cosize, joined, make_identity_layout, remade, size
from flylab.layout.decisions import last, rounded_up
from flylab.layout.int_tuple import as_int_tuple, has_runtime, leaves, map_leaves, product, text
from flylab.layout.layout import Layout, Mode, trusted
from flylab.layout.notation import tile_text
from flylab.layout.swizzle import ComposedLayout, Swizzle

_Steps = Callable[..., Iterator["Step"]]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is done and why, and the layout that it arrives at, if any.

    >>> str(Step("merge", Layout(32, 1)))
    'merge -> 32:1'
    """

    text: str
    layout: Layout | None = None

    def __str__(self) -> str:
        return self.text if self.layout is None else f"{self.text} -> {self.layout}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """An operation on its arguments, step by step; `result` is None where it is refused, and the last step says why.

    >>> explained = explain("coalesce", Layout((4, 8), (1, 4)))
    >>> len(explained.steps), explained.steps[1].layout, explained.result
    (2, Layout(32, 1), Layout(32, 1))
    """

    operation: str
    arguments: tuple[Any, ...]
    steps: tuple[Step, ...]
    result: Any

    def __str__(self) -> str:
        lines = [f"{self.operation} of " + " and ".join(map(_shown, self.arguments))]
        lines += [f"{number}. {step}" for number, step in enumerate(self.steps, 1)]
        return "\n".join(lines if self.result is None else [*lines, f"= {_shown(self.result)}"])


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        holds_layout = any(isinstance(each, Layout) for each in value)
        return tile_text(value) if holds_layout else text(value)
    return str(value)


def explain(operation: str, *arguments: Any) -> Explanation:
    """The steps of a layout operation by its name: one of "coalesce", "composition", "complement",
    "crd2idx", "logical_divide", "logical_product", "left_inverse" and "right_inverse".

    A refused operation is explained up to its refusal. Raises LayoutError for a name that has no explanation.

    >>> print(explain("complement", Layout((2, 2), (1, 6)), 24))
    complement of (2,2):(1,6) and 24
    1. 2:1 follows at 1, without a gap
    2. 2:6 begins at 6, what lies below spans 2: 6 / 2 copies fill the gap -> 3:2
    3. all of it spans 12, and 24 takes 2 copies -> (3,2):(2,12)
    = (3,2):(2,12)
    """
    if not isinstance(operation, str) or operation not in _STEPS:
        raise LayoutError(f"there is no explanation of {operation!r}", hint="explain one of " + ", ".join(_STEPS) +
                          "; the other divides and products have the parts of the logical ones")
    function, steps = _STEPS[operation]
    _check_arguments(operation, function, arguments)
    if isinstance(arguments[0], ComposedLayout):
        steps = _of_composed(function, steps)
    done: list[Step] = []
    try:
        result = function(*arguments)
        done.extend(steps(*arguments))
    except LayoutError as refusal:
        return Explanation(operation, arguments, (*done, Step(f"refused: {refusal.message}")), None)
    return Explanation(operation, arguments, tuple(done), result)


def _check_arguments(operation: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    from inspect import signature

    wanted = signature(function)
    try:
        wanted.bind(*arguments)
    except TypeError:
        names = ", ".join(wanted.parameters)
        raise LayoutError(f"{operation} has not {len(arguments)} arguments, but ({names})",
                          hint=f'write explain("{operation}", {names})') from None


def _of_composed(function: Callable[..., Any], steps: _Steps) -> _Steps:
    """The steps of an operation that a composed layout leaves to its inner layout."""
    def whole(composed: ComposedLayout, *more: Any) -> Iterator[Step]:
        yield Step(f"{composed.front} stays in front of the inner layout", composed.inner)
        yield from steps(composed.inner, *more)
        yield Step(f"with what stays in front: {function(composed, *more)}")

    return whole


def _leaf_modes(layout: Layout) -> list[Mode]:
    return list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))


def _coalesce(layout: Layout, profile: Any = None) -> Iterator[Step]:
    if isinstance(profile, (tuple, list)):
        parts = [algebra.coalesce(*pair) for pair in zip(layout, profile, strict=False)]
        for mode, part in zip(layout, parts, strict=False):
            yield Step(f"the mode {mode} by itself", part)
        yield Step("side by side, with the modes that the profile does not name",
                   remade(layout, parts + list(layout)[len(parts):]))
        return
    modes: list[Mode] = []
    for extent, stride in _leaf_modes(layout):
        if extent == 1:
            why = "drop a unit mode, it has one coordinate"
        elif not modes:
            modes.append((extent, stride))
            why = f"begin with {extent}:{stride}"
        else:
            before, step = modes[-1]
            end = before * step
            if stride == end:
                modes[-1] = (before * extent, step)
                why = f"{extent}:{stride} goes on where {before}:{step} ends, at {before} * {step} = {end}: one mode"
            else:
                modes.append((extent, stride))
                why = f"{extent}:{stride} does not go on where {before}:{step} ends, at {end}: a new mode"
        yield Step(why, algebra.of_modes(modes))
    whole = algebra.coalesce(layout)
    if whole != algebra.of_modes(modes):
        yield Step("a unit mode for each mode of the coordinates that is always 0", whole)


def _composition(outer: Any, inner: Any) -> Iterator[Step]:
    if isinstance(outer, Swizzle):
        yield Step(f"a swizzle is no layout: it stays in front as {algebra.composition(outer, inner)}")
        return
    if not isinstance(inner, Layout):
        tile = as_tile(inner)
        for mode, each in algebra.tiled_modes(outer, tile if isinstance(tile, tuple) else (tile,)):
            yield Step(f"the mode {mode} by {tile_text(each)}", algebra.composition(mode, each))
        return
    yield Step("count the outer layout by the fewest digits", algebra.coalesce(outer))
    for extent, stride in _leaf_modes(inner):
        part = algebra.composition(outer, trusted(extent, stride if extent != 1 else 0))
        yield Step(f"the inner mode {extent}:{stride} walks the outer layout in steps of {stride}", part)
    result = algebra.composition(outer, inner)
    yield Step("nest the parts like the inner layout", result)
    if size(inner) == 0:
        return
    corner = map_leaves(last, inner.shape)
    yield Step(f"so coordinate {text(corner)}, which the inner layout maps to {text(inner(corner))}, has "
               f"{text(result(product(inner.shape) - 1))}")


def _complement(layout: Layout, target: Any = 1) -> Iterator[Step]:
    found: list[Mode] = []
    span = 1
    for stride, extent in complements.by_stride([(stride, extent) for extent, stride in layout.modes()]):
        if stride == 0:
            yield Step(f"skip {extent}:0, which repeats what is there")
        elif stride // span == 1:
            yield Step(f"{extent}:{stride} follows at {span}, without a gap")
        else:
            found.append((stride // span, span))
            yield Step(f"{extent}:{stride} begins at {stride}, what lies below spans {span}: {stride} / {span} copies "
                       "fill the gap", algebra.of_modes([found[-1]]))
        span = stride * extent if stride != 0 else span
    wanted = product(as_int_tuple(target, "target"))
    yield Step(f"all of it spans {span}, and {wanted} takes {rounded_up(wanted, span)} copies",
               complements.complement(layout, target))


def _logical_divide(layout: Layout, divisor: Any) -> Iterator[Step]:
    tile = as_tile(divisor)
    if isinstance(tile, tuple):
        for mode, each in algebra.tiled_modes(layout, tile):
            done = "stays whole" if each is None else f"is divided by {tile_text(each)}"
            yield Step(f"the mode {mode} {done}", divides.logical_divide(mode, each))
    elif tile is not None:
        tile = tile if isinstance(tile, Layout) else Layout(tile, 1)
        rest = complements.complement(tile, size(layout))
        yield Step(f"what the tile {tile} leaves out of {size(layout)} elements, its complement", rest)
        yield Step("tile and rest side by side", joined([tile, rest]))
        yield Step(f"composed with {layout}", divides.logical_divide(layout, tile))
    over = divides.overcover(layout, divisor)
    if divides.any_over(over):
        yield Step(f"the tiles do not divide: they cover {text(over)} elements too many")


def _logical_product(block: Layout, tiler: Any) -> Iterator[Step]:
    tile = as_tile(tiler)
    if isinstance(tile, tuple):
        for mode, each in algebra.tiled_modes(block, tile):
            yield Step(f"the mode {mode} repeated by {tile_text(each)}", products.logical_product(mode, each))
        return
    if tile is None:
        yield Step("it is not repeated", block)
        return
    tile = tile if isinstance(tile, Layout) else Layout(tile, 1)
    gaps, span = complements.gaps_of(block)
    free = algebra.of_modes([*gaps, (2 if has_runtime((tile.shape, tile.stride)) else max(cosize(tile), 2), span)])
    yield Step(f"copies of {block} can begin where they meet no other: in its gaps, then every {span}", free)
    yield Step(f"take those that {tile} names", products.logical_product(block, tile)[1])
    yield Step("block and copies side by side", products.logical_product(block, tile))


def _right_inverse(layout: Layout) -> Iterator[Step]:
    placed = inverse.placed_modes(layout, "right_inverse")
    chain = inverse.longest_chain(placed)
    modes: list[Mode] = []
    for mode in placed:
        stride, extent, step = mode
        if mode in chain:
            modes.append((extent, step))
            why = f"{extent}:{stride} goes on at index {stride}; its coordinate counts in steps of {step}"
        else:
            why = f"{extent}:{stride} does not begin where the modes that lead the farthest end: left out"
        yield Step(why, algebra.of_modes(modes))


def _left_inverse(layout: Layout) -> Iterator[Step]:
    placed = inverse.placed_modes(layout, "left_inverse")
    for i, (stride, extent, step) in enumerate(placed):
        room = placed[i + 1][0] // stride if i + 1 < len(placed) else extent
        yield Step(f"indices in steps of {stride} are the coordinate of {extent}:{stride}, which counts {step}; "
                   f"there is room for {room} before the next mode", trusted(room, step))
    yield Step("by stride, with what lies below the first at 0", inverse.left_inverse(layout))


def _crd2idx(coord: Any, layout: Any) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield from _crd2idx(coord, layout.inner)
        what = "which gives" if layout.outer is None else f"and {layout.outer} maps that to"
        yield Step(f"the offset {text(layout.offset)} is added, {what} {text(layout(coord))}")
        return
    if isinstance(layout, Swizzle):
        yield Step(f"{layout} reads the bits {layout.mask:#x} and gives {layout(coord)}")
        return
    layout = layout if isinstance(layout, Layout) else Layout(layout)
    full = coord if isinstance(coord, (tuple, list)) else make_identity_layout(layout.shape)(coord)
    if full is not coord and isinstance(full, tuple):
        yield Step(f"{text(coord)} counts colexicographically to {text(full)}")
    for i, mode in enumerate(layout):
        part = full[i] if isinstance(full, (tuple, list)) else full
        yield Step(f"{text(part)} in the mode {mode} is {text(mode(part))}")
    yield Step(f"their sum is {text(coordinates.crd2idx(coord, layout))}")


_STEPS: dict[str, tuple[Callable[..., Any], _Steps]] = {
    "coalesce": (algebra.coalesce, _coalesce),
    "composition": (algebra.composition, _composition),
    "complement": (complements.complement, _complement),
    "logical_divide": (divides.logical_divide, _logical_divide),
    "logical_product": (products.logical_product, _logical_product),
    "right_inverse": (inverse.right_inverse, _right_inverse),
    "left_inverse": (inverse.left_inverse, _left_inverse),
    "crd2idx": (coordinates.crd2idx, _crd2idx),
}
