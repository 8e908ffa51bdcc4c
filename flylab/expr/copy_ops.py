"""The copy operations that every memory knows: `fx.UniversalCopy` and `fx.UniversalAtomic`, and their atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.atoms import CopyAtom, CopyOp, atomic_op, copy_op
from flylab.atoms.copy import UNIVERSAL_ATOMIC, UNIVERSAL_COPY
from flylab.errors import TraceError
from flylab.expr.aliases import NamedVector
from flylab.expr.enums import AtomicOp, SyncScope, member
from flylab.expr.numeric import numeric_class


def of_width(constructor: Callable[..., CopyOp], bits: int) -> Any:
    """The constructor with its width given: `fx.UniversalCopy128b` from `fx.UniversalCopy`."""

    def made(*options: Any, **named: Any) -> CopyOp:
        return constructor(bits, *options, **named)

    made.__name__ = made.__qualname__ = f"{constructor.__name__}{bits}b"
    made.__doc__ = f"`{constructor.__name__}` of {bits} bits by each thread."
    return made


def UniversalCopy(bit_size: int) -> CopyOp:
    """A copy of `bit_size` bits (whole bytes) by one thread, between any memory and registers.

    Where it is more than one instruction moves, it becomes several. From memory to memory it goes through registers.

    >>> print(UniversalCopy(256))
    fly.universal_copy<256>

    Raises `LayoutError` for less than a byte, parts of one, or more than the registers of a thread.
    """
    return copy_op(UNIVERSAL_COPY, bit_size)


UniversalCopy8b = of_width(UniversalCopy, 8)
UniversalCopy16b = of_width(UniversalCopy, 16)
UniversalCopy32b = of_width(UniversalCopy, 32)
UniversalCopy64b = of_width(UniversalCopy, 64)
UniversalCopy128b = of_width(UniversalCopy, 128)


def atomic_operation(family: str, op: Any, val_type: Any, scope: Any, use: str) -> CopyOp:
    """The atomic operation of a family, of what a user gives for it. Raises `TraceError` for no `fx.AtomicOp`."""
    name, scope = member(AtomicOp, op, use).name.lower(), member(SyncScope, scope, use).value
    if isinstance(val_type, NamedVector):
        return atomic_op(family, name, val_type.dtype.dtype, val_type.lanes, scope)
    return atomic_op(family, name, numeric_class(val_type).dtype, scope=scope)


def UniversalAtomic(atomic_op: AtomicOp, val_type: Any, syncscope: SyncScope | str = SyncScope.System) -> CopyOp:
    """A copy from registers that combines each element with the one in global memory or LDS, as one step.

    `val_type` is an integer format of 32 or 64 bits, Float32 or Float64; `fx.Float16x2` and `fx.BFloat16x2` add pairs.
    `syncscope` says who sees it in order, `fx.rocdl.SyncScope.Agent` for one GPU; by itself it orders nothing else.
    Global memory must be the GPU's own, as `hipMalloc` gives it: no chip does all of them on the host's.

    >>> import flylab.expr as fx
    >>> print(fx.UniversalAtomic(fx.AtomicOp.Max, fx.Int32))
    fly.universal_atomic<max, i32>

    Raises `LayoutError` for what no chip has an instruction for (as Max of Float16).
    """
    return atomic_operation(UNIVERSAL_ATOMIC, atomic_op, val_type, syncscope, "fx.UniversalAtomic")


def of_operation(constructor: Callable[..., CopyOp], op: AtomicOp) -> Any:
    """The constructor with its operation given: `fx.UniversalAtomicAdd` from `fx.UniversalAtomic`."""

    def made(val_type: Any, *options: Any, **named: Any) -> CopyOp:
        return constructor(op, val_type, *options, **named)

    made.__name__ = made.__qualname__ = f"{constructor.__name__}{op.name}"
    made.__doc__ = f"`{constructor.__name__}` of `fx.AtomicOp.{op.name}`."
    return made


UniversalAtomicAdd = of_operation(UniversalAtomic, AtomicOp.Add)
UniversalAtomicSub = of_operation(UniversalAtomic, AtomicOp.Sub)
UniversalAtomicAnd = of_operation(UniversalAtomic, AtomicOp.And)
UniversalAtomicOr = of_operation(UniversalAtomic, AtomicOp.Or)
UniversalAtomicXor = of_operation(UniversalAtomic, AtomicOp.Xor)
UniversalAtomicInc = of_operation(UniversalAtomic, AtomicOp.Inc)
UniversalAtomicDec = of_operation(UniversalAtomic, AtomicOp.Dec)
UniversalAtomicMax = of_operation(UniversalAtomic, AtomicOp.Max)
UniversalAtomicMin = of_operation(UniversalAtomic, AtomicOp.Min)


def make_copy_atom(copy_op_type: CopyOp, elem_type: Any) -> CopyAtom:
    """The copy operation on elements of a number format: `make_copy_atom(fx.UniversalCopy(128), fx.Float32)`.

    Raises `LayoutError` where the bits are no whole number of elements, or the operation is for another format.
    """
    if not isinstance(copy_op_type, CopyOp):
        raise TraceError(
            f"make_copy_atom({copy_op_type!r}, ...): not a copy operation",
            hint="give fx.UniversalCopy(bits) or fx.rocdl.BufferCopy(bits)",
        )
    return CopyAtom(copy_op_type, numeric_class(elem_type).dtype)
