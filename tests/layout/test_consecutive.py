"""Which elements follow each other in memory: told from what is known, and true for every offset that it can be."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flylab.layout import ComposedLayout, Layout, RuntimeInt, Swizzle, parse
from flylab.layout.consecutive import consecutive, runs
from tests.layout import brute
from tests.layout.test_swizzle import bit_by_bit, swizzles


def _listed(indices: list[int]) -> list[tuple[int, int]]:
    """The runs of a list of indices."""
    starts = [i for i, index in enumerate(indices) if i == 0 or index != indices[i - 1] + 1]
    return [(a, b - a) for a, b in zip(starts, [*starts[1:], len(indices)], strict=True)]


@given(swizzles(), st.integers(-40, 40), brute.layouts(low=-20))
def test_runs_of_known_layouts_are_those_of_their_indices(swizzle: Swizzle, offset: int, inner: Layout) -> None:
    table = brute.table(inner)
    assert runs(inner) == _listed(table)
    assert runs(ComposedLayout(swizzle, offset, inner)) == _listed([bit_by_bit(swizzle, offset + i) for i in table])


@given(swizzles(), st.sampled_from([1, 2, 4, 8, 24, 64, 512]), brute.layouts(most=64), st.data())
def test_runs_beside_a_runtime_offset_hold_for_all(swizzle: Swizzle, divisor: int, inner: Layout, data: Any) -> None:
    table = brute.table(inner)
    found = runs(ComposedLayout(swizzle, RuntimeInt(divisor=divisor), inner))
    assert [first for first, _ in found] == [sum(count for _, count in found[:i]) for i in range(len(found))]
    offset = divisor * data.draw(st.integers(0, 600))
    indices = [bit_by_bit(swizzle, offset + i) for i in table]
    for first, count in found:
        assert indices[first : first + count] == list(range(indices[first], indices[first] + count))


@given(swizzles(), st.integers(0, 4), st.integers(0, 3), st.sampled_from([0, 8, 32, 40]))
def test_aligned_runs_are_told(swizzle: Swizzle, power: int, rows: int, stride: int) -> None:
    """Runs of 2**base, and of the whole layout where nothing of the offset reaches the swizzle."""
    run, base = 1 << power, 1 << swizzle.base
    inner = Layout((run, rows + 1), (1, stride * run))
    together = consecutive(ComposedLayout(swizzle, RuntimeInt(divisor=run), inner), run)
    if run <= base or not swizzle.bits:
        assert together % run == 0
    far = runs(ComposedLayout(swizzle, RuntimeInt(divisor=4096), inner))
    assert far == _listed([bit_by_bit(swizzle, i) for i in brute.table(inner)])


def test_what_is_told_of_single_layouts() -> None:
    assert consecutive(parse("S<3,3,3> o ?{div=8} o ((8,1),4,1,2):((1,0),2048,0,8192)"), 8) == 8
    assert consecutive(parse("S<3,3,3> o ?{div=4} o 8:1"), 8) == 4
    assert consecutive(parse("S<3,3,3> o 4 o 8:1"), 8) == 8, "4 to 11 have no bit that it reads"
    assert consecutive(parse("S<3,3,3> o 68 o 8:1"), 8) == 4
    assert consecutive(parse("S<3,3,3> o 0 o (8,4):(1,?{div=8})"), 8) == 8
    assert consecutive(parse("S<3,3,3> o 0 o (8,4):(1,?)"), 8) == 1
    assert runs(parse("(4,2):(1,?)")) == [(0, 4), (4, 4)]
