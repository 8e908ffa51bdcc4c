"""The reference's section 3 compiles, and computes what numpy does, on both chips."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
from flylab.errors import FlylabError
from tests.kernels import reference_language as kernels

T = np.arange(kernels.THREADS)
LANE, BLOCK = T % 64, T // 64
A = ((T * 37) % 101 - 30).astype(np.int32)
X = (((T * 29) % 64 - 20) / 4).astype(np.float32)


def ran(name: str, n: int, chip: str) -> Any:
    """What the kernel leaves in R."""
    R = np.full(kernels.THREADS, -99, np.int32)
    with flylab.use(chip):
        kernels.launch(getattr(kernels, name), R, A, X, n)
    return R


def sums(n: int) -> Any:
    """What the pipelined pattern leaves: the first n + 1 tiles of eight, times the thread."""
    return T * int(A[: 8 * (n + 1)].sum())


def availability(n: int) -> Any:
    a, b = X, np.float32(0.5)
    floats = np.where(a < b, a + b, a * b) + np.maximum(a, b) * 2 + np.minimum(a, b) + abs(a) + np.fmax(a, b)
    return ((floats + np.fmin(a, b) * 4) * 16).astype(int) + -(-A // n) * 10000


def internal_types(n: int) -> Any:
    value = X + 2
    narrow = value.astype(ml_dtypes.bfloat16).astype(np.float32)
    return (value * 8 + narrow + X + (X + 3) * 16).astype(int) + BLOCK * 64


def arithmetic(n: int) -> Any:
    known = 42 + int(np.float32(3.14) * np.float32(100)) + (T & 0xFF)
    tiles = -(-(A + 200) // n)
    return (known + (A + n) * 2 + A * 9 + np.where(n > T, 1, 2) * 5 + np.maximum(A, n) * 7 + np.minimum(A, n) * 11
            + tiles * 13)


EXPECTED: dict[str, Callable[[int], Any]] = {
    "quick_reference": lambda n: n * 4 + LANE + A + 3,
    "both_spellings": lambda n: LANE * 2 + BLOCK,
    "both_loops": lambda n: 0 * T + 6 + 10 * n * (n - 1) // 2,
    "conditions": lambda n: np.where(LANE == 0, -1, np.where(LANE < 8, A * 1001, 0)),
    "compile_time": lambda n: A + 1,
    "by_hand": lambda n: np.where(n <= T, 5, 0),
    "single_exit": lambda n: np.where(n > T, A * 10 + 7, n * 10 + 8),
    "explicit_parameters": lambda n: 0 * T + 1 + n,
    "local_dispatch": lambda n: np.where(n > T, A * 2, n * (n - 1) // 2),
    "typed_bounds": lambda n: sums(15),
    "plain_bounds": lambda n: sums(15),
    "runtime_bounds": sums,
    "one_state": lambda n: 0 * T + 58,  # 1 doubled five times, with 0, 1, 2, 3 and 4 added on the way
    "arithmetic": arithmetic,
    "internal_types": internal_types,
    "availability": availability,
}


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", EXPECTED)
def test_the_code_of_section_3_computes(name: str, chip: str) -> None:
    for n in (1, 5, 9) if name in ("arithmetic", "availability") else (0, 1, 5, 9):
        assert np.array_equal(ran(name, n, chip), EXPECTED[name](n)), n


@pytest.mark.parametrize("name", ["typed_bounds", "plain_bounds", "runtime_bounds", "one_state"])
def test_init_always_means_one_loop_on_the_device(name: str) -> None:
    """Whatever the bounds are: nothing is unrolled, and `init=` is not ignored."""
    ran(name, 3, "gfx942")
    text = getattr(kernels, name).show("ir")
    assert text.count("scf.for") == 1 and "iter_args" in text


def test_a_runtime_value_in_const_expr_is_refused() -> None:
    with pytest.raises(FlylabError, match="const_expr") as caught:
        ran("wrong_const_expr", 1, "gfx942")
    assert caught.value.where is not None and "const_expr(lane == c_zero)" in caught.value.where.text
    assert "`if`" in (caught.value.hint or "") or "select" in (caught.value.hint or "")


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_printf_debugging(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran("debugging", 3, chip)
    expected = [f"tid={t} bid={b} val={float(X[t])}" for b in (0, 1) for t in range(3)]
    assert capsys.readouterr().out.splitlines() == expected
