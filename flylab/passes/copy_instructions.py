"""The copies with instructions of their own: past the registers into LDS, transposing reads, atomic operations.

A part of convert-fly-to-rocdl. Source of the intrinsics: LLVM 22's
IntrinsicsAMDGPU; of the numbers, MLIR's LLVM dialect.
"""

from __future__ import annotations

from typing import Any

from flylab.atoms import CopyAtom, CopyOp
from flylab.atoms.atomics import OWN_MEMORY, RMW, Atomic
from flylab.dialect.types import POINTERS
from flylab.dtypes import DType
from flylab.passes.rewriter import Builder, carrier, parse_type
from flylab.passes.vectors import element, shape_of, vector_type

MONOTONIC = 2


def load_into_lds(builder: Builder, op: CopyOp, source: Any, lds: Any) -> None:
    """A load of every lane from global memory into LDS, side by side from where the first lane's pointer is.

    LLVM moves the first lane's address into m0, and waits (vmcnt) before LDS is read where it may be what is written.
    """
    size, zero, cache = builder.constant(op.bits // 8), builder.constant(0), builder.constant(op.cache)
    builder.intrinsic("llvm.amdgcn.global.load.lds", [source, lds, size, zero, cache])


def first_lane(builder: Builder, lds: Any, apart: int) -> Any:
    """The pointer into LDS that the first lane which is on has; where lanes lie `apart` (bytes), that of lane 0."""
    address = builder.op("llvm.ptrtoint", [lds], "i32")
    if apart:
        lane = builder.op("arith.index_cast", [builder.op("gpu.lane_id", [], "index")], "i32")
        before = builder.op("arith.muli", [lane, builder.constant(apart)], "i32")
        address = builder.op("arith.subi", [address, before], "i32")
    uniform = builder.intrinsic("llvm.amdgcn.readfirstlane", [address], "i32")
    return builder.op("llvm.inttoptr", [uniform], POINTERS["shared"])


def load_transposed(builder: Builder, atom: CopyAtom, lds: Any) -> Any:
    """A transposing read, as a vector of elements."""
    kind = "vector<4xi16>" if atom.op.trans == 16 else f"vector<{atom.op.bits // 32}xi32>"
    raw = builder.intrinsic(f"llvm.amdgcn.ds.read.tr{atom.op.trans}.b{atom.op.bits}", [lds], kind)
    wanted = vector_type(carrier(atom.dtype), atom.num_values)
    return raw if raw.type == wanted else builder.op("vector.bitcast", [raw], wanted)


def combined(builder: Builder, value: Any) -> Any:
    """What an atomic operation takes of a vector: its one element, or all of it."""
    return value if shape_of(value)[0] > 1 else element(builder, value, 0)


def atomic_in_memory(builder: Builder, atomic: Atomic, value: Any, pointer: Any) -> None:
    """An atomic operation in global memory or LDS."""
    from mlir import ir

    given, unit = combined(builder, value), ir.UnitAttr.get()
    builder.op(
        "llvm.atomicrmw",
        [pointer, given],
        given.type,
        bin_op=_i64(_number(atomic.op, atomic.dtype)),
        ordering=_i64(MONOTONIC),
        syncscope=ir.StringAttr.get(atomic.scope),
        alignment=_i64(atomic.lanes * atomic.dtype.bits // 8),
        **dict.fromkeys(OWN_MEMORY, unit),
    )


def _number(op: str, dtype: DType) -> Any:
    signed, unsigned, real = RMW[op]
    return real if dtype.is_float else signed if dtype.signed else unsigned


def _i64(value: int) -> Any:
    from mlir import ir

    return ir.IntegerAttr.get(parse_type("i64"), value)
