"""fly-convert-atom-call-to-ssa-form: a copy between two pointers becomes a load of a vector and a store of it.

The side in registers is a plain `fly.ptr_load` or `fly.ptr_store`, the side in memory keeps its atom. A matrix product
loads A, B and C from registers and stores D there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.atoms import CopyAtom, mma_atom
from flylab.dialect.operations import attribute
from flylab.dialect.types import of_mlir
from flylab.passes.rewriter import Builder, Pass, erase, operations
from flylab.passes.vectors import vector_type


@dataclass(frozen=True)
class AtomCallToSsaForm(Pass):
    """See the module's text."""

    name: str = "fly-convert-atom-call-to-ssa-form"

    def run(self, module: Any) -> None:
        """Split each atom call into its load and its store."""
        calls = [(RULES[op.name], op) for op in operations(module.operation) if op.name in RULES]
        for rule, op in calls:
            rule(op, Builder(op))
        erase([op for _, op in calls])


def _copy(op: Any, builder: Builder) -> None:
    atom = CopyAtom.parse(attribute(op, "atom"))
    source, target = op.operands
    kind = vector_type(atom.dtype.mlir, atom.num_values)
    if of_mlir(source.type).space == "register":
        value = builder.fly("ptr_load", [source], [kind])
    else:
        value = builder.fly("copy_atom_load", [source], [kind], atom=atom)
    if of_mlir(target.type).space == "register":
        builder.fly("ptr_store", [value, target], [])
    else:
        builder.fly("copy_atom_store", [value, target], [], atom=atom)


def _multiply(op: Any, builder: Builder) -> None:
    text = attribute(op, "atom")
    atom = mma_atom(text)
    target, *sources = list(op.operands)[:4]
    kinds = [vector_type(dtype.mlir, atom.num_values(matrix)) for matrix, dtype in
             (("A", atom.dtype_a), ("B", atom.dtype_b), ("C", atom.dtype_acc))]
    values = [builder.fly("ptr_load", [pointer], [kind]) for pointer, kind in zip(sources, kinds, strict=True)]
    result = builder.fly("mma_atom_call_ssa", [*values, *list(op.operands)[4:]], [kinds[2]], atom=text)
    builder.fly("ptr_store", [result, target], [])


RULES = {"fly.copy_atom_call": _copy, "fly.mma_atom_call": _multiply}
