"""Views through a swizzle: each element lies where the definition of the layout says, bit by bit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
from flylab.layout import Layout, Swizzle
from tests.layout import brute
from tests.layout.test_swizzle import bit_by_bit, swizzles
from tests.samples import cell, kernel_of

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


@pytest.fixture(params=CHIPS)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(f"emulated:{request.param}"):
        yield


def run(body: str, *arrays: np.ndarray) -> None:
    """A kernel of this body over A (and B), and a view of A through S<3,3,3>: `tile`, 16 rows of 64."""
    first = "tile = fx.make_view(fx.get_iter(A), fx.make_composed_layout(SWIZZLE, fx.make_layout((16, 64), (64, 1))))\n"
    names = kernel_of(first + textwrap.dedent(body), "A: fx.Tensor, B: fx.Tensor")
    names["SWIZZLE"] = Swizzle(3, 3, 3)
    names["launch"](*arrays)


def swizzled(numbers: np.ndarray) -> np.ndarray:
    """What memory holds where these numbers (16 x 64) lie in it through S<3,3,3>."""
    memory = np.zeros(numbers.size, numbers.dtype)
    for index, number in enumerate(numbers.ravel()):
        memory[bit_by_bit(Swizzle(3, 3, 3), index)] = number
    return memory


NUMBERS = np.arange(1024, dtype=np.float32).reshape(16, 64)
ROWS = """
t = fx.thread_idx.x
row = fx.slice(tile, (t % 16, None))
"""
BODIES = {
    "a branch": ("""
        if t < 8:
            row = fx.slice(tile, (15 - t, None))
        if t < 16:
            fx.slice(B, (t, None)).store(row.load())
     """, lambda n: np.vstack([n[:7:-1], n[8:]])),
    "aligned on both paths": ("""
        part = fx.slice(fx.zipped_divide(tile, (1, 8)), ((0, None), (t // 8, t % 8)))
        if t < 32:
            part = fx.slice(fx.zipped_divide(tile, (1, 8)), ((0, None), (t // 8 + 8, t % 8)))
        f = fx.make_rmem_tensor(8, fx.Float32)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), part, f)
        fx.slice(fx.zipped_divide(B, (1, 8)), ((0, None), (t // 8, t % 8))).store(f.load())
     """, lambda n: np.concatenate([np.roll(n, -8, 0)[:4], n[4:8], np.zeros((8, 64))])),
    "a loop that moves it": ("""
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        for i in range(4):
            part = fx.slice(fx.zipped_divide(tile, (1, 4)), ((0, None), (i * 4 + t // 16, t % 16)))
            f = fx.make_rmem_tensor(4, fx.Float32)
            fx.copy(atom, part, f)
            fx.slice(fx.zipped_divide(B, (1, 4)), ((0, None), (i * 4 + t // 16, t % 16))).store(f.load())
     """, lambda n: n),
    "carried by a loop": ("""
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
        rows = fx.zipped_divide(tile, (1, 8))
        part = fx.slice(rows, ((0, None), (0, 0)))
        total = fx.Float32(0.0)
        for i in range(8):
            f = fx.make_rmem_tensor(8, fx.Float32)
            fx.copy(atom, part, f)
            total = total + f.load()[3] * (i + 1)
            part = fx.slice(rows, ((0, None), (i + 1, (i + 1) * (i + 2) // 2 % 8)))
        B[0, t] = total
     """, lambda n: sum((i + 1) * n[i, i * (i + 1) // 2 % 8 * 8 + 3] for i in range(8)) * np.eye(16, 1)),
    "a while loop": ("""
        i = t * 0
        while i < 15:
            i = i + 1
            row = fx.slice(tile, (i, None))
        B[0, t] = row[t]
     """, lambda n: np.vstack([n[15], np.zeros((15, 64))])),
    "divides of divides": ("""
        quads = fx.flat_divide(fx.slice(fx.tiled_divide(tile, (8, 32)), (None, 1, t // 32)), (2, 4))
        B_quads = fx.flat_divide(fx.slice(fx.tiled_divide(B, (8, 32)), (None, 1, t // 32)), (2, 4))
        place = (None, None, t % 32 // 8, t % 8)
        fx.slice(B_quads, place).store(fx.slice(quads, place).load())
     """, lambda n: np.concatenate([np.zeros((8, 64)), n[8:]])),
    "a composition": ("""
        order = fx.make_layout((4, 16, 16), (16, 64, 1))
        parts = fx.make_view(fx.get_iter(A), fx.composition(fx.get_layout(tile), order))
        for i in fx.range_constexpr(16):
            B[i, t] = parts[t % 4, i, t // 4]
     """, lambda n: n.reshape(16, 16, 4).transpose(1, 0, 2).reshape(16, 64)),
    "registers": ("""
        if t < 16:
            r = fx.make_rmem_tensor(fx.make_composed_layout(fx.Swizzle(2, 2, 2), fx.make_layout(64)), fx.Float32)
            r.store(row.load())
            flat = fx.make_view(fx.get_iter(r), fx.make_layout(64))
            fx.slice(B, (t, None)).store(flat.load())
     """, lambda n: n[:, [bit_by_bit(Swizzle(2, 2, 2), i) for i in range(64)]]),
    "an offset without a swizzle": ("""
        moved = fx.make_view(fx.get_iter(A), fx.make_composed_layout(None, t * 2, fx.make_layout(2)))
        B[0, t] = moved[1]
     """, lambda n: np.vstack([swizzled(n)[1:128:2], np.zeros((15, 64))])),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_through_slices_and_control_flow(chip: None, name: str) -> None:
    body, wanted = BODIES[name]
    found = np.zeros((16, 64), np.float32)
    run(ROWS + textwrap.dedent(body), swizzled(NUMBERS), found)
    expected = wanted(NUMBERS)
    assert (found == expected).all() if name != "carried by a loop" else (found[0] == expected[0, 0]).all()
