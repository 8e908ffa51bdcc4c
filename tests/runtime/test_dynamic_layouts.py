"""Tensors whose layout is a number of the launch: one compilation for many shapes, and the right elements in each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import flylab
import flylab.compiler as flyc
from flylab.errors import ArgumentError, CheckFailed, OutOfBounds, TraceError, Undecided
from tests.samples import cell

CHIPS = ("gfx942", "gfx950")


def marked(tensor: Any, *args: Any, **named: Any) -> Any:
    return flyc.from_dlpack(tensor).mark_layout_dynamic(*args, **named)


def compilations(launcher: Any) -> int:
    return sum(map(len, launcher.specialisations.values()))


DOUBLE = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < fx.size(A):
        B[i] = A[i] * 2.0

@flyc.jit
def double(A: fx.Tensor, B: fx.Tensor):
    k(A, B).launch(grid=(fx.ceildiv(A.shape[0], 64),), block=64)
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_one_compilation_serves_all_lengths_and_the_grid_follows(chip: str) -> None:
    double = cell(DOUBLE)["double"]
    with flylab.use(chip):
        for n in (1, 63, 64, 1000, 4097):
            a, b = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
            run = double(marked(a), marked(b))
            assert np.array_equal(b, 2 * a)
            assert f"{-(-n // 64)} workgroup" in str(run)
    assert compilations(double) == 1


ADD = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    m = fx.block_idx.x
    for n in range(fx.thread_idx.x, A.shape[1], 64):
        C[m, n] = A[m, n] + B[m, n]

@flyc.jit
def add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    k(A, B, C).launch(grid=A.shape[0], block=64)
"""
PLACES: dict[str, Any] = {
    "rows": lambda m, n: np.zeros((m, n), np.float32),
    "padded rows": lambda m, n: np.zeros((m, n + 7), np.float32)[:, :n],
    "every second row": lambda m, n: np.zeros((2 * m, n), np.float32)[::2],
}


def test_one_compilation_serves_all_strides() -> None:
    add = cell(ADD)["add"]
    for m, n in ((1, 1), (3, 5), (7, 130)):
        for make in PLACES.values():
            a, b, c = make(m, n), make(m, n), make(m, n)
            a[:], b[:] = np.random.default_rng(m).random((2, m, n))
            add(marked(a), marked(b), marked(c))
            assert np.array_equal(c, a + b)
    assert compilations(add) == 1


def test_torch_tensors_are_marked_as_numpys() -> None:
    torch = pytest.importorskip("torch")
    add = cell(ADD)["add"]
    for m, n in ((2, 3), (5, 70)):
        a, b, c = torch.rand(m, n), torch.rand(m, n), torch.zeros(m, n)
        add(*[flyc.from_torch_tensor(t).mark_layout_dynamic(leading_dim=-1) for t in (a, b, c)])
        assert torch.equal(c, a + b)
    add(marked(np.ones((1, 9), np.float32)), marked(np.ones((1, 9), np.float32)), marked(np.ones((1, 9), np.float32)))
    assert compilations(add) == 1


def test_the_types_are_the_published_ones() -> None:
    """What the published wheel printed of the same tensors, with the quotes of this dialect left out."""
    t = np.zeros((8, 64), np.float32)
    assert "f32, global, (8,64):(64,1))" in repr(flyc.from_dlpack(t))
    assert "f32, global, (8,64):(64,1), align<16>)" in repr(flyc.from_dlpack(t, assumed_align=16))
    assert "f32, global, (?,?):(?{i64},1))" in repr(marked(t))
    assert "f32, global, (?,?):(?{i64 div=4},1))" in repr(marked(t, leading_dim=1, divisibility=4))
    narrow = flyc.from_dlpack(t, use_32bit_stride=True).mark_layout_dynamic(leading_dim=1, divisibility=4)
    assert "f32, global, (?,?):(?{div=4},1))" in repr(narrow)
    assert "f32, global, (?,?,?):(?{i64},?{i64},1))" in repr(marked(np.zeros((4, 1, 64), np.float32)))
    assert "f32, global, ?:1)" in repr(marked(np.zeros(64, np.float32)))


def test_what_the_kernel_takes_is_a_pointer_and_the_numbers_that_are_not_known() -> None:
    compiled = flyc.compile(cell(ADD)["add"], *[marked(np.zeros((4, 8), np.float32)) for _ in range(3)])
    types = [str(slot.size) for slot in compiled.isa.kernels["k"].args if not slot.hidden]
    assert types == ["8", "4", "4", "8"] * 3


BAD: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "row of 63": (np.zeros((8, 63), np.float32), {"divisibility": 4},
                  "has the stride 63 in dimension 0, no multiple of divisibility=4", "pad the rows"),
    "length of 63": (np.zeros(63, np.float32), {"divisibility": 4},
                     "has the extent 63 in dimension 0, no multiple of divisibility=4", "smaller divisibility"),
    "leading dimension": (np.zeros((8, 64), np.float32), {"leading_dim": 0},
                          "has the strides (64, 1): that of leading_dim=0 is not 1", "side by side"),
    "no such dimension": (np.zeros(8, np.float32), {"leading_dim": 1}, "has 1 dimensions, and leading_dim=1", "0 to 0"),
    "divisibility": (np.zeros(8, np.float32), {"divisibility": 0}, "divisibility=0", "1 or more"),
    "a float": (np.zeros(8, np.float32), {"leading_dim": 1.0}, "leading_dim=1.0", "the dimension"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused_where_it_is_marked(name: str) -> None:
    tensor, named, message, hint = BAD[name]
    argument = flyc.from_dlpack(tensor)
    with pytest.raises(ArgumentError) as caught:
        argument.mark_layout_dynamic(**named)
    assert message in caught.value.message and hint in (caught.value.hint or "")
    assert "?" not in repr(argument), "what was refused says nothing"


def test_checked_again_at_each_launch() -> None:
    torch = pytest.importorskip("torch")
    add = cell(ADD)["add"]
    t = torch.zeros(4, 8)
    argument = marked(t, divisibility=8)
    for rows, width in ((4, 8), (2, 16), (4, 8)):
        t.resize_(rows, width)
        for _ in range(3):  # from the second on by what the first one found out
            t.fill_(1)
            add(argument, argument, argument)
            assert (t == 2).all()
    assert compilations(add) == 1
    t.resize_(2, 9)
    with pytest.raises(ArgumentError, match="'A' has the stride 9 in dimension 0, no multiple of divisibility=8"):
        add(argument, argument, argument)


def test_the_device_knows_the_real_shape() -> None:
    shift = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, by: fx.Int32):
            A[fx.thread_idx.x + by] = 1.0

        @flyc.jit
        def shift(A: fx.Tensor, by: fx.Int32):
            k(A, by).launch(grid=1, block=64)
    """)["shift"]
    shift(marked(np.zeros(64, np.float32)), 0)
    with pytest.raises(OutOfBounds, match=r"'A' \(shape \(64,\), strides \(1,\), f32\), at element 64"):
        shift(marked(np.zeros(64, np.float32)), 1)
    assert compilations(shift) == 1


ROWS = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    row = fx.slice(A, (fx.block_idx.x, None))
    pairs = fx.recast_iter(fx.Int64, fx.get_iter(row))
    B[fx.block_idx.x] = pairs[1]

@flyc.jit
def last(A: fx.Tensor, B: fx.Tensor):
    k(A, B).launch(grid=A.shape[0], block=1)
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_rows_of_known_divisibility_are_read_wide_without_a_check(chip: str) -> None:
    """Where rows are not known to begin at multiples of 8 bytes, the device looks; and finds the row that does not."""
    with flylab.use(chip):
        for width, divisibility, checks in ((6, 1, 1), (6, 2, 0), (8, 2, 0), (8, 4, 0)):
            last = cell(ROWS)["last"]
            a, b = np.arange(4 * width, dtype=np.int32).reshape(4, width), np.zeros(4, np.int64)
            argument = flyc.from_dlpack(a, assumed_align=8).mark_layout_dynamic(divisibility=divisibility)
            assert len(flyc.compile(last, argument, b).checks["k"]) == checks
            last(argument, b)
            assert np.array_equal(b, a[:, 2:4].copy().view(np.int64)[:, 0])
        a = np.zeros((4, 7), np.int32)
        with pytest.raises(CheckFailed, match="no multiple of 8 bytes"):
            last(flyc.from_dlpack(a, assumed_align=8).mark_layout_dynamic(), b)


DIVIDED = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    B[0] = fx.shape_div(A.layout.shape, 4)

@flyc.jit
def fours(A: fx.Tensor, B: fx.Tensor):
    k(A, B).launch(grid=1, block=1)
"""


def test_divisibility_decides_what_layouts_can_do() -> None:
    fours = cell(DIVIDED)["fours"]
    b = np.zeros(1, np.int32)
    with pytest.raises(Undecided):
        fours(marked(np.zeros(8, np.float16)), b)
    for n in (4, 8, 400):
        fours(marked(np.zeros(n, np.float16), divisibility=4), b)
        assert b[0] == n // 4
    assert compilations(fours) == 1


def test_the_alignment_that_is_assumed_is_checked() -> None:
    double = cell(DOUBLE)["double"]
    a = np.zeros(64, np.float32)
    at = -a.ctypes.data // 4 % 4  # the first element at a multiple of 16 bytes
    double(flyc.from_dlpack(a[at:at + 8], assumed_align=16), np.zeros(8, np.float32))
    with pytest.raises(ArgumentError, match="'A' starts at the address 0x.*no multiple of its assumed_align of 16"):
        double(flyc.from_dlpack(a[at + 1:], assumed_align=16), a)
    for wrong in (3, 0, -16, "16", True):
        with pytest.raises(ArgumentError, match="assumed_align="):
            flyc.from_dlpack(a, assumed_align=wrong)


def test_r15_one_argument_serves_constants_and_chips() -> None:
    """The published wheel's adaptor keeps types of its first compilation, and the next one ends the process."""
    scale = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, by: fx.Constexpr[int]):
            A[fx.thread_idx.x] = A[fx.thread_idx.x] * by

        @flyc.jit
        def scale(A: fx.Tensor, by: fx.Constexpr[int]):
            k(A, by).launch(grid=1, block=64)
    """)["scale"]
    for mark in (flyc.from_dlpack, marked):
        a = np.ones(64, np.float32)
        argument = mark(a)
        for chip in CHIPS:
            with flylab.use(chip):
                scale(argument, 2)
                scale(argument, 3)
        assert np.array_equal(a, np.full(64, 36, np.float32))


def test_no_elements_are_no_launch_but_an_argument() -> None:
    double = cell(DOUBLE)["double"]
    one = np.zeros(1, np.float32)
    double(marked(one), marked(one))
    empty = np.zeros(0, np.float32)
    with pytest.raises(TraceError, match=r"grid \(0, 1, 1\), extent x must be 1 to"):
        double(marked(empty), marked(empty))
    with pytest.raises(ArgumentError, match="no elements") as caught:
        double(empty, empty)
    assert "mark_layout_dynamic" in (caught.value.hint or "")
    assert compilations(double) == 1


COPY = """
@flyc.kernel
def k(S: fx.Tensor, D: fx.Tensor, rank: fx.Constexpr[int]):
    i = (fx.block_idx.x,)
    for n in fx.range_constexpr(rank - 1, 0, -1):
        i = (i[0] // S.shape[n], i[0] % S.shape[n], *i[1:])
    D[i] = S[i]

@flyc.jit
def copy(S: fx.Tensor, D: fx.Tensor, rank: fx.Constexpr[int]):
    k(S, D, rank).launch(grid=fx.size(S), block=1)
"""
COPY = COPY.replace("fx.range_constexpr", "range_constexpr")
copy = cell(COPY)["copy"]


@st.composite
def views(draw: Any, shape: tuple[int, ...], writable: bool) -> Any:
    """A view of this shape: its strides in any order, with gaps, some negative, and of what is only read some 0."""
    step, strides = 1, [0] * len(shape)
    for n in draw(st.permutations(range(len(shape)))):
        step *= draw(st.sampled_from((1, 1, 1, 2, 3)))
        strides[n] = step
        step *= shape[n]
    base = np.arange(1, step + 1, dtype=np.int32)
    signs = [draw(st.sampled_from((1, 1, -1) if writable else (1, 1, -1, 0))) for _ in shape]
    start = sum((extent - 1) * stride for extent, stride, sign in zip(shape, strides, signs, strict=True) if sign < 0)
    strides = [sign * stride for sign, stride in zip(signs, strides, strict=True)]
    return as_strided(base[start:], shape, [4 * stride for stride in strides])


def argument_of(data: Any, view: Any) -> Any:
    how = data.draw(st.sampled_from(("as it is", "known", "dynamic", "dynamic with 32 bits")))
    if how == "as it is":
        return view
    argument = flyc.from_dlpack(view, use_32bit_stride="32" in how)
    if how == "known":
        return argument
    steps = [s // 4 for s, extent in zip(view.strides, view.shape, strict=True) if extent > 1]
    ones = [n for n, s in enumerate(view.strides) if s == 4]
    leading = data.draw(st.sampled_from((None, *ones)))
    divisors = [d for d in (1, 2, 3, 4) if len(view.shape) > 1 and not any(s % d for s in steps if s != 1)]
    return argument.mark_layout_dynamic(leading, data.draw(st.sampled_from(divisors or [1])) if len(ones) < 2 else 1)


@settings(max_examples=60, deadline=None)
@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), data=st.data())
def test_a_copy_is_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    source, target = data.draw(views(shape, False)), data.draw(views(shape, True))
    expected = np.array(source)
    with flylab.use(data.draw(st.sampled_from(CHIPS))):
        copy(argument_of(data, source), argument_of(data, target), len(shape))
    assert np.array_equal(target, expected)


MEETING = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    p, q, row = fx.get_iter(A), fx.get_iter(A), fx.slice(A, (0, None))
    if t > n:
        p = p + 1
        row = fx.slice(A, (t % 4, None))
    for i in range(n):
        q = q + 1
    B[t] = p[0] + q[0] + row[1]

@flyc.jit
def meeting(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    k(A, B, n).launch(grid=1, block=8)
"""


def test_pointers_of_less_alignment_meet_those_of_more() -> None:
    meeting = cell(MEETING)["meeting"]
    a, b, n = np.arange(64, dtype=np.int32).reshape(8, 8), np.zeros(8, np.int32), 2
    expected = [int(t > n) + n + a[t % 4 if t > n else 0, 1] for t in range(8)]
    known = flyc.from_dlpack(a, assumed_align=16)
    for argument in (a, known, flyc.from_dlpack(a, assumed_align=16).mark_layout_dynamic(divisibility=4)):
        b[:] = 0
        meeting(argument, b, n)
        assert b.tolist() == expected


def test_a_compilation_for_a_runtime_layout_takes_tensors_that_fit_it() -> None:
    a = np.ones((4, 8), np.float32)
    compiled = flyc.compile(cell(ADD)["add"], *[marked(a, divisibility=4)] * 3)
    for shape in ((4, 8), (2, 12), (1, 3)):
        a, b, c = np.ones(shape, np.float32), np.full(shape, 2, np.float32), np.zeros(shape, np.float32)
        compiled(a, b, marked(c, divisibility=4))
        compiled(a, b, marked(c, divisibility=4))
        assert (c == 3).all()
    with pytest.raises(ArgumentError, match="'A' has the stride 9 in dimension 0, no multiple of divisibility=4"):
        compiled(np.ones((2, 9), np.float32), b, c)
    with pytest.raises(ArgumentError, match="'A' has the stride 2 in dimension 1, and 1 was compiled"):
        compiled(np.ones((2, 16), np.float32)[:, ::2], b, c)
    for other in (np.ones(8, np.float32), np.ones((4, 8), np.float16)):
        with pytest.raises(ArgumentError, match="'A' was compiled for f32, global, .*, and gets"):
            compiled(other, b, c)


def test_an_alignment_beyond_16_bytes_is_checked_at_each_call_of_a_compilation() -> None:
    double = cell(DOUBLE)["double"]
    whole = np.zeros(200, np.float32)
    at = -whole.ctypes.data // 4 % 64  # the first element at a multiple of 256 bytes
    a, out = whole[at:at + 64], np.zeros(64, np.float32)
    compiled = flyc.compile(double, flyc.from_dlpack(a, assumed_align=256).mark_layout_dynamic(), marked(out))
    for _ in range(3):
        compiled(a, out)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="no multiple of its assumed_align of 256 bytes"):
            compiled(whole[at + 4:at + 68], out)


FAR = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, at: fx.Int64):
    i = fx.Int64(fx.thread_idx.x) + at
    B[fx.thread_idx.x] = A[i]
    A[i] = fx.Int8(7)

@flyc.jit
def far(A: fx.Tensor, B: fx.Tensor, at: fx.Int64):
    k(A, B, at).launch(grid=1, block=8)
"""


@pytest.mark.parametrize("mark", [lambda a: a, marked], ids=["known", "dynamic"])
def test_more_elements_than_32_bits_count(tmp_path: Path, mark: Any) -> None:
    """A sparse file, mapped: none of its pages but the last takes memory."""
    count = 2**31 + 64
    with open(tmp_path / "large", "wb") as file:
        file.truncate(count)
    mapped = np.memmap(tmp_path / "large", np.int8, "r+")
    mapped[-8:] = np.arange(8)
    far, b = cell(FAR)["far"], np.zeros(8, np.int8)
    far(mark(mapped), b, count - 8)
    assert b.tolist() == list(range(8)) and mapped[-8:].tolist() == [7] * 8
    with pytest.raises(OutOfBounds, match="at element 2147483712"):
        far(mark(mapped), b, count - 7)
    apart = mapped[:: 2**28]  # 9 elements, 256 MiB from one to the next
    far(mark(apart), b, 0)
    far(mark(apart), b, 0)
    assert b.tolist() == [7] * 8 and apart.tolist() == [7] * 8 + [0]


def test_strides_beyond_32_bits_are_refused_where_these_were_asked_for(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(2**32 + 8)
    rows = as_strided(np.memmap(tmp_path / "large", np.int8, "r"), (2, 8), (2**32, 1))
    with pytest.raises(ArgumentError, match="has the stride 4294967296 in dimension 0, and the compilation takes") as e:
        flyc.from_dlpack(rows, use_32bit_stride=True).mark_layout_dynamic()
    assert "use_32bit_stride" in (e.value.hint or "")
    assert "(?,?):(?{i64},1)" in repr(marked(rows))


def test_windows_that_overlap() -> None:
    add, a, c = cell(ADD)["add"], np.arange(20, dtype=np.float32), np.zeros((16, 5), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(a, 5)
    for _ in range(2):
        add(marked(windows, leading_dim=1), windows, c)
        assert np.array_equal(c, 2 * windows)
    rows = as_strided(a, (4, 5), (0, 4))
    assert "(?,?):(0,1)" in repr(marked(rows))
    c = np.zeros((4, 5), np.float32)
    add(marked(rows), marked(rows), c)
    assert np.array_equal(c, 2 * rows)


def test_a_tensor_of_rank_0_has_nothing_to_leave_open() -> None:
    set_to = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[0] = A[0] + 1.0

        @flyc.jit
        def set_to(A: fx.Tensor):
            k(A).launch(grid=1, block=1)
    """)["set_to"]
    a = np.zeros(3, np.float32)
    for argument in (a[1:2].reshape(()), marked(a[1:2].reshape(())), flyc.from_dlpack(a[1:2].reshape(()))):
        set_to(argument)
    assert a.tolist() == [0, 3, 0] and compilations(set_to) == 1


@pytest.mark.parametrize("chip", CHIPS)
def test_a_buffer_of_a_runtime_layout_ends_where_the_tensor_does(chip: str) -> None:
    padded = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, C: fx.Tensor):
            C[fx.thread_idx.x] = fx.rocdl.make_buffer_tensor(A)[fx.thread_idx.x]

        @flyc.jit
        def padded(A: fx.Tensor, C: fx.Tensor):
            k(A, C).launch(grid=1, block=64)
    """)["padded"]
    with flylab.use(chip):
        for n in (5, 40, 64):
            c = np.full(64, 9, np.float32)
            padded(marked(np.arange(1, n + 1, dtype=np.float32)), c)
            assert c.tolist() == [*range(1, n + 1), *[0] * (64 - n)]
    assert compilations(padded) == 1


@pytest.mark.parametrize("chip", CHIPS)
def test_rows_are_copied_16_bytes_at_a_time(chip: str) -> None:
    tiles = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, C: fx.Tensor):
            atom = fx.make_copy_atom(fx.UniversalCopy128b(), A.dtype)
            place = (0, None), (fx.block_idx.x, fx.thread_idx.x)
            r = fx.make_rmem_tensor(8, A.dtype)
            fx.copy(atom, fx.slice(fx.zipped_divide(A, (1, 8)), place), r)
            fx.copy(atom, r, fx.slice(fx.zipped_divide(C, (1, 8)), place))

        @flyc.jit
        def tiles(A: fx.Tensor, C: fx.Tensor):
            k(A, C).launch(grid=A.shape[0], block=A.shape[1] // 8)
    """)["tiles"]
    with flylab.use(chip):
        for shape in ((3, 64), (5, 128)):
            a, c = np.random.default_rng(0).random(shape).astype(np.float16), np.zeros(shape, np.float16)
            arguments = [marked(x, divisibility=8) for x in (a, c)]
            tiles(*arguments)
            assert np.array_equal(a, c)
        compiled = flyc.compile(tiles, *arguments)
        found = [i.mnemonic for i in compiled.isa.kernels["k"].instructions if i.mnemonic.startswith("global_")]
        assert found == ["global_load_dwordx4", "global_store_dwordx4"] and compilations(tiles) == 1
