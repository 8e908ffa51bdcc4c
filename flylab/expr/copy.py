"""Registers and copies: fragments of one thread, `fx.copy`, and its kin for scattered places."""

from __future__ import annotations

from typing import Any

from flylab.atoms import CopyAtom
from flylab.dialect.types import MemRef
from flylab.errors import TraceError
from flylab.expr.copy_checks import atom_of, check_copy, check_scattered, require_tensor
from flylab.expr.emit import fly
from flylab.expr.layout_value import LayoutValue
from flylab.expr.location import name_of
from flylab.expr.numeric import as_numeric, numeric_class
from flylab.expr.state import require_kernel
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.vector import Vector
from flylab.expr.views import get_iter, make_layout, make_view
from flylab.layout import ComposedLayout, Layout, cosize, size

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
    vector: Vector = require_tensor(tensor, "memref_load_vec").load()
    return vector


def memref_store_vec(vector: Any, tensor: Tensor) -> None:
    """Store a vector into a tensor with as many elements."""
    require_tensor(tensor, "memref_store_vec").store(vector)


def memref_load(tensor: Tensor, indices: Any) -> Any:
    """One element of a tensor: `memref_load(t, (i, j))`."""
    return require_tensor(tensor, "memref_load")[indices]


def memref_store(value: Any, tensor: Tensor, indices: Any) -> None:
    """Set one element of a tensor."""
    require_tensor(tensor, "memref_store")[indices] = value


def copy(copy_atom: CopyAtom, src: Tensor, dst: Tensor, *, pred: Any = None, **state: Any) -> None:
    """Copy a tensor, atom by atom. `copy_atom` is an atom, or a tiled copy, of which its atom counts.

    The first mode of `src` and `dst` is what one atom moves (or a whole number of atoms); the other modes are walked.
    Both must have the atom's number format and as many elements, and what one atom moves must be consecutive in
    memory. Between two places in memory it goes through registers. Element goes to element, in the order of their
    coordinates: a fragment of one tiled copy is taken by another with `retile`.

    `pred` is a Boolean for all atoms, or a Boolean register tensor with one flag for each: of the shape (1, modes after
    the first), or of these modes. Where a flag is off no memory is touched: the destination stays as it was (registers
    that nothing was ever stored to read as 0).

    `state` sets a part of the atom's state: `soffset=` moves a buffer tensor, as `fx.atom_set_value` says.

    Raises `TraceError` naming formats, layouts and counts that do not fit, and for what the chip lacks.
    """
    require_kernel("fx.copy")
    atom = atom_of(copy_atom, "fx.copy", state)
    check_copy(atom, src, dst, pred, "fx.copy")
    _emit("copy", [_placed(atom, src).value, _placed(atom, dst).value], pred, atom)


def copy_atom_call(copy_atom: CopyAtom, src: Tensor, dst: Tensor, *, pred: Any = None) -> None:
    """Copy what one atom moves: `fx.copy` of tensors with no more. `pred` is a Boolean, or a tensor of one.

    Raises `TraceError` as `fx.copy`, and for more elements.
    """
    require_kernel("fx.copy_atom_call")
    atom = atom_of(copy_atom, "fx.copy_atom_call", {})
    atoms = check_copy(atom, src, dst, pred, "fx.copy_atom_call")
    if atoms != 1:
        raise TraceError(
            f"fx.copy_atom_call: {name_of(src, 'the source')} {src.spec.layout} has {size(src.spec.layout)} elements, "
            f"the atom moves {atom.num_values}",
            hint="fx.copy walks tensors of several atoms",
        )
    _emit("copy", [_placed(atom, src).value, _placed(atom, dst).value], pred, atom)


def _placed(atom: CopyAtom, tensor: Tensor) -> Tensor:
    """A tensor where the atom's state moves it: behind a buffer, by an offset that the whole wave has."""
    if tensor.space != "buffer" or "soffset" not in atom.state:
        return tensor
    moved: Tensor = make_view(_with_soffset(atom, get_iter(tensor)), tensor.layout)
    return moved


def _with_soffset(atom: CopyAtom, pointer: Pointer) -> Pointer:
    soffset = atom.state.get("soffset")
    if pointer.spec.space != "buffer" or soffset is None:
        return pointer
    return Pointer(fly("add_soffset", [pointer.value, soffset.ir_value()], [pointer.spec]), pointer.reach, pointer.room)


def gather(copy_atom: CopyAtom, base_iter: Pointer, offset_tensor: Tensor, dst_tensor: Tensor, *,
           pred: Any = None) -> None:
    """Copy from scattered places: each atom from `base_iter` moved by its own offset, in elements.

    `offset_tensor` holds an Int32 or Int64 for each atom, in registers, of the shape (TV, rest); `dst_tensor` has the
    shape ((atom's values, TV), rest). `pred`, a Boolean or a register tensor of them, has the offsets' shape.

    Raises `TraceError` for shapes that do not fit, and as `fx.copy`.
    """
    _scattered("gather", copy_atom, base_iter, offset_tensor, dst_tensor, pred)


def scatter(copy_atom: CopyAtom, src_tensor: Tensor, base_iter: Pointer, offset_tensor: Tensor, *,
            pred: Any = None) -> None:
    """Copy to scattered places: the mirror of `fx.gather`, whose shapes and errors it has."""
    _scattered("scatter", copy_atom, base_iter, offset_tensor, src_tensor, pred)


def _scattered(name: str, given: Any, base: Any, offsets: Any, tensor: Any, pred: Any) -> None:
    use = f"fx.{name}"
    require_kernel(use)
    atom = atom_of(given, use, {})
    check_scattered(atom, base, offsets, tensor, pred, name)
    _emit(name, [_with_soffset(atom, base).value, offsets.value, tensor.value], pred, atom)


def _emit(name: str, operands: list[Any], pred: Any, atom: CopyAtom) -> None:
    """A copy with its predicate, where it has one that is not known."""
    if isinstance(pred, Tensor):
        operands.append(pred.value)
    elif pred is not None:
        flag = as_numeric(pred)
        if flag.is_static and not flag.value:
            return
        operands += [] if flag.is_static else [flag.ir_value()]
    fly(name, operands, atom=atom)
