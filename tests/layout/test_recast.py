"""Recasting against the bits: a recast layout reaches exactly the bits of the memory, or is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.errors import LayoutError
from flylab.layout import ComposedLayout, Layout, Swizzle, make_identity_layout, prepend, recast_layout, size
from tests.layout import brute

widths = st.sampled_from([4, 6, 8, 16, 32])


def bits(layout: Layout, width: int) -> set[int]:
    """Every bit of the memory that a layout of elements of `width` bits reaches."""
    return {index * width + bit for index in brute.table(layout) for bit in range(width)}


@given(brute.layouts(low=-6, high=12), widths, widths)
def test_a_recast_layout_reaches_the_same_bits(layout: Layout, old: int, new: int) -> None:
    try:
        result = recast_layout(layout, old, new)
    except LayoutError as error:
        assert error.hint
        _check_refusal(layout, error.message)
    else:
        assert bits(result, new) == bits(layout, old)
        assert size(result) * new == size(layout) * old


def _check_refusal(layout: Layout, message: str) -> None:
    refused, factor = re.match(r"recast_layout of (\S+) to elements of (?:1/)?(\d+)", message).groups()
    held = set(brute.table(Layout.parse(refused)))
    if "also holds index" in message:
        index, missing = map(int, re.search(r"with index (-?\d+) also holds index (-?\d+)", message).groups())
        assert index in held and missing not in held and index // int(factor) == missing // int(factor)
    elif "no mode has stride 1" in message:
        assert all(stride != 1 and extent != 1 for extent, stride in _leaves(layout.shape, layout.stride))
    else:
        assert "only together" in message
        assert all(index // int(factor) * int(factor) + part in held for index in held for part in range(int(factor)))


def _leaves(shape: Any, stride: Any) -> list[tuple[int, int]]:
    if isinstance(shape, tuple):
        return [leaf for pair in zip(shape, stride, strict=True) for leaf in _leaves(*pair)]
    return [(shape, stride)]


@given(brute.disjoint(most=32, broadcast=False), st.sampled_from([2, 4]))
def test_narrow_elements_widen_again(layout: Layout, factor: int) -> None:
    layout = Layout((1, layout.shape), (0, layout.stride))
    assert recast_layout(recast_layout(layout, 8 * factor, 8), 8, 8 * factor) == layout


CASES = [
    ("(2,2):(1,1)", 16, 8, "(4,2):(1,2)"),
    ("1:0", 32, 8, "4:1"),
    ("(1,2):(0,2)", 32, 8, "(4,2):(1,8)"),
    ("(2,4):(1,2)", 8, 32, "(1,2):(0,1)"),
    ("(4,2):(1,-4)", 8, 16, "(2,2):(1,-2)"),
    ("(0,4):(1,3)", 8, 32, "(0,4):(1,3)"),
]


@pytest.mark.parametrize(("written", "old", "new", "result"), CASES)
def test_by_example(written: str, old: int, new: int, result: str) -> None:
    layout = Layout.parse(written)
    assert str(recast_layout(layout, old, new)) == result
    assert bits(layout, old) == bits(Layout.parse(result), new)


def test_a_swizzled_tile_to_bytes_and_back() -> None:
    """T16: the identity at each coordinate; in bytes, each half is two of them side by side."""
    tile = ComposedLayout(Swizzle(2, 3, 3), 0, Layout((8, 32), (32, 1)))
    as_bytes = recast_layout(tile, 16, 8)
    again = recast_layout(as_bytes, 8, 16)
    for i in range(8):
        for j in range(32):
            half = i * 32 + j
            half ^= (half >> 6 & 3) << 3
            assert tile(i, j) == again(i, j) == half
            assert [as_bytes(i, 2 * j + part) for part in range(2)] == [2 * half, 2 * half + 1]


def test_three_bytes_are_no_halves() -> None:
    """T16."""
    with pytest.raises(LayoutError, match=r"\(3,8\):\(1,3\)") as caught:
        recast_layout(Layout((3, 8), (1, 3)), 8, 16)
    assert caught.value.hint


def test_the_hint_can_be_followed() -> None:
    with pytest.raises(LayoutError, match="part 1 of element 0") as caught:
        recast_layout(Layout(2, 2), 32, 8)
    assert "prepend(layout, make_layout(1))" in caught.value.hint
    assert recast_layout(prepend(Layout(2, 2), Layout(1)), 32, 8) == Layout((4, 2), (1, 8))


REFUSED = [
    (lambda: recast_layout(Layout(3, 1), 8, 16), "the one with index 2 also holds index 3"),
    (lambda: recast_layout(Layout((2, 4), (3, 6)), 8, 16), "the one with index 0 also holds index 1"),
    (lambda: recast_layout(Layout(8, 2), 8, 16), "the one with index 0 also holds index 1"),
    (lambda: recast_layout(Layout(4, -1), 16, 8), "no mode has stride 1"),
    (lambda: recast_layout(Layout((3, 2), (1, 1)), 8, 16), "only together"),
    (lambda: recast_layout(Layout(2**40, 2), 8, 16), "do not fill whole elements"),
    (lambda: recast_layout(Layout(4, 1), 0, 16), "widths are positive"),
    (lambda: recast_layout(make_identity_layout((4, 4)), 8, 16), "gives coordinates"),
    (lambda: recast_layout(5, 8, 16), "5 is not a layout"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    with pytest.raises(LayoutError) as caught:
        make()
    assert message in caught.value.message and caught.value.hint
