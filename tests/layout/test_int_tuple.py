"""Int tuples, tiles and basis strides against plain counting over their nesting."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flylab.errors import LayoutError
from flylab.layout import (
    Basis,
    ComposedLayout,
    E,
    Layout,
    Swizzle,
    as_int,
    as_int_tuple,
    as_shape,
    ceil_div,
    composition,
    congruent,
    coprofile,
    equal,
    get,
    get_leaves,
    get_scalar,
    get_shape,
    get_stride,
    has_none,
    int_tuple_product,
    int_tuple_product_each,
    int_tuple_product_like,
    is_layout,
    make_coord,
    make_int_tuple,
    make_layout,
    make_layout_tv,
    make_shape,
    make_stride,
    make_tile,
    parse,
    shape_div,
    text,
    tile_text,
)
from tests.layout import brute, right

numbers = st.integers(-9, 9) | st.sampled_from([2**62, 2**63, -(2**70)])


@st.composite
def int_tuples(draw: Any) -> Any:
    """Nested tuples of any integers, large and negative ones among them."""
    def fill(mode: Any) -> Any:
        return tuple(map(fill, mode)) if isinstance(mode, tuple) else draw(numbers)

    return fill(draw(brute.shapes()))


def _profile(value: Any) -> str:
    """How a tuple nests: its text without the numbers."""
    return re.sub(r"[-\w]+", "n", str(value))


def _as_lists(value: Any) -> Any:
    return list(map(_as_lists, value)) if isinstance(value, tuple) else np.int64(value) if abs(value) < 2**62 else value


@given(int_tuples(), int_tuples())
def test_int_tuples_stay_as_they_are(a: Any, b: Any) -> None:
    modes = a if isinstance(a, tuple) and len(a) > 1 else (a,)
    for made in (as_int_tuple(a), as_int_tuple(_as_lists(a)), make_int_tuple(*modes), make_stride(*modes),
                 make_coord(*modes), parse(text(a))):
        assert made == a and repr(made) == repr(a)
    assert list(get_leaves(a)) == [int(number) for number in re.findall(r"-?\d+", str(a))]
    assert congruent(a, b) == (_profile(a) == _profile(b)) and congruent(a, a)
    assert equal(a, b) == (str(a) == str(b)) and equal(a, _as_lists(a))
    negative = [number for number in get_leaves(a) if number < 0]
    for make in (as_shape, make_shape):
        try:
            assert make(a) == a and not negative
        except LayoutError as error:
            assert error.hint and str(min(negative)) in error.message
    if len(get_leaves(a)) == 1:
        assert get_scalar(a) == get_leaves(a)[0] == as_int(get_leaves(a)[0])


@given(int_tuples(), st.data())
def test_products_of_what_a_profile_stands_for(value: Any, data: st.DataObject) -> None:
    def narrowed(mode: Any) -> Any:
        """A profile that nests like the mode, or less deep."""
        if not isinstance(mode, tuple) or data.draw(st.booleans()):
            return 1
        return tuple(map(narrowed, mode))

    def expected(mode: Any, profile: Any) -> Any:
        return tuple(map(expected, mode, profile)) if isinstance(profile, tuple) else brute.size(mode)

    assert int_tuple_product(value) == brute.size(value)
    assert int_tuple_product_each(value) == tuple(
        brute.size(mode) for mode in (value if isinstance(value, tuple) else (value,)))
    profile = narrowed(value)
    assert int_tuple_product_like(value, profile) == expected(value, profile)


def _paths(shape: Any, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    below = [each for i, mode in enumerate(shape) for each in _paths(mode, (*path, i))] if isinstance(
        shape, tuple) else []
    return [path, *below]


@given(brute.layouts(low=-20), st.data())
def test_a_mode_counts_where_the_others_are_0(layout: Layout, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(_paths(layout.shape)))
    extent, mode = get(layout.shape, path), get(layout, *path)
    assert (get_shape(mode), get_stride(mode)) == (extent, get(layout.stride, path))

    def placed(coord: Any, shape: Any, rest: tuple[int, ...]) -> Any:
        """The coordinate of the whole layout that is `coord` in the mode at the path."""
        if not rest:
            return coord
        return tuple(placed(coord, each, rest[1:]) if i == rest[0] else 0 for i, each in enumerate(shape))

    assert brute.table(mode) == [layout(placed(coord, layout.shape, path)) for coord in brute.coords(extent)]
    whole = ComposedLayout(Swizzle(1, 0, 1), 0, layout)
    assert get(whole, path) == ComposedLayout(Swizzle(1, 0, 1), 0, mode) and get_stride(whole) == layout.stride
    assert is_layout(layout) and is_layout(whole) and not is_layout(layout.shape)


@given(st.lists(brute.layouts(most=24, low=-9), min_size=1, max_size=3))
def test_layouts_side_by_side_add_their_indices(modes: list[Layout]) -> None:
    whole = make_layout(*modes)
    tables = [brute.table(mode) for mode in modes]
    assert brute.table(whole) == [sum(table[i] for table, i in zip(tables, at, strict=True))
                                  for at in brute.coords(tuple(map(len, tables)))]
    assert right.modes(whole) == modes


tiles = st.recursive(st.integers(1, 9) | st.none() | brute.layouts(most=16),
                     lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=5)


@given(st.lists(tiles, min_size=1, max_size=3))
def test_a_tile_is_read_as_it_is_written(modes: list[Any]) -> None:
    tile = make_tile(*modes)
    assert tile == tuple(modes) == parse(tile_text(tile))
    assert has_none(tile) == ("*" in tile_text(tile))


@given(brute.layouts(low=-20, high=24), st.lists(st.integers(1, 6) | brute.layouts(most=8, high=6), min_size=1,
                                                 max_size=3).map(tuple))
def test_composition_by_tile_is_mode_by_mode(layout: Layout, tile: tuple[Any, ...]) -> None:
    try:
        result = composition(layout, tile)
    except LayoutError as error:
        assert error.hint and ("is no layout" in error.message or len(tile) > len(right.modes(layout)))
        return
    assert right.is_composition_by_mode(layout, tile, result)


@given(brute.shapes(), st.data())
def test_basis_strides_count_each_number_of_a_coordinate(shape: Any, data: st.DataObject) -> None:
    scales = st.integers(-9, 9).filter(bool)
    extents = [extent for extent in get_leaves(shape)]
    steps = [(data.draw(scales), data.draw(st.integers(0, 2))) for _ in extents]
    rest = iter(steps)

    def fill(mode: Any) -> Any:
        if isinstance(mode, tuple):
            return tuple(map(fill, mode))
        scale, place = next(rest)
        basis = data.draw(st.sampled_from([scale * E(place), E(place) * scale, Basis(scale, (place,)),
                                           -(E(place) * -scale)]))
        assert parse(f"4:{basis}").stride == basis == eval(repr(basis))
        return basis

    layout = Layout(shape, fill(shape))
    width = max(place for _, place in steps) + 1
    assert coprofile(layout) == (0,) * width
    for coord in brute.coords(shape):
        flat = get_leaves(coord)
        assert layout(coord) == tuple(sum(digit * scale for digit, (scale, place) in zip(flat, steps, strict=True)
                                          if place == at) for at in range(width))


@given(brute.shapes(extent=12), st.integers(1, 24))
def test_shape_div_leaves_what_is_not_taken(shape: Any, divisor: int) -> None:
    counts = ceil_div(shape, divisor)
    assert [len(range(0, extent, divisor)) for extent in get_leaves(shape)] == list(get_leaves(counts))
    assert congruent(counts, shape)
    try:
        result = shape_div(shape, divisor)
    except LayoutError as error:
        assert "neither divides the other" in error.message and error.hint
        left = divisor
        for extent in get_leaves(shape):
            if extent % left and left % extent:
                return
            left = 1 if extent % left == 0 else left // extent
        raise AssertionError("it divides") from None
    assert congruent(result, shape)
    assert brute.size(result) == max(brute.size(shape) // divisor, 1)


@given(brute.bijections(most=24), brute.bijections(most=24))
def test_a_tv_layout_of_any_ranks(thr: Layout, val: Layout) -> None:
    tile, tv = make_layout_tv(thr, val)
    rank = max(len(thr), len(val))
    threads, values = ((*each.shape, *(1,) * (rank - len(each))) for each in (thr, val))
    extents = tuple(t * v for t, v in zip(threads, values, strict=True))
    assert tile == (extents if rank > 1 else extents[0])
    for t, thread in zip(brute.table(thr), brute.coords(threads), strict=True):
        for v, value in zip(brute.table(val), brute.coords(values), strict=True):
            place = tuple(p * extent + q for p, q, extent in zip(thread, value, values, strict=True))
            assert tv((t, v)) == brute.coords(extents).index(place)
