"""fly.mma_atom_call_ssa in convert-fly-to-rocdl: a matrix product becomes LLVM's intrinsic of its instruction."""

from __future__ import annotations

from typing import Any

from flylab.atoms import MmaAtom, mma_atom
from flylab.atoms.mma_intrinsics import intrinsic
from flylab.dialect.operations import attribute
from flylab.mfma import FORMATS
from flylab.passes.rewriter import Builder, parse_type
from flylab.passes.vectors import element, vector_type


def multiplied(op: Any, builder: Builder) -> Any:
    """The value of a matrix product, made before it."""
    atom = mma_atom(attribute(op, "atom"))
    assert atom.op.row is not None  # of one thread: expanded before
    row = intrinsic(atom.op.row)
    a, b, c, *state = op.operands
    operands = [_as_type(builder, value, kind) for value, kind in ((a, row.a), (b, row.b), (c, row.c))]
    result = builder.intrinsic(row.name, [*operands, *_modifiers(atom, builder, state)], row.c)
    return _as_type(builder, result, str(op.results[0].type))


def _as_type(builder: Builder, value: Any, kind: str) -> Any:
    """The bits of a vector or number as another type."""
    if value.type == parse_type(kind):
        return value
    maker = value.owner
    if getattr(maker, "name", "") == "vector.bitcast" and str(maker.operands[0].type) == kind:
        return maker.operands[0]  # words that were read as elements below 8 bits, which are costly to take apart
    if not str(value.type).startswith("vector"):
        return builder.op("vector.from_elements", [value], kind)
    if kind.startswith("vector"):
        return builder.op("vector.bitcast", [value], kind)
    one = vector_type(kind, 1)
    return element(builder, value if value.type == one else builder.op("vector.bitcast", [value], one), 0)


def _modifiers(atom: MmaAtom, builder: Builder, state: list[Any]) -> list[Any]:
    """What follows the matrices: the state, and the numbers in the instruction."""
    row = atom.op.row
    assert row is not None
    zero = builder.constant(0)
    if row.sparse:
        (index,), (abid,) = state, atom.op.options
        return [index, zero, builder.constant(abid)]  # cbsz 0: abid picks the part of the index
    if not row.mixed:
        return [zero, zero, zero]  # cbsz, abid, blgp
    formats = [builder.constant(FORMATS.index(kind)) for kind in (row.a_type, row.b_type)]
    # With scales of a known 0 LLVM takes the instruction without scales.
    scales = state or [zero, zero]
    parts = [builder.constant(part) for part in atom.op.options or (0, 0)]
    return [*formats, parts[0], scales[0], parts[1], scales[1]]
