"""fly-layout-lowering: views become pointers and integer arithmetic; copies of tensors become calls of single atoms.

After it a layout is needed no more: `fly.add_offset` moves pointers by elements, `fly.copy_atom_call` copies one atom
between two pointers, `fly.ptr_load` and `fly.ptr_store` move consecutive elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.atoms import CopyAtom
from flylab.dialect.operations import attribute
from flylab.dialect.types import MemRef, Ptr, of_mlir
from flylab.layout import Layout, cosize, size, slice_and_offset
from flylab.passes.rewriter import Builder, Pass, erase, operations
from flylab.passes.vectors import element, extract, shape_of, vector_type

MAX_I32 = 2**31 - 1


@dataclass(frozen=True)
class LayoutLowering(Pass):
    """See the module's text."""

    name: str = "fly-layout-lowering"

    def run(self, module: Any) -> None:
        """Lower each operation that has or takes a view, in program order."""
        lowering = _Lowering()
        done = []
        for op in operations(module.operation):
            rule = RULES.get(op.name)
            if rule:
                rule(lowering, op, Builder(op))
                done.append(op)
        erase(done)


class _Lowering:
    """The pointer of each view met so far."""

    def __init__(self) -> None:
        self.pointer: dict[Any, Any] = {}

    def moved(self, builder: Builder, pointer: Any, offset: Any) -> Any:
        """A pointer moved by an i32 or i64 value, or by a known number of elements."""
        if isinstance(offset, int):
            if offset == 0:
                return pointer
            offset = builder.constant(offset, "i32" if abs(offset) <= MAX_I32 else "i64")
        spec = of_mlir(pointer.type)
        return builder.fly("add_offset", [pointer, offset], [Ptr(spec.dtype, spec.space)])


class RuntimeIndex:
    """An integer of the device in coordinate arithmetic: the algebra multiplies it by strides and adds."""

    def __init__(self, builder: Builder, value: Any):
        self.builder = builder
        self.value = value

    def _with(self, name: str, other: Any) -> RuntimeIndex:
        kind = str(self.value.type)
        right = other.value if isinstance(other, RuntimeIndex) else self.builder.constant(other, kind)
        return RuntimeIndex(self.builder, self.builder.op(name, [self.value, right], kind))

    def __mul__(self, other: Any) -> RuntimeIndex:
        return self._with("arith.muli", other)

    def __add__(self, other: Any) -> RuntimeIndex:
        return self if isinstance(other, int) and other == 0 else self._with("arith.addi", other)

    # Tracing gives what is divided as unsigned (`_spans` of flylab.expr.views).
    def __floordiv__(self, other: Any) -> RuntimeIndex:
        return self._with("arith.divui", other)

    def __mod__(self, other: Any) -> RuntimeIndex:
        return self._with("arith.remui", other)

    __rmul__ = __mul__
    __radd__ = __add__


def _make_view(lowering: _Lowering, op: Any, builder: Builder) -> None:
    lowering.pointer[op.results[0]] = op.operands[0]


def _same_pointer(lowering: _Lowering, op: Any, builder: Builder) -> None:
    lowering.pointer[op.results[0]] = lowering.pointer[op.operands[0]]


def _get_iter(lowering: _Lowering, op: Any, builder: Builder) -> None:
    op.results[0].replace_all_uses_with(lowering.pointer[op.operands[0]])


def _alloca(lowering: _Lowering, op: Any, builder: Builder) -> None:
    spec: MemRef = of_mlir(op.results[0].type)
    # Registers need no more than their extent: a fragment of n elements, seen through its layout.
    flat = MemRef(spec.dtype, spec.space, Layout(cosize(spec.layout), 1))
    registers = builder.fly("memref_alloca", [], [flat])
    lowering.pointer[op.results[0]] = builder.fly("get_iter", [registers], [flat.pointer])


def _slice(lowering: _Lowering, op: Any, builder: Builder) -> None:
    layout = of_mlir(op.operands[0].type).layout
    operands = list(op.operands)
    # Tracing gave them the width that their offset needs.
    indices = iter([RuntimeIndex(builder, v) for v in operands[1:]])
    coord = _coordinate(attribute(op, "coord"), indices)
    _, offset = slice_and_offset(layout, coord)
    if isinstance(offset, RuntimeIndex):
        offset = offset.value
    lowering.pointer[op.results[0]] = lowering.moved(builder, lowering.pointer[operands[0]], offset)


def _coordinate(text: str, indices: Any) -> Any:
    """A coordinate from its text; each `?` takes the next runtime index."""
    names: dict[str, Any] = {}

    def runtime(position: int) -> str:
        names[f"r{position}"] = next(indices)
        return f"r{position}"

    parts = text.split("?")
    source = parts[0] + "".join(runtime(i) + part for i, part in enumerate(parts[1:]))
    return eval(source.replace("*", "None"), {"__builtins__": {}}, names)


def _load_vec(lowering: _Lowering, op: Any, builder: Builder) -> None:
    spec: MemRef = of_mlir(op.operands[0].type)
    pointer = lowering.pointer[op.operands[0]]
    pieces = [
        builder.fly("ptr_load", [lowering.moved(builder, pointer, start)], [vector_type(spec.dtype.mlir, count)])
        for start, count in _runs(spec.layout)
    ]
    value = pieces[0]
    if len(pieces) > 1:
        elements = [element(builder, piece, i) for piece in pieces for i in range(shape_of(piece)[0])]
        value = builder.op("vector.from_elements", elements, op.results[0].type)
    op.results[0].replace_all_uses_with(value)


def _store_vec(lowering: _Lowering, op: Any, builder: Builder) -> None:
    value, view = op.operands
    pointer = lowering.pointer[view]
    taken = 0
    for start, count in _runs(of_mlir(view.type).layout):
        part = extract(builder, value, taken, count)
        builder.fly("ptr_store", [part, lowering.moved(builder, pointer, start)], [])
        taken += count


def _copy(lowering: _Lowering, op: Any, builder: Builder) -> None:
    atom = CopyAtom.parse(attribute(op, "atom"))
    ends = [(of_mlir(v.type).layout, lowering.pointer[v]) for v in op.operands]
    for first in range(0, size(ends[0][0]), atom.num_values):
        pointers = [lowering.moved(builder, pointer, layout(first)) for layout, pointer in ends]
        builder.fly("copy_atom_call", pointers, [], atom=atom)


def _runs(layout: Layout) -> list[tuple[int, int]]:
    """The offsets of a layout, in the order of its coordinates, as (start, count) of consecutive runs."""
    runs: list[tuple[int, int]] = []
    for i in range(size(layout)):
        offset = layout(i)
        if runs and offset == runs[-1][0] + runs[-1][1]:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((offset, 1))
    return runs


RULES: dict[str, Callable[[_Lowering, Any, Builder], None]] = {
    "fly.make_view": _make_view,
    "fly.get_iter": _get_iter,
    "fly.memref_alloca": _alloca,
    "fly.logical_divide": _same_pointer,
    "fly.zipped_divide": _same_pointer,
    "fly.tiled_divide": _same_pointer,
    "fly.flat_divide": _same_pointer,
    "fly.slice": _slice,
    "fly.memref_load_vec": _load_vec,
    "fly.memref_store_vec": _store_vec,
    "fly.copy": _copy,
}
