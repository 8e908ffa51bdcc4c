"""Kernels and helpers that the tests of the compiler's way share. The kernels' bodies are the reference's, verbatim."""

from __future__ import annotations

import linecache
import textwrap
from itertools import count
from typing import Any

import numpy as np

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu, range_constexpr
from flylab.runtime.compiled import Compiled

Vec = fx.Vector


@flyc.kernel
def my_kernel(A: fx.Tensor, B: fx.Tensor, BLOCK_DIM: fx.Constexpr[int]):
    bid = fx.block_idx.x
    tid = fx.thread_idx.x
    tA = fx.logical_divide(A, fx.make_layout(BLOCK_DIM, 1))
    tB = fx.logical_divide(B, fx.make_layout(BLOCK_DIM, 1))
    tA = fx.slice(tA, (None, bid))
    tB = fx.slice(tB, (None, bid))
    tA = fx.logical_divide(tA, fx.make_layout(1, 1))
    tB = fx.logical_divide(tB, fx.make_layout(1, 1))
    copyAtom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    rA = fx.make_rmem_tensor(1, fx.Float32)
    fx.copy(copyAtom, fx.slice(tA, (None, tid)), rA)
    fx.copy(copyAtom, rA, fx.slice(tB, (None, tid)))


@flyc.jit
def copy(A: fx.Tensor, B: fx.Tensor, N: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    my_kernel(A, B, 256).launch(grid=(N // 256,), block=(256,), stream=stream)


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
    v = Vec(fx.memref_load_vec(rIn))
    v = v * v  # example: square
    fx.memref_store_vec(v, rOut)
    fx.copy(copy, rOut, fx.slice(tOut, (None, tid)))


@flyc.jit
def square(A: fx.Tensor, B: fx.Tensor, N: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    elementwise_kernel(A, B, 256, 4).launch(grid=(N // 1024,), block=(256,), stream=stream)


@flyc.kernel
def naive_gemm(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    M: fx.Constexpr[int],
    N: fx.Constexpr[int],
    K: fx.Constexpr[int],
    BM: fx.Constexpr[int],
    BN: fx.Constexpr[int],
):
    tid, bid = gpu.thread_id("x"), gpu.block_id("x")
    bm, bn = bid // (N // BN), bid % (N // BN)
    tm, tn = tid // BN, tid % BN
    row, col = bm * BM + tm, bn * BN + tn
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
def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, M: fx.Constexpr[int], N: fx.Constexpr[int], K: fx.Constexpr[int]):
    naive_gemm(A, B, C, M, N, K, 16, 16).launch(grid=(fx.ceildiv(M, 16) * (N // 16),), block=(256,))


_cells = count(1)


def cell(text: str) -> dict[str, Any]:
    """Run a text the way a notebook runs a cell, under a name of its own; its names, and `FILE`."""
    text = textwrap.dedent(text).lstrip("\n")
    file = f"<cell {next(_cells)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"fx": fx, "flyc": flyc, "gpu": gpu, "range_constexpr": range_constexpr, "FILE": file}
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names


def kernel_of(body: str, parameters: str = "A: fx.Tensor") -> dict[str, Any]:
    """A cell with a kernel of this body (from line 3 on) over A, launched over one block of 64 by `launch(A)`."""
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    names = ", ".join(p.split(":")[0].strip() for p in parameters.split(", "))
    return cell(
        f"@flyc.kernel\ndef k({parameters}):\n{inner}\n\n"
        f"@flyc.jit\ndef launch({parameters}):\n    k({names}).launch(grid=1, block=64)\n"
    )


def compile_body(body: str, dtype: Any = np.float32) -> Compiled:
    """The compilation of a kernel of this body over `A` (64 elements)."""
    compiled: Compiled = flyc.compile(kernel_of(body)["launch"], np.zeros(64, dtype))
    return compiled


def on_device(function: Any, *inputs: Any, out: Any) -> Any:
    """`function` of one element of each of one or two inputs, for all elements, on the software device.

    The result is an array of numpy's dtype `out`.
    """
    result = np.zeros(len(inputs[0]), out)
    padding = -len(result) % 64
    arrays = [np.concatenate([np.asarray(i), np.ones(padding, np.asarray(i).dtype)]) for i in inputs]
    padded = np.zeros(len(result) + padding, out)

    @flyc.kernel
    def apply_kernel(tensors: fx.Constexpr, *, O: fx.Tensor, P: fx.Tensor, Q: fx.Tensor):  # noqa: E741
        i = gpu.block_id("x") * 64 + gpu.thread_id("x")
        O[i] = function(*(t[i] for t in (P, Q)[:tensors]))

    @flyc.jit
    def apply(O: fx.Tensor, P: fx.Tensor, Q: fx.Tensor, n: fx.Constexpr[int]):  # noqa: E741
        apply_kernel(len(inputs), O=O, P=P, Q=Q).launch(grid=n // 64, block=64)

    apply(padded, arrays[0], arrays[-1], len(padded))
    return padded[: len(result)]
