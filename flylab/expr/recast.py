"""Pointers as pointers to another format: `fx.recast_iter`; and their addresses: `fx.ptrtoint`."""

from __future__ import annotations

from typing import Any

from flylab.dialect.types import Ptr
from flylab.errors import TraceError
from flylab.expr.checks import device_check
from flylab.expr.emit import fly, mlir_type
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, compare, numeric_class
from flylab.expr.span import Span
from flylab.expr.tensor import Pointer
from flylab.shown import a_kind

ADDRESSES = {"global": "Int64", "shared": "Int32"}
"""The format of an address in the memory spaces whose pointers have one."""


def recast_iter(result_type: Any, src: Pointer) -> Pointer:
    """The same address as a pointer to another number format: `fx.recast_iter(fx.Uint32, fx.get_iter(bytes))`.

    `result_type` is a format, or the type of another pointer (`p.spec`) of the same memory space. The address must be a
    multiple of the format's bytes: known while tracing, or checked on the device. Raises `TraceError` for registers,
    for formats below a byte, and for a buffer that is not known to be aligned.
    """
    _require_pointer(src, "recast_iter")
    if isinstance(result_type, Ptr):
        if result_type.space != src.spec.space:
            raise TraceError(f"recast_iter of a pointer into {src.spec.space} memory to {result_type}",
                             hint="the memory space stays; give the number format")
        return aligned(src, result_type.known_align, CLASSES[result_type.dtype.name])
    return aligned(src, 1, numeric_class(result_type))


def aligned(pointer: Pointer, align: int, kind: Any, holds: str = "") -> Pointer:
    """A pointer to a format whose address is a multiple of `align` bytes, which is checked where it is not known.

    `holds` is what an error says lies there.
    """
    dtype, spec = kind.dtype, pointer.spec
    if dtype.bits % 8:
        raise TraceError(f"a pointer to {dtype}, of {dtype.bits} bits: less than a byte has no address",
                         hint="read its bytes: fx.Uint8")
    name = name_of(pointer, "the pointer")
    if spec.space == "register":
        raise TraceError(f"{name} ({spec}) points to registers, which have no bytes to see anew",
                         hint="load the vector and .bitcast(...) it")
    needed = max(align, dtype.bits // 8)
    if spec.known_align < needed:
        text = f"{name} ({spec}) is no multiple of {needed} bytes, as the address of {holds or dtype} must be"
        if spec.space not in ADDRESSES:
            raise TraceError(text.replace(" is no", " is not known to be a"),
                             hint="recast before: the tensor's pointer, of which the buffer is made")
        device_check(compare("==", ptrtoint(pointer) & (needed - 1), 0), text,
                     hint="begin at an aligned element, or pass a copy, which is aligned")
    return retyped(pointer, kind, max(needed, spec.known_align))


def retyped(pointer: Pointer, kind: Any, align: int) -> Pointer:
    """A pointer to a format at the same address, which is known to be a multiple of `align` bytes."""
    dtype, spec = kind.dtype, pointer.spec
    made = Ptr(dtype, spec.space, align if align > dtype.bits // 8 else 0)
    if made == spec:
        return pointer
    reach = pointer.reach
    if reach is not None and dtype.bits != spec.dtype.bits:
        # Of a buffer: from its base, in elements of the new format, rounded outwards.
        reach = Span(reach.low * spec.dtype.bits // dtype.bits, -(-reach.high * spec.dtype.bits // dtype.bits),
                     reach.fits)
    room = pointer.room and pointer.room.in_bits(spec.dtype.bits, dtype.bits)
    return Pointer(fly("recast_iter", [pointer.value], [made]), reach, room)


def ptrtoint(ptr: Pointer) -> Any:
    """The address of a pointer into global memory, an Int64; into LDS, an Int32: bytes into the block's LDS.

    In a kernel that asks for one in LDS, the fields of a struct there lie at their offsets.
    """
    _require_pointer(ptr, "ptrtoint")
    if ptr.spec.space not in ADDRESSES:
        raise TraceError(f"ptrtoint of a pointer into {ptr.spec.space} memory, which has no such address",
                         hint="take that of the tensor itself")
    kind = CLASSES[ADDRESSES[ptr.spec.space]]
    address = kind(fly("ptrtoint", [ptr.value], [mlir_type(kind.dtype)]))
    address.divisor = ptr.spec.known_align
    return address


def _require_pointer(value: Any, use: str) -> None:
    if not isinstance(value, Pointer):
        raise TraceError(f"{use} of {a_kind(value)}", hint="give a pointer: fx.get_iter(tensor)")
