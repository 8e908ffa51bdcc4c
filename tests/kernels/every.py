"""Each kernel of kernels/ in each of its variants, with arguments that are small: `LAUNCHES`, and `compiled`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from flylab.kernels.copy.vector_copy import vector_copy
from flylab.kernels.elementwise import cookbook
from flylab.kernels.elementwise.vector_add import vector_add
from flylab.kernels.gemm import mfma_lds, sgemm_tiled
from flylab.kernels.gemm.direct import direct_gemm
from flylab.kernels.gemm.lds_tile import lds_gemm
from flylab.kernels.gemm.naive import naive_gemm
from flylab.kernels.gemv import sgemv
from flylab.kernels.reduce import grid_stride, tree
from flylab.kernels.sparse import spmm
from flylab.kernels.sparse.rows import compressed
from flylab.kernels.sparse.spmv import spmv

import flylab
import flylab.compiler as flyc
from flylab.runtime.compiled import Compiled

ROOT = Path(__file__).resolve().parents[2]
CHIPS = ("gfx942", "gfx950")
FP8 = {"gfx942": ml_dtypes.float8_e4m3fnuz, "gfx950": ml_dtypes.float8_e4m3fn}
Launch = Callable[[str], tuple[Any, ...]]
"""The launcher and its arguments, made for a chip."""


def f32(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


def empty(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def sparse(rows: int, columns: int) -> Any:
    return compressed(np.where(np.random.default_rng(1).random((rows, columns)) < 0.2, f32(rows, columns), 0))


LADDERS: dict[str, Launch] = {
    "vector add": lambda chip: (vector_add, f32(2048), f32(2048), empty(2048), 4, 2),
    "total": lambda chip: (grid_stride.total, f32(5001), empty(3), empty(1)),
    **{f"tree {name}": lambda chip, name=name, how=how: (tree.tree_sums, f32(1000),
                                                         empty(-(-1000 // 256 // how.loads)), name)
       for name, how in tree.VARIANTS.items()},
    **{f"grid stride {name}": lambda chip, name=name: (grid_stride.grid_stride_sums, f32(9000), empty(3), name)
       for name in grid_stride.VARIANTS},
    **{f"sgemv {name}": lambda chip, name=name: (sgemv.sgemv, f32(9, 260), f32(260), empty(9), name)
       for name in sgemv.VARIANTS},
    "direct": lambda chip: (direct_gemm, f32(20, 9), f32(9, 18), empty(20, 18)),
    "tiles in LDS": lambda chip: (lds_gemm, f32(20, 19), f32(19, 18), empty(20, 18)),
    **{f"sgemm {name}": lambda chip, name=name: (sgemm_tiled.sgemm_tiled, f32(128, 64), f32(64, 128), empty(128, 128),
                                                 name) for name in sgemm_tiled.VARIANTS},
    **{f"mfma {name}": lambda chip, name=name: (mfma_lds.mfma_lds, f32(128, 512).astype(FP8[chip]),
                                                f32(128, 512).astype(FP8[chip]), empty(128, 128), name)
       for name in ("narrow", "wide", "direct", "double")},
    **{f"spmv of {lanes} lanes": lambda chip, lanes=lanes: (spmv, *sparse(50, 70), f32(70), empty(50), lanes)
       for lanes in (1, 8, 64)},
    **{f"spmm {name}": lambda chip, name=name: (spmm.spmm, *sparse(5, 300), f32(300, 68), empty(5, 68), name)
       for name in spmm.VARIANTS},
}
"""The kernels of the ladders."""
PLAIN: dict[str, Launch] = {
    "vector copy": lambda chip: (vector_copy, f32(1024), empty(1024), 4),
    "naive GEMM": lambda chip: (naive_gemm, f32(37, 5), f32(5, 48), empty(37, 48)),
    "cookbook unary": lambda chip: (cookbook.unary, cookbook.relu, f32(2048), empty(2048)),
    "cookbook binary": lambda chip: (cookbook.binary, cookbook.mul, f32(2048), f32(2048), empty(2048)),
    "cookbook ternary": lambda chip: (cookbook.ternary, cookbook.fma, f32(2048), f32(2048), f32(2048), empty(2048)),
}


def _counted() -> dict[str, Launch]:
    """Those whose instructions kernels/README.md counts: their arguments are torch's tensors."""
    sys.path += [str(ROOT / "tests/benchmarks/cold")]
    from cases import CASES

    return {case.title: lambda chip, case=case: (case.launcher, *case.arguments(chip)) for case in CASES.values()}


LAUNCHES = {**LADDERS, **PLAIN, **_counted()}


@cache
def compiled(name: str, chip: str) -> Compiled:
    """The compilation of one of `LAUNCHES` for a chip."""
    with flylab.use(chip):
        launcher, *arguments = LAUNCHES[name](chip)
        made: Compiled = flyc.compile(launcher, *arguments)
        return made
