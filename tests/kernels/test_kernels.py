"""The ready kernels: both chips against numpy, several formats, and sizes that are refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from flylab.kernels.copy.vector_copy import vector_copy
from flylab.kernels.elementwise import cookbook
from flylab.kernels.elementwise.vector_add import reference, vector_add
from flylab.kernels.gemm.naive import naive_gemm

import flylab
from flylab.errors import ArgumentError


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield


def numbers(size, dtype, seed=0):
    return np.random.default_rng(seed).uniform(-100, 100, size).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", ml_dtypes.bfloat16, "i4", "u1", "i8"])
@pytest.mark.parametrize("vec", [1, 2])
def test_vector_add(dtype, vec):
    a, b = numbers(2048, dtype), numbers(2048, dtype, 1)
    c = np.zeros_like(a)
    vector_add(a, b, c, VEC=vec)
    np.testing.assert_array_equal(c, reference(a, b))


def test_vector_add_of_several_pieces():
    for vec, repeat in ((4, 4), (1, 3), (2, 2)):
        a, b = numbers(2 * 256 * vec * repeat, np.float32), numbers(2 * 256 * vec * repeat, np.float32, 1)
        c = np.zeros_like(a)
        vector_add(a, b, c, vec, repeat)
        np.testing.assert_array_equal(c, reference(a, b))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int32, np.float64])
def test_vector_copy_moves_every_width(dtype):
    for vec in (1, 2, 4):
        if vec * np.dtype(dtype).itemsize * 8 <= 128:
            a = numbers(4096, dtype)
            b = np.zeros_like(a)
            vector_copy(a, b, VEC=vec)
            np.testing.assert_array_equal(b, a)


def test_cookbook():
    a, b, c = (numbers(2048, np.float32, seed) for seed in range(3))
    out = np.zeros_like(a)
    unary = {cookbook.scale: a * 2, cookbook.relu: np.maximum(a, 0), cookbook.absolute: np.abs(a)}
    for recipe, expected in unary.items():
        cookbook.unary(recipe, a, out)
        np.testing.assert_array_equal(out, expected)
    cookbook.binary(cookbook.mul, a, b, out)
    np.testing.assert_array_equal(out, a * b)
    cookbook.ternary(cookbook.fma, a, b, c, out)
    np.testing.assert_array_equal(out, a * b + c)


@pytest.mark.parametrize("m, n, k", [(16, 16, 8), (37, 48, 5), (1, 16, 3)])
def test_naive_gemm(m, n, k):
    a, b, c = numbers((m, k), np.float32), numbers((k, n), np.float32, 1), np.zeros((m, n), np.float32)
    naive_gemm(a, b, c)
    expected = np.zeros((m, n), np.float32)
    for i in range(k):
        expected += a[:, i : i + 1] * b[i : i + 1]
    np.testing.assert_array_equal(c, expected)


def test_a_tail_is_refused_not_left_out():
    a = np.zeros(1000, np.float32)
    with pytest.raises(ArgumentError, match="'A' has 1000 elements, no whole number of tiles of 256") as refused:
        vector_add(a, a, a)
    assert "pad it to 1024, or pass its first 768" in str(refused.value)
    with pytest.raises(ArgumentError, match=r"'A' has shape \(1024,\) and 'B' \(512,\)"):
        vector_copy(np.zeros(1024, np.float32), np.zeros(512, np.float32))
    with pytest.raises(ArgumentError, match="a row of B"):
        naive_gemm(np.zeros((8, 8), "f4"), np.zeros((8, 20), "f4"), np.zeros((8, 20), "f4"))
