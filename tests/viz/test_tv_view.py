"""`viz.tv` against brute force: who owns each element, what is shared, what lies outside."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.expr as fx
from flylab import viz
from flylab.errors import LayoutError
from flylab.layout import Layout, make_identity_layout, make_layout_tv
from flylab.viz.grid import EMPTY, SHARED
from flylab.viz.picture import Text

STEP = st.integers(0, 6)


def owners_of(partition: Layout, threads: int, values: int) -> dict[int, list[tuple[int, int]]]:
    """The (thread, value) pairs of every element, by asking the layout for each pair."""
    owners: dict[int, list[tuple[int, int]]] = {}
    for value in range(values):
        for thread in range(threads):
            owners.setdefault(partition((thread, value)), []).append((thread, value))
    return owners


@settings(deadline=None)
@given(st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(st.integers(1, 3), st.integers(1, 4)),
       st.tuples(STEP, STEP, STEP, STEP))
def test_owners_and_relations_agree_with_brute_force(threads, values, strides) -> None:
    partition = Layout((threads, values), (strides[:2], strides[2:]))
    count = threads[0] * threads[1], values[0] * values[1]
    owners = owners_of(partition, *count)
    tile = (4, -(-(max(owners) + 1) // 4))
    scene = viz.tv(partition, tile).scene
    element = scene.facet("element")
    assert sorted(element.ints("index")) == list(range(tile[0] * tile[1]))
    by_thread, by_value = scene.relations
    for row, index in enumerate(element.ints("index")):
        pairs = owners.get(index, [])
        assert element.ints("owners")[row] == len(pairs)
        assert element.ints("mark")[row] == (EMPTY if not pairs else SHARED if len(pairs) > 1 else 0)
        assert sorted(set(by_thread.backward(row))) == sorted({t for t, _ in pairs})
        assert sorted(set(by_value.backward(row))) == sorted({v for _, v in pairs})
    for thread in range(count[0]):
        mine = {element.ints("index")[row] for row in by_thread.forward(thread)}
        assert mine == {e for e, pairs in owners.items() if any(t == thread for t, _ in pairs)}


def test_each_element_names_its_thread_and_value() -> None:
    tile, partition = make_layout_tv(Layout((4, 8), (8, 1)), Layout((2, 2), (2, 1)))
    element = viz.tv(partition, tile).scene.facet("element")
    owners = owners_of(partition, 32, 4)
    for index, first, second in zip(element.ints("index"), element["label"], element["second"], strict=True):
        [(thread, value)] = owners[index]
        assert (first, second) == (f"T{thread}", f"V{value}")


def test_a_shared_element_names_the_owners() -> None:
    view = viz.tv(Layout((4, 2), (0, 1)), (2, 1))
    element = view.scene.facet("element")
    assert list(zip(element["label"], element["second"], strict=True)) == [("T0 V0", "T1 V0 +2"), ("T0 V1", "T1 V1 +2")]
    assert "2 of 2 elements have several owners, the first (0,0): T0 V0 and T1 V0" in view.to_text()


def test_an_element_without_owner_is_counted() -> None:
    assert "8 of 16 elements have no owner" in viz.tv(Layout((4, 2), (1, 8)), (4, 4)).to_svg()


def test_a_nested_tile_and_a_tile_of_one_mode() -> None:
    assert viz.tv(Layout((8, 4), (4, 1)), 32).scene.facet("element").size == 32
    assert viz.tv(Layout((8, 4), (4, 1)), ((2, 2), 8)).scene.facet("cut").ints("at") == [2]


@pytest.mark.parametrize("tile", [(10**5, 10**5), 10**9])
def test_a_partition_of_a_huge_tile_is_drawn(tile) -> None:
    view = viz.tv(Layout((4, 4), (1, 4)), tile)
    size = 10**10 if isinstance(tile, tuple) else tile
    assert f"{size - 16} of {size} elements have no owner" in repr(view)
    assert {"T0", "T3", "V0", "V3"} <= set(view.to_text().split())


@pytest.mark.parametrize(("threads", "values", "tile"), [
    (((8, 8), (8, 1)), ((1, 4), (4, 1)), (8, 32)), (((16, 4), (4, 1)), ((1, 4), (4, 1)), (16, 16)),
    (((4, 16), (16, 1)), ((2, 2), (2, 1)), (8, 32))])
def test_a_wave_with_four_values_is_drawn_whole(threads, values, tile) -> None:
    found, partition = make_layout_tv(Layout(*threads), Layout(*values))
    assert found == tile
    picture = viz.tv(partition, tile).picture
    written = [item.text for item in picture.items if isinstance(item, Text) and item.anchor == "middle"]
    assert {f"T{t}" for t in range(64)} <= set(written) and "…" not in written
    assert [sum(text.startswith(letter) for text in written) for letter in "TV"] == [256, 256]


def test_the_order_of_make_layout_tv_draws_the_same() -> None:
    pair = make_layout_tv(Layout((4, 1), (1, 1)), Layout((1, 8), (1, 1)))
    assert viz.tv(*pair).to_svg() == viz.tv(*reversed(pair)).to_svg()
    tile, partition = make_layout_tv(Layout(4, 1), Layout(8, 1))
    assert tile == 32 and viz.tv(tile, partition).to_svg() == viz.tv(partition, tile).to_svg()


@pytest.mark.parametrize(("call", "message", "hint"), [
    (lambda: viz.tv(make_identity_layout((4, 8)), (4, 8)), "maps to coordinates such as (0,0)", "make_layout_tv"),
    (lambda: viz.tv(Layout((4, 8), (10**30, 1)), (4, 8)), "numbers of more than 64 bits", "count the elements"),
    (lambda: viz.tv(Layout((4, 8), (1, 4)), (10**9, 10**9)), "has 1000000000000000000 elements, and up to", "part"),
    (lambda: viz.tv((4, 8), (4, 8)), "two modes, threads and values, and this is (4, 8)", "viz.tv(tv, tile)"),
    (lambda: viz.tv(Layout((4, 8), (1, 4)), Layout((4, 8), (1, 4))), "this is the layout (4,8):(1,4)",
     "viz.tv(tv, (4,8))"),
    (lambda: viz.tv(Layout((4, 8), (1, 4)), (4, 4)),
     "leaves the tile (4,4): thread 0, value 4 maps to element 16, and the tile has 16 (16 of 32 pairs are outside)",
     "the tile that make_layout_tv returned"),
    (lambda: viz.tv(Layout((4, 2), (-1, 4)), (4, 4)), "thread 1, value 0 maps to element -1", "make_layout_tv"),
    (lambda: viz.tv(Layout(8, 1), (8,)), "two modes, threads and values, and this is 8:1", "make_layout_tv"),
    (lambda: viz.tv(Layout((4, 2), (1, 4)), ("x", 2)), "'x' is not an integer", "int"),
    (lambda: viz.tv(Layout((4, 2), (1, 4)), (0, 2)), "the tile (0,2) has no elements", "viz.tv("),
    (lambda: viz.tv(Layout((1 << 20, 8), (0, 0)), (4, 4)), "1048576 threads x 8 values", ""),
])
def test_refusals(call, message: str, hint: str) -> None:
    with pytest.raises(LayoutError) as caught:
        call()
    assert message in caught.value.message and hint in (caught.value.hint or "")


ATOM = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
COPY = fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)


@pytest.mark.parametrize(("made", "names"), [
    (ATOM, "layout_A_tv, layout_B_tv, layout_C_tv"),
    (fx.make_tiled_mma(ATOM, fx.make_layout((1, 1, 1))), "tv_layout_A_tiled, tv_layout_B_tiled, tv_layout_C_tiled"),
    (COPY, "layout_src_tv, layout_dst_tv"),
    (fx.make_tiled_copy_tv(COPY, fx.make_layout((16, 4)), fx.make_layout((1, 1))),
     "layout_src_tv_tiled, layout_dst_tv_tiled"),
], ids=["MMA atom", "tiled MMA", "copy atom", "tiled copy"])  # fmt: skip
def test_an_atom_has_several_partitions(made: Any, names: str) -> None:
    with pytest.raises(LayoutError, match="is not a partition, and has one for each operand") as caught:
        viz.tv(made)
    assert str(caught.value.hint).endswith(names)
    assert all(hasattr(getattr(made, name), "shape") for name in names.split(", "))


def test_a_partition_without_its_tile() -> None:
    with pytest.raises(LayoutError, match="without the tile") as caught:
        viz.tv(ATOM.layout_A_tv)
    assert "viz.tv(tv_layout, (16, 16))" in str(caught.value.hint)
    assert "64 threads x 4 values" in viz.tv(ATOM.layout_A_tv, (16, 16)).__repr__()
