"""The legacy allocator of LDS, as un-migrated kernels use it, on the software device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlir import ir

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.compiler.kernel_function import CompilationContext
from flylab.errors import TraceError
from flylab.expr import gpu
from flylab.expr.types import T
from flylab.targets import TARGETS
from flylab.utils.smem_allocator import SmemAllocator, SmemPtr, get_mlir_type_align, get_mlir_type_size

chips = pytest.mark.parametrize("chip", sorted(TARGETS))
BLOCK = 256
allocator = SmemAllocator(None, arch="gfx942", global_sym_name="smem_tiles")
floats_at = allocator._align(allocator.ptr, 16)
allocator.ptr = floats_at + BLOCK * 4 - 4
halves_at = allocator._align(allocator.ptr, 128)
allocator.ptr = halves_at + 16 * 16 * 2


@flyc.kernel
def exchange(A: fx.Tensor, B: fx.Tensor):
    i = gpu.thread_id("x")
    base = allocator.get_base()
    floats = SmemPtr(base, floats_at, T.f32, shape=(BLOCK - 1,))
    halves = SmemPtr(base, halves_at, T.f16, shape=(16, 16))
    if i < BLOCK - 1:
        floats.store(A[i], [i])
    halves.store(fx.Float16(A[i]), [i // 16, i % 16])
    gpu.barrier()
    total = fx.Float32(0.0)
    for n in range(i % 3):
        total = total + halves.get()[i % 16, n].to(fx.Float32)
    halves._view_cache = None
    B[i] = total + floats.load([(i + 1) % (BLOCK - 1)]) + floats.load()


@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor):
    allocator.finalized = False
    with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
        allocator.finalize()
    exchange(A, B).launch(grid=1, block=BLOCK)


@chips
def test_places_at_offsets_of_one_piece_of_lds(chip: str) -> None:
    given, got = np.random.default_rng(3).integers(0, 99, BLOCK).astype(np.float32), np.zeros(BLOCK, np.float32)
    with flylab.use(chip):
        launch(given, got)
        compiled = flyc.compile(launch, given, got)
    i = np.arange(BLOCK)
    halves = given.reshape(16, 16)
    sums = np.cumsum(np.concatenate([np.zeros((16, 1), np.float32), halves], axis=1), axis=1)
    np.testing.assert_array_equal(got, sums[i % 16, i % 3] + given[(i + 1) % (BLOCK - 1)] + given[0])
    assert allocator.finalized and compiled.isa.kernels["exchange"].lds_bytes == 1024 + 512


@flyc.kernel
def anew(A: fx.Tensor, first: fx.Constexpr, last: fx.Constexpr):
    inside = SmemAllocator(None, global_sym_name="inside")
    inside.ptr = first
    place = SmemPtr(inside.get_base(), 0, fx.Int32, shape=(first // 4,))
    inside.ptr = last
    if last > first:
        place = SmemPtr(inside.get_base(), 0, fx.Int32, shape=(last // 4,))
    place.store(A[fx.thread_idx.x], [fx.thread_idx.x])
    gpu.barrier()
    A[fx.thread_idx.x] = place.load([fx.thread_idx.x ^ 1])


@flyc.jit
def launch_anew(A: fx.Tensor, first: fx.Constexpr, last: fx.Constexpr):
    anew(A, first, last).launch(grid=1, block=BLOCK)


def test_an_allocator_of_a_kernel_grows_to_its_largest() -> None:
    given = np.arange(BLOCK, dtype=np.int32)
    launch_anew(given, 256, 1024)
    np.testing.assert_array_equal(given, np.arange(BLOCK) ^ 1)
    assert flyc.compile(launch_anew, given, 256, 1024).isa.kernels["anew"].lds_bytes == 1024


def refusal(body: Any) -> str:
    @flyc.kernel
    def k(A: fx.Tensor):
        body()

    @flyc.jit
    def run(A: fx.Tensor):
        k(A).launch(grid=1, block=64)

    with flylab.use("gfx942"), pytest.raises(TraceError) as caught:
        run(np.zeros(64, np.float32))
    return str(caught.value)


def of_bytes(size: int) -> SmemAllocator:
    made = SmemAllocator(global_sym_name="s")
    made.ptr = size
    return made


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda: SmemAllocator(global_sym_name="s").get_base(), "whose ptr is 0"),
        (lambda: of_bytes(70000).get_base(), "more than the 65536 of gfx942"),
        (lambda: SmemPtr(of_bytes(64).get_base(), 32, fx.Float32, (16,)), "SmemPtr of 64 bytes at 32, and"),
        (lambda: SmemPtr(of_bytes(64).get_base(), -4, fx.Float32), "SmemPtr at -4 bytes"),
        (lambda: SmemPtr(of_bytes(64).get_base(), 0, fx.Float32, (4, 4)).load([1]), "1 indices of a SmemPtr"),
        (lambda: SmemPtr(of_bytes(64).get_base(), 0, fx.Float32, (0,)), "shape (0,)"),
        (lambda: SmemPtr(fx.Int32(1), 0, fx.Float32).get(), "its base is what allocator.get_base() gives"),
    ],
)
def test_what_it_refuses(body: Any, says: str) -> None:
    text = refusal(body)
    assert says in text and "hint: " in text and "test_smem_allocator.py" in text


def test_it_is_for_kernels() -> None:
    with pytest.raises(TraceError, match="inside an @flyc.kernel"):
        of_bytes(64).get_base()
    with pytest.raises(TraceError, match="outside of an @flyc.jit"):
        CompilationContext.get_current()


def test_sizes() -> None:
    assert [get_mlir_type_size(t) for t in (fx.Int8, fx.BFloat16, fx.Float64, fx.Boolean)] == [1, 2, 8, 1]
    assert [get_mlir_type_align(t) for t in (fx.Int8, fx.BFloat16, fx.Float64)] == [1, 2, 8]
