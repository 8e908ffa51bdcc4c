"""The sizes of the block and of the grid, read from the arguments that the runtime adds to a kernel's own.

MLIR's own lowering calls ROCm's device library for them, which is not linked in.
"""

from __future__ import annotations

from typing import Any

from flylab.dialect.types import KERNARG
from flylab.passes.rewriter import Builder, axis_of

GRID, BLOCK = (0, "i32", 4), (12, "i16", 2)
"""Offset in bytes, type and distance of the three sizes. Source: LLVM's AMDGPU usage guide, code object v5, hidden
kernel arguments hidden_block_count_x and hidden_group_size_x."""


def read_size(op: Any, builder: Builder) -> None:
    """Replace a `gpu.block_dim` or `gpu.grid_dim` by the load of its hidden argument."""
    from mlir import ir

    offset, kind, step = BLOCK if op.name == "gpu.block_dim" else GRID
    base = builder.intrinsic("llvm.amdgcn.implicitarg.ptr", [], KERNARG)
    place = builder.op(
        "llvm.getelementptr",
        [base],
        KERNARG,
        rawConstantIndices=ir.DenseI32ArrayAttr.get([offset + axis_of(op) * step]),
        elem_type=ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
    )
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), step)
    size = builder.op("llvm.load", [place], kind, alignment=alignment)
    op.results[0].replace_all_uses_with(builder.op("arith.index_castui", [size], ir.IndexType.get()))
