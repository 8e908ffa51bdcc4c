"""The ladder of Float32 GEMMs on both chips: exact for small integers, whose products and sums are all exact."""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.gemm import sgemm_tiled as tiled
from flylab.kernels.gemm.direct import direct_gemm
from flylab.kernels.gemm.lds_tile import lds_gemm
from flylab.kernels.gemm.sgemm_tiled import sgemm_tiled

import flylab
import flylab.compiler as flyc
from flylab.errors import ArgumentError


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


def product(launcher, m, n, k, *variant):
    """C = A @ B equals numpy's, and what lies behind C stays."""
    draw = np.random.default_rng(m + n + k)
    a, b = (draw.integers(-9, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m + 3, n), np.nan, np.float32)
    launcher(a, b, c[:m], *variant)
    np.testing.assert_array_equal(c[:m], a.astype(np.int64) @ b.astype(np.int64))
    assert np.isnan(c[m:]).all()


@pytest.mark.parametrize("launcher", [direct_gemm, lds_gemm])
@pytest.mark.parametrize("shape", [(32, 16, 48), (20, 33, 8), (45, 18, 37), (1, 1, 1), (16, 31, 16)])
def test_any_shape(launcher, shape):
    product(launcher, *shape)


@pytest.mark.parametrize("variant", tiled.VARIANTS)
@pytest.mark.parametrize("shape", [(256, 128, 48), (129, 256, 32)])
def test_tiled(variant, shape):
    product(sgemm_tiled, *shape, variant)


def test_tuned_takes_smaller_tiles_where_blocks_are_few():
    product(sgemm_tiled, 64, 192, 32)
    assert (tiled.tuned(1024, 1024).tile, tiled.tuned(2048, 2048).tile, tiled.tuned(512, 65536).tile) == (64, 128, 128)


@pytest.mark.parametrize("variant", ["ping_pong", "mfma"])
def test_sums_are_within_their_roundings(variant):
    draw = np.random.default_rng(5)
    a, b = draw.standard_normal((128, 96)).astype(np.float32), draw.standard_normal((96, 128)).astype(np.float32)
    c = np.empty((128, 128), np.float32)
    sgemm_tiled(a, b, c, variant)
    exact, size = a.astype(np.float64) @ b.astype(np.float64), np.abs(a.astype(np.float64)) @ np.abs(b)
    assert (np.abs(c - exact) <= 96 * 2.0**-24 * size).all()    # K fused additions, each rounded once


def kernel_of(variant, size=1024):
    z = np.zeros((size, size), np.float32)
    (kernel,) = flyc.compile(sgemm_tiled, z, z, z, variant).isa.kernels.values()
    return kernel


def count(kernel, *prefixes):
    return sum(i.mnemonic.startswith(prefixes) for i in kernel.instructions)


MULTIPLY = ("v_fma", "v_pk_fma", "v_mfma_f32_16x16x4")


@pytest.mark.parametrize("variant", tiled.VARIANTS)
def test_what_a_variant_is_made_of(variant):
    """A step is a multiply for each element of a thread and k, or a matrix instruction for 16 x 16 x 4; two steps."""
    kernel, how = kernel_of(variant), tiled.tuned(1024, 1024) if variant == "tuned" else tiled.VARIANTS[variant]
    assert (kernel.spills, kernel.scratch_bytes) == (0, 0)
    each = how.tile**2 * how.step // 256 if not how.mfma else how.tile**2 // 4 // 256 * how.step // 4
    assert count(kernel, *MULTIPLY) == 2 * each
    assert kernel.lds_bytes == 2 * 4 * how.stride * how.step * how.buffers


def inside_the_loop(kernel):
    """The mnemonics between the loop's label and its branch."""
    (branch,) = (each for each in kernel.instructions if each.mnemonic.startswith("s_cbranch"))
    return [each.mnemonic for each in kernel.instructions[kernel.labels[branch.operands[0]] : branch.index]]


@pytest.mark.parametrize("variant, barriers", [("plain", 2), ("prefetch", 2), ("ping_pong", 1), ("mfma", 1)])
def test_barriers_and_the_place_of_the_loads(variant, barriers):
    loop = inside_the_loop(kernel_of(variant))
    assert loop.count("s_barrier") == barriers
    load, work = loop.index("buffer_load_dwordx4"), [i for i, m in enumerate(loop) if m.startswith(MULTIPLY)]
    assert load > work[-1] if variant == "plain" else load < work[0]


@pytest.mark.parametrize("variant", ["plain", "mfma"])
def test_lds_reads_spread_over_all_banks(chip, variant):
    """As many of the lanes that are served together, as the banks have room for: hardware.md's phases of 32 lanes."""
    how = tiled.VARIANTS[variant]
    if how.mfma:  # 4 bytes a lane: row lane % 16, k lane / 16; phases of 32 lanes
        words = [[lane % 16 + lane // 16 * how.stride for lane in range(first, first + 32)] for first in (0, 32)]
    else:  # 16 bytes a lane, of 16 neighbouring runs: the columns of a thread
        words = [[4 * run + word for run in range(8) for word in range(4)]]
    assert all(len({word % 32 for word in phase}) == len(phase) for phase in words)


def test_what_does_not_fit_is_refused():
    a = np.zeros((128, 100), np.float32)
    with pytest.raises(ArgumentError, match="a row of A' has 100 elements, no whole number of tiles of 8"):
        sgemm_tiled(a, np.zeros((100, 128), np.float32), np.zeros((128, 128), np.float32), "plain")
    with pytest.raises(ArgumentError, match="a row of B' has 100 elements, no whole number of tiles of 128"):
        sgemm_tiled(a[:, :64].copy(), a[:64].copy(), np.zeros((128, 100), np.float32), "plain")
    with pytest.raises(ArgumentError, match=r"A \(128, 100\) times B \(128, 100\) into C \(128, 100\)"):
        direct_gemm(a, a, a)
