"""Scenes: typed columns, relations read both ways, a JSON round trip, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab import viz
from flylab.errors import FlylabError
from flylab.layout import Layout
from flylab.viz.scene import Facet, Relation, Scene

PAIRS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 9)))


@given(PAIRS)
def test_a_relation_reads_both_ways_as_its_pairs_say(pairs: set[tuple[int, int]]) -> None:
    relation = Relation("a", "b", sorted(pairs, key=hash))
    for row in range(7):
        assert relation.forward(row) == sorted(b for a, b in pairs if a == row)
    for row in range(10):
        assert relation.backward(row) == sorted(a for a, b in pairs if b == row)


@given(PAIRS, PAIRS)
def test_focus_gathers_every_relation(ab: set[tuple[int, int]], ba: set[tuple[int, int]]) -> None:
    facets = (Facet("a", {"n": range(10)}), Facet("b", {"n": range(10)}))
    scene = Scene("tv", "", "", facets, (Relation("a", "b", list(ab)), Relation("b", "a", list(ba))))
    for row in range(10):
        expected = {b for a, b in ab if a == row} | {b for b, a in ba if a == row}
        assert scene.focus("a", row) == {"b": sorted(expected)}


def test_columns_have_the_type_of_their_values() -> None:
    facet = Facet("f", {"i": [1, -2], "f": [0.5, 1], "wide": [2**40, 1], "s": ["x", "y"]})
    assert [facet[c].dtype for c in ("i", "f", "wide")] == [np.int32, np.float64, np.float64]
    assert facet["s"] == ("x", "y") and facet.size == 2
    assert not facet["i"].flags.writeable


def test_a_scene_survives_json_and_draws_the_same() -> None:
    for view in (viz.layout(Layout(((2, 2), 4), ((1, 4), 8))), viz.tv(Layout((4, 8), (1, 4)), (4, 8))):
        again = Scene.from_json(json.loads(json.dumps(view.scene.to_json())))
        assert again.digest == view.scene.digest
        assert viz.View(again).to_svg() == view.to_svg()
        assert viz.View(again).to_html() == view.to_html()


def test_the_time_of_a_register_relation_follows_its_pair() -> None:
    relation = Relation("element", "register", [(1, 0), (0, 5)], time=[40, 8])
    assert relation.pairs.tolist() == [[0, 5], [1, 0]] and relation.time.tolist() == [8, 40]


@pytest.mark.parametrize(("make", "says"), [
    (lambda: Facet("f", {"a": [1], "b": [1, 2]}), "differ in length: {'a': 1, 'b': 2}"),
    (lambda: Facet("f", {"a": [1, "x"]}), "numbers or strings, not both"),
    (lambda: Scene("tv", "", "", (), (Relation("x", "y", [(0, 0)]),)), "names the facet 'x'"),
    (lambda: Scene("tv", "", "", (Facet("x", {"a": [1]}),), (Relation("x", "x", [(0, 1)]),)),
     "outside facet 'x' of 1 rows"),
    (lambda: Scene("tv", "", "", (Facet("x", {"a": [1]}),)).facet("y"), "no facet 'y'"),
    (lambda: Scene.from_json({"version": 0}), "version 0"),
    (lambda: viz.View(Scene("pie", "", "", ())), "kind 'pie'"),
])
def test_what_does_not_fit_is_refused(make, says: str) -> None:
    with pytest.raises(FlylabError) as caught:
        make()
    assert says in caught.value.message
