"""What must hold for a copy: formats, memory spaces, counts, what is consecutive, the predicate, and the chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flylab.atoms import CopyAtom, CopyOp
from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr.atom_state import atom_set_value
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric
from flylab.expr.part_checks import RETILE, check_parts, is_fragment_of_mma
from flylab.expr.state import require_kernel
from flylab.expr.tensor import Pointer, Tensor, elements
from flylab.expr.vector import MAX_VECTOR
from flylab.layout import ComposedLayout, coalesce, size
from flylab.layout.consecutive import consecutive, first_mode
from flylab.shown import a_kind

Problem = tuple[str, str]
"""What is wrong, and one way to mend it."""

REACH = {
    "buffer": "make it a buffer tensor: fx.rocdl.make_buffer_tensor(tensor)",
    "shared": "take it from LDS: fx.SharedAllocator().allocate(...)",
    "register": "copy it into a fragment first: fx.make_rmem_tensor(shape, dtype)",
    "global": "give the tensor itself, not a buffer tensor",
}
"""How to get a tensor into a memory space."""


def require_tensor(value: Any, use: str) -> Tensor:
    """A tensor, or a `TraceError`."""
    if not isinstance(value, Tensor):
        raise TraceError(
            f"{use}: {name_of(value, repr(value))} is {a_kind(value)}, not a tensor",
            hint="give an fx.Tensor, a slice of one, or fx.make_rmem_tensor(...)",
        )
    return value


def atom_of(given: Any, use: str, state: Mapping[str, Any]) -> CopyAtom:
    """The atom that is given, or that of a tiled copy, with a state."""
    atom = getattr(given, "atom", given)
    if not isinstance(atom, CopyAtom):
        raise TraceError(
            f"{use}({given!r}, ...): not a copy atom",
            hint="make one: fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)",
        )
    for field, value in state.items():
        atom = atom_set_value(atom, field, value)
    return atom


def check_chip(op: CopyOp, space: str, use: str) -> None:
    """Refuse an operation that the chip lacks (an atomic: in the memory space that it changes)."""
    chip, chips = require_kernel(use).target.arch, op.chips(space)
    if chip in chips:
        return
    if op.atomic and not chips:
        what, others = f"in {space} memory no chip has it", [s for s in ("shared", "global") if op.atomic.chips(s)]
        hint = f"it is there in {' and '.join(others)} memory"
    else:
        what, hint = f"{chip} does not have it", f"compile for {', '.join(chips)}, or use {_instead(op)}"
    raise TraceError(f"{use}: {op}: {what}", hint=hint)


def _instead(op: CopyOp) -> str:
    if op.to_lds:
        return f"{op.row.call}(32), which both have"
    return "fx.UniversalAtomic" if op.atomic else "fx.UniversalCopy"


def check_copy(atom: CopyAtom, src: Tensor, dst: Tensor, pred: Any, use: str) -> int:
    """How many atoms a copy moves. Raises `TraceError`: one for all that does not fit, with the shapes."""
    names = {}
    for which, tensor in (("the source", src), ("the destination", dst)):
        names[which] = name_of(require_tensor(tensor, use), which)
        elements(tensor, use)
    if not atom.op.atomic or dst.space in atom.op.row.targets:
        check_chip(atom.op, dst.space, use)
    (source, target) = names.values()
    problems = [*_side(atom, src, source, atom.op.row.sources), *_side(atom, dst, target, atom.op.row.targets)]
    counts = size(src.spec.layout), size(dst.spec.layout)
    if counts[0] != counts[1]:
        problems.append((f"{source} {src.spec.layout} has {counts[0]} elements, {target} {dst.spec.layout} {counts[1]}",
                         "a copy needs as many elements on both sides"))
    problems += _lanes_in_lds(atom, dst, target)
    problems += check_parts(((source, src), (target, dst)), pred)
    problems += check_pred(atom, [src.spec.layout, dst.spec.layout], pred)
    atoms = counts[0] // atom.num_values
    if atoms > MAX_VECTOR:
        problems.append((f"one copy of {atoms} atoms by each thread ({source} {src.spec.layout}), and at most "
                         f"{MAX_VECTOR} are done", "divide the tensors into tiles and slice one for each thread first"))
    if problems:
        shapes = f"{use} of {atom}: {source} {src.spec}, {target} {dst.spec}" + (
            f", the predicate {pred.spec}" if isinstance(pred, Tensor) else "")
        text = "; ".join([problem for problem, _ in problems])
        raise TraceError(text if len(problems) == 1 and pred is None else f"{text} ({shapes})", hint=problems[0][1])
    return int(atoms)


def _lanes_in_lds(atom: CopyAtom, target: Tensor, name: str) -> list[Problem]:
    """What is wrong with the destination of a copy past the registers: it lies as the chip puts it."""
    if not atom.op.to_lds or not isinstance(target.spec.layout, ComposedLayout):
        return []
    return [(f"{name} {target.spec.layout} is swizzled, and the chip puts the lanes of a wave side by side",
             "swizzle which element each thread loads, and read LDS through the swizzle")]


def check_scattered(atom: CopyAtom, base: Any, offsets: Any, tensor: Any, pred: Any, name: str) -> None:
    """What must hold for `gather` and `scatter`. Raises `TraceError`: one for all that does not fit, with shapes."""
    use = f"fx.{name}"
    if not isinstance(base, Pointer) or not (isinstance(offsets, Tensor) and isinstance(tensor, Tensor)):
        order = "base_iter, offset_tensor, dst_tensor" if name == "gather" else "src_tensor, base_iter, offset_tensor"
        given = {"base_iter": (base, Pointer, "pointer"), "offset_tensor": (offsets, Tensor, "tensor"),
                 order.split(", ")[-1 if name == "gather" else 0]: (tensor, Tensor, "tensor")}
        part = next(part for part in given if not isinstance(given[part][0], given[part][1]))
        value, _, kind = given[part]
        raise TraceError(f"{use}: {part} is {name_of(value, repr(value))}, {a_kind(value)}, not a {kind}",
                         hint=f"the order is {use}(copy_atom, {order}); base_iter is the iterator of a tensor: "
                         "fx.get_iter(tensor)")
    for each in (offsets, tensor):
        elements(require_tensor(each, use), use)
    op, places, here = atom.op, base.spec, name_of(tensor, "the tensor")
    far, near = (op.row.sources, op.row.targets) if name == "gather" else (op.row.targets, op.row.sources)
    if not op.atomic or places.space in far:
        check_chip(op, places.space, use)
    problems = list(_side(atom, tensor, here, near))
    if places.dtype != atom.dtype:
        problems.append((f"{name_of(base, 'the pointer')} is to {places.dtype}, the atom copies {atom.dtype}",
                         f"make the atom for fx.{places.dtype}"))
    if places.space not in far or places.space == "register":
        problems.append((f"{op} cannot {name} with a pointer into {places.space} memory", REACH[far[0]]))
    if op.to_lds and name == "scatter":
        problems.append((f"{op} puts the lanes of a wave side by side in LDS, and cannot scatter them",
                         "gather by the places that they come from, or copy through registers: fx.UniversalCopy"))
    problems += _lanes_in_lds(atom, tensor, here)
    if offsets.space != "register" or offsets.spec.dtype.name not in ("Int32", "Int64"):
        problems.append((f"the offsets {offsets.spec} are no Int32 or Int64 in registers",
                         "copy them into a fragment, and convert them with .to(fx.Int64)"))
    problems += _per_atom(atom, offsets.spec.layout, tensor.spec.layout, pred)
    if problems:
        raise TraceError("; ".join([text for text, _ in problems])
                         + f" ({use} of {atom}: the pointer {places}, offsets {offsets.spec}, {here} {tensor.spec})",
                         hint=problems[0][1])


def _per_atom(atom: CopyAtom, offsets: Any, layout: Any, pred: Any) -> list[Problem]:
    """What is wrong with the shape of offsets, and of a predicate, for a tensor of this layout."""
    first, *rest = _modes(layout)
    wanted, given = [first // atom.num_values, *rest], _modes(offsets)
    problems = []
    if given != wanted and not (wanted[0] == 1 and given == rest):
        problems.append((f"the offsets {offsets} are not one for each atom of {layout}",
                         f"give them the shape ({', '.join(map(str, wanted))})"))
    if isinstance(pred, Tensor) and _modes(pred.spec.layout) != given:
        return [*problems, (f"the predicate {pred.spec.layout} does not have the shape of the offsets {offsets}",
                            "give it one flag for each offset")]
    return problems + check_pred(atom, [layout], pred)


def _side(atom: CopyAtom, tensor: Tensor, name: str, spaces: tuple[str, ...]) -> Iterator[Problem]:
    layout = tensor.spec.layout
    if tensor.spec.dtype != atom.dtype:
        yield (f"{name} holds {tensor.spec.dtype}, the atom copies {atom.dtype}",
               f"make the atom for fx.{tensor.spec.dtype}, or convert the data in registers")
    if tensor.space not in spaces:
        yield f"{name} is in {tensor.space} memory, which {atom.op} does not reach", REACH[spaces[0]]
    values = size(first_mode(layout))
    if values % atom.num_values:
        yield (f"{name} {layout} has {values} elements in its first mode, the atom moves {atom.num_values}",
               RETILE.format(name.strip("'")) if is_fragment_of_mma(tensor) else
               f"use an atom of {values * atom.dtype.bits} bits, or divide the tensor by {atom.num_values}")
        return
    yield from _together(atom, layout, name)


def _together(atom: CopyAtom, layout: Any, name: str) -> Iterator[Problem]:
    """Whether what one atom moves lies one element after the other in memory."""
    together = consecutive(layout, atom.num_values)
    if atom.num_values == 1 or together % atom.num_values == 0:
        return
    swizzled = isinstance(layout, ComposedLayout)
    fastest = first_mode(layout.inner if swizzled else layout)
    why = f"the stride of its first mode is {coalesce(fastest).stride}"
    hint = "a layout whose first mode has stride 1"
    if swizzled:
        why += f"; the swizzle keeps aligned runs of {1 << layout.outer.base} together"
        hint = "a swizzle of a larger base; fx.assume(i, div=n) tells what is known of a coordinate"
    yield (f"{name} {layout}: the atom moves {atom.num_values} consecutive elements, and here only {together} are "
           f"({why})", f"use an atom of {together * atom.dtype.bits} bits, or {hint}")


def check_pred(atom: CopyAtom, layouts: list[Any], pred: Any) -> list[Problem]:
    """What is wrong with a predicate: it is a Boolean, or a Boolean register tensor with a flag for each atom call of
    one of `layouts`."""
    if pred is None or isinstance(pred, bool) or isinstance(pred, Numeric) and pred.dtype.kind == BOOL:
        return []
    if not isinstance(pred, Tensor) or pred.spec.dtype.kind != BOOL or pred.space != "register":
        what = str(pred.spec) if isinstance(pred, Tensor) else type(pred).__name__
        return [(f"the predicate {name_of(pred, repr(pred))} is {what}, no Boolean in registers",
                 "give fx.make_rmem_tensor(shape, fx.Boolean), or one Boolean for all")]
    wanted = [_flags(atom, layout) for layout in layouts]
    if _modes(pred.spec.layout) in [shape for shapes in wanted for shape in shapes]:
        return []
    shown = " or ".join(dict.fromkeys(f"({', '.join(map(str, shapes[0]))})" for shapes in wanted))
    return [(f"the predicate {name_of(pred, 'pred')} {pred.spec.layout} does not have one flag for each atom call",
             f"give it the shape {shown}: 1, and the modes of the tensors after their first")]


def _flags(atom: CopyAtom, layout: Any) -> list[list[int]]:
    """The shapes that a predicate of a copy may have: one flag for each first mode, or for each atom in it too."""
    first, *rest = _modes(layout)
    return [[1, *rest], [first // atom.num_values, *rest], rest]


def _modes(layout: Any) -> list[int]:
    """The number of elements of each mode."""
    shape = layout.shape
    return [size(mode) for mode in shape] if isinstance(shape, tuple) else [size(shape)]
