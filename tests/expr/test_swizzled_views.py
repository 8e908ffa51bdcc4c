"""Views through a swizzle: each element lies where the definition of the layout says, bit by bit."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
from flylab.errors import FlylabError
from flylab.layout import ComposedLayout, Layout, Swizzle, coalesce, composition, flat_divide, group, select, take
from tests.layout import brute
from tests.layout.test_swizzle import bit_by_bit, swizzles
from tests.samples import cell, kernel_of

CHIPS = ("gfx942", "gfx950")
SPACES = ("global", "buffer", "shared")
ROOM = 8192
"""Elements of memory for each case."""

PLACES = cell("""
    @flyc.kernel
    def k(out: fx.Tensor, order: fx.Tensor, cases: fx.Constexpr, offsets, space: fx.Constexpr):
        t = fx.thread_idx.x
        room = fx.size(out) // (3 * len(cases))
        memory = fx.get_iter(fx.rocdl.make_buffer_tensor(out) if space == "buffer" else out)
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Int32, room])
        for i, ((swizzle, inner, divisor), offset) in enumerate(zip(cases, offsets)):
            if divisor > 1:
                offset = fx.assume(offset, div=divisor)
            layout = fx.make_composed_layout(swizzle, offset, inner)
            numbers = fx.make_view(fx.get_iter(order), fx.make_layout(fx.size(inner)))
            for j in fx.range_constexpr(3):
                place = fx.make_view(memory + (3 * i + j) * room, fx.make_layout(room))
                start = fx.get_iter(place)
                if space == "shared":
                    start = lds.ptr
                    for e in range(t, room, 64):
                        start[e] = 0
                    gpu.barrier()
                view = fx.make_view(start, layout)
                if j == 0:
                    if t < fx.size(inner):
                        view[t] = t + 1
                elif t == 0:
                    view.store(numbers.load())
                    if j == 2:  # what is read through the view goes to the other half of its room
                        fx.make_view(start + room // 2, fx.make_layout(fx.size(inner))).store(view.load())
                if space == "shared":
                    gpu.barrier()
                    for e in range(t, room, 64):
                        place[e] = start[e]
                    gpu.barrier()

    @flyc.jit
    def launch(out: fx.Tensor, order: fx.Tensor, cases: fx.Constexpr, offsets: fx.Constexpr, a: fx.Int32, b: fx.Int32,
               c: fx.Int32, d: fx.Int32, runtime: fx.Constexpr, space: fx.Constexpr):
        k(out, order, cases, (a, b, c, d) if runtime else offsets, space).launch(grid=1, block=64)
""")["launch"]


@st.composite
def views(draw: Any) -> tuple[Swizzle, Layout, int, int]:
    """A swizzle, an inner layout, an offset, and what is known of the offset while it is a number of the device."""
    divisor = draw(st.sampled_from([1, 2, 4, 8, 16, 512]))
    return draw(swizzles()), draw(brute.disjoint(most=64, broadcast=False)), divisor * draw(st.integers(0, 4)), divisor


@pytest.mark.parametrize("chip", CHIPS)
@settings(max_examples=10)
@given(cases=st.lists(views(), min_size=4, max_size=4), runtime=st.booleans(), space=st.sampled_from(SPACES))
def test_an_element_lies_where_its_layout_says(chip: str, cases: Any, runtime: bool, space: str) -> None:
    offsets = [offset for *_, offset, _ in cases]
    kept = tuple([(swizzle, inner, divisor) for swizzle, inner, _, divisor in cases])
    out = np.zeros(ROOM * 3 * len(cases), np.int32)
    with flylab.use(f"emulated:{chip}"):
        PLACES(out, np.arange(1, 65, dtype=np.int32), kept, tuple(offsets), *offsets, runtime, space)
    for rooms, (swizzle, inner, offset, _) in zip(out.reshape(len(cases), 3, ROOM), cases, strict=True):
        wanted = np.zeros(ROOM, np.int32)
        for number, index in enumerate(brute.table(inner), start=1):
            wanted[bit_by_bit(swizzle, offset + index)] = number
        assert (rooms[0] == wanted).all() and (rooms[1] == wanted).all(), (str(swizzle), offset, str(inner))
        assert (rooms[2][: ROOM // 2] == wanted[: ROOM // 2]).all()
        count = len(brute.table(inner))
        assert rooms[2][ROOM // 2 :][:count].tolist() == list(range(1, count + 1))


PARTS = cell("""
    @flyc.kernel
    def k(memory: fx.Tensor, out: fx.Tensor, cases: fx.Constexpr):
        t = fx.thread_idx.x
        for i, (layout, tile, coord) in enumerate(cases):
            view = fx.zipped_divide(fx.make_view(fx.get_iter(memory), layout), tile)
            known = [t % fx.size(mode) if c == "t" else c for c, mode in zip(coord, view.shape)]
            part = fx.slice(view, tuple(known))
            fx.slice(fx.make_view(fx.get_iter(out) + i * 4096, fx.make_layout((64, fx.size(part)), (64, 1))),
                     (t, None)).store(part.load())

    @flyc.jit
    def launch(memory: fx.Tensor, out: fx.Tensor, cases: fx.Constexpr):
        k(memory, out, cases).launch(grid=1, block=64)
""")["launch"]


@st.composite
def parts(draw: Any) -> tuple[ComposedLayout, int, tuple[Any, Any]]:
    """A swizzled layout, a tile, and what a thread takes of (places in a tile, tiles): all (None), one, or its own."""
    extents = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=1, max_size=2))
    tile = draw(st.sampled_from([d for d in (1, 2, 4) if extents[0] % d == 0]))
    strides = [draw(st.sampled_from([1, 2, 4, 8, 9, 16, 64])) for _ in extents]
    layout = ComposedLayout(draw(swizzles()), draw(st.integers(0, 70)), Layout(tuple(extents), tuple(strides)))
    count = extents[0] // tile * (extents[1] if len(extents) > 1 else 1)
    inside = draw(st.sampled_from([None, "t", tile - 1]))
    return layout, tile, (inside, draw(st.sampled_from([None, "t", count - 1])))


@pytest.mark.parametrize("chip", CHIPS)
@settings(max_examples=8)
@given(cases=st.lists(parts(), min_size=8, max_size=8))
def test_parts_are_those_of_the_layout(chip: str, cases: Any) -> None:
    """In memory that holds its own indices: the part of each thread is the indices that the definition gives."""
    out = np.zeros((len(cases), 64, 64), np.int32)
    with flylab.use(f"emulated:{chip}"):
        PARTS(np.arange(16384, dtype=np.int32), out, tuple(cases))
    for (layout, tile, (inside, which)), found in zip(cases, out, strict=True):
        table = [bit_by_bit(layout.outer, layout.offset + index) for index in brute.table(layout.inner)]
        count = len(table) // tile
        for t in range(64):
            places = range(tile) if inside is None else [t % tile if inside == "t" else inside]
            tiles = range(count) if which is None else [t % count if which == "t" else which]
            wanted = [table[j * tile + i] for j in tiles for i in places]
            assert found[t, : len(wanted)].tolist() == wanted, (str(layout), tile, inside, which)


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


def test_a_slice_keeps_the_offset_inside_of_the_swizzle(chip: None) -> None:
    """Case T15: S<3,4,3> over (10,2):(2,1); it changes bits 4 to 6 where bits 7 to 9 are set, which none of these has.
    Of rows 100 further on they are."""
    names = kernel_of("""
        t = fx.thread_idx.x
        pairs, swizzle = fx.make_layout((10, 2), (2, 1)), fx.Swizzle(3, 4, 3)
        whole = fx.make_view(fx.get_iter(A), fx.make_composed_layout(swizzle, pairs))
        far = fx.make_view(fx.get_iter(A), fx.make_composed_layout(swizzle, 200, pairs))
        for i, view in enumerate((whole, far)):
            fx.slice(B, (i, 0, None)).store(fx.slice(view, (None, 0)).load())
            if t < 10:
                B[i, 1, t] = fx.slice(view, (t, None))[1]
    """, "A: fx.Tensor, B: fx.Tensor")
    found = np.zeros((2, 2, 10), np.int32)
    names["launch"](np.arange(512, dtype=np.int32), found)
    for i, start in enumerate((0, 200)):
        for column in range(2):
            wanted = [bit_by_bit(Swizzle(3, 4, 3), start + 2 * row + column) for row in range(10)]
            assert found[i, column].tolist() == wanted
    assert found[0, 0].tolist() == list(range(0, 20, 2)) and found[1, 0, 0] == 200 ^ 16


def test_what_a_view_says_of_itself(chip: None) -> None:
    seen: list[Any] = []
    names = kernel_of("""
        t = fx.thread_idx.x
        whole = fx.make_view(fx.get_iter(A), fx.make_composed_layout(S, fx.make_layout((16, 64), (64, 1))))
        row = fx.slice(whole, (t % 16, None))
        note(whole.layout, whole.shape, whole.stride, fx.get_layout(whole), repr(whole), fx.size(whole))
        note(fx.cosize(whole))
        note(row.layout, row.shape, row.stride, repr(row), fx.composed_get_inner(fx.get_layout(row)))
        note(fx.slice(whole, (9, None)).layout, repr(fx.zipped_divide(row, 8)))
        B[t] = fx.composed_get_offset(row.layout) + fx.crd2idx(3, row.layout) * 10000
    """, "A: fx.Tensor, B: fx.Tensor")
    names.update(note=lambda *values: seen.extend(map(str, values)), S=Swizzle(3, 3, 3))
    found = np.zeros(64, np.int32)
    names["launch"](np.zeros(1024, np.float32), found)
    whole, row = "S<3,3,3> o 0 o (16,64):(64,1)", "S<3,3,3> o ?{<=960 div=64} o 64:1"
    assert seen == [whole, "(16, 64)", "(64, 1)", whole, f"Tensor(f32, global, {whole})", "1024", "1024",
                    row, "(64,)", "(1,)", f"Tensor(f32, global, {row})", "64:1",
                    "S<3,3,3> o 576 o 64:1", f"Tensor(f32, global, {row[:-4]}(8,8):(1,8))"]
    assert found.tolist() == [t % 16 * 64 + bit_by_bit(Swizzle(3, 3, 3), t % 16 * 64 + 3) * 10000 for t in range(64)]


def test_a_swizzled_view_is_passed_to_a_kernel(chip: None) -> None:
    launch = cell("""
        @flyc.kernel
        def k(tile: fx.Tensor, row: fx.Tensor, B: fx.Tensor):
            t = fx.thread_idx.x
            B[0, t] = row[t]
            B[1, t] = tile[3, t]

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
            rows = fx.make_layout((16, 64), (64, 1))
            tile = fx.make_view(fx.get_iter(A), fx.make_composed_layout(fx.Swizzle(3, 3, 3), rows))
            k(tile, fx.slice(tile, (n, None)), B).launch(grid=1, block=64)
    """)["launch"]
    found = np.zeros((2, 64), np.float32)
    launch(swizzled(NUMBERS), found, 9)
    assert (found == NUMBERS[[9, 3]]).all()


def test_rows_of_a_runtime_stride(chip: None) -> None:
    """What lies together hangs on what is known of the stride: multiples of 8 keep runs of 8."""
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, bits: fx.Constexpr):
            inner = fx.make_layout((16, 64), (fx.assume(n, div=8), 1))
            tile = fx.make_view(fx.get_iter(A), fx.make_composed_layout(fx.Swizzle(3, 3, 3), inner))
            atom = fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float32)
            for i in fx.range_constexpr(16):
                f = fx.make_rmem_tensor(4, fx.Float32)
                fx.copy(atom, fx.slice(fx.zipped_divide(tile, (1, 4)), ((0, None), (i, fx.thread_idx.x % 16))), f)
                fx.slice(fx.zipped_divide(B, (1, 4)), ((0, None), (i, fx.thread_idx.x % 16))).store(f.load())

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, bits: fx.Constexpr):
            k(A, B, n, bits).launch(grid=1, block=64)
    """)["launch"]
    memory, found = np.zeros(16 * 72, np.float32), np.zeros((16, 64), np.float32)
    for row in range(16):
        for column in range(64):
            memory[bit_by_bit(Swizzle(3, 3, 3), row * 72 + column)] = NUMBERS[row, column]
    launch(memory, found, 72, 128)
    assert (found == NUMBERS).all()


REFUSED = {
    "atoms that the swizzle parts": (
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), fx.slice(fx.zipped_divide(low, (1, 4)), "
        "((0, None), (t % 16, 2))), fx.make_rmem_tensor(4, fx.Float32))",
        r"the source S<2,1,2> o .*: the atom moves 4 consecutive elements, and here only 2 are .*aligned runs of 2",
        "use an atom of 64 bits"),
    "an offset that is not aligned": (
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), fx.make_view(fx.get_iter(A), "
        "fx.make_composed_layout(SWIZZLE, t, fx.make_layout(4))), fx.make_rmem_tensor(4, fx.Float32))",
        r"the atom moves 4 consecutive elements, and here only 1 are", r"fx\.assume\(i, div=n\)"),
    "a coordinate outside": (
        "tile[16, 0]", r"coordinate 16 of 'tile' S<3,3,3> o 0 o \(16,64\):\(64,1\), in a mode of 16",
        "coordinates go from 0 to 15"),
    "a coordinate that does not fit": ("fx.slice(tile, (0, 0, 0))", r"coordinate \(0,0,0\) does not fit 'tile'",
                                       "each of its 2 modes"),
    "a layout before the layout": (
        "fx.make_view(fx.get_iter(A), fx.make_composed_layout(fx.make_layout(64, 2), fx.make_layout(32)))",
        "before the layout of a view stands a swizzle, and not another layout", r"fx\.composition\(outer, inner\)"),
    "a buffer of a runtime part": (
        "fx.rocdl.make_buffer_tensor(fx.slice(tile, (t % 16, None)))",
        r"how far .*S<3,3,3> o \?\{<=960 div=64\} o 64:1 reaches through its swizzle", "make the buffer of the whole"),
    "a buffer that begins before its pointer": (
        "fx.rocdl.make_buffer_tensor(fx.make_view(fx.get_iter(A), "
        "fx.make_composed_layout(SWIZZLE, -8, fx.make_layout(64))))",
        "has a negative stride, or one that may be", "flip the array"),
    "coordinates": ("fx.make_view(fx.get_iter(A), fx.make_view((0, 0), fx.make_identity_layout((4, 8))))",
                    "which gives coordinates, and not places in memory", "coordinate tensor begins at a coordinate"),
    "more than the registers have": (
        "fx.make_rmem_tensor(fx.make_composed_layout(fx.Swizzle(1, 12, 1), fx.make_layout(4, 2048)), fx.Float32)",
        r"make_rmem_tensor: S<1,12,1> o 0 o 4:2048 has \d+ elements", "divide the work"),
    "a swizzled layout beyond its array": (
        "fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).view(fx.make_composed_layout(fx.Swizzle(1, 5, -1), "
        "fx.make_layout(48)))", r"reaches over \d+ elements, and .* has 64", "declare a larger array"),
    "all of a tile at once": (
        "fx.make_view(fx.get_iter(A), fx.make_composed_layout(SWIZZLE, fx.make_layout((t, 4)))).load()",
        "how many elements it has is known only on the device", "divide it into tiles"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_line_and_a_hint(chip: None, name: str) -> None:
    line, message, hint = REFUSED[name]
    body = ("t = fx.thread_idx.x\nlow = fx.make_view(fx.get_iter(A), fx.make_composed_layout(fx.Swizzle(2, 1, 2), "
            f"fx.make_layout((16, 64), (64, 1))))\n{line}")
    with pytest.raises(FlylabError, match=message) as refusal:
        run(body, np.zeros(1024, np.float32), np.zeros((16, 64), np.float32))
    assert re.search(hint, refusal.value.hint or ""), refusal.value.hint
    assert "line 6" in str(refusal.value) and line.split("(")[0] in str(refusal.value)


ANEW = {
    "composition": ("fx.composition(tile, fx.make_layout((4, 16, 16), (16, 64, 1)))",
                    lambda whole: composition(whole, Layout((4, 16, 16), (16, 64, 1)))),
    "composition by a tile": ("fx.composition(tile, (8, fx.make_layout(16, 4)))",
                              lambda whole: composition(whole, (8, Layout(16, 4)))),
    "coalesce": ("fx.coalesce(fx.flat_divide(tile, (16, 8)), 1)",
                 lambda whole: coalesce(flat_divide(whole, (16, 8)), 1)),
    "group": ("fx.group(fx.flat_divide(tile, (4, 16)), 1, 4)", lambda whole: group(flat_divide(whole, (4, 16)), 1, 4)),
    "take": ("fx.take(tile, begin=1, end=2)", lambda whole: take(whole, 1, 2)),
    "select": ("fx.select(tile, [1, 0])", lambda whole: select(whole, [1, 0])),
}  # fmt: skip


@pytest.mark.parametrize("name", ANEW)
def test_a_view_seen_through_the_algebra(chip: None, name: str) -> None:
    """What a function of the algebra makes of the layout; also where the offset before it is of the device."""
    expression, rule = ANEW[name]
    found = np.zeros((16, 64), np.float32)
    run(f"""
        t = fx.thread_idx.x
        plain = {expression}
        rows = fx.make_composed_layout(SWIZZLE, t // 64 * 512, fx.make_layout((16, 64), (64, 1)))
        tile = fx.make_view(fx.get_iter(A), rows)
        for i in fx.range_constexpr(fx.size(plain) // 64):
            for view in (plain, {expression}):
                B[i, t] = B[i, t] + fx.slice(view, fx.idx2crd(i * 64 + t, view.shape))[0]
    """, swizzled(NUMBERS), found)
    inner = rule(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((16, 64), (64, 1)))).inner
    wanted = [2 * NUMBERS.flat[index] for index in brute.table(inner)]
    assert found.ravel()[: len(wanted)].tolist() == wanted


BUFFER = """
buffer = fx.rocdl.make_buffer_tensor(tile)
far = fx.assume(t * 0 + 2**30, low=0)
B[0, t] = buffer[t % 16, t]
B[1, t] = buffer[16 + t % 4, t]
B[2, t] = buffer[t - 80, t]
B[3, t] = buffer[far + t, t]
B[4, t] = fx.slice(buffer, (t % 16 - 2**26, None))[t]
B[5, t] = fx.slice(fx.zipped_divide(buffer, (4, 16)), (None, (far, t)))[1, 2]
buffer[t + 16, t] = 5.0
buffer[far + t, t] = 5.0
buffer[t % 16, 63 - t] = 1.0
"""


def test_a_swizzled_buffer_ends_where_its_tensor_does(chip: None) -> None:
    """What is outside stays outside through the swizzle, however far it is: reads give 0, writes are dropped."""
    memory, found = np.append(swizzled(NUMBERS), np.full(4096, 7, np.float32)), np.full((16, 64), 3, np.float32)
    run("t = fx.thread_idx.x\n" + BUFFER, memory, found)
    assert (found[0] == NUMBERS[np.arange(64) % 16, np.arange(64)]).all() and not found[1:6].any()
    written = NUMBERS.copy()
    written[np.arange(64) % 16, 63 - np.arange(64)] = 1
    assert (memory[:1024] == swizzled(written)).all() and (memory[1024:] == 7).all()
