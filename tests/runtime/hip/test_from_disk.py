"""A launch through HIP of what is on disk: the code object is loaded as it is there, and nothing is made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
from tests.runtime.cache.on_disk import defined
from tests.runtime.hip.standin import StandIn

TEXT = """
@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        B[i] = A[i] + B[i]

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    add(A, B, n).launch(grid=(fx.ceildiv(n, 64),), block=64)
"""


def test_nothing_is_made_anew(hip: StandIn, disk_cache: Path) -> None:
    """Neither passes nor LLVM nor a linker are used; in another cell, the places in the code object are made anew."""
    def sums(launcher: Any) -> str:
        a, b = np.arange(200, dtype="f4"), np.ones(200, "f4")
        with flylab.use("hip"):
            kept: str = launcher(a, b, 150).compiled.kept
        assert np.array_equal(b, np.where(np.arange(200) < 150, a + 1, 1))
        return kept

    assert sums(defined("<notebook 1>", TEXT)) == "kept on disk"
    image = hip.calls("hipModuleLoadData")

    def again(*_: Any, **__: Any) -> Any:
        raise AssertionError("made again")

    with pytest.MonkeyPatch.context() as patch:
        for what in ("flylab.runtime.finding.build", "flylab.codegen.amdgpu.optimise", "flylab.passes.pipeline.run",
                     "flylab.codegen.hsaco.run_tool"):
            patch.setattr(what, again)
        assert sums(defined("<notebook 1>", TEXT)) == "read from disk"
    assert len(hip.calls("hipModuleLoadData")) == 2 * len(image)
    assert sums(defined("<notebook 2>", TEXT)) == "read from disk"
