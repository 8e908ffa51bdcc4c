"""fly-promote-regmem-to-vectorssa: fragments in registers become vector values; no register memory is left.

A store makes a new value of the whole fragment, a load takes elements of the current one. What `scf.if` stores to is
among its results, what a loop stores to among the values that it carries. Reading an element that nothing was stored
to on any way there is an error at the line that reads it; on a way without a store, an element that another way stores
to is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flylab.dialect.types import MemRef, Ptr, of_mlir
from flylab.errors import CompileError
from flylab.layout import cosize
from flylab.passes.regions import LOOPS, STRUCTURED, block_of, end_of, made_again
from flylab.passes.rewriter import Builder, Pass, erase, operations, source_line
from flylab.passes.vectors import extract, insert, shape_of, vector_type, zeros


@dataclass(eq=False)
class Fragment:
    """A fragment: its extent, the value that it holds now, and a bit for each element that may have been stored."""

    alloca: Any
    element: str
    count: int
    value: Any = None
    written: int = 0

    @property
    def kind(self) -> Any:
        """The type of its value."""
        return vector_type(self.element, self.count)

    def with_zeros(self, builder: Builder, wanted: int) -> Any:
        """Its value, with 0 in those of the elements `wanted` that were never stored."""
        missing = wanted & ~self.written
        if self.value is None:
            return zeros(builder, self.element, self.count)
        value = self.value
        for start, count in _runs(missing):
            value = insert(builder, zeros(builder, self.element, count), value, start, self.count)
        return value


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """The runs of bits that are set, each as (first, count)."""
    at = 0
    while bits >> at:
        at += (bits >> at & -(bits >> at)).bit_length() - 1
        count = (~(bits >> at) & (bits >> at) + 1).bit_length() - 1
        yield at, count
        at += count


def _span(start: int, count: int) -> int:
    return (1 << count) - 1 << start


@dataclass(frozen=True)
class PromoteRegmem(Pass):
    """See the module's text."""

    name: str = "fly-promote-regmem-to-vectorssa"

    def run(self, module: Any) -> None:
        """Promote the fragments of every kernel."""
        promotion = _Promotion()
        tops = [op.block for op in operations(module.operation) if promotion.take(op)]
        if promotion.done:
            for block in dict.fromkeys(tops):
                promotion.block(block)
            erase(promotion.done)


@dataclass
class _Promotion:
    """What was found: where pointers lead, what each block does with fragments, what each operation stores inside."""

    places: dict[Any, tuple[Fragment, int]] = field(default_factory=dict)
    inside: dict[Any, list[Any]] = field(default_factory=dict)
    stored: dict[Any, dict[Fragment, int]] = field(default_factory=dict)
    done: list[Any] = field(default_factory=list)

    def take(self, op: Any) -> bool:
        """Take an operation in; True for one of the outermost block that `block` has to see."""
        if op.name == "fly.memref_alloca":
            spec: MemRef = of_mlir(op.results[0].type)
            self.places[op.results[0]] = (Fragment(op, spec.dtype.mlir, cosize(spec.layout)), 0)
        elif op.name == "fly.get_iter" and op.operands[0] in self.places:
            self.places[op.results[0]] = self.places[op.operands[0]]
        elif op.name == "fly.add_offset" and op.operands[0] in self.places:
            fragment, start = self.places[op.operands[0]]
            self.places[op.results[0]] = (fragment, start + _known_offset(op))
        elif op.name == "fly.ptr_store" and _in_registers(op.operands[1]):
            self._note(op, *self.places[op.operands[1]])
        elif not (op.name in STRUCTURED or op.name == "fly.ptr_load" and _in_registers(op.operands[0])):
            return False
        if op.name not in STRUCTURED:
            self.done.append(op)
        self.inside.setdefault(op.block, []).append(op)
        return op.parent.name not in STRUCTURED

    def _note(self, store: Any, fragment: Fragment, start: int) -> None:
        """Note a store with every operation around it, as far out as its fragment is known."""
        count, _ = shape_of(store.operands[0])
        _check_span(store, fragment, start, count)
        around, home = store.parent, fragment.alloca.parent
        while around != home:
            if around.name not in STRUCTURED:
                raise CompileError(
                    f"a fragment in registers is stored to inside of {around.name}",
                    where=source_line(store.location),
                    hint="this is a fault of flylab's passes: please report the kernel",
                )
            elements = self.stored.setdefault(around, {})
            elements[fragment] = elements.get(fragment, 0) | _span(start, count)
            around = around.parent

    def block(self, block: Any) -> None:
        """Promote what one block does, and the blocks inside of it."""
        for op in self.inside.get(block, ()):
            if op.name == "fly.ptr_load":
                _load(op, *self.places[op.operands[0]])
            elif op.name == "fly.ptr_store":
                _store(op, *self.places[op.operands[1]])
            elif op.name == "scf.if":
                self._branches(op, self.stored.get(op, {}))
            elif op.name in LOOPS:
                self._loop(op, self.stored.get(op, {}))

    def _branches(self, op: Any, changed: dict[Fragment, int]) -> None:
        before = {fragment: (fragment.value, fragment.written) for fragment in changed}
        after = []
        for region in range(2):
            for fragment, state in before.items():
                fragment.value, fragment.written = state
            if block_of(op, region) is not None:
                self.block(block_of(op, region))
            after.append({fragment: (fragment.value, fragment.written) for fragment in changed})
        if not changed:
            return
        _complete(op)
        wanted = {fragment: after[0][fragment][1] | after[1][fragment][1] for fragment in changed}
        for region, states in enumerate(after):
            for fragment, state in states.items():
                fragment.value, fragment.written = state
            _append(end_of(op, region), wanted)
        _replace(op, op.operands, wanted)

    def _loop(self, op: Any, changed: dict[Fragment, int]) -> None:
        # What an iteration stores may have been stored before the next one reads.
        wanted = {fragment: fragment.written | elements for fragment, elements in changed.items()}
        builder = Builder(op)
        initial = [fragment.with_zeros(builder, elements) for fragment, elements in wanted.items()]
        for region in range(len(op.regions)):
            block = block_of(op, region)
            for fragment, elements in wanted.items():
                fragment.value = block.add_argument(fragment.kind, fragment.alloca.location)
                fragment.written = elements
            self.block(block)
            if wanted:
                _append(end_of(op, region), wanted)
        if wanted:
            _replace(op, [*op.operands, *initial], wanted)


def _complete(op: Any) -> None:
    """Give an `scf.if` the else branch that it may lack."""
    from mlir import ir

    if block_of(op, 1) is None:
        with ir.InsertionPoint(op.regions[1].blocks.append()):
            ir.Operation.create("scf.yield", loc=op.location)


def _append(end: Any, wanted: dict[Fragment, int]) -> None:
    """Hand fragments over at the end of a region too."""
    builder = Builder(end)
    values = [fragment.with_zeros(builder, elements) for fragment, elements in wanted.items()]
    made_again(end, [*end.operands, *values], [])
    end.erase()


def _replace(op: Any, operands: Any, wanted: dict[Fragment, int]) -> None:
    """Make an operation again whose further results are the values of fragments after it."""
    count = len(op.results)
    made = made_again(op, operands, [*(r.type for r in op.results), *(fragment.kind for fragment in wanted)])
    for old, new in zip(op.results, made.results, strict=False):
        old.replace_all_uses_with(new)
    for (fragment, elements), value in zip(wanted.items(), list(made.results)[count:], strict=True):
        fragment.value, fragment.written = value, elements
    op.erase()


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
    unset = _span(start, count) & ~fragment.written
    if unset:
        element = (unset & -unset).bit_length() - 1
        raise CompileError(
            f"element {element} of a fragment in registers is read, and nothing was stored to it",
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
    fragment.value = insert(Builder(op), value, fragment.value, start, fragment.count)
    fragment.written |= _span(start, count)
