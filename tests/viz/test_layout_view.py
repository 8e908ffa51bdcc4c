"""`viz.layout` against brute force: each element once, at its place, with its offset; and what it refuses."""

from __future__ import annotations

from collections import Counter
from itertools import product as cartesian
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.compiler as flyc
from flylab import viz
from flylab.errors import LayoutError
from flylab.layout import Layout, Swizzle, make_composed_layout, make_identity_layout, make_view, parse
from flylab.layout.int_tuple import text
from flylab.viz.frame import ELEMENTS, Frame, ends
from flylab.viz.grid import Grid
from flylab.viz.grid_paint import CELL, ROOM, SLACK, SMALL
from flylab.viz.picture import PAGE_WIDTH, Text, text_width
from tests.layout.opaque import Opaque
from tests.samples import kernel_of

LEAF = st.integers(1, 4)
MODE = st.one_of(LEAF, st.tuples(LEAF, LEAF), st.tuples(LEAF, st.tuples(LEAF, LEAF)))
MODES = st.one_of(st.tuples(MODE, MODE), st.tuples(LEAF, MODE, LEAF), st.tuples(LEAF, LEAF, LEAF, LEAF))
SHAPE = st.one_of(MODE, st.tuples(MODE), MODES)


def flat(shape) -> list[int]:
    return [shape] if isinstance(shape, int) else [n for mode in shape for n in flat(mode)]


@st.composite
def layouts(draw) -> Layout:
    def strides(shape):
        return draw(st.integers(-9, 40)) if isinstance(shape, int) else tuple(map(strides, shape))

    shape = draw(SHAPE)
    return Layout(shape, strides(shape))


def brute_offsets(layout: Layout) -> list[int]:
    """Offsets in colexicographic order, by walking every leaf coordinate: the first leaf runs fastest."""
    extents, strides = flat(layout.shape), flat(layout.stride)
    coordinates = (c[::-1] for c in cartesian(*(range(n) for n in reversed(extents))))
    return [sum(i * d for i, d in zip(c, strides, strict=True)) for c in coordinates]


@given(SHAPE)
def test_each_element_has_one_place_and_back(shape) -> None:
    frame = Frame.of(shape)
    places = [frame.place(i) for i in range(frame.size)]
    assert len(set(places)) == frame.size == prod(flat(shape))
    assert [frame.index(*place) for place in places] == list(range(frame.size))
    assert all(p < frame.panels and r < frame.rows and c < frame.columns for p, r, c in places)


@given(MODES)
def test_the_first_mode_runs_down_and_the_second_right(shape) -> None:
    frame = Frame.of(shape)
    sizes = [prod(flat(mode)) for mode in shape]
    for index in range(frame.size):
        panel, row, column = frame.place(index)
        assert (row, column) == (index % sizes[0], index // sizes[0] % sizes[1])
        assert panel == index // (sizes[0] * sizes[1])


@settings(deadline=None)
@given(layouts())
def test_every_element_carries_its_offset_and_the_relation_agrees(layout: Layout) -> None:
    scene = viz.layout(layout).scene
    expected = brute_offsets(layout)
    element, offset = scene.facet("element"), scene.facet("offset")
    assert Counter(element.ints("index")) == Counter(range(len(expected)))
    assert list(element["label"]) == [str(expected[i]) for i in element.ints("index")]
    assert list(offset["text"]) == [str(v) for v in sorted(set(expected))]
    for row, index in enumerate(element.ints("index")):
        [at] = scene.relations[0].forward(row)
        assert offset["text"][at] == str(expected[index])
        assert row in scene.relations[0].backward(at)


@settings(deadline=None, max_examples=30)
@given(layouts())
def test_a_picture_writes_every_label_once_or_says_what_it_leaves_out(layout: Layout) -> None:
    view = viz.layout(layout)
    cells = Counter(item.text for item in view.picture.items
                    if isinstance(item, Text) and item.anchor == "middle" and item.size == 11 and item.text not in "…⋮")
    expected = Counter(map(str, brute_offsets(layout)))
    if "Too large" in view.to_svg():
        assert cells < expected
    else:
        assert cells == expected
    assert view.to_svg().count("…") == 0 or "Too large" in view.to_svg()


def test_a_changed_swizzle_changes_picture_and_text() -> None:
    views = [viz.layout(make_composed_layout(Swizzle(*s), Layout((8, 8), (8, 1))), title="same")
             for s in ((2, 0, 3), (2, 1, 3), (1, 0, 3), (3, 0, 3))]
    assert len({v.to_svg() for v in views}) == len({v.to_text() for v in views}) == 4


def test_a_swizzled_layout_shows_the_offsets_of_the_xor() -> None:
    scene = viz.layout(make_composed_layout(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))).scene
    element = scene.facet("element")
    for row, column, label in zip(element.ints("row"), element.ints("column"), element["label"], strict=True):
        assert int(label) == 8 * row + (column ^ (row & 3))


def test_an_identity_layout_shows_coordinates() -> None:
    element = viz.layout(make_identity_layout((3, 5))).scene.facet("element")
    assert list(element["label"]) == [f"({r},{c})" for r, c in zip(element.ints("row"), element.ints("column"),
                                                                   strict=True)]


def test_a_coordinate_tensor_shows_the_coordinates_of_the_whole() -> None:
    tensor = make_view((16, (8, 1)), make_identity_layout((3, (2, 4))))
    view = viz.layout(tensor)
    element = view.scene.facet("element")
    rows, columns = element.ints("row"), element.ints("column")
    assert list(element["label"]) == [f"({16 + r},({8 + c % 2},{1 + c // 2}))"
                                      for r, c in zip(rows, columns, strict=True)]
    assert view.scene.options["caption"] == "mode 0 = 3:1E0 down, mode 1 = (2,4):(1E1E0,1E1E1) right"
    assert repr(view).endswith("24 elements, coordinates (16,(8,1)) to (18,(9,4))")


def test_a_runtime_offset_is_refused_and_a_bare_layout_of_one_shows_its_text() -> None:
    tensor = make_view((0, Opaque(1, [])), make_identity_layout((3, 5)))
    with pytest.raises(LayoutError, match="numbers that are known only while its kernel runs") as caught:
        viz.layout(parse("S<1,0,1> o 0 o (?,4):(4,1)"))
    assert "with numbers in their place" in str(caught.value)
    with pytest.raises(LayoutError, match="is known only while its kernel runs") as caught:
        viz.layout(tensor)
    assert caught.value.hint == "draw its inner layout: viz.layout(L.inner)"
    assert tensor._repr_mimebundle_() == {"text/plain": repr(tensor)}


@pytest.mark.parametrize("k", range(3))
def test_colour_by_mode_is_the_coordinate_in_that_mode(k: int) -> None:
    element = viz.layout(Layout((3, (2, 2), 2), (1, (3, 6), 12)), color=f"mode:{k}").scene.facet("element")
    part = [index // (1, 3, 12)[k] % (3, 4, 2)[k] for index in element.ints("index")]
    assert element.ints("shade") == part
    assert list(element["second"]) == [f"#{p}" for p in part]


def test_colour_by_tile_is_the_same_inside_a_block_and_differs_between_blocks() -> None:
    element = viz.layout(Layout(((2, 3), (4, 2)), ((1, 2), (6, 24))), color="tile").scene.facet("element")
    blocks = {(r // 2, c // 4): set() for r in range(6) for c in range(8)}
    for row, column, shade in zip(element.ints("row"), element.ints("column"), element.ints("shade"), strict=True):
        blocks[row // 2, column // 4].add(shade)
    assert all(len(shades) == 1 for shades in blocks.values())
    assert len(set.union(*blocks.values())) == len(blocks) == 6


def test_borders_stand_between_inner_blocks() -> None:
    cut = viz.layout(Layout(((2, (2, 2)), 3), ((1, (2, 4)), 8))).scene.facet("cut")
    found = sorted(zip(cut.ints("axis"), cut.ints("level"), cut.ints("at"), strict=True))
    assert found == [(0, 1, 2), (0, 1, 4), (0, 1, 6), (0, 2, 4)]


def test_a_large_layout_is_thinned_and_says_so() -> None:
    view = viz.layout(Layout((4096, 4096), (4096, 1)))
    assert view.scene.facet("element").size <= ELEMENTS
    assert "rows 0 to 15 and 4092 to 4095 of 4096, columns 0 to" in view.to_svg()
    assert "16777215" in view.to_svg() and "Too large to draw whole" in view.to_text()
    assert len(view.to_svg()) < 200_000


HUGE = {
    "rank 30": Layout((2,) * 30, tuple(2**k for k in range(30))), "columns": Layout((10**7, 10**8), (1, 10**7)),
    "one mode": Layout(2**53, 1), "deep": Layout(((2,) * 24, (2,) * 20), ((1,) * 24, (0,) * 20)),
    "deep rows": Layout(((2,) * 50, 2), ((1,) * 50, 0)), "deep columns": Layout((2, (2,) * 50), (0, (1,) * 50)),
    "deep mode": Layout(((2,) * 50,), ((1,) * 50,)), "panels": Layout((2, 2, 10**6), (1, 2, 4)),
    "high panels": Layout((20, 1, 10**6), (1, 0, 20)), "wide panels": Layout((1, 40, 10**6), (0, 1, 40)),
    "coordinates": make_identity_layout(((2,) * 12, (2,) * 12)),
    "offsets": Layout((2, 3, 50), (10**40, -(10**40), 1))}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_layout_keeps_within_page_and_terminal(name: str) -> None:
    view = viz.layout(HUGE[name])
    picture = view.picture
    right = max(t.x + t.width for t in picture.items if isinstance(t, Text) and t.anchor == "start")
    assert right <= picture.width <= PAGE_WIDTH
    assert len(view.to_svg()) < 200_000
    assert max(len(line) for line in view.to_text().splitlines()) <= 128
    element = view.scene.facet("element")
    assert element.size <= ELEMENTS
    for index, label in list(zip(element.ints("index"), element["label"], strict=True))[::997]:
        assert label == text(HUGE[name](index))


def test_a_layout_of_more_elements_than_can_be_numbered_is_refused_at_once() -> None:
    bare = Layout((10**15, 10**15), (1, 1))
    with pytest.raises(LayoutError, match="up to 9007199254740992 can be drawn"):
        viz.layout(bare)
    assert bare._repr_mimebundle_() == {"text/plain": repr(bare)}


@given(SHAPE)
def test_ticks_and_borders_are_those_of_every_row_and_column(shape) -> None:
    frame = Frame.of(shape)
    if len(frame.modes) == 1:
        return
    _, tick, cut = frame.facets([0])
    found = {tuple(t) for t in zip(*(tick.ints(c) for c in ("axis", "level", "start", "span")), strict=True)}
    sizes = [[n for n in flat(mode) if n != 1] or [1] for mode in shape[:2]]
    spans = [[prod(size[:k]) for k in range(len(size))] for size in sizes]
    assert found == {(axis, level, start, span) for axis in (0, 1) for level, span in enumerate(spans[axis])
                     for start in range(0, prod(sizes[axis]), span)}
    assert {tuple(c) for c in zip(*(cut.ints(c) for c in ("axis", "level", "at")), strict=True)} == {
        (axis, level, at) for axis in (0, 1) for level, span in enumerate(spans[axis]) if level
        for at in range(span, prod(sizes[axis]), span)}


def test_offsets_beyond_64_bits_have_colours_and_links_of_their_own() -> None:
    element = viz.layout(Layout((2, 2), (1, 10**30))).scene.facet("element")
    assert dict(zip(element["label"], element.ints("shade"), strict=True)) == {
        "0": 0, "1": 1, str(10**30): 2, str(10**30 + 1): 3}


def test_offsets_beyond_32_bits_are_drawn() -> None:
    view = viz.layout(Layout((2, 2), (1, 2**40)))
    assert str(2**40 + 1) in view.to_svg() and "offsets 0 to 1099511627777" in repr(view)


@given(st.integers(1, 300), st.integers(2, 60))
def test_ends_keeps_the_first_and_the_last(count: int, limit: int) -> None:
    kept = ends(count, limit)
    assert kept == sorted(set(kept)) and len(kept) == min(count, limit)
    assert kept[0] == 0 and kept[-1] == count - 1


def test_a_tensor_is_told_to_pass_its_layout() -> None:
    said = kernel_of("try:\n    viz.layout(A)\nexcept Exception as error:\n    said.append(error)")
    said.update(viz=viz, said=[])
    flyc.compile(said["launch"], np.zeros(64, np.float32))
    [error] = said["said"]
    assert isinstance(error, LayoutError) and error.message.endswith("this is Tensor")
    assert error.hint == "pass its layout: viz.layout(t.layout)"


@given(st.integers(1, 80), st.integers(0, 4))
def test_columns_left_out_are_wider_than_the_gap_that_stands_for_them(columns: int, digits: int) -> None:
    view = viz.layout(Layout((2, columns), (10**digits, 0)))
    grid = Grid(view.scene, ROOM, lambda text, level: text_width(text, SMALL if level else CELL) + 8, 22, 28, SLACK)
    axis = grid.columns
    assert grid.left + axis.extent <= ROOM
    assert (columns - len(axis.shown)) * axis.pitch > axis.gap or len(axis.shown) == columns
    assert all(axis.pitch - 1 > text_width(str(v), CELL) for v in (0, 10**digits))


@pytest.mark.parametrize(("call", "message", "hint"), [
    (lambda: viz.layout((8, 16)), "viz.layout draws a layout, and this is tuple", "viz.layout(make_layout("),
    (lambda: viz.layout(np.zeros((4, 8), "f4")), "and this is ndarray", "viz.layout(make_layout((4, 8), (8, 1)))"),
    (lambda: viz.layout(np.zeros((4, 8)).T), "and this is ndarray", "viz.layout(make_layout((8, 4), (1, 8)))"),
    (lambda: viz.layout(np.float32(1)), "and this is float32", "pass a layout: viz.layout(make_layout("),
    (lambda: viz.layout(Layout(8, 1), Layout(8, 1)), "draws one layout, and was given 2 things", "options have names"),
    (lambda: viz.layout(Layout(8, 1), "mode"), "draws one layout, and was given 2 things", 'color="mode"'),
    (lambda: viz.layout(Layout(8, 1), color=Layout(8, 1)), "color=Layout(8, 1) is not known", "offset, mode"),
    (lambda: viz.layout(Layout(8, 1), color="rainbow"), "color='rainbow' is not known", "offset, mode, mode:K, tile"),
    (lambda: viz.layout(Layout(8, 1), color="mode:1"), "names mode 1 of a layout with 1", "counted from 0"),
    (lambda: viz.layout(Layout(8, 1), labels="bank"), "labels='bank' is not known", "offset, coord, index, none"),
    (lambda: viz.layout(Layout((0, 4), (1, 1))), "has no elements to draw", ""),
])
def test_refusals(call, message: str, hint: str) -> None:
    with pytest.raises(LayoutError) as caught:
        call()
    assert message in caught.value.message and hint in (caught.value.hint or "")
