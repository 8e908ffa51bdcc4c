"""The layout algebra on tensors: each function serves a plain `Layout` (computed at once) and a tensor (an operation).

A tensor's layout is static, so the result's layout is computed here by `flylab.layout`; only the pointer is left to
the device.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

from flylab import layout as algebra
from flylab.dialect.types import MemRef, Ptr
from flylab.errors import LayoutError, NotSupportedError, TraceError
from flylab.expr.emit import fly
from flylab.expr.gpu import Tuple3D
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, interval, is_mlir_value
from flylab.expr.promotion import plain
from flylab.expr.span import MOST, Span
from flylab.expr.tensor import Pointer, Tensor, moved_reach
from flylab.layout import Layout, coalesce, size


def _divide(kind: str) -> Any:
    rule = getattr(algebra, kind)

    def divide(layout: Any, divisor: Any) -> Any:
        if not isinstance(layout, Tensor):
            return rule(layout, divisor)
        spec = layout.spec
        result = rule(spec.layout, divisor)
        tiles = fly(kind, [layout.value], [spec.with_layout(result, spec.align)], tiler=_tiler_text(divisor))
        return Tensor(tiles, layout.reach)

    divide.__name__ = divide.__qualname__ = kind
    divide.__doc__ = (
        f"`{kind}` of a layout (see `flylab.layout.{kind}`) or of a tensor: its tiles of `divisor` first, "
        "the rest after."
    )
    return divide


logical_divide = _divide("logical_divide")
zipped_divide = _divide("zipped_divide")
tiled_divide = _divide("tiled_divide")
flat_divide = _divide("flat_divide")


def _tiler_text(divisor: Any) -> str:
    if isinstance(divisor, tuple):
        return "[" + "|".join(map(_tiler_text, divisor)) + "]"
    return "*" if divisor is None else str(divisor)


def slice_view(source: Any, coord: Any) -> Any:
    """Fix the modes of a layout or tensor that `coord` gives a number for, keep those where it holds None. `fx.slice`.

    `coord` is congruent with the top of the layout's shape: `fx.slice(tA, (None, bid))` is tile `bid`. A layout loses
    the offset, a tensor keeps it in its pointer. Numbers may be known or runtime. Raises `LayoutError` where `coord`
    does not fit the layout.
    """
    if not isinstance(source, Tensor):
        return algebra.slice(source, coord)
    if isinstance(coord, tuple) and len(coord) == 1 and not isinstance(source.layout.shape, tuple):
        coord = coord[0]  # a tensor of rank 1 has the shape (n,)
    leaves: list[Numeric] = []
    text = _coordinate(coord, leaves)
    read: list[Numeric] = []
    try:
        rest, moved = algebra.slice_and_offset(source.layout, _spans(coord, source.layout, iter(leaves), read))
    except LayoutError:
        modes = len(source.layout.shape) if isinstance(source.layout.shape, tuple) else 1
        raise TraceError(
            f"coordinate {text} does not fit {name_of(source, 'the tensor')} {source.layout}",
            hint=f"give an integer or None for each of its {modes} modes" if modes > 1 else "give one integer, or None",
        ) from None
    if source.space != "buffer":  # a buffer's descriptor bounds it: reads outside give 0
        _check_bounds(source, coord, source.layout.shape)
    offset, reach = Span.of(moved), None
    if source.reach is not None:
        reach = moved_reach(source.reach, offset, rest, source.spec, name_of(source, "the buffer tensor"))
        if not reach.fits and not leaves:
            return make_view(get_iter(source) + CLASSES["Int64"](offset.low), rest)
    fits = offset.fits if reach is None else reach.fits
    indices = [leaf.ir_value() if fits else CLASSES["Int64"](leaf).ir_value() for leaf in read]
    part = fly("slice", [source.value, *indices], [source.spec.with_layout(rest)], coord=text)
    return Tensor(part, reach)


def _coordinate(coord: Any, leaves: list[Numeric]) -> str:
    """The text of a coordinate, its runtime leaves as `?` and gathered in `leaves` (at least 32 bits wide)."""
    if isinstance(coord, tuple):
        return "(" + ",".join(_coordinate(c, leaves) for c in coord) + ")"
    if coord is None:
        return "*"
    if is_mlir_value(coord):
        coord = CLASSES["Int64" if str(coord.type) == "i64" else "Int32"](coord)
    if isinstance(coord, Numeric) and not coord.dtype.is_float:
        if coord.is_static:
            return str(int(coord.value))
        if coord.dtype.bits > 64:
            raise TraceError(
                f"{name_of(coord, 'a coordinate')} is {coord.dtype}, and addresses have 64 bits",
                hint="convert it with .to(fx.Int64)",
            )
        leaves.append(coord if coord.dtype.bits >= 32 else CLASSES["Int32"](coord))
        return "?"
    coord = plain(coord)
    if isinstance(coord, bool) or not isinstance(coord, int):
        hint = "a coordinate holds integers, None for a mode to keep, or tuples of these"
        raise TraceError(f"{coord!r} in a coordinate", hint=f"{coord!r}.x?" if isinstance(coord, Tuple3D) else hint)
    return str(coord)


def _spans(coord: Any, layout: Layout, leaves: Iterator[Numeric], read: list[Numeric]) -> Any:
    """A coordinate with a `Span` for each runtime leaf, which goes to `read` as the device shall read it.

    A mode whose offset needs a division takes its coordinate as unsigned: what is negative, and so outside of the
    mode, is then far outside of it.
    """
    if isinstance(coord, tuple):
        modes = layout.shape if isinstance(layout.shape, tuple) else ()
        if len(modes) != len(coord):
            return _zeros(coord)  # it does not fit, which `slice_and_offset` finds too
        return tuple(_spans(c, layout[i], leaves, read) for i, c in enumerate(coord))
    if coord is None:
        return None
    if not is_mlir_value(coord) and (not isinstance(coord, Numeric) or coord.is_static):
        return int(coord)
    leaf = next(leaves)
    low, high = interval(leaf)
    divided = (low < 0 or high > MOST) and isinstance(coalesce(layout).shape, tuple)
    if divided and leaf.dtype.bits == 32 and low < 0:
        leaf = CLASSES["Uint32"](leaf)
        low, high = interval(leaf)
    read.append(leaf)
    return Span(low, high, leaf.dtype.bits == 32 and (divided or high <= MOST))


def _check_bounds(source: Tensor, coord: Any, shape: Any) -> None:
    """Refuse a known coordinate outside of its mode."""
    if isinstance(coord, tuple):
        for inner, mode in zip(coord, shape, strict=True):
            _check_bounds(source, inner, mode)
        return
    known = coord.value if isinstance(coord, Numeric) else plain(coord)
    if isinstance(known, int) and not 0 <= known < size(shape):
        raise TraceError(
            f"coordinate {known} of {name_of(source, 'a tensor')} {source.layout}, in a mode of {size(shape)}",
            hint=f"coordinates go from 0 to {size(shape) - 1}; the last is {size(shape) - 1}, not -1",
        )


def _zeros(coord: Any) -> Any:
    """The coordinate with every number replaced by 0."""
    if isinstance(coord, tuple):
        return tuple(map(_zeros, coord))
    return None if coord is None else 0


def make_layout(shape: Any, stride: Any = None) -> Layout:
    """The layout `shape:stride`; without a stride, compact and column-major. See `flylab.layout.make_layout`."""
    for tree in (shape, stride):
        _refuse_runtime(tree)
    return (
        algebra.make_layout(_static(shape)) if stride is None else algebra.make_layout(_static(shape), _static(stride))
    )


def _refuse_runtime(tree: Any) -> None:
    for leaf in tree if isinstance(tree, tuple) else (tree,):
        if isinstance(leaf, tuple):
            _refuse_runtime(leaf)
        elif is_mlir_value(leaf) or (isinstance(leaf, Numeric) and not leaf.is_static):
            raise NotSupportedError(
                f"a layout with the runtime value {name_of(leaf, 'given here')}: this version of flylab has layouts "
                "known while tracing",
                hint="pass the extent or stride as an fx.Constexpr[int] parameter",
            )


def _static(tree: Any) -> Any:
    if isinstance(tree, tuple):
        return tuple(map(_static, tree))
    return operator.index(tree) if isinstance(tree, Numeric) else tree


def get_iter(tensor: Tensor) -> Pointer:
    """The pointer of a tensor."""
    _require_tensor(tensor, "get_iter")
    return Pointer(fly("get_iter", [tensor.value], [tensor.spec.pointer]), tensor.reach)


def make_view(iterator: Any, layout: Any) -> Tensor:
    """A pointer seen through a layout. Raises `TraceError` for anything but an fx.Pointer and a static layout."""
    if not isinstance(iterator, Pointer):
        raise TraceError(
            f"make_view of {type(iterator).__name__}",
            hint="its first argument is a pointer: make_view(fx.get_iter(tensor), layout)",
        )
    if isinstance(layout, (int, tuple)):
        layout = make_layout(layout)
    if not isinstance(layout, Layout):
        raise NotSupportedError(
            f"make_view with {layout} (a {type(layout).__name__}): this version of flylab has plain layouts in memory",
            hint="use fx.make_layout(shape, stride)",
        )
    spec = iterator.spec
    if iterator.reach is not None and not moved_reach(iterator.reach, Span(0, 0), layout, spec).fits:
        iterator = iterator + CLASSES["Int64"](0)
    view = fly("make_view", [iterator.value], [MemRef(spec.dtype, spec.space, layout, spec.align)])
    return Tensor(view, iterator.reach)


def add_offset(pointer: Pointer, offset: Any) -> Pointer:
    """The pointer moved by `offset` elements."""
    if not isinstance(pointer, Pointer):
        raise TraceError(f"add_offset to a {type(pointer).__name__}", hint="its first argument is fx.get_iter(tensor)")
    moved: Pointer = pointer + offset
    return moved


def get_layout(tensor: Tensor) -> Layout:
    """The layout of a tensor."""
    _require_tensor(tensor, "get_layout")
    return tensor.layout


def _require_tensor(tensor: Any, use: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TraceError(f"{use} of {type(tensor).__name__}", hint="give an fx.Tensor")


def make_buffer(tensor: Tensor, num_records: int) -> Tensor:
    """A tensor behind a buffer descriptor of `num_records` bytes, with the same layout."""
    spec = tensor.spec
    pointer = fly("make_buffer_ptr", [get_iter(tensor).value], [Ptr(spec.dtype, "buffer")], num_records=num_records)
    return make_view(Pointer(pointer, Span(0, 0)), spec.layout)


def select(source: Any, indices: Any, *more: Any) -> Any:
    """The modes of a tuple or layout with the given indices: `select((4, 8, 16), [0, 2])` is `(4, 16)`."""
    if more:
        raise TraceError("fx.select picks modes: fx.select(tuple, indices)",
                         hint="a choice by a condition is cond.select(a, b), or fx.arith.select(cond, a, b)")
    return on_layout(algebra.select)(source, indices)


def on_layout(rule: Any) -> Any:
    """A function of `flylab.layout` that also takes a tensor, and means its layout."""

    @functools.wraps(rule)
    def query(first: Any, *rest: Any, **named: Any) -> Any:
        args = [a.layout if isinstance(a, Tensor) else a for a in (first, *rest)]
        return rule(*args, **named)

    return query
