"""The kernels that are compiled beside the published wheel: launcher and arguments of each, in both interpreters.

`bench_cold_compile.py` times them and `isa_table.py` counts their instructions. What the launchers are made of is the
text of kernels/ and of this folder, in the peer's copy with its package's name in the imports.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

F16, BF16, F32, I8, I32 = torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int32
F8 = {"gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}


@dataclass(frozen=True)
class Case:
    """A launcher (`module.name`) and its arguments, which are made for a chip."""

    title: str
    module: str
    name: str
    arguments: Callable[[str], tuple[Any, ...]]

    @property
    def launcher(self) -> Any:
        return getattr(importlib.import_module(self.module), self.name)


def ones(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    return torch.ones(shape).to(dtype)


def vectors(count: int, *numbers: int) -> Callable[[str], tuple[Any, ...]]:
    """`count` vectors of 4096, and numbers."""
    return lambda chip: (*(ones(4096) for _ in range(count)), 4096, *numbers)


def matrices(dtype: torch.dtype, vec: int) -> Callable[[str], tuple[Any, ...]]:
    """Two matrices of (64, 256), their shape, and VEC (0: none)."""
    return lambda chip: (ones(64, 256, dtype=dtype), ones(64, 256, dtype=dtype), 64, 256, *([vec] if vec else []))


def gemm(dtype: Any, out: torch.dtype, k: int, scaled: bool = False) -> Callable[[str], tuple[Any, ...]]:
    """A (256, k), B (256, k) and C (256, 256), with scales of rows and columns where they are asked for."""

    def arguments(chip: str) -> tuple[Any, ...]:
        kind = F8[chip] if dtype is F8 else dtype
        operands = ones(256, k, dtype=kind), ones(256, k, dtype=kind), ones(256, 256, dtype=out)
        return (*operands, *([ones(256), ones(256)] if scaled else []), 256, 256, k)

    return arguments


STEPS = Case("a loop with 40 unrolled steps of two vectors", "unrolled", "launch_steps", vectors(3))
TILED, TRANSPOSE = "flylab.kernels.copy.tiled_copy", "flylab.kernels.copy.transpose_swizzled"
MMA, PRESHUFFLE = "flylab.kernels.gemm.tiled_mma", "flylab.kernels.gemm.preshuffle"
CASES = {
    "add": Case("vector add f32, 1 element a thread", "vector_add", "launch_scalar", vectors(3)),
    "add4": Case("vector add f32, 4 elements a thread", "vector_add", "launch_wide", vectors(3)),
    "copy": Case("vector copy f32, 4 elements a thread", "vector_copy", "launch_copy", vectors(2, 4)),
    "tiled": Case("tiled copy f32", TILED, "tiled_copy", matrices(F32, 4)),
    "tiled16": Case("tiled copy f16", TILED, "tiled_copy", matrices(F16, 8)),
    "transpose": Case("transpose f32 through LDS", TRANSPOSE, "transpose", matrices(F32, 0)),
    "transpose16": Case("transpose f16 through LDS", TRANSPOSE, "transpose", matrices(F16, 0)),
    "mma": Case("tiled MMA f16", MMA, "tiled_mma", gemm(F16, F32, 256)),
    "mma_bf16": Case("tiled MMA bf16", MMA, "tiled_mma", gemm(BF16, F32, 256)),
    "mma32": Case("tiled MMA f32", MMA, "tiled_mma", gemm(F32, F32, 256)),
    "preshuffle": Case("preshuffle GEMM f16", PRESHUFFLE, "preshuffle_gemm", gemm(F16, F16, 512)),
    "preshuffle_bf16": Case("preshuffle GEMM bf16", PRESHUFFLE, "preshuffle_gemm", gemm(BF16, BF16, 512)),
    "preshuffle_fp8": Case("preshuffle GEMM fp8 to bf16, scaled", PRESHUFFLE, "preshuffle_gemm_scaled",
                           gemm(F8, BF16, 1024, scaled=True)),
    "preshuffle_i8": Case("preshuffle GEMM int8 to int32", PRESHUFFLE, "preshuffle_gemm", gemm(I8, I32, 1024)),
    "preshuffle_i8_f16": Case("preshuffle GEMM int8 to f16, scaled", PRESHUFFLE, "preshuffle_gemm_scaled",
                              gemm(I8, F16, 1024, scaled=True)),
}
"""What `isa_table.py` lists. STEPS is not among them: the peer fuses its products with its sums, and ours may not."""
EVERY = {**CASES, "steps": STEPS}
