"""Coordinate tensors: each element of their parts is the coordinate that tables of the whole say it is."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.layout as algebra
from flylab.layout import (
    ComposedLayout,
    E,
    Layout,
    Swizzle,
    coalesce,
    composed_get_inner,
    composed_get_offset,
    composed_get_outer,
    composition,
    coprofile,
    coshape,
    cosize,
    crd2idx,
    dice,
    filter,
    get,
    idx2crd,
    make_composed_layout,
    make_identity_layout,
    make_layout_tv,
    make_view,
    parse,
    recast_layout,
    same_map,
    slice,
    slice_and_offset,
    zipped_divide,
)
from tests.layout import brute
from tests.layout.opaque import Opaque, revealed
from tests.layout.refusal import refuses

nested = brute.shapes(most=64).filter(lambda shape: isinstance(shape, tuple))


def _plus(a: Any, b: Any) -> Any:
    """The sum of two coordinates that nest alike."""
    return tuple(map(_plus, a, b)) if isinstance(a, tuple) else a + b


def _flat(coord: Any) -> list[int]:
    return [number for each in coord for number in _flat(each)] if isinstance(coord, tuple) else [coord]


def _listed(tensor: ComposedLayout) -> list[Any]:
    """The coordinates one by one; the array, the text and the pickle must agree with them."""
    coords = [tensor(coord) for coord in brute.coords(tensor.shape)]
    assert tensor.offsets().tolist() == [_flat(coord) if isinstance(coord, tuple) else coord for coord in coords]
    assert [tensor(i) for i in range(len(coords))] == coords
    for again in (parse(str(tensor)), eval(repr(tensor)), pickle.loads(pickle.dumps(tensor))):
        assert again == tensor and hash(again) == hash(tensor) and str(again) == str(tensor)
    return coords


def _places(shape: Any, low: int = -9) -> st.SearchStrategy[Any]:
    """Coordinates, nested like the shape, from `low` to 40."""
    return st.tuples(*map(_places, shape)) if isinstance(shape, tuple) else st.integers(low, 40)


def _hidden(coord: Any) -> Any:
    return tuple(map(_hidden, coord)) if isinstance(coord, tuple) else Opaque(coord, [])


@given(nested, st.data())
def test_the_element_at_a_coordinate_is_that_coordinate_moved(shape: Any, data: st.DataObject) -> None:
    offset = data.draw(_places(shape))
    tensor = make_view(offset, make_identity_layout(shape))
    expected = [_plus(coord, offset) for coord in brute.coords(shape)]
    assert _listed(tensor) == expected == [crd2idx(coord, tensor) for coord in brute.coords(shape)]
    assert [tensor[coord] for coord in brute.coords(shape)] == expected
    assert _listed(coalesce(tensor)) == _listed(filter(tensor)) == expected
    # A mode by itself leaves the others at the offset.
    for i, mode in enumerate(shape):
        ours = [_plus(tuple(c if k == i else brute.coords(other)[0] for k, other in enumerate(shape)), offset)
                for c in brute.coords(mode)]
        assert _listed(get(tensor, i)) == _listed(list(tensor)[i]) == ours
    assert coshape(tensor) == _reached(expected)
    assert cosize(tensor) == brute.size(coshape(tensor))
    assert coprofile(tensor) == coprofile(tensor.inner) and algebra.size(tensor) == brute.size(shape)
    assert algebra.get_shape(tensor) == shape and algebra.rank(tensor) == len(shape) == len(tensor)


def _reached(coords: list[Any]) -> Any:
    """One more than the largest of each number."""
    if isinstance(coords[0], tuple):
        return tuple(_reached([each[i] for each in coords]) for i in range(len(coords[0])))
    return max(0, max(coords) + 1)


@given(st.integers(-20, 40), brute.layouts(low=-20))
def test_an_index_as_offset_moves_every_index(offset: int, layout: Layout) -> None:
    moved = make_view(offset, layout)
    expected = [offset + index for index in brute.table(layout)]
    assert _listed(moved) == expected and cosize(moved) == coshape(moved) == max(0, max(expected) + 1)
    assert coprofile(moved) == 0 and same_map(moved, layout) is (offset == 0)


modes = st.lists(st.tuples(st.integers(1, 5), st.one_of(st.none(), st.integers(1, 4))), min_size=2, max_size=3)


@given(modes, st.data())
def test_tiles_are_the_coordinates_they_cover(modes: list[tuple[int, int | None]], data: st.DataObject) -> None:
    shape, tile = zip(*modes, strict=True)
    offset = data.draw(_places(shape))
    tensor = make_view(offset, make_identity_layout(shape))
    # A mode with None has tiles of one element. Where tiles do not divide, the last one lies partly outside.
    steps = tuple(each or 1 for each in tile)
    rests = tuple(-(-extent // step) for extent, step in zip(shape, steps, strict=True))
    expected = [_plus(offset, tuple(a + step * b for a, b, step in zip(inside, at, steps, strict=True)))
                for at in brute.coords(rests) for inside in brute.coords(steps)]
    zipped = zipped_divide(tensor, tile)
    for result in (zipped, algebra.tiled_divide(tensor, tile), algebra.flat_divide(tensor, tile)):
        assert _listed(result) == expected
    block = data.draw(st.sampled_from(brute.coords(rests)))
    begin = brute.coords(rests).index(block) * brute.size(steps)
    assert _listed(slice(zipped, (None, block))) == expected[begin:begin + brute.size(steps)]
    part = tuple(map(min, steps, shape))
    assert _listed(composition(tensor, part)) == [_plus(offset, inside) for inside in brute.coords(part)]


@st.composite
def cuts(draw: Any, shape: Any) -> tuple[Any, Any, Any]:
    """A slicing coordinate, the same with its numbers hidden, and the whole coordinates of what it keeps, in order."""
    if isinstance(shape, tuple) and draw(st.booleans()):
        entries, hidden, modes = zip(*[draw(cuts(mode)) for mode in shape], strict=True)
        whole: list[Any] = [()]
        for mode in modes:
            whole = [(*before, each) for each in mode for before in whole]
        return entries, hidden, whole
    if draw(st.booleans()):
        return None, None, brute.coords(shape)
    number = draw(st.integers(0, brute.size(shape) - 1))
    return number, Opaque(number, []), [brute.coords(shape)[number]]


@given(nested, st.data())
def test_slices_are_the_coordinates_they_keep(shape: Any, data: st.DataObject) -> None:
    offset = data.draw(_places(shape))
    cut, hidden, whole = data.draw(cuts(shape))
    expected = [_plus(each, offset) for each in whole]
    identity = make_identity_layout(shape)
    part = slice(make_view(offset, identity), cut)
    assert _listed(part) == expected
    inner, begin = slice_and_offset(make_view(offset, identity), cut)
    assert inner == part.inner and begin == part.offset == expected[0]
    # What the fixed modes and the offset are may be known only in the kernel.
    for tensor in (make_view(offset, identity), make_view(_hidden(offset), identity)):
        runtime = slice(tensor, hidden)
        assert runtime.inner == part.inner
        assert [revealed(runtime(i)) for i in range(len(expected))] == expected


bijections = brute.bijections(most=12, rank=2)


@given(bijections, bijections, st.tuples(st.integers(1, 3), st.integers(1, 3)), st.data())
def test_a_partition_tells_each_value_where_it_is(thr: Layout, val: Layout, blocks: Any, data: st.DataObject) -> None:
    tile, tv = make_layout_tv(thr, val)
    shape = tuple(extent * count for extent, count in zip(tile, blocks, strict=True))
    block = data.draw(st.sampled_from(brute.coords(blocks)))
    thread, offset = data.draw(st.integers(0, brute.size(thr.shape) - 1)), data.draw(_places((1, 1)))
    # By hand: position (i, j) of the tile belongs to the thread at (i // values, j // values).
    owned = {}
    for i, j in brute.coords(tile):
        rows, columns = val.shape
        t = brute.value((i // rows, j // columns), thr.stride)
        v = brute.value((i % rows, j % columns), val.stride)
        owned[t, v] = (offset[0] + block[0] * tile[0] + i, offset[1] + block[1] * tile[1] + j)
    values = range(brute.size(val.shape))
    tensor = make_view(offset, make_identity_layout(shape))
    whole = composition(slice(zipped_divide(tensor, tile), (None, block)), tv)
    assert [whole(t, v) for t, v in owned] == list(owned.values())
    assert _listed(slice(whole, (thread, None))) == [owned[thread, v] for v in values]
    tensor = make_view(_hidden(offset), make_identity_layout(shape))
    mine = slice(zipped_divide(tensor, tile), (None, _hidden(block)))
    mine = slice(composition(mine, tv), (Opaque(thread, []), None))
    assert [revealed(mine(v)) for v in values] == [owned[thread, v] for v in values]


def test_a_runtime_offset_costs_one_addition_a_mode() -> None:
    operations: list[str] = []
    tensor = make_view((0, 0), make_identity_layout((64, 96)))
    tile = slice(zipped_divide(tensor, (16, 32)), (None, (Opaque(2, operations), Opaque(1, operations))))
    assert operations == ["*", "*"] and revealed(tile(3, 5)) == (35, 37) and operations == ["*", "*", "+", "+"]


def test_modes_are_picked_grouped_and_added_with_the_offset_kept() -> None:
    tensor = make_view((10, 20, 30), make_identity_layout((2, 3, 4)))
    written = {
        "(10,20,30) o (4,2):(1E2,1E0)": algebra.select(tensor, [2, 0]),
        "(10,20,30) o (3,4):(1E1,1E2)": algebra.take(tensor, 1),
        "(10,20,30) o (2,(3,4)):(1E0,(1E1,1E2))": algebra.group(tensor, 1),
        "(10,20,30) o (2,3,4,8):(1E0,1E1,1E2,0)": algebra.append(tensor, Layout(8, 0)),
        "(10,20,30) o (5,2,3,4):(4E2,1E0,1E1,1E2)": algebra.prepend(tensor, Layout(5, 4 * E(2))),
        "(10,20,30) o 3:1E1": dice(tensor, (None, 1, None)),
        "(10,21,30) o (2,4):(1E0,1E2)": slice(tensor, (None, 1, None)),
        "(11,22,33) o 1:0": slice(tensor, (1, 2, 3)),
        "(10,20,30) o (2,(1,3),4):(1E0,(1E1,1E1),1E2)": algebra.logical_divide(tensor, (None, 1)),
    }
    for expected, result in written.items():
        assert str(result) == expected and parse(expected) == result
        _listed(result)
    assert slice(tensor, (1, 2, 3))(0) == tensor(1, 2, 3) == (11, 22, 33)
    assert slice(Layout((4, 8)), (3, 5)) == Layout(1, 0)  # as a bare layout has it
    assert algebra.get_stride(tensor) == (E(0), E(1), E(2)) and algebra.depth(tensor) == 1
    assert algebra.overcover(make_view((0, 0), make_identity_layout((5, 8))), (2, 4)) == (1, 0)


def test_indices_with_an_offset_are_multiplied_and_recast() -> None:
    moved = make_view(8, Layout((4, 2), (1, 4)))
    assert str(algebra.logical_product(moved, Layout(3))) == "8 o ((4,2),3):((1,4),8)"
    assert str(recast_layout(moved, 8, 32)) == "2 o (1,2):(0,1)" and recast_layout(moved, 8, 4)(1, 0) == 17
    assert str(composition(moved, Layout(4, 2))) == "8 o 4:2"


def test_the_parts_of_a_composed_layout() -> None:
    tensor = make_view([0, [8, 1]], make_identity_layout((4, (2, 2))))
    assert composed_get_outer(tensor) is None and composed_get_offset(tensor) == (0, (8, 1))
    assert composed_get_inner(tensor) == make_identity_layout((4, (2, 2)))
    swizzled = make_composed_layout(Swizzle(1, 2, 3), 4, Layout(8))
    parts = (composed_get_outer(swizzled), composed_get_offset(swizzled), composed_get_inner(swizzled))
    assert make_composed_layout(*parts) == swizzled and swizzled.with_inner(Layout(4)).inner == Layout(4)
    assert tensor == make_composed_layout(None, (0, (8, 1)), tensor.inner) and tensor != tensor.inner
    # Modes that an offset lacks are 0, with an outer part as well: what keeps some modes has the others.
    assert str(make_composed_layout(None, tensor.inner)) == "(0,(0,0)) o (4,(2,2)):(1E0,(1E1E0,1E1E1))"
    whole = ComposedLayout(Layout((4, 8), (8, 1)), (1,), make_identity_layout((3, 8)))
    assert str(whole) == "(4,8):(8,1) o (1,0) o (3,8):(1E0,1E1)" and parse(str(whole)) == whole
    assert whole[1].offsets().tolist() == list(range(8, 16)) and slice(whole, (1, 2)).offsets().tolist() == [18]
    assert [coprofile(each) for each in (whole, swizzled, ComposedLayout(tensor, 0, Layout(8)))] == [0, 0, (0, (0, 0))]
    chain = ComposedLayout(make_view((1, 2), make_identity_layout((2, 4))), 1, Layout(7))
    assert parse(str(chain)) == chain == parse("(1,2) o (2,4):(1E0,1E1) o 1 o 7:1") and chain(6) == (2, 5)
    assert same_map(slice(chain, 2), make_view((2, 3), Layout((1, 1), (E(0), E(1)))))
    assert parse("(1) o (8):(1E0)") == make_view((1,), make_identity_layout((8,)))
    empty = make_view((1, 2), make_identity_layout((0, 4)))
    assert empty.offsets().shape == (0, 2) and coshape(empty) == cosize(empty) == 0


def test_maps_are_compared_without_listing_them() -> None:
    huge = make_view((1, 2), make_identity_layout((1 << 20, 1 << 20)))
    assert same_map(huge, coalesce(huge)) and same_map(huge, make_composed_layout(None, (1, 2), huge.inner))
    assert not same_map(huge, huge.inner) and not same_map(huge, make_view((1, 3), huge.inner))
    assert same_map(make_view((0, 0), huge.inner), huge.inner) and coshape(huge) == ((1 << 20) + 1, (1 << 20) + 2)
    assert same_map(slice(huge, (None, 0)), make_view((1, 2), Layout((1 << 20, 1), (E(0), E(1)))))
    assert not same_map(make_view((0, 0, 0), make_identity_layout((4, 4, 1))), make_identity_layout((4, 4)))
    row, column = Opaque(1, []), Opaque(2, [])
    runtime = make_view((row, column), huge.inner)
    assert same_map(runtime, coalesce(runtime)) and not same_map(runtime, algebra.select(runtime, [1, 0]))
    refuses(lambda: same_map(runtime, huge), "are known only while their kernel runs")


IDENTITY, MOVED = make_identity_layout((4, 8)), make_view((1, 2), make_identity_layout((4, 8)))
RUNTIME = make_view((Opaque(1, []), 2), IDENTITY)
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: make_view(0, IDENTITY), "the offset 0 of a view of (4,8):(1E0,1E1) does not nest like what that layout "
                                     "gives, coordinates such as (0,0)"),
    (lambda: make_view((0, 0, 0), IDENTITY), "the offset (0,0,0) of a view of"),
    (lambda: make_view((0, (0, 0)), IDENTITY), "the offset (0,(0,0)) of a view of"),
    (lambda: make_view((1, 2), Layout((4, 8))), "the offset (1,2) of a view of (4,8):(1,4) does not nest like what "
                                                "that layout gives, indices"),
    (lambda: make_view((0, 1.5), IDENTITY), "the offset holds 1.5"),
    (lambda: make_view((0, None), IDENTITY), "the offset (0,*) is not one place"),
    (lambda: make_view((0, 0), (4, 8)), "the layout of a view (4,8) is not a layout"),
    (lambda: make_view((0, 0), MOVED), "the layout of a view ComposedLayout("),
    (lambda: ComposedLayout(None, 5, IDENTITY), "the coordinates 5 and (0,0) do not nest alike"),
    (lambda: ComposedLayout(None, (1, 2), Layout(4)), "the offset (1,2) is a coordinate, and 4:1 gives indices"),
    (lambda: composed_get_outer(IDENTITY), "composed_get_outer: (4,8):(1E0,1E1) is a plain layout"),
    (lambda: composed_get_inner((4, 8)), "composed_get_inner: (4,8) is no layout"),
    (lambda: composed_get_offset(Swizzle(1, 0, 1)), "composed_get_offset: Swizzle("),
    (lambda: idx2crd(3, MOVED), "idx2crd of the composed layout (1,2) o (4,8):(1E0,1E1) is not a division"),
    (lambda: idx2crd(3, make_view(1, Layout(4))), "idx2crd of the composed layout 1 o 4:1"),
    (lambda: recast_layout(MOVED, 8, 16), "(1,2) o (4,8):(1E0,1E1): it gives coordinates, which have no width"),
    (lambda: recast_layout(make_view(1, Layout(4)), 8, 16), "has no counterpart at 16 bits"),
    (lambda: algebra.logical_product(MOVED, Layout(2)), "it gives coordinates"),
    (lambda: slice(MOVED, (None, None, 1)), "does not fit the mode (4,8)"),
    (lambda: slice_and_offset(make_composed_layout(Swizzle(1, 0, 1), Layout(4)), 1), "the sliced ComposedLayout("),
    (lambda: get(MOVED, 2), "there is no mode 2"),
    (lambda: MOVED((1, 2, 3)), "coordinate (1,2,3) does not fit the mode (4,8)"),
    (lambda: RUNTIME.offsets(), "is known only while its kernel runs"),
    (lambda: ComposedLayout(RUNTIME, 0, Layout(4)).offsets(), "is known only while its kernel runs"),
    (lambda: coshape(RUNTIME), "is known only while its kernel runs"),
    (lambda: cosize(RUNTIME), "is known only while its kernel runs"),
    (lambda: coshape(make_composed_layout(Swizzle(1, 0, 1), Layout(4))), "is not a layout"),
    (lambda: parse("(0,*) o (4,8):(1E0,1E1)"), "it ends too early"),
    (lambda: parse("[0|0] o (4,8):(1E0,1E1)"), "cannot read"),
    (lambda: parse("4:1 o [0|0] o (4,8):(1E0,1E1)"), "unexpected '[' at character 6"),
    (lambda: parse("4:1 o (0,1E0) o (4,8):(1E0,1E1)"), "unexpected '(' at character 6"),
    (lambda: parse("S<1,0,1> o 4:1"), "it ends too early"),
    (lambda: parse("(0,0) o"), "it ends too early"),
    (lambda: parse("(0,0) o 4"), "the inner part 4 is not a Layout"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Callable[[], object], message: str) -> None:
    refuses(make, message)


def test_none_slices_as_it_does_of_a_tensor() -> None:
    """Each element of the slice is what the whole gives with the number in the place of None."""
    places = make_view((16, 64), make_identity_layout((8, 4)))
    swizzled = ComposedLayout(Swizzle(2, 1, 2), 3, Layout((8, 4), (4, 1)))
    for tensor in (places, swizzled):
        assert [tensor[5, None](j) for j in range(4)] == [tensor(5, j) for j in range(4)]
        assert [tensor[None, 2](i) for i in range(8)] == [tensor(i, 2) for i in range(8)]
    assert (str(Layout((8, 4), (4, 1))[None, 2]), str(Layout((8, 4), (4, 1))[5, None])) == ("8:4", "4:1")
    assert places[5, None][3] == places[5, 3] == (21, 67)
    assert Layout((8, 4), (4, 1))[1] == Layout(4, 1)  # a number is a mode of a plain layout


def test_an_index_of_a_row_of_places_is_the_place() -> None:
    row = make_view(100, make_identity_layout(8))
    assert [row[i] for i in range(8)] == list(range(100, 108))
    assert ComposedLayout(Swizzle(2, 1, 2), 0, Layout(8, 1))[0] == ComposedLayout(Swizzle(2, 1, 2), 0, Layout(8, 1))
