"""The layout algebra: nested shapes and strides, their composition, division and products. Pure Python, exact.

    >>> from flylab.layout import Layout, zipped_divide
    >>> str(zipped_divide(Layout((8, 16), (16, 1)), (4, 4)))
    '((4,4),(2,4)):((16,1),(64,4))'

What no layout can represent is refused with a LayoutError that names the numbers and a coordinate as witness.
"""

from flylab.layout.algebra import coalesce, composition
from flylab.layout.arithmetic import (
    elem_less,
    equal,
    get_leaves,
    get_scalar,
    has_none,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_product,
    int_tuple_product_each,
    int_tuple_product_like,
    int_tuple_sub,
)
from flylab.layout.basis import Basis, E, add_coordinates
from flylab.layout.complements import complement
from flylab.layout.composed import composed_get_inner, composed_get_offset, composed_get_outer, make_view
from flylab.layout.construct import (
    coshape,
    cosize,
    depth,
    get,
    get_shape,
    get_stride,
    is_layout,
    make_identity_layout,
    make_layout,
    make_ordered_layout,
    make_tile,
    rank,
    size,
)
from flylab.layout.coordinates import (
    coordinates_of,
    crd2idx,
    dice,
    get_1d_coord,
    get_flat_coord,
    idx2crd,
    slice,
    slice_and_offset,
)
from flylab.layout.derive import (
    coprofile,
    filter,
    make_fragment_layout_like,
    make_layout_like,
    same_map,
    tile_to_shape,
)
from flylab.layout.divides import flat_divide, logical_divide, overcover, tiled_divide, zipped_divide
from flylab.layout.explanation import Explanation, Step, explain
from flylab.layout.int_tuple import (
    as_int,
    as_int_tuple,
    as_shape,
    congruent,
    leaves,
    make_coord,
    make_int_tuple,
    make_shape,
    make_stride,
    product,
    text,
)
from flylab.layout.inverse import left_inverse, make_layout_tv, right_inverse
from flylab.layout.layout import Layout
from flylab.layout.modes import append, ceil_div, group, prepend, select, shape_div, take
from flylab.layout.notation import parse, tile_text
from flylab.layout.products import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tiled_product,
    zipped_product,
)
from flylab.layout.recast import recast_layout
from flylab.layout.runtime_int import RuntimeInt
from flylab.layout.swizzle import ComposedLayout, Swizzle, make_composed_layout

__all__ = [
    "Basis", "ComposedLayout", "E", "Explanation", "Layout", "RuntimeInt", "Step", "Swizzle", 
    "add_coordinates", "append", "as_int", "as_int_tuple", "as_shape", "blocked_product", "ceil_div", "coalesce",
    "complement", "composed_get_inner", "composed_get_offset", "composed_get_outer", "composition", "congruent",
    "coordinates_of", "coprofile", "coshape", "cosize", "crd2idx", "depth", "dice", "elem_less", "equal", "explain",
    "filter", "flat_divide", "flat_product", "get", "get_1d_coord", "get_flat_coord", "get_leaves", "get_scalar",
    "get_shape", "get_stride", "group", "has_none", "idx2crd", "int_tuple_add", "int_tuple_div", "int_tuple_mod",
    "int_tuple_mul", "int_tuple_product", "int_tuple_product_each", "int_tuple_product_like", "int_tuple_sub",
    "is_layout", "leaves", "left_inverse", "logical_divide", "logical_product", "make_composed_layout",
    "make_coord", "make_fragment_layout_like", "make_identity_layout", "make_int_tuple", "make_layout",
    "make_layout_like", "make_layout_tv", "make_ordered_layout", "make_shape", "make_stride", "make_tile",
    "make_view", "overcover", "parse", "prepend", "product", "raked_product", "rank", "recast_layout",
    "right_inverse", "same_map", "select", "shape_div", "size", "slice", "slice_and_offset", "take", "text",
    "tile_text", "tile_to_shape", "tiled_divide", "tiled_product", "zipped_divide", "zipped_product",
]
