"""Coordinates to indices and back, slices, and runtime values in coordinates."""

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
    add_coordinates,
    coordinates_of,
    crd2idx,
    dice,
    get_1d_coord,
    get_flat_coord,
    idx2crd,
    make_identity_layout,
    rank,
    size,
    slice,
    slice_and_offset,
)
from tests.layout import brute
from tests.layout.opaque import Opaque, revealed
from tests.layout.refusal import refuses


def _partly_flat(draw: Any, coord: Any, shape: Any) -> Any:
    """The same coordinate with some nested parts given as one integer."""
    if not isinstance(coord, tuple):
        return coord
    if draw(st.booleans()):
        return brute.coords(shape).index(coord)
    return tuple(_partly_flat(draw, each, mode) for each, mode in zip(coord, shape, strict=True))


@st.composite
def _located(draw: Any) -> tuple[Layout, Any, Any]:
    layout = draw(brute.layouts(low=-20))
    coord = draw(st.sampled_from(brute.coords(layout.shape)))
    return layout, coord, _partly_flat(draw, coord, layout.shape)


@given(_located())
def test_a_coordinate_may_be_flat_at_any_level(located: tuple[Layout, Any, Any]) -> None:
    layout, coord, partly = located
    assert crd2idx(partly, layout) == brute.value(coord, layout.stride)


@given(_located())
def test_runtime_values_need_only_the_promised_operations(located: tuple[Layout, Any, Any]) -> None:
    layout, coord, partly = located
    operations: list[str] = []

    def hide(each: Any) -> Any:
        return tuple(map(hide, each)) if isinstance(each, tuple) else Opaque(each, operations)

    assert revealed(crd2idx(hide(coord), layout)) == brute.value(coord, layout.stride)
    assert set(operations) <= {"*", "+"}
    assert revealed(crd2idx(hide(partly), layout)) == brute.value(coord, layout.stride)


def test_a_runtime_value_is_used_no_more_than_needed() -> None:
    operations: list[str] = []
    x = Opaque(3, operations)
    assert crd2idx((x, 2), Layout((4, 8), (0, 1))) == 2
    assert crd2idx((x, 0), Layout((4, 8), (1, 4))) is x
    assert crd2idx(x, Layout((4, 8), (1, 4))) is x
    assert slice_and_offset(Layout((4, 8), (8, 1)), (None, x)) == (Layout(4, 8), x)
    assert operations == []
    layout, offset = slice_and_offset(Layout(((4, 2), (8, 3)), ((1, 4), (8, 64))), (None, (x, Opaque(2, operations))))
    assert layout == Layout((4, 2), (1, 4)) and offset.hidden == 3 * 8 + 2 * 64
    assert operations == ["*", "*", "+"]


@st.composite
def _sliced(draw: Any) -> tuple[Layout, Any, Any]:
    """A layout, a coordinate of it, and the coordinate with None in some places."""
    layout = draw(brute.layouts(low=-20))
    coord = draw(st.sampled_from(brute.coords(layout.shape)))

    def mask(each: Any) -> Any:
        if draw(st.booleans()):
            return tuple(map(mask, each)) if isinstance(each, tuple) else each
        return None

    return layout, coord, mask(coord)


def _kept(coord: Any, masked: Any) -> list[Any]:
    if masked is None:
        return [coord]
    if isinstance(masked, tuple):
        return [kept for pair in zip(coord, masked, strict=True) for kept in _kept(*pair)]
    return []


@given(_sliced())
def test_a_slice_and_its_offset_make_up_the_index(sliced: tuple[Layout, Any, Any]) -> None:
    layout, coord, masked = sliced
    part, offset = slice_and_offset(layout, masked)
    kept = _kept(coord, masked)
    assert slice(layout, masked) == part
    assert size(part) == brute.size(tuple(_kept(layout.shape, masked)))
    inside = tuple(kept) if len(kept) != 1 else kept[0]
    assert (part(inside) if kept else part(0)) + offset == brute.value(coord, layout.stride)


@given(_sliced())
def test_slice_and_dice_share_the_modes(sliced: tuple[Layout, Any, Any]) -> None:
    layout, _, masked = sliced
    assert size(slice(layout, masked)) * size(dice(layout, masked)) == size(layout)


@given(_sliced())
def test_the_offset_of_a_runtime_slice_is_the_same(sliced: tuple[Layout, Any, Any]) -> None:
    layout, _, masked = sliced

    def hide(each: Any) -> Any:
        return tuple(map(hide, each)) if isinstance(each, tuple) else None if each is None else Opaque(each, [])

    part, offset = slice_and_offset(layout, hide(masked))
    assert (part, revealed(offset)) == slice_and_offset(layout, masked)


@given(_sliced())
def test_a_slice_of_a_swizzled_layout_keeps_its_place(sliced: tuple[Layout, Any, Any]) -> None:
    layout, coord, masked = sliced
    layout = Layout(layout.shape, _positive(layout.stride))
    whole = ComposedLayout(Swizzle(2, 1, 3), 5, layout)
    kept = _kept(coord, masked)
    inside = tuple(kept) if len(kept) != 1 else kept[0]
    assert slice(whole, masked)(inside if kept else 0) == whole(coord)


def _positive(stride: Any) -> Any:
    return tuple(map(_positive, stride)) if isinstance(stride, tuple) else abs(stride)


@given(_sliced())
def test_a_slice_of_coordinates_has_a_coordinate_as_offset(sliced: tuple[Layout, Any, Any]) -> None:
    layout, coord, masked = sliced
    identity = make_identity_layout(layout.shape)
    part, offset = slice_and_offset(identity, masked)
    kept = _kept(coord, masked)
    inside = tuple(kept) if len(kept) != 1 else kept[0]
    # A sum of basis strides may lack trailing modes, which are 0.
    assert add_coordinates(add_coordinates(offset, part(inside) if kept else 0), _zeros(coord)) == coord


def _zeros(coord: Any) -> Any:
    return tuple(map(_zeros, coord)) if isinstance(coord, tuple) else 0


@given(brute.disjoint())
def test_idx2crd_inverts_by_stride(layout: Layout) -> None:
    for index in set(brute.table(layout)):
        assert brute.value(idx2crd(index, layout), layout.stride) == index


@given(brute.layouts(most=64))
def test_idx2crd_inverts_or_refuses(layout: Layout) -> None:
    try:
        coords = {index: idx2crd(index, layout) for index in brute.table(layout)}
    except LayoutError as error:
        assert error.hint and str(layout) in error.message
        steps = sorted((stride, extent) for extent, stride in brute.flat(layout) if stride)
        assert any(high[0] < low[0] * low[1] or high[0] <= sum((e - 1) * s for s, e in steps[:i + 1])
                   for i, (low, high) in enumerate(zip(steps, steps[1:], strict=False)))
        return
    for index, coord in coords.items():
        assert brute.value(coord, layout.stride) == index and coord in brute.coords(layout.shape)


@given(brute.disjoint(), st.data())
def test_idx2crd_of_a_runtime_index_is_the_same(layout: Layout, data: st.DataObject) -> None:
    index = data.draw(st.sampled_from(brute.table(layout)))
    assert revealed(idx2crd(Opaque(index, []), layout)) == idx2crd(index, layout)


@given(brute.shapes())
def test_idx2crd_of_a_shape_is_colexicographic_and_wraps(shape: Any) -> None:
    coords = brute.coords(shape)
    assert [idx2crd(i, shape) for i in range(2 * len(coords))] == coords * 2
    assert coordinates_of(shape) == coords == coordinates_of(list(shape) if isinstance(shape, tuple) else shape)
    assert [crd2idx(coord, shape) for coord in coords] == list(range(len(coords)))


@given(brute.disjoint())
def test_flat_and_1d_coordinates_of_an_index(layout: Layout) -> None:
    coords = brute.coords(layout.shape)
    for i, index in enumerate(brute.table(layout)):
        one = get_1d_coord(index, layout)
        assert brute.value(coords[one], layout.stride) == index
        assert one == i or not brute.injective(layout) or 0 in [s for _, s in brute.flat(layout)]
        flat = get_flat_coord(index, layout)
        assert len(flat) == rank(layout) and layout(flat if len(flat) > 1 else flat[0]) == index


def test_the_examples_of_the_contract() -> None:
    assert idx2crd(70, Layout((4, 64), (64, 1))) == (1, 6)
    assert idx2crd(9, Layout((4, 8), (2, 8))) == (0, 1) and idx2crd(10, Layout((4, 8), (2, 8))) == (1, 1)
    assert idx2crd(7, Layout((4, 8), (1, 5))) == (2, 1)
    # A stride far above may be no multiple of what lies below: 5 is the coordinate (0,0,1), not (1,0,1).
    assert idx2crd(5, Layout((2, 2, 2), (1, 2, 5))) == (0, 0, 1)
    operations: list[str] = []
    tid = Opaque(70, operations)
    assert revealed(idx2crd(tid, Layout((4, 64), (64, 1)))) == (1, 6)
    assert operations == ["//", "%", "%"]


def test_slicing_shapes_and_single_elements() -> None:
    assert slice((4, 8, 16), (None, 3, None)) == (4, 16) and dice((4, 8, 16), (None, 3, None)) == (8,)
    assert slice((4, (8, 2)), None) == (4, (8, 2))
    assert slice_and_offset(Layout((4, 8), (1, 4)), (1, 3)) == (Layout(1, 0), 13)
    assert slice_and_offset(Layout((4, 8), (1, 4)), 13) == (Layout(1, 0), 13)
    assert slice(Layout((4, (8, 2)), (1, (4, 32))), (0, (None, 1))) == Layout(8, 4)
    assert slice_and_offset(make_identity_layout((4, 8)), (None, 3)) == (Layout(4, E(0)), (0, 3))


REFUSED = [
    (lambda: slice(Layout((4, 8), (1, 4)), (None, 3, 1)), "coordinate (*,3,1) does not fit the mode (4,8)"),
    (lambda: slice(Layout((4, 8), (1, 4)), (None, (3, 1))), "coordinate (3,1) does not fit the mode 8"),
    (lambda: slice((4, 8), (1, 2)), "keeps no mode of (4,8)"),
    (lambda: dice((4, 8), (None, None)), "fixes no mode of (4,8)"),
    (lambda: slice_and_offset(Layout((4, 8), (1, 4)), (None, 1.5)), "1.5 is not a coordinate"),
    (lambda: crd2idx((1, None), Layout((4, 8), (1, 4))), "None stands for a whole mode"),
    (lambda: idx2crd(3, Layout((4, 8), (1, 1))), "cannot be told apart"),
    (lambda: idx2crd(3, Layout((4, 8), (1, 3))), "cannot be told apart"),
    (lambda: idx2crd(3, Layout((4, 8), (-1, 4))), "stride -1 is negative"),
    (lambda: idx2crd(3, Layout((4, 0), (1, 4))), "has no elements"),
    (lambda: idx2crd(3, make_identity_layout((4, 8))), "gives coordinates, not indices"),
    (lambda: idx2crd(3, ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4, 1))), "not a division by strides"),
    (lambda: add_coordinates((1, 2), 3), "do not nest alike"),
    (lambda: slice(Layout((4, 8)), ("a", None)), "'a' is not a coordinate of (4,8):(1,4)"),
    (lambda: slice(Layout((4, 8)), (1.5, None)), "1.5 is not a coordinate of (4,8):(1,4)"),
    (lambda: slice((4, 8), ("a", None)), "'a' is not a coordinate of (4,8)"),
    (lambda: slice("ab", None), "'ab' is not an integer"),
    (lambda: dice((4, 8), (True, None)), "True is not a coordinate"),
    (lambda: idx2crd((1, 2), (4, 8)), "(1,2) is not a coordinate"),
    (lambda: get_flat_coord(1, ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4))), "not a division by strides"),
    (lambda: get_1d_coord(1, ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4))), "not a division by strides"),
    (lambda: ComposedLayout(Swizzle(1, 0, 1), Opaque(1, []), Layout(4)).offsets(), "known only while its kernel runs"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)
