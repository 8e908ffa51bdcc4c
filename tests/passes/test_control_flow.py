"""Fragments and pointers through branches and loops, on the software device, are what Python makes of the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.dialect.context import entered
from flylab.dialect.types import Ptr
from flylab.dtypes import DTYPES
from flylab.errors import CompileError
from flylab.expr.emit import fly
from flylab.expr.tensor import Pointer
from flylab.passes.int_swizzle_simplify import IntSwizzleSimplify
from tests.passes.control import branch, loop, repeat
from tests.samples import cell

RUN = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, how: fx.Constexpr):
        how(A, B, n, fx.Int32(fx.thread_idx.x))

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, how: fx.Constexpr):
        k(A, B, n, how).launch(grid=1, block=64)
""")["launch"]
LANES = range(64)


def result(how: Any, n: int = 5, out: Any = np.int32, given: Any = None) -> list[Any]:
    """What the kernel `how(A, B, n, thread)` leaves in B, where A counts from 1."""
    A = np.arange(1, 257, dtype=np.int32) if given is None else given
    B = np.full(64, -1, out)
    RUN(A, B, n, how)
    return B.tolist()


# Random programs on two fragments: statements, of which the blocks of branches and loops hold more.
SIZE = 4
SPANS = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).filter(lambda s: s[0] + s[1] <= SIZE)
MOVES = (
    st.tuples(st.just("store"), SPANS, st.integers(-9, 9)),
    st.tuples(st.just("add"), SPANS),
    st.tuples(st.just("put"), st.integers(0, 3), st.integers(-9, 9)),  # at an index of the device
    st.tuples(st.just("pick"), st.integers(0, 3)),
)
STATEMENTS = st.recursive(
    st.lists(st.one_of(*MOVES), min_size=1, max_size=3),
    lambda inner: st.lists(st.one_of(
        *MOVES,
        st.tuples(st.just("if"), st.integers(0, 63), inner, inner),
        st.tuples(st.just("if"), st.integers(0, 63), inner, st.none()),
        st.tuples(st.just("for"), st.integers(0, 3), inner),
        st.tuples(st.just("while"), st.integers(0, 3), inner),
    ), min_size=1, max_size=4),
    max_leaves=10,
)  # fmt: skip


class Unset(Exception):
    """An element is read that nothing was stored to on any way."""


def check_reads(program: list[Any]) -> None:
    """Raise `Unset` for an element that no way to a read of it has stored to, where no way reads it too early."""
    for element in range(SIZE):
        reads: dict[int, set[bool]] = {}
        ways(program, element, {False}, reads)
        if any([True not in found for found in reads.values()]):
            raise Unset


def ways(program: list[Any], element: int, now: set[bool], reads: dict[int, set[bool]]) -> set[bool]:
    """Whether the element is stored to at the end, on each way; a way ends at a read that finds nothing."""
    for statement in program:
        kind, *rest = statement
        touches = kind in ("put", "pick") or kind in ("store", "add") and rest[0][0] <= element < sum(rest[0])
        if kind in ("store", "put") and touches:
            now = {True} if now else now
        elif kind in ("add", "pick") and touches:
            reads.setdefault(id(statement), set()).update(now)
            now = now & {True}
        elif kind == "if":
            now = ways(rest[1], element, now, reads) | ways(rest[2] or [], element, now, reads)
        elif kind in ("for", "while"):
            for _ in range(3):  # two facts: after two rounds nothing is new
                now = now | ways(rest[1], element, now, reads)
    return now


def interpret(program: list[Any], lane: int, n: int, f: list[int], total: list[int]) -> None:
    """The program in Python, for one lane."""
    for kind, *rest in program:
        if kind == "store":
            f[rest[0][0]:sum(rest[0])] = [rest[1] + total[0]] * rest[0][1]
        elif kind == "add":
            total[0] = total[0] * 3 + sum(f[rest[0][0]:sum(rest[0])])
        elif kind == "put":
            f[(lane + rest[0]) % SIZE] = rest[1] + total[0]
        elif kind == "pick":
            total[0] = total[0] * 3 + f[(lane + rest[0]) % SIZE]
        elif kind == "if":
            interpret(rest[1] if lane < rest[0] else rest[2] or [], lane, n, f, total)
        elif kind == "for":
            for _ in range(rest[0] + n - 5):
                interpret(rest[1], lane, n, f, total)
        else:
            for _ in range(min(lane, rest[0])):
                interpret(rest[1], lane, n, f, total)


def emit(program: list[Any], lane: Any, n: Any, f: Any, total: Any) -> None:
    """The program as operations of the device."""
    for kind, *rest in program:
        if kind in ("store", "add"):
            start, count = rest[0]
            part = fx.make_view(fx.get_iter(f) + start, fx.make_layout(count, 1))
        if kind == "store":
            part.store(fx.Vector.filled(count, total[0] + rest[1], fx.Int32))
        elif kind == "add":
            values = part.load()
            total[0] = total[0] * 3 + sum((values[i] for i in range(count)), fx.Int32(0))
        elif kind == "put":
            f[(lane + rest[0]) % SIZE] = total[0] + rest[1]
        elif kind == "pick":
            total[0] = total[0] * 3 + f[(lane + rest[0]) % SIZE]
        elif kind == "if":
            then, otherwise = ((lambda block=block: emit(block, lane, n, f, total)) if block is not None else None
                               for block in rest[1:])
            branch(lane < rest[0], then, otherwise)
        elif kind == "for":
            loop(0, n + (rest[0] - 5), 1, lambda i, block=rest[1]: emit(block, lane, n, f, total))
        else:
            def step(i: Any, block: Any = rest[1]) -> Any:
                emit(block, lane, n, f, total)
                return i + 1

            repeat(lambda i, most=rest[0]: (i < lane) & (i < most), step, fx.Int32(0))


@settings(max_examples=60)
@given(STATEMENTS, st.integers(4, 6))
def test_random_programs_on_fragments(program: list[Any], n: int) -> None:
    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        f, total = fx.make_rmem_tensor(SIZE, fx.Int32), fx.make_rmem_tensor(1, fx.Int32)
        total[0] = 1
        emit(program, t, n, f, total)
        B[t] = total[0]

    try:
        check_reads(program)
    except Unset:
        with pytest.raises(CompileError, match="of a fragment in registers is .*read, and nothing was stored to it"):
            result(how, n)
        return
    expected = []
    for lane in LANES:
        total = [1]
        interpret(program, lane, n, [0] * SIZE, total)
        expected.append((total[0] + 2**31) % 2**32 - 2**31)
    assert result(how, n) == expected


def test_a_fragment_made_in_a_loop_is_new_in_each_iteration() -> None:
    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        def body(i: Any, total: Any) -> Any:
            r = fx.make_rmem_tensor(2, fx.Int32)
            branch(i == t, lambda: r.fill(7))
            return total + r[0] + r[1]

        B[t] = loop(0, n, 1, body, fx.Int32(0))

    assert result(how) == [14 if lane < 5 else 0 for lane in LANES]


@pytest.mark.parametrize("dtype", ["Float32", "Float16", "BFloat16", "Int8", "Int64", "Float8E4M3FN", "Boolean",
                                   "Int128", "Float64"])
def test_every_format_of_a_fragment(dtype: str) -> None:
    """Half of the lanes store ones; the others find zeros, and one element more is stored to in a loop."""
    cls = getattr(fx, dtype)
    one = 0x38 if dtype == "Float8E4M3FN" else 1  # its bits, since its numbers have no arithmetic

    def number(x: Any) -> Any:
        return x.bitcast(fx.Uint8).to(fx.Int32) if dtype == "Float8E4M3FN" else x.to(fx.Int32)

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        r = fx.make_rmem_tensor(4, cls)
        part = fx.make_view(fx.get_iter(r), fx.make_layout(2, 1))
        branch(t < 32, lambda: part.store(fx.Vector.filled(2, 1, cls)))
        loop(0, n, 1, lambda i: r.__setitem__(3, r[0]))
        B[t] = number(r[1]) * 1000 + number(r[3])

    assert result(how) == [one * 1001 if lane < 32 else 0 for lane in LANES]


REFUSED = """
@flyc.kernel
def k(A: fx.Tensor, branch: fx.Constexpr, loop: fx.Constexpr):
    r = fx.make_rmem_tensor(4, fx.Float32)
    branch(fx.thread_idx.x < 5, lambda: r.fill(1.0), lambda: {otherwise})
    {after}

@flyc.jit
def launch(A: fx.Tensor, branch: fx.Constexpr, loop: fx.Constexpr):
    k(A, branch, loop).launch(grid=1, block=64)
"""


@pytest.mark.parametrize("otherwise, after, line, message", [
    ("A.__setitem__(0, r[2])", "A[1] = r[0]", 4, "element 2 of a fragment in registers is read, and nothing"),
    ("None", "s = fx.make_rmem_tensor(4, fx.Float32); s[1] = A[0]; A[1] = s[fx.thread_idx.x]", 5,
     "element 0 of a fragment in registers is perhaps (its index is known only on the device) read"),
])
def test_refusals_name_the_line(otherwise: str, after: str, line: int, message: str) -> None:
    names = cell(REFUSED.format(otherwise=otherwise, after=after))
    with pytest.raises(CompileError) as caught:
        names["launch"](np.zeros(64, np.float32), branch, loop)
    assert message in caught.value.message and caught.value.hint
    assert caught.value.where is not None and caught.value.where.line == line


@pytest.mark.parametrize("buffer", [False, True])
def test_pointers_through_branches_and_loops(buffer: bool) -> None:
    """A pointer chosen by a branch walks a loop by one element a turn, another one by the turn's number."""

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        source = fx.get_iter(fx.rocdl.make_buffer_tensor(A) if buffer else A)
        start = branch(t < 20, lambda: source + t, lambda: source + 7, (source,))

        def body(i: Any, total: Any, p: Any, q: Any) -> Any:
            inner = branch(i == 2, lambda: p + 10, lambda: p, (p,))
            return total * 3 + inner[0] + q[0], p + 1, q + i

        total, p, q = loop(0, n, 1, body, fx.Int32(0), start, source)

        def step(i: Any, p: Any) -> Any:
            return i + 1, p + i

        _, last = repeat(lambda i, p: i < n, step, fx.Int32(1), p)
        B[t] = total + 1000 * q[0] + last[0]

    A = np.arange(1, 257, dtype=np.int32) ** 2 % 101
    expected = []
    for lane in LANES:
        p, q, total = lane if lane < 20 else 7, 0, 0
        for i in range(5):
            total, p, q = int(total * 3 + A[p + 10 * (i == 2)] + A[q]), p + 1, q + i
        expected.append(int(total + 1000 * A[q] + A[p + 1 + 2 + 3 + 4]))
    assert result(how, given=A) == expected


def test_an_offset_of_64_bits_makes_all_that_meet_it_so() -> None:
    """Beyond 32 bits a buffer reads 0: an offset that wrapped would read an element."""

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        source = fx.get_iter(fx.rocdl.make_buffer_tensor(A))
        far = branch(t < 20, lambda: source + fx.Int64(2**30) * n.to(fx.Int64), lambda: source + t, (source,))
        near = loop(0, n, 1, lambda i, p: p + 1, far)
        B[t] = near[0]

    assert result(how, n=4) == [0 if lane < 20 else lane + 5 for lane in LANES]


def test_buffers_that_differ_by_lane() -> None:
    """A descriptor that is not the same in all lanes: LLVM makes a loop over those there are."""

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        a, b = fx.get_iter(fx.rocdl.make_buffer_tensor(A)), fx.get_iter(fx.rocdl.make_buffer_tensor(B))
        B[t] = t
        source = branch(t % 2 == 0, lambda: a + t, lambda: b + t, (a,))
        value = source[0]
        target = branch(t < n, lambda: a + (t + 200), lambda: b + t, (b,))
        target[0] = value * 2

    A = np.arange(1, 257, dtype=np.int32)
    first = [(lane + 1 if lane % 2 == 0 else lane) * 2 for lane in LANES]
    assert result(how, given=A) == [lane if lane < 5 else first[lane] for lane in LANES]
    assert A.tolist() == [*range(1, 201), *first[:5], *range(206, 257)]


def test_vectors_are_carried() -> None:
    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        def body(i: Any, v: Any) -> Any:
            return branch(i % 2 == 0, lambda: v + t, lambda: v * 2, (v,))

        v = loop(0, n, 1, body, fx.Vector.filled(4, 1, fx.Int32))
        B[t] = v[0] + v[3]

    expected = []
    for lane in LANES:
        v = 1
        for i in range(5):
            v = v + lane if i % 2 == 0 else v * 2
        expected.append(2 * v)
    assert result(how) == expected


def test_bounds_of_64_bits() -> None:
    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        base = fx.Int64(2**40)
        total = loop(base, base + t.to(fx.Int64), fx.Int64(3), lambda i, s: s + (i - base).to(fx.Int32), fx.Int32(0))
        B[t] = total

    assert result(how) == [sum(range(0, lane, 3)) for lane in LANES]


def test_no_memory_is_used_for_fragments() -> None:
    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        r = fx.make_rmem_tensor(8, fx.Int32)
        r.fill(0)
        loop(0, n, 1, lambda i: branch(i < t, lambda: r.store(r.load() + i)))
        B[t] = r[5]

    compiled = flyc.compile(RUN, np.zeros(256, np.int32), np.zeros(64, np.int32), 5, how)
    assert "alloca" not in compiled.llvm and compiled.isa.kernels["k"].scratch_bytes == 0
    assert result(how) == [sum(i for i in range(5) if i < lane) for lane in LANES]


def test_runtime_layouts_in_and_around_regions() -> None:
    """What the layout algebra computes in a region stays there; what was computed before serves all regions after."""

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        outer = fx.make_layout((n, 8), (8, 1))
        tiles = fx.zipped_divide(outer, (2, 4))

        def body(i: Any, total: Any) -> Any:
            inner = fx.make_layout((i + 1, n), (n, 1))
            first = branch(i < t, lambda: total + fx.crd2idx((i, i), inner) + fx.size(inner),
                           lambda: total + fx.crd2idx((i, 3), outer), (total,))
            view = fx.slice(fx.zipped_divide(fx.make_view(fx.get_iter(A), outer), (2, 4)), (None, (0, i % 2)))
            return first + fx.crd2idx(((1, 2), (0, 1)), tiles) + view[1, i % 4] + fx.crd2idx((i, i), inner)

        B[t] = loop(0, n - 1, 1, body, fx.Int32(0)) + fx.crd2idx((2, 5), outer)

    def expected(lane: int, n: int) -> int:
        total = 0
        for i in range(n - 1):
            total += i * n + i + (i + 1) * n if i < lane else i * 8 + 3
            total += (8 + 2 + 4) + (1 + 8 + i % 2 * 4 + i % 4) + (i * n + i)
        return total + 2 * 8 + 5

    for n in (4, 6):
        assert result(how, n) == [expected(lane, n) for lane in LANES]


SWIZZLE = '''
gpu.module @kernels {
  gpu.func @k(%n: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %zero = arith.constant 0 : i32
    %step = arith.constant 512 : i32
    %t = gpu.thread_id x
    %x = arith.index_cast %t : index to i32
    %r = scf.for %i = %zero to %n step %step iter_args(%total = %zero) -> (i32) : i32 {
      %index = arith.addi %x, %i : i32
      %s = "fly.int_swizzle"(%index) {swizzle = "S<3,3,3>"} : (i32) -> i32
      %sum = arith.addi %total, %s : i32
      scf.yield %sum : i32
    }
    gpu.return
  }
}
'''


def test_a_swizzle_in_a_loop_is_that_of_the_thread() -> None:
    """The loop's number is a multiple of 512, which passes through S<3,3,3>; of 64 threads no bit is read."""
    from mlir import ir

    with entered():
        module = ir.Module.parse(SWIZZLE)
        IntSwizzleSimplify().run(module)
        module.operation.verify()
        text = str(module)
    assert "int_swizzle" not in text and "xori" not in text and "shrui" not in text


@pytest.fixture(params=["gfx942", "gfx950"])
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


@pytest.mark.parametrize("level", "0123")
def test_every_chip_and_level(chip: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers that differ by lane in a loop whose turns do, with a division of 64 bits."""
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", level)

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        a, b = fx.get_iter(fx.rocdl.make_buffer_tensor(A)), fx.get_iter(fx.rocdl.make_buffer_tensor(B))
        B[t] = t * 3
        r = fx.make_rmem_tensor(2, fx.Int32)

        def body(i: Any, x: Any) -> Any:
            source = branch(i % 2 == 0, lambda: a + i, lambda: b + t, (a,))
            branch(source[0] > 20, lambda: r.fill(x), lambda: r.__setitem__(1, i))
            return (x.to(fx.Int64) * 1234567891 // (source[0].to(fx.Int64) + 1)).to(fx.Int32)

        x = loop(t % 3, n + t % 4, 1, body, t + 1)
        B[t] = x + r[0] * 5 + r[1] * 7

    expected = []
    for lane in LANES:
        x, r = lane + 1, [0, 0]
        for i in range(lane % 3, 5 + lane % 4):
            source = i + 1 if i % 2 == 0 else lane * 3
            r = [x, x] if source > 20 else [r[0], i]
            x = (x * 1234567891 // (source + 1) + 2**31) % 2**32 - 2**31
        expected.append((x + r[0] * 5 + r[1] * 7 + 2**31) % 2**32 - 2**31)
    assert result(how) == expected


def mnemonics(how: Any) -> list[str]:
    compiled = flyc.compile(RUN, np.zeros(4096, np.int32), np.zeros(64, np.int32), 5, how)
    return [i.mnemonic for i in compiled.isa.kernels["k"].instructions]


def test_what_a_loop_and_a_guard_cost(chip: str) -> None:
    """A loop over numbers that all threads share is a scalar one: nine instructions a turn, no lane is masked. A guard
    of the thread masks lanes once, and jumps where none is left."""
    def reduction(A: Any, B: Any, n: Any, t: Any) -> None:
        B[t] = loop(0, n, 1, lambda i, s: s + A[i * 64 + t], fx.Int32(0))

    def guard(A: Any, B: Any, n: Any, t: Any) -> None:
        branch(t < n, lambda: B.__setitem__(t, A[t]))

    found = mnemonics(reduction)
    assert len(found) <= 23 and "s_cbranch_scc1" in found and not any("exec" in name for name in found)
    found = mnemonics(guard)
    assert len(found) <= 12 and found.count("s_and_saveexec_b64") == found.count("s_cbranch_execz") == 1


def test_a_pointer_of_known_alignment_meets_others() -> None:
    """A pointer is the one that it was cast from, which is known to be aligned better."""

    def how(A: Any, B: Any, n: Any, t: Any) -> None:
        aligned = Pointer(fly("recast_iter", [fx.get_iter(A).value], [Ptr(DTYPES["Int32"], "global", 16)]))
        view = fx.make_view(aligned, fx.make_layout((4, 16), (1, 4)))
        start = fx.get_iter(fx.slice(view, (None, 0)))
        first = Pointer(fly("recast_iter", [start.value], [Ptr(DTYPES["Int32"], "global")]))
        picked = branch(t < n, lambda: first + t, lambda: first, (first,))
        B[t] = loop(0, n, 1, lambda i, p: p + 1, picked)[0]

    assert result(how) == [(lane if lane < 5 else 0) + 6 for lane in LANES]


def accumulated(A: Any, B: Any, n: Any, t: Any, around: Any) -> None:
    acc = fx.make_rmem_tensor(1, fx.Int32)

    def body(i: Any) -> None:
        def step() -> None:
            acc[0] = acc[0] + A[i * 64 + t]

        around(i, step, acc)

    loop(0, n, 1, body)
    B[t] = acc[0]


UNSET = {
    "a sum": lambda i, step, acc: step(),
    "a sum under a branch": lambda i, step, acc: branch(i > 1, step),
    "a sum in a loop inside": lambda i, step, acc: loop(0, 2, 1, lambda _: step()),
    "a store after it": lambda i, step, acc: (step(), acc.fill(1)),
}
SET = {
    "by another way": (lambda i, step, acc: branch(i == 0, lambda: acc.fill(5), step), lambda t: 5 + 65 + t + 129 + t),
    "for the next": (lambda i, step, acc: (branch(i > 0, step), acc.fill(7)), lambda t: 7),
}


@pytest.mark.parametrize("name", UNSET)
def test_the_first_iteration_reads_what_nothing_was_stored_to(name: str) -> None:
    with pytest.raises(CompileError, match="element 0 of a fragment in registers is read, and nothing was stored"):
        result(lambda A, B, n, t: accumulated(A, B, n, t, UNSET[name]), 3)


@pytest.mark.parametrize("name", SET)
def test_an_iteration_before_may_have_stored(name: str) -> None:
    around, expected = SET[name]
    assert result(lambda A, B, n, t: accumulated(A, B, n, t, around), 3) == [expected(t) for t in LANES]
