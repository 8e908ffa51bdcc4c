"""A launcher of kernels/copy/vector_copy.py that is told the length, as the peer's launchers cannot read it off A."""

from flylab.kernels.copy.vector_copy import BLOCK, vector_copy_kernel

import flylab.compiler as flyc
import flylab.expr as fx


@flyc.jit
def launch_copy(A: fx.Tensor, B: fx.Tensor, N: fx.Constexpr[int], VEC: fx.Constexpr[int],
                stream: fx.Stream = fx.Stream(None)):
    vector_copy_kernel(A, B, VEC).launch(grid=(N // (BLOCK * VEC),), block=(BLOCK,), stream=stream)
