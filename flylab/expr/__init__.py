"""What a kernel author types: `import flylab.expr as fx`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flylab import layout as _layout
from flylab.atoms import CopyAtom, GemmTraversalOrder, MmaAtom, MmaOperand
from flylab.expr import arith, gpu, math, rocdl, typing
from flylab.expr.algebra import assume, traced
from flylab.expr.aliases import ALIASES, VectorAlias, empty_like, full, full_like, ones_like, zeros_like
from flylab.expr.atom_state import atom_set_value
from flylab.expr.atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_fmax,
    atomic_fmin,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_sub,
    atomic_xchg,
    atomic_xor,
)
from flylab.expr.control import const_expr, range_constexpr
from flylab.expr.copy import (
    copy,
    copy_atom_call,
    gather,
    make_rmem_tensor,
    memref_load,
    memref_load_vec,
    memref_store,
    memref_store_vec,
    scatter,
)
from flylab.expr.copy_ops import (
    UniversalAtomic,
    UniversalAtomicAdd,
    UniversalAtomicAnd,
    UniversalAtomicDec,
    UniversalAtomicInc,
    UniversalAtomicMax,
    UniversalAtomicMin,
    UniversalAtomicOr,
    UniversalAtomicSub,
    UniversalAtomicXor,
    UniversalCopy,
    UniversalCopy8b,
    UniversalCopy16b,
    UniversalCopy32b,
    UniversalCopy64b,
    UniversalCopy128b,
    make_copy_atom,
)
from flylab.expr.enums import (
    AddressSpace,
    AtomicOp,
    AtomicOrdering,
    CachePolicy,
    SyncScope,
    is_generic_address_space,
    is_target_address_space,
)
from flylab.expr.formats import (
    BFloat16,
    Boolean,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E4M3FNUZ,
    Float8E5M2,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Index,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
)
from flylab.expr.gpu import barrier, block_dim, block_idx, grid_dim, lane_id, thread_idx
from flylab.expr.leafwise import (
    elem_less,
    equal,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_sub,
)
from flylab.expr.make_fragment import make_fragment_like, mma_make_fragment
from flylab.expr.math import absf
from flylab.expr.mma import (
    UniversalFMA,
    gemm,
    make_mma_atom,
    mma_atom_call,
)
from flylab.expr.numeric import Float, Integer, Numeric
from flylab.expr.planned import missing as _missing
from flylab.expr.pointers import (
    PointerType,
    inttoptr,
    make_ptr,
    memref_alloca,
    ptr_load,
    ptr_store,
    to_llvm_ptr,
)
from flylab.expr.printf import printf
from flylab.expr.raw import as_dsl_value, as_ir_value
from flylab.expr.recast import ptrtoint, recast_iter
from flylab.expr.reductions import ReductionOp
from flylab.expr.select import ceildiv, maxnumf, minnumf
from flylab.expr.select import maximum as max
from flylab.expr.select import minimum as min
from flylab.expr.shared import SharedAllocator, get_dyn_shared
from flylab.expr.static_values import ComposedLayoutType, IntTupleType, LayoutType, SwizzleType, TileType, static
from flylab.expr.struct import (
    Align,
    Arena,
    Array,
    Empty,
    Storage,
    Struct,
    alignof,
    is_composite_type,
    is_struct_type,
    offsetof,
    sizeof,
    struct,
    union,
)
from flylab.expr.swizzled_pointer import apply_swizzle
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.tiled import (
    ThrCopy,
    ThrMma,
    TiledCopy,
    TiledMma,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
    make_tiled_mma,
    tiled_copy_partition_dst,
    tiled_copy_partition_src,
    tiled_copy_retile,
    tiled_mma_partition,
    tiled_mma_partition_shape,
)
from flylab.expr.types import T, Types
from flylab.expr.typing import Constexpr, Stream
from flylab.expr.vector import Vector
from flylab.expr.views import (
    add_offset,
    coalesce,
    composition,
    flat_divide,
    get_iter,
    get_layout,
    group,
    logical_divide,
    make_layout,
    make_view,
    select,
    take,
    tiled_divide,
    zipped_divide,
)
from flylab.expr.views import slice_view as slice
from flylab.layout import Basis, ComposedLayout, E, Layout, Swizzle

# The layout algebra under its own names, on known layouts and on those of the device; a tensor stands for its layout.
LAYOUT_NAMES = """
    make_shape make_stride make_coord make_int_tuple make_tile make_ordered_layout make_identity_layout
    make_layout_tv size cosize rank depth get get_shape get_stride crd2idx idx2crd dice
    complement right_inverse left_inverse logical_product zipped_product tiled_product flat_product blocked_product
    raked_product append prepend ceil_div shape_div coshape coprofile filter get_1d_coord
    get_flat_coord get_leaves get_scalar has_none int_tuple_product int_tuple_product_each int_tuple_product_like
    make_composed_layout composed_get_inner composed_get_offset composed_get_outer make_fragment_layout_like
    make_layout_like overcover recast_layout tile_to_shape
""".split()
globals().update({name: traced(getattr(_layout, name)) for name in LAYOUT_NAMES})
get_ = globals()["get"]  # the published name
globals().update(ALIASES)


for _name, _function in (("slice", slice), ("max", max), ("min", min)):
    _function.__name__ = _function.__qualname__ = _name
_HIDDEN = ("Any", "ModuleType", "ALIASES", "LAYOUT_NAMES", "annotations", "traced")


def __dir__() -> list[str]:
    modules = (arith, gpu, math, rocdl, typing)
    return sorted(
        name
        for name, value in globals().items()
        if not name.startswith("_") and name not in _HIDDEN and (not isinstance(value, ModuleType) or value in modules)
    )


__all__ = __dir__()  # help(flylab.expr) lists them


def __getattr__(name: str) -> Any:
    raise _missing("fx", name, globals())
