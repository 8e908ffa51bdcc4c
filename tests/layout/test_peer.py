"""The published wheel's results, each equal to ours or on the list of deviations.

A deviation has ours and a reason; where the wheel gave a value, a brute-force check shows that it is not the right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import flylab.layout as layout
from flylab.errors import LayoutError
from flylab.layout import ComposedLayout, E, Layout, Swizzle, crd2idx, parse, text, tile_text
from tests.layout import brute

FILE = Path(__file__).resolve().parents[1] / "data" / "peer_layout_examples.txt"


class _SwizzleType:
    get = Swizzle


class _IntTupleType:
    get = staticmethod(layout.make_int_tuple)


# The wheel's spellings of what flylab has under one name.
NAMES = {**vars(layout), "static": lambda value: value, "SwizzleType": _SwizzleType, "IntTupleType": _IntTupleType,
         "get_": layout.get, "E": E}


def _examples() -> list[tuple[str, str]]:
    lines = FILE.read_text().splitlines()
    return [(line, after.strip()[3:]) for line, after in zip(lines, lines[1:], strict=False)
            if after.startswith("    -> ")]


EXAMPLES = _examples()


@dataclass(frozen=True)
class Deviation:
    """Where ours differs: our result ("" for a refusal), why, and a check that the wheel's is not the right one.

    The check is None where the wheel gave no value, but refused or aborted.
    """

    ours: str
    why: str
    evidence: Callable[[], Any] | None


def _indices(written: str) -> list[int]:
    return brute.table(parse(written))


DEVIATIONS = {
    "make_ordered_layout((4,8),(5,5))": Deviation(
        "(4,8):(1,4)", "modes of equal order run from left to right; the wheel's collide",
        lambda: len(set(_indices("(4,8):(1,1)"))) < 32 and sorted(_indices("(4,8):(1,4)")) == list(range(32))),
    "make_layout_like(make_layout((4,8),(0,2)))": Deviation(
        "(4,8):(0,1)", "a broadcast mode stays one; the wheel's collides with the other",
        lambda: len(set(_indices("(4,8):(1,1)"))) == 11 and sorted(set(_indices("(4,8):(0,1)"))) == list(range(8))),
    "make_layout((4,8),(E(0)*4,1))": Deviation(
        "", "a basis stride and an integer have no sum: the wheel dies of one, too",
        lambda: dict(EXAMPLES)["int_tuple_add(3,(1,2))"].startswith("!!!")),
    "shape_div((12,8),(4,3))": Deviation("", "neither of 8 and 3 divides the other", lambda: 8 % 3 and 3 % 8),
    "shape_div(12,5)": Deviation("", "neither of 12 and 5 divides the other", lambda: 12 % 5 and 5 % 12),
    "slice((4,8,16),(None,3,None))": Deviation("(4,16)", "shapes can be sliced", None),
    "dice((4,8,16),(None,3,None))": Deviation("(8)", "shapes can be diced", None),
    "slice(make_layout((4,8),(1,4)),(1,3))": Deviation("1:0", "one element is left", None),
    "int_tuple_add(3,(1,2))": Deviation("", "the operands do not nest alike", None),
    "composition(make_layout((4,8),(8,1)),8)": Deviation(
        "(4,2):(8,1)", "an int is the layout 8:1", None),
    "composition(static(SwizzleType.get(3,3,3)),make_layout((64,64),(64,1)))": Deviation(
        "S<3,3,3> o 0 o (64,64):(64,1)", "a swizzle composes", None),
    "complement(make_layout((2,2),(1,1)),24)": Deviation(
        "", "not injective; the wheel gives an extent of 0", lambda: len(set(_indices("(2,2):(1,1)"))) < 4),
    "complement(make_layout(4,1),(6,4))": Deviation("6:4", "a shape as target is its size", None),
    "right_inverse(make_identity_layout((4,8)))": Deviation(
        "", "coordinates are not indices: 4:1 leads to (i,0), not to i",
        lambda: crd2idx(1, layout.make_identity_layout((4, 8))) == (1, 0)),
    "recast_layout(make_layout((8,16),(16,2)),8,16)": Deviation(
        "", "the even bytes alone are no elements of 16 bits; the wheel's also reach the odd bytes",
        lambda: all(i % 2 == 0 for i in _indices("(8,16):(16,2)")) and 2 * 0 + 1 not in _indices("(8,16):(16,2)")
        and 0 in _indices("(8,16):(8,1)")),
    "recast_layout(make_layout(3,1),8,16)": Deviation(
        "", "3 elements of 8 bits are no whole number of 16 bits", lambda: 3 * 8 % 16),
    "zipped_divide(make_layout((8,16),(16,1)),(4,None))": Deviation(
        "((4,1),(2,16)):((16,0),(64,1))", "None is a tile of 1:0", None),
    "logical_divide((8,16),(4,4))": Deviation("", "a shape is no layout", None),
    "make_layout_tv(make_layout(64,1),make_layout(4,1))": Deviation(
        "256 and (64,4):(4,1)", "the tile of a vector has one mode",
        lambda: len(layout.zipped_divide(Layout(1024, 1), 256)) == 2),
}
for _tiled, _ours in (
    ("logical_product(make_layout((2,2),(1,2)),make_tile(make_layout(3,1),make_layout(4,1)))",
     "((2,3),(2,(2,2))):((1,2),(2,(1,4)))"),
    ("zipped_product(make_layout((2,5),(5,1)),make_tile(make_layout(3,5),make_layout(4,6)))",
     "((2,5),(3,4)):((5,1),(10,30))"),
    ("tiled_product(make_layout((2,5),(5,1)),make_tile(make_layout(3,5),make_layout(4,6)))",
     "((2,5),3,4):((5,1),10,30)"),
    ("flat_product(make_layout((2,5),(5,1)),make_tile(make_layout(3,5),make_layout(4,6)))",
     "(2,5,3,4):(5,1,10,30)"),
):
    DEVIATIONS[_tiled] = Deviation(_ours, "products by mode", None)


def _shown(value: Any) -> str:
    """Our result in the wheel's words, without its type names."""
    if isinstance(value, (Layout, ComposedLayout, Swizzle)):
        return str(value)
    if isinstance(value, tuple) and any(isinstance(each, Layout) for each in value):
        return " and ".join(map(_shown, value))
    return text(value)


def _theirs(result: str) -> str:
    """The wheel's result without the names of MLIR types, and with its tuples written as ours."""
    inner = re.sub(r"!fly\.(?:int_tuple|layout|composed_layout|swizzle|tile)<(.*?)>(?=$|\))", r"\1", result)
    inner = re.sub(r"Boolean\(ArithValue\(.*", "a Boolean", inner)
    pair = re.fullmatch(r"tuple\(tuple\((.*?)\), (.*)\)", inner)
    if pair:
        return f"({pair[1].replace(' ', '')}) and {pair[2]}"
    while "tuple(" in inner:
        inner = inner.replace("tuple(", "(")
    return inner if " o " in inner else inner.replace(" ", "")


@pytest.mark.parametrize(("expression", "result"), EXAMPLES, ids=[expression for expression, _ in EXAMPLES])
def test_equal_to_the_wheel_or_a_listed_deviation(expression: str, result: str) -> None:
    deviation = DEVIATIONS.get(expression)
    try:
        value = eval(expression, dict(NAMES))
        ours = tile_text(value) if expression.startswith("make_tile") else _shown(value)
    except LayoutError as error:
        assert error.hint
        ours = ""
    if deviation:
        assert ours == deviation.ours != _theirs(result)
        assert deviation.evidence() if deviation.evidence else result.startswith("!!"), deviation.why
    elif result.startswith("!!"):
        assert ours == "", "the wheel refuses it"
    elif result.startswith("Boolean"):
        assert ours == str(_decided(expression))
    else:
        assert ours == _theirs(result)


def _decided(expression: str) -> bool:
    """The wheel leaves comparisons to run time; what they must give."""
    return {"elem_less((1,2),(3,3))": True, "elem_less((1,3),(3,3))": False, "equal((1,2),(1,2))": True,
            "equal((1,2),(1,3))": False}[expression]


def test_each_deviation_is_of_an_example() -> None:
    assert set(DEVIATIONS) <= {expression for expression, _ in EXAMPLES}
    assert len(EXAMPLES) > 200
