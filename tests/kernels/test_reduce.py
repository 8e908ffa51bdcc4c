"""The reductions on both chips. Elements are small integers, so that every order of adding gives the same Float32."""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.reduce import grid_stride, tree

import flylab
import flylab.compiler as flyc
from flylab.errors import ArgumentError


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


def integers(size, dtype=np.float32):
    return np.random.default_rng(size).integers(-50, 50, size).astype(dtype)


@pytest.mark.parametrize("variant", tree.VARIANTS)
@pytest.mark.parametrize("size", [4096, 1000, 1, 513])
def test_tree(variant, size):
    share = tree.BLOCK * tree.VARIANTS[variant].loads
    a, sums = integers(size), np.full(-(-size // share), np.nan, np.float32)
    tree.tree_sums(a, sums, variant)
    np.testing.assert_array_equal(sums, np.add.reduceat(a, np.arange(0, size, share)))


@pytest.mark.parametrize("variant", grid_stride.VARIANTS)
@pytest.mark.parametrize("size, blocks", [(1 << 15, 8), (1 << 14, 16), (5000, 3), (100, 2), (2049, 1)])
def test_grid_stride(variant, size, blocks):
    """Block b has the pieces b * 256 to b * 256 + 255 of each whole round, then the elements of what is left."""
    vec, threads = grid_stride.VARIANTS[variant].vec, blocks * 256
    a, sums = integers(size), np.full(blocks, np.nan, np.float32)
    grid_stride.grid_stride_sums(a, sums, variant)
    rounds = size // (threads * vec) * threads * vec
    rest = np.pad(a[rounds:], (0, -(size - rounds) % threads))
    expected = a[:rounds].reshape(-1, blocks, 256 * vec).sum((0, 2)) + rest.reshape(-1, blocks, 256).sum((0, 2))
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int32])
def test_sums_of_other_formats_are_float32(dtype):
    a, sums, out = integers(10007, dtype), np.empty(4, np.float32), np.empty(1, np.float32)
    grid_stride.total(a, sums, out)
    assert out[0] == a.astype(np.float64).sum()
    tree.tree_sums(a, halves := np.empty(20, np.float32))
    assert halves.sum() == out[0]


def instructions(launcher, *arguments):
    (kernel,) = flyc.compile(launcher, *arguments).isa.kernels.values()
    assert (kernel.spills, kernel.scratch_bytes) == (0, 0)
    return [(i.mnemonic, i.operands) for i in kernel.instructions]


def test_unrolling_by_hand_is_what_llvm_does_by_itself():
    a, sums = integers(4096), np.empty(8, np.float32)
    assert instructions(tree.tree_sums, a, sums, "unrolled") == instructions(tree.tree_sums, a, sums, "last_wave")


def test_a_guard_is_there_only_where_blocks_reach_past_the_end():
    def compares(size):
        made = instructions(tree.tree_sums, integers(size), np.empty(-(-size // 512), np.float32))
        return sum(mnemonic.startswith("v_cmp") for mnemonic, _ in made)

    assert compares(1000) > compares(1024)


def test_room_for_the_sums():
    with pytest.raises(ArgumentError, match=r"'Sums' has shape \(3,\), and 2 blocks write one sum each"):
        tree.tree_sums(integers(1000), np.empty(3, np.float32))
    with pytest.raises(ArgumentError, match=r"'thrice' is no variant: divergent, strided"):
        tree.tree_sums(integers(1000), np.empty(2, np.float32), "thrice")
