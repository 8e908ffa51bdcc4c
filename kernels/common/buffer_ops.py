"""Buffers by descriptor and offset, for kernels that have not come to layouts: offsets count ELEMENTS, not bytes.

New kernels say it with `fx.rocdl.make_buffer_tensor` and `fx.copy`.
"""

from __future__ import annotations

from typing import Any

import flylab.expr as fx
from flylab.expr.numeric import interval, numeric_class

OUTSIDE = 2**32 - 16
"""A byte offset outside of every buffer, which no access there wraps from."""


def create_buffer_resource(tensor: Any, max_size: bool = False, num_records_bytes: Any = None) -> Any:
    """A buffer of a tensor, or of a pointer, for `buffer_load` and `buffer_store`.

    It bounds a tensor to its own bytes: reads outside give 0, writes are dropped. `num_records_bytes` sets another
    number of bytes, `max_size=True` turns the check off up to 4 GiB. Raises `TraceError` for a tensor beyond 4 GiB.
    """
    if isinstance(tensor, fx.Pointer):
        return fx.rocdl.make_buffer_ptr(tensor, num_records_bytes)
    return fx.get_iter(fx.rocdl.make_buffer_tensor(tensor, max_size, num_records_bytes=num_records_bytes))


def buffer_load(rsrc: Any, offset: Any, vec_width: int = 1, dtype: Any = None, mask: Any = None,
                cache_modifier: int = 0, soffset_bytes: Any = None) -> Any:
    """`vec_width` consecutive elements at an offset in elements of `dtype` (the tensor's, if left out).

    A number for a width of 1, else a Vector. Where `mask` is false, and outside of the buffer, it is 0. Together they
    have 8, 16, 32, 64, 96 or 128 bits.
    """
    kind = rsrc.dtype if dtype is None else numeric_class(dtype)
    result = kind if vec_width == 1 else fx.T.vec(vec_width, kind)
    return fx.rocdl.raw_ptr_buffer_load(result, rsrc, _bytes(offset, kind, mask), soffset_bytes or 0, cache_modifier)


def buffer_store(data: Any, rsrc: Any, offset: Any, mask: Any = None, cache_modifier: int = 0,
                 soffset_bytes: Any = None) -> None:
    """Store a number or Vector at an offset in elements of its own format; nothing where `mask` is false."""
    given = fx.as_dsl_value(data)
    kind = given.dtype if isinstance(given, fx.Vector) else type(given)
    fx.rocdl.raw_ptr_buffer_store(given, rsrc, _bytes(offset, kind, mask), soffset_bytes or 0, cache_modifier)


def _bytes(offset: Any, kind: Any, mask: Any) -> Any:
    """An offset in elements as bytes in 32 bits: what these do not hold, or is masked, is outside of every buffer."""
    wide: Any = fx.Int64(offset) * (kind.width // 8)
    low, high = interval(wide)
    if low < 0 or high >= OUTSIDE:
        wide = ((wide >= 0) & (wide < OUTSIDE)).select(wide, OUTSIDE)
    if mask is not None:
        wide = fx.Boolean(mask).select(wide, OUTSIDE)
    return fx.Int32(wide)
