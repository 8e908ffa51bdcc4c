"""The operations of the Fly dialect, one row each, and the one function that builds them.

Attributes are strings (layouts, tilers, coordinates and atoms are static, so they are data in the IR, printed as the
layout algebra prints them). An operand named with a `*` is variadic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """A row: operands and results by name, required attributes, and its effect.

    Effects: "none" may be shared, moved and dropped; "reads" and "allocates" only dropped; "writes" must stay.
    """

    name: str
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    effect: str = "none"
    meaning: str = ""

    def __post_init__(self) -> None:
        if sum(o.endswith("*") for o in self.operands) > 1:
            raise ValueError(f"{self.name}: more than one variadic operand")


OPERATIONS = {
    f"fly.{o.name}": o
    for o in (
        # Views: a memref is a pointer with a layout in its type.
        Operation("from_llvm_ptr", ("pointer",), ("iterator",), meaning="a kernel argument as a typed pointer"),
        Operation("to_llvm_ptr", ("iterator",), ("pointer",), meaning="the bare address of a typed pointer"),
        Operation("make_view", ("iterator",), ("view",), meaning="a pointer seen through a layout"),
        Operation("get_iter", ("view",), ("iterator",), meaning="the pointer of a view"),
        Operation("logical_divide", ("view",), ("tiles",), ("tiler",), meaning="split a view into tile and rest"),
        Operation("zipped_divide", ("view",), ("tiles",), ("tiler",), meaning="the same, tiles and rests gathered"),
        Operation("tiled_divide", ("view",), ("tiles",), ("tiler",), meaning="the same, rests unpacked"),
        Operation("flat_divide", ("view",), ("tiles",), ("tiler",), meaning="the same, tiles and rests unpacked"),
        Operation("slice", ("view", "index*"), ("part",), ("coord",), meaning="fix the modes that coord gives"),
        Operation("int_swizzle", ("index",), ("swizzled",), ("swizzle",), meaning="an index through a swizzle"),
        Operation("add_offset", ("iterator", "offset"), ("moved",), meaning="move a pointer, in elements"),
        Operation(
            "make_buffer_ptr",
            ("iterator",),
            ("buffer",),
            ("num_records",),
            meaning="a pointer behind a buffer descriptor, which bounds it to num_records bytes",
        ),
        # Registers and whole-fragment access.
        Operation("memref_alloca", (), ("registers",), effect="allocates", meaning="a fragment in registers"),
        Operation(
            "memref_load_vec", ("view",), ("vector",), effect="reads", meaning="all elements of a view, in its order"
        ),
        Operation("memref_store_vec", ("vector", "view"), (), effect="writes", meaning="the mirror of memref_load_vec"),
        Operation("ptr_load", ("iterator",), ("value",), effect="reads", meaning="consecutive elements at a pointer"),
        Operation("ptr_store", ("value", "iterator"), (), effect="writes", meaning="the mirror of ptr_load"),
        # Copies: over views; then one atom between pointers; then as a load or a store of an SSA value.
        Operation("copy", ("source", "target"), (), ("atom",), effect="writes", meaning="copy a view, atom by atom"),
        Operation("copy_atom_call", ("source", "target"), (), ("atom",), effect="writes", meaning="copy one atom"),
        Operation("copy_atom_load", ("source",), ("value",), ("atom",), effect="reads", meaning="the load of one atom"),
        Operation(
            "copy_atom_store", ("value", "target"), (), ("atom",), effect="writes", meaning="the store of one atom"
        ),
    )
}


def irdl_text() -> str:
    """The IRDL declaration of the dialect, made from the rows and the type names."""
    from flylab.dialect.types import TYPE_NAMES

    types = "\n".join(f"  irdl.type @{name} {{ %0 = irdl.any  irdl.parameters(spelling: %0) }}" for name in TYPE_NAMES)
    return f"irdl.dialect @fly {{\n{types}\n" + "\n".join(map(_irdl_operation, OPERATIONS.values())) + "\n}"


def _irdl_operation(row: Operation) -> str:
    # Each name has a constraint of its own: one `irdl.any` used twice would mean "of the same type".
    names = (*row.operands, *row.results, *row.attributes)
    constraint = {name: f"%{i}" for i, name in enumerate(names)}
    body = [f"{constraint[name]} = irdl.any" for name in names]

    def group(kind: str, of: tuple[str, ...]) -> None:
        if of:
            items = (f"{n.rstrip('*')}: {'variadic ' if n.endswith('*') else ''}{constraint[n]}" for n in of)
            body.append(f"irdl.{kind}({', '.join(items)})")

    group("operands", row.operands)
    group("results", row.results)
    if row.attributes:
        body.append("irdl.attributes {" + ", ".join(f'"{n}" = {constraint[n]}' for n in row.attributes) + "}")
    return f"  irdl.operation @{row.name} {{ {'  '.join(body)} }}"


def build(
    name: str,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    attributes: Mapping[str, Any] | None = None,
    loc: Any = None,
) -> Any:
    """Create an operation at the current insertion point and return its first result (or None).

    `results` are MLIR types or the Python types of `flylab.dialect.types`; attribute values are printed.
    """
    from mlir import ir

    from flylab.dialect.types import to_mlir

    row = OPERATIONS[name]
    attrs = {n: ir.StringAttr.get(str((attributes or {})[n])) for n in row.attributes}
    types = [t if isinstance(t, ir.Type) else to_mlir(t) for t in results]
    op = ir.Operation.create(name, results=types, operands=list(operands), attributes=attrs, loc=loc)
    return op.results[0] if types else None


def attribute(op: Any, name: str) -> str:
    """The text of a string attribute of an operation."""
    from mlir import ir

    return str(ir.StringAttr(op.attributes[name]).value)
