"""Branches and loops around matrix products, in convert-fly-to-rocdl: a wave goes one way as a whole.

A matrix instruction takes and sets the registers of all lanes, whichever are switched on. Where the condition of a
branch around it, or the count of a loop, is not known to be the same for all lanes of a wave, that is checked on the
device, and the first lane's value decides: so LLVM makes a scalar branch, which a wave that does not go there leaves
out. (It would else switch the lanes off, and go over a short block with none on: the registers would change.)

    %first = rocdl.readfirstlane %condition
    fly.check %condition == %first
    scf.if %first { ... }
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flylab.dialect.operations import WHOLE_WAVES
from flylab.passes.regions import STRUCTURED, deciding, end_of
from flylab.passes.rewriter import Builder, function_of, operations, parse_type
from flylab.passes.uniform import is_uniform

MATRIX = ("llvm.amdgcn.mfma", "llvm.amdgcn.smfmac")


def keep_waves_whole(module: Any) -> None:
    """Make the branches and loops around each matrix product those of whole waves."""
    ops = operations(module.operation)
    if not any(op.name == "gpu.func" and WHOLE_WAVES in op.attributes for op in ops):
        return
    done: set[Any] = set()
    for op in ops:
        if _is_matrix(op):
            for around in _around(op, done):
                _decide_together(around)
    for op in ops:
        if op.name == "gpu.func" and WHOLE_WAVES in op.attributes:
            del op.attributes[WHOLE_WAVES]


def _is_matrix(op: Any) -> bool:
    if op.name == "llvm.call_intrinsic":
        return str(op.attributes["intrin"].value).startswith(MATRIX)
    return bool(op.name == "fly.mma_atom_call_ssa")


def _around(op: Any, done: set[Any]) -> Iterator[Any]:
    """The control flow around an operation, inner before outer, as far as it was not given before for its block."""
    block, around = op.block, op.parent
    while around.name in STRUCTURED and block not in done:
        done.add(block)
        yield around.operation
        block, around = around.operation.block, around.operation.parent


def _decide_together(op: Any) -> None:
    number = function_of(op).attributes[WHOLE_WAVES].value
    holder = end_of(op) if op.name == "scf.while" else op
    for index, value in enumerate(deciding(op)):
        if is_uniform(value, by_bits=False):
            continue
        builder = Builder(holder)
        first = _first_lane(builder, value)
        if not is_uniform(value):
            alike = _compare(builder, value, first)
            builder.fly("check", [alike], [], number=number, message="whole waves")
        holder.operands[index] = first


def _first_lane(builder: Builder, value: Any) -> Any:
    """A Boolean, integer or index as the first lane has it."""
    kind = str(value.type)
    there, back, wide = {"i1": ("arith.extui", "arith.trunci", "i32"),
                         "index": ("arith.index_cast", "arith.index_cast", "i64")}.get(kind, ("", "", kind))
    found = builder.op(there, [value], wide) if there else value
    found = builder.op("rocdl.readfirstlane", [found], wide)
    return builder.op(back, [found], kind) if back else found


def _compare(builder: Builder, a: Any, b: Any) -> Any:
    from mlir import ir

    return builder.op("arith.cmpi", [a, b], "i1", predicate=ir.IntegerAttr.get(parse_type("i64"), 0))
