"""The divides against brute force: what each (tile, rest) coordinate reaches, and what is covered too far."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.errors import LayoutError
from flylab.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    add_coordinates,
    complement,
    composition,
    flat_divide,
    logical_divide,
    make_identity_layout,
    make_layout,
    overcover,
    size,
    tiled_divide,
    zipped_divide,
)
from tests.layout import brute
from tests.layout.refusal import refuses


@st.composite
def _by_extents(draw: Any) -> tuple[Layout, tuple[int | None, ...]]:
    """A flat layout and a tile for its first modes; extents that divide and others, and None."""
    extents = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    strides = [draw(st.integers(-20, 40)) for _ in extents]
    count = draw(st.integers(1, len(extents)))
    return Layout(tuple(extents), tuple(strides)), tuple(draw(st.none() | st.integers(1, 8)) for _ in range(count))


def _rests(layout: Layout, tile: tuple[int | None, ...]) -> tuple[list[int], list[int]]:
    """Extents of tiles and of rests, rounded up, worked out by hand."""
    tiles = [1 if each is None else each for each in tile]
    padded = tiles + [1] * (len(layout.shape) - len(tiles))
    return tiles, [-(-extent // each) for extent, each in zip(layout.shape, padded, strict=True)]


@given(_by_extents())
def test_by_extents_each_mode_is_split_in_place(case: tuple[Layout, tuple[int | None, ...]]) -> None:
    layout, tile = case
    tiles, rests = _rests(layout, tile)
    zipped = zipped_divide(layout, tile)
    shape = (_one_or(tiles), _one_or(rests))
    assert zipped.shape == shape
    for at in brute.coords(tuple(tiles)):
        for where in brute.coords(tuple(rests)):
            position = [r * (tiles[i] if i < len(tiles) else 1) + (at[i] if i < len(at) else 0)
                        for i, r in enumerate(where)]
            expected = sum(p * s for p, s in zip(position, layout.stride, strict=True))
            assert zipped((_one_or(at), _one_or(where))) == expected


def _one_or(items: Any) -> Any:
    return items[0] if len(items) == 1 else tuple(items)


@given(_by_extents())
def test_the_four_forms_hold_the_same_modes(case: tuple[Layout, tuple[int | None, ...]]) -> None:
    layout, tile = case
    tiles, rests = zipped_divide(layout, tile)
    tiled, flat, logical = tiled_divide(layout, tile), flat_divide(layout, tile), logical_divide(layout, tile)
    assert list(tiled) == [tiles, *rests]
    assert list(flat) == [*tiles, *rests]
    pairs = [mode if each is None else [mode[0], mode[1]] for mode, each in zip(logical, tile, strict=False)]
    for each, pair, first, rest, whole in zip(tile, pairs, tiles, rests, layout, strict=False):
        assert pair == (whole if each is None else [first, rest])
    assert list(logical)[len(tile):] == list(layout)[len(tile):]


@given(_by_extents())
def test_overcover_counts_what_is_too_much(case: tuple[Layout, tuple[int | None, ...]]) -> None:
    layout, tile = case
    tiles, rests = _rests(layout, tile)
    too_much = [each * rest - extent for each, rest, extent in zip(tiles, rests, layout.shape, strict=False)]
    too_much += [0] * (len(layout.shape) - len(tiles))
    assert overcover(layout, tile) == _one_or(too_much)
    for divide in (logical_divide, zipped_divide, tiled_divide, flat_divide):
        assert divide(layout, tile).overcover == (_one_or(too_much) if any(too_much) else 0)
        # It says something about the result and is no part of it.
        assert divide(layout, tile) == Layout.parse(str(divide(layout, tile)))


@given(brute.layouts(most=96, low=-20), brute.disjoint(most=16))
def test_by_a_layout_each_element_is_reached_once(layout: Layout, tile: Layout) -> None:
    own = {brute.value(c, tile.stride) for c in brute.coords(tile.shape)}
    try:
        result = logical_divide(layout, tile)
    except LayoutError as error:
        # With the divided layout's modes merged into one there is nothing to cross, and no reason to refuse.
        assert "is no layout" in error.message and len(brute.flat(layout)) > 1
        return
    rest = complement(tile, size(layout))
    first = [brute.extended(layout, i) for i in brute.table(tile)]
    assert brute.table(result[0]) == first
    assert brute.table(result) == [brute.extended(layout, i + j) for j in brute.table(rest) for i in brute.table(tile)]
    covered = sorted(i + j for i in own for j in brute.table(rest))
    assert covered == list(range(size(layout) + result.overcover if result.overcover else len(covered)))
    assert overcover(layout, tile) == len(covered) - size(layout)


@given(brute.layouts(most=96), st.integers(1, 20))
def test_an_int_is_the_layout_of_so_many(layout: Layout, extent: int) -> None:
    try:
        expected = logical_divide(layout, Layout(extent, 1))
    except LayoutError as error:
        with pytest.raises(LayoutError) as caught:
            logical_divide(layout, extent)
        assert caught.value.message == error.message
        return
    assert logical_divide(layout, extent) == zipped_divide(layout, extent) == expected
    # The short way of a tile that cuts through one mode at most gives the modes that the long way gives.
    rest = complement(Layout(extent), size(layout))
    assert expected == composition(layout, make_layout(Layout(extent), rest))
    assert brute.table(expected[0]) == [brute.extended(layout, i) for i in range(extent)]


@given(_by_extents())
def test_coordinates_divide_alike(case: tuple[Layout, tuple[int | None, ...]]) -> None:
    layout, tile = case
    identity = make_identity_layout(layout.shape)
    divided, plain = zipped_divide(identity, tile), zipped_divide(layout, tile)
    for i in range(size(plain)):
        coord = add_coordinates(divided(i), (0,) * len(layout))
        assert sum(c * s for c, s in zip(coord, layout.stride, strict=True)) == plain(i)


@given(_by_extents())
def test_a_swizzled_layout_divides_inside(case: tuple[Layout, tuple[int | None, ...]]) -> None:
    layout, tile = case
    layout = Layout(layout.shape, tuple(map(abs, layout.stride)))
    swizzle = Swizzle(2, 0, 3)
    assert zipped_divide(ComposedLayout(swizzle, 3, layout), tile) == \
        ComposedLayout(swizzle, 3, zipped_divide(layout, tile))


def test_nested_tiles_divide_nested_modes() -> None:
    layout = Layout(((4, 6), 8), ((1, 4), 24))
    assert logical_divide(layout, ((2, 3), None)) == Layout((((2, 2), (3, 2)), 8), (((1, 2), (4, 12)), 24))
    assert zipped_divide(layout, ((2, 3), 4)) == Layout((((2, 3), 4), ((2, 2), 2)), (((1, 4), 24), ((2, 12), 96)))
    assert overcover(Layout(((5, 6), 8), ((1, 5), 30)), ((2, 3), 4)) == ((1, 0), 0)


def test_vectors_divide_as_kernels_do() -> None:
    vector = Layout(1000, 1)
    by_block = logical_divide(vector, Layout(256, 1))
    assert by_block == Layout((256, 4), (1, 256)) and by_block.overcover == 24
    assert logical_divide(Layout(256, 1), Layout(1, 1)) == Layout((1, 256), (0, 1))
    assert zipped_divide(vector, (256,)) == by_block
    assert logical_divide(Layout(0, 1), Layout(256, 1)) == Layout((256, 0), (1, 256))
    assert logical_divide(Layout((8,), (1,)), (2,)) == Layout(((2, 4),), ((1, 2),))


REFUSED = [
    (lambda: zipped_divide(Layout((8, 16), (16, 1)), (4, 4, 2)), "the tile (4,4,2) has 3 modes, but the layout"),
    (lambda: logical_divide(Layout(8, 1), (4, 4)), "the tile (4,4) has 2 modes, but the layout 8:1 has 1"),
    (lambda: logical_divide(Layout((5, 8), (1, 10)), Layout(3, 1)), "is no layout"),
    (lambda: logical_divide(Layout(24, 1), Layout((2, 2), (1, 3))), "no copy of the tile reaches index 2"),
    (lambda: logical_divide(Layout(24, 1), Layout((3, 2), (1, 2))), "(2,0) and (0,1) both have index 2"),
    (lambda: logical_divide(Layout(24, 1), Layout(4, -1)), "stride -1 is negative"),
    (lambda: logical_divide(Layout(24, 1), 0), "tile extent 0 is not positive"),
    (lambda: logical_divide(Layout(24, 1), (2.5,)), "2.5 is not an integer"),
    (lambda: logical_divide(Layout(24, 1), Layout(0, 1)), "has no elements"),
    (lambda: zipped_divide((8, 16), (4, 4)), "(8,16) is not a layout"),
    (lambda: overcover((8, 16), (4, 4)), "(8,16) is not a layout"),
    (lambda: logical_divide(Layout(24, 1), ()), "needs at least one mode"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)
