"""B = A, element by element: the shortest kernel that moves data through registers."""

from flylab.kernels.common.tiles import same_shape, whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx

BLOCK = 256


@flyc.kernel
def vector_copy_kernel(A: fx.Tensor, B: fx.Tensor, VEC: fx.Constexpr[int]):
    """VEC consecutive elements a thread."""
    tid, bid = fx.thread_idx.x, fx.block_idx.x
    tile = fx.make_layout(BLOCK * VEC, 1)
    tA = fx.logical_divide(fx.slice(fx.logical_divide(A, tile), (None, bid)), fx.make_layout(VEC, 1))
    tB = fx.logical_divide(fx.slice(fx.logical_divide(B, tile), (None, bid)), fx.make_layout(VEC, 1))
    atom = fx.make_copy_atom(fx.UniversalCopy(VEC * A.dtype.width), A.dtype)
    registers = fx.make_rmem_tensor(VEC, A.dtype)
    fx.copy(atom, fx.slice(tA, (None, tid)), registers)
    fx.copy(atom, registers, fx.slice(tB, (None, tid)))


@flyc.jit
def vector_copy(A: fx.Tensor, B: fx.Tensor, VEC: fx.Constexpr[int] = 1, stream: fx.Stream = fx.Stream(None)):
    """B = A for vectors of one length, a multiple of 256 * VEC.

    >>> import numpy as np
    >>> a = np.arange(512, dtype=np.int32)
    >>> b = np.zeros_like(a)
    >>> _ = vector_copy(a, b, VEC=2)
    >>> bool((a == b).all())
    True
    """
    same_shape(A=A, B=B)
    tiles = whole_tiles(A.shape[0], BLOCK * VEC, "A")
    vector_copy_kernel(A, B, VEC).launch(grid=(tiles,), block=(BLOCK,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    return {"vector_copy": {"A,B": "f32[4096]", "VEC": 4}}
