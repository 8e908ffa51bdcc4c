"""Registers and copies: fragments of one thread, copy atoms, and `fx.copy`."""

from __future__ import annotations

from typing import Any

from flylab.atoms import CopyAtom
from flylab.atoms.copy import BUFFER, UNIVERSAL_COPY
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
from flylab.layout import ComposedLayout, Layout, coalesce, cosize, size
from flylab.layout.consecutive import consecutive, first_mode

REGISTERS = 512
"""The vector registers of a thread, accumulation registers counted. Source: CDNA3 ISA, section 3.6.4."""


def make_rmem_tensor(shape_or_layout: Any, dtype: Any) -> Tensor:
    """A tensor in this thread's registers, not initialised. A shape is laid out compactly, first mode fastest.

    Raises `TraceError` for more than REGISTERS registers of 32 bits.
    """
    require_kernel("make_rmem_tensor")
    kinds = (Layout, ComposedLayout, LayoutValue)
    layout = shape_or_layout if isinstance(shape_or_layout, kinds) else make_layout(shape_or_layout)
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
    if copy_atom.op.family not in (UNIVERSAL_COPY, BUFFER):
        raise NotSupportedError(f"fx.copy with {copy_atom}: this version of flylab does not lower it yet")
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


def _check_side(atom: CopyAtom, tensor: Tensor, name: str) -> None:
    if tensor.spec.dtype != atom.dtype:
        raise TraceError(
            f"{name} holds {tensor.spec.dtype}, the atom copies {atom.dtype}",
            hint=f"make the atom for fx.{tensor.spec.dtype}, or convert the data in registers",
        )
    if not any(tensor.space in spaces for spaces in atom.op.row.moves):
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
    _check_together(atom, tensor.spec.layout, name)


def _check_together(atom: CopyAtom, layout: Any, name: str) -> None:
    """Refuse an atom of elements that are not one after the other in memory."""
    together = consecutive(layout, atom.num_values)
    if atom.num_values == 1 or together % atom.num_values == 0:
        return
    swizzled = isinstance(layout, ComposedLayout)
    fastest = first_mode(layout.inner if swizzled else layout)
    why = f"the stride of its first mode is {coalesce(fastest).stride}"
    hint = "a layout whose first mode has stride 1"
    if swizzled:
        why += f"; the swizzle keeps {1 << layout.outer.base} together, where they begin at a multiple of as many"
        hint = "a swizzle of a larger base; fx.assume(i, div=n) tells what is known of a coordinate"
    raise TraceError(
        f"{name} {layout}: the atom moves {atom.num_values} consecutive elements, and here only {together} are ({why})",
        hint=f"use an atom of {together * atom.dtype.bits} bits, or {hint}",
    )
