"""Layouts as values: what they map, how they print and compare, and what cannot be made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.layout
from flylab.errors import LayoutError
from flylab.layout import (
    Basis,
    ComposedLayout,
    E,
    Layout,
    Swizzle,
    cosize,
    make_identity_layout,
    make_layout,
    parse,
    size,
)
from tests.layout import brute
from tests.layout.refusal import refuses


@given(brute.layouts(low=-40))
def test_a_layout_maps_each_coordinate_to_the_sum_of_products(layout: Layout) -> None:
    expected = brute.table(layout)
    assert [layout(coord) for coord in brute.coords(layout.shape)] == expected
    assert [layout(i) for i in range(size(layout))] == expected
    assert layout.offsets().tolist() == expected
    assert layout.offsets().dtype == np.int64


@given(brute.layouts(low=-40))
def test_an_integer_past_the_end_extends_the_last_mode(layout: Layout) -> None:
    indices = range(size(layout), 3 * size(layout))
    assert [layout(i) for i in indices] == [brute.extended(layout, i) for i in indices]


@given(brute.layouts(low=-40))
def test_text_and_repr_give_the_layout_back(layout: Layout) -> None:
    assert Layout.parse(str(layout)) == layout
    assert eval(repr(layout)) == layout
    assert pickle.loads(pickle.dumps(layout)) == copy.deepcopy(layout) == layout
    assert hash(Layout.parse(str(layout))) == hash(layout)


@given(brute.layouts(low=-40))
def test_lists_and_numpy_integers_make_the_same_layout(layout: Layout) -> None:
    def odd(value: Any) -> Any:
        return list(map(odd, value)) if isinstance(value, tuple) else np.int64(value)

    made = Layout(odd(layout.shape), odd(layout.stride))
    assert made == layout and repr(made) == repr(layout)
    assert {type(leaf) for leaf in (*_leaves(made.shape), *_leaves(made.stride))} == {int}


@given(brute.layouts(low=-40))
def test_size_and_cosize_are_counted(layout: Layout) -> None:
    indices = brute.table(layout)
    assert size(layout) == len(indices)
    assert cosize(layout) == max(indices) - min(indices) + 1


@given(brute.shapes())
def test_an_identity_layout_gives_each_coordinate_back(shape: Any) -> None:
    identity = make_identity_layout(shape)
    coords = brute.coords(shape)
    assert [identity(coord) for coord in coords] == coords
    assert [identity(i) for i in range(size(shape))] == coords
    assert Layout.parse(str(identity)) == identity == eval(repr(identity))
    flat = [list(_leaves(coord)) for coord in coords]
    assert identity.offsets().tolist() == (flat if isinstance(shape, tuple) else coords)


def _leaves(coord: Any) -> list[int]:
    return [leaf for each in coord for leaf in _leaves(each)] if isinstance(coord, tuple) else [coord]


def test_text_of_the_forms() -> None:
    assert str(Layout((8, 16), (1, 8))) == "(8,16):(1,8)"
    assert str(Layout((9, (4, 8)), (59, (13, 1)))) == "(9,(4,8)):(59,(13,1))"
    assert str(Layout((4, 8), (E(1) * 2, E(0)))) == "(4,8):(2E1,1E0)"
    assert str(Layout(4, E(0, 1))) == "4:1E0E1"
    assert repr(Layout((4, 8), (2 * E(1), E(0)))) == "Layout((4, 8), (2 * E(1), E(0)))"
    assert parse("S<3,3,3>") == Swizzle(3, 3, 3)


def test_unit_modes_have_stride_0_and_equality_is_structural() -> None:
    assert Layout((4, 1), (1, 7)) == Layout((4, 1), (1, 0))
    assert str(Layout((4, 1), (1, 7))) == "(4,1):(1,0)"
    assert Layout((4, 8), (1, 4)) != Layout(32, 1)
    assert len({Layout((4, 8), (1, 4)), make_layout((4, 8)), Layout([4, 8], [1, 4])}) == 1
    assert Layout((4,), (1,)) != Layout(4, 1)


def test_numpy_integers_become_ints() -> None:
    layout = Layout((np.int64(4), np.int32(8)), (np.int16(1), np.uint8(4)))
    assert [type(leaf) for leaf in (*layout.shape, *layout.stride)] == [int] * 4
    assert type(layout(np.int64(5))) is int and layout((np.int64(1), 2)) == 9


def test_a_layout_is_immutable_and_indexable() -> None:
    layout = Layout((4, (8, 2)), (1, (4, 32)))
    assert layout[1] == layout[-1] == Layout((8, 2), (4, 32)) and list(layout) == [layout[0], layout[1]]
    assert Layout(8, 2)[0] == Layout(8, 2) and len(Layout(8, 2)) == 1
    for name in ("shape", "stride", "other"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(layout, name, 4)
    with pytest.raises(AttributeError, match="cannot be changed"):
        E(0).scale = 2  # type: ignore[misc]


def test_values_stay_as_they_were_made() -> None:
    made = [(Layout((4, 8)), "shape", ((8, 8),)), (E(0), "scale", (2, (1,))), (Swizzle(1, 0, 1), "bits", (2, 0, 2)),
            (ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4)), "offset", (Swizzle(1, 0, 1), 1, Layout(8)))]
    for value, name, others in made:
        before = (repr(value), hash(value))
        value.__init__(*others)  # type: ignore[misc]
        with pytest.raises(AttributeError):
            delattr(value, name)
        assert (repr(value), hash(value)) == before
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


def _levels(count: int, inner: Any) -> Any:
    for _ in range(count):
        inner = (inner,)
    return inner


def test_nesting_has_a_limit_and_lists_in_themselves_are_refused() -> None:
    most = "(" * 100 + "4" + ")" * 100
    assert str(Layout(_levels(100, 4))) == str(Layout.parse(f"{most}:{most.replace('4', '1')}"))
    loop: list[Any] = []
    loop.append(loop)
    layout = Layout((4, 8))
    for deep in (_levels(101, 4), _levels(500, 4), _levels(5000, 4), loop, [1, loop]):
        for call in (Layout, lambda d: Layout(4, d), layout, lambda d: layout((d, 1)), size, flylab.layout.rank,
                     flylab.layout.make_coord, flylab.layout.make_tile, flylab.layout.has_none, flylab.layout.product,
                     lambda d: flylab.layout.coalesce(layout, d), lambda d: flylab.layout.composition(layout, d),
                     lambda d: flylab.layout.slice(layout, d), lambda d: flylab.layout.idx2crd(d, layout),
                     lambda d: flylab.layout.group(d, 0, 1), lambda d: flylab.layout.select(d, [0]),
                     lambda d: ComposedLayout(Swizzle(1, 0, 1), d, Layout(4)), flylab.layout.coordinates_of,
                     flylab.layout.get_leaves):
            with pytest.raises(LayoutError) as caught:
                call(deep)
            assert len(str(caught.value)) < 2000 and caught.value.hint
        assert "..." in flylab.layout.text(deep) and "..." in flylab.layout.tile_text(deep)
    with pytest.raises(LayoutError, match="would nest deeper"):
        flylab.layout.group(_levels(100, 4), 0, 1)


def test_coordinates_of_swapped_and_scaled_modes() -> None:
    layout = Layout((4, 8), (2 * E(1), E(0)))
    assert layout((3, 5)) == (5, 6) and layout(7) == (1, 6)
    assert layout.offsets()[7].tolist() == [1, 6]
    assert Layout(4, E(1))(2) == (0, 2)
    assert Layout((2, 3), (E(0), 3 * E(0)))((1, 2)) == (7,)


def test_layouts_without_elements() -> None:
    empty = Layout((0, 4), (1, 2))
    assert size(empty) == cosize(empty) == 0 and empty.offsets().tolist() == []
    assert str(empty) == "(0,4):(1,2)"
    with pytest.raises(LayoutError, match="no elements"):
        empty(1)


REFUSED = [
    (lambda: Layout((4, -8), (1, 4)), "(4,-8) has the negative extent -8"),
    (lambda: Layout(4.0, 1), "4.0 is not an integer"),
    (lambda: Layout((4, 2.5), (1, 4)), "2.5 is not an integer"),
    (lambda: Layout(True, 1), "True is not an integer"),
    (lambda: Layout((4, np.bool_(True)), (1, 4)), "is not an integer"),
    (lambda: Layout("48", 1), "'48' is not an integer"),
    (lambda: Layout((4, None), (1, 4)), "None is not an integer"),
    (lambda: Layout((), ()), "shape () is empty"),
    (lambda: Layout((4, 8), 0), "shape (4,8) and stride 0 do not nest alike"),
    (lambda: Layout((4, 8), (1,)), "shape (4,8) and stride (1) do not nest alike"),
    (lambda: Layout((4, 8), ((1, 2), 4)), "shape (4,8) and stride ((1,2),4) do not nest alike"),
    (lambda: Layout(((2, 2), 4), (1, 4)), "shape ((2,2),4) and stride (1,4) do not nest alike"),
    (lambda: Layout((4, 8), (1.5, 4)), "stride 1.5 is not an integer"),
    (lambda: Layout((4, 8), (4 * E(0), 1)), "stride (4E0,1) mixes basis strides with integers"),
    (lambda: Layout((4, 8), (E(0), E(0, 1))), "counts a mode both as a whole and by its parts"),
    (lambda: make_layout((4, 8), (1, 4), (2, 2)), "takes a shape and a stride, or layouts"),
    (lambda: make_layout(Layout(4, 1), (2, 2)), "(2,2) is not a layout"),
    (lambda: E(), "names no mode"),
    (lambda: E(-1), "names no mode"),
    (lambda: E(0) * 1.5, "1.5 is not an integer"),
    (lambda: Layout((4, 8), (1, 4))((1, 2, 3)), "coordinate (1,2,3) does not fit the mode (4,8) of layout"),
    (lambda: Layout((4, 8), (1, 4))((1, (2, 3))), "coordinate (2,3) does not fit the mode 8 of layout"),
    (lambda: Layout((4, 8), (1, 4))(1.0), "1.0 is not a coordinate of layout (4,8):(1,4)"),
    (lambda: Layout((4, 8), (1, 4))((True, 2)), "True is not a coordinate"),
    (lambda: Layout((4, 8), (1, 4))(None, 2), "None stands for a whole mode"),
    (lambda: Layout((4, 8))({}), "{} is not a coordinate of layout (4,8):(1,4)"),
    (lambda: Layout((4, 8))(np.bool_(True)), "is not a coordinate"),
    (lambda: Layout((4, 8))((np.float32(1), 2)), "is not a coordinate"),
    (lambda: Layout((4, 8))(np.arange(4.0)), "is not a coordinate"),
    (lambda: Layout((4, 8))[0:1], "mode slice(0, 1, None) is not an integer"),
    (lambda: Layout((4, 8))["0"], "mode '0' is not an integer"),
    (lambda: Basis(1.5, (0,)), "1.5 is not an integer"),
    (lambda: Basis(1, ("x",)), "'x' is not an integer"),
    (lambda: Basis(1, ()), "E() names no mode"),
    (lambda: Basis(1, (-1,)), "E(-1) names no mode"),
    (lambda: Basis(0, (1,)), "scale 0 counts nothing"),
    (lambda: parse("\uff14:1"), "unexpected '\uff14' at character 0"),
    (lambda: parse("S<1,\u0663,1>"), "cannot read"),
    (lambda: parse("4:*"), "unexpected '*' at character 2"),
    (lambda: Layout((4, 8), (1, 4))[2], "has 2 modes, so there is no mode 2"),
    (lambda: Layout.parse("(8,16):(1,8"), "it ends too early"),
    (lambda: Layout.parse("(8,16);(1,8)"), "unexpected ';' at character 6"),
    (lambda: Layout.parse("(8,16)"), "is not a plain layout"),
    (lambda: Layout.parse("(8,16):(1,8) 4"), "unexpected '4' at character 13"),
    (lambda: Layout.parse(""), "it ends too early"),
    (lambda: Layout.parse("(8,,2):1"), "unexpected ',' at character 3"),
    (lambda: parse("S<3,3,3> o (4):(1)"), "cannot read"),
    (lambda: parse("(" * 5000), "unexpected '(' at character 100"),
    (lambda: parse(7), "7 is not a text"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_the_numbers_and_a_hint(make: Any, message: str) -> None:
    refuses(make, message)


@given(st.text("()[]:,|*oSE<>-0123456789 ", max_size=16))
def test_any_text_is_read_or_refused(source: str) -> None:
    try:
        parse(source)
    except LayoutError as error:
        assert error.hint
