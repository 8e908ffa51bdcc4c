"""Pointers: moved and indexed in elements, by known and by runtime numbers, in global memory and behind a buffer."""

from __future__ import annotations

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import DeviceError


@flyc.kernel
def shift_kernel(A: fx.Tensor, B: fx.Tensor, by: fx.Int32, buffered: fx.Constexpr[bool]):
    a = fx.get_iter(fx.rocdl.make_buffer_tensor(A) if buffered else A)
    b = fx.get_iter(B)
    tid = fx.thread_idx.x
    b[tid] = a[tid + by] * 2 + (a + 1)[tid]


@flyc.jit
def shift(A: fx.Tensor, B: fx.Tensor, by: fx.Int32, buffered: fx.Constexpr[bool]):
    shift_kernel(A, B, by, buffered).launch(grid=1, block=64)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.float64])
@pytest.mark.parametrize("buffered", [False, True])
def test_indexing_counts_elements(dtype, buffered):
    a, b = np.arange(80).astype(dtype), np.zeros(64, dtype)
    shift(a, b, 16, buffered)
    np.testing.assert_array_equal(b, a[16:80] * 2 + a[1:65])


def test_past_the_end():
    a, b = np.arange(80, dtype=np.int32), np.zeros(64, np.int32)
    with pytest.raises(DeviceError, match="'A'"):
        shift(a, b, 17, False)
    shift(a, b, 17, True)  # the last thread's first operand is outside of the buffer and reads 0
    np.testing.assert_array_equal(b, np.append(a[17:80], 0) * 2 + a[1:65])
