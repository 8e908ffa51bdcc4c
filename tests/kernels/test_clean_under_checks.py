"""The kernels of the ladders on both chips under all checks: no race or missing wait, nothing undefined or outside."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from flylab.kernels.gemm import mfma_lds, sgemm_tiled
from flylab.kernels.reduce import tree
from flylab.kernels.sparse import spmm

import flylab
from flylab.errors import CheckError

pytest.importorskip("torch")  # some of the launches pass its tensors

from tests.kernels.every import CHIPS, LADDERS  # noqa: E402


def run(name, chip):
    launcher, *arguments = LADDERS[name](chip)
    launcher(*arguments)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", LADDERS)
def test_nothing_is_found(name, chip):
    with flylab.use(chip), flylab.watch(check="all"):
        run(name, chip)                                         # a finding is a CheckError


@pytest.mark.parametrize("kernel, name", [(sgemm_tiled, "sgemm ping_pong"), (tree, "tree halving"),
                                          (mfma_lds, "mfma double"), (spmm, "spmm staged")])
def test_without_its_barriers_a_kernel_has_races(kernel, name, monkeypatch):
    monkeypatch.setattr(kernel, "gpu", SimpleNamespace(barrier=lambda: None, thread_id=kernel.gpu.thread_id,
                                                       block_id=kernel.gpu.block_id))
    with flylab.use("gfx942"), flylab.watch(check="all"), pytest.raises(CheckError, match="race"):
        run(name, "gfx942")
