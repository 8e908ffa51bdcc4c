"""y = A @ x on both chips: exact for small integers, and within the bound of its roundings for other numbers."""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.gemv.sgemv import VARIANTS, sgemv

import flylab
import flylab.compiler as flyc
from flylab.errors import ArgumentError


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("m, n", [(16, 256), (5, 100), (37, 1000), (9, 16), (3, 4), (1, 2048)])
def test_sgemv(variant, m, n):
    draw = np.random.default_rng(m * n)
    a, x = draw.integers(-9, 9, (m, n)).astype(np.float32), draw.integers(-9, 9, n).astype(np.float32)
    y = np.full(m + 2, np.nan, np.float32)
    sgemv(a, x, y[:m], variant)
    np.testing.assert_array_equal(y[:m], a.astype(np.int64) @ x.astype(np.int64))
    assert np.isnan(y[m:]).all()                                # rows past the last are not stored


@pytest.mark.parametrize("variant", ["wave", "lanes"])
@pytest.mark.parametrize("m, n", [(7, 13), (70, 1), (4, 65)])
def test_rows_of_any_length(variant, m, n):
    draw = np.random.default_rng(m * n)
    a, x, y = draw.random((m, n), np.float32), draw.random(n, np.float32), np.empty(m, np.float32)
    sgemv(a, x, y, variant)
    exact = a.astype(np.float64) @ x.astype(np.float64)
    # A sum has at most n + 8 roundings, each to half a unit in the last place of what is below sum |a||x| = exact.
    np.testing.assert_array_less(np.abs(y - exact), (n + 8) * 2.0**-24 * exact)


def test_rows_of_a_larger_matrix():
    whole = np.random.default_rng(0).integers(-9, 9, (8, 256)).astype(np.float32)
    a, x, y = whole[:, 64:192], whole[0, :128].copy(), np.empty(8, np.float32)
    sgemv(a, x, y, "wave_vec4")
    np.testing.assert_array_equal(y, a @ x)


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_is_spilled(variant):
    a, x, y = np.zeros((64, 4096), "f4"), np.zeros(4096, "f4"), np.zeros(64, "f4")
    (kernel,) = flyc.compile(sgemv, a, x, y, variant).isa.kernels.values()
    assert (kernel.spills, kernel.scratch_bytes) == (0, 0)
    fused = sum(i.mnemonic.startswith(("v_fma", "v_pk_fma", "v_fmac")) for i in kernel.instructions)
    assert fused and not any(i.mnemonic.startswith(("v_mul_f32", "v_pk_mul_f32")) for i in kernel.instructions)


def test_what_does_not_fit_is_refused():
    a, x, y = np.zeros((4, 10), "f4"), np.zeros(10, "f4"), np.zeros(4, "f4")
    with pytest.raises(ArgumentError, match="a row of A' has 10 elements, no whole number of tiles of 4"):
        sgemv(a, x, y, "wave_vec4")
    with pytest.raises(ArgumentError, match=r"A \(4, 10\) times x \(4,\) into y \(4,\)"):
        sgemv(a, y, y)
    with pytest.raises(ArgumentError, match="'fast' is no variant: wave, wave_vec4, lanes, block"):
        sgemv(a, x, y, "fast")
