"""fly-expand-math: functions of the `math` dialect become arithmetic, by the recipes of `flylab.mathlib`.

After it kernels hold no function that LLVM's code generator for AMD lacks (it would end the process), none that MLIR
would hand to ROCm's device library, and none that MLIR would fold with the host's own. It stands before the first of
MLIR's passes for that reason. Functions in a launcher are left, for the error that names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.mathlib import simple
from flylab.mathlib.functions import FUNCTIONS
from flylab.mathlib.logarithm import fpowi
from flylab.passes.math_terms import Term, Terms
from flylab.passes.rewriter import Pass, function_of, operations
from flylab.passes.vectors import shape_of


@dataclass(frozen=True)
class ExpandMath(Pass):
    """See the module's text."""

    name: str = "fly-expand-math"

    def run(self, module: Any) -> None:
        """Replace each function in kernels, in program order."""
        for op in [op for op in operations(module.operation) if op.name.startswith("math.")]:
            if function_of(op).name == "gpu.func":
                _expand(op)


def _expand(op: Any) -> None:
    from mlir import ir

    name = op.name.removeprefix("math.")
    lanes, kind = _shape(op.operands[0])
    row = FUNCTIONS.get(name)
    if row and kind in row.steps or not row and name not in ("fpowi", "ipowi"):
        return
    machine = Terms(ir.InsertionPoint(op), op.location, lanes)
    operands = [Term(machine, v, _shape(v)[1], lanes) for v in op.operands]
    if row:
        native = "fastmath" in op.attributes and _approximate(str(op.attributes["fastmath"]))
        results = row(machine, tuple(operands), kind, native)
    elif name == "fpowi":
        results = (machine.to(fpowi(machine, machine.to(operands[0], "f32"), operands[1]), kind),)
    else:
        results = (simple.ipowi(machine, *operands),)
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new.value)
    op.erase()


def _shape(value: Any) -> tuple[int, str]:
    """The lanes (0 for a scalar) and the element type of a value."""
    return shape_of(value) if str(value.type).startswith("vector<") else (0, str(value.type))


def _approximate(flags: str) -> bool:
    """Whether `#arith.fastmath<...>` has afn."""
    names = flags.partition("<")[2].rstrip(">").split(",")
    return "afn" in names or "fast" in names
