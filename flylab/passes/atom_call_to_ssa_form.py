"""fly-convert-atom-call-to-ssa-form: a copy between two pointers becomes a load of a vector and a store of it.

The side in registers is a plain `fly.ptr_load` or `fly.ptr_store`, the side in memory keeps its atom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.atoms import CopyAtom
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
        calls = [op for op in operations(module.operation) if op.name == "fly.copy_atom_call"]
        for op in calls:
            atom = CopyAtom.parse(attribute(op, "atom"))
            source, target = op.operands
            builder = Builder(op)
            kind = vector_type(atom.dtype.mlir, atom.num_values)
            if of_mlir(source.type).space == "register":
                value = builder.fly("ptr_load", [source], [kind])
            else:
                value = builder.fly("copy_atom_load", [source], [kind], atom=atom)
            if of_mlir(target.type).space == "register":
                builder.fly("ptr_store", [value, target], [])
            else:
                builder.fly("copy_atom_store", [value, target], [], atom=atom)
        erase(calls)
