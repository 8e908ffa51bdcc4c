"""Layouts that give coordinates: every operation keeps all modes of the coordinates, those of one element too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.errors import LayoutError
from flylab.layout import (
    ComposedLayout,
    E,
    Layout,
    Swizzle,
    coalesce,
    composition,
    coprofile,
    coshape,
    cosize,
    filter,
    flat_divide,
    logical_divide,
    make_identity_layout,
    parse,
    same_map,
    size,
    tiled_divide,
    zipped_divide,
)
from tests.layout import brute


def _flat(coord: Any) -> list[int]:
    return [number for each in coord for number in _flat(each)] if isinstance(coord, tuple) else [coord]


def _listed(layout: Layout) -> list[Any]:
    """The coordinates one by one; the array and the text must agree with them."""
    coords = [layout(i) for i in range(size(layout))]
    assert layout.offsets().tolist() == [_flat(coord) if isinstance(coord, tuple) else coord for coord in coords]
    assert Layout.parse(str(layout)) == layout == Layout(layout.shape, layout.stride)
    return coords


nested = brute.shapes().filter(lambda shape: isinstance(shape, tuple))


@given(nested)
def test_the_fewest_modes_give_the_same_coordinates(shape: Any) -> None:
    identity = make_identity_layout(shape)
    for result in (coalesce(identity), filter(identity), coalesce(identity, (1,) * len(shape))):
        assert _listed(result) == brute.coords(shape)
        assert same_map(result, identity) and coshape(result) == shape
    # Past the end the last mode of more than one element goes on, as it does in the identity layout.
    if size(shape) > 1:
        assert coalesce(identity)(size(shape) + 1) == identity(size(shape) + 1)


@given(nested, brute.layouts(most=32, high=12))
def test_a_composition_is_the_coordinate_of_each_index(shape: Any, inner: Layout) -> None:
    identity, coords = make_identity_layout(shape), brute.coords(shape)
    indices = brute.table(inner)
    try:
        result = composition(identity, inner)
    except LayoutError as error:
        assert error.hint
        return
    if max(indices) < len(coords):
        assert _listed(result) == [coords[i] for i in indices]
    assert coprofile(result) == coprofile(identity)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=3))
def test_tiles_of_coordinates_are_whole_coordinates(modes: list[tuple[int, int]]) -> None:
    tile, rest = zip(*modes, strict=True)
    shape = tuple(t * r for t, r in modes)
    identity = make_identity_layout(shape)
    zipped = zipped_divide(identity, tile)
    expected = [tuple(a + t * b for a, b, t in zip(inside, at, tile, strict=True))
                for at in brute.coords(rest) for inside in brute.coords(tile)]
    for result in (zipped, tiled_divide(identity, tile), flat_divide(identity, tile)):
        assert _listed(result) == expected and coshape(result) == shape
    assert _listed(zipped[0]) == brute.coords(tile) and len(zipped[1](0)) == len(shape)
    by_mode = logical_divide(identity, tile)
    assert all(by_mode(tuple(zip(inside, at, strict=True))) == zipped((inside, at))
               for inside in brute.coords(tile) for at in brute.coords(rest))


def test_unit_modes_by_example() -> None:
    identity = make_identity_layout((128, 1))
    divided = zipped_divide(identity, (32, 1))
    assert divided(5) == (5, 0) and coshape(divided) == (128, 1)
    assert str(divided) == "((32,1),(4,1)):((1E0,1E1),(32E0,1E1))"
    assert str(composition(identity, Layout(128))) == "(128,1):(1E0,1E1)"
    assert composition(make_identity_layout((4, 8)), 4)(3) == (3, 0)
    assert composition(make_identity_layout((4, 8)), Layout(4, 0))(3) == (0, 0)
    assert coalesce(make_identity_layout((1, 1)))(0) == (0, 0) == composition(make_identity_layout((1, 1)), 1)(0)
    assert Layout((4, 1), (E(0), 7 * E(1))) == Layout((4, 1), (E(0), E(1)))
    assert str(logical_divide(identity, Layout(32))) == "(32,(4,1)):(1E0,(32E0,1E1))"


def test_maps_with_other_coordinates_differ() -> None:
    assert not same_map(make_identity_layout((128, 1)), Layout(128, E(0)))
    assert not same_map(make_identity_layout((2, (2, 2))), make_identity_layout((2, 2, 2)))
    assert not same_map(make_identity_layout((4, 8)), Layout(32))
    whole = ComposedLayout(make_identity_layout((2, (2, 2))), 0, Layout(8))
    assert same_map(whole, make_identity_layout((2, (2, 2)))) and not same_map(whole, make_identity_layout((2, 2, 2)))


@given(nested.filter(lambda shape: size(shape) <= 32), st.data())
def test_a_composed_layout_hands_coordinates_on(shape: Any, data: st.DataObject) -> None:
    strides = iter(data.draw(st.lists(st.integers(-20, 20), min_size=4, max_size=4)))

    def fill(mode: Any) -> Any:
        return tuple(map(fill, mode)) if isinstance(mode, tuple) else next(strides)

    outer = Layout(shape, fill(shape))
    offset = data.draw(st.sampled_from(brute.coords(shape)))
    whole = ComposedLayout(outer, offset, make_identity_layout(shape))
    expected = [brute.value(coord, outer.stride) + brute.value(offset, outer.stride) for coord in brute.coords(shape)]
    assert [whole(coord) for coord in brute.coords(shape)] == expected == whole.offsets().tolist()
    assert cosize(whole) == max(0, *[index + 1 for index in expected])
    swizzled = ComposedLayout(ComposedLayout(Swizzle(1, 0, 1), 64, outer), offset, make_identity_layout(shape))
    assert swizzled.offsets().tolist() == [Swizzle(1, 0, 1)(64 + index) for index in expected]


def test_composed_layouts_over_coordinates_by_example() -> None:
    whole = ComposedLayout(Layout((2, 2), (1, 8)), 0, make_identity_layout((2, 2)))
    assert whole.offsets().tolist() == [0, 1, 8, 9] and whole(1, 1) == 9 and cosize(whole) == 10
    back = ComposedLayout(make_identity_layout((2, 3)), 0, Layout(6))
    assert back.offsets().tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]] and cosize(back) == 6


REFUSED = [
    (lambda: composition(Swizzle(2, 0, 2), make_identity_layout((2, 2))), "S<2,0,2> changes bits of an index"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), 0, make_identity_layout((2, 2))), "gives coordinates, such as (0,0)"),
    (lambda: ComposedLayout(Layout((2, 2)), 0, make_identity_layout((2, 2, 2))), "(0,0,0) does not fit the mode (2,2)"),
    (lambda: ComposedLayout(Layout((2, 2)), 5, make_identity_layout((2, 2))), "do not nest alike"),
    (lambda: parse("4:0E0"), "scale 0 counts nothing"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    with pytest.raises(LayoutError) as caught:
        make()
    assert message in caught.value.message and caught.value.hint
