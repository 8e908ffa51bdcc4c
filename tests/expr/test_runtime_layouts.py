"""Layouts with runtime extents and strides in kernels: coordinates, sizes, views, arguments and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.errors import FlylabError, OutOfBounds
from flylab.layout import Swizzle
from tests.expr.programs import check, in_python, on_device
from tests.samples import cell, kernel_of

VALUES = [(5, 7, 3), (8, 4, 2), (1, 9, 4), (6, 1, 1), (16, 64, 2)]
COORDINATES = {
    "row-major": lambda lib, n, t: [lib.idx2crd(t, lib.make_layout((n[0], n[1]), (n[1], 1)))],
    "column-major": lambda lib, n, t: [lib.idx2crd(t, lib.make_layout((n[0], n[1])))],
    "three modes": lambda lib, n, t: [lib.idx2crd(t, lib.make_layout((n[0], n[1], n[2]), (n[1] * n[2], n[2], 1)))],
    "rows with a gap": lambda lib, n, t: [lib.idx2crd(t % n[1], lib.make_layout((n[0], n[1]), (n[1] + 3, 1)))],
    "a bare shape": lambda lib, n, t: [lib.idx2crd(t, (n[0], (n[1], 2)))],
    "flat": lambda lib, n, t: [lib.get_flat_coord(t, (n[0], (n[1], 2)))],
    "back": lambda lib, n, t: [lib.crd2idx(lib.idx2crd(t, (n[0], n[1])), lib.make_layout((n[0], n[1]), (n[1], 1)))],
    "1d": lambda lib, n, t: [lib.get_1d_coord(t, lib.make_layout((n[0], n[1]), (n[1], 1)))],
    "negative strides": lambda lib, n, t: [lib.crd2idx(
        (t % n[0], t % n[1]), lib.make_layout((n[0], n[1]), (-8, 8 - n[1])))],
    "swizzled": lambda lib, n, t: [lib.crd2idx((t // 8, t % 8), lib.make_composed_layout(
        Swizzle(3, 0, 3), lib.make_layout((n[0] * 8, 8), (8, 1))))],
    "a coordinate tensor": lambda lib, n, t: [lib.crd2idx(
        (t % 4, t // 4), lib.slice(lib.zipped_divide(lib.make_view((0, 0), lib.make_identity_layout((n[0], n[1]))),
                                                     (4, 16)), (None, (n[0] // 8, 0))))],
    "sums of tuples": lambda lib, n, t: [lib.int_tuple_sub(lib.int_tuple_add((t, (n[0], 3)), (1, (2, n[1]))),
                                                           (5, (t, 2)))],
    "floor": lambda lib, n, t: [lib.int_tuple_div((t - 20, 7), (n[0], n[1])),
                                lib.int_tuple_mod((t - 20, 7), (n[0], n[1]))],
    "modes": lambda lib, n, t: [lib.get(lib.group(lib.append((t, n[0]), n[1]), 0, 2), (0, 1)),
                                lib.take((1, t, n[2]), 1, 3)],
}  # fmt: skip


@pytest.mark.parametrize("name", COORDINATES)
def test_coordinates(name: str) -> None:
    program = COORDINATES[name]
    for numbers, table in zip(VALUES, on_device(program, [{}] * 3, VALUES), strict=True):
        assert (table == in_python(program, numbers)).all(), (numbers, table[:9])


def test_the_strides_of_a_compact_layout_cost_one_division_a_digit() -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, n, m):
            i, j, k = fx.idx2crd(fx.thread_idx.x, fx.make_ordered_layout((8, n, m), (2, 1, 0)))
            A[i] = j + k

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32, m: fx.Int32):
            k(A, n, m).launch(grid=1, block=64)
    """)["launch"]
    lowered = str(flyc.compile(launch, np.zeros(8, np.int32), 4, 2).show("fly-layout-lowering"))
    assert lowered.count("arith.remui") == 3 and lowered.count("arith.divui") == 2


def test_what_is_assumed_decides() -> None:
    """128 rows divide without a rest: the count of tiles is a shift, where it is rounded up otherwise."""
    def program(lib: Any, n: Any, t: Any) -> list[Any]:
        return [lib.get_shape(lib.zipped_divide(lib.make_layout((n[0], n[1])), (128, 64)))]

    check(program, [(256, 70, 0), (128, 64, 0)], [{"div": 128}, {}, {}])
    check(program, [(300, 70, 0), (1, 64, 0)])


def test_sizes_beyond_32_bits_are_exact() -> None:
    def program(lib: Any, n: Any, t: Any) -> list[Any]:
        layout = lib.make_layout((n[0], n[1]), (n[1], 1))
        return [lib.size(layout), lib.cosize(layout), lib.crd2idx((n[0] - 1, t), layout)]

    check(program, [(2**20, 2**20, 1), (2**31 - 1, 2**31 - 1, 0)])


def test_layouts_tuples_and_tensors_are_passed_to_kernels() -> None:
    launch = cell("""
        @flyc.kernel
        def k(out: fx.Tensor, layout, shape, A: fx.Tensor, places):
            t = fx.thread_idx.x
            crd = fx.idx2crd(t, layout)
            out[t, 0] = A[crd] + shape[1][0]
            out[t, 1] = fx.Int32(fx.crd2idx(crd, places))
            out[t, 2] = fx.Int32(fx.size(A)) + fx.rank(layout)

        @flyc.jit
        def launch(out: fx.Tensor, A: fx.Tensor, m: fx.Int32, n: fx.Int32):
            layout = fx.make_layout((m, n), (n, 1))
            A = fx.make_view(fx.get_iter(A), layout)
            places = fx.make_composed_layout(fx.Swizzle(1, 0, 2), layout)
            k(out, layout, (3, (n, "a")), A, places).launch(grid=1, block=m * n)
    """)["launch"]
    A, out = np.arange(40, dtype=np.int32) * 10, np.zeros((40, 3), np.int32)
    launch(out, A, 5, 8)
    swizzle = Swizzle(1, 0, 2)
    assert out.tolist() == [[10 * i + 8, swizzle(i), 42] for i in range(40)]


def test_places_are_sliced_and_indexed_as_the_tensor_beside_them() -> None:
    names = kernel_of("""
        t = fx.Int32(fx.thread_idx.x)
        places = fx.make_view((n, 0), fx.make_identity_layout((64, 4)))
        row, column = places[t, None], places[None, n]
        first, second = row[2], column[t]
        flat = fx.make_view(n, fx.make_identity_layout(64))[t]
        B[t] = first[0] * 1000 + first[1] * 100 + second[0] + second[1] + flat
    """, "B: fx.Tensor, n: fx.Int32")
    B = np.zeros(64, np.int32)
    names["launch"](B, 3)
    assert B.tolist() == [(3 + t) * 1000 + 200 + (3 + t) + 3 + (3 + t) for t in range(64)]


def test_a_grid_from_a_layout_and_predicates_from_a_coordinate_tensor() -> None:
    launch = cell("""
        @flyc.kernel
        def k(out: fx.Tensor, m, n):
            tiles = fx.zipped_divide(fx.make_view((0, 0), fx.make_identity_layout((m, n))), (4, 16))
            row, column = fx.slice(tiles, (None, fx.block_idx.x))[fx.thread_idx.x // 16, fx.thread_idx.x % 16]
            inside = fx.elem_less((row, column), (m, n))
            out[inside.select(row, 0), inside.select(column, 0)] = inside.select(row * 100 + column, 0)

        @flyc.jit
        def launch(out: fx.Tensor, m: fx.Int32, n: fx.Int32):
            tiles = fx.zipped_divide(fx.make_layout((m, n)), (4, 16))
            k(out, m, n).launch(grid=fx.size(tiles[1]), block=64)
    """)["launch"]
    out = np.full((7, 20), -1, np.int32)
    launch(out, 7, 20)
    assert (out == np.add.outer(np.arange(7) * 100, np.arange(20))).all()


@pytest.mark.parametrize("row", [7, 8])
def test_a_view_of_a_runtime_layout_is_memory(row: int) -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, m, n, row):
            whole = fx.make_view(fx.get_iter(A), fx.make_layout((m, n), (n, 1)))
            tiles = fx.tiled_divide(whole, (1, 4))
            tile = fx.slice(tiles, (None, row, fx.thread_idx.x))
            tile.store(tile.load() + 1.0)

        @flyc.jit
        def launch(A: fx.Tensor, m: fx.Int32, n: fx.Int32, row: fx.Int32):
            k(A, m, n, row).launch(grid=1, block=n // 4)
    """)["launch"]
    A = np.zeros((8, 12), np.float32)
    if row == 8:
        with pytest.raises(OutOfBounds):
            launch(A, 8, 12, row)
    else:
        launch(A, 8, 12, row)
        assert A[row].all() and A.sum() == 12


def test_no_elements() -> None:
    """A runtime extent may be 0: sizes, reaches and bounds are those of nothing."""
    def program(lib: Any, n: Any, t: Any) -> list[Any]:
        padded = lib.make_layout((n[0], n[1]), (n[1] + 4, 1))
        return [lib.size(padded), lib.cosize(padded), lib.cosize(lib.make_layout((n[0], (n[1], n[2])))),
                lib.size(lib.complement(lib.make_layout(4), n[0])), lib.size(lib.zipped_divide(padded, (4, 8)))]

    check(program, [(0, 7, 3), (5, 0, 3), (5, 7, 0), (5, 7, 3), (0, 0, 0)])


WITHIN = {
    "row": "v = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(A)), L)",
    "whole": "v = fx.rocdl.make_buffer_tensor(fx.make_view(fx.get_iter(A), L))",
}


@pytest.mark.parametrize("made", WITHIN)
@pytest.mark.parametrize(("m", "kept"), [(8, 8), (5, 5), (0, 0)])
def test_buffers_of_runtime_layouts_drop_what_is_outside(made: str, m: int, kept: int) -> None:
    launch = cell(f"""
        @flyc.kernel
        def k(A: fx.Tensor, m, n):
            L = fx.make_layout((m, n), (n, 1))
            {WITHIN[made]}
            v[fx.thread_idx.x // 12, fx.thread_idx.x % 12] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor, m: fx.Int32, n: fx.Int32):
            k(A, m, n).launch(grid=1, block=96)
    """)["launch"]
    A = np.zeros(96, np.float32)
    launch(A, m, 12)
    wanted = 96 if made == "row" else kept * 12
    assert A.sum() == wanted and A[:wanted].all()


def test_tiles_of_a_runtime_stride_are_copied_and_stored() -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor, n):
            tiles = [fx.slice(fx.zipped_divide(fx.make_view(fx.get_iter(t), fx.make_layout((n, 8), (1, n))), (4, 2)),
                              (None, (fx.thread_idx.x // 4, fx.thread_idx.x % 4))) for t in (A, B)]
            r = fx.make_rmem_tensor((4, 2), fx.Float32)
            fx.copy(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32), tiles[0], r)
            tiles[1].store(r.load() + tiles[0].load())

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
            k(A, B, n).launch(grid=1, block=n)
    """)["launch"]
    A, B = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launch(A, B, 8)
    assert (B == 2 * A).all()
    lowered = str(flyc.compile(launch, A, B, 8).show("fly-layout-lowering"))
    assert lowered.count("vector<4xf32>") >= 4  # two runs of four elements, loaded and stored together


def test_what_stands_in_a_tuple_is_kept() -> None:
    launch = cell("""
        @flyc.kernel
        def k(out: fx.Tensor, n):
            t = fx.thread_idx.x
            row = fx.slice(out, fx.make_coord(t, None))
            row.store(row.load() + 1)
            tile = fx.make_tile(fx.make_layout(2, fx.assume(n, low=1)), None)
            tiles = fx.zipped_divide(fx.make_layout((n, 4)), tile)
            out[t, 0] = fx.Int32(fx.size(tiles[0])) + len(tile)
            joined = fx.make_layout(fx.make_layout(n), fx.make_layout(n, 64), fx.make_layout(2, 7))
            out[t, 1] = fx.Int32(fx.size(joined)) + fx.rank(joined)
            out[t, 2] = fx.elem_less((t - 1,), (fx.Uint32(n),)).select(1, 0)

        @flyc.jit
        def launch(out: fx.Tensor, n: fx.Int32):
            k(out, n).launch(grid=1, block=4)
    """)["launch"]
    out = np.zeros((4, 4), np.int32)
    launch(out, 3)
    assert out.tolist() == [[4, 21, 1, 1]] * 4


ROWS = "L = fx.make_layout((m, n), (n, 1))"
REFUSED = {
    "compared": (f"{ROWS}\nif L == fx.make_layout((m, n)): pass", "are equal is known only on the device", "fx.equal"),
    "a condition": (f"{ROWS}\nif L: pass", "as a condition", "compare its size"),
    "listed": (f"{ROWS}\nL.offsets()", "the indices of (m?,n?):(n?,1) are known only on the device", "layout(coord)"),
    "its overcover": (f"{ROWS}\nL.overcover", "is not kept", "fx.overcover(layout, divisor)"),
    "a negative coordinate": (f"{ROWS}\nfx.make_view(fx.get_iter(A), L)[1, -2] = 1.0", "coordinate -2 of", "not -1"),
    "coordinates in memory": ("fx.make_view(fx.get_iter(A), fx.make_identity_layout((m, n)))",
                              "and not places in memory", "fx.make_view((0, 0), layout)"),
    "registers": ("fx.make_rmem_tensor((m, n), fx.Float32)", "registers need extents", "tile of known extents"),
    "a mode by a runtime index": (f"{ROWS}\nfx.get(L, m)", "a number is needed before", "a Python int"),
    "beyond 64 bits": ("fx.size(fx.make_layout((m, 2**70)))", "64 bits, which do not hold it", "smaller numbers"),
    "divided by 0": ("fx.int_tuple_div((m, 1), (n, 0))", "which holds a 0", "other numbers"),
    "a Boolean extent": ("fx.make_layout((m < n, 4))", "in a layout is a Boolean", "fx.Int32"),
    "nothing assumed": ("fx.assume(m)", "says nothing", "div=8"),
    "a false divisor": ("fx.assume(m, div=-4)", "assume(div=-4)", "1 or more"),
    "undecided": (f"{ROWS}\nfx.recast_layout(L, 8, 16)", "recast_layout((m?,n?):(n?,1), 8, 16): whether 2 divides n?",
                  "fx.assume(n, div=2)"),
    "inside a mode": (f"{ROWS}\nfx.composition(L, fx.make_layout(4, 2))", "stays inside the outer mode m?:n?",
                      "fx.assume(n, div=8)"),
    "in the algebra itself": (f"{ROWS}\nfrom flylab.layout import explain, coalesce\ncoalesce(L)", "is not a layout",
                              "flylab.expr"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_users_words(name: str) -> None:
    body, message, hint = REFUSED[name]
    text = "\n".join("    " + line for line in body.splitlines())
    names = cell(f"@flyc.kernel\ndef k(A: fx.Tensor, m, n):\n{text}\n\n@flyc.jit\n"
                 "def launch(A: fx.Tensor, m: fx.Int32, n: fx.Int32):\n    k(A, m, n).launch(grid=1, block=64)\n")
    with pytest.raises(FlylabError) as caught:
        flyc.compile(names["launch"], np.zeros(96, np.float32), 8, 12)
    assert message in caught.value.message and hint in (caught.value.hint or "")
    assert caught.value.where is not None and caught.value.where.line == 2 + len(body.splitlines())


def test_a_name_is_one_number_wherever_it_stands() -> None:
    """A row-major layout of runtime extents is compact: it has inverses, complements and products."""
    def program(lib: Any, n: Any, t: Any) -> list[Any]:
        a, b, c = n
        rows, columns = lib.make_layout((a, b), (b, 1)), lib.make_layout((a, b, c))
        inverse = lib.right_inverse(rows)
        return [lib.crd2idx(t % lib.size(rows), inverse), lib.size(inverse), lib.crd2idx(t, lib.coalesce(columns)),
                lib.rank(lib.coalesce(columns)), lib.size(lib.complement(rows, a * b * 8)),
                lib.crd2idx(t, lib.blocked_product(rows, lib.make_layout((2, 3)))),
                lib.crd2idx(t % lib.size(rows), lib.left_inverse(rows)),
                lib.crd2idx(t % lib.size(rows), lib.composition(rows, lib.make_layout((b, a), (a, 1))))]

    check(program, [(5, 7, 3), (8, 4, 2), (16, 64, 2)])


ONE_NAME = {
    "a layout brings the launcher's names": ("""
        C = fx.coalesce(fx.make_layout((m, 2), (1, L.shape[0])))
        out[0] = fx.Int64(fx.crd2idx(6, C))
     """, 4),
    "a number and its unsigned reading": ("""
        i = fx.Int8(n - 4)
        u = fx.Uint8(i)
        out[0] = fx.Int64(fx.crd2idx((1, 0), fx.make_layout((u, 4), (i, 1))))
     """, -1),
    "a product that wraps": ("""
        a = fx.Uint8(m)
        p = a * fx.Uint8(n + 53)
        i, j, l = fx.idx2crd(24, fx.make_layout((3, 4, a), (p, a, 1)))
        out[0] = i * 100 + j * 10 + l
     """, 100),
    "a name given again": ("""
        before = fx.make_layout(n)
        n = n + 1
        n_2 = n + 1
        L = fx.make_layout((before.shape[0] if False else fx.get_shape(before), n, n_2))
        out[0] = fx.Int64(fx.crd2idx(fx.size(L) - 1, fx.coalesce(L)))
     """, 59),
    "a name that begins with S": ("""
        SEQ, E0, o = m, n, m + n
        out[0] = fx.Int64(fx.size(fx.zipped_divide(fx.make_layout((SEQ, E0, o)), (2, 2))))
     """, 6 * 4 * 8),
    "signs and values": ("""
        less = fx.elem_less((n - 4,), (fx.Uint32(m),)).select(10, 0)
        out[0] = less + fx.equal((n - 4,), (fx.Uint32(n - 4),)).select(1, 0)
     """, 10),
    "long names": ("""
        a_name_of_more_than_thirty_letters_in_all = m
        L = fx.make_layout((a_name_of_more_than_thirty_letters_in_all, 2**40, 2**20))
        out[0] = fx.Int64(fx.crd2idx((1, 1, 1), fx.zipped_divide(L, (1, 1, 1)))) if False else fx.rank(L)
     """, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_NAME)
def test_a_name_is_one_number(name: str) -> None:
    body, wanted = ONE_NAME[name]
    launch = cell(f"""
    @flyc.kernel
    def k(out: fx.Tensor, L, m, n):
        {body.strip()}

    @flyc.jit
    def launch(out: fx.Tensor, m: fx.Int32, n: fx.Int32):
        k(out, fx.make_layout((m, n), (n, 1)), n, m).launch(grid=1, block=1)
    """)["launch"]
    out = np.zeros(8, np.int64)
    launch(out, 3, 5)
    assert out[0] == wanted


def test_what_the_launcher_knows_of_a_number_the_kernel_knows() -> None:
    """The layout's extent and the number beside it are one number of the launcher."""
    launch = cell("""
        @flyc.kernel
        def k(out: fx.Tensor, L, rows, n):
            out[0] = fx.rank(fx.coalesce(fx.make_layout((rows, n), (1, L.shape[0]))))

        @flyc.jit
        def launch(out: fx.Tensor, m: fx.Int32, n: fx.Int32):
            k(out, fx.make_layout((m, n), (n, 1)), m, n).launch(grid=1, block=1)
    """)["launch"]
    out = np.zeros(8, np.int64)
    launch(out, 3, 5)
    assert out[0] == 1
