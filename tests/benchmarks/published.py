"""The published results that kernels/ covers: for each row the launch at its published size, its work and its bytes.

Nothing of a published size is run whole. A row's arrays are asked for and never written, so that they take no memory
until a workgroup touches them; the launch is compiled as it is, and `Row.run(groups)` runs its first workgroups on the
software device. So instructions, trip counts and addresses are those of the published launch, and what a model needs
beside them is how often: `Row.grid` workgroups in all.

The figures are those of tests/data/published_mi350x_ladder.csv. `Row.bytes`
counts each byte of the operands once; `Row.operations` what the published metric counts.

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

import numpy as np

import flylab
from flylab.passes.host import Launch
from flylab.runtime import launch as launching
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import current

DATA = Path(__file__).resolve().parents[1] / "data"
F32 = np.float32


@dataclass(frozen=True)
class Row:
    """A published row, and how to launch the kernel that covers it at the size of the row."""

    op: str
    shape: str
    variant: str
    chip: str
    microseconds: float
    """The published time."""
    launcher: Any
    arguments: Callable[[], tuple[Any, ...]]
    """The launcher's arguments at the published size; arrays are untouched zeros."""
    operations: int
    """Arithmetic operations that the result needs (a multiply and an add are two)."""
    bytes: int
    """Bytes of memory that the result needs, each of them once."""

    @cached_property
    def _bound(self) -> Any:
        return launching._bind(self.launcher, self.arguments(), {})

    @cached_property
    def compiled(self) -> Compiled:
        """The compilation for the published size and the row's chip."""
        with flylab.use(self.chip):
            return launching.find(self.launcher, self._bound, current())

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """What the launcher launches at the published size: kernels, grids, blocks."""
        values = [value for b in self._bound for value in b.operands()] + [0]
        return tuple(step for step in self.compiled.host.steps(values) if isinstance(step, Launch))

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
        memories = [b.memory for b in self._bound if b.memory is not None]
        with flylab.use(self.chip):
            return tuple(launching._launch(self.compiled, first(step, groups), memories) for step in self.launches)


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


def row(op: str, shape: str, variant: str, launcher: Any, arguments: Callable[[], tuple[Any, ...]],
        operations: int, bytes: int) -> Row:
    """A row of the ladder, which was published for gfx950."""
    published = figures()[op, shape, variant]
    return Row(op, shape, variant, "gfx950", float(published["us"]), launcher, arguments, operations, bytes)


def zeros(*shapes: tuple[int, ...], dtype: Any = F32) -> tuple[np.ndarray, ...]:
    """Arrays of these shapes, whose memory the system gives when it is touched."""
    return tuple(np.zeros(shape, dtype) for shape in shapes)


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
    from flylab.kernels.gemm.sgemm_direct import sgemm_direct
    from flylab.kernels.gemm.sgemm_lds import sgemm_lds
    from flylab.kernels.gemm.sgemm_tiled import sgemm_tiled

    for op, shape, variant in figures():
        if op == "sgemm":
            n = int(shape.split("^")[0])
            launcher = {"v0_naive": sgemm_direct, "v1_lds_tile": sgemm_lds}.get(variant, sgemm_tiled)
            names = [TILED[variant]] if variant in TILED else []
            arguments = partial(lambda n, names: (*zeros((n, n), (n, n), (n, n)), *names), n, names)
            yield row(op, shape, variant, launcher, arguments, 2 * n**3, 12 * n**2)


def rows() -> list[Row]:
    """Every row that kernels/ covers."""
    return [*elementwise(), *reductions(), *matrix_times_vector(), *float32_products()]


if __name__ == "__main__":
    for each in rows():
        print(f"{each.op:12} {each.shape:24} {each.variant:20} {each.grid:9} workgroups of {each.block:4}, "
              f"{each.operations:.3g} operations, {each.bytes:.3g} bytes, {each.microseconds} us published")
