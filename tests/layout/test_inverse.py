"""Inverses and thread-value layouts against brute force."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from flylab.errors import LayoutError
from flylab.layout import (
    Layout,
    left_inverse,
    make_identity_layout,
    make_layout_tv,
    make_ordered_layout,
    parse,
    right_inverse,
    size,
    zipped_divide,
)
from tests.layout import brute, right
from tests.layout.refusal import refuses


@given(brute.layouts(low=-10, high=10))
def test_right_inverse_leads_back(layout: Layout) -> None:
    inverse = right_inverse(layout)
    assert [layout(i) for i in brute.table(inverse)] == list(range(size(inverse)))
    assert max(brute.table(inverse)) < size(layout)


@given(brute.disjoint())
def test_right_inverse_goes_on_to_the_first_gap(layout: Layout) -> None:
    reached = set(brute.table(layout))
    assert size(right_inverse(layout)) == next(i for i in range(len(reached) + 1) if i not in reached)


@given(brute.disjoint())
def test_left_inverse_gives_the_coordinate(layout: Layout) -> None:
    inverse = left_inverse(layout)
    held = {coord: index for coord, index in enumerate(brute.table(layout))}
    first: dict[int, int] = {}
    for coord, index in held.items():
        first.setdefault(index, coord)
    assert {index: inverse(index) for index in first} == first


@given(brute.layouts(most=64, low=-5, high=20))
def test_left_inverse_leads_back_or_is_refused(layout: Layout) -> None:
    try:
        inverse = left_inverse(layout)
    except LayoutError as error:
        assert error.hint
        if "not injective" in error.message:
            a, b, index = re.search(r"the coordinates (\S+) and (\S+) both have index (\d+)", error.message).groups()
            assert parse(a) != parse(b)
            assert brute.value(parse(a), layout.stride) == brute.value(parse(b), layout.stride) == int(index)
        else:
            assert "does not start at a multiple" in error.message or "is negative" in error.message
        return
    assert brute.injective(layout)
    for index in brute.table(layout):
        assert layout(inverse(index)) == index


@given(brute.layouts(high=10))
def test_right_inverse_is_the_longest_of_whole_modes(layout: Layout) -> None:
    assert right.is_right_inverse(layout, right_inverse(layout))


def test_of_modes_with_one_stride_the_one_that_leads_farther_is_taken() -> None:
    # 4:1 ends at index 4, where no mode begins; 2:1 goes on with 8:2.
    assert right_inverse(Layout((4, 8, 2), (1, 2, 1))) == Layout((2, 8), (32, 4))
    assert right_inverse(Layout((2, 4), (1, 1))) == Layout(4, 2)


def test_left_inverse_by_rounded_quotients_where_they_lead_back() -> None:
    # 5 is no multiple of 2, and 5 // 2 = 2 all the same gives the digits of 0, 2, 5 and 7.
    assert left_inverse(Layout((2, 2), (2, 5))) == Layout((2, 4), (0, 1))
    assert [left_inverse(Layout((2, 2), (2, 5)))(i) for i in (0, 2, 5, 7)] == [0, 1, 2, 3]
    for large in (2**40, 2**70):
        with pytest.raises(LayoutError, match="does not start at a multiple"):
            left_inverse(Layout((large, 2), (2, 2 * large + 1)))


@given(brute.bijections(rank=2, most=24), brute.bijections(rank=2, most=24))
def test_a_tv_layout_places_each_value_of_each_thread(thr: Layout, val: Layout) -> None:
    tile, tv = make_layout_tv(thr, val)
    assert tile == tuple(t * v for t, v in zip(thr.shape, val.shape, strict=True))
    where_thread = {index: coord for coord, index in zip(brute.coords(thr.shape), brute.table(thr), strict=True)}
    where_value = {index: coord for coord, index in zip(brute.coords(val.shape), brute.table(val), strict=True)}
    assert size(tv[0]) == size(thr) and size(tv[1]) == size(val) and len(tv) == 2
    for t, thread in where_thread.items():
        for v, value in where_value.items():
            row, column = (p * extent + q for p, q, extent in zip(thread, value, val.shape, strict=True))
            assert tv((t, v)) == row + column * tile[0]


def test_a_tv_layout_of_one_mode_has_a_tile_of_one() -> None:
    tile, tv = make_layout_tv(Layout(64, 1), Layout(4, 1))
    assert (tile, tv) == (256, Layout((64, 4), (4, 1)))
    assert zipped_divide(Layout(1024, 1), tile) == Layout((256, 4), (1, 256))


def test_a_tv_layout_of_ordered_layouts() -> None:
    thr, val = make_ordered_layout((8, 16), (1, 0)), make_ordered_layout((1, 4), (0, 1))
    assert make_layout_tv(thr, val) == ((8, 64), Layout(((16, 8), 4), ((32, 1), 8)))


REFUSED = [
    (lambda: left_inverse(Layout((3, 2), (1, 2))), "the coordinates (2,0) and (0,1) both have index 2"),
    (lambda: left_inverse(Layout((3, 2), (2, 3))), "the mode 2:3 does not start at a multiple of the mode 3:2"),
    (lambda: left_inverse(Layout(4, -1)), "the stride -1 is negative"),
    (lambda: left_inverse(Layout((4, 0), (1, 4))), "it has no elements"),
    (lambda: right_inverse(make_identity_layout((4, 8))), "gives coordinates, not indices"),
    (lambda: right_inverse((4, 8)), "(4,8) is not a layout"),
    (lambda: make_layout_tv(Layout((4, 2), (1, 0)), Layout(4, 1)),
     "the thread layout (4,2):(1,0) does not number its 8 positions 0 to 7: number 4 is missing"),
    (lambda: make_layout_tv(Layout(4, 1), Layout(4, 2)), "the value layout 4:2 does not number its 4 positions"),
    (lambda: make_layout_tv((4, 2), Layout(4, 2)), "thread layout (4,2) is not a layout"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)
