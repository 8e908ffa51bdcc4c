"""fly-convert-atom-call-to-ssa-form: a copy between two pointers becomes a load of a vector and a store of it.

The side in registers is a plain `fly.ptr_load` or `fly.ptr_store`, the side in memory keeps its atom. A copy past the
registers, from memory to LDS, stays one call. What has a predicate stands in an `scf.if` of it. A matrix product
loads A, B and C from registers and stores D there.

A copy to LDS goes by where the wave's first lane has its destination. Where that lane may be off, in a branch of the
user's, each lane's own less the lanes before it gives the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from flylab.atoms import CopyAtom, mma_atom
from flylab.dialect.operations import attribute, mlir_ir
from flylab.dialect.types import of_mlir
from flylab.passes.regions import branch
from flylab.passes.rewriter import Builder, Pass, erase, operations, parse_type
from flylab.passes.uniform import has_first_lane, is_uniform
from flylab.passes.vectors import vector_type

ALL_PASS = 0x7FF
"""The scheduling mask that lets every sort of instruction pass. Source: LLVM's AMDGPU usage guide."""


@dataclass(frozen=True)
class AtomCallToSsaForm(Pass):
    """See the module's text."""

    name: str = "fly-convert-atom-call-to-ssa-form"

    def run(self, module: Any) -> None:
        """Split each atom call into its load and its store."""
        done: list[Any] = []
        group: _Group | None = None
        for op in operations(module.operation):
            if op.name == "fly.mma_atom_call":
                _multiply(op, Builder(op))
                done.append(op)
            if op.name == "fly.copy_atom_call":
                # Calls that follow each other on the same predicate stand in one branch.
                if group is None or not group.takes(op):
                    group = _Group(op)
                if group.add(op):
                    done.append(op)
            else:
                group = None
        erase(done)


class _Group:
    """Atom calls on one predicate, or on none, that follow each other."""

    def __init__(self, first: Any) -> None:
        self.block, self.pred = first.block, list(first.operands)[2:]
        self.inside = branch(Builder(first), self.pred[0])[0] if self.pred else None

    def takes(self, op: Any) -> bool:
        """Whether a call is on the same predicate, in the same place."""
        return op.block == self.block and list(op.operands)[2:] == self.pred

    def add(self, op: Any) -> bool:
        """Make what a call does, in the branch if there is one; False where the call stays."""
        atom = CopyAtom.parse(attribute(op, "atom"))
        source, target = list(op.operands)[:2]
        inside = self.inside or Builder(op)
        if not atom.op.to_lds:
            _split(inside, atom, source, target)
            return True
        ir = mlir_ir()
        # Before the branch: in it, the first lane that is on need not be the wave's first.
        at = self.inside.before.parent if self.inside else op
        apart = 0 if has_first_lane(at) or is_uniform(target) else atom.op.bits // 8
        if not self.inside and not apart:
            return False
        target = Builder(at).fly("first_lane", [target], [target.type], apart=apart)
        inside.fly("copy_atom_call", [source, target], [], atom=atom)
        # No instruction; without it LLVM makes one copy of those that end two arms, and takes one arm's place for both.
        inside.op("rocdl.sched.barrier", [], mask=ir.IntegerAttr.get(parse_type("i32"), ALL_PASS))
        return True


def _split(builder: Builder, atom: CopyAtom, source: Any, target: Any) -> None:
    kind = vector_type(atom.dtype.mlir, atom.num_values)
    if of_mlir(source.type).space == "register":
        value = builder.fly("ptr_load", [source], [kind])
    else:
        value = builder.fly("copy_atom_load", [source], [kind], atom=atom)
    if of_mlir(target.type).space == "register":
        builder.fly("ptr_store", [value, target], [])
    else:
        builder.fly("copy_atom_store", [value, target], [], atom=atom)


@cache
def _kinds(text: str) -> list[Any]:
    """The types of what a thread holds of A, B and C."""
    atom = mma_atom(text)
    formats = (("A", atom.dtype_a), ("B", atom.dtype_b), ("C", atom.dtype_acc))
    return [vector_type(dtype.mlir, atom.num_values(matrix)) for matrix, dtype in formats]


def _multiply(op: Any, builder: Builder) -> None:
    text = attribute(op, "atom")
    target, *rest = list(op.operands)
    sources, state, kinds = rest[:3], rest[3:], _kinds(text)
    values = [builder.fly("ptr_load", [pointer], [kind]) for pointer, kind in zip(sources, kinds, strict=True)]
    result = builder.fly("mma_atom_call_ssa", [*values, *state], [kinds[2]], atom=text)
    builder.fly("ptr_store", [result, target], [])
