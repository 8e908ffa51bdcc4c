"""The ready kernels on the software device against numpy and torch: both chips, special values, three formats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from flylab.kernels.copy import vector_copy
from flylab.kernels.elementwise import cookbook, vector_add
from flylab.kernels.gemm import naive

import flylab
from flylab.errors import OutOfBounds
from tests.kernels import reference_kernels
from tests.samples import cell

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.0, -1.0, 65504.0, 3.4e38, 1e-8]
FORMATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RECIPES: dict[str, tuple[Any, int, Any]] = {
    "scale": (cookbook.scale, 1, lambda a: a * a.dtype.type(2)),
    "mul": (cookbook.mul, 2, lambda a, b: a * b),
    "fma": (cookbook.fma, 3, lambda a, b, c: a * b + c),
    "relu": (cookbook.relu, 1, lambda a: np.maximum(a, a.dtype.type(0)) + a.dtype.type(0)),
    "abs": (cookbook.absolute, 1, abs),
}
APPLY = {1: cookbook.unary, 2: cookbook.binary, 3: cookbook.ternary}


def numbers(size: int, seed: int, dtype: Any) -> Any:
    """Numbers of many magnitudes; all pairs of the special values are among those of seeds 1 and 2."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(size) * 2.0 ** random.integers(-12, 12, size)
    count = len(SPECIAL)
    pairs = np.repeat(SPECIAL, count) if seed == 1 else np.tile(SPECIAL, count)
    values[: count * count] = pairs
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def same(ours: Any, expected: Any) -> bool:
    """Equal bit for bit, but that one NaN is as good as another."""
    nan = np.isnan(expected.astype(np.float64))
    bits = f"u{ours.dtype.itemsize}"
    return bool(((ours.view(bits) == expected.view(bits)) | (nan & np.isnan(ours.astype(np.float64)))).all())


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("size", [1024, 5120])
def test_the_cookbook(chip: str, dtype: str, name: str, size: int) -> None:
    recipe, arity, expected = RECIPES[name]
    inputs = [numbers(size, seed, FORMATS[dtype]) for seed in range(1, arity + 1)]
    out = np.zeros(size, FORMATS[dtype])
    with flylab.use(chip):
        APPLY[arity](recipe, *inputs, out)
    with np.errstate(all="ignore"):
        assert same(out, np.asarray(expected(*inputs)).astype(out.dtype))


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("dtype", FORMATS)
def test_add(chip: str, width: int, dtype: str) -> None:
    a, b = (numbers(4096, seed, FORMATS[dtype]) for seed in (1, 2))
    out = np.zeros_like(a)
    with flylab.use(chip):
        vector_add.vector_add(a, b, out, VEC=width)
    with np.errstate(all="ignore"):
        assert same(out, a + b)


@pytest.mark.parametrize("m, n, k", [(1, 16, 3), (40, 32, 24), (17, 48, 5)])
def test_gemm_of_rows_that_do_not_divide(m: int, n: int, k: int) -> None:
    random = np.random.default_rng(7)
    a, b = (random.integers(-9, 9, s).astype(np.float32) for s in ((m, k), (k, n)))
    c = np.full((m + 2, n), np.nan, np.float32)
    naive.naive_gemm(a, b, c[1:-1])
    assert np.array_equal(c[1:-1], a @ b), "small integers, so every order of summation is exact"
    assert np.isnan(c[0]).all() and np.isnan(c[-1]).all(), "the rows around C are not touched"


def test_unfused_multiply_and_add() -> None:
    """a * b + c where the fused result differs: (1 + e) * (1 - e) - 1 is -e * e fused, and 0 rounded twice."""
    e = np.float32(2.0**-13)
    a, b, c = (np.full(1024, v, np.float32) for v in (1 + e, 1 - e, -1.0))
    out = np.ones(1024, np.float32)
    cookbook.ternary(cookbook.fma, a, b, c, out)
    assert (out == 0).all() and float(np.float64(a[0]) * np.float64(b[0]) - 1) != 0


def test_strided_views_take_the_scalar_copy_and_refuse_the_wide_one() -> None:
    a, out = np.arange(2048, dtype=np.float32), np.zeros(2048, np.float32)
    vector_add.vector_add(a[::2], a[1::2], out[::-2], VEC=1)
    assert np.array_equal(out[::-2], a[::2] + a[1::2]) and (out[::2] == 0).all()
    with pytest.raises(flylab.errors.TraceError, match="the atom moves 4 consecutive elements"):
        vector_add.vector_add(a[::2], a[1::2], out[::2], VEC=4)


def test_a_tail_without_a_guard_is_caught() -> None:
    """The reference's copy has no guard: launched over a size rounded up, it is an error and never silence."""
    names = cell("""
        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor):
            my_kernel(A, B, 256).launch(grid=fx.ceildiv(A.shape[0], 256), block=256)
    """)
    names["my_kernel"] = reference_kernels.my_kernel
    with pytest.raises(OutOfBounds, match="a read of 4 bytes .* right after the end of 'A'"):
        names["launch"](np.zeros(1000, np.float32), np.zeros(1000, np.float32))


def test_out_of_bounds_names_kernel_line_and_thread() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            t = fx.thread_idx.x

            A[t] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    guard = np.zeros(64, np.float32)
    with pytest.raises(OutOfBounds) as caught:
        names["launch"](guard[:40])
    assert caught.value.where is not None and caught.value.where.line == 5
    shown = str(caught.value)
    assert "'A'" in shown and "kernel 'k'" in shown and "thread (40, 0, 0)" in shown
    assert (guard[40:] == 0).all()


def test_a_buffer_tensor_reads_zero_and_drops_writes_outside() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor):
            a, b = fx.rocdl.make_buffer_tensor(A), fx.rocdl.make_buffer_tensor(B)
            t = fx.thread_idx.x
            b[t] = a[t] + 1.0

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor):
            k(A, B).launch(grid=1, block=64)
    """)
    a, b = np.full(64, 5, np.float32), np.zeros(64, np.float32)
    names["launch"](a[:10], b[:20])
    assert b.tolist() == [6.0] * 10 + [1.0] * 10 + [0.0] * 44


@pytest.mark.parametrize("width", [1, 2, 4])
def test_copy(width: int) -> None:
    a, b = numbers(4096, 1, np.float32), np.zeros(4096, np.float32)
    vector_copy.vector_copy(a, b, VEC=width)
    assert np.array_equal(b.view(np.int32), a.view(np.int32))
