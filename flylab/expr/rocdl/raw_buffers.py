"""Loads, stores and atomic operations on a buffer's descriptor, as MLIR's rocdl dialect spells them.

Offsets are bytes, Int32 values read without a sign: what is beyond the descriptor's bytes reads 0, and is not written.
`soffset` is added to them, the same for all threads of a wave; `aux` holds the cache policy's bits: 1 (sc0), 2 (nt),
16 (sc1). `fx.rocdl.make_buffer_tensor` and copies say the same with layouts.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import NotSupportedError, TraceError
from flylab.expr.emit import mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Integer, Numeric
from flylab.expr.rocdl.buffers import rsrc_of
from flylab.expr.rocdl.immediates import immediate, integers
from flylab.expr.rocdl.instructions import bits_as
from flylab.expr.rocdl.wave import typed_value
from flylab.expr.state import require_kernel
from flylab.expr.types import of_type
from flylab.expr.vector import Vector

WIDTHS = (8, 16, 32, 64, 96, 128)
"""The bits that one buffer instruction moves for a thread. Source: CDNA3 ISA, "MUBUF instructions"."""
CACHE_BITS = 1 | 2 | 16
"""sc0, nt and sc1, where LLVM has them in a cache policy. Source: LLVM's AMDGPU usage guide, "Buffer aux"."""


def raw_ptr_buffer_load(res: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> Any:
    """A number or Vector of the type `res` at a byte offset of a buffer.

    Raises `TraceError` for types that are not of 8, 16, 32, 64, 96 or 128 bits.
    """
    what = "rocdl.raw_ptr_buffer_load"
    require_kernel(what)
    kind, lanes = of_type(res)
    carrier, count = _register(what, kind, lanes)
    operands = [rsrc_of(what, rsrc), *_places(what, offset, soffset, aux)]
    found = op("rocdl.raw.ptr.buffer.load", operands, mlir_type(carrier.dtype, count))
    return bits_as(Vector(found, count, carrier) if count else carrier(found), kind, lanes)


def raw_ptr_buffer_store(vdata: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> None:
    """Store a number or Vector at a byte offset of a buffer: the mirror of `raw_ptr_buffer_load`."""
    what = "rocdl.raw_ptr_buffer_store"
    require_kernel(what)
    given = typed_value(vdata)
    kind, lanes = (given.dtype, given.numel) if isinstance(given, Vector) else (type(given), 0)
    carrier, count = _register(what, kind, lanes)
    data = bits_as(given, carrier, count)
    value = data.value if count else data.ir_value()
    op("rocdl.raw.ptr.buffer.store", [value, rsrc_of(what, rsrc), *_places(what, offset, soffset, aux)])


def _register(what: str, kind: Any, lanes: int) -> tuple[Any, int]:
    """The integers in which an instruction moves a type: an Int8 to Int32, or a Vector of Int32."""
    bits = kind.dtype.bits * max(lanes, 1)
    if bits not in WIDTHS or kind.dtype.bits < 8:
        raise TraceError(f"{what} of {bits} bits ({lanes or 'one'} {kind.dtype})",
                         hint=f"one instruction moves {', '.join(map(str, WIDTHS))} bits")
    return (CLASSES[f"Int{bits}"], 0) if bits <= 32 else (CLASSES["Int32"], bits // 32)


def _places(what: str, offset: Any, soffset: Any, aux: Any) -> list[Any]:
    places = []
    for name, given in (("offset", offset), ("soffset", soffset)):
        number = typed_value(given)
        if not isinstance(number, Integer) or number.dtype.bits > 32:
            shown = number.dtype if isinstance(number, Numeric) else "Vector"
            raise TraceError(f"{what}: the {name} is {name_of(given, 'a value')} of {shown}, and it takes 32 bits",
                             hint="give a number of bytes: an int or an Int32")
        places.append(CLASSES["Int32"](number).ir_value())
    policy = immediate(what, "aux", aux, 0, CACHE_BITS)
    if policy & ~CACHE_BITS:
        raise TraceError(f"{what}: an aux of {policy:#x}", hint="a sum of 1 (sc0), 2 (nt) and 16 (sc1)")
    attributes = integers({"value": (policy, 32)})
    places.append(op("arith.constant", [], attributes["value"].type, attributes))
    return places


# The atomic operations of MLIR's dialect and the formats that the chips have them for.
ATOMICS = {"fadd": ("Float32", "Float64", "2 Float16", "2 BFloat16"), "fmax": ("Float64",),
           "smax": ("Int32", "Int64"), "umin": ("Uint32", "Uint64", "Int32", "Int64")}


def _atomic(name: str, vdata: Any, rsrc: Any, places: tuple[Any, Any, Any]) -> None:
    what = f"rocdl.raw_ptr_buffer_atomic_{name}"
    require_kernel(what)
    given = typed_value(vdata)
    is_vector = isinstance(given, Vector)
    shown = f"{given.numel} {given.dtype.dtype}" if is_vector else str(given.dtype)
    if shown not in ATOMICS[name]:
        raise NotSupportedError(f"{what} of {shown}, which the chips do not have",
                                hint=f"they have it for {', '.join(ATOMICS[name])}")
    value = given.value if is_vector else given.ir_value()
    op(f"rocdl.raw.ptr.buffer.atomic.{name}", [value, rsrc_of(what, rsrc), *_places(what, *places)])


def raw_ptr_buffer_atomic_fadd(vdata: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> None:
    """Add a Float32, a Float64 or two Float16 or BFloat16 to what is at a byte offset of a buffer."""
    _atomic("fadd", vdata, rsrc, (offset, soffset, aux))


def raw_ptr_buffer_atomic_fmax(vdata: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> None:
    """Put the greater of a Float64 and the number at a byte offset of a buffer there."""
    _atomic("fmax", vdata, rsrc, (offset, soffset, aux))


def raw_ptr_buffer_atomic_smax(vdata: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> None:
    """Put the greater of a signed integer and that at a byte offset of a buffer there."""
    _atomic("smax", vdata, rsrc, (offset, soffset, aux))


def raw_ptr_buffer_atomic_umin(vdata: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> None:
    """Put the less of an integer, read without a sign, and that at a byte offset of a buffer there."""
    _atomic("umin", vdata, rsrc, (offset, soffset, aux))


def raw_ptr_buffer_atomic_cmpswap(res: Any, src: Any, cmp: Any, rsrc: Any, offset: Any, soffset: Any = 0,
                                  aux: Any = 0) -> Any:
    """Put `src` in the place of an integer of a buffer that equals `cmp`; the number that was there.

    Both are of one format, of 32 or 64 bits.
    """
    what = "rocdl.raw_ptr_buffer_atomic_cmpswap"
    require_kernel(what)
    given = [typed_value(each) for each in (src, cmp)]
    kind = type(given[0])
    if not issubclass(kind, Integer) or kind.dtype.bits not in (32, 64) or kind is not type(given[1]):
        raise TraceError(f"{what} of {given[0]!r} and {given[1]!r}",
                         hint="give two integers of one format, of 32 or 64 bits")
    operands = [*[each.ir_value() for each in given], rsrc_of(what, rsrc), *_places(what, offset, soffset, aux)]
    old = op("rocdl.raw.ptr.buffer.atomic.cmpswap", operands, mlir_type(kind.dtype))
    return bits_as(kind(old), kind if res is None else of_type(res)[0], 0)
