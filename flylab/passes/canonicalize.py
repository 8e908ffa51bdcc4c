"""fly-canonicalize: fold, share and drop Fly operations, which the upstream passes leave alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.dialect.operations import OPERATIONS
from flylab.passes.rewriter import Pass, attributes_of, operations, unused

# An operation of the left kind applied to the result of one of the right kind gives that one's operand.
INVERSES = {"fly.get_iter": "fly.make_view", "fly.to_llvm_ptr": "fly.from_llvm_ptr"}


@dataclass(frozen=True)
class Canonicalize(Pass):
    """See the module's text."""

    name: str = "fly-canonicalize"

    def run(self, module: Any) -> None:
        """Fold and share going forward, then drop what is not used going backward."""
        ops = [op for op in operations(module.operation) if op.name in OPERATIONS]
        known: dict[Any, Any] = {}
        for op in ops:
            if OPERATIONS[op.name].effect == "none":
                _fold(op)
                _share(op, known)
        for op in reversed(ops):
            if OPERATIONS[op.name].effect != "writes" and unused(op):
                op.erase()


def _fold(op: Any) -> None:
    inner = INVERSES.get(op.name)
    if inner is None:
        return
    maker = op.operands[0].owner
    # The owner of a block argument is its block, which has no name.
    if getattr(maker, "name", None) == inner and maker.operands[0].type == op.results[0].type:
        op.results[0].replace_all_uses_with(maker.operands[0])


def _share(op: Any, known: dict[Any, Any]) -> None:
    key = (op.name, op.block, tuple(op.operands), attributes_of(op), op.results[0].type)
    first = known.setdefault(key, op)
    if first is not op:
        op.results[0].replace_all_uses_with(first.results[0])
