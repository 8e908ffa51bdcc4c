"""Views: tensors seen through the layout algebra, which is computed here; only pointers are left to the device."""

from __future__ import annotations

import functools
import inspect
from math import gcd
from typing import Any

from flylab import layout as rules
from flylab.dialect.types import MemRef, Ptr
from flylab.errors import LayoutError, TraceError, Undecided
from flylab.expr.algebra import Arguments, decided, is_runtime, known, map_numbers, operand, positional, traced
from flylab.expr.emit import fly
from flylab.expr.gpu import Tuple3D
from flylab.expr.layout_value import LayoutValue
from flylab.expr.location import first_argument, name_of
from flylab.expr.numeric import CLASSES, Numeric, interval
from flylab.expr.room import Room, check_room
from flylab.expr.span import Span
from flylab.expr.swizzled_pointer import SwizzledPointer
from flylab.expr.tensor import Pointer, Tensor, moved_reach
from flylab.layout import ComposedLayout, Layout, Swizzle, size, text
from flylab.layout.layout import has_basis
from flylab.layout.runtime_int import MOST, RuntimeInt, divisor_of
from flylab.shown import a_kind


def _on_views(name: str) -> Any:
    """The function of the algebra of this name, also of a tensor: the same pointer, seen through what it makes of the
    layout."""
    rule = getattr(rules, name)
    on_layouts, signature = traced(rule), inspect.signature(rule)

    @functools.wraps(rule)
    def function(layout: Any, *args: Any, **named: Any) -> Any:
        if not isinstance(layout, Tensor):
            return on_layouts(layout, *args, **named)
        if named:
            args = positional(signature, (layout, *args), named)[1:]
        call = Arguments(known(args))
        spec = layout.spec
        result = decided(rule, spec.facts(), *call.facts)
        seen = fly(name, [layout.value, *call.operands()], [spec.with_layout(result, spec.align)])
        return Tensor(seen, layout.reach, layout.room)

    return function


logical_divide = _on_views("logical_divide")
zipped_divide = _on_views("zipped_divide")
tiled_divide = _on_views("tiled_divide")
flat_divide = _on_views("flat_divide")
composition = _on_views("composition")
coalesce = _on_views("coalesce")
group = _on_views("group")
take = _on_views("take")
_slice = traced(rules.slice)


def slice_view(source: Any, coord: Any) -> Any:
    """Fix the modes of a layout or tensor that `coord` gives a number for, keep those where it holds None. `fx.slice`.

    `coord` is congruent with the top of the layout's shape: `fx.slice(tA, (None, bid))` is tile `bid`. A layout loses
    the offset, a tensor keeps it in its pointer; in a composed layout it is added inside of the swizzle. Numbers may be
    known or runtime. Raises `LayoutError` where `coord` does not fit the layout.
    """
    if not isinstance(source, Tensor):
        return _slice(source, coord)
    coord = _coordinate(known(coord))
    layout = source.spec.facts()
    if isinstance(coord, tuple) and len(coord) == 1 and not isinstance(layout.shape, tuple):
        coord = coord[0]  # a tensor of rank 1 has the shape (n,)
    call = Arguments((coord,))
    try:
        if isinstance(layout, ComposedLayout):
            rest, moved = rules.slice(layout, call.facts[0]), 0
        else:
            rest, moved = rules.slice_and_offset(layout, call.facts[0])
    except Undecided:
        raise
    except LayoutError:
        modes = len(layout)
        raise TraceError(
            f"coordinate {text(call.facts[0])} does not fit {name_of(source, 'the tensor')} {source.spec.layout}",
            hint=f"give an integer or None for each of its {modes} modes" if modes > 1 else "give one integer, or None",
        ) from None
    if source.space != "buffer":  # a buffer's descriptor bounds it: reads outside give 0
        _check_bounds(source, coord, layout.shape)
    reach = None
    if isinstance(layout, ComposedLayout):
        return _noted(_slice_inside(source, call, rest), source, coord)
    if source.reach is not None:
        offset = Span.of(moved)
        reach = moved_reach(source.reach, offset, rest, source.spec, name_of(source, "the buffer tensor"))
        if not reach.fits and not is_runtime(coord):
            return _noted(make_view(get_iter(source) + CLASSES["Int64"](offset.low), rest), source, coord)
        if not reach.fits:
            # An offset of 64 bits says that it may leave those 32 of the descriptor.
            call = Arguments((map_numbers(CLASSES["Int64"], coord),))
    part = fly("slice", [source.value, *call.operands()], [source.spec.with_layout(rest, _aligned(source.spec, moved))])
    return _noted(Tensor(part, reach, source.room and source.room.after(moved)), source, coord)


def _aligned(spec: MemRef, moved: Any) -> int:
    """The known alignment of a tensor in global memory moved by so many elements; 0 where it is that of an element."""
    if not spec.align or spec.space != "global":
        return 0
    own = max(spec.dtype.bits // 8, 1)
    known = gcd(spec.align, own * divisor_of(moved))
    return known if known > own else 0


def _noted(part: Tensor, source: Tensor, coord: Any) -> Tensor:
    """A slice, with the note whose part it is."""
    if source.part_of is not None:
        part.part_of = source.part_of.at(coord)
    return part


def _slice_inside(source: Tensor, call: Arguments, rest: ComposedLayout) -> Tensor:
    """The slice of a view whose pointer stays, as what the slice adds goes through the swizzle."""
    spec, view = source.spec, source
    if source.space == "shared":
        rest = ComposedLayout(rest.outer, _of_32_bits(rest.offset), rest.inner)
    if source.reach is not None:
        reach = moved_reach(source.reach, Span(0, 0), rest, spec, name_of(source, "the buffer tensor"))
        if not reach.fits:
            view = make_view(_of_64_bits(get_iter(source)), source.layout)
    part = fly("slice", [view.value, *call.operands()], [spec.with_layout(rest, spec.align)])
    return Tensor(part, view.reach, view.room)


def _of_32_bits(offset: Any) -> Any:
    """What is known of an offset into LDS, whose addresses have 32 bits: what leaves them wraps."""
    if type(offset) is int or offset.bits == 32 and offset.high <= MOST[32]:
        return offset
    return RuntimeInt(-MOST[32] - 1, MOST[32], offset.divisor & -offset.divisor, 32)


def _of_64_bits(pointer: Pointer) -> Pointer:
    """A buffer pointer whose offset is computed with 64 bits, so that what is outside of the buffer stays so."""
    return pointer + CLASSES["Int64"](0)


def _coordinate(coord: Any) -> Any:
    """A coordinate checked: integers, known or not, None, and tuples of these."""
    if isinstance(coord, tuple):
        return tuple(map(_coordinate, coord))
    if isinstance(coord, Numeric):
        if coord.dtype.bits > 64:
            raise TraceError(
                f"{name_of(coord, 'a coordinate')} is {coord.dtype}, and addresses have 64 bits",
                hint="convert it with .to(fx.Int64)",
            )
        return coord
    if coord is not None and (isinstance(coord, bool) or not isinstance(coord, int)):
        hint = "a coordinate holds integers, None for a mode to keep, or tuples of these"
        raise TraceError(f"{coord!r} in a coordinate", hint=f"{coord!r}.x?" if isinstance(coord, Tuple3D) else hint)
    return coord


def _check_bounds(source: Tensor, coord: Any, shape: Any) -> None:
    """Refuse a known coordinate outside of its mode, where the mode's extent is known."""
    if isinstance(coord, tuple):
        for inner, mode in zip(coord, shape, strict=True):
            _check_bounds(source, inner, mode)
        return
    count = size(shape)
    outside = isinstance(coord, int) and (coord < 0 or isinstance(count, int) and coord >= count)
    if outside:
        last = f"{count - 1}; the last is {count - 1}" if isinstance(count, int) else "the extent less 1"
        raise TraceError(
            f"coordinate {coord} of {name_of(source, 'a tensor')} {source.spec.layout}, in a mode of {count}",
            hint=f"coordinates go from 0 to {last}, not -1",
        )


make_composed_layout = traced(rules.make_composed_layout)
composed_get_inner = traced(rules.composed_get_inner)
composed_get_offset = traced(rules.composed_get_offset)
_make_layout = traced(rules.make_layout)
_append = traced(rules.append)
_coordinate_tensor = traced(rules.make_view)


def make_layout(shape: Any, stride: Any = None, *more: Any) -> Any:
    """The layout `shape:stride`; without a stride, compact and column-major. See `flylab.layout.make_layout`.

    Extents and strides may be numbers of the device: then it is a LayoutValue, which all functions of the algebra take.
    Such an extent cannot be negative; where a decision hangs on it, it counts as 1 or more.
    """
    args = [known(arg) for arg in (shape, stride, *more)]
    if stride is None and not more:
        args = args[:1]
    if len(args) > 2 and is_runtime(args):
        joined = make_layout(*args[:2])
        for mode in args[2:]:
            joined = _append(joined, mode)
        return joined
    if is_runtime(args[0]) and not isinstance(args[0], LayoutValue):
        args = _with_extents(args, args[0])
    return _make_layout(*args)


def _with_extents(args: Any, shape: Any) -> Any:
    """The arguments with the runtime extents of `shape` known not to be negative, wherever they stand."""
    extents = {}

    def note(number: Numeric) -> None:
        low, high = interval(number)
        extents[number.value, number.dtype] = number.with_facts((max(low, 0), max(high, 0)), number.divisor)

    map_numbers(note, shape)
    return map_numbers(lambda number: extents.get((number.value, number.dtype), number), tuple(args))


def get_iter(tensor: Tensor) -> Pointer:
    """The pointer of a tensor."""
    _require_tensor(tensor, "get_iter")
    return Pointer(fly("get_iter", [tensor.value], [tensor.spec.pointer]), tensor.reach, tensor.room)


def make_view(iterator: Any, layout: Any) -> Any:
    """A pointer seen through a layout; of a coordinate, or an int, a coordinate tensor (`flylab.layout.make_view`).

    Raises `TraceError` for what is neither, and for layouts that memory does not have.
    """
    if isinstance(iterator, SwizzledPointer):
        return make_view(iterator.pointer, _swizzled_once(iterator, layout))
    if not isinstance(iterator, Pointer):
        if isinstance(iterator, (Tensor, str)) or iterator is None:
            raise TraceError(
                f"make_view of {type(iterator).__name__}",
                hint="its first argument is a pointer: make_view(fx.get_iter(tensor), layout); or a coordinate",
            )
        if isinstance(getattr(iterator, "ptr", None), Pointer):
            raise _of_place(iterator)
        return _coordinate_tensor(iterator, layout)
    if isinstance(layout, (int, tuple, Numeric)):
        layout = make_layout(layout)
    facts = layout.form.value() if isinstance(layout, LayoutValue) else layout
    if isinstance(facts, ComposedLayout) and facts.outer is None and not facts.is_coordinate_tensor:
        return make_view(iterator + composed_get_offset(layout), composed_get_inner(layout))
    _check_places(layout, facts)
    spec = iterator.spec
    if spec.space != "buffer":  # beyond a buffer's descriptor reads give 0
        check_room(iterator.room, facts)
    if iterator.reach is not None and not moved_reach(iterator.reach, Span(0, 0), facts, spec).fits:
        iterator = _of_64_bits(iterator)
    operands = [iterator.value, operand(layout, facts)] if isinstance(layout, LayoutValue) else [iterator.value]
    view: Any = fly("make_view", operands, [MemRef(spec.dtype, spec.space, facts, spec.align)])
    return Tensor(view, iterator.reach, iterator.room)


def _of_place(place: Any) -> TraceError:
    """The error for a view of a `Storage`, or of what its `peek()` gives, in place of its pointer."""
    what, space = first_argument("'place'"), place.ptr.spec.space
    memory, named = "LDS" if space == "shared" else f"{space} memory", what.strip("'")
    return TraceError(f"make_view: {what} is a place in {memory}, not a pointer",
                      hint=f"give its pointer: fx.make_view({named}.ptr, layout), or {named}.view(layout)")


def _swizzled_once(pointer: SwizzledPointer, layout: Any) -> Any:
    """The composed layout of a swizzled pointer and a plain layout."""
    if isinstance(layout, (int, tuple, Numeric)):
        layout = make_layout(layout)
    if not isinstance(layout, (Layout, LayoutValue)) or isinstance(layout, LayoutValue) and layout.is_composed:
        raise TraceError(f"make_view of a pointer with the swizzle {pointer.swizzle} and {layout}",
                         hint="give a plain layout, or the pointer without its swizzle")
    return make_composed_layout(pointer.swizzle, pointer.offset, layout)


def _check_places(layout: Any, facts: Any) -> None:
    """Refuse a layout that gives no places in memory."""
    if isinstance(facts, ComposedLayout) and facts.outer is not None and not isinstance(facts.outer, Swizzle):
        raise TraceError(f"make_view of a pointer with {layout}: before the layout of a view stands a swizzle, and not "
                         "another layout", hint="compose the two first: fx.composition(outer, inner)")
    if not isinstance(facts, (Layout, ComposedLayout)):
        raise TraceError(f"make_view with {layout}, {a_kind(facts)}",
                         hint="give fx.make_layout(shape, stride), or fx.make_composed_layout(swizzle, layout)")
    if has_basis(facts.inner.stride if isinstance(facts, ComposedLayout) else facts.stride):
        raise TraceError(f"make_view of a pointer with {layout}, which gives coordinates, and not places in memory",
                         hint="a coordinate tensor begins at a coordinate: fx.make_view((0, 0), layout)")


def add_offset(pointer: Any, offset: Any) -> Any:
    """The pointer moved by `offset` elements."""
    if not isinstance(pointer, (Pointer, SwizzledPointer)):
        raise TraceError(f"add_offset to {a_kind(pointer)}", hint="its first argument is fx.get_iter(tensor)")
    return pointer + offset


def get_layout(tensor: Tensor) -> Any:
    """The layout of a tensor."""
    _require_tensor(tensor, "get_layout")
    return tensor.layout


def _require_tensor(tensor: Any, use: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TraceError(f"{use} of {type(tensor).__name__}", hint="give an fx.Tensor")


def buffer_pointer(pointer: Pointer, num_records: Any) -> Pointer:
    """A pointer into global memory behind a buffer descriptor of `num_records` bytes (an int, or an Int64)."""
    records = [num_records.ir_value()] if isinstance(num_records, Numeric) else []
    dtype = pointer.spec.dtype
    made = fly("make_buffer_ptr", [pointer.value, *records], [Ptr(dtype, "buffer")],
               num_records="?" if records else num_records)
    return Pointer(made, Span(0, 0), None if records else Room(num_records * 8 // dtype.bits, "the buffer"))


def select(source: Any, indices: Any, *more: Any) -> Any:
    """The modes of a tuple or layout with the given indices: `select((4, 8, 16), [0, 2])` is `(4, 16)`."""
    if more:
        raise TraceError("fx.select picks modes: fx.select(tuple, indices)",
                         hint="a choice by a condition is cond.select(a, b), or fx.arith.select(cond, a, b)")
    return _select(source, indices)


_select = _on_views("select")
