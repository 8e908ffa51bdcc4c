"""fly-layout-lowering: layouts and views become integer arithmetic and pointers; copies calls of single atoms.

After it a layout is needed no more: `fly.add_offset` moves pointers by elements, `fly.copy_atom_call` copies one atom
between two pointers, `fly.ptr_load` and `fly.ptr_store` move consecutive elements.

A value of the layout algebra is known but for its runtime leaves, which this pass keeps as one MLIR value each. An
operation is the function of `flylab.layout` of its name, computed again with these (DeviceInt).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import gcd
from typing import Any

from flylab import layout as rules
from flylab.atoms import TiledCopy, TiledMma
from flylab.dialect.operations import ALGEBRA, SEEN_ANEW, attribute
from flylab.dialect.types import Algebra, MemRef, Ptr, of_mlir
from flylab.errors import CompileError, LayoutError
from flylab.layout import ComposedLayout, Layout, cosize, slice_and_offset
from flylab.layout.consecutive import runs
from flylab.layout.runtime_int import MOST, RuntimeInt
from flylab.layout.runtime_leaves import map_runtime, numbers, runtime_leaves
from flylab.passes.buffer_walks import note_forward
from flylab.passes.copy_lowering import lower_copy, lower_scattered
from flylab.passes.device_int import DeviceInt, number_value
from flylab.passes.gemm_lowering import lower_gemm
from flylab.passes.regions import ENDS, STRUCTURED
from flylab.passes.register_steps import lowest, note_steps
from flylab.passes.rewriter import Builder, Pass, erase, operations, parse_type, source_line
from flylab.passes.vectors import extract, joined, vector_type


@dataclass(frozen=True)
class LayoutLowering(Pass):
    """See the module's text."""

    name: str = "fly-layout-lowering"

    def run(self, module: Any) -> None:
        """Lower each operation that has or takes a layout or a view, in program order."""
        lowering = _Lowering()
        done = []
        for op in operations(module.operation):
            rule = RULES.get(op.name)
            if rule:
                rule(lowering, op, Builder(op))
                done.append(op)
        erase(done)


class _Lowering:
    """The pointer of each view, and the runtime leaves of each layout, met so far: MLIR values, ints, or DeviceInts,
    which are computed when they are used."""

    def __init__(self) -> None:
        self.pointer: dict[Any, Any] = {}
        self.leaves: dict[Any, list[Any]] = {}
        self.moves: dict[Any, Any] = {}
        """Block, pointer and a known offset -> the pointer moved, in that block."""
        self.pieces: dict[Any, list[tuple[Any, int, int]]] = {}
        """What each vector that was loaded in pieces is joined of: (vector, 0, count) each."""

    def moved(self, builder: Builder, pointer: Any, offset: Any) -> Any:
        """A pointer moved by a number of elements, known or of the device; what is known beside a swizzle after it."""
        if isinstance(offset, DeviceInt) and (apart := offset.apart())[0].is_swizzle and apart[1]:
            return self.moved(builder, self.moved(builder, pointer, apart[0]), apart[1])
        if type(offset) is int:
            if offset == 0:
                return pointer
            key = builder.block, pointer, offset
            found = self.moves.get(key)
            if found is None:
                value = builder.constant(offset, "i32" if abs(offset) <= MOST[32] else "i64")
                found = self.moves[key] = _add_offset(builder, pointer, value, offset)
            return found
        return _add_offset(builder, pointer, offset.value(64 if offset.high > MOST[32] else offset.bits), offset)

    def load(self, builder: Builder, pointer: Any, layout: Layout) -> Any:
        """The elements of a layout at a pointer, in the order of its coordinates, as a vector."""
        kind = of_mlir(pointer.type).dtype.mlir
        pieces = [
            (builder.fly("ptr_load", [self.moved(builder, pointer, start)], [vector_type(kind, count)]), 0, count)
            for start, count in _runs(layout)
        ]
        whole = joined(builder, pieces)
        self.pieces[whole] = pieces
        return whole

    def store(self, builder: Builder, value: Any, pointer: Any, layout: Layout) -> None:
        """The mirror of `load`."""
        runs_of, pieces = _runs(layout), self.pieces.get(value, ())
        # What was loaded in the same pieces is stored in these: only the joined vector's other uses need it.
        if [count for _, count in runs_of] != [count for *_, count in pieces]:
            ends = accumulate((count for _, count in runs_of), initial=0)
            pieces = [(value, first, count) for first, (_, count) in zip(ends, runs_of, strict=False)]
        for (start, _), piece in zip(runs_of, pieces, strict=True):
            builder.fly("ptr_store", [extract(builder, *piece), self.moved(builder, pointer, start)], [])

    def bound(self, builder: Builder, value: Any) -> Any:
        """What a value of the algebra, or the layout of a view, is: its runtime leaves as DeviceInts."""
        spec = of_mlir(value.type)
        if not spec.is_runtime:
            return _facts(spec)
        leaves = iter(self.leaves.get(value, ()))
        return map_runtime(lambda facts: DeviceInt(facts, builder, next(leaves)), _facts(spec))

    def record(self, result: Any, found: Any) -> None:
        """Keep the leaves of a result, if it has any."""
        spec = of_mlir(result.type)
        if not spec.is_runtime:
            return
        wanted, got = numbers(_facts(spec)), numbers(found)
        if len(wanted) != len(got):
            raise LayoutError(f"{result.type} was expected, and {found} computed")
        self.leaves[result] = [number for facts, number in zip(wanted, got, strict=True)
                               if isinstance(facts, RuntimeInt)]


def _add_offset(builder: Builder, pointer: Any, value: Any, offset: Any) -> Any:
    spec = of_mlir(pointer.type)
    kind = Ptr(spec.dtype, spec.space, _moved_align(spec, offset))
    moved = builder.fly("add_offset", [pointer, value], [kind])
    if spec.space == "buffer" and value.type == parse_type("i64"):
        note_forward(moved, offset)
    return moved


def _moved_align(spec: Ptr, offset: Any) -> int:
    """The known alignment of a pointer into memory moved by so many elements: one wide access of LDS needs it."""
    own = max(spec.dtype.bits // 8, 1)
    known = gcd(spec.known_align, own * (offset if isinstance(offset, int) else offset.divisor))
    return known if spec.space in ("shared", "global") and known > own else 0


def _facts(spec: Any) -> Any:
    return spec.value() if isinstance(spec, Algebra) else spec.facts()


def _algebra(lowering: _Lowering, op: Any, builder: Builder) -> None:
    """An operation of the algebra: the function of its name, of the values of its operands."""
    rule = getattr(rules, op.name.removeprefix("fly."))
    result = op.results[0]
    try:
        found = rule(*[lowering.bound(builder, value) for value in op.operands])
        if of_mlir(result.type) is not None:
            lowering.record(result, found)
        else:
            result.replace_all_uses_with(number_value(builder, found, int(str(result.type)[1:])))
    except LayoutError as error:
        raise CompileError(f"{op.name}: {error.message}", where=source_line(op.location), hint=error.hint) from None


def _same_pointer(lowering: _Lowering, op: Any, builder: Builder) -> None:
    """What leaves the pointer: a divide, or a slice inside of a swizzle. A known layout stands in its type."""
    view, result = op.operands[0], op.results[0]
    pointer = lowering.pointer.get(view)
    if pointer is not None:
        lowering.pointer[result] = pointer
    if pointer is None or of_mlir(result.type).is_runtime:
        _algebra(lowering, op, builder)


def _partition(lowering: _Lowering, op: Any, builder: Builder) -> None:
    """The parts of all threads of a layout, or of a view, whose pointer stays: a known layout stands in its type."""
    view, result = op.operands[0], op.results[0]
    pointer = lowering.pointer.get(view)
    if pointer is not None:
        lowering.pointer[result] = pointer
    if pointer is None or of_mlir(result.type).is_runtime:
        lowering.record(result, PARTITIONS[op.name](op)(lowering.bound(builder, view)))


PARTITIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "fly.tiled_copy_partition_src": lambda op: TiledCopy.parse(attribute(op, "tiled_copy")).threads_src,
    "fly.tiled_copy_partition_dst": lambda op: TiledCopy.parse(attribute(op, "tiled_copy")).threads_dst,
    "fly.tiled_copy_retile": lambda op: TiledCopy.parse(attribute(op, "tiled_copy")).retile,
    "fly.tiled_mma_partition": lambda op: partial(
        TiledMma.parse(attribute(op, "tiled_mma")).threads_of, attribute(op, "operand")),
}
"""The rule of each partition: of the attributes of its operation, as a function of a layout."""


def _make_leaves(lowering: _Lowering, op: Any, builder: Builder) -> None:
    lowering.leaves[op.results[0]] = list(op.operands)


def _static(lowering: _Lowering, op: Any, builder: Builder) -> None:
    """Nothing is left to do: its type holds the value."""


def _get_layout(lowering: _Lowering, op: Any, builder: Builder) -> None:
    lowering.leaves[op.results[0]] = lowering.leaves[op.operands[0]]


def _get_leaf(lowering: _Lowering, op: Any, builder: Builder) -> None:
    leaf = runtime_leaves(lowering.bound(builder, op.operands[0]))[int(attribute(op, "index"))]
    result = op.results[0]
    result.replace_all_uses_with(number_value(builder, leaf, int(str(result.type)[1:])))


def _make_view(lowering: _Lowering, op: Any, builder: Builder) -> None:
    if isinstance(of_mlir(op.operands[0].type), Algebra):
        _algebra(lowering, op, builder)
        return
    lowering.pointer[op.results[0]] = op.operands[0]
    if len(op.operands) > 1:
        lowering.leaves[op.results[0]] = lowering.leaves[op.operands[1]]


def _get_iter(lowering: _Lowering, op: Any, builder: Builder) -> None:
    result, pointer = op.results[0], lowering.pointer[op.operands[0]]
    # The pointer may be known to be aligned better, and what crosses a region's border has one type.
    if pointer.type != result.type and any(
        use.owner.operation.name in (*STRUCTURED, *ENDS) for use in result.uses
    ):
        pointer = builder.fly("recast_iter", [pointer], [result.type])
    result.replace_all_uses_with(pointer)


def _alloca(lowering: _Lowering, op: Any, builder: Builder) -> None:
    spec: MemRef = of_mlir(op.results[0].type)
    # Registers need no more than their extent: a fragment of n elements, seen through its layout.
    flat = MemRef(spec.dtype, spec.space, Layout(cosize(spec.layout), 1))
    registers = builder.fly("memref_alloca", [], [flat])
    first = builder.fly("get_iter", [registers], [flat.pointer])
    lowering.pointer[op.results[0]] = lowering.moved(builder, first, -lowest(spec.layout))


def _slice(lowering: _Lowering, op: Any, builder: Builder) -> None:
    view, coord = op.operands
    if view not in lowering.pointer:
        _algebra(lowering, op, builder)
        return
    if isinstance(of_mlir(view.type).layout, ComposedLayout):
        _same_pointer(lowering, op, builder)
        return
    rest, offset = slice_and_offset(lowering.bound(builder, view), lowering.bound(builder, coord))
    lowering.record(op.results[0], rest)
    moved = lowering.moved(builder, lowering.pointer[view], offset)
    lowering.pointer[op.results[0]] = moved
    if isinstance(offset, RuntimeInt) and of_mlir(moved.type).space == "register":
        note_steps(moved, lowering.bound(builder, coord), lowering.bound(builder, view))


def _load_vec(lowering: _Lowering, op: Any, builder: Builder) -> None:
    view = op.operands[0]
    loaded = lowering.load(builder, lowering.pointer[view], lowering.bound(builder, view))
    op.results[0].replace_all_uses_with(loaded)


def _store_vec(lowering: _Lowering, op: Any, builder: Builder) -> None:
    value, view = op.operands
    lowering.store(builder, value, lowering.pointer[view], lowering.bound(builder, view))


def _runs(layout: Any) -> list[tuple[Any, int]]:
    """The offsets of a layout, in the order of its coordinates, as (start, count) of consecutive runs."""
    return [(layout(first), count) for first, count in runs(layout)]


RULES: dict[str, Callable[[_Lowering, Any, Builder], None]] = {
    **{f"fly.{name}": _algebra for name in ALGEBRA},
    **{name: _partition for name in PARTITIONS},
    "fly.static": _static,
    "fly.make_int_tuple": _make_leaves,
    "fly.make_tile": _make_leaves,
    "fly.from_leaves": _make_leaves,
    "fly.get_leaf": _get_leaf,
    "fly.get_layout": _get_layout,
    "fly.make_view": _make_view,
    "fly.get_iter": _get_iter,
    "fly.memref_alloca": _alloca,
    **{f"fly.{name}": _same_pointer for name in SEEN_ANEW},
    "fly.slice": _slice,
    "fly.memref_load_vec": _load_vec,
    "fly.memref_store_vec": _store_vec,
    "fly.copy": lower_copy,
    "fly.gather": lower_scattered,
    "fly.scatter": lower_scattered,
    "fly.gemm": lower_gemm,
}
