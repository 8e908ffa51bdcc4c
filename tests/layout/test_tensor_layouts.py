"""Beside the pip package `tensor-layouts`: the same maps, or a brute-force check says which of the two is right.

A row of CASES is an operation that both have, operands, and what makes a result of it right, in the words of
right.py. Wherever one side refuses or the two differ, ours must be right and theirs not. The kinds of disagreement that
occur are listed in DEVIATIONS, each with an example; one that is not listed fails.

Not compared, as the two mean different things: an int as divisor (theirs divides the first mode, ours the whole) and
integer coordinates past the end (theirs wrap where the last mode has one element).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.layout as ours
from flylab.errors import LayoutError
from flylab.layout import ComposedLayout, Layout, Swizzle
from tests.layout import brute, right

peer = pytest.importorskip("tensor_layouts", reason="the pip package tensor-layouts, of the extra `test`")


def to_peer(value: Any) -> Any:
    """Our value as theirs."""
    if isinstance(value, Layout):
        return peer.Layout(value.shape, value.stride)
    if isinstance(value, Swizzle):
        return peer.Swizzle(value.bits, value.base, value.shift)
    if isinstance(value, tuple):
        parts = tuple(map(to_peer, value))
        return peer.Tile(*parts) if any(isinstance(each, Layout) for each in value) else parts
    return value


def from_peer(value: Any) -> Any:
    """Their layout as ours. They write a layout without modes as ():()."""
    if isinstance(value, peer.Layout):
        return Layout(value.shape, value.stride) if value.shape != () else Layout(1, 0)
    return tuple(map(from_peer, value)) if isinstance(value, tuple) else value


def attempt(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The result, or None where it is refused."""
    try:
        return function(*operands)
    except (LayoutError, peer.LayoutError):
        return None


def _recast_by_peer(layout: Any, old: int, new: int) -> Any:
    return peer.upcast(layout, new // old) if new > old else peer.downcast(layout, old // new)


def _shape_div_by_peer(shape: Any, divisor: int) -> Any:
    try:
        return peer.shape_div(shape, divisor)
    except ValueError:  # what it says where neither divides the other
        return None


small = brute.layouts(most=64, high=24)
tiles = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
fitting = st.tuples(small, tiles).filter(lambda pair: len(pair[1]) <= len(right.modes(pair[0])))
layout_tiles = st.tuples(small, st.lists(brute.disjoint(most=6), min_size=1, max_size=2).map(tuple)).filter(
    lambda pair: len(pair[1]) <= len(right.modes(pair[0])))
products = st.tuples(brute.disjoint(most=24), brute.layouts(most=16, high=6, extent=4))
paired = products | st.tuples(brute.bijections(most=24), brute.bijections(most=16))
divisions = st.tuples(small, brute.disjoint(most=16, broadcast=False))
recasts = st.tuples(brute.layouts(high=12) | brute.disjoint(most=32),
                    *[st.sampled_from([8, 16, 32])] * 2).filter(lambda each: each[1] != each[2])

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], st.SearchStrategy[Any], Callable[..., bool]]] = {
    "composition": (ours.composition, peer.compose,
                    st.tuples(brute.layouts(low=-12, high=24), small) | st.tuples(brute.disjoint(), brute.disjoint()),
                    right.is_composition),
    "composition by tile": (ours.composition, peer.compose, fitting | layout_tiles, right.is_composition_by_mode),
    "complement": (ours.complement, peer.complement,
                   st.tuples(brute.disjoint() | brute.layouts(most=64, low=-3, high=30), st.integers(1, 200)),
                   right.is_complement),
    "right_inverse": (ours.right_inverse, peer.right_inverse, st.tuples(brute.disjoint() | brute.layouts(high=10)),
                      right.is_right_inverse),
    "left_inverse": (ours.left_inverse, peer.left_inverse, st.tuples(brute.disjoint() | brute.layouts(high=20)),
                     right.is_left_inverse),
    "coalesce": (ours.coalesce, peer.coalesce, st.tuples(brute.layouts(low=-40)), right.is_coalesced),
    "filter": (ours.filter, lambda layout: layout.filter(), st.tuples(brute.layouts()), right.is_filtered),
    "logical_divide": (ours.logical_divide, peer.logical_divide, divisions, right.is_division),
    "zipped_divide": (ours.zipped_divide, peer.zipped_divide, divisions, right.is_division),
    "tiled_divide": (ours.tiled_divide, peer.tiled_divide, divisions, right.is_division),
    "flat_divide": (ours.flat_divide, peer.flat_divide, divisions, right.is_division),
    "zipped_divide by tile": (ours.zipped_divide, peer.zipped_divide, fitting, right.is_division_by_mode),
    "tiled_divide by tile": (ours.tiled_divide, peer.tiled_divide, fitting, right.is_division_by_mode),
    "flat_divide by tile": (ours.flat_divide, peer.flat_divide, fitting, right.is_division_by_mode),
    "logical_product": (ours.logical_product, peer.logical_product, products, right.is_product),
    "zipped_product": (ours.zipped_product, peer.zipped_product, products, right.is_product),
    "tiled_product": (ours.tiled_product, peer.tiled_product, products, right.is_product),
    "flat_product": (ours.flat_product, peer.flat_product, products, right.is_product),
    "blocked_product": (ours.blocked_product, peer.blocked_product, paired, right.is_blocked),
    "raked_product": (ours.raked_product, peer.raked_product, paired, right.is_raked),
    "recast_layout": (ours.recast_layout, _recast_by_peer, recasts, right.is_recast),
}

# Both may be right and differ: a left inverse at indices that the layout does not reach, a right inverse where modes
# have the same stride.
FREE = {"left_inverse", "right_inverse"}


@dataclass(frozen=True)
class Deviation:
    """An example of one kind of disagreement: our result and theirs ("" for a refusal), and why ours is right."""

    case: str
    operands: tuple[Any, ...]
    ours: str
    theirs: str
    why: str

    @property
    def kind(self) -> str:
        return _kind(self.case, self.ours, self.theirs)


def _kind(case: str, mine: Any, theirs: Any) -> str:
    return f"{case}: " + ("we refuse" if not mine else "they refuse" if not theirs else "different maps")


def L(written: str) -> Layout:
    return Layout.parse(written)


_CARRIED = "the inner modes carry from one outer mode into the next; theirs adds up what does not add up"
_INSIDE = "the mode stays inside one outer mode, or runs on evenly: its values are a layout"
_CROSSED = "theirs lays the tile over modes that it does not divide, and cuts more elements than were asked for"
_GAPS = "theirs leaves the gaps of the block unused, unlike its own logical_product"
DEVIATIONS = [
    Deviation("composition", (L("(2,3,4,5):(60,20,5,1)"), L("(4,2):(1,4)")), "", "((2,2),2):((60,20),40)", _CARRIED),
    Deviation("composition", (L("(5,2):(4,2)"), L("(2,4):(4,1)")), "", "(2,4):(16,4)", _CARRIED),
    Deviation("composition", (L("(8,2):(2,14)"), L("6:11")), "(3,2):(20,58)", "", _INSIDE),
    Deviation("composition by tile", (L("((8,7),1):((1,0),0)"), (L("(2,2):(3,18)"), L("1:0"))),
              "((2,2),1):((3,2),0)", "", _INSIDE),
    Deviation("composition by tile", (L("((5,3),1):((21,5),0)"), (L("(2,3):(3,1)"),)), "", "((2,3),1):((63,21),0)",
              _CARRIED),
    Deviation("complement", (L("(8,8):(2,2)"), 181), "", "(2,12):(1,16)", "(1,0) and (0,1) both have index 2"),
    Deviation("right_inverse", (L("(3,2):(1,1)"),), "3:1", "2:3", "modes of one stride: the longer leads farther"),
    Deviation("right_inverse", (L("(5,7,3):(1,5,5)"),), "35:1", "(5,3):(1,35)", "the longer leads farther"),
    Deviation("left_inverse", (L("(5,5):(1,2)"),), "", "(2,5):(1,5)", "(2,0) and (0,1) both have index 2"),
    *[Deviation(f"{form}_divide by tile", (L("(7,(8,1)):(0,(3,0))"), (5, 2)), mine, theirs, _CROSSED)
      for form, mine, theirs in (("zipped", "((5,2),(2,4)):((0,3),(0,6))", "((5,(2,4)),(2,1)):((0,(3,6)),(0,0))"),
                                 ("tiled", "((5,2),2,4):((0,3),0,6)", "((5,(2,4)),2,1):((0,(3,6)),0,0)"),
                                 ("flat", "(5,2,2,4):(0,3,0,6)", "(5,(2,4),2,1):(0,(3,6),0,0)"))],
    *[Deviation(f"{form}_product", (L("(1,3):(0,2)"), L("4:5")), mine, "", _INSIDE)
      for form, mine in (("logical", "((1,3),(2,2)):((0,2),(13,30))"), ("zipped", "((1,3),(2,2)):((0,2),(13,30))"),
                         ("tiled", "((1,3),2,2):((0,2),13,30)"), ("flat", "(1,3,2,2):(0,2,13,30)"))],
    *[Deviation(f"{form}_product", (L("(4,3):(18,2)"), L("(2,4):(1,1)")), "", theirs, _CARRIED)
      for form, theirs in (("logical", "((4,3),(2,(2,2))):((18,2),(1,(1,6)))"),
                           ("zipped", "((4,3),(2,(2,2))):((18,2),(1,(1,6)))"),
                           ("tiled", "((4,3),2,(2,2)):((18,2),1,(1,6))"), ("flat", "(4,3,2,(2,2)):(18,2,1,(1,6))"))],
    Deviation("blocked_product", (L("4:3"), L("4:1")), "", "((4,4)):((3,10))", _GAPS),
    Deviation("blocked_product", (L("3:2"), L("3:6")), "(3,3):(2,18)", "((3,3)):((2,30))", _GAPS),
    Deviation("raked_product", (L("(2,2):(0,3)"), L("(3,2):(4,0)")), "((3,2),(2,2)):((7,0),(0,3))", "", _INSIDE),
    Deviation("raked_product", (L("2:2"), L("(2,2):(1,1)")), "", "((2,2),(2,1)):((1,2),(1,0))", _CARRIED),
    Deviation("recast_layout", (L("3:8"), 16, 8), "", "3:16", "theirs loses every second byte"),
    Deviation("recast_layout", (L("1:0"), 16, 8), "2:1", "1:0", "theirs loses the second byte"),
    Deviation("recast_layout", (L("(8,16):(16,2)"), 8, 16), "", "(8,16):(8,1)", "theirs reaches the odd bytes, too"),
]


def check(case: str, operands: tuple[Any, ...]) -> str:
    """What kind of disagreement there is, "" for none; whoever is alone must be right by brute force."""
    function, by_peer, _, is_right = CASES[case]
    mine = attempt(function, operands)
    theirs = from_peer(attempt(by_peer, tuple(map(to_peer, operands))))
    if mine is not None:
        assert is_right(*operands, mine)
    if mine is None and theirs is None or mine is not None and theirs is not None and (
            brute.table(mine) == brute.table(theirs) or case in FREE and is_right(*operands, theirs)):
        return ""
    assert theirs is None or not is_right(*operands, theirs)
    return _kind(case, mine, theirs)


@pytest.mark.parametrize("case", CASES)
def test_both_give_the_same_map_or_ours_alone_is_right(case: str) -> None:
    listed = {deviation.kind for deviation in DEVIATIONS}

    @given(CASES[case][2])
    def compare(operands: tuple[Any, ...]) -> None:
        assert check(case, operands) in {"", *listed}

    compare()


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda each: f"{each.kind} {ours.text(each.operands)}")
def test_each_deviation_is_as_listed_and_ours_is_right(deviation: Deviation) -> None:
    function, by_peer, _, _ = CASES[deviation.case]
    mine = attempt(function, deviation.operands)
    theirs = from_peer(attempt(by_peer, tuple(map(to_peer, deviation.operands))))
    assert (str(mine or ""), str(theirs or "")) == (deviation.ours, deviation.theirs)
    assert check(deviation.case, deviation.operands) == deviation.kind


def _coordinates(draw: Any, layout: Layout, keep: bool) -> Any:
    """A coordinate of the layout, with None in some places if `keep`."""
    def mask(each: Any) -> Any:
        if keep and draw(st.booleans()):
            return None
        return tuple(map(mask, each)) if isinstance(each, tuple) else each

    return mask(draw(st.sampled_from(brute.coords(layout.shape))))


@st.composite
def located(draw: Any, keep: bool = False) -> tuple[Layout, Any]:
    layout = draw(brute.layouts(low=-20))
    return layout, _coordinates(draw, layout, keep)


@st.composite
def swizzles(draw: Any) -> Swizzle:
    bits, room = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    return Swizzle(bits, draw(st.integers(0, 4)), draw(st.sampled_from([1, -1])) * (bits + room))


def _listed(composed: Any) -> list[int]:
    """The index at each coordinate of a composed layout of either side."""
    return [composed(i) for i in range(ours.size(composed) if isinstance(composed, ComposedLayout)
                                       else peer.size(composed))]


any_layout = brute.layouts(low=-40)
SAME: dict[str, tuple[Callable[..., Any], Callable[..., Any], st.SearchStrategy[Any]]] = {
    "size": (ours.size, peer.size, st.tuples(any_layout)),
    "cosize": (ours.cosize, peer.cosize, st.tuples(any_layout)),
    "rank": (ours.rank, peer.rank, st.tuples(any_layout)),
    "depth": (ours.depth, peer.depth, st.tuples(any_layout)),
    "layout(coord)": (lambda layout, at: layout(at), lambda layout, at: layout(at), located()),
    "crd2idx": (lambda layout, at: ours.crd2idx(at, layout),
                lambda layout, at: peer.crd2offset(at, layout.shape, layout.stride), located()),
    "crd2idx of a shape": (lambda layout, at: ours.crd2idx(at, layout.shape),
                           lambda layout, at: peer.crd2flat(at, layout.shape), located()),
    "idx2crd": (ours.idx2crd, peer.idx2crd, st.tuples(st.integers(0, 300), brute.shapes())),
    "slice": (lambda layout, at: ours.slice_and_offset(layout, at),
              lambda layout, at: peer.slice_and_offset(at, layout), located(keep=True)),
    "dice": (ours.dice, lambda layout, at: peer.dice_modes(at, layout), located(keep=True)),
    "group": (lambda layout: ours.group(layout, 0), lambda layout: peer.group(layout, 0, peer.rank(layout)),
              st.tuples(any_layout)),
    "append": (ours.append, peer.append, st.tuples(any_layout, any_layout)),
    "prepend": (ours.prepend, peer.prepend, st.tuples(any_layout, any_layout)),
    "get": (ours.get, peer.mode, st.tuples(any_layout, st.just(0))),
    "shape_div": (ours.shape_div, _shape_div_by_peer, st.tuples(brute.shapes(), st.integers(1, 20))),
    "product of each mode": (ours.int_tuple_product_each, peer.product_each, st.tuples(brute.shapes())),
    "congruent": (ours.congruent, peer.congruent, st.tuples(brute.shapes(), brute.shapes())),
    "swizzle": (lambda swizzle, i: swizzle(i), lambda swizzle, i: swizzle(i),
                st.tuples(swizzles(), st.integers(0, 5000))),
    "swizzled layout": (lambda *parts: _listed(ours.composition(*parts)), lambda *parts: _listed(peer.compose(*parts)),
                        st.tuples(swizzles(), brute.layouts())),
    "tile of a swizzled layout": (
        lambda swizzle, layout, tile: _listed(ours.logical_divide(ours.composition(swizzle, layout), tile)),
        lambda swizzle, layout, tile: _listed(peer.logical_divide(peer.compose(swizzle, layout), tile)),
        st.tuples(swizzles(), brute.layouts(most=64), brute.disjoint(most=8))),
}


@pytest.mark.parametrize("name", SAME)
def test_both_give_the_same_value(name: str) -> None:
    function, by_peer, operands_of = SAME[name]

    @given(operands_of)
    def compare(operands: tuple[Any, ...]) -> None:
        mine, theirs = attempt(function, operands), from_peer(attempt(by_peer, tuple(map(to_peer, operands))))
        assert _as_map(mine) == _as_map(theirs)

    compare()


def _as_map(value: Any) -> Any:
    """A layout as its indices, since a single mode stands alone here and in a tuple there."""
    if isinstance(value, Layout):
        return brute.table(value)
    return tuple(map(_as_map, value)) if isinstance(value, tuple) else value
