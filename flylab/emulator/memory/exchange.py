"""Atomic operations on memory of the host: one cell at a time, so that waves that run in parallel lose no update.

Integers are one instruction of the host; floats a loop that tries until nobody came between. Denormals are kept, as
both chips do (LLVM's feature memory-atomic-fadd-f32-denormal-support). min and max take the operand where it compares
less or greater, as the ISA's pseudo-code has it: a NaN that is given changes nothing, and one that is there stays.
Source: CDNA3 and CDNA4 ISA, the operations of the FLAT and MUBUF instruction lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.instructions.floats import bfloat_bits

# The operation in the mnemonic, and LLVM's name of it; inc and dec wrap at the operand.
INTEGER = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "swap": "xchg",
           "smin": "min", "smax": "max", "umin": "umin", "umax": "umax", "inc": "uinc_wrap", "dec": "udec_wrap"}


def _pair(half: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """An operation on both halves of 32 bits; `half` takes and gives 16 bits."""
    return lambda old, data: (half(old.to("i16"), data.to("i16")).to("i32") |
                              half(old.shr(16).to("i16"), data.shr(16).to("i16")).to("i32").shl(16))


def _add_half(old: Value, data: Value) -> Value:
    return (old.bits("half") + data.bits("half")).bits("i16")


def _add_bfloat(old: Value, data: Value) -> Value:
    wide = [x.to("i32").shl(16).bits("float") for x in (old, data)]
    result: Value = bfloat_bits(wide[0] + wide[1])
    return result.to("i16")


def _as(type_: str, function: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """An operation on floats as one on their bits."""
    return lambda old, data: function(old.bits(type_), data.bits(type_)).bits(old.type)


# name: registers of an operand, the new bits from the old and the operand's
FLOAT: dict[str, tuple[int, Callable[[Value, Value], Value]]] = {
    "add_f32": (1, _as("float", lambda old, data: old + data)),
    "add_f64": (2, _as("double", lambda old, data: old + data)),
    "min_f64": (2, _as("double", lambda old, data: data.cmp("olt", old).select(data, old))),
    "max_f64": (2, _as("double", lambda old, data: data.cmp("ogt", old).select(data, old))),
    "pk_add_f16": (1, _pair(_add_half)),
    "pk_add_bf16": (1, _pair(_add_bfloat)),
}


def exchange(b: Builder, operation: str, pointer: str, given: Sequence[Value]) -> Value:
    """One atomic operation on the integer at `pointer`; what was there before.

    `given` is the operand, of a "cmpswap" the new value and the one to compare with.
    """
    data = given[0]
    if operation == "cmpswap":
        return _compare(b, pointer, given[1], data)[0]
    if operation in INTEGER:
        return b.let(f"atomicrmw {INTEGER[operation]} ptr {pointer}, {data.typed} seq_cst", data.type)
    # The value that is seen comes back through a phi: the first guess is a plain atomic load.
    entry, head, done, seen = (b.fresh(p) for p in ("entry", "try", "done", "seen"))
    b.jump(entry)
    b.label(entry)
    first = b.let(f"load atomic {data.type}, ptr {pointer} monotonic, align {int(data.type[1:]) // 8}", data.type)
    b.jump(head)
    b.label(head)
    place = len(b.lines)
    b.do("")
    old = Value(b, f"%{seen}", data.type)
    found, swapped = _compare(b, pointer, old, FLOAT[operation][1](old, data))
    b.lines[place] = f"  %{seen} = phi {data.type} [ {first.name}, %{entry} ], [ {found.name}, %{head} ]"
    b.branch(swapped, done, head)
    b.label(done)
    return found


def _compare(b: Builder, pointer: str, expected: Value, new: Value) -> tuple[Value, Value]:
    """Compare and exchange: the value before, and whether it was the expected one."""
    pair = b.let(f"cmpxchg ptr {pointer}, {expected.typed}, {new.typed} seq_cst seq_cst", "pair").name
    return (b.let(f"extractvalue {{ {new.type}, i1 }} {pair}, 0", new.type),
            b.let(f"extractvalue {{ {new.type}, i1 }} {pair}, 1", "i1"))
