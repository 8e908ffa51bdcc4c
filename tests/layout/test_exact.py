"""Numbers past 64 bits are exact, what is too large is refused at once, and arrays agree with single coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    coordinates_of,
    cosize,
    crd2idx,
    idx2crd,
    make_identity_layout,
    same_map,
    size,
)
from tests.layout import brute
from tests.layout.refusal import at_once

BIG = 2**62
wide = st.sampled_from([0, 1, 2, 3, BIG - 1, BIG, 2 * BIG, 3 * BIG, 10**30]).flatmap(lambda s: st.sampled_from([s, -s]))


@st.composite
def large(draw: Any) -> Layout:
    """Small layouts with strides around and past 64 bits."""
    extents = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    return Layout(extents, tuple(draw(wide) for _ in extents))


def _values(result: Any, count: int) -> list[int]:
    """The result on an array of coordinates: an array, or one number where all are alike."""
    return [int(number) for number in np.broadcast_to(np.asarray(result, dtype=object), (count,))]


@given(large())
def test_offsets_are_exact(layout: Layout) -> None:
    indices = layout.offsets()
    assert indices.tolist() == brute.table(layout)
    assert indices.dtype in (np.int64, object)
    count = 2 * size(layout)
    assert _values(layout(np.arange(count)), count) == [brute.extended(layout, i) for i in range(count)]


@given(large(), large())
def test_same_map_is_exact(a: Layout, b: Layout) -> None:
    assert same_map(a, b) == (brute.table(a) == brute.table(b))
    assert same_map(a, coalesce(a))


@given(large(), brute.layouts(most=24, high=12))
def test_composition_is_exact_or_refused(outer: Layout, inner: Layout) -> None:
    values = [brute.extended(outer, i) for i in brute.table(inner)]
    try:
        assert brute.table(composition(outer, inner)) == values
    except LayoutError as error:
        # Modulo 2**64 many of these would seem to be layouts.
        leaves = [[brute.extended(outer, i * stride) for i in range(extent)] for extent, stride in brute.flat(inner)]
        sums = [sum(leaf[digit] for leaf, digit in zip(leaves, coord, strict=True))
                for coord in brute.coords(tuple(extent for extent, _ in brute.flat(inner)))]
        assert error.hint and (sums != values or not all(map(brute.is_some_layout, leaves)))


@given(large(), wide)
def test_composed_layouts_are_exact(inner: Layout, offset: int) -> None:
    for outer in (Layout((3, 4), (5, 2**61)), Swizzle(2, 3, 3), Swizzle(1, 60, -2)):
        whole = ComposedLayout(outer, offset, inner)
        expected = [outer(offset + i) for i in brute.table(inner)]
        assert whole.offsets().tolist() == expected == _values(whole(np.arange(size(inner))), size(inner))
        assert cosize(whole) == max(0, *[index + 1 for index in expected])


@given(brute.layouts(low=-30), st.data())
def test_arrays_of_numbers_stand_for_each_coordinate(layout: Layout, data: st.DataObject) -> None:
    coords = np.array(data.draw(st.lists(st.integers(0, 200), min_size=1)), dtype=np.uint8)
    assert _values(crd2idx(coords, layout), len(coords)) == [layout(int(i)) for i in coords]
    if size(layout):
        back = crd2idx(idx2crd(coords, layout.shape), layout)
        assert _values(back, len(coords)) == [layout(int(i) % size(layout)) for i in coords]


def test_small_numbers_stay_int64() -> None:
    assert Layout((4, 8), (8, 1)).offsets().dtype == np.int64
    assert ComposedLayout(Swizzle(3, 3, 3), 5, Layout((8, 8))).offsets().dtype == np.int64
    assert make_identity_layout((4, 8)).offsets().dtype == np.int64
    assert Layout(4, 2)(np.arange(4)).dtype == np.int64 and Swizzle(1, 0, 1)(np.arange(4)).dtype == np.int64
    assert Layout(4, BIG * E(0)).offsets().tolist() == [[0], [BIG], [2 * BIG], [3 * BIG]]


def test_the_wrapped_values_of_64_bits_by_example() -> None:
    assert Layout(4, BIG).offsets().tolist() == [0, BIG, 2 * BIG, 3 * BIG]
    assert not same_map(Layout((3, 2, 2), (5, BIG, 2 * BIG)), Layout((3, 2, 2), (5, BIG, -2 * BIG)))
    with pytest.raises(LayoutError, match=r"at coordinate 3 it is .*\(6\) = -4611686018427387904"):
        composition(Layout((5, 4), (2**61, -3 * 2**61)), Layout(10, 2))
    assert Layout(2, 10**30).offsets().tolist() == [0, 10**30]


LARGE = Layout((2**40, 2), (1, 5))
REFUSED = [
    (lambda: LARGE.offsets(), "2199023255552 numbers, and at most 16777216 are listed"),
    (lambda: make_identity_layout((2**20, 2**20)).offsets(), "are listed at once"),
    (lambda: cosize(ComposedLayout(Swizzle(3, 3, 3), 0, Layout(2**30))), "1073741824 numbers"),
    (lambda: Layout(2**22, 10**30).offsets(), "do not fit 64 bits"),
    (lambda: coordinates_of(2**40), "1099511627776 coordinates, too many to list"),
    (lambda: Layout.parse("4:1E99999999"), "E(99999999) lies past the 65536 modes"),
    (lambda: Layout(4, E(10**8)), "lies past the 65536 modes"),
    (lambda: same_map(ComposedLayout(Swizzle(1, 0, 1), 0, LARGE), LARGE), "are listed at once"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_too_large_is_refusedat_once(make: Any, message: str) -> None:
    error = at_once(make)
    assert isinstance(error, LayoutError) and message in error.message and error.hint


def test_what_is_large_and_can_be_decided_is_answered() -> None:
    assert at_once(lambda: same_map(LARGE, Layout((2**40, 2), (1, 6)))) is False
    assert at_once(lambda: same_map(LARGE, Layout(((2, 2**39), 2), ((1, 2), 5)))) is True
    whole = ComposedLayout(Swizzle(1, 0, 1), 0, LARGE)
    assert at_once(lambda: same_map(whole, ComposedLayout(Swizzle(1, 0, 1), 0, LARGE))) is True


def test_many_modes_are_counted_once_each() -> None:
    shape = (2,) * 3000
    digits = at_once(lambda: idx2crd(0b1011, shape))
    assert digits[:4] == (1, 1, 0, 1) and sum(digits) == 3 and len(digits) == 3000
    assert at_once(lambda: make_identity_layout((2,) + (1,) * 2999).offsets()).shape == (2, 3000)
