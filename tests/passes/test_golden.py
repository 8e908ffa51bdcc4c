"""The text after each pass of ours, for short kernels: read it when it changes, and judge whether it is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from tests.kernels import reference_kernels
from tests.samples import cell, kernel_of

F32 = np.zeros(2048, np.float32)

BUFFER = """
t = fx.thread_idx.x
buf = fx.rocdl.make_buffer_tensor(A)
atom = fx.make_copy_atom(fx.rocdl.BufferCopy64b(), A.dtype)
r = fx.make_rmem_tensor(4, A.dtype)
tiles = fx.logical_divide(buf, 4)
fx.copy(atom, fx.slice(tiles, (None, t)), r)
r[1] = 7
fx.copy(atom, r, fx.slice(tiles, (None, t)))
"""
SCALAR = "t = fx.thread_idx.x\nA[t] = A[t] * 1.5 + 1"
PRINTF = """
t = fx.thread_idx.x
fx.printf("{:>3} {}", t, A[t])
"""
STRIDED = """
t = fx.thread_idx.x
v = fx.slice(A, (t // 8, None, t % 8)).load()
fx.slice(A, (t // 8, None, t % 8)).store(v + v)
"""

# A function in Float32 by itself, a pair of halves by way of it, a step that stays, a loop.
MATH = """
t = fx.thread_idx.x
x = fx.math.exp2(A[t])
h = fx.math.isnormal(fx.Vector.filled(2, x, fx.Float16))
A[t] = h[0].select(fx.math.fma(x, x, 1.0), fx.math.ipowi(t, t).to(fx.Float32))
"""

# A struct whose parts become variables, a whole one, and dynamic LDS.
SHARED = """
t = fx.thread_idx.x
pair = fx.SharedAllocator().allocate(Pair).peek()
copy = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Int32)
r = fx.make_rmem_tensor(2, fx.Int32)
fx.copy(copy, fx.slice(fx.logical_divide(A, 2), (None, t)), r)
fx.copy(copy, r, fx.slice(pair.b.view(fx.make_layout((2, 64), (1, 2))), (None, t)))
pair.a[t] = t
fx.barrier()
whole = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 64]).peek()
whole[t] = pair.a[63 - t] + pair.b[t]
dynamic = fx.SharedAllocator(static=False).allocate(fx.Array[fx.Int32, 64]).peek()
dynamic[t] = whole[0]
A[t] = dynamic[t]
"""
# Rows 8 apart are beyond what the swizzle reads; the second half of a part is in a bit that it changes.
SWIZZLED = """
t = fx.thread_idx.x
layout = fx.make_composed_layout(fx.Swizzle(2, 2, 3), fx.make_layout((32, 16)))
tile = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 512]).view(layout)
part = fx.slice(fx.logical_divide(tile, fx.make_tile(8, 8)), ((None, t % 4), (t // 4 % 8, None)))
r = fx.make_rmem_tensor((8, 2), fx.Float32)
r.fill(A[t])
fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), r, part)
"""
# The values of A are 2 apart, so its product takes vectors at once; that of int8 has its pointers.
GEMM = """
t = fx.thread_idx.x
atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
a, d = fx.make_rmem_tensor(fx.make_layout((4, 2), (2, 1)), fx.Float16), fx.make_rmem_tensor((4, 2, 1), fx.Float32)
b = fx.make_rmem_tensor((4, 1), fx.Float16)
a.fill(A[t])
b.fill(1.0)
d.fill(0.0)
fx.gemm(atom, d, a, b, d)
whole = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Int8))
x, y = fx.make_rmem_tensor(8, fx.Int8), fx.make_rmem_tensor(4, fx.Int32)
x.fill(3)
y.fill(0)
fx.gemm(whole, y, x, x, y)
A[t] = d[0, 1, 0] + y[3]
"""


@fx.struct
class Pair:
    a: fx.Array[fx.Int32, 64]
    b: fx.Align[fx.Array[fx.Int32, 128], 16]


RUNTIME = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, m, n):
        whole = fx.make_view(fx.get_iter(A), fx.make_layout((m, n), (n, 1)))
        tile = fx.slice(fx.zipped_divide(whole, (8, 16)), (None, (fx.block_idx.x, 0)))
        row, column = fx.idx2crd(fx.thread_idx.x, fx.make_layout((8, 16), (16, 1)))
        places = fx.composition(fx.Swizzle(2, 0, 4), fx.make_layout((m, fx.assume(n, div=16)), (n, 1)))
        tile[row, column] = fx.Float32(places(row, 5))

    @flyc.jit
    def launch(A: fx.Tensor, m: fx.Int32, n: fx.Int32):
        k(A, m, n).launch(grid=fx.ceil_div(m, 8), block=128)
""")["launch"]


def body(text: str, array: Any, **names: Any) -> tuple[Any, tuple[Any, ...]]:
    made = kernel_of(text)
    made.update(names)
    return made["launch"], (array,)


CASES: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "copy": lambda: (reference_kernels.layout_copy, (F32, F32, 2048)),
    "square": lambda: (reference_kernels.square, (F32, F32, 2048)),
    "buffer": lambda: body(BUFFER, np.zeros(256, np.int32)),
    "scalar_f16": lambda: body(SCALAR, np.zeros(64, np.float16)),
    "scalar_bf16": lambda: body(SCALAR, np.zeros(64, ml_dtypes.bfloat16)),
    "printf": lambda: body(PRINTF, np.zeros(64, np.float16)),
    "runtime": lambda: (RUNTIME, (np.zeros(1024, np.float32), 16, 64)),
    "math": lambda: body(MATH, F32),
    "math_afn": lambda: body("t = fx.thread_idx.x\nA[t] = fx.math.tanh(A[t], fastmath='afn')", F32),
    "gemm": lambda: body(GEMM, np.zeros(64, np.float32)),
    "shared": lambda: body(SHARED, np.zeros(128, np.int32), Pair=Pair),
    "swizzled": lambda: body(SWIZZLED, np.zeros(64, np.float32)),
    "strided": lambda: body(STRIDED, np.zeros((16, 2, 8), np.float32)),
}
OURS = (
    "ir",
    "fly-rewrite-func-signature",
    "fly-canonicalize",
    "fly-layout-lowering",
    "fly-int-swizzle-simplify",
    "fly-expand-math",
    "fly-convert-atom-call-to-ssa-form",
    "fly-promote-regmem-to-vectorssa",
    "convert-fly-to-rocdl",
    "fly-take-kernels",
    "fly-align-pointer-arguments",
)


@pytest.mark.parametrize("name", CASES)
def test_text_after_each_pass(name: str, golden: Callable[[str, str], None]) -> None:
    launcher, args = CASES[name]()
    stages = {s.name: s.text if s.changed else "no change\n" for s in flyc.compile(launcher, *args).stages()}
    golden(f"{name}.txt", "\n\n".join(f"// ----- {n} -----\n{stages[n]}" for n in OURS) + "\n")


def test_every_pass_of_ours_is_shown_here() -> None:
    launcher, args = CASES["copy"]()
    ours = [s.name for s in flyc.compile(launcher, *args).stages() if "fly" in s.name or s.name == "ir"]
    assert tuple(ours) == OURS


def test_instructions_of_wide_copies(golden: Callable[[str, str], None]) -> None:
    """One load and one store of 128 bits a thread, unfused arithmetic between: the ISA of the 4-wide square."""
    isa = flyc.compile(reference_kernels.square, F32, F32, 2048).isa.kernels["elementwise_kernel"]
    golden("square_isa.txt", "".join(f"{i}\n" for i in isa.instructions))
