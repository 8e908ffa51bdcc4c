"""Pointers without layouts: reading and writing consecutive elements, addresses as numbers, LLVM's own pointers."""

from __future__ import annotations

from typing import Any

from flylab.dialect.types import POINTERS, MemRef, Ptr
from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr.checks import device_check
from flylab.expr.copy import make_rmem_tensor
from flylab.expr.emit import fly
from flylab.expr.enums import ADDRESS_SPACES, AddressSpace, member
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Integer, Numeric, as_numeric, compare, divisor_of, is_mlir_value, numeric_class
from flylab.expr.promotion import plain
from flylab.expr.raw import typed
from flylab.expr.recast import ADDRESSES, aligned
from flylab.expr.tensor import Pointer
from flylab.expr.types import of_type
from flylab.expr.vector import Vector
from flylab.expr.views import make_view
from flylab.layout import Layout
from flylab.shown import a_kind

SPACE_NAMES = {space: name for name, space in ADDRESS_SPACES.items()}


class PointerType:
    """The type of a pointer: `PointerType.get(fx.Float32, fx.AddressSpace.Global, 16)`; of one that there is, `p.type`.
    """

    @staticmethod
    def get(elem_ty: Any, address_space: Any = AddressSpace.Global, alignment: int | None = None) -> Ptr:
        """A pointer to a number format in a memory space, known to be aligned to `alignment` bytes.

        >>> print(PointerType.get(CLASSES["Float32"], AddressSpace.Global, 16))
        f32, global, align<16>

        Raises `TraceError` for the generic space, which no pointer of the language is in, and for an alignment that is
        no power of two.
        """
        space = member(AddressSpace, address_space, "PointerType.get")
        if space not in SPACE_NAMES:
            raise TraceError("PointerType.get of the generic address space",
                             hint="a pointer says where it points: fx.AddressSpace.Global, Shared or Register")
        dtype = numeric_class(elem_ty).dtype
        align = alignment or 0
        if type(align) is not int or align < 0 or align & (align - 1):
            raise TraceError(f"PointerType.get(alignment={alignment!r})", hint="it is a power of two, in bytes")
        return Ptr(dtype, SPACE_NAMES[space], align if align > dtype.bits // 8 else 0)


def ptr_load(ptr: Pointer, result_type: Any = None) -> Any:
    """The element at a pointer, or what lies there as `result_type`: a format, `T.vec(4, T.f32)` or `fx.Float32x4`.

    The bytes from the pointer on are read as the type; where that needs a better alignment than the pointer is known to
    have, it is checked on the device. Raises `TraceError` for what is no pointer or no type.
    """
    require_pointer(ptr, "ptr_load")
    kind, lanes = (ptr.dtype, 0) if result_type is None else _loaded_type(result_type)
    vector = make_view(_as(ptr, kind), Layout(lanes or 1, 1)).load()
    return vector if lanes else vector[0]


def ptr_store(value: Any, ptr: Pointer) -> None:
    """Store a number or vector at a pointer: the mirror of `ptr_load`, in the value's own format.

    A plain Python number gets the pointer's format. Raises `TraceError` for what is no pointer or no number.
    """
    require_pointer(ptr, "ptr_store")
    given = typed(value)
    if not isinstance(given, (Vector, Numeric)):
        given = ptr.dtype(given) if isinstance(given, (bool, int, float)) else as_numeric(given)
    kind = given.dtype if isinstance(given, Vector) else type(given)
    view = make_view(_as(ptr, kind), Layout(given.numel if isinstance(given, Vector) else 1, 1))
    view.store(given) if isinstance(given, Vector) else view.fill(given)


def _loaded_type(given: Any) -> tuple[Any, int]:
    """The format and the count (0 for a number) of what is loaded; `fx.Float32x4` is a class with both."""
    lanes = getattr(given, "lanes", None)
    return (given.dtype, lanes) if isinstance(lanes, int) else of_type(given)


def _as(pointer: Pointer, kind: Any) -> Pointer:
    """The pointer with the element format `kind`; as it is where it has that already."""
    if pointer.dtype is kind:
        return pointer
    if kind.dtype.kind == BOOL:
        raise TraceError("a Boolean in memory: it is a byte there", hint="load fx.Uint8, and compare it with 0")
    return aligned(pointer, 1, kind)


def require_pointer(value: Any, use: str) -> None:
    """Refuse what is no pointer of the language."""
    if not isinstance(value, Pointer):
        raise TraceError(f"{use}: {name_of(value, repr(value))} is {a_kind(value)}, not a pointer",
                         hint="give a pointer: fx.get_iter(tensor)")


def inttoptr(result_type: Any, src: Any) -> Pointer:
    """The pointer of a type (`p.type`, or a number format for global memory) at the address `src`: `ptrtoint` back.

    Global addresses are Int64, those in LDS Int32. That the address is a multiple of the type's alignment is checked,
    on the device where it is not known. Raises `TraceError` for types of other memory and for what is no integer.
    """
    spec = result_type if isinstance(result_type, Ptr) else Ptr(numeric_class(result_type).dtype, "global")
    if spec.space not in POINTERS:
        raise TraceError(f"inttoptr to {spec}: {spec.space} memory has no addresses",
                         hint="give the type of a pointer into global memory or LDS")
    address = as_numeric(plain(src))
    if not isinstance(address, Integer):
        raise TraceError(f"inttoptr of {name_of(src, repr(src))}, a {address.dtype}",
                         hint="give an address: fx.ptrtoint(pointer)")
    wide: Any = CLASSES[ADDRESSES[spec.space]](address)
    if divisor_of(address) % spec.known_align:
        device_check(compare("==", wide & (spec.known_align - 1), 0),
                     f"the address that inttoptr makes a pointer of is no multiple of {spec.known_align} bytes",
                     hint="move by whole elements: add n * bytes of an element")
    return Pointer(fly("inttoptr", [wide.ir_value()], [spec]))


def make_ptr(result_type: Any, args: Any) -> Pointer:
    """A pointer of a type from its one part: another pointer into the same memory, an address, or LLVM's own pointer.

    Raises `TraceError` for several parts: a buffer's pointer is made by `fx.rocdl.make_buffer_ptr`.
    """
    parts = list(args) if isinstance(args, (list, tuple)) else [args]
    if len(parts) != 1:
        raise TraceError(f"make_ptr of {len(parts)} parts", hint="a pointer into a buffer: fx.rocdl.make_buffer_ptr(p)")
    spec = result_type if isinstance(result_type, Ptr) else Ptr(numeric_class(result_type).dtype, "global")
    (part,) = parts
    if isinstance(part, Pointer):
        if part.spec.space != spec.space:
            raise TraceError(f"make_ptr of {name_of(part, 'a pointer')} ({part.spec}) as {spec}",
                             hint="the memory space stays")
        return aligned(part, spec.known_align, CLASSES[spec.dtype.name])
    if is_mlir_value(part) and str(part.type) == POINTERS.get(spec.space):
        return Pointer(fly("from_llvm_ptr", [part], [spec]))
    return inttoptr(spec, part)


def to_llvm_ptr(ptr: Pointer) -> Any:
    """LLVM's pointer, as a raw MLIR value for its builders: `!llvm.ptr<1>` into global memory, `<3>` into LDS."""
    from mlir import ir

    require_pointer(ptr, "to_llvm_ptr")
    kind = POINTERS.get(ptr.spec.space)
    if kind is None:
        raise TraceError(f"to_llvm_ptr of {name_of(ptr, 'a pointer')} into {ptr.spec.space} memory",
                         hint="a buffer has a descriptor: fx.rocdl.get_buffer_rsrc(p); registers have no address")
    return fly("to_llvm_ptr", [ptr.value], [ir.Type.parse(kind)])


def memref_alloca(memref_type: Any, layout: Any) -> Any:
    """A tensor in registers of the number format of a tensor's type (`t.type`), seen through `layout`."""
    if not isinstance(memref_type, MemRef) or memref_type.space != "register":
        raise TraceError(f"memref_alloca({memref_type}, ...): not the type of a tensor in registers",
                         hint="fx.make_rmem_tensor(layout, fx.Float32) makes one from its format")
    return make_rmem_tensor(layout, CLASSES[memref_type.dtype.name])

