"""The way from traced IR to LLVM's dialect: the steps in order, and running them with or without a recording.

The names and the order are the reference's. Each step is a pass of ours or a textual pipeline of upstream passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.errors import CompileError
from flylab.passes.align_pointer_arguments import AlignPointerArguments
from flylab.passes.atom_call_to_ssa_form import AtomCallToSsaForm
from flylab.passes.canonicalize import Canonicalize
from flylab.passes.convert_fly_to_rocdl import ConvertFlyToRocdl
from flylab.passes.expand_math import ExpandMath
from flylab.passes.host import HostProgram, read_host
from flylab.passes.int_swizzle_simplify import IntSwizzleSimplify
from flylab.passes.layout_lowering import LayoutLowering
from flylab.passes.promote_regmem import PromoteRegmem
from flylab.passes.recording import Stage
from flylab.passes.rewrite_func_signature import RewriteFuncSignature
from flylab.passes.rewriter import Pass, source_line
from flylab.passes.take_kernels import TakeKernels
from flylab.targets import Target


@dataclass(frozen=True)
class Upstream:
    """A step of MLIR's own passes, as a textual pipeline; `{arch}` stands for the chip."""

    name: str
    pipeline: str


STEPS: tuple[Pass | Upstream, ...] = (
    RewriteFuncSignature(),
    Canonicalize(),
    LayoutLowering(),
    IntSwizzleSimplify(),
    ExpandMath(),
    Upstream("canonicalize", "canonicalize"),
    AtomCallToSsaForm(),
    PromoteRegmem(),
    ConvertFlyToRocdl(),
    Upstream("canonicalize-2", "canonicalize"),
    Upstream(
        "convert-scf-to-cf, cse, convert-gpu-to-rocdl",
        "gpu.module(convert-scf-to-cf,cse,convert-gpu-to-rocdl{{chipset={arch} runtime=HIP}})",
    ),
    TakeKernels(),
    AlignPointerArguments(),
    Upstream(
        "convert to LLVM",
        "convert-cf-to-llvm,convert-vector-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,"
        "convert-ub-to-llvm,reconcile-unrealized-casts",
    ),
    Upstream(
        "ensure-debug-info-scope-on-llvm-func", "ensure-debug-info-scope-on-llvm-func{{emission-kind=LineTablesOnly}}"
    ),
)
HOST_IS_READ_BEFORE = TakeKernels


def run(module: Any, target: Target, stages: list[Stage] | None = None, file: str = "") -> HostProgram:
    """Run every step on a traced module, in place (in the entered MLIR context); what its launcher does on the host.

    With `stages`, the text after each step is appended to it, its lines linked to the Python file `file`. Raises
    `CompileError` where a step refuses.
    """
    host = HostProgram()
    before = stages[-1].text if stages else ""
    for step in STEPS:
        if isinstance(step, HOST_IS_READ_BEFORE):
            host = read_host(module)
        _run_step(step, module, target)
        if stages is not None:
            stages.append(stage_of(step.name, module, before, file))
            before = stages[-1].text
    return host


def _run_step(step: Pass | Upstream, module: Any, target: Target) -> None:
    if isinstance(step, Pass):
        step.for_chip(target).run(module)
        return
    from mlir.ir import MLIRError
    from mlir.passmanager import PassManager

    try:
        passes = PassManager.parse(f"builtin.module({step.pipeline.format(arch=target.arch)})")
        passes.enable_verifier(False)  # which would run after each of the passes: once after them all is enough
        passes.run(module.operation)
        module.operation.verify()
    except MLIRError as error:
        first = error.error_diagnostics[0] if error.error_diagnostics else None
        raise CompileError(
            f"{step.name}: {first.message if first else error}",
            where=source_line(first.location) if first else None,
            hint="this kernel's IR is not accepted by MLIR: please report it",
        ) from None


def stage_of(name: str, module: Any, before: str | None, file: str) -> Stage:
    """The module's text as a stage, each line with the line of the Python file `file` that it came from."""
    from flylab.passes.printing import text_with_lines

    text, lines = text_with_lines(module, file)
    return Stage(name, "mlir", text, lines, changed=before is None or text != before)
