"""Views through a swizzle: each element lies where the definition of the layout says, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
from flylab.layout import Layout, Swizzle
from tests.layout import brute
from tests.layout.test_swizzle import bit_by_bit, swizzles
from tests.samples import cell

CHIPS = ("gfx942", "gfx950")
ROOM = 8192
"""Elements of memory for each case."""

PLACES = cell("""
    @flyc.kernel
    def k(out: fx.Tensor, order: fx.Tensor, cases: fx.Constexpr, offsets, buffered: fx.Constexpr):
        t = fx.thread_idx.x
        room = fx.size(out) // (3 * len(cases))
        memory = fx.get_iter(fx.rocdl.make_buffer_tensor(out) if buffered else out)
        for i, ((swizzle, inner, divisor), offset) in enumerate(zip(cases, offsets)):
            if divisor > 1:
                offset = fx.assume(offset, div=divisor)
            layout = fx.make_composed_layout(swizzle, offset, inner)
            element, whole, back = [fx.make_view(memory + (3 * i + j) * room, layout) for j in range(3)]
            if t < fx.size(inner):
                element[t] = t + 1
            if t == 0:
                numbers = fx.make_view(fx.get_iter(order), fx.make_layout(fx.size(inner)))
                whole.store(numbers.load())
                # What is read through the view goes to the other half of its room.
                back.store(numbers.load())
                fx.make_view(memory + (3 * i + 2) * room + room // 2, fx.make_layout(fx.size(inner))).store(back.load())

    @flyc.jit
    def launch(out: fx.Tensor, order: fx.Tensor, cases: fx.Constexpr, offsets: fx.Constexpr, a: fx.Int32, b: fx.Int32,
               c: fx.Int32, d: fx.Int32, runtime: fx.Constexpr, buffered: fx.Constexpr):
        k(out, order, cases, (a, b, c, d) if runtime else offsets, buffered).launch(grid=1, block=64)
""")["launch"]


@st.composite
def views(draw: Any) -> tuple[Swizzle, Layout, int, int]:
    """A swizzle, an inner layout, an offset, and what is known of the offset while it is a number of the device."""
    divisor = draw(st.sampled_from([1, 2, 4, 8, 16, 512]))
    return draw(swizzles()), draw(brute.disjoint(most=64, broadcast=False)), divisor * draw(st.integers(0, 4)), divisor


@pytest.mark.parametrize("chip", CHIPS)
@settings(max_examples=10)
@given(cases=st.lists(views(), min_size=4, max_size=4), runtime=st.booleans(), buffered=st.booleans())
def test_an_element_lies_where_its_layout_says(chip: str, cases: Any, runtime: bool, buffered: bool) -> None:
    offsets = [offset for *_, offset, _ in cases]
    kept = tuple([(swizzle, inner, divisor) for swizzle, inner, _, divisor in cases])
    out = np.zeros(ROOM * 3 * len(cases), np.int32)
    with flylab.use(f"emulated:{chip}"):
        PLACES(out, np.arange(1, 65, dtype=np.int32), kept, tuple(offsets), *offsets, runtime, buffered)
    for rooms, (swizzle, inner, offset, _) in zip(out.reshape(len(cases), 3, ROOM), cases, strict=True):
        wanted = np.zeros(ROOM, np.int32)
        for number, index in enumerate(brute.table(inner), start=1):
            wanted[bit_by_bit(swizzle, offset + index)] = number
        assert (rooms[0] == wanted).all() and (rooms[1] == wanted).all(), (str(swizzle), offset, str(inner))
        assert (rooms[2][: ROOM // 2] == wanted[: ROOM // 2]).all()
        count = len(brute.table(inner))
        assert rooms[2][ROOM // 2 :][:count].tolist() == list(range(1, count + 1))
