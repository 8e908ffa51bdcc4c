"""Swizzles and composed layouts against a bit-by-bit account."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    cosize,
    make_composed_layout,
    parse,
    recast_layout,
    size,
)
from tests.layout import brute
from tests.layout.refusal import refuses


@st.composite
def swizzles(draw: Any) -> Swizzle:
    bits = draw(st.integers(0, 3))
    shift = draw(st.integers(bits, bits + 2))
    return Swizzle(bits, draw(st.integers(0, 3)), draw(st.sampled_from([shift, -shift])))


def bit_by_bit(swizzle: Swizzle, index: int) -> int:
    """Each bit at base + i (or above it, for a negative shift) flips when its partner |shift| away is set."""
    result = index
    for i in range(swizzle.bits):
        low, high = swizzle.base + i, swizzle.base + i + abs(swizzle.shift)
        source, changed = (high, low) if swizzle.shift >= 0 else (low, high)
        if index >> source & 1:
            result ^= 1 << changed
    return result


@given(swizzles())
def test_a_swizzle_flips_the_bits_it_says_and_is_its_own_inverse(swizzle: Swizzle) -> None:
    indices = np.arange(2048)
    mapped = [swizzle(i) for i in range(2048)]
    assert mapped == [bit_by_bit(swizzle, i) for i in range(2048)] == swizzle(indices).tolist()
    assert [swizzle(i) for i in mapped] == list(range(2048))
    assert parse(str(swizzle)) == swizzle == eval(repr(swizzle))
    assert Swizzle.get(swizzle.bits, swizzle.base, swizzle.shift) == swizzle


@given(swizzles(), st.integers(0, 40), brute.layouts())
def test_a_composed_layout_maps_the_offset_sum(swizzle: Swizzle, offset: int, inner: Layout) -> None:
    whole = make_composed_layout(swizzle, offset, inner)
    expected = [bit_by_bit(swizzle, offset + i) for i in brute.table(inner)]
    assert [whole(coord) for coord in brute.coords(inner.shape)] == expected == whole.offsets().tolist()
    assert size(whole) == size(inner) and cosize(whole) == max(expected) + 1
    assert parse(str(whole)) == whole == eval(repr(whole))


@given(brute.layouts(), st.integers(0, 40), brute.layouts())
def test_a_layout_as_outer_map(outer: Layout, offset: int, inner: Layout) -> None:
    whole = make_composed_layout(outer, offset, inner)
    expected = [brute.extended(outer, offset + i) for i in brute.table(inner)]
    assert [whole(i) for i in range(size(inner))] == expected == whole.offsets().tolist()


@given(swizzles().filter(lambda s: s.base > 0), brute.disjoint(most=32, broadcast=False))
def test_recasting_moves_the_swizzle_with_the_elements(swizzle: Swizzle, inner: Layout) -> None:
    whole = ComposedLayout(swizzle, 2, Layout((1, inner.shape), (0, inner.stride)))
    narrow = recast_layout(whole, 16, 8)
    assert {2 * i + part for i in whole.offsets().tolist() for part in (0, 1)} == set(narrow.offsets().tolist())
    assert recast_layout(narrow, 8, 16) == whole


def test_text() -> None:
    tile = make_composed_layout(Swizzle(3, 3, 3), Layout((64, 64), (64, 1)))
    assert str(tile) == "S<3,3,3> o 0 o (64,64):(64,1)" and tile((9, 5)) == 589
    assert str(parse("8:2 o 0 o (2,4):(4,1)")) == "8:2 o 0 o (2,4):(4,1)"
    chain = ComposedLayout(tile, 1, Layout(8, 2))
    assert parse(str(chain)) == chain


REFUSED = [
    (lambda: Swizzle(3, 3, 2), "S<3,3,2>: the 3 bits read and the 3 bits changed overlap"),
    (lambda: Swizzle(-1, 3, 3), "negative number of bits"),
    (lambda: Swizzle(1, 1.5, 3), "base of a swizzle 1.5 is not an integer"),
    (lambda: ComposedLayout(3, 0, Layout(4, 1)), "the outer part 3 is neither a Swizzle nor a Layout"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), 0, (4, 8)), "the inner part (4, 8) is not a Layout"),
    (lambda: make_composed_layout(Swizzle(1, 0, 1)), "takes two or three parts"),
    (lambda: recast_layout(ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4, 1)), 8, 16), "move bits inside an element"),
    (lambda: Swizzle(3, 60, 3), "reaches past bit 64"),
    (lambda: Swizzle(1, 0, 1)("1"), "'1' is not an index"),
    (lambda: Swizzle(1, 0, 1)(None), "None is not an index"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), None, Layout(4)), "the offset None is not one place"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), "x", Layout(4)), "the offset holds 'x'"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), 1.5, Layout(4)), "the offset holds 1.5"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), True, Layout(4)), "the offset holds True"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), np.bool_(True), Layout(4)), "the offset holds"),
    (lambda: ComposedLayout(Layout(8), (1, 2), Layout(4)), "the offset (1,2) is a coordinate, and 4:1 gives indices"),
    (lambda: recast_layout(ComposedLayout(Swizzle(1, 1, 1), 1, Layout(4, 1)), 8, 16), "has no counterpart at 16 bits"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)
