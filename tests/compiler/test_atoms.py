"""Atoms and tiled atoms in control flow and as parameters: they are data, and only their state is of the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError, TraceError
from tests.samples import cell, kernel_of

SCALED = """
atom = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN))
a = fx.make_rmem_tensor(32, fx.Float8E4M3FN)
c = fx.make_rmem_tensor(4, fx.Float32)
a.fill(1.0)
c.fill(0.0)
"""
# With n = 3: the scales are 2**(scale - 127), a product of ones is 128.
PRODUCT = "fx.gemm(atom, c, a, a, c)"
SET = "atom = fx.atom_set_value(atom, "
SCALES = {
    "an arm": (f"if n > 2:\n    {SET}'scale_a', 129)\n{PRODUCT}", 512),
    "the other arm": (f"if n > 5:\n    {SET}'scale_a', 129)\n{PRODUCT}", 128),
    "another scale in each arm": (
        f"if n > 5:\n    {SET}'scale_a', 129)\nelse:\n    {SET}'scale_b', 126)\n{PRODUCT}", 64
    ),
    "a loop": (f"for i in range(n):\n    {SET}'scale_a', 127 + i)\n    {PRODUCT}", 128 * 7),
    "after a loop": (f"for i in range(n):\n    {SET}'scale_a', 127 + i)\n{PRODUCT}", 512),
}


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_is_merged_and_carried(name: str) -> None:
    body, wanted = SCALES[name]
    names = kernel_of(SCALED + body + "\nA[fx.thread_idx.x] = c[1]", "A: fx.Tensor, n: fx.Int32")
    result = np.zeros(64, np.float32)
    with flylab.use("gfx950"):
        names["launch"](result, 3)
    assert np.array_equal(result, np.full(64, wanted))


SPARSE = """
atom = fx.make_mma_atom(fx.rocdl.SMFMAC(16, 16, 32, fx.Float16))
a, b = fx.make_rmem_tensor(4, fx.Float16), fx.make_rmem_tensor(8, fx.Float16)
c = fx.make_rmem_tensor(4, fx.Float32)
a.fill(1.0)
for i in fx.range_constexpr(8):
    b[i] = float(i % 4)
c.fill(0.0)
"""


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_an_index_is_merged(chip: str) -> None:
    """Of each four along K elements 0 and 1, or 2 and 3: so 1, or 5, for each of 8 fours."""
    body = f"{SET}'index', 0x4444)\nif n > 2:\n    {SET}'index', 0xEEEE)\n"
    body = SPARSE + body + "fx.gemm(atom, c, a, b, c)\nA[fx.thread_idx.x] = c[1]"
    names = kernel_of(body, "A: fx.Tensor, n: fx.Int32")
    result = np.zeros(64, np.float32)
    with flylab.use(chip):
        for n, wanted in ((3, 40), (2, 8)):
            names["launch"](result, n)
            assert np.array_equal(result, np.full(64, wanted))


def test_an_index_that_only_one_arm_sets() -> None:
    body = SPARSE + "if n > 2:\n    atom = fx.atom_set_value(atom, 'index', 0x4444)\nfx.gemm(atom, c, a, b, c)"
    with pytest.raises(TraceError, match=r"'atom' \(its index\) is i32 where .* and Python's None otherwise"):
        flyc.compile(kernel_of(body, "A: fx.Tensor, n: fx.Int32")["launch"], np.zeros(64, np.float32), 3)


EQUAL = {
    "a copy atom": "fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)",
    "a copy operation": "fx.UniversalCopy(32)",
    "an MMA operation": "fx.rocdl.MFMA(16, 16, 16, fx.Float16)",
    "an MMA atom": "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))",
    "a tiled MMA": "fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), "
                   "fx.make_layout((1, 1, 1)))",
    "a tiled copy": "fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), fx.make_layout(64), "
                    "fx.make_layout(1))",
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_ones_made_in_two_arms_are_one(name: str) -> None:
    made = EQUAL[name]
    body = f"if n > 2:\n    x = {made}\nelse:\n    x = {made}\nassert x == {made}\nA[fx.thread_idx.x] = 1.0"
    result = np.zeros(64, np.float32)
    kernel_of(body, "A: fx.Tensor, n: fx.Int32")["launch"](result, 3)
    assert result.all()


def test_other_atoms_in_two_arms() -> None:
    body = ("if n > 2:\n    x = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))\n"
            "else:\n    x = fx.make_mma_atom(fx.rocdl.MFMA(32, 32, 8, fx.Float16))\nprint(x)\n")
    with pytest.raises(TraceError) as caught:
        flyc.compile(kernel_of(body, "A: fx.Tensor, n: fx.Int32")["launch"], np.zeros(64, np.float32), 3)
    assert "'x' is the atom mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>> where" in str(caught.value)
    assert "the atom mma_atom<fly_rocdl.cdna3.mfma<32x32x8, (f16, f16) -> f32>> otherwise" in str(caught.value)


PASSED = """
@flyc.kernel
def multiply(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, mma: fx.TiledMma, load: fx.CopyAtom):
    mine = mma.get_slice(fx.thread_idx.x)
    a, b, c = mine.make_fragment_A(A), mine.make_fragment_B(B), mine.make_fragment_C(C)
    fx.copy(load, mine.partition_A(A), a)
    fx.copy(load, mine.partition_B(B), b)
    c.fill(0.0)
    fx.gemm(mma, c, a, b, c)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), c, mine.partition_C(C))

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    mma = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    load = fx.make_copy_atom(fx.UniversalCopy(16), fx.Float16)
    multiply(A, B, C, mma, load).launch(grid=1, block=256)

@flyc.jit
def launch_wrong(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    load = fx.make_copy_atom(fx.UniversalCopy(16), fx.Float16)
    multiply(A, B, C, load, load).launch(grid=1, block=256)
"""


def operands() -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    a, b = (random.integers(-8, 9, (64, 48)).astype(np.float16) for _ in range(2))
    return a, b, np.zeros((64, 64), np.float32)


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_a_kernel_takes_them_as_parameters(chip: str) -> None:
    a, b, c = operands()
    with flylab.use(chip):
        cell(PASSED)["launch"](a, b, c)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_another_kind_of_atom_as_a_parameter() -> None:
    with pytest.raises(ArgumentError) as caught:
        cell(PASSED)["launch_wrong"](*operands())
    assert "'mma: fx.Constexpr[TiledMma]' gets copy_atom<fly.universal_copy<16>, f16>" in str(caught.value)


def test_they_show_themselves_as_they_print() -> None:
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    copy = fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)
    tiled = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1)))
    shown = ["mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>",
             "fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>", "copy_atom<fly.universal_copy<32>, f32>",
             "fly.universal_copy<32>",
             "tiled_mma<mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, (1,1,1):(0,0,0)>"]
    for each, text in zip((atom, atom.op, copy, copy.op, tiled), shown, strict=True):
        assert repr(each) == str(each) == text
