"""The rules where layout algebras disagree, by the examples that decided them, each beside its brute-force values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import flylab.layout
from flylab.errors import LayoutError
from flylab.layout import (
    Layout,
    complement,
    composition,
    cosize,
    idx2crd,
    left_inverse,
    logical_divide,
    overcover,
    parse,
    right_inverse,
    same_map,
    zipped_divide,
)
from tests.layout import brute
from tests.layout.refusal import refuses


def of(written: str) -> Layout:
    return Layout.parse(written)


COMPOSITIONS = [
    ("(4,2,8):(3,12,97)", "3:3", "3:9"),
    ("(8,8):(8,1)", "3:3", "3:24"),
    ("(4,6):(1,4)", "5:2", "5:2"),
    ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
    ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
    ("8:1", "4:-1", "4:-1"),
    ("(4,8):(-8,-1)", "(8,4):(4,1)", "(8,4):(-1,-8)"),
]


@pytest.mark.parametrize(("outer", "inner", "result"), COMPOSITIONS)
def test_composition(outer: str, inner: str, result: str) -> None:
    assert str(composition(of(outer), of(inner))) == result
    assert brute.table(of(result)) == [brute.extended(of(outer), i) for i in brute.table(of(inner))]


def test_composition_that_no_layout_is() -> None:
    outer, inner = of("(4,6,8):(2,3,5)"), of("6:3")
    values = [brute.extended(outer, i) for i in brute.table(inner)]
    assert values == [0, 6, 7, 8, 9, 15] and not brute.is_some_layout(values)
    assert brute.table(of("(2,3):(6,3)"))[2] == 3
    with pytest.raises(LayoutError, match=r"at coordinate 4 it is .* = 9; coordinate 2 gives 7"):
        composition(outer, inner)


DIVIDES = [
    ("(64,50,80):(16000,160,1)", (32, None, 40), "((32,1,40),(2,50,2)):((16000,0,1),(512000,160,40))", (0, 0, 0)),
    ("(12,32):(1,12)", (4, 8), "((4,8),(3,4)):((1,12),(4,96))", (0, 0)),
    ("(5,8):(1,5)", (2, 4), "((2,4),(3,2)):((1,5),(2,20))", (1, 0)),
    ("(8,16):(16,1)", (4,), "(4,(2,16)):(16,(64,1))", (0, 0)),
    ("(8,16):(16,1)", of("4:1"), "(4,(2,16)):(16,(64,1))", 0),
]


@pytest.mark.parametrize(("layout", "tile", "result", "over"), DIVIDES)
def test_zipped_divide(layout: str, tile: Any, result: str, over: Any) -> None:
    assert str(zipped_divide(of(layout), tile)) == result
    assert overcover(of(layout), tile) == over


def test_a_rest_is_rounded_up_and_the_result_says_so() -> None:
    divided = logical_divide(of("(5,8):(1,5)"), (2, 4))
    assert str(divided) == "((2,3),(4,2)):((1,2),(5,20))"
    assert divided.overcover == (1, 0)
    assert [divided[0](i) for i in range(6)] == [0, 1, 2, 3, 4, 5]
    with pytest.raises(LayoutError, match="has 3 modes"):
        logical_divide(of("(5,8):(1,5)"), (2, 4, 1))


def test_complement_names_the_two_coordinates() -> None:
    with pytest.raises(LayoutError, match=r"\(2,0\) and \(0,1\) both have index 2"):
        complement(of("(3,2):(1,2)"), 12)
    assert complement(of("(2,4):(0,2)"), 24) == complement(of("4:2"), 24) == of("(2,3):(1,8)")
    for refused in ("4:-1", "(4,0):(1,4)"):
        with pytest.raises(LayoutError):
            complement(of(refused), 12)


def test_inverses_keep_gaps_and_pass_broadcasts() -> None:
    assert str(left_inverse(of("(4,8):(1,5)"))) == "(5,8):(1,4)"
    layout = of("((2,2),(2,4)):((0,1),(0,2))")
    assert str(right_inverse(layout)) == "(2,4):(2,8)"
    assert [layout(i) for i in brute.table(right_inverse(layout))] == list(range(8))


def test_forms_and_meanings() -> None:
    assert of("(4,1):(1,9)") == of("(4,1):(1,0)")
    assert of("(4,8):(1,4)") != of("32:1") and same_map(of("(4,8):(1,4)"), of("32:1"))
    assert [of("(2,2):(2,1)")(i) for i in range(4)] == [0, 2, 1, 3]
    assert idx2crd(70, of("(4,64):(64,1)")) == (1, 6)
    assert cosize(of("(4,4):(-1,4)")) == 3 + 12 + 1 and of("4:-2").offsets().tolist() == [0, -2, -4, -6]
    assert parse("S<3,3,3> o 0 o (64,64):(64,1)")((3, 5)) == (3 * 64 + 5) ^ (3 << 3)


NEGATIVE = {
    "composition with inner -1": lambda: composition(of("(4,8):(8,1)"), of("2:-1")),
    "complement": lambda: complement(of("4:-1"), 12),
    "left_inverse": lambda: left_inverse(of("(4,8):(-1,4)")),
    "idx2crd": lambda: idx2crd(3, of("(4,8):(-1,4)")),
    "divide by it": lambda: logical_divide(of("24:1"), of("4:-1")),
    "product of it": lambda: flylab.layout.logical_product(of("4:-1"), of("3:1")),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative_strides_whose_meaning_is_not_clear_are_refused(name: str) -> None:
    refuses(NEGATIVE[name], "negative")


def test_negative_strides_whose_meaning_is_clear_are_followed() -> None:
    assert str(logical_divide(of("8:-1"), (4,))) == "(4,2):(-1,-4)"
    assert brute.table(logical_divide(of("8:-1"), (4,))) == list(range(0, -8, -1))
    # A right inverse needs a coordinate for each index from 0 on: of a negative mode only index 0 has one.
    assert str(right_inverse(of("(4,8):(-8,1)"))) == "8:4"


CONSTRUCTED: list[tuple[Callable[[], object], str]] = [
    (lambda: Layout((4, -8), (1, 4)), "negative extent -8"),
    (lambda: Layout((4, 2.5), (1, 4)), "2.5 is not an integer"),
    (lambda: Layout((4, True), (1, 4)), "True is not an integer"),
    (lambda: Layout((4, 8), (1, (2, 4))), "do not nest alike"),
    (lambda: Layout((4, 8), 1), "do not nest alike"),
    (lambda: flylab.layout.make_shape(4, -8), "negative extent -8"),
]


@pytest.mark.parametrize(("make", "message"), CONSTRUCTED, ids=[message for _, message in CONSTRUCTED])
def test_refused_at_construction(make: Callable[[], object], message: str) -> None:
    refuses(make, message)


def test_an_argument_that_is_a_layout_divides_the_whole() -> None:
    whole = of("(12,32):(1,12)")
    assert str(zipped_divide(whole, of("(4,8):(1,4)"))) == "((4,8),12):((1,4),32)"
    assert str(zipped_divide(whole, (4, 8))) == "((4,8),(3,4)):((1,12),(4,96))"


# These take anything, and refuse nothing.
REFUSE_NOTHING = {"is_layout", "text", "tile_text", "Explanation", "Step"}


@pytest.mark.parametrize("name", flylab.layout.__all__)
def test_every_public_function_says_what_it_refuses_and_has_an_example(name: str) -> None:
    written = inspect.getdoc(getattr(flylab.layout, name)) or ""
    assert ">>>" in written
    assert ("LayoutError" in written) == (name not in REFUSE_NOTHING)
