"""Copies of every width and kind, with predicates, on the software device of both chips, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flylab.errors import FlylabError, OutOfBounds
from tests.expr.copying import FIRST_LINE, chips, of, run

WIDE = """
r = fx.make_rmem_tensor({n}, fx.{kind})
s = per(lds(fx.{kind}, 64 * {n}), {n}, i)
fx.copy(atom(fx.UniversalCopy({bits}), fx.{kind}), per({A}, {n}, i), r)
fx.copy(atom(fx.UniversalCopy({bits}), fx.{kind}), r, s)
fx.barrier()
fx.copy(atom(fx.UniversalCopy({bits}), fx.{kind}), s, per({B}, {n}, i))
"""


@chips
@pytest.mark.parametrize("through", ["{}", "fx.rocdl.make_buffer_tensor({})"], ids=["global", "buffer"])
@pytest.mark.parametrize("kind, n", [("Float32", 8), ("Float32", 3), ("Float32", 1), ("Float16", 8), ("Float16", 3),
                                     ("Int8", 3), ("Float64", 3), ("Float16", 32)])
def test_widths_become_legal_pieces(chip: str, through: str, kind: str, n: int) -> None:
    """T04: 8, 3 and 1 of 32 bits, 8 of 16, and more, in as few instructions as there are pieces."""
    dtype = np.dtype(kind.lower())
    given, got = np.arange(64 * n).astype(dtype), np.zeros(64 * n, dtype)
    body = WIDE.format(n=n, kind=kind, bits=n * dtype.itemsize * 8, A=through.format("A"), B=through.format("B"))
    instructions = run(body, given, got, chip=chip)
    np.testing.assert_array_equal(got, given)
    assert not of(instructions, "scratch")
    widest = {"dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "ushort": 2, "ubyte": 1, "short_d16": 2}
    loads = of(instructions, "buffer_load", "global_load")
    moved = sum(next((size for word, size in widest.items() if word in load), 0) for load in loads)
    assert moved >= n * dtype.itemsize and len(loads) <= -(-n * dtype.itemsize // 16) + 1, loads


@chips
def test_a_buffer_copy_of_96_bits_is_one_instruction_with_its_cache_modifier(chip: str) -> None:
    given, got = np.arange(192, dtype=np.float32), np.zeros(192, np.float32)
    body = """
r = fx.make_rmem_tensor(3, fx.Float32)
fx.copy(atom(fx.rocdl.BufferCopy96b(cache_modifier=3), fx.Float32), per(fx.rocdl.make_buffer_tensor(A), 3, i), r)
fx.copy(atom(fx.rocdl.BufferCopy96b(16), fx.Float32), r, per(fx.rocdl.make_buffer_tensor(B), 3, i))
"""
    instructions = run(body, given, got, chip=chip)
    np.testing.assert_array_equal(got, given)
    buffers = [text for text in instructions if text.startswith("buffer_")]
    assert [text.split()[0] for text in buffers] == ["buffer_load_dwordx3", "buffer_store_dwordx3"]
    assert [text.split("offen")[1].split() for text in buffers] == [["sc0", "nt"], ["sc1"]]


@chips
def test_between_two_places_of_the_same_kind(chip: str) -> None:
    given, got = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    body = """
wide, one = atom(fx.UniversalCopy(128), fx.Int32), atom(fx.UniversalCopy(32), fx.Int32)
r, q = fx.make_rmem_tensor((4, 2), fx.Int32), fx.make_rmem_tensor((4, 2), fx.Int32)
if i < 32:
    both = parts(per(A, 8, i), 4)
    fx.copy(wide, both, r)
    fx.copy(wide, r, q)
    fx.copy(one, q, r)
    fx.copy(wide, r, parts(per(B, 8, i), 4))
if i == 0:
    fx.copy_atom_call(wide, per(A, 4, 1), per(B, 4, 0))
"""
    run(body, given, got, chip=chip)
    np.testing.assert_array_equal(got, np.concatenate([given[4:8], given[4:]]))


FLAGS = """
two = (parts(per(A, 8, i), 4), parts(per(B, 8, i), 4))
p = fx.make_rmem_tensor({shape}, fx.Boolean)
for j in fx.range_constexpr(2):
    p[{at}] = (i + j) % 3 == 0
r = fx.make_rmem_tensor((4, 2), fx.Float32)
r.fill(-5.0)
fx.copy(atom(fx.UniversalCopy({bits}), fx.Float32), two[0], r, pred=p)
fx.copy(atom(fx.UniversalCopy(128), fx.Float32), r, two[1])
"""


@chips
@pytest.mark.parametrize("shape, at, bits", [("(1, 2)", "0, j", 128), ("2", "j", 128), ("(1, 2)", "0, j", 32)])
def test_a_load_that_is_off_leaves_its_registers(chip: str, shape: str, at: str, bits: int) -> None:
    given, got = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    run(FLAGS.format(shape=shape, at=at, bits=bits), given, got, chip=chip)
    thread, j = np.divmod(np.arange(512) // 4, 2)
    np.testing.assert_array_equal(got, np.where((thread + j) % 3 == 0, given, -5))


@chips
def test_a_flag_for_each_of_several_atoms_in_the_first_mode(chip: str) -> None:
    given, got = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    body = """
p = fx.make_rmem_tensor((4, 2), fx.Boolean)
for j in fx.range_constexpr(8):
    p[j % 4, j // 4] = (i >> j) % 2 == 1
fx.copy(atom(fx.UniversalCopy(32), fx.Float32), parts(per(A, 8, i), 4), parts(per(B, 8, i), 4), pred=p)
"""
    run(body, given, got, chip=chip)
    thread, j = np.divmod(np.arange(512), 8)
    np.testing.assert_array_equal(got, np.where((thread >> j) % 2 == 1, given, 0))


@chips
def test_registers_that_were_never_stored_read_as_0(chip: str) -> None:
    given, got = np.arange(1, 65, dtype=np.float32), np.full(64, -1, np.float32)
    body = """
r = fx.make_rmem_tensor(1, fx.Float32)
fx.copy(atom(fx.UniversalCopy32b(), fx.Float32), per(A, 1, i), r, pred=i < 10)
fx.copy(atom(fx.UniversalCopy32b(), fx.Float32), r, per(B, 1, i), pred=i % 2 == 0)
fx.copy(atom(fx.UniversalCopy32b(), fx.Float32), r, per(B, 1, i), pred=False)
"""
    run(body, given, got, chip=chip)
    i = np.arange(64)
    np.testing.assert_array_equal(got, np.where(i % 2 == 0, np.where(i < 10, given, 0), -1))


@chips
def test_a_tile_of_16_rows_over_10(chip: str) -> None:
    """T08: M = 10 with a tile of 16, predicated by the rows that are there."""
    given, got = np.arange(160, dtype=np.float32).reshape(10, 16), np.zeros((10, 16), np.float32)
    body = """
row, column = i // 4, i % 4
r = fx.make_rmem_tensor(4, fx.Float32)
fours = (fx.make_view(fx.get_iter(T), fx.make_layout((4, (16, 4)), (1, (16, 4)))) for T in (A, B))
a, b = [fx.slice(four, (None, (row, column))) for four in fours]
inside = fx.elem_less(row, A.shape[0])
fx.copy(atom(fx.UniversalCopy(128), fx.Float32), a, r, pred=inside)
fx.copy(atom(fx.UniversalCopy(128), fx.Float32), r, b, pred=inside)
"""
    run(body, given, got, chip=chip)
    np.testing.assert_array_equal(got, given)


OVER = """
tiles = [fx.make_view(fx.get_iter(T), fx.make_layout((4, 256), (1, 4))) for T in (A, B)]
a, b = [fx.slice(tile, (None, i)) for tile in tiles]
r = fx.make_rmem_tensor(4, fx.Float32)
fx.copy(atom(fx.UniversalCopy(128), fx.Float32), a, r{})
fx.copy(atom(fx.UniversalCopy(128), fx.Float32), r, b{})
"""


@chips
def test_1000_elements_for_256_threads_of_4(chip: str) -> None:
    """T08: N = 1000; with a predicate, through a buffer, and without either, which is reported."""
    given, got = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    run(OVER.format(*[", pred=i * 4 < 1000"] * 2), given, got, chip=chip, block=256)
    np.testing.assert_array_equal(got, given)
    buffered = OVER.replace("fx.get_iter(T)", "fx.get_iter(fx.rocdl.make_buffer_tensor(T))").format("", "")
    got[:] = 0
    run(buffered, given, got, chip=chip, block=256)
    np.testing.assert_array_equal(got, given)
    with pytest.raises(OutOfBounds, match="right after the end of 'A'") as caught:
        run(OVER.format("", ""), given, got, chip=chip, block=256)
    assert "thread (250, 0, 0)" in str(caught.value)
    assert caught.value.where is not None and caught.value.where.line == FIRST_LINE + 3


SOFFSET = """
buffers = [fx.rocdl.make_buffer_tensor(T) for T in (A, B)]
r = fx.make_rmem_tensor(4, fx.Float32)
step = fx.rocdl.readfirstlane(fx.T.i32, C[0])
load = fx.atom_set_value(atom(fx.rocdl.BufferCopy128b(), fx.Float32), "soffset", 128)
fx.copy(load, per(buffers[0], 4, i), r, soffset=step)
fx.copy(load, r, per(buffers[1], 4, i))
fx.copy(atom(fx.rocdl.BufferAtomicAdd(fx.Float32), fx.Float32), fx.logical_divide(r, fx.make_layout(1, 1)), parts(per(
        buffers[1], 4, i), 1), soffset=step)
"""


@chips
def test_an_offset_of_the_whole_wave(chip: str) -> None:
    """It counts elements, and stands in the instruction; what lies outside then is outside of the buffer."""
    given, got = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    instructions = run(SOFFSET, given, got, np.array([300], np.int32), chip=chip)
    moved = np.where(np.arange(256) + 300 < 512, np.resize(np.roll(given, -300), 256), 0)
    wanted = np.zeros(812)
    wanted[128:384] = moved
    wanted[300:556] += moved
    np.testing.assert_array_equal(got, wanted[:512])
    loads = [text for text in instructions if text.startswith("buffer_load_dwordx4")]
    assert len(loads) == 1 and " s" in loads[0].split("]")[-1], loads


@chips
def test_gather_and_scatter(chip: str) -> None:
    rng = np.random.default_rng(1)
    given, got = rng.random(1024, np.float32), np.zeros(1024, np.float32)
    places = rng.permutation(256).astype(np.int32) * 4
    for base in ("{}", "fx.rocdl.make_buffer_tensor({})"):
        got[:] = 0
        body = f"""
offsets = fx.make_rmem_tensor((2, 2), fx.Int32)
p = fx.make_rmem_tensor((2, 2), fx.Boolean)
for j in fx.range_constexpr(4):
    offsets[j % 2, j // 2] = C[i * 4 + j]
    p[j % 2, j // 2] = C[i * 4 + j] != 40
r = fx.make_rmem_tensor(((4, 2), 2), fx.Float32)
wide = atom(fx.UniversalCopy(128), fx.Float32)
fx.gather(wide, fx.get_iter({base.format('A')}), offsets, r)
fx.scatter(wide, r, fx.get_iter({base.format('B')}), offsets, pred=p)
"""
        run(body, given, got, places, chip=chip)
        wanted = given.copy()
        wanted[40:44] = 0
        np.testing.assert_array_equal(got, wanted)


@chips
def test_a_gather_outside_of_a_buffer_reads_0(chip: str) -> None:
    given, got = np.arange(1, 257, dtype=np.float32), np.full(64, -1, np.float32)
    places = np.where(np.arange(64) % 2, np.arange(64), (1 << 30) + np.arange(64)).astype(np.int32)
    places[::4] = -5
    body = """
offsets = fx.make_rmem_tensor(1, fx.Int32)
offsets[0] = C[i]
r = fx.make_rmem_tensor(1, fx.Float32)
fx.gather(atom(fx.UniversalCopy(32), fx.Float32), fx.get_iter(fx.rocdl.make_buffer_tensor(A)), offsets, r)
B[i] = r[0]
"""
    run(body, given, got, places, chip=chip)
    np.testing.assert_array_equal(got, np.where(np.arange(64) % 2, given[:64], 0))


@chips
def test_a_histogram_is_a_scatter_of_an_atomic_addition(chip: str) -> None:
    given = np.random.default_rng(2).integers(0, 10, 256).astype(np.int32)
    got = np.zeros(10, np.uint32)
    body = """
offsets = fx.make_rmem_tensor((1, 4), fx.Int32)
p = fx.make_rmem_tensor((1, 4), fx.Boolean)
for j in fx.range_constexpr(4):
    offsets[0, j] = A[i * 4 + j]
    p[0, j] = offsets[0, j] != 3
one = fx.make_rmem_tensor(((1, 1), 4), fx.Uint32)
one.fill(1)
fx.scatter(atom(fx.UniversalAtomicAdd(fx.Uint32), fx.Uint32), one, fx.get_iter(B), offsets, pred=p)
"""
    run(body, given, got, chip=chip)
    wanted = np.bincount(given, minlength=10)
    wanted[3] = 0
    np.testing.assert_array_equal(got, wanted)


@chips
def test_strides_and_places_that_only_the_device_knows(chip: str) -> None:
    given, got = np.arange(1024, dtype=np.float16), np.zeros(1024, np.float16)
    body = """
step, shift = C[0], C[1]
rows = fx.make_view(fx.get_iter(A) + shift, fx.make_layout((4, 32), (1, step)))
out = fx.make_view(fx.get_iter(B), fx.make_layout((4, 64), (1, 4)))
fx.copy(atom(fx.UniversalCopy(64), fx.Float16), fx.slice(rows, (None, i)), fx.slice(out, (None, i)), pred=i < 32)
"""
    run(body, given, got, np.array([17, 3], np.int32), chip=chip)
    wanted = np.zeros(1024, np.float16)
    wanted[:128] = given[3 + np.arange(32)[:, None] * 17 + np.arange(4)].reshape(-1)
    np.testing.assert_array_equal(got, wanted)


@chips
def test_a_tiled_copy_stands_for_its_atom(chip: str) -> None:
    given, got = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros((16, 64), np.float32)
    body = """
tiled = fx.make_tiled_copy_tv(atom(fx.UniversalCopy(128), fx.Float32), fx.make_layout((4, 16), (16, 1)),
                              fx.make_layout((1, 4)))
mine = tiled.get_slice(i)
source, target = mine.partition_S(A), mine.partition_D(B)
r = fx.make_fragment_like(source)
fx.copy(tiled, source, r)
fx.copy(mine, r, target)
"""
    run(body, given, got, chip=chip)
    np.testing.assert_array_equal(got, given)


@chips
@pytest.mark.parametrize("row, wide", [(8, "ds_read_b128"), (12, "ds_read2_b64"), (40, "ds_read_b128")])
def test_lds_is_read_as_wide_as_its_alignment_lets(chip: str, row: int, wide: str) -> None:
    """Rows of `row` Float16: at multiples of 16 bytes one instruction of 128 bits, at multiples of 8 two of 64."""
    given, got = np.arange(512, dtype=np.float16), np.zeros(512, np.float16)
    body = f"""
rows = fx.make_view(fx.get_iter(lds(fx.Float16, {64 * row})), fx.make_layout((8, 64), (1, {row})))
wide = atom(fx.UniversalCopy(128), fx.Float16)
fx.copy(wide, per(A, 8, i), fx.slice(rows, (None, i)))
fx.barrier()
fx.copy(wide, fx.slice(rows, (None, 63 - i)), per(B, 8, i))
"""
    instructions = run(body, given, got, chip=chip)
    np.testing.assert_array_equal(got.reshape(64, 8), given.reshape(64, 8)[::-1])
    assert of(instructions, "ds_read") == [wide]


REFUSED: list[tuple[str, str, str]] = [
    # T01
    ("fx.copy(atom(fx.UniversalCopy(64), fx.BFloat16), per(A, 4, i), f, pred=p)",
     r"holds Float32, the atom copies BFloat16.*holds Float32.*does not have one flag for each atom call.*"
     r"f32, global, 4:1.*f32, register, 8:1.*i1, register, \(3,5\):\(1,3\)", "make the atom for fx.Float32"),
    ("fx.copy(atom(fx.UniversalCopy(128), fx.Float32), per(A, 4, i), q)", "f16.*the atom copies Float32|holds Float16",
     "convert the data"),
    ("fx.copy(atom(fx.UniversalCopy(96), fx.Float32), per(A, 8, i), f)", "8 elements in its first mode, .* moves 3",
     "divide the tensor by 3"),
    ("fx.copy(atom(fx.UniversalCopy(128), fx.Float32), per(A, 4, i), f)", "has 4 elements, .*8", "as many elements"),
    ("fx.copy(atom(fx.UniversalCopy(128), fx.Float32), fx.slice(parts(A, 64), (i, None)), q)", "consecutive elements",
     "an atom of 32 bits"),
    ("fx.copy(atom(fx.UniversalCopy(128), fx.Float32), per(A, 8, i), f, pred=f)", "no Boolean in registers",
     "fx.Boolean"),
    ("fx.copy(atom(fx.UniversalCopy(128), fx.Float32), per(A, 8, i), f, pred=1.5)", "no Boolean in registers",
     "fx.Boolean"),
    ("fx.copy(atom(fx.UniversalCopy(128), fx.Float32), per(A, 8, i), f, imm_offset=4)", "has no 'imm_offset'",
     "it has no state"),
    ("fx.copy(atom(fx.rocdl.BufferCopy(128), fx.Float32), per(A, 8, i), f, imm_offset=4)", "has no 'imm_offset'",
     "it has soffset"),
    ("fx.atom_set_value(atom(fx.rocdl.BufferCopy(128), fx.Float32), 'soffset', 1.5)", "the soffset is", "fx.Int32"),
    ("fx.copy(atom(fx.rocdl.BufferCopy(64), fx.Float16), q, q, soffset=-1)", "a soffset of -1 elements, -2 bytes",
     "slice the tensor there"),
    ("fx.atom_set_value(atom(fx.rocdl.BufferCopy(128), fx.Float32), 'soffset', fx.Uint32(1 << 30))",
     "1073741824 elements, 4294967296 bytes", "slice the tensor there"),
    ("fx.copy(fx.UniversalCopy(128), per(A, 8, i), f)", "not a copy atom", "fx.make_copy_atom"),
    ("fx.copy(atom(fx.UniversalCopy(128), fx.Float32), A[0], f)", "not a tensor", "a slice of one"),
    ("fx.copy_atom_call(atom(fx.UniversalCopy(128), fx.Float32), per(A, 8, i), f)", "has 8 elements, the atom moves 4",
     "fx.copy walks"),
    ("fx.copy(atom(fx.rocdl.BufferCopy(128), fx.Float32), per(A, 8, i), f)", "which .*buffer_copy<128> does not reach",
     "make_buffer_tensor"),
    ("fx.copy(atom(fx.UniversalAtomicAdd(fx.Float32), fx.Float32), per(A, 8, i), f)", "in global memory, which",
     "copy it into a fragment"),
    ("fx.copy(atom(fx.UniversalAtomicMax(fx.Float32), fx.Float32), f, per(A, 8, i))", "in global memory no chip has it",
     "in shared memory"),
    ("fx.gather(atom(fx.UniversalCopy(128), fx.Float32), A, f, f)", "not a pointer", "fx.get_iter"),
    ("fx.gather(atom(fx.UniversalCopy(128), fx.Float32), fx.get_iter(A), f, f)", "no Int32 or Int64.*not one for each",
     "fx.Int64"),
    ("fx.scatter(atom(fx.UniversalCopy(32), fx.Float32), f, fx.get_iter(A), o, pred=p)",
     "does not have the shape of the offsets", "one flag for each offset"),
]  # fmt: skip


@pytest.mark.parametrize("line, message, hint", REFUSED, ids=range(len(REFUSED)))
def test_refused(line: str, message: str, hint: str) -> None:
    body = f"""
f, q = fx.make_rmem_tensor(8, fx.Float32), fx.make_rmem_tensor(4, fx.Float16)
p, o = fx.make_rmem_tensor((3, 5), fx.Boolean), fx.make_rmem_tensor(8, fx.Int32)
{line}
"""
    with pytest.raises(FlylabError, match=f"(?s){message}") as caught:
        run(body, np.zeros(512, np.float32), chip="gfx942")
    error: Any = caught.value
    assert error.where is not None and error.where.line == FIRST_LINE + 2
    assert hint in (error.hint or ""), error.hint
