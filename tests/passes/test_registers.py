"""Fragments in registers: pieces, runtime indices, odd layouts and limits, run on the device; never scratch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from flylab.layout import Layout, size
from flylab.passes.fragment_flow import pieces, span
from tests.passes.test_control_flow import LANES, RUN, result
from tests.samples import compile_body, kernel_of


def without_scratch(how: Any, n: int = 5) -> Any:
    """The compilation of a kernel as `result` runs it, which uses no memory for its fragments."""
    compiled = flyc.compile(RUN, np.zeros(256, np.int32), np.zeros(64, np.int32), n, how)
    assert "alloca" not in compiled.llvm
    assert compiled.isa.kernels["k"].scratch_bytes == 0 and "scratch_" not in compiled.code.assembly
    return compiled


@given(st.integers(0, 2**12 - 1), st.integers(0, 2**12 - 1))
def test_pieces_are_the_elements_cut_at_borders(elements: int, borders: int) -> None:
    found = list(pieces(elements, borders))
    assert sum(span(*piece) for piece in found) == elements
    assert [a for a, _ in found] == sorted({a for a, _ in found})
    for start, count in found:
        assert not any(borders >> i & 1 for i in range(start + 1, start + count))
        after = start + count
        assert borders >> after & 1 or not elements >> after & 1  # no piece is shorter than it must be


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1), (4,), 1])
def test_small_register_tensors(shape: Any) -> None:
    """Case T03 of users' reports: filled, and read back one by one and whole."""

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        r = fx.make_rmem_tensor(shape, fx.Int32)
        r.fill(3)
        last = fx.size(r) - 1
        r[last] = t
        whole = r.load()
        B[t] = whole[last] * 1000 + r[last] * 10 + r[0]

    count = size(Layout(shape))
    assert result(how) == [t * 1010 + (3 if count > 1 else t) for t in LANES]
    without_scratch(how)


@pytest.mark.parametrize("shape, stride", [
    ((3, 4, 2), (1, 16, 4)), ((2, 2), (-1, -2)), (4, -3), (((2, 2), 3), ((1, 8), -2)),
])
def test_vectors_of_a_strided_fragment_are_its_walk(shape: Any, stride: Any) -> None:
    """Case T05: load and store of a whole register tensor, against one element at a time, in the layout's order."""
    count = size(Layout(shape))

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        r = fx.make_rmem_tensor(fx.make_layout(shape, stride), fx.Int32)
        fx.memref_store_vec(fx.Vector.from_elements([t + 100 * i for i in range(count)], fx.Int32), r)
        s = fx.make_rmem_tensor(fx.make_layout(shape, stride), fx.Int32)
        for i in range(count):
            s[i] = r[i] + 1
        whole = fx.memref_load_vec(s)
        total = fx.Int32(0)
        for i in range(count):
            total = total * 3 + whole[i] - r[count - 1 - i]
        B[t] = total

    expected = []
    for t in LANES:
        total = 0
        for i in range(count):
            total = total * 3 + t + 100 * i + 1 - (t + 100 * (count - 1 - i))
        expected.append((total + 2**31) % 2**32 - 2**31)
    assert result(how) == expected
    without_scratch(how)


@pytest.mark.parametrize("dtype", ["Int32", "Float16", "Int8", "Int64", "Float32"])
@pytest.mark.parametrize("shape, stride", [(4, 1), ((2, 3), (8, 1)), (3, 3), ((2, 2), (3, -1)), ((2, 4), (1, 2))])
def test_a_runtime_index_reaches_the_right_element(dtype: str, shape: Any, stride: Any) -> None:
    """Case T06: read and written at an index of the device; what lies between the elements is not asked for."""
    count, cls = size(Layout(shape)), getattr(fx, dtype)

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        r = fx.make_rmem_tensor(fx.make_layout(shape, stride), cls)
        for i in range(count):
            r[i] = i * 10
        r[t % count] = 77
        B[t] = r[(t + n) % count].to(fx.Int32) * 100 + r[t // 64].to(fx.Int32)

    expected = []
    for t in LANES:
        r = [77 if i == t % count else i * 10 for i in range(count)]
        expected.append(r[(t + 5) % count] * 100 + r[0])
    assert result(how) == expected
    without_scratch(how)


def test_a_stage_of_several_is_chosen_whole() -> None:
    """Two stages of four elements, of which a loop fills one and reads the other; one select for each element."""

    def expected(t: int) -> int:
        total, stages = 0, [0, 0]
        for k in range(5):
            stages[k % 2] = t + k
            total = total * 3 + 2 * stages[(k + 1) % 2]
        return total

    names = kernel_of("""
        t = fx.Int32(fx.thread_idx.x)
        r = fx.make_rmem_tensor((4, 2), fx.Int32)
        r.fill(0)
        total = fx.Int32(0)
        for k in range(n):
            fx.slice(r, (None, k % 2)).store(fx.Vector.filled(4, t + k, fx.Int32))
            other = fx.slice(r, (None, (k + 1) % 2)).load()
            total = total * 3 + other[0] + other[3]
        B[t] = total
    """, "B: fx.Tensor, n: fx.Int32")
    B = np.zeros(64, np.int32)
    names["launch"](B, 5)
    assert B.tolist() == [expected(t) for t in LANES]


def test_a_runtime_loop_fills_a_register_array() -> None:
    """What a store at a runtime index does not reach is 0 where nothing was stored to it before."""
    names = kernel_of("""
        t = fx.Int32(fx.thread_idx.x)
        r = fx.make_rmem_tensor(4, fx.Int32)
        for k in range(n):
            r[k] = t * 10 + k
        B[t] = r[t % 4]
    """, "B: fx.Tensor, n: fx.Int32")
    for n in (4, 3):
        B = np.zeros(64, np.int32)
        names["launch"](B, n)
        assert B.tolist() == [t * 10 + t % 4 if t % 4 < n else 0 for t in LANES]


def test_a_store_over_a_part_of_what_was_copied_is_seen() -> None:
    """Upstream's folding of a slice of overlapping insertions would lose the 7."""
    A = np.arange(256, dtype=np.int32)
    kernel_of("""
        atom = fx.make_copy_atom(fx.rocdl.BufferCopy64b(), A.dtype)
        r = fx.make_rmem_tensor(4, A.dtype)
        tile = fx.slice(fx.logical_divide(fx.rocdl.make_buffer_tensor(A), 4), (None, fx.thread_idx.x))
        fx.copy(atom, tile, r)
        r[1] = 7
        fx.copy(atom, r, tile)
    """)["launch"](A)
    assert A.tolist() == [7 if i % 4 == 1 else i for i in range(256)]


LOOP = """
acc = fx.make_rmem_tensor((4, 32), fx.Float32)
acc.fill(0.0)
for k in range(n):
    for i in range_constexpr(32):
        part = fx.slice(acc, (None, i))
        part.store(part.load() + A[k])
for i in range_constexpr(32):
    A[i] = acc[1, i]
"""


def test_accumulators_are_carried_in_pieces() -> None:
    """128 accumulators touched 4 at a time: 32 vectors of 4 cross the loop, and nothing else is made of them there."""
    launch = kernel_of(LOOP, "A: fx.Tensor, n: fx.Int32")["launch"]
    compiled = flyc.compile(launch, np.zeros(64, np.float32), 3)
    text = next(s.text for s in compiled.stages() if s.name == "fly-promote-regmem-to-vectorssa")
    loop = text[text.index("scf.for") : text.index("scf.yield")]
    assert loop.splitlines()[0].count("vector<4xf32>") == 32
    assert "vector<128" not in loop and "slice" not in loop and "vector.shuffle" not in loop
    assert compiled.isa.kernels["k"].scratch_bytes == 0
    A = np.ones(64, np.float32)
    A[:4] = [1, 2, 4, 8]
    launch(A, 4)
    assert (A[:32] == 15).all()


def test_what_is_not_read_again_is_not_carried() -> None:
    """A fragment made before a loop, filled anew in each iteration: a value of the iteration."""
    launch = kernel_of("""
        t = fx.thread_idx.x
        r = fx.make_rmem_tensor(4, fx.Float32)
        total = fx.Float32(0.0)
        for k in range(n):
            r.store(fx.Vector.filled(4, A[t + k], fx.Float32))
            total = total + r[2]
        A[t] = total
    """, "A: fx.Tensor, n: fx.Int32")["launch"]
    text = next(s.text for s in flyc.compile(launch, np.zeros(128, np.float32), 3).stages()
                if s.name == "fly-promote-regmem-to-vectorssa")
    header = next(line for line in text.splitlines() if "scf.for" in line)
    assert header.count("f32") == 1


@pytest.mark.parametrize("dtype, count", [("Float32", 512), ("Float16", 1024), ("Int8", 2048), ("Float64", 256),
                                          ("Int64", 256), ("Boolean", 16384)])
def test_a_fragment_has_what_512_registers_hold(dtype: str, count: int) -> None:
    last = count - 1
    compile_body(f"r = fx.make_rmem_tensor({count}, fx.{dtype})\nr[{last}] = 1\nA[0] = r[{last}].to(fx.Float32)")
    with pytest.raises(TraceError) as caught:
        compile_body(f"r = fx.make_rmem_tensor({count + 1}, fx.{dtype})")
    assert "512 registers" in caught.value.message and "tiles" in str(caught.value.hint)


REGISTERS_CROSS = {
    "a branch": "if fx.thread_idx.x < 5:\n    p = fx.get_iter(r)\nelse:\n    p = fx.get_iter(s)\np[0] = 1.0",
    "a loop": "for i in range(n):\n    r, s = s, r\n    A[i] = r[0]",
    "select": "p = fx.arith.select(fx.thread_idx.x < 5, fx.get_iter(r), fx.get_iter(s))\np[0] = 1.0",
}


@pytest.mark.parametrize("body", REGISTERS_CROSS.values(), ids=REGISTERS_CROSS)
def test_registers_that_cross_control_flow_are_refused(body: str) -> None:
    both = "r, s = fx.make_rmem_tensor(4, fx.Float32), fx.make_rmem_tensor(4, fx.Float32)\nr.fill(1.0)\ns.fill(2.0)\n"
    with pytest.raises(TraceError) as caught:
        flyc.compile(kernel_of(both + body, "A: fx.Tensor, n: fx.Int32")["launch"], np.zeros(64, np.float32), 3)
    hint = str(caught.value.hint)
    assert "registers have no address" in hint or "is not a number" in caught.value.message
    assert caught.value.where is not None and caught.value.where.line > 4


def test_a_fragment_is_used_inside_of_a_branch() -> None:
    """The pointer of a fragment from outside, with no more than that: nothing crosses."""
    names = kernel_of("""
        t = fx.Int32(fx.thread_idx.x)
        r = fx.make_rmem_tensor(4, fx.Int32)
        r.fill(1)
        p = fx.get_iter(r)
        if t < 5:
            p[1] = 20
            fx.make_view(p + 2, fx.make_layout(2, 1)).fill(5)
        B[t] = r[1] + r[3]
    """, "B: fx.Tensor")
    B = np.zeros(64, np.int32)
    names["launch"](B)
    assert B.tolist() == [25 if t < 5 else 2 for t in LANES]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.booleans()), min_size=1, max_size=8))
def test_any_order_of_pieces(moves: list[tuple[int, int, bool]]) -> None:
    """Stores and whole loads of overlapping spans, straight on: what numpy makes of them."""
    moves = [(start, min(count, 6 - start), copied) for start, count, copied in moves]

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        r = fx.make_rmem_tensor(6, fx.Int32)
        r.store(fx.Vector.from_elements([t * 7 + i for i in range(6)], fx.Int32))
        for k, (start, count, copied) in enumerate(moves):
            part = fx.make_view(fx.get_iter(r) + start, fx.make_layout(count, 1))
            other = fx.make_view(fx.get_iter(r) + (6 - start - count), fx.make_layout(count, 1))
            part.store(other.load() + k if copied else fx.Vector.filled(count, t + k, fx.Int32))
        total = fx.Int32(0)
        values = r.load()
        for i in range(6):
            total = total * 5 + values[i]
        B[t] = total

    expected = []
    for t in LANES:
        r = np.arange(6) + t * 7
        for k, (start, count, copied) in enumerate(moves):
            first = 6 - start - count
            r[start : start + count] = r[first : first + count].copy() + k if copied else t + k
        total = 0
        for value in r.tolist():
            total = total * 5 + value
        expected.append((total + 2**31) % 2**32 - 2**31)
    assert result(how) == expected
