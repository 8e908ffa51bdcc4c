"""Values at the edge: empty layouts, arrays of odd numbers, copies, deep nesting; messages in the caller's words."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from flylab import layout as rules
from flylab.layout import ComposedLayout, Layout, RuntimeInt, Swizzle, explain, parse
from tests.layout.refusal import refuses


def deep(levels: int) -> Any:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested]
    return nested


NO_COORDINATE = "is not a coordinate of layout (4,8):(1,4)"
REFUSED = {
    "floats in an object array": (lambda: Layout((4, 8))(np.array([1.5, 1], dtype=object)), NO_COORDINATE),
    "bools in an object array": (lambda: Layout((4, 8))(np.array([True, 1], dtype=object)), NO_COORDINATE),
    "None in an object array": (lambda: Layout((4, 8))(np.array([None, 1], dtype=object)), NO_COORDINATE),
    "arrays of other shapes": (lambda: Layout((4, 8))(np.arange(3), np.arange(4)), "the shapes (3) and (4)"),
    "arrays of other shapes, as coordinates": (lambda: rules.make_identity_layout((4, 8))(np.arange(3), np.arange(4)),
                                               "the shapes (3) and (4)"),
    "deep lists as an int": (lambda: rules.E(deep(5000)), "is not an integer"),
    "deep lists as modes": (lambda: rules.select((4, 8), deep(5000)), "is not an integer"),
    "deep lists as text": (lambda: parse(deep(5000)), "is not a text"),
    "a swizzle as a tile": (lambda: rules.composition(Layout(8), Swizzle(1, 0, 1)), "is not a tile"),
    "copies that do not fill the gaps": (
        lambda: rules.blocked_product(Layout(4, 2), Layout(3, 1)),
        "the product of 4:2 and 3:1 is no layout: the block has room for 2 at stride 1"),
    "a block whose gaps are not filled": (lambda: rules.tile_to_shape(Layout((4, 8), (16, 1)), (12, 16)),
                                          "the product of (4,8):(16,1) and"),
    "a runtime stride that may be 1": (lambda: rules.recast_layout(parse("(1,3,4):(0,4,?)"), 16, 8), "whether"),
    "a coordinate of any size": (lambda: rules.elem_less(0, RuntimeInt()), "whether 0 < ?"),
    "two modes of one stride": (lambda: rules.right_inverse(parse("(b?{div=8},2):(1,1)")),
                                "one of the modes of the same stride leads farther"),
    "equal or not": (lambda: rules.equal(parse("(m?{div=8},n?)"), (8, 8)), "whether m?{div=8} is 8"),
    "a name that is none": (lambda: RuntimeInt(name="1m"), "no name of a number"),
    "a number without facts": (lambda: RuntimeInt(high=None, bits=16), "a runtime integer of 16 bits"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    refuses(*REFUSED[name])


@pytest.mark.parametrize("value", [
    parse("(m?,4):(4,1)"), parse("(?{div=8},4):(?E0,1E1)"), parse("S<3,3,3> o ? o (64,n?):(n?,1)"),
    RuntimeInt(name="m"),
])  # fmt: skip
def test_runtime_values_are_copied_and_pickled(value: Any) -> None:
    for again in (copy.copy(value), copy.deepcopy(value)):
        assert again == value and hash(again) == hash(value)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert str(pickle.loads(pickle.dumps(value, protocol))) == str(value)


def test_named_numbers_are_equal_wherever_they_stand() -> None:
    rows = parse("(m?,n?):(n?,1)")
    assert parse(str(rows)) == rows and rows != parse("(m?,k?):(k?,1)") and {rows: 1}[parse(str(rows))] == 1
    assert parse("(?,?):(?,1)") != parse("(?,?):(?,1)")
    assert str(rules.right_inverse(rows)) == "(n?,m?):(m?,1)"
    assert str(rules.coalesce(Layout((RuntimeInt(name="m"), RuntimeInt(name="n"))))) == "m*n?{i64 <2^62}:1"
    assert str(rules.zipped_divide(rows, (8, None))) == "((8,1),(?{<=268435456},n?)):((n?,0),(8*n?{i64 <2^34},1))"
    assert rules.same_map(rows, rows)


def test_nothing_is_composed_repeated_and_measured() -> None:
    empty = Layout((5, (6, 0)), (1, (6, 6)))
    composed = rules.composition(parse("(2,2,3,4):(4,24,8,1)"), empty)
    assert composed.shape == empty.shape and rules.size(composed) == 0
    assert rules.cosize(ComposedLayout(Swizzle(1, 0, 1), 0, Layout((0, 4), (1, 1)))) == 0


def test_what_succeeds_is_explained_to_its_end() -> None:
    for operation, *arguments in (("complement", parse("2:?{<=100}"), 72), ("complement", parse("(m?,n?):(n?,1)"), 64),
                                  ("left_inverse", parse("(m?,n?):(n?,1)")), ("right_inverse", parse("(m?,8):(8,1)")),
                                  ("logical_divide", parse("(16,n?{div=8}):(n?{div=8},1)"), (4, 8))):
        explained = explain(operation, *arguments)
        assert str(explained.result) == str(getattr(rules, operation)(*arguments))
        assert "refused" not in str(explained) and "do not divide" not in str(explained)


def test_overcover_of_runtime_extents() -> None:
    assert rules.overcover(parse("(16,n?{div=8}):(1,16)"), (4, 8)) == (0, 0)
    assert str(rules.overcover(parse("n?:1"), 8)) == "?{i64 <=7}"
