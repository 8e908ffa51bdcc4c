"""fly-take-kernels: the kernels leave their gpu.module for the top of the module; the launcher is dropped.

What the launcher does on the host was read before (`flylab.passes.host`); from here on there is only device code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.passes.rewriter import Pass


@dataclass(frozen=True)
class TakeKernels(Pass):
    """See the module's text."""

    name: str = "fly-take-kernels"

    def run(self, module: Any) -> None:
        """Move the functions of each gpu.module up, and erase all else."""
        top = module.body
        for op in list(top.operations):
            if op.operation.name == "gpu.module":
                for inner in list(op.operation.regions[0].blocks[0].operations):
                    if inner.operation.name.startswith("llvm."):
                        inner.operation.move_before(op.operation)
        for op in list(top.operations):
            if not op.operation.name.startswith("llvm."):
                op.operation.erase()
        for name in [n for n in ("gpu.container_module",) if n in module.operation.attributes]:
            del module.operation.attributes[name]
