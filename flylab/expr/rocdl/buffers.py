"""AMD's buffers: memory behind a descriptor, which tells its base and how many bytes there are."""

from __future__ import annotations

from typing import Any

from flylab.dialect.types import DESCRIPTOR
from flylab.errors import LayoutError, TraceError
from flylab.expr.algebra import map_numbers, traced
from flylab.expr.emit import fly, intrinsic, mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Integer, Numeric, as_numeric, interval, is_mlir_value
from flylab.expr.pointers import require_pointer
from flylab.expr.promotion import plain
from flylab.expr.rocdl.immediates import immediate
from flylab.expr.select import ceildiv, maximum, minimum
from flylab.expr.span import Span
from flylab.expr.state import require_kernel
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.vector import Vector
from flylab.expr.views import buffer_pointer, get_iter, make_view
from flylab.layout import ComposedLayout, Layout, cosize, get_leaves

MAX_RECORDS = 2**32 - 16
"""The most bytes that a descriptor is given here; its field holds 15 more.

An offset of more than 32 bits becomes this one, and no access there, of at most 16 bytes, may be inside or wrap.
Source: CDNA3 ISA, "Buffer resource descriptor".
"""
ADDRESSES = 2**47
"""The bytes that a process may address, half of what 48 bits do: no tensor has more, and no part of it wraps."""
_cosize = traced(cosize)


def make_buffer_tensor(tensor: Tensor, max_size: bool = False, *, num_records_bytes: Any = None) -> Tensor:
    """The tensor behind a buffer descriptor: reads outside of it give 0, writes outside are dropped.

    That goes by the 4 bytes that an instruction moves at once (or fewer, where it moves fewer): of an odd number of
    Float16, a wide copy reads the last as 0 and does not write it. An atom of 16 bits moves it, for that part.

    The descriptor covers exactly the tensor's bytes; `num_records_bytes` (an int, or an integer of the device) sets
    another number, `max_size=True` turns the check off up to the 4 GiB that a descriptor reaches: what is farther away
    is still outside. A tensor whose extents are known on the device only may be larger: what a block's threads have in
    common of an offset that is not negative moves the descriptor, and the 4 GiB begin there. Raises `TraceError` for a
    known tensor of 4 GiB or more, which a descriptor cannot cover.
    """
    require_kernel("make_buffer_tensor")
    if not isinstance(tensor, Tensor) or tensor.space != "global":
        raise TraceError(
            f"make_buffer_tensor: {name_of(tensor, repr(tensor))} is not a tensor in global memory",
            hint="give an fx.Tensor parameter or a view of one",
        )
    layout = tensor.spec.facts()
    if min([step if isinstance(step, int) else step.low for step in _steps(layout)]) < 0:
        raise TraceError(
            f"make_buffer_tensor: {name_of(tensor, 'the tensor')} {layout} has a negative stride, or one that may be, "
            "and a buffer reaches forward from its first element only",
            hint="copy it with fx.UniversalCopy, or flip the array on the host",
        )
    if num_records_bytes is not None:
        records = _records("make_buffer_tensor", num_records_bytes)
    elif max_size and isinstance(layout, ComposedLayout):
        records = MAX_RECORDS
    elif tensor.spec.is_runtime and not isinstance(layout, ComposedLayout):
        records = MAX_RECORDS if max_size else _bytes_of(tensor)
    else:
        covered = -(-_reached(tensor, layout) * tensor.spec.dtype.bits // 8)
        if covered > MAX_RECORDS:
            raise TraceError(
                f"make_buffer_tensor: {name_of(tensor, 'the tensor')} spans {covered} bytes, a buffer "
                f"descriptor covers at most {MAX_RECORDS}",
                hint="slice the tensor into parts below 4 GiB first, or copy it with fx.UniversalCopy; "
                     "num_records_bytes= takes the first part alone",
            )
        records = MAX_RECORDS if max_size else covered
    buffer: Tensor = make_view(buffer_pointer(get_iter(tensor), records), tensor.layout)
    return buffer


def _bytes_of(tensor: Tensor) -> Any:
    """The bytes that a tensor covers whose layout is known on the device only: an Int64, not above 0 for none."""
    bits, count = tensor.spec.dtype.bits, _count_of_rows(tensor)
    if count is None:
        count = CLASSES["Int64"](_cosize(tensor))
    if interval(count)[1] * bits > ADDRESSES * 8:
        count = minimum(count, ADDRESSES * 8 // bits)
    return ceildiv(count * bits, 8) if bits % 8 else count * (bits // 8)


def _count_of_rows(tensor: Tensor) -> Any:
    """The elements that a tensor covers of which one extent alone is known on the device only, that of its farthest
    mode: so many rows, the last without its gap. None for any other."""
    layout = tensor.spec.facts()
    shape, stride = get_leaves(layout.shape), get_leaves(layout.stride)
    far = [i for i, extent in enumerate(shape) if not isinstance(extent, int)]
    if len(far) != 1 or not all(isinstance(step, int) for step in stride):
        return None
    rest = [i for i in range(len(shape)) if i != far[0]]
    row = cosize(Layout(tuple(shape[i] for i in rest), tuple(stride[i] for i in rest))) if rest else 1
    step = stride[far[0]]
    if not 0 < row <= step:
        return None
    extents: list[Any] = []
    map_numbers(extents.append, tensor.layout.shape)
    number: Any = CLASSES["Int64"](extents[0])
    return number * step - (step - row)


def _steps(layout: Any) -> list[Any]:
    """The strides of a layout, and the offset of a composed one: where it goes from its pointer."""
    if isinstance(layout, ComposedLayout):
        return [layout.offset, *get_leaves(layout.inner.stride)]
    return list(get_leaves(layout.stride))


def _reached(tensor: Tensor, layout: Any) -> int:
    """How many elements from its pointer on a tensor covers, also through a swizzle."""
    try:
        return cosize(layout)
    except LayoutError:
        raise TraceError(
            f"make_buffer_tensor: how far {name_of(tensor, 'the tensor')} {layout} reaches through its swizzle is not "
            "known while tracing, or would have to be listed",
            hint="make the buffer of the whole tensor, and see that through the swizzle: "
            "fx.make_view(fx.get_iter(buffer), layout)",
        ) from None


def make_buffer_ptr(ptr: Pointer, num_records_bytes: Any = None) -> Pointer:
    """The pointer behind a descriptor of `num_records_bytes` bytes from there: beyond them reads give 0, writes none.

    Without a number there is no check but that of 4 GiB: how much lies at a pointer is not known. Raises `TraceError`
    for what is no pointer into global memory.
    """
    what = "make_buffer_ptr"
    require_kernel(what)
    require_pointer(ptr, what)
    if ptr.spec.space != "global":
        raise TraceError(f"{what}: {name_of(ptr, 'the pointer')} is into {ptr.spec.space} memory",
                         hint="a buffer is made of a pointer into global memory")
    return buffer_pointer(ptr, MAX_RECORDS if num_records_bytes is None else _records(what, num_records_bytes))


def _records(what: str, given: Any) -> Any:
    """A number of bytes, known or of the device, of what a descriptor can hold."""
    number = plain(given)
    if isinstance(number, Numeric) and not number.is_static:
        if not isinstance(number, Integer):
            raise TraceError(f"{what}(num_records_bytes=): {name_of(given, 'it')} is a {number.dtype}",
                             hint="give a number of bytes: an int, an Int32 or an Int64")
        return minimum(maximum(CLASSES["Int64"](number), 0), MAX_RECORDS)
    return min(immediate(what, "num_records_bytes", number, 0, 2**32 - 1), MAX_RECORDS)


def get_buffer_rsrc(ptr: Pointer) -> Any:
    """The descriptor of a pointer that `make_buffer_ptr` gave, as the raw MLIR value (`!llvm.ptr<8>`).

    Raises `TraceError` for a pointer that was moved: the descriptor begins where the buffer does.
    """
    from mlir import ir

    require_pointer(ptr, "get_buffer_rsrc")
    if ptr.spec.space != "buffer":
        raise TraceError(f"get_buffer_rsrc: {name_of(ptr, 'the pointer')} is into {ptr.spec.space} memory",
                         hint="it has a descriptor behind fx.rocdl.make_buffer_ptr(ptr)")
    if ptr.reach != Span(0, 0):
        raise TraceError(f"get_buffer_rsrc: {name_of(ptr, 'the pointer')} was moved, and a descriptor begins where the "
                         "buffer does", hint="take the descriptor first, and give the offset to the load or store")
    return fly("to_llvm_ptr", [ptr.value], [ir.Type.parse(DESCRIPTOR)])


def rsrc_of(what: str, given: Any) -> Any:
    """The descriptor of an operand: itself, or that of a pointer."""
    if is_mlir_value(given) and str(given.type) == DESCRIPTOR:
        return given
    if isinstance(given, Pointer):
        return get_buffer_rsrc(given)
    raise TraceError(f"{what}: {name_of(given, repr(given))} is no buffer descriptor",
                     hint="give fx.rocdl.get_buffer_rsrc(fx.rocdl.make_buffer_ptr(ptr))")


def s_buffer_load(ptr: Pointer, offset: Any, *, count: int = 1, cache_modifier: int = 0) -> Any:
    """One word, or 4 of them, of a buffer, read through the scalar cache: an Int32, or a Vector of 4.

    `offset` counts words from the buffer's start, the same for all threads of a wave. Outside it reads 0.
    """
    what = "s_buffer_load"
    require_kernel(what)
    if immediate(what, "count", count, 1, 4, "count is 1 or 4") not in (1, 4):
        raise TraceError(f"{what}: a count of {count}", hint="count is 1 or 4")
    number, i32 = as_numeric(plain(offset)), CLASSES["Int32"]
    if not isinstance(number, Integer):
        raise TraceError(f"{what}: the offset is a {number.dtype}", hint="give a number of words, an integer")
    wide: Any = CLASSES["Int64"](number)
    far = wide * 4
    # What 32 bits do not hold lies outside of every buffer; a negative one does too.
    inside: Any = (far >= 0) & (far <= MAX_RECORDS)
    bytes_: Any = inside.select(far, MAX_RECORDS)
    policy = i32(immediate(what, "cache_modifier", cache_modifier, 0, 7)).ir_value()
    rsrc = op("llvm.ptrtoint", [rsrc_of(what, ptr)], mlir_type(CLASSES["Int128"].dtype))
    words = op("llvm.bitcast", [rsrc], mlir_type(i32.dtype, 4))
    name = "llvm.amdgcn.s.buffer.load." + ("i32" if count == 1 else "v4i32")
    lanes = 0 if count == 1 else count
    found = intrinsic(name, [words, CLASSES["Uint32"](bytes_).ir_value(), policy], mlir_type(i32.dtype, lanes))
    return Vector(found, lanes, i32) if lanes else i32(found)
