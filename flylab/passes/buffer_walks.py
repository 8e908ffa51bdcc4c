"""Buffer descriptors, and pointers that go far from their buffer's start: what all threads share moves the descriptor.

    s_add_u32 s4, s4, s2        the base, moved by the block's tile
    s_sub_u32 s6, s6, s2        and as many bytes less behind it, or none
    buffer_load_dwordx4 v[0:3], v8, s[4:7], 0 offen

A descriptor checks an offset of 32 bits. Where a tensor's extents are known on the device only, the way to a tile of it
may be longer than that, and an offset of 64 bits would have to be clamped for each access. But

    offset < bytes    if and only if    offset - moved < bytes - moved    for 0 <= moved <= offset

so the part that is the same for all threads is taken into the descriptor, by scalar instructions, once: its base moves,
and its number of bytes becomes as much smaller, 0 where the part is outside. What is left is a thread's small part, of
which 32 bits hold the sum. This holds while no step goes back, so a pointer that may have gone back has no walk, and is
clamped. Base and bytes have 64 bits on the way, and so a tensor may be larger than the 4 GiB of a descriptor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from flylab.dialect.operations import attribute
from flylab.dialect.types import DESCRIPTOR, of_mlir
from flylab.layout.runtime_int import RuntimeInt
from flylab.passes.buffer_place import OUTSIDE
from flylab.passes.global_offsets import without_overflow
from flylab.passes.known_values import known_integer
from flylab.passes.rewriter import Builder, parse_type
from flylab.passes.uniform import is_uniform

BUFFER_FLAGS = (7 << 12) | (4 << 15)
"""The last word of a raw buffer descriptor: data format 32, untyped. Source: CDNA3 ISA, table of the descriptor."""
ADDRESS = 2**48 - 1
"""The bits of a descriptor that hold its base; its stride lies above. Source: as above."""
MOST = "most"
"""The attribute of a step that holds the most elements that it goes forward."""
SMALL = 2**31
"""Bytes that a thread's part of an offset stays below; with those of one access, 32 bits hold them."""
SIGNED_LESS, SIGNED_GREATER = 2, 4  # predicates of arith.cmpi


@dataclass(frozen=True)
class Walk:
    """A buffer of `records` bytes (an int, or an i64) from `base` (an i64), and how a pointer went from its start.

    It went by `shared` bytes (an i64, at most `far`), which all threads have in common and `descriptor` has taken in,
    and by `offset` bytes more: an i32, or an i64 where `most`, its greatest value, is SMALL or more. None stands for 0.
    """

    base: Any
    records: Any
    descriptor: Any
    shared: Any = None
    far: int = 0
    offset: Any = None
    most: int = 0

    @property
    def is_far(self) -> bool:
        """Whether an offset of 32 bits from the buffer's start would not do."""
        return self.shared is not None


class BufferWalks:
    """The walks of the buffer pointers among `ops`, as far as they are known to go forward only."""

    def __init__(self, ops: list[Any]):
        self.walks: dict[Any, Walk] = {}
        self.most: dict[Any, int] = {}
        self.shared: set[Any] = set()
        steps = [op for op in ops if op.name == "fly.add_offset" and of_mlir(op.results[0].type).space == "buffer"]
        # Where none may leave 32 bits, no descriptor has to move.
        for op in steps if any(MOST in op.attributes for op in steps) else ():
            most, result = _most(op), op.results[0]
            if most is not None:
                self.most[result] = most
                if most >= SMALL and _leads_on(result) and is_uniform(op.operands[1], by_bits=False):
                    self.shared.add(result)

    def begin(self, pointer: Any, base: Any, records: Any, descriptor: Any) -> None:
        """A pointer to the start of a buffer."""
        if self.most:
            self.walks[pointer] = Walk(base, records, descriptor)

    def same(self, pointer: Any, other: Any) -> None:
        """`other` is where `pointer` is."""
        if pointer in self.walks:
            self.walks[other] = self.walks[pointer]

    def move(self, op: Any, builder: Builder) -> None:
        """Go on by a `fly.add_offset`."""
        pointer, result = op.operands[0], op.results[0]
        if pointer not in self.walks or result not in self.most:
            return
        walk, offset, most = self.walks[pointer], op.operands[1], self.most[result]
        size = of_mlir(result.type).dtype.bits // 8
        if most == 0:
            self.walks[result] = walk
        elif result in self.shared:
            self.walks[result] = _taken_in(builder, walk, _bytes(builder, offset, size, "i64"), most)
        else:
            kind = "i32" if walk.most + most < SMALL else "i64"
            total = _bytes(builder, offset, size, kind)
            if walk.offset is not None:
                total = _sum(builder, _as(builder, walk.offset, kind), total)
            self.walks[result] = replace(walk, offset=total, most=walk.most + most)


def _leads_on(pointer: Any) -> bool:
    """Whether a pointer is for more than one access: that alone is not worth a descriptor."""
    uses = [use.owner.operation.name for use in pointer.uses]
    return len(uses) > 1 or "fly.add_offset" in uses


def note_forward(moved: Any, offset: Any) -> None:
    """Keep with a pointer into a buffer, moved by a number of elements of the device, the most that it may be; with
    one that may have gone back, nothing."""
    from mlir import ir

    if isinstance(offset, RuntimeInt) and offset.low >= 0:
        moved.owner.attributes[MOST] = ir.StringAttr.get(str(offset.high))


def _most(op: Any) -> int | None:
    """The most bytes that a step in a buffer goes forward; None where it may go back."""
    bits: int = of_mlir(op.results[0].type).dtype.bits
    if bits % 8:
        return None
    if MOST in op.attributes:
        return int(attribute(op, MOST)) * bits // 8
    known = known_integer(op.operands[1])
    return known * bits // 8 if known is not None and known >= 0 else None


def _taken_in(builder: Builder, walk: Walk, by: Any, most: int) -> Walk:
    """The walk with a descriptor that has taken in so many bytes more."""
    far = walk.far + most
    shared = by if walk.shared is None else builder.op("arith.addi", [walk.shared, by], "i64")
    base = builder.op("arith.addi", [walk.base, shared], "i64")
    # Beyond the buffer its place does not matter, but it must stay clear of the stride.
    base = builder.op("arith.andi", [base, builder.constant(ADDRESS, "i64")], "i64")
    known = isinstance(walk.records, int)
    records = builder.constant(walk.records, "i64") if known else walk.records
    rest = builder.op("arith.subi", [records, shared], "i64")
    if far >= 2**63:
        # A part of as many bytes is negative itself.
        sign = builder.op("arith.andi", [shared, builder.constant(-(2**63), "i64")], "i64")
        rest = builder.op("arith.ori", [rest, sign], "i64")
    return replace(walk, shared=shared, far=far, descriptor=descriptor_of(builder, base, rest))


def _held(builder: Builder, count: Any) -> Any:
    """A number of bytes, an i64, as an i32 that a descriptor's field may hold: 0 for a negative one.

    The comparisons are of 32 bits, which scalar instructions do.
    """
    zero, most = builder.constant(0), builder.constant(OUTSIDE)
    upper = _upper(builder, count)
    lower = builder.op("arith.minui", [builder.op("arith.trunci", [count], "i32"), most], "i32")
    below = builder.op("arith.select", [_compared(builder, SIGNED_GREATER, upper, zero), most, lower], "i32")
    return builder.op("arith.select", [_compared(builder, SIGNED_LESS, upper, zero), zero, below], "i32")


def descriptor_of(builder: Builder, base: Any, records: Any) -> Any:
    """The descriptor of so many bytes (an int, an i64, or an i32 that it can hold) from a base, an i64."""
    if isinstance(records, int):
        upper = builder.constant(BUFFER_FLAGS << 32 | records, "i64")
    else:
        held = records if records.type == parse_type("i32") else _held(builder, records)
        upper = builder.op("arith.extui", [held], "i64")
        upper = builder.op("arith.ori", [upper, builder.constant(BUFFER_FLAGS << 32, "i64")], "i64")
    # Not rocdl.make.buffer.rsrc, which clears the upper 16 bits of the address: those of a pointer are 0.
    halves = [builder.op("arith.extui", [half], "i128") for half in (base, upper)]
    shifted = builder.op("arith.shli", [halves[1], builder.constant(64, "i128")], "i128")
    return builder.op("llvm.inttoptr", [builder.op("arith.ori", [halves[0], shifted], "i128")], DESCRIPTOR)


def _upper(builder: Builder, value: Any) -> Any:
    return builder.op("arith.trunci", [builder.op("arith.shrui", [value, builder.constant(32, "i64")], "i64")], "i32")


def _compared(builder: Builder, predicate: int, left: Any, right: Any) -> Any:
    from mlir import ir

    order = ir.IntegerAttr.get(parse_type("i64"), predicate)
    return builder.op("arith.cmpi", [left, right], "i1", predicate=order)


def _as(builder: Builder, value: Any, kind: str) -> Any:
    """An offset that is not negative, as an i32 that holds it or an i64."""
    if value.type == parse_type(kind):
        return value
    return builder.op("arith.trunci" if kind == "i32" else "arith.extui", [value], kind)


def _bytes(builder: Builder, offset: Any, size: int, kind: str) -> Any:
    """A number of elements in bytes."""
    value = _as(builder, offset, kind)
    if kind == "i32":
        return without_overflow(builder, "arith.muli", value, builder.constant(size))
    return builder.op("arith.muli", [value, builder.constant(size, kind)], kind)


def _sum(builder: Builder, a: Any, b: Any) -> Any:
    if a.type == parse_type("i32"):
        return without_overflow(builder, "arith.addi", a, b)
    return builder.op("arith.addi", [a, b], a.type)
