"""Modes picked, grouped and added; ordered layouts; int tuple arithmetic; division of shapes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.errors import LayoutError
from flylab.layout import (
    Layout,
    append,
    ceil_div,
    coshape,
    cosize,
    depth,
    elem_less,
    get,
    get_leaves,
    get_scalar,
    group,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_product_like,
    int_tuple_sub,
    make_coord,
    make_fragment_layout_like,
    make_identity_layout,
    make_int_tuple,
    make_layout_like,
    make_ordered_layout,
    make_shape,
    make_stride,
    make_tile,
    parse,
    prepend,
    product,
    rank,
    same_map,
    select,
    shape_div,
    size,
    take,
    tile_text,
    tile_to_shape,
)
from tests.layout import brute
from tests.layout.refusal import refuses


@given(brute.layouts(low=-9), st.data())
def test_modes_are_moved_whole(layout: Layout, data: st.DataObject) -> None:
    modes = list(layout)
    count = rank(layout)
    picks = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4))
    assert list(select(layout, picks)) == [modes[i] for i in picks]
    begin = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(begin + 1, count))
    assert list(take(layout, begin, end)) == modes[begin:end]
    grouped = group(layout, begin, end)
    assert list(grouped) == [*modes[:begin], take(layout, begin, end), *modes[end:]]
    assert brute.table(grouped) == brute.table(layout)
    other = Layout((2, 3), (1, 7))
    assert list(append(layout, other)) == [*modes, other] and list(prepend(layout, other)) == [other, *modes]
    assert rank(append(layout, Layout(1, 0), n=count + 2)) == count + 2
    # A shape moves as its layout does.
    if isinstance(layout.shape, tuple):
        assert select(layout.shape, picks) == select(layout, picks).shape
        assert group(layout.shape, begin, end) == grouped.shape


@given(brute.shapes(most=64), st.data())
def test_an_ordered_layout_is_compact_in_that_order(shape: Any, data: st.DataObject) -> None:
    def orders(mode: Any) -> Any:
        return tuple(map(orders, mode)) if isinstance(mode, tuple) else data.draw(st.integers(0, 3))

    order = orders(shape)
    layout = make_ordered_layout(shape, order)
    assert sorted(brute.table(layout)) == list(range(size(shape)))
    steps = [(rank, stride) for rank, stride, extent in zip(
        get_leaves(order), get_leaves(layout.stride), get_leaves(shape), strict=True) if extent > 1]
    assert [stride for _, stride in sorted(steps, key=lambda step: step[0])] == sorted(s for _, s in steps)


@given(brute.layouts(most=64, low=0, high=50))
def test_layouts_like_another_are_compact(layout: Layout) -> None:
    like, fragment = make_layout_like(layout), make_fragment_layout_like(layout)
    assert like.shape == fragment.shape == layout.shape
    assert sorted(brute.table(fragment)) == list(range(size(layout)))
    assert sorted(set(brute.table(like))) == list(range(cosize(like)))
    own = [(a, b) for (_, a), (_, b) in zip(brute.flat(layout), brute.flat(like), strict=True)]
    assert all((a == 0) == (b == 0) for a, b in own)
    ordered = [b for a, b in sorted(own, key=lambda pair: pair[0]) if a]
    assert ordered == sorted(ordered)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3), st.data())
def test_tiling_to_a_shape_repeats_the_block(modes: list[tuple[int, int]], data: st.DataObject) -> None:
    extents, counts = zip(*modes, strict=True)
    block = make_ordered_layout(extents, data.draw(st.permutations(range(len(extents)))))
    order = tuple(data.draw(st.permutations(range(len(extents)))))
    target = tuple(e * c for e, c in modes)
    result = tile_to_shape(block, target, order)
    copies = make_ordered_layout(counts, order)
    for coord in brute.coords(target):
        inside = brute.value(tuple(c % e for c, e in zip(coord, extents, strict=True)), block.stride)
        copy = brute.value(tuple(c // e for c, e in zip(coord, extents, strict=True)), copies.stride)
        assert result(coord) == inside + copy * size(block)


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=4), st.data())
def test_int_tuple_arithmetic_is_leaf_by_leaf(values: list[int], data: st.DataObject) -> None:
    others = data.draw(st.lists(st.integers(-9, 9).filter(bool), min_size=len(values), max_size=len(values)))
    a, b = (tuple(values), 5), (tuple(others), 2)
    for function, expected in ((int_tuple_add, int.__add__), (int_tuple_sub, int.__sub__), (int_tuple_mul, int.__mul__),
                               (int_tuple_div, int.__floordiv__), (int_tuple_mod, int.__mod__)):
        assert function(a, b) == (tuple(map(expected, values, others)), expected(5, 2))
    assert elem_less(a, b) == (all(x < y for x, y in zip(values, others, strict=True)) and 5 < 2)


@given(st.integers(1, 60), st.integers(1, 60))
def test_shape_div_takes_elements_from_the_front(extent: int, divisor: int) -> None:
    assert ceil_div(extent, divisor) == len(range(0, extent, divisor))
    try:
        result = shape_div(extent, divisor)
    except LayoutError:
        assert extent % divisor and divisor % extent
    else:
        assert result == max(extent // divisor, 1)


@given(brute.layouts(low=-9))
def test_coshape_is_the_reach_of_each_mode(layout: Layout) -> None:
    assert coshape(layout) == cosize(layout)
    assert coshape(make_identity_layout(layout.shape)) == layout.shape
    assert depth(layout) == _deepest(str(layout.shape))


def _deepest(text: str) -> int:
    """How many brackets are open at once, at most."""
    return max(text[:i].count("(") - text[:i].count(")") for i in range(len(text) + 1))


def test_constructors_give_plain_values() -> None:
    assert make_shape(9, (4, 8)) == (9, (4, 8)) and make_shape(8) == 8 == make_shape(make_shape(8))
    assert make_stride(1, (4, 8)) == (1, (4, 8)) and make_coord(None, 3) == (None, 3)
    assert make_int_tuple([4, 2]) == (4, 2)
    assert tile_text(make_tile(None, 8)) == "[*|8]" and parse("[4:2|[2|*]]") == make_tile(Layout(4, 2), (2, None))
    assert get(make_shape(4, (8, 2)), [1, 0]) == 8 and get(Layout((4, (8, 2)), (1, (4, 32))), 1, 1) == Layout(2, 32)
    assert int_tuple_product_like(((2, 2), (3, 4)), (1, (1, 1))) == (4, (3, 4)) and get_scalar((5,)) == 5


REFUSED = [
    (lambda: select((4, 8), [2]), "there is no mode 2 in (4,8), which has 2 modes"),
    (lambda: select((4, 8), []), "picks no mode of (4,8)"),
    (lambda: take((4, 8), 1, 1), "modes 1 to 1 are no part of (4,8)"),
    (lambda: group(Layout((4, 8), (1, 4)), 1, 3), "modes 1 to 3 are no part of (4,8):(1,4)"),
    (lambda: append((4, 8), 1, n=1), "(4,8) has 2 modes already, more than 1"),
    (lambda: append(Layout(4, 1), 8), "mode 8 is not a layout"),
    (lambda: ceil_div((4, 8), (1, 0)), "the divisor is not positive"),
    (lambda: ceil_div((4, 8), (1, 2, 3)), "(4,8) and (1,2,3) do not nest alike"),
    (lambda: shape_div(12, 5), "shape_div of 12 by 5: neither divides the other"),
    (lambda: shape_div((12, 8), (4, 3)), "shape_div of 8 by 3"),
    (lambda: shape_div((12, 8), (4, 2, 1)), "shape (12,8) and divisor (4,2,1) do not nest alike"),
    (lambda: shape_div(12, (4, 3)), "the extent 12 cannot be divided by the modes (4,3)"),
    (lambda: int_tuple_add(3, (1, 2)), "3 and (1,2) do not nest alike"),
    (lambda: int_tuple_div((1, 2), (1, 0)), "(1,2) cannot be divided by (1,0)"),
    (lambda: int_tuple_product_like((2, 3), (1, 1, 1)), "(2,3) has not the modes of the profile (1,1,1)"),
    (lambda: get((4, 8), 2), "(4,8) has 2 modes, so there is no mode 2"),
    (lambda: get((4, 8), 1.0), "mode 1.0 is not an integer"),
    (lambda: get_scalar((4, 8)), "(4,8) has 2 leaves, not one"),
    (lambda: make_shape(4, -8), "(4,-8) has the negative extent -8"),
    (lambda: make_tile(), "a tile needs at least one mode"),
    (lambda: make_tile(4, -8), "tile extent -8 is not positive"),
    (lambda: make_ordered_layout((4, 8), (0, 1, 2)), "order (0,1,2) does not fit shape (4,8)"),
    (lambda: make_ordered_layout((4, 8), (0, (1, 2))), "order (1,2) nests deeper than the extent 8"),
    (lambda: make_layout_like(make_identity_layout((4, 8))), "gives coordinates, which have no order"),
    (lambda: size((-2, 3)), "(-2,3) has the negative extent -2"),
    (lambda: select(Layout(4), None), "None is no list of modes"),
    (lambda: select((4, 8), "01"), "mode '0' is not an integer"),
    (lambda: append((4,), 1, 10**8), "100000000 modes are more than the 65536"),
    (lambda: product("x"), "'x' is not an integer"),
    (lambda: make_coord("x", 1), "the coordinate holds 'x'"),
    (lambda: same_map(3, 3), "3 is not a layout"),
    (lambda: tile_to_shape(Layout((2, 4), (4, 1)), (4, 10)), "10 is no multiple of 4"),
    (lambda: tile_to_shape(Layout((2, 4), (4, 1)), (4, 8, 2)), "has 2 modes, the shape (4,8,2) has 3"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)
