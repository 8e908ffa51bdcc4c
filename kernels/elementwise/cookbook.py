"""The element-wise cookbook: five recipes that differ in one line each.

256 threads a block, four elements a thread, 128-bit loads and stores. Each kernel takes its line of arithmetic as a
plain function of vectors, which is a constant of the compilation.
"""

from flylab.kernels.common.tiles import same_shape, whole_tiles

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu

BLOCK, VEC = 256, 4
TILE = BLOCK * VEC
"""Elements of a block: the sizes given must be multiples of it."""


def scale(a):
    """A * 2."""
    return a * fx.Vector.filled(VEC, 2.0, a.dtype)


def mul(a, b):
    """A * B."""
    return a * b


def fma(a, b, c):
    """A * B + C, rounded twice: bit-equal to torch's A * B + C."""
    return a * b + c


def relu(a):
    """max(A, 0); a NaN stays a NaN."""
    return fx.max(a, fx.Vector.filled(VEC, 0.0, a.dtype))


def absolute(a):
    """|A|."""
    return abs(a)


def _tile_of(tensor, tid, bid):
    """The VEC consecutive elements of one thread."""
    tile = fx.slice(fx.logical_divide(tensor, fx.make_layout(TILE, 1)), (None, bid))
    return fx.slice(fx.logical_divide(tile, fx.make_layout(VEC, 1)), (None, tid))


def _apply(recipe, inputs, output):
    """Load what this thread has of each input, compute, store."""
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    copy = fx.make_copy_atom(fx.UniversalCopy(VEC * output.dtype.width), output.dtype)
    values = []
    for tensor in inputs:
        fragment = fx.make_rmem_tensor(VEC, tensor.dtype)
        fx.copy(copy, _tile_of(tensor, tid, bid), fragment)
        values.append(fx.memref_load_vec(fragment))
    result = fx.make_rmem_tensor(VEC, output.dtype)
    fx.memref_store_vec(recipe(*values), result)
    fx.copy(copy, result, _tile_of(output, tid, bid))


@flyc.kernel
def unary_kernel(A: fx.Tensor, C: fx.Tensor, recipe: fx.Constexpr):
    """C = recipe(A)."""
    _apply(recipe, [A], C)


@flyc.kernel
def binary_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, recipe: fx.Constexpr):
    """C = recipe(A, B)."""
    _apply(recipe, [A, B], C)


@flyc.kernel
def ternary_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, recipe: fx.Constexpr):
    """D = recipe(A, B, C)."""
    _apply(recipe, [A, B, C], D)


@flyc.jit
def unary(recipe: fx.Constexpr, A: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    """C = recipe(A), for one of `scale`, `relu`, `absolute` or a function like them.

    >>> import numpy as np
    >>> a = np.linspace(-1, 1, 1024, dtype=np.float32)
    >>> c = np.empty_like(a)
    >>> _ = unary(relu, a, c)
    >>> float(c[0]), float(c[-1])
    (0.0, 1.0)
    """
    same_shape(A=A, C=C)
    unary_kernel(A, C, recipe).launch(grid=(whole_tiles(A.shape[0], TILE, "A"),), block=(BLOCK,), stream=stream)


@flyc.jit
def binary(recipe: fx.Constexpr, A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    """C = recipe(A, B), for `mul` or a function like it."""
    same_shape(A=A, B=B, C=C)
    binary_kernel(A, B, C, recipe).launch(grid=(whole_tiles(A.shape[0], TILE, "A"),), block=(BLOCK,), stream=stream)


@flyc.jit
def ternary(
    recipe: fx.Constexpr, A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, stream: fx.Stream = fx.Stream(None)
):
    """D = recipe(A, B, C), for `fma` or a function like it."""
    same_shape(A=A, B=B, C=C, D=D)
    ternary_kernel(A, B, C, D, recipe).launch(grid=(whole_tiles(A.shape[0], TILE, "A"),), block=(BLOCK,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launchers with."""
    return {"unary": {"recipe": relu, "A,C": "f32[4096]"}, "binary": {"recipe": mul, "A,B,C": "f32[4096]"},
            "ternary": {"recipe": fma, "A,B,C,D": "f32[4096]"}}
