"""A whole kernel with LDS and matrix instructions, as LLVM compiles it for each chip: the benchmark's, smaller."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.bench_emulator_gemm import TILE, kernel_ir
from tests.emulator.toolchain import CHIPS, program


@pytest.mark.parametrize("chip", CHIPS)
def test_an_lds_gemm(chip: str) -> None:
    size = 256
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    program(chip, kernel_ir(chip, size)).launch(grid=(size // TILE, size // TILE), block=256, args=[a, b, c])
    x, y = a.astype(np.float64), b.astype(np.float64).T
    step = size * 2.0**-24
    assert np.all(np.abs(c - x @ y) <= step / (1 - step) * (np.abs(x) @ np.abs(y)))
