"""Addresses in global memory as a base, an offset of 32 bits and a number: what one instruction of the chip adds up.

    global_load_dwordx4 v[0:3], v8, s[2:3] offset:64

reads at `s[2:3]`, a base that all threads share, plus `v8`, an unsigned offset of each thread, plus 64. A pointer moved
several times from one base keeps that base where all its offsets together are known to fit: an offset is then computed
once for all tensors that are walked alike. What is known comes from `known_values`, which no operation may be erased
beside, so it is asked before the conversion. A part of convert-fly-to-rocdl.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.dialect.types import Ptr, of_mlir
from flylab.passes.known_values import KnownBits
from flylab.passes.rewriter import Builder, parse_type

OFFSETS = 2**32
"""An unsigned offset of 32 bits is below."""
DYNAMIC = -(2**31)
"""The place of an operand among the constant indices of `llvm.getelementptr`."""


@dataclass(frozen=True)
class Address:
    """`base` + `offset` (i32, or None for 0) + `constant`, in bytes; `most` is the greatest value of the offset."""

    base: Any
    offset: Any = None
    constant: int = 0
    most: int = 0


class GlobalOffsets:
    """The addresses of pointers into global memory, and the greatest value of each offset that they are moved by."""

    def __init__(self, ops: list[Any]):
        bits = KnownBits()
        self.known: dict[Any, Any] = {}
        self.addresses: dict[Any, Address] = {}
        for op in ops:
            if op.name == "fly.add_offset" and of_mlir(op.results[0].type).space == "global":
                self.known[op.results[0]] = bits.of(op.operands[1])

    def moved(self, op: Any, pointer: Any, builder: Builder) -> Any:
        """The LLVM pointer of a `fly.add_offset` from one that is `pointer` in LLVM; None where its offset may need
        more than 32 bits."""
        spec: Ptr = of_mlir(op.results[0].type)
        known, size = self.known[op.results[0]], spec.dtype.bits // 8
        before = self.addresses.get(op.operands[0], Address(pointer))
        if known.value is not None:
            signed = known.value - ((known.value >> known.width - 1) << known.width)
            after = Address(before.base, before.offset, before.constant + signed * size, before.most)
        else:
            after = Address(before.base, None, before.constant, before.most + known.most * size)
        if not size or after.most >= OFFSETS or not 0 <= after.constant < OFFSETS:
            return None
        if known.value is None:
            offset = _scaled(builder, op.operands[1], size)
            if before.offset is not None:
                offset = without_overflow(builder, "arith.addi", before.offset, offset)
            after = Address(after.base, offset, after.constant, after.most)
        self.addresses[op.results[0]] = after
        return _pointer(builder, after)

    def same(self, pointer: Any, other: Any) -> None:
        """`other` is the address of `pointer`."""
        if pointer in self.addresses:
            self.addresses[other] = self.addresses[pointer]

def _scaled(builder: Builder, value: Any, size: int) -> Any:
    if value.type != parse_type("i32"):
        value = builder.op("arith.trunci", [value], "i32")
    return value if size == 1 else without_overflow(builder, "arith.muli", value, builder.constant(size))


def without_overflow(builder: Builder, name: str, a: Any, b: Any) -> Any:
    """Arithmetic that stays within unsigned 32 bits: LLVM may see through it to a constant."""
    from mlir import ir

    return builder.op(name, [a, b], "i32", overflowFlags=ir.Attribute.parse("#arith.overflow<nuw>"))


def _pointer(builder: Builder, address: Address) -> Any:
    found = address.base
    if address.offset is not None:
        found = _moved(builder, [found, builder.op("arith.extui", [address.offset], "i64")], DYNAMIC)
    return _moved(builder, [found], address.constant) if address.constant else found


def _moved(builder: Builder, operands: list[Any], index: int) -> Any:
    """A pointer moved by some bytes. A constant index has 31 bits, a greater one is an operand."""
    from mlir import ir

    if index >= 2**31:
        operands, index = [*operands, builder.constant(index, "i64")], DYNAMIC
    return builder.op(
        "llvm.getelementptr", operands, operands[0].type,
        rawConstantIndices=ir.DenseI32ArrayAttr.get([index]), elem_type=ir.TypeAttr.get(parse_type("i8")),
    )
