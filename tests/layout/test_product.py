"""The products against brute force: each copy lies at the next place where it meets no other."""

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
    blocked_product,
    cosize,
    flat_product,
    logical_product,
    make_identity_layout,
    raked_product,
    size,
    tiled_product,
    zipped_product,
)
from tests.layout import brute
from tests.layout.refusal import refuses


def _places(block: Layout, count: int) -> list[int]:
    """The first `count` smallest starts at which copies of the block meet none before."""
    own = set(brute.table(block))
    taken: set[int] = set()
    starts: list[int] = []
    start = 0
    while len(starts) < count:
        if not any(i + start in taken for i in own):
            taken |= {i + start for i in own}
            starts.append(start)
        start += 1
    return starts


@given(brute.disjoint(most=24), brute.layouts(most=16, high=6, extent=4))
def test_copies_lie_side_by_side_and_follow_the_tiler(block: Layout, tiler: Layout) -> None:
    starts = _places(block, cosize(tiler))
    try:
        result = logical_product(block, tiler)
    except LayoutError as error:
        assert "is no layout" in error.message
        return
    expected = [i + starts[k] for k in brute.table(tiler) for i in brute.table(block)]
    assert brute.table(result) == expected
    assert result[0] == block and size(result[1]) == size(tiler)


@given(brute.disjoint(most=24), brute.layouts(most=16, high=6, extent=4))
def test_the_forms_hold_the_same_modes(block: Layout, tiler: Layout) -> None:
    try:
        first, copies = logical_product(block, tiler)
    except LayoutError as error:
        assert "is no layout" in error.message
        return
    assert list(zipped_product(block, tiler)) == [first, copies]
    assert list(tiled_product(block, tiler)) == [first, *copies]
    assert list(flat_product(block, tiler)) == [*first, *copies]


@given(brute.bijections(most=24), brute.bijections(most=24))
def test_blocked_and_raked_pair_the_modes(block: Layout, tiler: Layout) -> None:
    rank = max(len(block), len(tiler))
    blocked, raked = blocked_product(block, tiler), raked_product(block, tiler)
    small, copies = _padded(block, rank), _padded(tiler, rank)
    for at in brute.coords(tuple(e for e, _ in small)):
        for copy in brute.coords(tuple(e for e, _ in copies)):
            inside = sum(c * s for c, (_, s) in zip(at, small, strict=True))
            index = inside + size(block) * sum(c * s for c, (_, s) in zip(copy, copies, strict=True))
            assert blocked(tuple(zip(at, copy, strict=True))) == index
            assert raked(tuple(zip(copy, at, strict=True))) == index


def _padded(layout: Layout, rank: int) -> list[tuple[int, int]]:
    return list(zip(layout.shape, layout.stride, strict=True)) + [(1, 0)] * (rank - len(layout))


@given(st.lists(st.tuples(brute.disjoint(most=12), st.integers(1, 5)), min_size=1, max_size=2))
def test_by_a_tuple_each_mode_is_repeated(case: list[tuple[Layout, int]]) -> None:
    block = Layout(tuple(mode.shape for mode, _ in case), tuple(mode.stride for mode, _ in case))
    tiler = tuple(count for _, count in case)
    try:
        result = logical_product(block, tiler)
    except LayoutError as error:
        assert "is no layout" in error.message
        return
    for product, (mode, count) in zip(result, case, strict=True):
        assert product == logical_product(mode, count) == logical_product(mode, Layout(count, 1))


def test_blocks_with_gaps_that_cannot_be_filled_are_repeated_past_their_end() -> None:
    padded = Layout((4, 8), (1, 5))
    assert logical_product(padded, Layout(2, 1)) == Layout(((4, 8), 2), ((1, 5), 40))
    assert blocked_product(padded, Layout((1, 3), (0, 1))) == Layout(((4, 1), (8, 3)), ((1, 0), (5, 40)))


def test_products_by_mode_and_of_swizzled_blocks() -> None:
    layout = Layout((2, 5), (5, 1))
    assert zipped_product(layout, (Layout(3, 5), Layout(4, 6))) == Layout(((2, 5), (3, 4)), ((5, 1), (10, 30)))
    block = ComposedLayout(Swizzle(2, 3, 3), 0, Layout((8, 32), (32, 1)))
    assert str(blocked_product(block, Layout((8, 2), (1, 8)))) == "S<2,3,3> o 0 o ((8,8),(32,2)):((32,256),(1,2048))"


REFUSED = [
    (lambda: logical_product(Layout((3, 2), (1, 2)), Layout(2, 1)), "(2,0) and (0,1) both have index 2"),
    (lambda: logical_product(Layout(4, 2), Layout(3, 1)), "is no layout"),
    (lambda: logical_product(Layout(4, -1), Layout(3, 1)), "stride -1 is negative"),
    (lambda: logical_product(make_identity_layout((4, 8)), Layout(3, 1)), "gives coordinates"),
    (lambda: logical_product((4, 8), Layout(3, 1)), "block (4,8) is not a layout"),
    (lambda: blocked_product(Layout((4, 8), (1, 4)), (2, 2)), "tiler (2,2) is not a layout"),
    (lambda: logical_product(Layout((4, 8), (1, 4)), (2, 2, 2)), "has 3 modes, but the layout"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)
