"""The operations of the Fly dialect, one row each, and the one function that builds them.

Attributes are strings. An operand named with a `*` is variadic.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flylab.dialect.types import TYPE_NAMES, to_mlir

WHOLE_WAVES = "fly.whole_waves"
"""The attribute of a kernel with matrix products: the number of the check that its waves go one way as a whole."""


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


# An operand with a `*` may be left out: MLIR gives all operands under one name the same type.
ALGEBRA = {
    "append": "base elem n*", "prepend": "base elem n*", "get": "value path", "select": "value indices",
    "take": "value begin end", "group": "value begin end", "get_shape": "layout", "get_stride": "layout",
    "make_layout": "shape stride*", "make_ordered_layout": "shape order*", "make_identity_layout": "shape",
    "make_layout_like": "layout", "make_fragment_layout_like": "layout", "make_layout_tv": "thr val",
    "make_shape": "extents", "make_stride": "strides", "make_view": "offset layout*",
    "make_composed_layout": "outer offset inner*", "composed_get_inner": "layout", "composed_get_offset": "layout",
    "composed_get_outer": "layout",
    "size": "value", "cosize": "layout", "coshape": "layout", "coprofile": "layout", "ceil_div": "value divisor",
    "shape_div": "shape divisor", "int_tuple_product": "value", "int_tuple_product_each": "value",
    "int_tuple_product_like": "value profile",
    "crd2idx": "coord layout", "idx2crd": "index layout", "get_flat_coord": "index layout",
    "get_1d_coord": "index layout", "slice": "value coord", "dice": "value coord",
    "coalesce": "layout profile*", "filter": "layout", "composition": "outer inner", "complement": "layout target*",
    "right_inverse": "layout", "left_inverse": "layout", "recast_layout": "layout old_bits new_bits",
    "logical_divide": "layout tiler", "zipped_divide": "layout tiler", "tiled_divide": "layout tiler",
    "flat_divide": "layout tiler", "overcover": "layout divisor",
    "logical_product": "block tiler", "zipped_product": "block tiler", "tiled_product": "block tiler",
    "flat_product": "block tiler", "blocked_product": "block tiler", "raked_product": "block tiler",
    "tile_to_shape": "block shape order*",
}  # fmt: skip
"""The functions of `flylab.layout` that are operations where an argument holds a runtime number, with their operands.
`slice` and those of SEEN_ANEW also take a view in place of a layout, `make_view` a pointer in place of an offset."""

SEEN_ANEW = (
    "logical_divide", "zipped_divide", "tiled_divide", "flat_divide", "composition", "coalesce", "group", "take",
    "select",
)  # fmt: skip
"""The functions of which a view keeps its pointer, and sees its memory through what they make of its layout."""

OPERATIONS = {
    f"fly.{o.name}": o
    for o in (
        # Values of the layout algebra that hold runtime numbers, and what is computed with them.
        Operation("static", (), ("result",), meaning="an argument known while tracing; the type holds all of it"),
        Operation("make_int_tuple", ("leaf*",), ("result",), meaning="an int tuple from its runtime leaves"),
        Operation("from_leaves", ("leaf*",), ("result",), meaning="a layout from its runtime leaves"),
        Operation("make_tile", ("leaf*",), ("result",), meaning="a tile from its runtime leaves"),
        Operation("get_leaf", ("source",), ("leaf",), ("index",), meaning="one runtime leaf of a value of the algebra"),
        Operation("get_layout", ("view",), ("layout",), meaning="the layout of a view"),
        *(Operation(n, tuple(row.split()), ("result",), meaning=f"flylab.layout.{n}") for n, row in ALGEBRA.items()),
        # Views: a memref is a pointer with a layout in its type.
        Operation("from_llvm_ptr", ("pointer",), ("iterator",), meaning="a kernel argument as a typed pointer"),
        Operation("to_llvm_ptr", ("iterator",), ("pointer",), meaning="the bare address of a typed pointer"),
        Operation("get_iter", ("view",), ("iterator",), meaning="the pointer of a view"),
        Operation("int_swizzle", ("index",), ("swizzled",), ("swizzle",), meaning="an index through a swizzle"),
        Operation("add_offset", ("iterator", "offset"), ("moved",), meaning="move a pointer, in elements"),
        Operation("recast_iter", ("iterator",), ("recast",), meaning="the same address as a pointer to another format"),
        Operation("ptrtoint", ("iterator",), ("address",), meaning="the address of a global pointer, or one of LDS"),
        Operation("inttoptr", ("address",), ("iterator",), meaning="the typed pointer at an address: ptrtoint back"),
        Operation(
            "make_buffer_ptr",
            ("iterator", "num_records*"),
            ("buffer",),
            ("num_records",),
            meaning="a pointer behind a buffer descriptor, which bounds it to num_records bytes",
        ),
        Operation("convert_float", ("value",), ("converted",), meaning="a float of below 16 bits to or from Float32"),
        # Registers and whole-fragment access.
        Operation("check", ("condition",), (), ("number", "message"), "writes", "stop where the condition is false"),
        Operation("memref_alloca", (), ("registers",), effect="allocates", meaning="a fragment in registers"),
        Operation(
            "memref_load_vec", ("view",), ("vector",), effect="reads", meaning="all elements of a view, in its order"
        ),
        Operation("memref_store_vec", ("vector", "view"), (), effect="writes", meaning="the mirror of memref_load_vec"),
        Operation("ptr_load", ("iterator",), ("value",), effect="reads", meaning="consecutive elements at a pointer"),
        Operation("ptr_store", ("value", "iterator"), (), effect="writes", meaning="the mirror of ptr_load"),
        Operation(
            "printf",
            ("word*",),
            (),
            ("format", "formats", "site"),
            effect="writes",
            meaning="print a line: the words of the numbers in it, each of a format; calls are numbered by site",
        ),
        # The parts of a view, or layout, that all threads have; a slice of it is one thread's.
        *(
            Operation(n, ("view",), ("threads",), ("tiled_copy",), meaning="((thread, value), rest of each mode)")
            for n in ("tiled_copy_partition_src", "tiled_copy_partition_dst")
        ),
        Operation("tiled_copy_retile", ("view",), ("same",), ("tiled_copy",), meaning="a fragment as a copy takes it"),
        Operation(
            "tiled_mma_partition",
            ("view",),
            ("threads",),
            ("operand", "tiled_mma"),
            meaning="((thread, value), rest of each mode) of A, B, C or D",
        ),
        # LDS.
        Operation(
            "shared_alloc", (), ("whole",), ("bytes", "align", "symbol"), "allocates",
            "a pointer to bytes of LDS: with a symbol, to those that all with it in the kernel share",
        ),
        Operation(
            "shared_part", ("whole",), ("part",), ("offset", "bytes"),
            meaning="a pointer to a part of a shared_alloc, for what touches no other part of it",
        ),
        Operation(
            "shared_dynamic", (), ("pointer",), ("offset", "align"),
            meaning="a pointer into the LDS whose bytes the launch gives, as many bytes from its start",
        ),
        # Copies: over views; then one atom between pointers; then as a load or a store of an SSA value.
        # A predicate is a Boolean, or of a view one for each atom: where it is off, nothing is touched.
        Operation("copy", ("source", "target", "pred*"), (), ("atom",), "writes", "copy a view, atom by atom"),
        Operation("gather", ("base", "offsets", "target", "pred*"), (), ("atom",), "writes",
                  "copy a view, atom by atom, each from a pointer moved by its own offset"),
        Operation("scatter", ("base", "offsets", "source", "pred*"), (), ("atom",), "writes", "the mirror of gather"),
        Operation("copy_atom_call", ("source", "target", "pred*"), (), ("atom",), "writes", "copy one atom"),
        Operation("add_soffset", ("iterator", "offset"), ("moved",),
                  meaning="move a pointer into a buffer, in elements, by what is the same in a wave: not in registers"),
        Operation("first_lane", ("iterator",), ("uniform",), ("apart",),
                  meaning="the pointer that the wave's first lane has; of lanes so many bytes apart, or 0"),
        Operation("copy_atom_load", ("source",), ("value",), ("atom",), effect="reads", meaning="the load of one atom"),
        Operation(
            "copy_atom_store", ("value", "target"), (), ("atom",), effect="writes", meaning="the store of one atom"
        ),
        # Matrix products in the same three forms; `state` is what the atom takes beside its matrices.
        Operation("gemm", ("d", "a", "b", "c", "state*"), (), ("atom", "order"), "writes", "D = A x B + C, by atoms"),
        Operation("mma_atom_call", ("d", "a", "b", "c", "state*"), (), ("atom",), "writes", "one atom of it"),
        Operation("mma_atom_call_ssa", ("a", "b", "c", "state*"), ("d",), ("atom",), meaning="one atom, on vectors"),
    )
}


def irdl_text() -> str:
    """The IRDL declaration of the dialect, made from the rows and the type names."""
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


@functools.cache
def mlir_ir() -> Any:
    """MLIR's module `ir`, which only a trace imports; by a name of its own, since an import in a function that runs
    for each operation takes as long as making it."""
    from mlir import ir

    return ir


def build(
    name: str,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    attributes: Mapping[str, Any] | None = None,
    loc: Any = None,
    point: Any = None,
) -> Any:
    """Create an operation at an insertion point, else the current one; its result (None where it has none).

    `results` are MLIR types or the Python types of `flylab.dialect.types`; attribute values are printed.
    """
    ir = mlir_ir()
    row = OPERATIONS[name]
    attrs = {n: ir.StringAttr.get(str((attributes or {})[n])) for n in row.attributes}
    types = [t if isinstance(t, ir.Type) else to_mlir(t) for t in results]
    op = ir.Operation.create(name, results=types, operands=list(operands), attributes=attrs, loc=loc, ip=point)
    return op.results[0] if types else None


def attribute(op: Any, name: str) -> str:
    """The text of a string attribute of an operation."""
    return str(mlir_ir().StringAttr(op.attributes[name]).value)
