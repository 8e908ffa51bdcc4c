"""What the passes do wrong that `codegen.amdgpu` switches off: kernels that ended the process, or gave a wrong value.
"""

from __future__ import annotations

import numpy as np
import pytest

import flylab
from flylab.targets import TARGETS
from tests.samples import cell

LEFT_IN_DIFFERENT_ROUNDS = """
@flyc.kernel
def k(A: fx.Tensor, R: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    last, i = 5, A[t]
    for i in range(n):
        if t == 16:
            break
        for w in range(t & 7):
            last = i
    R[t] = i * 1000 + last

@flyc.jit
def launch(A: fx.Tensor, R: fx.Tensor, n: fx.Int32):
    k(A, R, n).launch(grid=1, block=64)
"""
ONE_ELEMENT_BESIDE_A_VECTOR = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, R: fx.Tensor):
    t = fx.thread_idx.x
    x = fx.Vector.filled(2, A[t], fx.Int64)
    y = fx.Vector.filled(2, B[t].to(fx.Int8), fx.Int8)
    R[t] = (x % y)[1] + fx.min(x, y)[1]

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, R: fx.Tensor):
    k(A, B, R).launch(grid=1, block=64)
"""


@pytest.mark.parametrize("chip", TARGETS)
def test_a_thread_keeps_the_round_in_which_it_left_a_loop(chip: str) -> None:
    """A fault of LLVM's peephole pass with SIFoldOperands."""
    a, r = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with flylab.use(chip):
        cell(LEFT_IN_DIFFERENT_ROUNDS)["launch"](a, r, 6)
    right = [5 if t == 16 else 5005 for t in range(64)]
    assert r.tolist() == right


@pytest.mark.parametrize("chip", TARGETS)
def test_a_vector_beside_accesses_of_one_element(chip: str) -> None:
    """A fault of LLVM's VectorCombine, which ended the process."""
    a, b = np.arange(64, dtype=np.int64) * 7 - 100, np.arange(64, dtype=np.int64) - 80
    r = np.zeros(64, np.int64)
    with flylab.use(chip):
        cell(ONE_ELEMENT_BESIDE_A_VECTOR)["launch"](a, b, r)
    assert (r == a % b + np.minimum(a, b)).all()
