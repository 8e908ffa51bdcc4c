"""Whose line an access has that LLVM made of several lines': in texts, in kernels, in counters."""

from __future__ import annotations

import re

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.codegen.merged import of_accesses
from flylab.targets import target
from tests.samples import cell

CHIPS = ("gfx942", "gfx950")
# By what it shows: instructions with their places (- none), and those that the rule gives. A block begins at a label.
TEXTS = {
    "the last that wrote what is stored": (
        "3 global_load_dword v1, v0, s[0:1]|4 global_load_dword v2, v0, s[2:3]|2 s_add_i32 s4, s4, 1|"
        "- s_waitcnt vmcnt(0)|- ds_write2st64_b32 v8, v1, v2 offset1:4", {4: 4, 3: 4}),
    "any part of it": ("5 v_mov_b32_e32 v3, 0|2 s_nop 0|- global_store_dwordx4 v8, v[2:5], s[0:1]", {2: 5}),
    "not its address": ("3 v_mov_b32_e32 v1, 0|5 v_add_u32_e32 v8, 1, v8|- ds_write2_b32 v8, v1, v1 offset1:4", {2: 3}),
    "one that has no place is passed over": (
        "3 v_mov_b32_e32 v1, 0|- v_mov_b32_e32 v2, 0|- ds_write2_b32 v8, v1, v2 offset1:4", {2: 3}),
    "not of another block": ("3 v_mov_b32_e32 v1, 0|L|4 s_nop 0|- ds_write2_b32 v8, v1, v2 offset1:4", {}),
    "not behind a branch": ("3 v_mov_b32_e32 v1, 0|4 s_cbranch_vccz L|L|- ds_write2_b32 v8, v1, v2 offset1:4", {}),
    "the first that reads what is loaded": (
        "2 s_barrier|- s_nop 1|- ds_read2_b32 v[0:1], v2 offset1:5|4 v_mov_b32_e32 v5, v2|- s_waitcnt lgkmcnt(0)|"
        "7 v_mul_f32_e32 v3, v3, v1|8 v_mul_f32_e32 v3, v0, v1", {2: 7, 1: 7}),
    "not what reads others in its place": (
        "2 s_barrier|- ds_read2_b32 v[0:1], v2 offset1:5|7 ds_read_b64 v[0:1], v2|8 v_mul_f32_e32 v3, v0, v1", {}),
    "scalar loads": ("2 s_nop 0|- s_load_dwordx2 s[4:5], s[0:1], 0x0|9 v_mov_b32_e32 v0, s5", {1: 9}),
    "a wait with a line keeps it": ("3 v_mov_b32_e32 v1, 0|4 s_waitcnt vmcnt(0)|- ds_write_b32 v8, v1", {2: 3}),
    "no atomic": ("3 v_mov_b32_e32 v1, 0|4 s_nop 0|- ds_add_u32 v8, v1", {}),
    "no text that is no instruction": ("3 v_mov_b32_e32 v1, 0|4 my_macro v1|- ds_write_b32 v8, v1", {}),
    "nothing that has a line": ("3 v_mov_b32_e32 v1, 0|4 ds_write_b32 v8, v1", {}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_rule(name: str) -> None:
    written, expected = TEXTS[name]
    places: list[int | None] = []
    starts: list[bool] = []
    texts: list[str] = []
    begins = True
    for line in written.split("|"):
        if line == "L":
            begins = True
            continue
        place, _, text = line.partition(" ")
        places.append(None if place == "-" else int(place))
        starts.append(begins)
        texts.append(text)
        begins = text.startswith("s_cbranch")
    assert dict(of_accesses(places, starts, texts, target("gfx942"))) == expected


PRODUCT = """
@flyc.kernel
def product(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, K: fx.Int32):
    tx, ty = fx.thread_idx.x, fx.thread_idx.y
    row, column = fx.block_idx.y * 16 + ty, fx.block_idx.x * 16 + tx
    square = fx.make_layout((16, 16), (16, 1))
    sA, sB = (fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).peek().view(square) for _ in range(2))
    total = fx.Float32(0.0)
    for k0 in range(0, K, 16):
        sA[ty, tx] = A[row, k0 + tx]
        sB[ty, tx] = B[k0 + ty, column]
        gpu.barrier()
        for k in fx.range_constexpr(16):
            total += sA[ty, k] * sB[k, tx]
        gpu.barrier()
    C[row, column] = total

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, K: fx.Int32):
    product(A, B, C, K).launch(grid=(2, 2), block=(16, 16))
"""
LOADS = """
@flyc.kernel
def loads(A: fx.Tensor, C: fx.Tensor):
    t = fx.thread_idx.x
    s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).peek()
    s[t] = A[t]
    gpu.barrier()
    a = s[0]
    b = s[5]
    C[t] = a * b

@flyc.jit
def launch(A: fx.Tensor, C: fx.Tensor):
    loads(A, C).launch(grid=1, block=64)
"""


def lines_of(text: str, *words: str) -> set[int]:
    return {number for number, line in enumerate(text.strip().splitlines(), 1) if line.strip().startswith(words)}


@pytest.mark.parametrize("chip", CHIPS)
def test_two_stores_to_lds_that_become_one(chip: str) -> None:
    """A tile of each matrix: the store has the line of one of the two, and not that of the loop around."""
    launch = cell(PRODUCT)["launch"]
    a, b = (np.random.default_rng(seed).random((32, 32), np.float32) for seed in (1, 2))
    c = np.zeros_like(a)
    with flylab.use(chip), flylab.watch(counters=True):
        run = launch(a, b, c, 32)
    assert np.allclose(c, a @ b, rtol=1e-5)
    (counters,) = [report.counters for report in run.reports]
    of_lds = {each.where and each.where.line for each in counters.by_line() if each.counts.lds_accesses}
    assert of_lds <= lines_of(PRODUCT, "sA[ty", "sB[ty", "total +=") and of_lds & lines_of(PRODUCT, "sA[ty", "sB[ty")
    (kernel,) = run.compiled.isa.kernels.values()
    stores = [i for i in kernel.instructions if i.mnemonic.startswith("ds_write2")]
    assert stores and {i.source[1] for i in stores if i.source} <= lines_of(PRODUCT, "sA[ty", "sB[ty")
    origins = run.compiled.origins[kernel.name]
    assert {origins[i.index].line.line for i in stores} <= lines_of(PRODUCT, "sA[ty", "sB[ty")  # type: ignore
    assert all(origins[i.index].inferred for i in stores)


@pytest.mark.parametrize("chip", CHIPS)
def test_two_loads_from_lds_that_become_one(chip: str) -> None:
    """It has the line that needs both, and not that of the barrier before."""
    launch = cell(LOADS)["launch"]
    a, c = np.arange(2, 66, dtype=np.float32), np.zeros(64, np.float32)
    with flylab.use(chip):
        compiled = flyc.compile(launch, a, c)
        compiled(a, c)
    assert (c == 2 * 7).all()
    (kernel,) = compiled.isa.kernels.values()
    (load,) = [i for i in kernel.instructions if i.mnemonic.startswith("ds_read2")]
    assert load.source and {load.source[1]} == lines_of(LOADS, "C[t] = a * b")
    assert re.search(r"ds_read2_b32 .* offset1:5", load.text)
