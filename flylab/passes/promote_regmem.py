"""fly-promote-regmem-to-vectorssa: fragments in registers become vector values; no register memory is left.

Each `fly.memref_alloca` is followed through its block: a store makes a new value of the whole fragment, a load takes
elements of the current one. Reading an element that nothing was stored to is an error at the line that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flylab.dialect.types import MemRef, Ptr, of_mlir
from flylab.errors import CompileError
from flylab.layout import cosize
from flylab.passes.rewriter import Builder, Pass, erase, operations, source_line
from flylab.passes.vectors import extract, insert, shape_of


@dataclass
class Fragment:
    """A fragment: its extent, the value that it holds now, and which elements were ever stored."""

    alloca: Any
    count: int
    value: Any = None
    written: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class PromoteRegmem(Pass):
    """See the module's text."""

    name: str = "fly-promote-regmem-to-vectorssa"

    def run(self, module: Any) -> None:
        """Promote the fragments of every kernel."""
        places: dict[Any, tuple[Fragment, int]] = {}
        done = []
        for op in operations(module.operation):
            if op.name == "fly.memref_alloca":
                spec: MemRef = of_mlir(op.results[0].type)
                places[op.results[0]] = (Fragment(op, cosize(spec.layout)), 0)
            elif op.name == "fly.get_iter" and op.operands[0] in places:
                places[op.results[0]] = places[op.operands[0]]
            elif op.name == "fly.add_offset" and op.operands[0] in places:
                fragment, start = places[op.operands[0]]
                places[op.results[0]] = (fragment, start + _known_offset(op))
            elif op.name == "fly.ptr_load" and _in_registers(op.operands[0]):
                _load(op, *places[op.operands[0]])
            elif op.name == "fly.ptr_store" and _in_registers(op.operands[1]):
                _store(op, *places[op.operands[1]])
            else:
                continue
            done.append(op)
        erase(done)


def _in_registers(value: Any) -> bool:
    spec = of_mlir(value.type)
    return isinstance(spec, Ptr) and spec.space == "register"


def _known_offset(op: Any) -> int:
    from mlir import ir

    maker = op.operands[1].owner
    if getattr(maker, "name", "") != "arith.constant":
        raise CompileError(
            "a fragment in registers is indexed by a value only known on the device, and registers cannot be",
            where=source_line(op.location),
            hint="index it by numbers known while tracing (fx.range_constexpr)",
        )
    return int(ir.IntegerAttr(maker.attributes["value"]).value)


def _check_span(op: Any, fragment: Fragment, start: int, count: int) -> None:
    if not 0 <= start <= fragment.count - count:
        raise CompileError(
            f"elements {start} to {start + count - 1} of a fragment of {fragment.count} elements",
            where=source_line(op.location),
            hint="give the fragment as many elements as the atom moves",
        )


def _load(op: Any, fragment: Fragment, start: int) -> None:
    count, _ = shape_of(op.results[0])
    _check_span(op, fragment, start, count)
    unset = [i for i in range(start, start + count) if i not in fragment.written]
    if unset:
        raise CompileError(
            f"element {unset[0]} of a fragment in registers is read, and nothing was stored to it",
            where=source_line(op.location),
            hint=f"copy into the fragment or fill it first (it was made at {_place(fragment)})",
        )
    op.results[0].replace_all_uses_with(extract(Builder(op), fragment.value, start, count))


def _place(fragment: Fragment) -> str:
    where = source_line(fragment.alloca.location)
    return f"line {where.line}" if where else "an unknown line"


def _store(op: Any, fragment: Fragment, start: int) -> None:
    value = op.operands[0]
    count, _ = shape_of(value)
    _check_span(op, fragment, start, count)
    fragment.value = insert(Builder(op), value, fragment.value, start, fragment.count)
    fragment.written.update(range(start, start + count))
