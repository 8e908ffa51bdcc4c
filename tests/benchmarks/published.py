"""The published results that kernels/ covers: for each row the launch at its published size, its work and its bytes.

Nothing of a published size is run whole. A row's arrays are asked for and never written, so that they take no memory
until a workgroup touches them; the launch is compiled as it is, and `Row.run(groups)` runs its first workgroups on the
software device. So instructions, trip counts and addresses are those of the published launch, and what a model needs
beside them is how often: `Row.grid` workgroups in all.

The figures are those of tests/data/published_mi350x_ladder.csv (MI350X) and published_other.csv (MI300X and MI355X).
`Row.bytes` counts each byte of the operands once; `Row.operations` what the published rate counts.

    python -m tests.benchmarks.published          lists the rows
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import flylab
from flylab.model import PRODUCTS
from flylab.passes.host import Launch
from flylab.runtime import launch as launching
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import current
from flylab.runtime.emulated import Reached, SoftwareDevice, buffers_of
from flylab.runtime.finding import find

LADDER_PRODUCT = "MI350X"
"""The product of published_mi350x_ladder.csv."""
DATA = Path(__file__).resolve().parents[1] / "data"
F32 = np.float32


@dataclass(frozen=True)
class Row:
    """A published row, and how to launch the kernel that covers it at the size of the row."""

    op: str
    shape: str
    variant: str
    product: str
    """The product that was measured; it has `chip`."""
    microseconds: float
    """The published time."""
    launcher: Any
    arguments: Callable[[], tuple[Any, ...]]
    """The launcher's arguments at the published size; arrays are untouched zeros."""
    operations: int
    """Arithmetic operations that the result needs (a multiply and an add are two)."""
    bytes: int
    """Bytes of memory that the result needs, each of them once."""

    @property
    def chip(self) -> str:
        """The product's chip."""
        return PRODUCTS[self.product].chip.arch

    @cached_property
    def _bound(self) -> Any:
        return launching.bound_to(self.launcher, self.arguments(), {})

    @cached_property
    def _held(self) -> Any:
        return Reached(buffers_of(self._bound))

    @cached_property
    def compiled(self) -> Compiled:
        """The compilation for the published size and the row's chip."""
        with flylab.use(self.chip):
            return find(self.launcher, self._bound, current())

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """What the launcher launches at the published size: kernels, grids, blocks."""
        return tuple(launching.launches(self.compiled, launching.operands(self._bound, self._held.pointers)))

    @property
    def grid(self) -> int:
        """Workgroups of the published launch."""
        return sum(prod(step.extents[:3]) for step in self.launches)

    @property
    def block(self) -> int:
        """Threads of a workgroup."""
        return prod(self.launches[0].extents[3:])

    def run(self, groups: int = 8) -> tuple[Any, ...]:
        """Runs the first workgroups of each launch: the reports, as `flylab.watch` asks for them."""
        with flylab.use(self.chip):
            device = SoftwareDevice()
            return tuple(device.launch(self.compiled, first(step, groups), self._held) for step in self.launches)


def first(step: Launch, groups: int) -> Launch:
    """A launch of the first workgroups of another: whole rows of its grid from the second row on.

    >>> first(Launch("k", (4, 8, 1, 256, 1, 1), ()), 6).extents
    (4, 2, 1, 256, 1, 1)
    """
    extents, left = [], groups
    for extent in step.extents[:3]:
        extents.append(min(extent, max(left, 1)))
        left = -(-left // extent)
    return replace(step, extents=(*extents, *step.extents[3:]))


@cache
def figures() -> dict[tuple[str, str, str], dict[str, str]]:
    """The ladder as published: (op, shape, variant) -> its line."""
    with (DATA / "published_mi350x_ladder.csv").open() as file:
        return {(line["op"], line["shape"], line["variant"]): line for line in csv.DictReader(file)}


@cache
def rates() -> list[tuple[str, str, str, str, float]]:
    """The rates of GEMMs as published: op, shape, variant, product and TFLOP/s."""
    with (DATA / "published_other.csv").open() as file:
        return [(line["op"], line["shape"], line["variant"], line["product"], float(line["value"]))
                for line in csv.DictReader(file) if line["op"].startswith("GEMM")]


def row(op: str, shape: str, variant: str, launcher: Any, arguments: Callable[[], tuple[Any, ...]],
        operations: int, bytes: int) -> Row:
    """A row of the ladder."""
    published = figures()[op, shape, variant]
    return Row(op, shape, variant, LADDER_PRODUCT, float(published["us"]), launcher, arguments, operations, bytes)


ALIGNMENT = 256
"""Bytes at whose multiples memory of a chip is given out; where an array begins decides how many lines it touches."""


def zeros(*shapes: tuple[int, ...], dtype: Any = F32) -> tuple[np.ndarray, ...]:
    """Arrays of these shapes, whose memory the system gives when it is touched."""
    return tuple(_zeros(shape, np.dtype(dtype)) for shape in shapes)


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    size = prod(shape) * dtype.itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start:start + size].view(dtype).reshape(shape)


SIZES = {"N=32M": 32 << 20, "N=256M": 256 << 20}


def elementwise() -> Iterator[Row]:
    from flylab.kernels.elementwise.vector_add import vector_add

    variants = {"v0_float": (1, 1), "v1_float2": (2, 1), "v2_float4": (4, 1), "v3_float4_x4": (4, 4)}
    for shape, size in SIZES.items():
        for variant, widths in variants.items():
            yield row("elementwise", shape, variant, vector_add,
                      lambda size=size, widths=widths: (*zeros((size,), (size,), (size,)), *widths), size, 12 * size)


TREE = {"v0_baseline": "divergent", "v1_no_divergence": "strided", "v2_no_bank_conflict": "halving",
        "v3_add_during_load": "two_loads", "v4_unroll_last_wave": "last_wave", "v5_full_unroll": "unrolled"}
STRIDE = {"v6_multi_add": "tree", "v7_shuffle": "shuffle", "v8_shuffle_vec4": "vec4", "v9_vec4_wide_grid": "vec4_wide"}


def reductions() -> Iterator[Row]:
    from flylab.kernels.reduce import grid_stride, tree

    def of_tree(size: int, variant: str) -> tuple[Any, ...]:
        return *zeros((size,), (size // tree.BLOCK // tree.VARIANTS[variant].loads,)), variant

    def of_stride(size: int, variant: str) -> tuple[Any, ...]:
        return *zeros((size,), (grid_stride.VARIANTS[variant].blocks,)), variant

    for shape, size in SIZES.items():
        for names, launcher, arguments in ((TREE, tree.tree_sums, of_tree),
                                           (STRIDE, grid_stride.grid_stride_sums, of_stride)):
            for published, variant in names.items():
                yield row("reduce", shape, published, launcher, partial(arguments, size, variant), size, 4 * size)


SGEMV = {"v0_wave_per_row": "wave", "v1_wave_per_row_vec4": "wave_vec4", "v2_subwave_per_row": "lanes",
         "v3_block_per_row": "block"}


def matrix_times_vector() -> Iterator[Row]:
    from flylab.kernels.gemv.sgemv import sgemv

    for op, shape, variant in figures():
        if op == "sgemv":
            m, n = (int(part.split("=")[1]) for part in shape.split(","))
            arguments = partial(lambda m, n, name: (*zeros((m, n), (n,), (m,)), name), m, n, SGEMV[variant])
            yield row(op, shape, variant, sgemv, arguments, 2 * m * n, 4 * (m * n + m + n))


TILED = {"v2_thread_tile": "plain", "v3_prefetch": "prefetch", "v4_double_buffer": "ping_pong", "v5_mfma": "mfma",
         "v6_tuned": "tuned"}


def float32_products() -> Iterator[Row]:
    from flylab.kernels.gemm.direct import direct_gemm
    from flylab.kernels.gemm.lds_tile import lds_gemm
    from flylab.kernels.gemm.sgemm_tiled import sgemm_tiled

    for op, shape, variant in figures():
        if op == "sgemm":
            n = int(shape.split("^")[0])
            launcher = {"v0_naive": direct_gemm, "v1_lds_tile": lds_gemm}.get(variant, sgemm_tiled)
            names = [TILED[variant]] if variant in TILED else []
            arguments = partial(lambda n, names: (*zeros((n, n), (n, n), (n, n)), *names), n, names)
            yield row(op, shape, variant, launcher, arguments, 2 * n**3, 12 * n**2)


LANES = {"v0_thread_per_row": 1, "v1_4_lanes": 4, "v2_8_lanes": 8, "v3_16_lanes": 16, "v4_wave_per_row": 64}
SPMM = {"v0_scalar": "scalar", "v1_lds_row": "staged", "v2_vec4": "vec4"}


def even_rows(count: int, each: int, columns: int) -> tuple[np.ndarray, ...]:
    """Compressed rows of `each` elements: in random columns in the first 65,536 elements, which workgroups run on, and
    in column 0 in those that are never touched."""
    of, values = np.zeros(count * each, np.int32), np.zeros(count * each, F32)
    of[: 1 << 16] = np.random.default_rng(0).integers(0, columns, min(1 << 16, of.size))
    return np.arange(count + 1, dtype=np.int32) * each, of, values


def sparse_products() -> Iterator[Row]:
    """Rows of one length. How the lengths of the "skewed" matrices are spread was not published."""
    from flylab.kernels.sparse.spmm import spmm
    from flylab.kernels.sparse.spmv import spmv

    for op, shape, variant in figures():
        if op == "spmv" and "skewed" not in shape:
            m, each = 1 << 20, int(shape.split()[2])
            arguments = partial(lambda m, each, lanes: (*even_rows(m, each, m), *zeros((m,), (m,)), lanes),
                                m, each, LANES[variant])
            yield row(op, shape, variant, spmv, arguments, 2 * m * each, 8 * m * each + 4 * (m + 1) + 8 * m)
        if op == "spmm" and "skewed" not in shape:
            m, each, n = 4096, 32, int(shape.split("=")[1])
            arguments = partial(lambda m, each, n, name: (*even_rows(m, each, m), *zeros((m, n), (m, n)), name),
                                m, each, n, SPMM[variant])
            yield row(op, shape, variant, spmm, arguments, 2 * m * each * n,
                      8 * m * each + 4 * (m + 1) + 8 * m * n)


ON_MATRICES = {"f16": ("f2", "f2"), "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
               "fp8": ({"gfx942": ml_dtypes.float8_e4m3fnuz, "gfx950": ml_dtypes.float8_e4m3fn}, ml_dtypes.bfloat16)}
"""Formats of A and B, and of C."""
FP8_LADDER = {"MFMA": "narrow", "wide loads": "wide", "direct to LDS": "direct", "double buffer": "double",
              "256x256": "large"}
SIDES = {1024: 64, 2048: 128}
"""Sides of tiles for which a product of this size has a workgroup for each compute unit; larger ones take 256."""
LARGE = 8192
"""What is taken for a "large" product."""


def large_products() -> Iterator[Row]:
    """Products on matrix instructions: rates of the best kernel there was, of tiles, and of the steps to it."""
    from flylab.kernels.gemm.direct import direct_gemm
    from flylab.kernels.gemm.lds_tile import lds_gemm
    from flylab.kernels.gemm.mfma_lds import mfma_lds
    from flylab.kernels.gemm.preshuffle import preshuffle_gemm

    def operands(m: int, n: int, k: int, formats: tuple[Any, Any], *more: Any, b: str = "NK") -> tuple[Any, ...]:
        (first, second), (result,) = zeros((m, k), (n, k), dtype=formats[0]), zeros((m, n), dtype=formats[1])
        return first, second if b == "NK" else second.T, result, *more

    for op, shape, variant, product, tflops in rates():
        kind = op.split()[1]
        given, out = ON_MATRICES[kind]
        formats = (given[PRODUCTS[product].chip.arch] if isinstance(given, dict) else given), out
        if shape == "large":
            m = n = k = LARGE
            launcher, arguments = preshuffle_gemm, partial(operands, m, n, k, formats, m, n, k)
        elif variant.startswith("tile "):
            tile_m, tile_n = (int(side) for side in variant.split()[1].split("x"))
            m, n, k = 16 * tile_m, 16 * tile_n, 8192
            launcher, arguments = mfma_lds, partial(operands, m, n, k, formats, "large", tile_m, tile_n)
        elif variant in ("naive", "LDS"):
            m = n = k = 4096
            launcher = direct_gemm if variant == "naive" else lds_gemm
            arguments = partial(operands, m, n, k, (formats[0], F32), b="KN")
        elif variant in FP8_LADDER:
            m = n = k = 4096
            launcher, arguments = mfma_lds, partial(operands, m, n, k, formats, FP8_LADDER[variant])
        elif variant == "best":
            m = n = k = int(shape.split("^")[0])
            side = SIDES.get(m, 256)
            launcher, arguments = mfma_lds, partial(operands, m, n, k, formats, "large", side, side)
        else:
            continue
        operations = 2 * m * n * k
        size = (m * k + n * k) * np.dtype(formats[0]).itemsize + m * n * arguments()[2].itemsize
        yield Row(op, shape, variant, product, operations / tflops * 1e-6, launcher, arguments, operations, size)


def rows() -> list[Row]:
    """Every row that kernels/ covers."""
    return [*elementwise(), *reductions(), *matrix_times_vector(), *float32_products(), *sparse_products(),
            *large_products()]


if __name__ == "__main__":
    for each in rows():
        print(f"{each.op:12} {each.shape:24} {each.variant:20} {each.grid:9} workgroups of {each.block:4}, "
              f"{each.operations:.3g} operations, {each.bytes:.3g} bytes, {each.microseconds} us published")
