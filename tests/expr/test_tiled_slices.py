"""Slices of tiled copies and MMAs: what exploring in a cell gives, and what a kernel is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import FlylabError, LayoutError, TraceError
from tests.samples import cell

ATOM = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)
TILED = fx.make_tiled_copy_tv(ATOM, fx.make_layout((8, 16), (16, 1)), fx.make_layout((1, 4), (1, 1)))
MMA = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), fx.make_layout((2, 1, 1), (1, 0, 0)))


def refused(body: str, block: Any = 128, shape: tuple[int, ...] = (16, 128), parameters: str = "") -> FlylabError:
    """The error of a kernel of this body over A, whose first line is line 3, with TILED and MMA."""
    inner = "\n".join("    " + line for line in body.strip().splitlines())
    more = f", {parameters}" if parameters else ""
    names = cell(f"@flyc.kernel\ndef k(A: fx.Tensor{more}):\n{inner}\n\n@flyc.jit\ndef launch(A: fx.Tensor{more}):\n"
                 f"    k(A{', n' if more else ''}).launch(grid=1, block={block})\n".replace("TILED.", "tiled."))
    names.update(tiled=TILED, MMA=MMA)
    with pytest.raises(FlylabError) as caught:
        flyc.compile(names["launch"], np.zeros(shape, np.float32), *([64] if more else []))
    assert caught.value.hint and caught.value.where is not None and caught.value.where.file == names["FILE"]
    return caught.value


def test_exploring_without_a_kernel() -> None:
    thread = TILED.get_slice(17)
    assert str(thread.partition_S(fx.make_layout((16, 128), (128, 1)))) == "((4,1),2,2):((1,0),1024,64)"
    coordinates = thread.partition_D(fx.make_view((0, 0), fx.make_identity_layout((16, 128))))
    assert coordinates(0) == (1, 4) and coordinates(3, 1, 1) == (9, 71)
    assert str(thread.retile(fx.make_layout(((4, 1), 2, 2)))) == "((4,1),2,2):((1,0),4,8)"
    assert thread.tile_mn == (8, 64) and thread.thr_idx == 17 and thread.num_threads == 128
    assert MMA.thr_slice(65).partition_C(fx.make_view((0, 0), fx.make_identity_layout((32, 16))))(0) == (16, 1)
    assert fx.tiled_mma_partition_shape(fx.MmaOperand.B, MMA, (32, 16)) == (1, 2, 4)


def test_the_function_forms_are_the_methods() -> None:
    layout = fx.make_layout((32, 128), (128, 1))
    thread, matrix = TILED.get_slice(9), MMA.get_slice(70)
    assert fx.tiled_copy_partition_src(TILED, layout, 9) == thread.partition_S(layout)
    assert fx.tiled_copy_partition_dst(TILED, layout, 9) == thread.partition_D(layout)
    assert fx.tiled_copy_retile(TILED, fx.make_layout((4, 4, 2))) == thread.retile(fx.make_layout((4, 4, 2)))
    for operand in "ABC":
        assert fx.tiled_mma_partition(operand, MMA, layout, 70) == getattr(matrix, f"partition_{operand}")(layout)


def test_a_block_that_lacks_threads() -> None:
    """The wheel compiles it, and half of the tile is not copied."""
    error = refused("first = A\nthread = TILED.get_slice(fx.thread_idx.x)\npart = thread.partition_S(first)", block=64)
    assert "'tiled' is made for 128 threads" in error.message and "has 64" in error.message
    assert "nobody does the part of thread 64" in error.message and error.where.line == 4  # type: ignore[union-attr]
    assert "block=128" in (error.hint or "")
    error = refused("MMA.get_slice(fx.thread_idx.x).partition_A(A)", block=64)
    assert "'MMA' is made for 128 threads" in error.message


@pytest.mark.parametrize(("block", "numbered"), [
    ((16, 8), "get_slice(fx.thread_idx.y * 16 + fx.thread_idx.x)"),
    ((16, 2, 4), "get_slice((fx.thread_idx.z * 2 + fx.thread_idx.y) * 16 + fx.thread_idx.x)"),
])
def test_a_number_that_does_not_count_all_threads(block: Any, numbered: str) -> None:
    """The hint can be followed."""
    error = refused("t = fx.thread_idx.x\nthread = TILED.get_slice(t)\npart = thread.partition_S(A)", block=block)
    assert "'t' goes from 0 to 15 only" in error.message and "nobody does the part of thread 16" in error.message
    assert numbered in str(error.hint) and error.where.line == 4  # type: ignore[union-attr]
    names = cell(f"@flyc.kernel\ndef k(A: fx.Tensor, B: fx.Tensor):\n    thread = tiled.{numbered}\n"
                 "    fx.copy(tiled, thread.partition_S(A), thread.partition_D(B))\n\n@flyc.jit\n"
                 f"def launch(A: fx.Tensor, B: fx.Tensor):\n    k(A, B).launch(grid=1, block={block})\n")
    names["tiled"] = TILED
    given, got = np.arange(2048, dtype=np.float32).reshape(16, 128), np.zeros((16, 128), np.float32)
    names["launch"](given, got)
    assert (given == got).all()


@pytest.mark.parametrize(("call", "hint"), [
    ("tiled.partition_S(A)", "tiled.get_slice(fx.thread_idx.x).partition_S"),
    ("tiled.partition_D(A)", "tiled.get_slice(fx.thread_idx.x).partition_D"),
    ("tiled.retile(A)", "tiled.get_slice(fx.thread_idx.x).retile"),
    ("MMA.partition_A(A)", "MMA.get_slice(fx.thread_idx.x).partition_A"),
    ("MMA.partition_C(A)", "MMA.get_slice(fx.thread_idx.x).partition_C"),
])
def test_a_part_is_that_of_a_thread(call: str, hint: str) -> None:
    error = refused(call)
    assert "each has a part of its own" in error.message and hint in str(error.hint)
    assert error.where.line == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("body", (
    "for half in fx.range_constexpr(2):\n    tiled.get_slice(fx.thread_idx.x + 64 * half).partition_S(A)",
    "fx.make_fragment_like(tiled.get_slice(0).partition_S(A))",
    "tiled.get_slice(fx.thread_idx.x).partition_S(fx.make_layout((16, 128)))",
    "tiled.get_slice(fx.thread_idx.x).retile(fx.make_rmem_tensor((4, 1, 1), fx.Float32))",
))
def test_all_threads_may_be_taken_in_parts(body: str) -> None:
    """And what touches no memory is not counted."""
    inner = "\n".join("    " + line for line in body.splitlines())
    names = cell(f"@flyc.kernel\ndef k(A: fx.Tensor):\n{inner}\n\n@flyc.jit\ndef launch(A: fx.Tensor):\n"
                 "    k(A).launch(grid=1, block=64)\n")
    names["tiled"] = TILED
    flyc.compile(names["launch"], np.zeros((16, 128), np.float32))


@pytest.mark.parametrize(("body", "block", "message"), (
    ("tid = fx.thread_idx.x\nTILED.get_slice(tid).partition_S(A)", 256,
     r"get_slice\('tid'\) of 'tiled', which has the threads 0 to 127: the number can be 255"),
    ("tid = fx.thread_idx.x - 1\nTILED.get_slice(tid)", 128, "the number can be -1"),
    ("TILED.get_slice(128)", 128, r"get_slice\(128\) of 'tiled', which has the threads 0 to 127"),
    ("TILED.get_slice(-1)", 128, r"get_slice\(-1\) of 'tiled'"),
    ("MMA.get_slice(-1)", 128, r"get_slice\(-1\) of 'MMA'"),
    ("TILED.get_slice(fx.thread_idx)", 128, r"get_slice\(fx.thread_idx\) of 'tiled'"),
    ("TILED.get_slice(1.0)", 128, r"get_slice\(1.0\) of 'tiled'"),
    ("x = fx.Float32(1)\nTILED.get_slice(x)", 128, "get_slice of 'tiled' with .*, a Float32"),
    ("TILED.get_slice(None)", 128, r"get_slice\(None\)"),
    ("TILED.get_slice((1, 2))", 128, r"get_slice\(\(1, 2\)\)"),
))
def test_threads_that_are_none(body: str, block: int, message: str) -> None:
    assert re.search(message, refused(body, block).message), refused(body, block).message


@pytest.mark.parametrize(("body", "message"), (
    ("part = fx.slice(A, (0, None))\nTILED.get_slice(0).partition_S(part)",
     "tiled_copy_partition_src of 'part' 128:1: the tile (8,64) has 2 modes, but the layout 128:1 has 1"),
    ("part = fx.slice(A, (0, None))\nMMA.get_slice(0).partition_B(part)",
     "tiled_mma_partition of 'part' 128:1: B of a tiled MMA has the modes N and K, and 128:1 has 1"),
    ("TILED.get_slice(0).partition_S(fx.get_iter(A))", "a Pointer"),
    ("fx.make_fragment_like(A.layout)", "a layout has no number format"),
    ("MMA.make_fragment_A(A, stages=0)", "stages=0"),
    ("MMA.make_fragment_A(fx.get_iter(A))", "a Pointer"),
    ("fx.make_tiled_copy_A(MMA.mma_atom, MMA)", "make_tiled_copy of"),
    ("fx.make_tiled_copy_A(tiled.atom, MMA.mma_atom)", "make_tiled_copy_A of"),
    ("fx.make_tiled_mma(tiled.atom, fx.make_layout((1, 1, 1)))", "make_tiled_mma of"),
    ("fx.ThrCopy(MMA, 0)", "ThrCopy of 'MMA', a TiledMma"),
    ("part = tiled.get_slice(fx.thread_idx.x).partition_S(A)\n"
     "fx.copy(tiled.atom, part, fx.make_fragment_like(part, fx.Float16))", "holds Float16, the atom copies Float32"),
))
def test_what_they_are_given(body: str, message: str) -> None:
    assert message in refused(body).message


def test_a_runtime_extent() -> None:
    """A tensor whose height is known on the device is partitioned; its fragment would need it."""
    body = ("whole = fx.make_view(fx.get_iter(A), fx.make_layout((n, 128), (128, 1)))\n"
            "part = tiled.get_slice(fx.thread_idx.x).partition_S(whole)\nfx.make_fragment_like(part)")
    error = refused(body, parameters="n: fx.Int32")
    assert "a fragment like 'part' ((4,1),?" in error.message and "known while tracing" in error.message


def test_a_device_thread_outside_of_a_kernel() -> None:
    with pytest.raises(TraceError, match="only has a meaning inside"):
        TILED.get_slice(fx.thread_idx.x)
    with pytest.raises(LayoutError, match="does not number its atoms"):
        fx.make_tiled_mma(MMA.mma_atom, (2, 1, 1))


LOOPED = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    tid = fx.thread_idx.x
    thread = tiled.get_slice(tid)
    part, target = thread.partition_S(A), thread.partition_D(B)
    fragment = fx.make_fragment_like(fx.slice(part, (None, None, 0)))
    for i in range(n):
        thread = tiled.get_slice(tid)
        part = thread.partition_S(A)
        if i < n - 1:
            thread = tiled.get_slice(tid)
        fx.copy(tiled, fx.slice(part, (None, None, i)), fragment)
        fx.copy(tiled, fragment, fx.slice(thread.partition_D(B), (None, None, i)))

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    k(A, B, n).launch(grid=1, block=128)
"""


def test_in_runtime_control_flow() -> None:
    """A slice and its partitions are made anew in a loop and a branch, and the rest is sliced by the loop's counter."""
    names = cell(LOOPED)
    names["tiled"] = TILED
    source, target = np.arange(16 * 256, dtype=np.float32).reshape(16, 256), np.zeros((16, 256), np.float32)
    names["launch"](source, target, 3)
    assert (target[:, :192] == source[:, :192]).all() and not target[:, 192:].any()


def test_the_operations_have_their_published_names() -> None:
    """And after layout lowering none is left."""
    names = cell(LOOPED.replace("    for i", "    thread.retile(fx.make_fragment_like(part))\n    for i"))
    names["tiled"] = TILED
    array = np.zeros((16, 256), np.float32)
    stages = {stage.name: stage.text for stage in flyc.compile(names["launch"], array, array, 3).stages()}
    for name in ("tiled_copy_partition_src", "tiled_copy_partition_dst", "tiled_copy_retile"):
        assert f'"fly.{name}"' in stages["ir"] and name not in stages["fly-layout-lowering"]
    assert str(TILED) in stages["ir"]


def test_fragments_of_what_is_known_only_in_part() -> None:
    """Runtime strides count as the largest; coordinates have no order, so their fragment is compact."""
    found = []
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, n: fx.Int32):
            thread = tiled.get_slice(fx.thread_idx.x)
            part = thread.partition_S(fx.make_view(fx.get_iter(A), fx.make_layout((16, 128), (n, 1))))
            at = thread.partition_S(fx.make_view((0, 0), fx.make_identity_layout((16, 128))))
            found.extend([fx.make_fragment_like(part), fx.make_fragment_like(at, fx.Boolean)])
            found.append(MMA.get_slice(0).make_fragment_B(fx.make_layout((n, 128), (128, 1))))

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32):
            k(A, n).launch(grid=1, block=128)
    """)
    names.update(tiled=TILED, MMA=MMA, found=found)
    with pytest.raises(TraceError, match="registers need extents that are known"):
        flyc.compile(names["launch"], np.zeros((16, 128), np.float32), 128)
    assert [str(each.spec) for each in found] == ["f32, register, ((4,1),2,2):((1,0),8,4)",
                                                  "i1, register, ((4,1),2,2):((1,0),4,8)"]
