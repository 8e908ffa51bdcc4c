"""Copies of random tiles, as the layouts map them element by element: through registers, LDS and predicates."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.expr as fx
from flylab.layout import Layout, size
from tests.expr.copying import run

THREADS = 64
KINDS = [fx.Int8, fx.Float16, fx.Float32, fx.Float64]


@st.composite
def tiles(draw: Any) -> tuple[Layout, Layout, int]:
    """Two layouts of one shape (values, rest...), each a permutation of a tile with the values innermost and perhaps
    gaps, and how many values an atom moves."""
    values = draw(st.sampled_from([1, 2, 4, 8]))
    rest = draw(st.lists(st.integers(1, 4), min_size=0, max_size=2))
    made = []
    for _ in range(2):
        strides: dict[int, int] = {}
        at = values * draw(st.integers(1, 2))
        for mode in draw(st.permutations(range(len(rest)))):
            strides[mode] = at
            at *= rest[mode]
        made.append(Layout((values, *rest), (1, *(strides[mode] for mode in range(len(rest))))))
    width = draw(st.sampled_from([n for n in (1, 2, 4, 8) if values % n == 0]))
    return made[0], made[1], width


TILE = """
source = fx.make_view(fx.get_iter(A) + i * {span}, S)
target = fx.make_view(fx.get_iter(B) + i * {span}, D)
r = fx.make_rmem_tensor(S.shape, KIND)
copy = atom(fx.UniversalCopy({bits}), KIND)
"""
WAYS = {
    "registers": "fx.copy(copy, source, r)\nfx.copy(copy, r, target)",
    "memory": "fx.copy(copy, source, target)",
    "shared": "mine = fx.make_view(fx.get_iter(lds(KIND, 64 * {span})) + i * {span}, D)\nfx.copy(copy, source, mine)\n"
              "fx.copy(copy, mine, target)",
    "predicate": "p = fx.make_rmem_tensor((1, *S.shape[1:]), fx.Boolean)\n"
                 "p.fill(i % 3 == 0)\n"
                 "r.fill(7)\nfx.copy(copy, source, r, pred=p)\nfx.copy(copy, r, target)",
}  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(tiles(), st.sampled_from(KINDS), st.sampled_from(sorted(WAYS)), st.sampled_from(["gfx942", "gfx950"]))
def test_every_element_goes_where_the_layouts_say(tile: tuple[Layout, Layout, int], kind: Any, way: str,
                                                   chip: str) -> None:
    source, target, width = tile
    span = 2 * size(source)
    data = np.arange(THREADS * span).astype(kind.dtype.to_numpy())
    got = np.zeros_like(data)
    body = (TILE + WAYS[way]).format(span=span, bits=width * kind.dtype.bits)
    run(body, data, got, chip=chip, S=source, D=target, KIND=kind)
    wanted = np.zeros_like(data)
    for thread in range(THREADS):
        for place in range(size(source)):
            on = way != "predicate" or thread % 3 == 0
            wanted[thread * span + target(place)] = data[thread * span + source(place)] if on else 7
    np.testing.assert_array_equal(got, wanted)
