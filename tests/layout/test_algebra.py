"""coalesce, composition and complement against brute force."""

from __future__ import annotations

import re
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
    complement,
    composition,
    congruent,
    filter,
    make_identity_layout,
    parse,
    product,
    same_map,
    size,
)
from tests.layout import brute
from tests.layout.refusal import refuses


@given(brute.layouts(low=-40))
def test_coalesce_is_the_same_map_with_the_fewest_modes(layout: Layout) -> None:
    result = coalesce(layout)
    assert brute.table(result) == brute.table(layout)
    modes = brute.flat(result)
    assert len(modes) == max(len(result), 1) or result == Layout(1, 0)
    assert all(low[0] * low[1] != high[1] for low, high in zip(modes, modes[1:], strict=False))
    past = range(size(layout), 2 * size(layout))
    assert [result(i) for i in past] == [brute.extended(layout, i) for i in past]


@given(brute.layouts(low=-40))
def test_coalesce_by_mode_keeps_each_mode(layout: Layout) -> None:
    result = coalesce(layout, (1,) * len(layout))
    assert [brute.table(mode) for mode in result] == [brute.table(mode) for mode in layout]
    assert all(mode == coalesce(mode) for mode in result)


@given(brute.layouts())
def test_filter_drops_broadcasts(layout: Layout) -> None:
    result = filter(layout)
    assert sorted(set(brute.table(result))) == sorted(set(brute.table(layout)))
    assert 0 not in [stride for _, stride in brute.flat(result)]


@given(brute.layouts(low=-9, high=9), brute.layouts(low=-9, high=9))
def test_same_map_compares_all_indices(a: Layout, b: Layout) -> None:
    assert same_map(a, b) == (brute.table(a) == brute.table(b))
    assert same_map(a, coalesce(a))


def refines(fine: Any, coarse: Any) -> bool:
    """Whether `fine` nests like `coarse`, with each leaf of it an int or split further, of the same size."""
    if isinstance(coarse, tuple):
        return isinstance(fine, tuple) and len(fine) == len(coarse) and all(map(refines, fine, coarse))
    return product(fine) == coarse


def exists(values: list[int], inner: Layout, leaf_values: list[list[int]]) -> bool:
    """Whether some layout nested like `inner` has these values: each leaf is one, and leaves add up."""
    if not all(map(brute.is_some_layout, leaf_values)):
        return False
    extents = [extent for extent, _ in brute.flat(inner)]
    sums = [sum(leaf[digit] for leaf, digit in zip(leaf_values, coord, strict=True))
            for coord in brute.coords(tuple(extents))]
    return sums == values


@given(brute.layouts(high=24), brute.layouts(most=64, high=24))
def test_composition_is_exact_or_refused_with_a_witness(outer: Layout, inner: Layout) -> None:
    values = [brute.extended(outer, i) for i in brute.table(inner)]
    leaf_values = [[brute.extended(outer, i * stride) for i in range(extent)] for extent, stride in brute.flat(inner)]
    try:
        result = composition(outer, inner)
    except LayoutError as error:
        assert not exists(values, inner, leaf_values)
        assert "is no layout" in error.message and error.hint
        _witness(error.message)
    else:
        assert brute.table(result) == values
        assert refines(result.shape, inner.shape)


def _witness(message: str) -> None:
    """The message says what outer(i) is: that must be so, and the value it compares with must be another."""
    layout, index, is_value = re.search(r"it is (\S+)\((\d+)\) = (-?\d+)", message).groups()
    other = re.search(r"(?:have to give|add up to) (-?\d+)$", message)[1]
    assert brute.extended(parse(layout), int(index)) == int(is_value) != int(other)


@given(brute.disjoint(), brute.disjoint(most=24))
def test_composition_of_well_shaped_layouts(outer: Layout, inner: Layout) -> None:
    values = [brute.extended(outer, i) for i in brute.table(inner)]
    try:
        assert brute.table(composition(outer, inner)) == values
    except LayoutError as error:
        _witness(error.message)


@given(brute.shapes(most=48), st.integers(-9, 9), brute.layouts(most=24, low=-9, high=9))
def test_composition_with_one_outer_mode_takes_negative_strides(shape: Any, stride: int, inner: Layout) -> None:
    outer = Layout(size(shape), stride)
    assert brute.table(composition(outer, inner)) == [stride * i if outer.shape > 1 else 0 for i in brute.table(inner)]


@given(brute.layouts(low=-20, high=20), brute.bijections(most=12))
def test_composition_takes_negative_outer_strides(outer: Layout, inner: Layout) -> None:
    try:
        assert brute.table(composition(outer, inner)) == [brute.extended(outer, i) for i in brute.table(inner)]
    except LayoutError as error:
        assert "is no layout" in error.message


@given(brute.layouts(most=48), brute.layouts(most=48, high=8), brute.layouts(most=16, high=8))
def test_composition_is_associative_where_it_exists(a: Layout, b: Layout, c: Layout) -> None:
    try:
        left, right = composition(composition(a, b), c), composition(a, composition(b, c))
    except LayoutError:
        return
    in_range = all(i < size(b) for i in brute.table(c)) and all(i < size(a) for i in brute.table(b))
    if in_range:
        assert brute.table(left) == brute.table(right)


@given(st.data(), brute.shapes(most=48))
def test_composition_through_coordinates_permutes_modes(data: st.DataObject, shape: Any) -> None:
    shape = shape if isinstance(shape, tuple) else (shape,)
    outer = data.draw(brute.layouts(leaves=1).map(lambda _: Layout(shape)))
    order = data.draw(st.permutations(range(len(shape))))
    inner = Layout(tuple(size(shape[i]) for i in order), tuple(E(i) for i in order))
    try:
        result = composition(outer, inner)
    except LayoutError:
        return
    for coord in brute.coords(inner.shape):
        place = [0] * len(shape)
        for i, each in zip(order, coord, strict=True):
            place[i] = each
        assert result(coord) == outer(tuple(place))


@given(brute.layouts(most=32), st.integers(1, 3), st.integers(0, 3))
def test_composition_of_swizzles_keeps_the_outer_map(layout: Layout, bits: int, base: int) -> None:
    swizzle = Swizzle(bits, base, bits)
    whole = composition(swizzle, layout)
    assert whole == ComposedLayout(swizzle, 0, layout)
    assert [whole(i) for i in range(size(layout))] == [swizzle(i) for i in brute.table(layout)]
    assert composition(whole, Layout(1, 0)) == ComposedLayout(swizzle, 0, Layout(1, 0))


def test_composition_by_tile_and_with_coordinates() -> None:
    layout = Layout((12, (4, 8)), (59, (13, 1)))
    assert composition(layout, (Layout(3, 4), Layout(8, 2))) == Layout((3, (2, 4)), (236, (26, 1)))
    assert composition(layout, (3, None)) == Layout((3, (4, 8)), (59, (13, 1))) == composition(layout, (3,))
    assert composition(layout, None) == layout
    identity = make_identity_layout((4, 8))
    assert str(composition(identity, Layout((2, 4), (1, 2)))) == "(2,(2,2)):(1E0,(2E0,1E1))"
    assert composition(Layout((4, 8), (8, 1)), Layout((8, 4), (E(1), E(0)))) == Layout((8, 4), (1, 8))


@given(brute.disjoint(), st.integers(1, 300))
def test_a_complement_makes_an_injective_whole(layout: Layout, target: int) -> None:
    rest = complement(layout, target)
    own = {brute.value(c, layout.stride) for c in brute.coords(layout.shape)}
    together = sorted(i + j for i in own for j in brute.table(rest))
    # Strides of `disjoint` divide each other, so nothing is left out, and the rest is no larger than it must be.
    assert together == list(range(len(together)))
    assert len(together) >= target
    assert brute.table(rest) == sorted(brute.table(rest))
    without_last = rest.shape[:-1] if isinstance(rest.shape, tuple) else 1
    span = brute.size(without_last) * len(own)
    assert len(together) - target < span * max(brute.flat(rest)[-1][0] if brute.flat(rest) else 1, 1)


@given(brute.layouts(most=64, low=-3, high=30), st.integers(1, 100))
def test_a_complement_is_disjoint_or_refused_with_two_coordinates(layout: Layout, target: int) -> None:
    own = {brute.value(c, layout.stride) for c in brute.coords(layout.shape)}
    try:
        rest = complement(layout, target)
    except LayoutError as error:
        assert error.hint
        _check_refusal(layout, error.message)
        return
    assert brute.injective(layout)
    assert len({i + j for i in own for j in brute.table(rest)}) == len(own) * size(rest)


def _check_refusal(layout: Layout, message: str) -> None:
    if "not injective" in message:
        a, b, index = re.search(r"the coordinates (\S+) and (\S+) both have index (\d+)", message).groups()
        assert parse(a) != parse(b)
        assert brute.value(parse(a), layout.stride) == brute.value(parse(b), layout.stride) == int(index)
    elif "negative" in message:
        assert min(stride for _, stride in brute.flat(layout)) < 0
    else:
        # The modes are injective but interleave, as (3,2):(2,3) does.
        assert "begins inside" in message and brute.injective(layout)
        steps = sorted((stride, extent) for extent, stride in brute.flat(layout) if stride)
        assert any(low[0] * low[1] > high[0] for low, high in zip(steps, steps[1:], strict=False))


REFUSED = [
    (lambda: composition(Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3)),
     "at coordinate 4 it is (4,6,8):(2,3,5)(12) = 9; coordinate 2 gives 7"),
    (lambda: composition(Layout((4, 8), (8, 1)), Layout((2, 2), (2, 2))), "at coordinate (1,1)"),
    (lambda: composition(Layout((4, 8), (8, 1)), Layout(2, -1)), "takes negative indices"),
    (lambda: composition(Layout((0, 8), (8, 1)), Layout(2, 1)), "has no elements"),
    (lambda: composition(Layout((4, 8), (8, 1)), (2, 2, 2)), "(2,2,2) has 3 modes, but the layout (4,8):(8,1) has 2"),
    (lambda: composition(Layout((4, 8), (8, 1)), (2, 0)), "tile extent 0 is not positive"),
    (lambda: composition((4, 8), Layout(2, 1)), "outer layout (4,8) is not a layout"),
    (lambda: composition(make_identity_layout((4, 8)), Layout(3, 3)), "layout of coordinates"),
    (lambda: composition(make_identity_layout((4, 8)), Layout((2, 2), (2, 2))), "do not add up"),
    (lambda: composition(Layout((4, 8), (8, 1)), Layout(2, E(2))), "there is no mode 2"),
    (lambda: coalesce(Layout((4, 8), (8, 1)), (1, 1, 1)), "profile (1,1,1) has 3 modes"),
    (lambda: complement(Layout((3, 2), (1, 2)), 12), "the coordinates (2,0) and (0,1) both have index 2"),
    (lambda: complement(Layout((2, 2), (1, 1)), 24), "the coordinates (1,0) and (0,1) both have index 1"),
    (lambda: complement(Layout((3, 2), (2, 3)), 24), "its mode 2:3 begins inside"),
    (lambda: complement(Layout(4, -1), 24), "the stride -1 is negative"),
    (lambda: complement(Layout((4, 0), (1, 4)), 24), "it has no elements"),
    (lambda: complement(make_identity_layout((4, 8)), 24), "gives coordinates"),
    (lambda: filter((4, 8)), "(4,8) is not a layout"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)


def test_composition_stays_inside_one_mode() -> None:
    assert composition(Layout((4, 2, 8), (3, 12, 97)), Layout(3, 3)) == Layout(3, 9)
    assert composition(Layout((8, 8), (8, 1)), Layout(3, 3)) == Layout(3, 24)
    assert composition(Layout((5, 7), (3, 1)), Layout(2, 7)) == Layout(2, 7)
    assert congruent(composition(Layout(20, 2), Layout((5, 4), (4, 1))).shape, (5, 4))


def test_large_layouts_are_decided_or_refused_without_counting_for_ever() -> None:
    big = 10**9
    assert composition(Layout((big, 4), (1, 10 * big)), Layout(2 * big, 1)) == Layout((big, 2), (1, 10 * big))
    with pytest.raises(LayoutError, match="too many coordinates"):
        composition(Layout((big, 4), (1, 10 * big)), Layout(big + 1, 1))
    with pytest.raises(LayoutError, match="do not add up"):
        composition(Layout((big, 4), (1, 10 * big)), Layout((big, 2), (1, 1)))
    assert complement(Layout((big, 4), (4, 1)), 8 * big) == Layout(2, 4 * big)
    with pytest.raises(LayoutError, match="begins inside"):
        complement(Layout((big, 4), (1, 1)), 8 * big)
    assert same_map(Layout((big, 4), (1, big)), Layout(4 * big, 1))
