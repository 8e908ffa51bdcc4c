"""Copies that AMD's chips have of their own: past the registers, transposing, atomic; on the software device."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flylab.errors import FlylabError
from tests.expr.copying import chips, of, run

TABLE = Path(__file__).resolve().parents[1] / "data" / "ds_read_tr_gfx950.json"

DIRECT = """
n = {bits} // 32
tile = parts(lds(fx.Float32, 256 * n), n)
for j in fx.range_constexpr(4 // {waves}):
    place = i + j * fx.block_dim.x
    fx.copy(atom({op}({bits}), fx.Float32), fx.slice(parts({A}, n), (None, place)), fx.slice(tile, (None, place)){pred})
fx.barrier()
for j in fx.range_constexpr(4 // {waves}):
    place = 255 - i - j * fx.block_dim.x
    fx.copy(atom(fx.UniversalCopy({bits}), fx.Float32), fx.slice(tile, (None, place)), fx.slice(parts(B, n),
            (None, place)){pred})
"""
BUFFER = "fx.rocdl.make_buffer_tensor(A)"
TO_LDS = [("fx.rocdl.BufferCopyLDS", BUFFER), ("fx.rocdl.cdna4.BufferLoadAsyncLDS", BUFFER),
          ("fx.rocdl.cdna4.GlobalLoadAsyncLDS", "A")]  # fmt: skip


@pytest.mark.parametrize("op, A", TO_LDS, ids=["buffer", "buffer async", "global async"])
@pytest.mark.parametrize("chip, bits", [("gfx942", 32), ("gfx950", 32), ("gfx950", 96), ("gfx950", 128)])
@pytest.mark.parametrize("waves", [1, 4])
def test_loads_past_the_registers(op: str, A: str, chip: str, bits: int, waves: int) -> None:
    given = np.random.default_rng(0).random(256 * bits // 32, np.float32)
    got = np.zeros_like(given)
    body = DIRECT.format(op=op, A=A, bits=bits, pred="", waves=waves)
    instructions = run(body, given, got, chip=chip, block=64 * waves)
    np.testing.assert_array_equal(got, given)
    loads = [text for text in instructions if text.startswith(("buffer_load", "global_load"))]
    assert len(loads) == 4 // waves and all("lds" in text for text in loads), loads
    assert not of(instructions, "ds_write")


@chips
def test_loads_past_the_registers_of_which_the_first_lanes_are_off(chip: str) -> None:
    given, got = np.arange(1, 257, dtype=np.float32), np.zeros(256, np.float32)
    pred = ", pred=(place % 64 >= 5)"
    body = DIRECT.format(op="fx.rocdl.BufferCopyLDS", A=BUFFER, bits=32, pred=pred, waves=4)
    run(body, given, got, chip=chip, block=256)
    np.testing.assert_array_equal(got, np.where(np.arange(256) % 64 >= 5, given, 0))


PIPELINE = """
def load(j):
    fx.copy(atom({op}(32), fx.Float32), per({A}, 1, j * 128 + i), fx.slice(parts(stages[j % 2], 1), (None, i)))

load(0)
total = fx.Float32(0)
for j in fx.range_constexpr(6):
    if j < 5:
        load(j + 1)
    fx.rocdl.s_waitcnt(vmcnt=1 if j < 5 else 0)
    {barrier}
    total = total * 2 + stages[j % 2][127 - i]
    {barrier}
B[i] = total
"""
TWO = "stages = [lds(fx.Float32, 128), lds(fx.Float32, 128)]"
ONE = "both = lds(fx.Float32, 256)\nstages = [fx.slice(parts(both, 128), (None, j)) for j in (0, 1)]"


@pytest.mark.parametrize("op, A", TO_LDS, ids=["buffer", "buffer async", "global async"])
@pytest.mark.parametrize("stages, barrier, in_flight", [
    (TWO, "fx.rocdl.s_barrier()", 1), (ONE, "fx.rocdl.s_barrier()", 0), (TWO, "fx.gpu.barrier()", 0),
])  # fmt: skip
def test_loads_in_flight(op: str, A: str, stages: str, barrier: str, in_flight: int) -> None:
    """One load stays open while the other stage is read, where each has an allocation and the barrier waits not."""
    given, got = np.random.default_rng(1).random(6 * 128, np.float32), np.zeros(128, np.float32)
    body = stages + PIPELINE.format(op=op, A=A, barrier=barrier)
    instructions = run(body, given, got, chip="gfx950", block=128)
    expected = np.zeros(128, np.float32)
    for row in given.reshape(6, 128):
        expected = expected * 2 + row[::-1]
    np.testing.assert_array_equal(got, expected)
    open_loads, seen = 0, []
    for text in instructions:
        if "lds" in text.split() or text.startswith("global_load_lds"):
            open_loads += 1
        elif waits := re.search(r"vmcnt\((\d+)\)", text):
            open_loads = min(open_loads, int(waits[1]))
        elif text.startswith("ds_read"):
            seen.append(open_loads)
    assert seen == [in_flight] * 5 + [0]
    assert of(instructions, "s_barrier")


GATHER = """
tile, places = lds(fx.Float32, 64), fx.make_rmem_tensor(1, fx.Int32)
places[0], tile[i] = i * 37 % 200, -1.0
fx.barrier()
fx.{}(atom({}(32), fx.Float32), {}, pred=i % 3 != 0)
fx.rocdl.s_waitcnt(vmcnt=0)
fx.barrier()
B[i] = tile[i]
"""
OWN = "fx.slice(parts(tile, 1), (None, i))"


@chips
@pytest.mark.parametrize("op, A", TO_LDS, ids=["buffer", "buffer async", "global async"])
def test_lanes_gather_from_their_own_places_into_lds(op: str, A: str, chip: str) -> None:
    given, got = np.arange(200, dtype=np.float32), np.zeros(64, np.float32)
    run(GATHER.format("gather", op, f"fx.get_iter({A}), places, {OWN}"), given, got, chip=chip)
    i = np.arange(64)
    np.testing.assert_array_equal(got, np.where(i % 3 != 0, i * 37 % 200, -1))
    with pytest.raises(FlylabError, match="side by side in LDS, and cannot scatter them") as caught:
        run(GATHER.format("scatter", op, f"parts({A}, 1), fx.get_iter(tile), places"), given, got, chip=chip)
    assert caught.value.hint and caught.value.where is not None


@pytest.mark.parametrize("op, A", TO_LDS, ids=["buffer", "buffer async", "global async"])
@pytest.mark.parametrize("bits", [96, 128])
def test_gfx942_moves_4_bytes_a_lane(op: str, A: str, bits: int) -> None:
    body = DIRECT.format(op=op, A=A, bits=bits, pred="", waves=4)
    with pytest.raises(FlylabError, match=f"<{bits}>: gfx942 does not have it") as caught:
        run(body, np.zeros(1024, np.float32), np.zeros(1024, np.float32), chip="gfx942", block=256)
    assert f"compile for gfx950, or use {op}(32)" in str(caught.value.hint)


@chips
def test_threads_of_a_tiled_copy_lie_side_by_side_in_lds(chip: str) -> None:
    """The chip puts the lanes of a wave one after the other, however the copy numbers them."""
    body = """
tile = fx.make_view(fx.get_iter(lds(fx.Float32, 256)), fx.make_layout((4, 64), ({pitch}, 1)))
made = fx.make_tiled_copy_tv(atom(fx.rocdl.BufferCopyLDS32b(), fx.Float32), fx.make_layout({threads}),
                             fx.make_layout({values})).get_slice(i)
source = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(A)), fx.make_layout((4, 64), (64, 1)))
fx.copy(made.atom, made.partition_S(source), made.partition_D(tile))
fx.rocdl.s_waitcnt(vmcnt=0)
for j in fx.range_constexpr(4):
    B[j * 64 + i] = tile[j, i]
"""
    given, got = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    run(body.format(pitch=64, threads="(1, 64), (64, 1)", values="(4, 1), (1, 1)"), given, got, chip=chip)
    np.testing.assert_array_equal(got, given)
    with pytest.raises(FlylabError, match="thread 1 lies 64 elements from thread 0, and .* puts it 1 from") as caught:
        run(body.format(pitch=64, threads="(4, 16), (1, 4)", values="(1, 4), (1, 1)"), given, got, chip=chip)
    assert "partition_D of 'tile' (4,64):(64,1) by a tiled copy" in caught.value.message
    assert "copy through registers" in str(caught.value.hint) and caught.value.where is not None
    with pytest.raises(FlylabError, match="thread 16 lies 60 elements from thread 0, and .* puts it 16 from"):
        run(body.format(pitch=60, threads="(4, 16), (16, 1)", values="(1, 1), (1, 1)"), given, got, chip=chip)


def test_lanes_side_by_side_in_a_swizzle_are_refused() -> None:
    body = """
swizzled = fx.make_composed_layout(fx.Swizzle(3, 0, 3), 0, fx.make_layout((1, 64), (0, 1)))
tile = fx.make_view(fx.get_iter(lds(fx.Float32, 64)), swizzled)
fx.copy(atom(fx.rocdl.BufferCopyLDS32b(), fx.Float32), per(fx.rocdl.make_buffer_tensor(A), 1, i), fx.slice(tile,
        (None, i)))
"""
    with pytest.raises(FlylabError, match="is swizzled, and the chip puts the lanes of a wave side by side") as caught:
        run(body, np.zeros(64, np.float32), chip="gfx950")
    assert "swizzle which element each thread loads" in str(caught.value.hint)


TRANSPOSED = """
n = {bits} // {width}
tile = per(lds(fx.{kind}, 64 * n), n, i)
fx.copy(atom(fx.UniversalCopy({bits}), fx.{kind}), per(A, n, i), tile)
fx.barrier()
r = fx.make_rmem_tensor(n, fx.{kind})
fx.copy(atom(fx.rocdl.cdna4.LDSReadTrans({trans}, {bits}), fx.{kind}), tile, r)
fx.copy(atom(fx.UniversalCopy({bits}), fx.{kind}), r, per(B, n, i))
"""


def as_elements(data: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Bytes as (64, count) elements of so many bits, the lowest bits first."""
    flags = np.unpackbits(data.view(np.uint8), bitorder="little").reshape(64, count, bits)
    return np.asarray((flags.astype(np.int64) << np.arange(bits)).sum(-1))


@pytest.mark.parametrize("trans, bits, kind", [(16, 64, "Float16"), (16, 64, "BFloat16"), (8, 64, "Uint8"),
                                               (8, 64, "Float8E4M3FN"), (4, 64, "Uint8"), (6, 96, "Uint8")])
def test_transposing_reads(trans: int, bits: int, kind: str) -> None:
    width = max(trans, 8)
    dtype = {"Float16": np.float16, "BFloat16": ml_dtypes.bfloat16, "Float8E4M3FN": ml_dtypes.float8_e4m3fn}
    raw = np.random.default_rng(trans).integers(0, 256, 64 * bits // 8, np.uint8)
    given = raw.view(dtype.get(kind, np.uint8))
    got = np.zeros_like(given)
    body = TRANSPOSED.format(trans=trans, bits=bits, kind=kind, width=width)
    instructions = run(body, given, got, chip="gfx950")
    assert of(instructions, "ds_read") == [f"ds_read_b{bits}_tr_b{trans}"]
    before, after = (as_elements(array, trans, bits // trans) for array in (given, got))
    table = json.loads(TABLE.read_text())["maps"][f"b{trans}"]
    for lane in range(64):
        group = lane // 16 * 16
        assert [before[group + of_lane, j] for of_lane, j in table[lane % 16]] == list(after[lane])


def test_gfx942_has_no_transposing_reads() -> None:
    body = TRANSPOSED.format(trans=16, bits=64, kind="Float16", width=16)
    with pytest.raises(FlylabError, match="lds_read_trans<trans = 16b, 64>: gfx942 does not have it") as caught:
        run(body, np.zeros(256, np.float16), np.zeros(256, np.float16), chip="gfx942")
    assert "gfx950" in str(caught.value.hint)


MODELS: dict[str, Any] = {
    "Add": lambda x, n: x + n,
    "Sub": lambda x, n: x - n,
    "And": lambda x, n: x & n,
    "Or": lambda x, n: x | n,
    "Xor": lambda x, n: x ^ n,
    "Max": np.maximum,
    "Min": np.minimum,
    "Inc": lambda x, n: np.where(x >= n, 0, x + 1),
    "Dec": lambda x, n: np.where((x == 0) | (x > n), n, x - 1),
}
PUT = {
    "global": "fx.copy(atom(fx.UniversalAtomic{op}({type}{scope}), fx.{kind}), r, per(B, {n}, {place}))",
    "buffer": "fx.copy(atom(fx.rocdl.BufferAtomic(fx.AtomicOp.{op}, {type}), fx.{kind}), r, "
              "per(fx.rocdl.make_buffer_tensor(B), {n}, {place}))",
    "shared": "fx.copy(atom(fx.UniversalAtomic{op}({type}{scope}), fx.{kind}), r, per(tile, {n}, {place}))",
}  # fmt: skip
COMBINE = """
r = fx.make_rmem_tensor({n}, fx.{kind})
fx.copy(atom(fx.UniversalCopy({bits}), fx.{kind}), per(A, {n}, i), r)
tile = lds(fx.{kind}, {count})
if i < {count}:
    tile[i] = B[i]
fx.barrier()
{lines}
fx.barrier()
if i < {count} and {in_lds}:
    B[i] = tile[i]
"""


def combined(ops: list[str], kind: str, space: str, chip: str, n: int = 1, scope: str = "") -> list[str]:
    """Combine what 64 threads have into two places for each operation, as numpy does; the instructions."""
    dtype = np.dtype(ml_dtypes.bfloat16 if kind == "BFloat16" else kind.lower())
    given = np.random.default_rng(n).integers(0 if kind.startswith("Uint") else -100, 100, 64 * n).astype(dtype)
    got = np.array([5, 107] * n * len(ops)).astype(dtype)
    wanted = got.copy().reshape(len(ops), 2, n)
    for thread, value in enumerate(given.reshape(64, n)):
        for op, places in zip(ops, wanted, strict=True):
            places[thread % 2] = MODELS[op](places[thread % 2], value)
    names = {"kind": kind, "n": n, "bits": n * dtype.itemsize * 8, "scope": scope, "count": got.size,
             "type": f"fx.{kind}" + (f"x{n}" if n > 1 else "")}
    lines = [PUT[space].format(op=op, place=f"{2 * k} + i % 2", **names) for k, op in enumerate(ops)]
    instructions = run(COMBINE.format(lines="\n".join(lines), in_lds=space == "shared", **names), given, got, chip=chip)
    if kind == "BFloat16":  # 8 bits of mantissa, rounded at each addition: the order is the device's
        np.testing.assert_allclose(got.astype(np.float32), wanted.reshape(-1).astype(np.float32), atol=16)
    else:
        np.testing.assert_array_equal(got.reshape(wanted.shape), wanted, err_msg=f"{ops} {space}")
    return instructions


@chips
@pytest.mark.parametrize("space", PUT)
@pytest.mark.parametrize("kind", ["Int32", "Uint32", "Int64", "Uint64"])
def test_atomics_of_integers(chip: str, space: str, kind: str) -> None:
    """A signed minimum is signed; each is one instruction. The order in which threads `inc` and `dec` is the device's:
    these are another test's."""
    ops = [op for op in MODELS if op not in ("Inc", "Dec")]
    check_native(combined(ops, kind, space, chip), space, ops, kind)


@chips
@pytest.mark.parametrize("space", PUT)
def test_atomics_that_wrap(chip: str, space: str) -> None:
    """With the same bound in every thread, the order does not count."""
    given, got = np.full(64, 40, np.uint32), np.array([5, 60, 0, 41], np.uint32)
    wanted = got.copy()
    for _ in range(32):
        wanted[:2] = MODELS["Inc"](wanted[:2], 40)
        wanted[2:] = MODELS["Dec"](wanted[2:], 40)
    names = {"kind": "Uint32", "n": 1, "bits": 32, "scope": "", "count": 4, "type": "fx.Uint32"}
    lines = [PUT[space].format(op=op, place=f"{2 * k} + i % 2", **names) for k, op in enumerate(("Inc", "Dec"))]
    body = COMBINE.format(lines="\n".join(lines), in_lds=space == "shared", **names)
    check_native(run(body, given, got, chip=chip), space, ["Inc", "Dec"], "Uint32")
    np.testing.assert_array_equal(got, wanted)


def check_native(instructions: list[str], space: str, ops: list[str], kind: str) -> None:
    """For each operation one instruction of the name that the ISA documents give it; no loop of compare-and-swap."""
    prefix = {"global": "global_atomic_", "buffer": "buffer_atomic_", "shared": "ds_"}[space]
    found = [name for name in of(instructions, prefix) if not name.startswith(("ds_read", "ds_write"))]
    assert len(found) == len(ops), (ops, kind, found)
    sign = {"Int": "s", "Uint": "u"}.get(kind.rstrip("0123456789"), "")
    for op in ops:
        word = op.lower() if op not in ("Max", "Min") or space == "shared" else sign + op.lower()
        assert len([name for name in found if word in name.removeprefix(prefix).split("_")]) == 1, (word, found)


@chips
@pytest.mark.parametrize(
    "ops, kind, n, spaces",
    [
        (["Add"], "Float32", 1, ("global", "buffer", "shared")),
        (["Add", "Max", "Min"], "Float64", 1, ("global", "buffer", "shared")),
        (["Max", "Min"], "Float32", 1, ("shared",)),
        (["Add"], "Float16", 2, ("global", "buffer", "shared")),
        (["Add"], "BFloat16", 2, ("global", "shared")),
    ],
)
def test_atomics_of_floats(chip: str, ops: list[str], kind: str, n: int, spaces: tuple[str, ...]) -> None:
    for space in spaces + (("buffer",) if chip == "gfx950" and kind == "BFloat16" else ()):
        check_native(combined(ops, kind, space, chip, n), space, ops, kind)


def test_gfx942_adds_no_pairs_of_bfloat16_to_a_buffer() -> None:
    with pytest.raises(FlylabError, match="gfx942 does not have it") as caught:
        combined(["Add"], "BFloat16", "buffer", "gfx942", 2)
    assert "compile for gfx950, or use fx.UniversalAtomic" in str(caught.value.hint)


@chips
def test_the_scope_of_an_atomic(chip: str) -> None:
    """For the whole system an atomic goes past the chip's caches (sc1), for one GPU it need not."""
    for scope, seen in (("", True), (", fx.rocdl.SyncScope.Agent", False), (", 'workgroup'", False)):
        instructions = combined(["Add"], "Int32", "global", chip, scope=scope)
        found = [text for text in instructions if text.startswith("global_atomic_add")]
        assert len(found) == 1 and ("sc1" in found[0]) == seen, (scope, found)
