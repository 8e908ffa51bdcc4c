"""When a result of the algebra is right: checks by brute force, each of the operands and a result.

Like brute.py nothing here uses the algebra.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from flylab.layout import Layout
from tests.layout import brute


def modes(layout: Layout) -> list[Layout]:
    """The top-level modes, each a layout."""
    if not isinstance(layout.shape, tuple):
        return [layout]
    return [Layout(*mode) for mode in zip(layout.shape, layout.stride, strict=True)]


def stacks(layout: Layout) -> bool:
    """Whether each stride is a multiple of what lies below, so that copies can fill all gaps."""
    held = sorted((stride, extent) for extent, stride in brute.flat(layout) if stride)
    return all(stride >= 0 and above % (stride * extent) == 0
               for (stride, extent), (above, _) in zip(held, held[1:], strict=False))


def is_composition(outer: Layout, inner: Layout, result: Layout) -> bool:
    return brute.table(result) == [brute.extended(outer, i) for i in brute.table(inner)]


def is_composition_by_mode(outer: Layout, tile: tuple[Any, ...], result: Layout) -> bool:
    whole = modes(outer)
    found = modes(result) if isinstance(outer.shape, tuple) else [result]
    tiles = [each if isinstance(each, Layout) else Layout(each, 1) for each in tile]
    parts = [is_composition(*each) for each in zip(whole, tiles, found, strict=False)]
    return len(found) == len(whole) and all(parts) and found[len(tile):] == whole[len(tile):]


def is_complement(layout: Layout, target: int, result: Layout) -> bool:
    """Disjoint from the layout and ascending; no gap is left up to `target` where the strides are multiples."""
    own = set(brute.table(layout))
    rest = brute.table(result)
    sums = {i + j for i in own for j in rest}
    if not brute.injective(layout) or rest != sorted(rest) or len(sums) != len(own) * len(rest):
        return False
    if stacks(layout):
        return sums == set(range(len(sums))) and len(sums) >= target
    return max(sums) + max(stride for _, stride in brute.flat(layout)) >= target


def is_right_inverse(layout: Layout, result: Layout) -> bool:
    """It leads back, and no order of whole modes, neighbours merged, leads farther."""
    table, found = brute.table(layout), brute.table(result)
    if any(i >= len(table) or table[i] != at for at, i in enumerate(found)):
        return False
    steps: list[tuple[int, int]] = []
    for extent, stride in brute.flat(layout):
        if steps and steps[-1][0] * steps[-1][1] == stride:
            extent, stride = extent * steps[-1][1], steps.pop()[0]
        steps.append((stride, extent))
    most = 1
    for order in permutations(steps):
        reached = 1
        for stride, extent in order:
            reached *= extent if stride == reached else 1
        most = max(most, reached)
    return len(found) >= most


def is_left_inverse(layout: Layout, result: Layout) -> bool:
    """Of the index of each coordinate it is that coordinate, with broadcast modes at 0."""
    seen: dict[int, int] = {}
    modes = brute.flat(layout)
    for at, coord in enumerate(brute.coords(tuple(extent for extent, _ in modes))):
        if all(digit == 0 for digit, (_, stride) in zip(coord, modes, strict=True) if stride == 0):
            index = sum(digit * stride for digit, (_, stride) in zip(coord, modes, strict=True))
            if seen.setdefault(index, at) != at:
                return False
    return all(brute.extended(result, index) == at for index, at in seen.items())


def is_division(layout: Layout, tile: Layout, result: Layout) -> bool:
    """Copies of the tile at the smallest places where they meet none before, until every element is reached."""
    own, found = brute.table(tile), brute.table(result)
    starts = _starts(own, len(found) // len(own))
    reached = {i + start for start in starts for i in own}
    return reached >= set(range(brute.size(layout.shape))) and \
        found == [brute.extended(layout, i + start) for start in starts for i in own]


def is_division_by_mode(layout: Layout, tile: tuple[int, ...], result: Layout) -> bool:
    """((tile, ...), (rest, ...)): each mode is cut into pieces of the tile's extent, the last one rounded up."""
    whole = modes(layout)
    tiles = [*tile] + [1] * (len(whole) - len(tile))
    rests = [-(-brute.size(mode.shape) // extent) for mode, extent in zip(whole, tiles, strict=True)]
    return brute.table(result) == [
        sum(brute.extended(mode, at + extent * copy) for mode, extent, at, copy
            in zip(whole, tiles, (*inside, *[0] * (len(whole) - len(tile))), where, strict=True))
        for where in brute.coords(tuple(rests)) for inside in brute.coords(tile)]


def _starts(own: list[int], count: int) -> list[int]:
    """The first `count` smallest places where copies of these indices meet none before."""
    taken: set[int] = set()
    starts: list[int] = []
    start = 0
    while len(starts) < count:
        if taken.isdisjoint(i + start for i in own):
            taken |= {i + start for i in own}
            starts.append(start)
        start += 1
    return starts


def is_product(block: Layout, tiler: Layout, result: Layout) -> bool:
    """The block, at the places of `_starts` that the tiler names. For a block that stacks."""
    starts = _starts(brute.table(block), max(brute.table(tiler)) + 1)
    return brute.table(result) == [i + starts[k] for k in brute.table(tiler) for i in brute.table(block)]


def _is_paired(block: Layout, tiler: Layout, result: Layout, first: int) -> bool:
    """Each mode of the result is a pair, of the block's mode and of the copies' mode, or the other way round."""
    rank = max(len(modes(block)), len(modes(tiler)))
    small, copies = ([*modes(each)] + [Layout(1, 0)] * (rank - len(modes(each))) for each in (block, tiler))
    starts = _starts(brute.table(block), max(brute.table(tiler)) + 1)
    pairs = [(a, b) if first == 0 else (b, a) for a, b in zip(small, copies, strict=True)]
    if [len(brute.table(mode)) for mode in modes(result)] != [len(brute.table(a)) * len(brute.table(b))
                                                              for a, b in pairs] and rank > 1:
        return False
    expected = []
    for coord in brute.coords(tuple((brute.size(a.shape), brute.size(b.shape)) for a, b in pairs)):
        inside = sum(brute.extended(mode, pair[first]) for mode, pair in zip(small, coord, strict=True))
        copy = sum(brute.extended(mode, pair[1 - first]) for mode, pair in zip(copies, coord, strict=True))
        expected.append(inside + starts[copy])
    return brute.table(result) == expected


def is_blocked(block: Layout, tiler: Layout, result: Layout) -> bool:
    return _is_paired(block, tiler, result, 0)


def is_raked(block: Layout, tiler: Layout, result: Layout) -> bool:
    return _is_paired(block, tiler, result, 1)


def is_coalesced(layout: Layout, result: Layout) -> bool:
    modes = brute.flat(result)
    return brute.table(result) == brute.table(layout) and all(
        low[0] * low[1] != high[1] for low, high in zip(modes, modes[1:], strict=False))


def is_filtered(layout: Layout, result: Layout) -> bool:
    held = brute.flat(result)
    table = brute.table(layout)
    return sorted(set(table)) == sorted(set(brute.table(result))) and all(stride for _, stride in held)


def is_recast(layout: Layout, old: int, new: int, result: Layout) -> bool:
    """It reaches the same bits, as often."""
    def bits(each: Layout, width: int) -> set[int]:
        return {index * width + bit for index in brute.table(each) for bit in range(width)}

    return bits(layout, old) == bits(result, new) and \
        len(brute.table(layout)) * old == len(brute.table(result)) * new
