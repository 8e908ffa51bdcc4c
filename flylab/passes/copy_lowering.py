"""Copies of views become calls of single atoms: a part of fly-layout-lowering."""

from __future__ import annotations

from typing import Any

from flylab.atoms import CopyAtom
from flylab.dialect.operations import attribute
from flylab.dialect.types import Ptr, of_mlir
from flylab.layout import size
from flylab.passes.rewriter import Builder
from flylab.passes.vectors import element, vector_type


def lower_copy(lowering: Any, op: Any, builder: Builder) -> None:
    """`fly.copy`: atom after atom, in the order of the coordinates of both views."""
    atom = CopyAtom.parse(attribute(op, "atom"))
    source, target, *pred = op.operands
    ends = [(lowering.bound(builder, view), lowering.pointer[view]) for view in (source, target)]
    count = size(ends[0][0]) // atom.num_values
    flag = _flags(lowering, builder, pred, count)
    _calls(builder, atom, [
        [*[lowering.moved(builder, pointer, layout(i * atom.num_values)) for layout, pointer in ends], *flag(i)]
        for i in range(count)
    ])  # fmt: skip


def lower_scattered(lowering: Any, op: Any, builder: Builder) -> None:
    """`fly.gather` and `fly.scatter`: as a copy, whose side far away has an offset of its own for each atom."""
    atom = CopyAtom.parse(attribute(op, "atom"))
    base, offsets, view, *pred = op.operands
    layout, pointer = lowering.bound(builder, view), lowering.pointer[view]
    spec: Ptr = of_mlir(base.type)
    count = size(layout) // atom.num_values
    flag = _flags(lowering, builder, pred, count)
    calls = []
    for i in range(count):
        offset = _number(lowering, builder, offsets, i)
        if spec.space == "buffer" and str(offset.type) == "i32":
            # In bytes it may be beyond 32 bits, and outside of the buffer: 64 say so.
            offset = builder.op("arith.extsi", [offset], "i64")
        far = builder.fly("add_offset", [base, offset], [Ptr(spec.dtype, spec.space)])
        near = lowering.moved(builder, pointer, layout(i * atom.num_values))
        ends = (far, near) if op.name == "fly.gather" else (near, far)
        calls.append([*ends, *flag(i)])
    _calls(builder, atom, calls)


def _calls(builder: Builder, atom: CopyAtom, calls: list[list[Any]]) -> None:
    """The calls one after the other, with nothing between them: those on one predicate share a branch."""
    for operands in calls:
        builder.fly("copy_atom_call", operands, [], atom=atom)


def _flags(lowering: Any, builder: Builder, pred: list[Any], count: int) -> Any:
    """The predicate of call i of `count`, as operands: none, the one Boolean, or an element of a view of Booleans, each
    of which may be for several calls that follow each other."""
    if not pred:
        return lambda i: []
    if of_mlir(pred[0].type) is None:
        return lambda i: pred
    calls = count // size(lowering.bound(builder, pred[0]))
    found: dict[int, Any] = {}

    def flag(i: int) -> list[Any]:
        place = i // calls
        if place not in found:
            found[place] = _number(lowering, builder, pred[0], place)
        return [found[place]]

    return flag


def _number(lowering: Any, builder: Builder, view: Any, index: int) -> Any:
    """Element `index` of a view, in the order of its coordinates."""
    spec = of_mlir(view.type)
    place = lowering.moved(builder, lowering.pointer[view], lowering.bound(builder, view)(index))
    return element(builder, builder.fly("ptr_load", [place], [vector_type(spec.dtype.mlir, 1)]), 0)
