"""Registers and copies: fragments of one thread, copy atoms, and `fx.copy`."""

from __future__ import annotations

from typing import Any

from flylab.atoms import CopyAtom, CopyOp, copy_op
from flylab.dialect.types import MemRef
from flylab.errors import NotSupportedError, TraceError
from flylab.expr.emit import fly
from flylab.expr.layout_value import LayoutValue
from flylab.expr.location import name_of
from flylab.expr.numeric import numeric_class
from flylab.expr.state import require_kernel
from flylab.expr.tensor import Tensor, elements
from flylab.expr.vector import MAX_VECTOR, Vector
from flylab.expr.views import make_layout
from flylab.layout import Layout, coalesce, cosize, size

REGISTERS = 512
"""The vector registers of a thread, accumulation registers counted. Source: CDNA3 ISA, section 3.6.4."""


def UniversalCopy(bit_size: int) -> CopyOp:
    """A copy of 8, 16, 32, 64 or 128 bits by one thread, between any memory and registers."""
    return _op("universal_copy", bit_size)


def _op(family: str, bits: int) -> CopyOp:
    return copy_op(family, bits)


def UniversalCopy8b() -> CopyOp:
    """A copy of 8 bits by one thread."""
    return UniversalCopy(8)


def UniversalCopy16b() -> CopyOp:
    """A copy of 16 bits by one thread."""
    return UniversalCopy(16)


def UniversalCopy32b() -> CopyOp:
    """A copy of 32 bits by one thread."""
    return UniversalCopy(32)


def UniversalCopy64b() -> CopyOp:
    """A copy of 64 bits by one thread."""
    return UniversalCopy(64)


def UniversalCopy128b() -> CopyOp:
    """A copy of 128 bits by one thread."""
    return UniversalCopy(128)


def make_copy_atom(copy_op_type: CopyOp, elem_type: Any) -> CopyAtom:
    """The copy operation on elements of a number format: `make_copy_atom(fx.UniversalCopy(128), fx.Float32)`.

    Raises `LayoutError` where the bits are no whole number of elements.
    """
    if not isinstance(copy_op_type, CopyOp):
        raise TraceError(
            f"make_copy_atom({copy_op_type!r}, ...): not a copy operation",
            hint="give fx.UniversalCopy(bits) or fx.rocdl.BufferCopy(bits)",
        )
    return CopyAtom(copy_op_type, numeric_class(elem_type).dtype)


def make_rmem_tensor(shape_or_layout: Any, dtype: Any) -> Tensor:
    """A tensor in this thread's registers, not initialised. A shape is laid out compactly, first mode fastest.

    Raises `TraceError` for more than REGISTERS registers of 32 bits.
    """
    require_kernel("make_rmem_tensor")
    layout = shape_or_layout if isinstance(shape_or_layout, (Layout, LayoutValue)) else make_layout(shape_or_layout)
    if isinstance(layout, LayoutValue):
        raise TraceError(f"make_rmem_tensor({layout}): registers need extents and strides that are known while tracing",
                         hint="give a tile of known extents: fx.make_rmem_tensor((4, 8), dtype)")
    kind = numeric_class(dtype).dtype
    count, most = cosize(layout), REGISTERS * 32 // kind.bits
    if size(layout) < 1 or not 1 <= count <= most:
        raise TraceError(
            f"make_rmem_tensor: {layout} has {count} elements, a thread holds 1 to {most} of {kind} in its "
            f"{REGISTERS} registers",
            hint="give extents of at least 1, and divide the work into tiles first",
        )
    spec = MemRef(kind, "register", layout)
    return Tensor(fly("memref_alloca", [], [spec]))


def memref_load_vec(tensor: Tensor) -> Vector:
    """All elements of a tensor as a Vector, in the order of its coordinates."""
    vector: Vector = _tensor(tensor, "memref_load_vec").load()
    return vector


def memref_store_vec(vector: Any, tensor: Tensor) -> None:
    """Store a vector into a tensor with as many elements."""
    _tensor(tensor, "memref_store_vec").store(vector)


def memref_load(tensor: Tensor, indices: Any) -> Any:
    """One element of a tensor: `memref_load(t, (i, j))`."""
    return _tensor(tensor, "memref_load")[indices]


def memref_store(value: Any, tensor: Tensor, indices: Any) -> None:
    """Set one element of a tensor."""
    _tensor(tensor, "memref_store")[indices] = value


def _tensor(value: Any, use: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TraceError(
            f"{use}: {name_of(value, repr(value))} is a {type(value).__name__}, not a tensor",
            hint="give an fx.Tensor, a slice of one, or fx.make_rmem_tensor(...)",
        )
    return value


def copy(copy_atom: CopyAtom, src: Tensor, dst: Tensor, *, pred: Any = None) -> None:
    """Copy a tensor, atom by atom.

    The first mode of `src` and `dst` is what one atom moves (or a whole number of atoms); the other modes are walked.
    Both must have the atom's number format and as many elements, and what one atom moves must be consecutive in
    memory. Raises `TraceError` naming formats, layouts and counts otherwise.
    """
    if pred is not None:
        raise NotSupportedError(
            "fx.copy(..., pred=): predicates are part of the language, but this version of flylab "
            "does not have them yet",
            hint="a buffer tensor (fx.rocdl.make_buffer_tensor) reads 0 and drops writes outside",
        )
    require_kernel("fx.copy")
    if not isinstance(copy_atom, CopyAtom):
        raise TraceError(
            f"fx.copy({copy_atom!r}, ...): not a copy atom",
            hint="make one: fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)",
        )
    names = [name_of(_tensor(t, "fx.copy"), which) for t, which in ((src, "the source"), (dst, "the destination"))]
    for tensor, name in zip((src, dst), names, strict=True):
        _check_side(copy_atom, tensor, name)
    counts = [elements(tensor, "fx.copy") for tensor in (src, dst)]
    if counts[0] != counts[1]:
        raise TraceError(
            f"{names[0]} {src.spec.layout} has {counts[0]} elements, {names[1]} {dst.spec.layout} {counts[1]}",
            hint="a copy needs as many elements on both sides",
        )
    atoms = counts[0] // copy_atom.num_values
    if atoms > MAX_VECTOR:
        raise TraceError(
            f"one copy of {atoms} atoms by each thread ({names[0]} {src.spec.layout}), and at most {MAX_VECTOR} are "
            "done",
            hint="divide the tensors into tiles and slice one for each thread first",
        )
    fly("copy", [src.value, dst.value], atom=copy_atom)


def first_mode(layout: Layout) -> Layout:
    """The mode that one atom copies: the first of several, or the whole layout."""
    return layout[0] if isinstance(layout.shape, tuple) and layout.shape else layout


def _check_side(atom: CopyAtom, tensor: Tensor, name: str) -> None:
    if tensor.spec.dtype != atom.dtype:
        raise TraceError(
            f"{name} holds {tensor.spec.dtype}, the atom copies {atom.dtype}",
            hint=f"make the atom for fx.{tensor.spec.dtype}, or convert the data in registers",
        )
    if tensor.space not in atom.op.spaces and tensor.space != "register":
        raise TraceError(
            f"{name} is in {tensor.space} memory, which {atom.op} does not reach",
            hint="make it a buffer tensor: fx.rocdl.make_buffer_tensor(tensor)",
        )
    elements(tensor, "fx.copy")
    values = first_mode(tensor.spec.layout)
    if size(values) % atom.num_values:
        raise TraceError(
            f"{name} {tensor.spec.layout} has {size(values)} elements in its first mode, the atom moves "
            f"{atom.num_values}",
            hint=f"use an atom of {size(values) * atom.dtype.bits} bits, or divide the tensor by {atom.num_values}",
        )
    run = coalesce(values)
    fastest = run if not isinstance(run.shape, tuple) else run[0]
    consecutive = size(fastest) if fastest.stride == 1 else 1
    if atom.num_values > 1 and consecutive % atom.num_values:
        raise TraceError(
            f"{name} {tensor.spec.layout}: the atom moves {atom.num_values} consecutive elements, and here only "
            f"{consecutive} are (the stride of its first mode is {fastest.stride})",
            hint=f"use an atom of {consecutive * atom.dtype.bits} bits, or a layout whose first mode has stride 1",
        )
