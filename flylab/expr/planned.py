"""Names of the language that this version does not have yet: asking for one is an error that says so."""

from __future__ import annotations

import difflib
from typing import Any

from flylab.errors import NotSupportedError, TraceError

PLANNED = frozenset(
    [
        "Align",
        "Arena",
        "Array",
        "Basis",
        "ComposedLayout",
        "CopyAtom",
        "E",
        "FastMathFlags",
        "IntTuple",
        "Layout",
        "MFMA",
        "MFMA_Scale",
        "MmaAtom",
        "Pointer",
        "ReductionOp",
        "SharedAllocator",
        "Struct",
        "Swizzle",
        "Tile",
        "TiledCopy",
        "TiledMma",
        "UniversalAtomic",
        "UniversalAtomicAdd",
        "UniversalFMA",
        "WMMA",
        "BufferAtomic",
        "BufferAtomicAdd",
        "BufferAtomicMax",
        "BufferAtomicMin",
        "BufferCopyLDS",
        "BufferCopyLDS32b",
        "BufferCopyLDS128b",
        "Index",
        "apply_swizzle",
        "assume",
        "atom_set_value",
        "atomic_add",
        "atomic_and",
        "atomic_max",
        "atomic_min",
        "atomic_or",
        "atomic_sub",
        "atomic_xor",
        "ballot",
        "cdna3",
        "cdna4",
        "cmpf",
        "cmpi",
        "constant",
        "constant_vector",
        "copy_atom_call",
        "ds_bpermute",
        "elem_less",
        "empty_like",
        "equal",
        "fastmath",
        "full",
        "full_like",
        "gather",
        "gemm",
        "get_dyn_shared",
        "get_leaves",
        "get_scalar",
        "has_none",
        "index_cast",
        "int_tuple_add",
        "int_tuple_div",
        "int_tuple_mod",
        "int_tuple_mul",
        "int_tuple_product",
        "int_tuple_sub",
        "inttoptr",
        "known_block_size",
        "lane_id",
        "make_composed_layout",
        "make_fragment_layout_like",
        "make_fragment_like",
        "make_layout_like",
        "make_mma_atom",
        "make_ptr",
        "make_tiled_copy",
        "make_tiled_copy_A",
        "make_tiled_copy_B",
        "make_tiled_copy_C",
        "make_tiled_copy_tv",
        "make_tiled_mma",
        "math",
        "memref_alloca",
        "mma_atom_call",
        "ones_like",
        "printf",
        "ptr_load",
        "ptr_store",
        "ptrtoint",
        "readfirstlane",
        "readlane",
        "recast_iter",
        "recast_layout",
        "s_barrier",
        "s_setprio",
        "s_waitcnt",
        "scatter",
        "sched_barrier",
        "sched_group_barrier",
        "shrui",
        "shuffle",
        "shuffle_down",
        "shuffle_idx",
        "shuffle_up",
        "shuffle_xor",
        "static",
        "struct",
        "tile_to_shape",
        "union",
        "unwrap",
        "zeros_like",
        "T",
        "to_llvm_ptr",
        "iglp_opt",
        "make_buffer_ptr",
        "get_buffer_rsrc",
        "raw_ptr_buffer_load",
    ]
)


class UnknownName(TraceError, AttributeError):
    """A name that a module of the language does not have."""


def missing(module: str, name: str, known: dict[str, Any]) -> Exception:
    """The error for an unknown attribute: planned, misspelt, or nothing of the language."""
    if name.startswith("__"):
        return AttributeError(name)
    if name in PLANNED or (module == "fx.rocdl" and name.startswith("mfma_")):
        return NotSupportedError(
            f"{module}.{name} is part of the language, but this version of flylab does not have it yet",
            hint="CHANGELOG.md says what each version has",
        )
    close = difflib.get_close_matches(name, [n for n in known if not n.startswith("_")], n=3)
    hint = (
        "did you mean " + " or ".join(f"{module}.{c}" for c in close) + "?"
        if close
        else f"dir({module}) lists what it has"
    )
    return UnknownName(f"{module} has no name {name!r}", hint=hint)
