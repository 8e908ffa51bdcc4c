"""The kernels of the ladders on both chips under all checks: no race or missing wait, nothing undefined or outside."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from flylab.kernels.elementwise.vector_add import vector_add
from flylab.kernels.gemm import mfma_lds, sgemm_tiled
from flylab.kernels.gemm.direct import direct_gemm
from flylab.kernels.gemm.lds_tile import lds_gemm
from flylab.kernels.gemv import sgemv
from flylab.kernels.reduce import grid_stride, tree
from flylab.kernels.sparse import spmm
from flylab.kernels.sparse.rows import compressed
from flylab.kernels.sparse.spmv import spmv

import flylab
from flylab.errors import CheckError

FP8 = {"gfx942": ml_dtypes.float8_e4m3fnuz, "gfx950": ml_dtypes.float8_e4m3fn}


def f32(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


def empty(*shape):
    return np.zeros(shape, np.float32)


def sparse(rows, columns):
    return compressed(np.where(np.random.default_rng(1).random((rows, columns)) < 0.2, f32(rows, columns), 0))


LAUNCHES = {
    "vector add": lambda chip: vector_add(f32(2048), f32(2048), empty(2048), 4, 2),
    "total": lambda chip: grid_stride.total(f32(5001), empty(3), empty(1)),
    **{f"tree {name}": lambda chip, name=name, how=how: tree.tree_sums(f32(1000), empty(-(-1000 // 256 // how.loads)),
                                                                      name) for name, how in tree.VARIANTS.items()},
    **{f"grid stride {name}": lambda chip, name=name: grid_stride.grid_stride_sums(f32(9000), empty(3), name)
       for name in grid_stride.VARIANTS},
    **{f"sgemv {name}": lambda chip, name=name: sgemv.sgemv(f32(9, 260), f32(260), empty(9), name)
       for name in sgemv.VARIANTS},
    "direct": lambda chip: direct_gemm(f32(20, 9), f32(9, 18), empty(20, 18)),
    "tiles in LDS": lambda chip: lds_gemm(f32(20, 19), f32(19, 18), empty(20, 18)),
    **{f"sgemm {name}": lambda chip, name=name: sgemm_tiled.sgemm_tiled(f32(128, 64), f32(64, 128), empty(128, 128),
                                                                        name) for name in sgemm_tiled.VARIANTS},
    **{f"mfma {name}": lambda chip, name=name: mfma_lds.mfma_lds(
        f32(128, 512).astype(FP8[chip]), f32(128, 512).astype(FP8[chip]), empty(128, 128), name)
       for name in ("narrow", "wide", "direct", "double")},
    **{f"spmv of {lanes} lanes": lambda chip, lanes=lanes: spmv(*sparse(50, 70), f32(70), empty(50), lanes)
       for lanes in (1, 8, 64)},
    **{f"spmm {name}": lambda chip, name=name: spmm.spmm(*sparse(5, 300), f32(300, 68), empty(5, 68), name)
       for name in spmm.VARIANTS},
}


@pytest.mark.parametrize("chip", FP8)
@pytest.mark.parametrize("name", LAUNCHES)
def test_nothing_is_found(name, chip):
    with flylab.use(chip), flylab.watch(check="all"):
        LAUNCHES[name](chip)                                    # a finding is a CheckError


@pytest.mark.parametrize("kernel, name", [(sgemm_tiled, "sgemm ping_pong"), (tree, "tree halving"),
                                          (mfma_lds, "mfma double"), (spmm, "spmm staged")])
def test_without_its_barriers_a_kernel_has_races(kernel, name, monkeypatch):
    monkeypatch.setattr(kernel, "gpu", SimpleNamespace(barrier=lambda: None, thread_id=kernel.gpu.thread_id,
                                                       block_id=kernel.gpu.block_id))
    with flylab.use("gfx942"), flylab.watch(check="all"), pytest.raises(CheckError, match="race"):
        LAUNCHES[name]("gfx942")
