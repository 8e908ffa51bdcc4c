"""What lowering makes of views and copies, run on the software device, is what the layout algebra says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import CompileError, FlylabError, TraceError
from flylab.layout import Layout, cosize, logical_divide, size, slice_and_offset
from tests.samples import cell, compile_body, kernel_of

MODES = st.recursive(
    st.tuples(st.sampled_from([1, 2, 3, 4]), st.sampled_from([0, 1, 2, 3, 5, 8])),
    lambda inner: st.lists(inner, min_size=1, max_size=2).map(tuple),
    max_leaves=3,
)


def split(mode: Any) -> tuple[Any, Any]:
    if isinstance(mode[0], int):
        return mode
    return tuple(split(m)[0] for m in mode), tuple(split(m)[1] for m in mode)


LAYOUTS = st.tuples(MODES, MODES).map(lambda m: Layout(*split(m)))

READ = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, zero: fx.Int32, layout: fx.Constexpr, how: fx.Constexpr, buffer: fx.Constexpr):
        t = fx.thread_idx.x % B.shape[0] + zero
        view = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(A) if buffer else A), layout)
        B[t] = how(view, t)

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, zero: fx.Int32, layout, how, buffer):
        k(A, B, zero, layout, how, buffer).launch(grid=1, block=64)
""")["launch"]


def offsets(layout: Layout, count: int, how: Any, buffer: bool = False) -> list[int]:
    """What `how(view, i)` reads for each i below `count`, where each element holds its own offset."""
    A, B = np.arange(max(cosize(layout), 1), dtype=np.int32), np.full(count, -1, np.int32)
    READ(A, B, 0, layout, how, buffer)
    return B.tolist()


def flat(view: Any, t: Any) -> Any:
    return view[t]


def by_mode(view: Any, t: Any) -> Any:
    first = size(view.layout[0])
    return view[t % first, t // first]


def summed(view: Any, t: Any) -> Any:
    v = fx.slice(view, (None, t)).load()
    return sum((v[i] for i in range(1, len(v))), v[0])


@settings(max_examples=40)
@given(LAYOUTS, st.booleans())
def test_runtime_coordinates(layout: Layout, buffer: bool) -> None:
    count = size(layout)
    assert offsets(layout, count, flat, buffer) == [layout(i) for i in range(count)]
    assert offsets(layout, count, by_mode, buffer) == [layout(i) for i in range(count)]


@settings(max_examples=20)
@given(LAYOUTS, st.booleans())
def test_loads_follow_the_order_of_coordinates(layout: Layout, buffer: bool) -> None:
    count = size(layout[1])
    expected = []
    for t in range(count):
        rest, start = slice_and_offset(layout, (None, t))
        expected.append(sum(start + rest(i) for i in range(size(rest))))
    assert offsets(layout, count, summed, buffer) == expected


@pytest.mark.parametrize(
    "shape, stride, tile, bits",
    [
        (64, 1, 4, 128),
        (64, 1, 8, 128),
        (64, 1, 4, 64),
        (64, 1, 4, 32),
        (32, 2, 4, 32),
        ((8, 8), (8, 1), (2, 4), 32),
        ((8, 8), (1, 8), (4, 2), 128),
    ],
)
def test_copies_walk_atoms(shape: Any, stride: Any, tile: Any, bits: int) -> None:
    """Each thread copies one tile of a divided tensor to a fragment and back to the same place of another."""
    layout = Layout(shape, stride)
    tiler = tile if isinstance(tile, int) else tuple(Layout(t) for t in tile)
    divided = logical_divide(layout, tiler)
    if isinstance(tile, int):
        coord, threads = "(None, t)", size(divided[1])
    else:
        coord, threads = "((None, t % {0}), (None, t // {0}))".format(size(divided[0][1])), size(layout) // size(tile)
    names = cell(f"""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor, layout: fx.Constexpr, tiler: fx.Constexpr):
            t = fx.thread_idx.x
            atom = fx.make_copy_atom(fx.UniversalCopy({bits}), fx.Int32)
            a, b = (fx.slice(fx.logical_divide(fx.make_view(fx.get_iter(x), layout), tiler), {coord}) for x in (A, B))
            r = fx.make_rmem_tensor(fx.get_shape(a), fx.Int32)
            fx.copy(atom, a, r)
            fx.copy(atom, r, b)

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, layout: fx.Constexpr, tiler: fx.Constexpr):
            k(A, B, layout, tiler).launch(grid=1, block={threads})
    """)
    A = np.arange(1, cosize(layout) + 1, dtype=np.int32)
    B = np.zeros_like(A)
    names["launch"](A, B, layout, tiler)
    expected = np.zeros_like(A)
    reached = [layout(i) for i in range(size(layout))]
    expected[reached] = A[reached]
    assert np.array_equal(B, expected)


def test_offsets_beyond_32_bits_are_computed_in_64() -> None:
    """A block has 64 threads here: coordinates to 63, so offsets to 63 * 2**26 bytes or 63 * 2**27."""
    body = kernel_of("A[fx.thread_idx.x, 0] = 1")["launch"]
    for columns, kind, other in ((2**26, "i32", "i64"), (2**27, "i64", "i32")):
        compiled = flyc.compile(body, np.empty((64, columns), np.uint8))
        assert f"mul {kind} " in compiled.llvm and f"mul {other} " not in compiled.llvm


def test_tensors_walked_alike_share_one_offset() -> None:
    """The base is the argument, the offset of a thread is computed once; a constant is a number in the instruction."""
    body = """
        t = fx.block_idx.x * 64 + fx.thread_idx.x
        B[t, 0] = A[t, 3] + A[t, 5]
    """
    A, B = np.arange(512, dtype=np.float32).reshape(64, 8), np.zeros((64, 8), np.float32)
    launch = kernel_of(body, "A: fx.Tensor, B: fx.Tensor")["launch"]
    listing = [str(i) for i in flyc.compile(launch, A, B).isa.kernels["k"].instructions]
    loads = [line for line in listing if line.startswith("global_")]
    assert [line.split(" offset:")[-1] for line in loads[:2]] == ["12", "20"]
    offsets = {line.split(", ")[1 if "load" in line else 0].removeprefix("global_store_dword ") for line in loads}
    assert len(offsets) == 1 and not [line for line in listing if "addc" in line or "add_u64" in line]
    launch(A, B)
    assert np.array_equal(B[:, 0], A[:, 3] + A[:, 5])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_offsets_that_go_back(dtype: Any) -> None:
    """Moves forward and backward by numbers and by values that may be negative, in 32 and in 64 bits."""
    A, B = np.arange(100, dtype=dtype), np.zeros(64, dtype)
    kernel_of("""
        t = fx.thread_idx.x
        p = fx.get_iter(A) + 90
        q = (p + (-80)) + t
        r = (p + (5 - t)) + (-30)
        u = fx.get_iter(A) + (fx.Int64(t) - 3) + 4
        B[t] = q[0] + r[0] * 2 + u[-1] * 3
    """, "A: fx.Tensor, B: fx.Tensor")["launch"](A, B)
    t = np.arange(64)
    assert np.array_equal(B, (A[t + 10] + A[65 - t] * 2 + A[t] * 3).astype(dtype))


def test_fragments_hold_what_was_stored_last() -> None:
    A = np.arange(64, dtype=np.float32)
    kernel_of("""
        r = fx.make_rmem_tensor((2, 4), fx.Float32)
        r.fill(9.0)
        r[1, 2] = 5.0
        fx.slice(r, (0, None)).store(fx.Vector.filled(4, 3.0, fx.Float32))
        r[0, 3] = r[1, 2] + r[1, 3]
        s = fx.make_view(fx.get_iter(r), fx.make_layout(8, 1))
        for i in range_constexpr(8):
            A[i] = s[i]
        whole = r.load()
        A[8] = whole[5] + whole[-1]
        A[9] = fx.memref_load(r, (1, 2))
        fx.memref_store(1.0, r, (1, 2))
        A[10] = r[1, 2]
    """)["launch"](A)
    r = np.full((2, 4), 9, np.float32)
    r[1, 2] = 5
    r[0] = 3
    r[0, 3] = 5 + 9
    assert A[:8].tolist() == r.flatten(order="F").tolist()
    assert A[8:11].tolist() == [5 + 9, 5, 1]


def test_no_register_memory_is_left() -> None:
    compiled = compile_body("""
        r = fx.make_rmem_tensor(64, fx.Float32)
        r.fill(1.0)
        for i in range_constexpr(64):
            A[i] = r[i] + r[63 - i]
    """)
    assert "alloca" not in compiled.llvm
    assert compiled.isa.kernels["k"].scratch_bytes == 0


@pytest.mark.parametrize(
    "body, message",
    [
        (
            "r = fx.make_rmem_tensor(4, fx.Float32)\ns = fx.make_view(fx.get_iter(r), fx.make_layout(8, 1))\n"
            "s.fill(1.0)\nA[0] = s[0]",
            "elements 0 to 7 of a fragment of 4 elements",
        ),
        ("r = fx.make_rmem_tensor(4, fx.Float32)\nr[0] = 1.0\nA[0] = r[0]\nA[1] = r[1]", "element 1 of a fragment"),
    ],
)
def test_fragment_refusals(body: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_body(body)
    assert message in caught.value.message
    assert caught.value.where is not None and caught.value.hint


def test_pointers() -> None:
    A, B = np.arange(72, dtype=np.float32), np.zeros(64, np.float32)
    body = """
        p = fx.get_iter(A) + 8
        q = fx.add_offset(p, fx.thread_idx.x)
        B[fx.thread_idx.x] = fx.make_view(q, fx.make_layout(1, 1))[0]
        assert p.dtype is fx.Float32
    """
    kernel_of(body, "A: fx.Tensor, B: fx.Tensor")["launch"](A, B)
    assert np.array_equal(B, A[8:])
    with pytest.raises(FlylabError, match="make_view of Tensor"):
        compile_body("fx.make_view(A, fx.make_layout(4, 1))")
    with pytest.raises(FlylabError, match="get_iter of int"):
        compile_body("fx.get_iter(3)")


@pytest.mark.parametrize("block", [(5, 3, 2), (64, 1, 1)])
def test_sizes_of_block_and_grid(block: tuple[int, int, int]) -> None:
    """A block known only at launch: its size, and that of the grid, come with the arguments."""
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            i = (fx.block_idx.z * fx.grid_dim.y + fx.block_idx.y) * fx.grid_dim.x + fx.block_idx.x
            j = (fx.thread_idx.z * fx.block_dim.y + fx.thread_idx.y) * fx.block_dim.x + fx.thread_idx.x
            A[i, j, 0] = fx.grid_dim.x * 10000 + fx.grid_dim.y * 100 + fx.grid_dim.z
            A[i, j, 1] = fx.block_dim.x * 10000 + fx.block_dim.y * 100 + fx.block_dim.z

        @flyc.jit
        def launch(A: fx.Tensor, x: fx.Int32, y: fx.Int32, z: fx.Int32):
            k(A).launch(grid=(2, 3, 4), block=(x, y, z))
    """)["launch"]
    A = np.zeros((24, block[0] * block[1] * block[2], 2), np.int32)
    launch(A, *block)
    assert (A[..., 0] == 20304).all()
    assert (A[..., 1] == block[0] * 10000 + block[1] * 100 + block[2]).all()


def test_a_runtime_block_must_be_the_declared_one() -> None:
    launch = cell("""
        @flyc.kernel(known_block_size=64)
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = fx.Float32(fx.block_dim.x)

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32):
            k(A).launch(grid=1, block=n)
    """)["launch"]
    A = np.zeros(64, np.float32)
    launch(A, 64)
    assert (A == 64).all()
    with pytest.raises(TraceError, match=r"block \(32, 1, 1\), declared known_block_size=\(64, 1, 1\)"):
        launch(A, 32)
