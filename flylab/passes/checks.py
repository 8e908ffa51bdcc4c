"""Checks on the device: where a lane's condition is false the wave traps, with M0 telling which check and which lane.

    %failed = rocdl.ballot (not %condition)       only lanes that are switched on count
    scf.if %failed != 0 { M0 = number * 64 + first failed lane; s_ttracedata; trap }

The branch is one of the whole wave, so no lane goes on before the trap. `s_ttracedata` sends M0 to a thread trace,
where one is taken, and is what keeps M0 and the checks apart for LLVM. Source: CDNA3 ISA, S_TTRACEDATA and S_TRAP.
"""

from __future__ import annotations

from typing import Any

from flylab.dialect.operations import attribute
from flylab.passes.rewriter import Builder, function_of, parse_type

LANES = 64


def is_of_launcher(op: Any) -> bool:
    """True for a check or a printf of a launcher, which the host makes: see `flylab.passes.host`."""
    return op.name in ("fly.check", "fly.printf") and bool(function_of(op).name == "func.func")


def lower_check(op: Any, builder: Builder) -> None:
    """A `fly.check` as the operations above."""
    from mlir import ir

    true = builder.constant(-1, "i1")
    wrong = builder.op("arith.xori", [op.operands[0], true], "i1")
    failed = builder.op("rocdl.ballot", [wrong], "i64")
    predicate = ir.IntegerAttr.get(parse_type("i64"), 1)  # "ne"
    any_failed = builder.op("arith.cmpi", [failed, builder.constant(0, "i64")], "i1", predicate=predicate)
    with builder.point:
        choice = ir.Operation.create("scf.if", operands=[any_failed], regions=2, loc=op.location)
    end = ir.Operation.create("scf.yield", loc=op.location)
    choice.regions[0].blocks.append().append(end)
    _trap(Builder(end), op, failed)


def _trap(builder: Builder, op: Any, failed: Any) -> None:
    from mlir import ir

    lane = builder.op("llvm.intr.cttz", [failed], "i64", is_zero_poison=ir.BoolAttr.get(True))
    lane = builder.op("arith.trunci", [lane], "i32")
    number = builder.constant(int(attribute(op, "number")) * LANES)
    shown = builder.op("arith.ori", [lane, number], "i32")
    # What was written before is written, whatever follows: a fence for the compiler alone.
    builder.op("llvm.fence", [], ordering=ir.Attribute.parse("7 : i64"), syncscope=ir.StringAttr.get("singlethread"))
    builder.intrinsic("llvm.amdgcn.s.ttracedata", [shown])
    builder.op("llvm.intr.trap", [])
