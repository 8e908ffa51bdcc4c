"""LDS through `fx.SharedAllocator`: what it holds on the software device, against numpy, on both chips."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.targets import TARGETS
from tests.samples import cell

chips = pytest.mark.parametrize("chip", sorted(TARGETS))
BLOCK = 256


def run(body: str, *arrays: np.ndarray, chip: str = "gfx942", launch: str = "", **names: Any) -> Any:
    """Run a kernel of this body over `A`, `B` ... in one block; its compilation."""
    parameters = ", ".join(f"{name}: fx.Tensor" for name in "ABCD"[: len(arrays)])
    given = ", ".join("ABCD"[: len(arrays)])
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    made = cell(f"@flyc.kernel\ndef k({parameters}):\n{lines}\n\n"
                f"@flyc.jit\ndef launch({parameters}):\n    k({given}).launch(grid=1, block={BLOCK}{launch})\n")
    made.update(names)
    with flylab.use(chip):
        made["launch"](*arrays)
        return flyc.compile(made["launch"], *arrays)


EXCHANGE = """
i = fx.thread_idx.x
lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).peek()
tile = lds.view(fx.make_layout(256, 1))
tile[i] = A[i]
fx.barrier()
B[i] = tile[(i + 1) % 256]
"""


@chips
def test_neighbours_exchange_through_lds(chip: str) -> None:
    given, got = np.random.default_rng(0).random(BLOCK, np.float32), np.zeros(BLOCK, np.float32)
    compiled = run(EXCHANGE, given, got, chip=chip)
    np.testing.assert_array_equal(got, np.roll(given, -1))
    assert compiled.isa.kernels["k"].lds_bytes == 1024


@fx.struct
class Tiles:
    flag: fx.Int8
    odd: fx.Array[fx.Float16, 3]
    left: fx.Array[fx.Float16, 256]
    right: fx.Array[fx.Int32, 256]


FIELDS = """
i = fx.thread_idx.x
lds = fx.SharedAllocator().allocate(Tiles).peek()
left, right = lds.left.view(), lds.right.view()
left[i] = fx.Float16(A[i])
right[i] = i * 3
if i == 0:
    lds.flag = -7
fx.barrier()
B[i] = left[255 - i].to(fx.Float32) + right[i ^ 5] * 1.0 + lds.flag * 1000.0
"""


@chips
def test_the_fields_of_a_struct_lie_apart(chip: str) -> None:
    given, got = np.arange(BLOCK, dtype=np.float32), np.zeros(BLOCK, np.float32)
    run(FIELDS, given, got, chip=chip, Tiles=Tiles)
    i = np.arange(BLOCK)
    np.testing.assert_array_equal(got, given[::-1] + (i ^ 5) * 3 - 7000)


REDUCTION = """
i = fx.thread_idx.x
lane, wave = i % 64, i // 64
partial = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 4]).peek()
total = A[i]
for step in fx.range_constexpr(6):
    total = total + gpu.shuffle_xor(total, 32 >> step, 64)
if lane == 0:
    partial[wave] = total
fx.barrier()
B[i] = partial.load().reduce(fx.ReductionOp.ADD)
"""


@chips
def test_a_block_reduces_over_its_waves(chip: str) -> None:
    given, got = np.random.default_rng(1).integers(-99, 99, BLOCK).astype(np.float32), np.zeros(BLOCK, np.float32)
    compiled = run(REDUCTION, given, got, chip=chip)
    assert (got == given.sum()).all()
    assert "ds_read_b128" in compiled.isa.text  # the four partial sums at once: they are aligned


@fx.struct
class Inner:
    tag: fx.Uint8
    wide: fx.Float64


@fx.struct
class Outer:
    first: fx.Uint8
    second: fx.Float32
    inner: Inner
    last: fx.Align[fx.Array[fx.Float16, 3], 64]


@fx.union
class Either:
    floats: fx.Array[fx.Float32, 8]
    halves: fx.Array[fx.Float16, 32]


@fx.struct
class Pair:
    a: fx.Array[fx.Float16, 3]
    b: fx.Array[fx.Float16, 8]


@fx.struct
class Both:
    x: fx.Array[fx.Int32, 128]
    y: fx.Array[fx.Int32, 128]


@fx.struct
class Halves:
    x: fx.Array[fx.Int32, 256]
    y: fx.Array[fx.Int32, 256]


@fx.struct
class Mixed:
    flag: fx.Boolean
    tiny: fx.Float8E4M3FN
    wide: fx.Float64
    four: fx.Array[fx.Int32, 4]


OFFSETS = """
one, two = fx.SharedAllocator(), fx.SharedAllocator(base_alignment=128)
lds, other = one.allocate(Outer), two.allocate(Either)
third = one.allocate(fx.Array[fx.Int16, 5])
places = (lds.first, lds.second, lds.inner, lds.inner.tag, lds.inner.wide, lds.last, other, other.floats, other.halves,
          third)
if fx.thread_idx.x == 0:
    for n in fx.range_constexpr(len(places)):
        A[n] = fx.ptrtoint(places[n].ptr) - fx.ptrtoint(lds.ptr)
    A[10], A[11], A[12] = one.allocated_bytes, two.allocated_bytes, fx.ptrtoint(other.ptr)
"""


@chips
def test_in_lds_the_offsets_are_those_of_c(chip: str) -> None:
    """T12: those of gcc 12 on x86-64 for the same declarations, with `_Alignas(64)`."""
    got = np.zeros(16, np.int32)
    run(OFFSETS, got, chip=chip, Outer=Outer, Either=Either)
    assert got[:6].tolist() == [0, 4, 8, 8, 16, 64]
    assert len(set(got[6:9].tolist())) == 1 and got[12] % 128 == 0  # a union's fields share their bytes
    assert got[10] == 128 + 10 and got[11] == 64
    spans = sorted([(0, 128), (got[6], got[6] + 64), (got[9], got[9] + 10)])
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:], strict=False))


@chips
def test_a_union_in_lds_is_read_as_another_field(chip: str) -> None:
    given, got = np.random.default_rng(2).random(8, np.float32), np.zeros(16, np.float16)
    run("""
        both = fx.SharedAllocator().allocate(Either)
        if fx.thread_idx.x < 8:
            both.floats[fx.thread_idx.x].poke(A[fx.thread_idx.x])
        fx.barrier()
        if fx.thread_idx.x < 16:
            B[fx.thread_idx.x] = both.halves[fx.thread_idx.x].peek()
        """, given, got, chip=chip, Either=Either)
    np.testing.assert_array_equal(got.view(np.uint16), given.view(np.uint16))


@chips
def test_a_vector_load_of_a_field_has_the_alignment_that_holds(chip: str) -> None:
    """T09: of {a: 3 x f16, b: 8 x f16} b begins at 6: nothing but 2 bytes of alignment may be assumed."""
    given, got = np.arange(8, dtype=np.float16), np.zeros(8, np.float16)
    compiled = run("""
        lds = fx.SharedAllocator().allocate(Pair)
        t = fx.thread_idx.x
        if t < 8:
            lds.b[t].poke(A[t])
        if t < 3:
            lds.a[t].poke(A[t] * 2)
        fx.barrier()
        whole = lds.b.load()
        if t == 0:
            for n in fx.range_constexpr(8):
                B[n] = whole[n]
        if fx.ptrtoint(lds.ptr) + 6 != fx.ptrtoint(lds.b.ptr):
            B[0] = fx.Float16(-1.0)
        """, given, got, chip=chip, Pair=Pair)
    np.testing.assert_array_equal(got, given)
    loads = re.findall(r"load <8 x half>, ptr addrspace\(3\) .*, align (\d+)", compiled.llvm)
    assert loads == ["2"]


@chips
def test_views_taken_inside_of_control_flow(chip: str) -> None:
    """T13."""
    given, got = np.arange(BLOCK, dtype=np.int32), np.zeros(BLOCK, np.int32)
    run("""
        i = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(Both).peek()
        if i < 128:
            lds.x.view(fx.make_layout((16, 8), (8, 1)))[i // 8, i % 8] = A[i]
        else:
            lds.y.view()[i - 128] = A[i] * 2
        fx.barrier()
        total = fx.Int32(0)
        for n in range(i % 4):
            inner = lds.y.view(fx.make_layout(128, 1))
            local = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 256]).peek()
            local[i] = inner[n]
            total = total + local[i]
        B[i] = total + lds.x[127 - i % 128]
        """, given, got, chip=chip,
        Both=Both)
    i = np.arange(BLOCK)
    sums = np.concatenate([[0], np.cumsum(given[128:] * 2)])
    np.testing.assert_array_equal(got, sums[i % 4] + given[127 - i % 128])


@chips
def test_each_call_allocates_anew_and_helpers_may(chip: str) -> None:
    def helper(kind: Any) -> Any:
        return fx.SharedAllocator().allocate(kind).peek()

    given, got = np.arange(BLOCK, dtype=np.int32), np.zeros(BLOCK, np.int32)
    compiled = run("""
        i = fx.thread_idx.x
        tiles = [helper(fx.Array[fx.Int32, 256]) for _ in range(3)]
        for n in fx.range_constexpr(3):
            tiles[n][i] = A[i] * (n + 1)
        fx.barrier()
        B[i] = tiles[0][255 - i] + tiles[1][i ^ 1] * 1000 + tiles[2][i ^ 2] * 1000000
        """, given, got, chip=chip, helper=helper)
    i = np.arange(BLOCK)
    np.testing.assert_array_equal(got, (255 - i) + (i ^ 1) * 2000 + (i ^ 2) * 3000000)
    assert compiled.isa.kernels["k"].lds_bytes == 3 * 1024


DYNAMIC = """
i = fx.thread_idx.x
first = fx.SharedAllocator(static=False)
tile, odd, wide = first.allocate(fx.Array[fx.Int32, 256]), first.allocate(3), first.allocate(fx.Array[fx.Int64, 256])
B[i] = fx.Int32(first.allocated_bytes)
fixed = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 7]).peek()
tile[i].poke(A[i])
wide[i].poke(A[i] * 3)
odd[i % 3].poke(7)
fixed[i % 7] = 5
fx.barrier()
B[i] = B[i] * 1000 + tile[255 - i].peek() + wide[i ^ 1].peek().to(fx.Int32) + odd[2].peek() + fixed[6]
B[i] = B[i] + (fx.get_dyn_shared(fx.Int32)[i] - A[i])
"""


@chips
@pytest.mark.parametrize("launch", ["", ", smem=4000"])
def test_the_launch_gives_the_dynamic_lds(chip: str, launch: str) -> None:
    given, got = np.arange(BLOCK, dtype=np.int32), np.zeros(BLOCK, np.int32)
    compiled = run(DYNAMIC, given, got, chip=chip, launch=launch)
    i = np.arange(BLOCK)
    assert compiled.isa.kernels["k"].lds_bytes == 1024  # 28 static bytes, and as many as align what follows
    (step,) = compiled.host.steps([0, 0, 0])
    assert step.smem == (4000 if launch else 1024 + 8 + 2048)
    np.testing.assert_array_equal(got, 3080_000 + (255 - i) + 3 * (i ^ 1) + 7 + 5)


@chips
def test_two_buffers_change_places_in_a_runtime_loop(chip: str) -> None:
    given, got = np.arange(BLOCK, dtype=np.int32), np.zeros(BLOCK, np.int32)
    run("""
        i = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(Halves).peek()
        now, then = lds.x.ptr, lds.y.ptr
        now[i] = A[i]
        for n in range(A[5]):
            fx.barrier()
            then[i] = now[(i + 1) % 256] + n
            now, then = then, now
        B[i] = now[i]
        """, given, got, chip=chip, Halves=Halves)
    np.testing.assert_array_equal(got, np.roll(given, -5) + 10)


@chips
def test_whole_structs_and_odd_numbers(chip: str) -> None:
    got = np.zeros((BLOCK, 8), np.float32)
    run("""
        i = fx.thread_idx.x
        rows = fx.SharedAllocator().allocate(fx.Array[Mixed, 256])
        rows[i].poke(Mixed(flag=i % 3 == 0, tiny=fx.Float32(i % 8), wide=i * 0.5, four=[i, -i, i * i, 7]))
        fx.barrier()
        there = rows[255 - i].load()
        A[i, 0] = there.flag.select(1.0, 0.0)
        A[i, 1] = there.tiny.to(fx.Float32)
        A[i, 2] = there.wide.to(fx.Float32)
        for n in fx.range_constexpr(4):
            A[i, 3 + n] = there.four[n].to(fx.Float32)
        """, got, chip=chip, Mixed=Mixed)
    i = BLOCK - 1 - np.arange(BLOCK)
    wanted = np.stack([i % 3 == 0, i % 8, i * 0.5, i, -i, i * i, np.full(BLOCK, 7), np.zeros(BLOCK)], axis=1)
    np.testing.assert_array_equal(got, wanted.astype(np.float32))


@chips
@pytest.mark.parametrize(("pitch", "bits", "read"), [(32, 128, "ds_read_b128"), (36, 128, "ds_read_b128"),
                                                      (34, 64, "ds_read_b64"), (33, 32, "ds_read_b32")])
def test_a_padded_tile_is_copied_as_wide_as_its_rows_are_aligned(chip: str, pitch: int, bits: int, read: str) -> None:
    given, got = np.random.default_rng(4).random((32, 32), np.float32), np.zeros((32, 32), np.float32)
    compiled = run(f"""
        i = fx.thread_idx.x
        wide = {bits} // 32
        tile = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 32 * {pitch}]).peek().view(
            fx.make_layout((32, (wide, 32 // wide)), ({pitch}, (1, wide))))
        copy = fx.make_copy_atom(fx.UniversalCopy({bits}), fx.Float32)
        r = fx.make_rmem_tensor(wide, fx.Float32)
        rows = 256 // (32 // wide)
        for step in fx.range_constexpr(32 // rows):
            row, column = i // (32 // wide) + step * rows, i % (32 // wide)
            for n in fx.range_constexpr(wide):
                r[n] = A[row, column * wide + n]
            fx.copy(copy, r, fx.slice(tile, (row, (None, column))))
        fx.barrier()
        for step in fx.range_constexpr(32 // rows):
            row, column = i // (32 // wide) + step * rows, i % (32 // wide)
            fx.copy(copy, fx.slice(tile, (31 - row, (None, column))), r)
            for n in fx.range_constexpr(wide):
                B[row, column * wide + n] = r[n]
        """, given, got, chip=chip)
    np.testing.assert_array_equal(got, given[::-1])
    assert re.search(rf"{read}\b", compiled.isa.text)
    assert compiled.isa.kernels["k"].lds_bytes == 32 * pitch * 4


@chips
def test_a_barrier_waits_for_lds_and_not_for_a_prefetch(chip: str) -> None:
    """The published wheel's barrier is the same: `s_waitcnt lgkmcnt(0)`, `s_barrier`."""
    given, got = np.arange(512, dtype=np.float32), np.zeros(BLOCK, np.float32)
    compiled = run("""
        i = fx.thread_idx.x
        tile = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).peek()
        tile[i] = A[i]
        ahead = A[i + 256]
        fx.barrier()
        B[i] = tile[255 - i] + ahead
        """, given, got, chip=chip)
    np.testing.assert_array_equal(got, given[255::-1] + given[256:])
    lines = [line.split(";")[0].strip() for line in compiled.isa.text.splitlines()]
    barrier = lines.index("s_barrier")
    loads = [n for n, line in enumerate(lines) if line.startswith("global_load")]
    assert lines[barrier - 1] == "s_waitcnt lgkmcnt(0)" and len(loads) == 2
    if loads[1] < barrier:
        assert "s_waitcnt vmcnt(0)" not in lines[loads[1] : barrier]


@chips
def test_kernels_of_one_launcher_have_lds_of_their_own(chip: str) -> None:
    launcher = cell("""
        @flyc.kernel
        def small(A: fx.Tensor):
            tile = fx.SharedAllocator(static=False).allocate(fx.Array[fx.Int32, 64]).peek()
            tile[fx.thread_idx.x] = A[fx.thread_idx.x] + 1
            fx.barrier()
            A[fx.thread_idx.x] = tile[63 - fx.thread_idx.x]

        @flyc.kernel
        def large(A: fx.Tensor, n: fx.Constexpr):
            tile = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 64 * n]).peek()
            tile[fx.thread_idx.x * n] = A[fx.thread_idx.x] * 2
            fx.barrier()
            A[fx.thread_idx.x] = tile[(63 - fx.thread_idx.x) * n]

        @flyc.jit
        def launch(A: fx.Tensor):
            small(A).launch(grid=1, block=64)
            large(A, 3).launch(grid=1, block=64)
            large(A, 5).launch(grid=1, block=64)
        """)["launch"]
    given = np.arange(64, dtype=np.int32)
    with flylab.use(chip):
        launcher(given)
        kernels = flyc.compile(launcher, given).isa.kernels
    np.testing.assert_array_equal(given, (np.arange(64)[::-1] + 1) * 4)
    assert [kernel.lds_bytes for kernel in kernels.values()] == [0, 768, 1280]
