"""The kernels of the published kernel-authoring reference, sections 3, 4 and 8, their bodies word for word.

Only the imports differ (`flydsl` -> `flylab`); each has a launcher, which the reference leaves to its reader. The five
cookbook recipes are the element-wise pattern with the reference's lines between load and store.
"""

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import const_expr, gpu, range_constexpr, rocdl

Vec = fx.Vector


# Section 3, "Basic Pattern"
@flyc.kernel
def basic_kernel(
    A: fx.Tensor,         # GPU tensor (memref via DLPack)
    B: fx.Tensor,
    N: fx.Constexpr[int], # Compile-time constant
):
    tid = gpu.thread_id("x")
    bid = gpu.block_id("x")
    # ... kernel body ...
    i = bid * 256 + tid
    B[i] = A[i]


@flyc.jit
def launch(
    A: fx.Tensor,
    B: fx.Tensor,
    N: fx.Constexpr[int],
    stream: fx.Stream = fx.Stream(None),
):
    basic_kernel(A, B, N).launch(
        grid=(N // 256,), block=(256,), stream=stream
    )


# Section 4, "Layout-Based Copy"
@flyc.kernel
def my_kernel(A: fx.Tensor, B: fx.Tensor, BLOCK_DIM: fx.Constexpr[int]):
    bid = fx.block_idx.x
    tid = fx.thread_idx.x

    # 1. Divide tensor into blocks
    tA = fx.logical_divide(A, fx.make_layout(BLOCK_DIM, 1))
    tB = fx.logical_divide(B, fx.make_layout(BLOCK_DIM, 1))

    # 2. Select this block's tile
    tA = fx.slice(tA, (None, bid))
    tB = fx.slice(tB, (None, bid))

    # 3. Further divide for per-thread access
    tA = fx.logical_divide(tA, fx.make_layout(1, 1))  # 1 element per thread
    tB = fx.logical_divide(tB, fx.make_layout(1, 1))

    # 4. Allocate registers
    copyAtom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    rA = fx.make_rmem_tensor(1, fx.Float32)

    # 5. Copy: global -> register -> compute -> global
    fx.copy(copyAtom, fx.slice(tA, (None, tid)), rA)
    # ... compute on register values ...
    fx.copy(copyAtom, rA, fx.slice(tB, (None, tid)))


@flyc.jit
def layout_copy(A: fx.Tensor, B: fx.Tensor, N: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    my_kernel(A, B, 256).launch(grid=(N // 256,), block=(256,), stream=stream)


# Section 4, "Vectorized Loads (Wide Copies)"
@flyc.kernel
def wide_kernel(A: fx.Tensor, B: fx.Tensor):
    bid = fx.block_idx.x
    tid = fx.thread_idx.x
    tA = fx.slice(fx.logical_divide(A, fx.make_layout(1024, 1)), (None, bid))
    tB = fx.slice(fx.logical_divide(B, fx.make_layout(1024, 1)), (None, bid))

    VEC_WIDTH = 4
    copy_bits = VEC_WIDTH * 32   # 128 bits
    copyAtom = fx.make_copy_atom(fx.UniversalCopy(copy_bits), fx.Float32)

    rA = fx.make_rmem_tensor(VEC_WIDTH, fx.Float32)

    # Divide for VEC_WIDTH elements per thread
    tA = fx.logical_divide(tA, fx.make_layout(VEC_WIDTH, 1))
    fx.copy(copyAtom, fx.slice(tA, (None, tid)), rA)

    # Load/store as vectors
    vec = fx.memref_load_vec(rA)     # Load vector from register memref
    fx.memref_store_vec(vec, rA)     # Store vector to register memref
    tB = fx.logical_divide(tB, fx.make_layout(VEC_WIDTH, 1))
    fx.copy(copyAtom, rA, fx.slice(tB, (None, tid)))


@flyc.jit
def wide_copy(A: fx.Tensor, B: fx.Tensor, N: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    wide_kernel(A, B).launch(grid=(N // 1024,), block=(256,), stream=stream)


# Section 8, "Element-wise Kernel Template"
@flyc.kernel
def elementwise_kernel(In: fx.Tensor, Out: fx.Tensor, BLOCK: fx.Constexpr[int], VEC: fx.Constexpr[int]):
    bid, tid = fx.block_idx.x, fx.thread_idx.x
    tile = BLOCK * VEC
    tIn = fx.logical_divide(In, fx.make_layout(tile, 1))
    tOut = fx.logical_divide(Out, fx.make_layout(tile, 1))
    tIn = fx.slice(tIn, (None, bid))
    tOut = fx.slice(tOut, (None, bid))
    tIn = fx.logical_divide(tIn, fx.make_layout(VEC, 1))
    tOut = fx.logical_divide(tOut, fx.make_layout(VEC, 1))
    copy = fx.make_copy_atom(fx.UniversalCopy(VEC * 32), fx.Float32)
    rIn = fx.make_rmem_tensor(VEC, fx.Float32)
    rOut = fx.make_rmem_tensor(VEC, fx.Float32)
    fx.copy(copy, fx.slice(tIn, (None, tid)), rIn)
    # Transform
    v = Vec(fx.memref_load_vec(rIn))
    v = v * v  # example: square
    fx.memref_store_vec(v, rOut)
    fx.copy(copy, rOut, fx.slice(tOut, (None, tid)))


@flyc.jit
def square(A: fx.Tensor, B: fx.Tensor, N: fx.Constexpr[int], VEC: fx.Constexpr[int] = 4,
           stream: fx.Stream = fx.Stream(None)):
    elementwise_kernel(A, B, 256, VEC).launch(grid=(N // (256 * VEC),), block=(256,), stream=stream)


# Section 8, "Element-wise Kernel Cookbook": what stands between load and store.
vec_width = 4


def scale(rA, rB, rC):
    vA = Vec(fx.memref_load_vec(rA))
    scale = Vec.filled(vec_width, 2.0, fx.Float32)
    vC = vA * scale
    return vC


def multiply(rA, rB, rC):
    vC = Vec(fx.memref_load_vec(rA)) * Vec(fx.memref_load_vec(rB))
    return vC


def fma(rA, rB, rC):
    vAB = Vec(fx.memref_load_vec(rA)) * Vec(fx.memref_load_vec(rB))
    vD = vAB + Vec(fx.memref_load_vec(rC))
    return vD


def relu(rA, rB, rC):
    vA = Vec(fx.memref_load_vec(rA))
    zero_vec = Vec.filled(vec_width, 0.0, fx.Float32)
    vC = fx.max(vA, zero_vec)
    return vC


def absolute(rA, rB, rC):
    vC = abs(fx.memref_load_vec(rA))        # or fx.absf(...); memref_load_vec already
                                            # returns a Vector, so no Vec() wrap needed
    return vC


def add(rA, rB, rC):
    """Not in the cookbook, named by it: the vector add."""
    return Vec(fx.memref_load_vec(rA)) + Vec(fx.memref_load_vec(rB))


@flyc.kernel
def cookbook_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, Out: fx.Tensor, recipe: fx.Constexpr):
    bid, tid = fx.block_idx.x, fx.thread_idx.x
    tiles = [fx.slice(fx.logical_divide(t, fx.make_layout(1024, 1)), (None, bid)) for t in (A, B, C, Out)]
    tA, tB, tC, tOut = [fx.slice(fx.logical_divide(t, fx.make_layout(vec_width, 1)), (None, tid)) for t in tiles]
    copy = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)
    rA, rB, rC, rOut = (fx.make_rmem_tensor(vec_width, fx.Float32) for _ in range(4))
    fx.copy(copy, tA, rA)
    fx.copy(copy, tB, rB)
    fx.copy(copy, tC, rC)
    fx.memref_store_vec(recipe(rA, rB, rC), rOut)
    fx.copy(copy, rOut, tOut)


@flyc.jit
def cookbook(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, Out: fx.Tensor, recipe: fx.Constexpr):
    cookbook_kernel(A, B, C, Out, recipe).launch(grid=(A.shape[0] // 1024,), block=(256,))


# Section 8, "Naive GEMM Template"
@flyc.kernel
def naive_gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor,
               M: fx.Constexpr[int], N: fx.Constexpr[int], K: fx.Constexpr[int],
               BM: fx.Constexpr[int], BN: fx.Constexpr[int]):
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    bm, bn = bid // (N // BN), bid % (N // BN)
    tm, tn = tid // BN, tid % BN
    row, col = bm * BM + tm, bn * BN + tn

    # Buffer-resource views with logical row-major layouts
    tA = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(A)), fx.make_layout((M, K), (K, 1)))
    tB = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(B)), fx.make_layout((K, N), (N, 1)))
    tC = fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(C)), fx.make_layout((M, N), (N, 1)))

    copy = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    rA, rB, rC = (fx.make_rmem_tensor(1, fx.Float32) for _ in range(3))

    acc = fx.Float32(0.0)
    for k in range_constexpr(K):
        fx.copy(copy, fx.slice(tA, (row, k)), rA)
        fx.copy(copy, fx.slice(tB, (k, col)), rB)
        acc = acc + fx.Vector(fx.memref_load_vec(rA))[0] * fx.Vector(fx.memref_load_vec(rB))[0]

    fx.memref_store_vec(fx.Vector.from_elements([acc], fx.Float32), rC)
    fx.copy(copy, rC, fx.slice(tC, (row, col)))


@flyc.jit
def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, M: fx.Constexpr[int], N: fx.Constexpr[int], K: fx.Constexpr[int],
         stream: fx.Stream = fx.Stream(None)):
    naive_gemm(A, B, C, M, N, K, 16, 16).launch(grid=(fx.ceildiv(M, 16) * (N // 16),), block=(256,), stream=stream)
