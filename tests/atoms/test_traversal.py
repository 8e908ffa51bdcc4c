"""The order of the calls of a product of fragments."""

from __future__ import annotations

import itertools

import pytest

from flylab.atoms import GemmTraversalOrder
from flylab.atoms.traversal import steps
from flylab.layout import Layout

# What flydsl 0.5.0 gave its atom_callback for fragments of 2 x 2 x 3 atoms, (m, n, k) each.
PEER = {
    "MKN": "000 100 001 101 002 102 010 110 011 111 012 112",
    "NMK": "000 010 100 110 001 011 101 111 002 012 102 112",
    "KMN_Serpentine": "000 001 002 102 101 100 110 111 112 012 011 010",
    "KNM_Serpentine": "000 001 002 012 011 010 110 111 112 102 101 100",
    "MNK_Serpentine": "000 100 110 010 011 111 101 001 002 102 112 012",
    "NKM_Serpentine": "000 010 011 001 002 012 112 102 101 111 110 100",
    "MKN_Serpentine": "000 100 101 001 002 102 112 012 011 111 110 010",
    "(2,2,3):(1,2,4)": "000 100 010 110 001 101 011 111 002 102 012 112",
    "(3,2,2):(4,1,2)": "000 001 002 100 101 102 010 011 012 110 111 112",
    "12:1": "000 100 010 110 001 101 011 111 002 102 012 112",
    "(2,6):(6,1)": "000 011 100 111 010 002 110 102 001 012 101 112",
}


@pytest.mark.parametrize("order", PEER)
def test_as_the_published_package(order: str) -> None:
    assert [tuple(map(int, step)) for step in PEER[order].split()] == list(steps(order, 2, 2, 3))


@pytest.mark.parametrize("order", list(GemmTraversalOrder))
def test_each_order(order: GemmTraversalOrder) -> None:
    loops, _, turns = order.name.partition("_")
    for extents in ((2, 3, 4), (1, 1, 1), (3, 1, 2)):
        found = list(order.steps(*extents))
        assert sorted(found) == list(itertools.product(*map(range, extents)))
        slow_first = [tuple(step["MNK".index(loop)] for loop in reversed(loops)) for step in found]
        if turns:  # a step changes one number by one
            assert all(sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 1 for a, b in itertools.pairwise(found))
            assert slow_first[0] == (0, 0, 0) and [s[0] for s in slow_first] == sorted(s[0] for s in slow_first)
        else:
            assert slow_first == sorted(slow_first)


def test_a_layout_is_the_order_of_its_indices() -> None:
    layout = Layout((4, 6), (6, 1))
    wanted = [(layout(i) % 2, layout(i) // 2 % 3, layout(i) // 6) for i in range(24)]
    assert list(steps(str(layout), 2, 3, 4)) == wanted
