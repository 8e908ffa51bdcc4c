"""Explanations end where the operation ends, and say why where it is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.layout as layout
from flylab.errors import LayoutError
from flylab.layout import ComposedLayout, Layout, Swizzle, explain, parse
from tests.layout import brute


def _ends_at_the_result(operation: str, *arguments: Any) -> None:
    explanation = explain(operation, *arguments)
    assert explanation.steps
    try:
        expected = getattr(layout, operation)(*arguments)
    except LayoutError as error:
        assert explanation.result is None
        assert explanation.steps[-1].text == f"refused: {error.message}"
        return
    assert explanation.result == expected
    reached = [step.layout for step in explanation.steps if step.layout is not None]
    if operation == "logical_divide" and not isinstance(arguments[1], Layout):
        reached = [Layout(tuple(m.shape for m in reached), tuple(m.stride for m in reached))]
    if reached and operation != "crd2idx":
        assert reached[-1] == expected
    assert str(explanation).endswith(f"= {expected if isinstance(expected, (int, Layout)) else layout.text(expected)}")


@given(brute.layouts(), brute.layouts(most=32, high=12))
def test_composition(outer: Layout, inner: Layout) -> None:
    _ends_at_the_result("composition", outer, inner)
    # The last coordinate is worked out in words; its number must be right.
    found = re.search(r"maps to (\d+), has (-?\d+)$", explain("composition", outer, inner).steps[-1].text)
    if found:
        assert int(found[1]) == brute.table(inner)[-1] and int(found[2]) == brute.extended(outer, int(found[1]))


@given(brute.layouts(low=-9))
def test_coalesce_and_inverses(one: Layout) -> None:
    for operation in ("coalesce", "right_inverse", "left_inverse"):
        if operation == "coalesce" or brute.flat(one) and max(s for _, s in brute.flat(one)) > 0:
            _ends_at_the_result(operation, one)


@given(brute.disjoint(), st.integers(1, 200))
def test_complement(one: Layout, target: int) -> None:
    _ends_at_the_result("complement", one, target)


@given(brute.layouts(), brute.disjoint(most=16))
def test_divide_and_product(one: Layout, tile: Layout) -> None:
    _ends_at_the_result("logical_divide", one, tile)
    _ends_at_the_result("logical_product", tile, one)


@given(brute.layouts(leaves=3), st.data())
def test_the_parts_of_an_index_add_up(one: Layout, data: st.DataObject) -> None:
    coord = data.draw(st.sampled_from(brute.coords(one.shape)) | st.integers(0, brute.size(one.shape) - 1))
    steps = explain("crd2idx", coord, one).steps
    parts = [int(found[1]) for step in steps if (found := re.search(r"in the mode \S+ is (-?\d+)$", step.text))]
    assert len(parts) == len(one) and sum(parts) == one(coord)


def test_a_divide_by_tile_says_what_is_too_much() -> None:
    _ends_at_the_result("logical_divide", parse("(5,8):(1,5)"), (2, None))
    assert str(explain("logical_divide", parse("(5,8):(1,5)"), (2, None))).splitlines() == [
        "logical_divide of (5,8):(1,5) and (2,*)",
        "1. the mode 5:1 is divided by 2 -> (2,3):(1,2)",
        "2. the mode 8:5 stays whole -> 8:5",
        "3. the tiles do not divide: they cover (1,0) elements too many",
        "= ((2,3),8):((1,2),5)",
    ]


def test_a_refusal_is_the_last_step_and_an_unknown_name_an_error() -> None:
    refused = explain("complement", parse("(3,2):(1,2)"), 12)
    assert refused.result is None and "(2,0) and (0,1) both have index 2" in str(refused.steps[-1])
    with pytest.raises(LayoutError, match="no explanation of 'cosize'") as caught:
        explain("cosize", Layout(4, 1))
    assert "explain one of coalesce, composition" in caught.value.hint


LAYOUT, COMPOSED = Layout((2, 4)), ComposedLayout(Swizzle(1, 0, 1), 1, Layout((2, 4), (4, 1)))
IDENTITY = layout.make_identity_layout((4, 1))
TENSOR = layout.make_view((8, 1), IDENTITY)
EXPLAINED = [
    ("left_inverse", Layout(1)), ("coalesce", LAYOUT, (1, 1)), ("coalesce", LAYOUT, [1]), ("coalesce", IDENTITY),
    ("coalesce", COMPOSED), ("coalesce", COMPOSED, (1, 1)), ("logical_product", COMPOSED, Layout(2)),
    ("logical_product", LAYOUT, None), ("logical_divide", COMPOSED, (2, None)), ("composition", COMPOSED, Layout(4)),
    ("composition", Swizzle(1, 0, 1), LAYOUT), ("composition", IDENTITY, Layout(4)), ("complement", Layout(4, 2)),
    ("composition", Layout((0, 4)), Layout(0)), ("crd2idx", 3, (2, 4)), ("crd2idx", [1, 3], LAYOUT),
    ("crd2idx", 11, LAYOUT), ("crd2idx", 3, COMPOSED), ("crd2idx", 3, Swizzle(1, 0, 1)), ("crd2idx", 3, IDENTITY),
    ("crd2idx", 3, TENSOR), ("coalesce", TENSOR), ("composition", TENSOR, Layout(4)),
    ("logical_divide", TENSOR, (2, 1)),
]


@pytest.mark.parametrize("case", EXPLAINED, ids=map(str, EXPLAINED))
def test_what_an_operation_accepts_is_explained_to_its_result(case: tuple[Any, ...]) -> None:
    operation, *arguments = case
    explanation = explain(operation, *arguments)
    assert explanation.result == getattr(layout, operation)(*arguments) and explanation.steps
    shown = explanation.result if not isinstance(explanation.result, tuple) else layout.text(explanation.result)
    assert str(explanation).splitlines()[-1] == f"= {shown}"


def test_a_coordinate_tensor_is_explained_without_an_outer_part() -> None:
    assert explain("crd2idx", 3, TENSOR).steps[-1].text == "the offset (8,1) is added, which gives (11,1)"
    assert explain("coalesce", TENSOR).steps[0].text == "(8,1) stays in front of the inner layout"


def test_an_integer_past_the_end_is_counted_in_the_last_mode() -> None:
    # 11 = 1 + 5 * 2, and the second mode has the stride 2.
    texts = [step.text for step in explain("crd2idx", 11, LAYOUT).steps]
    assert texts[0] == "11 counts colexicographically to (1,5)" and texts[-1] == "their sum is 11"


UNEXPLAINED = [(({}, LAYOUT), "no explanation of {}"), (("coalesce",), "coalesce has not 0 arguments"),
               (("complement", LAYOUT, 24, 3), "complement has not 3 arguments, but (layout, target)")]


@pytest.mark.parametrize(("arguments", "message"), UNEXPLAINED, ids=[message for _, message in UNEXPLAINED])
def test_what_cannot_be_called_is_an_error(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LayoutError) as caught:
        explain(*arguments)
    assert message in caught.value.message and caught.value.hint
