"""fly-promote-regmem-to-vectorssa: fragments in registers become vector values; no register memory is left.

A store makes its vector the value of the elements that it stores to, a load takes the vector that is there: whole, or
joined from several, or a part of one. What `scf.if` stores to is among its results, what a loop stores to among the
values that it carries, in pieces as the accesses inside are (`fragment_flow`), where it may be read afterwards. Reading
an element that nothing was stored to on any way there is an error at the line that reads it; on a way without a store,
an element that another way stores to is 0; that an iteration stores only after a read does not help the first one,
which reads nothing. An index known only on the device chooses among the elements that it may
mean: to read, all of them must have been stored to; a store makes 0 of those that were not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flylab.dialect.operations import attribute
from flylab.dialect.types import MemRef, Ptr, of_mlir
from flylab.errors import CompileError
from flylab.layout import cosize
from flylab.passes.fragment_flow import Access, Flow
from flylab.passes.fragments import Fragment, Lane, Place, read, write
from flylab.passes.known_values import known_integer
from flylab.passes.regions import LOOPS, STRUCTURED, block_of, end_of, made_again
from flylab.passes.rewriter import Builder, Pass, erase, operations, source_line
from flylab.passes.vectors import shape_of, vector_type

Piece = tuple[Fragment, int, int]
"""A fragment, the first of some elements of it, and their number."""


@dataclass(frozen=True)
class PromoteRegmem(Pass):
    """See the module's text."""

    name: str = "fly-promote-regmem-to-vectorssa"

    def run(self, module: Any) -> None:
        """Promote the fragments of every kernel."""
        promotion = _Promotion()
        for op in operations(module.operation):
            promotion.take(op)
        if promotion.done:
            for block in promotion.tops:
                promotion.flow.analyse(block)
                promotion.block(block)
            erase(promotion.done)


@dataclass
class _Promotion:
    """What was found: where pointers lead, what each block does with fragments, and what is done with; `tops` are the
    outermost blocks of these."""

    places: dict[Any, Place] = field(default_factory=dict)
    flow: Flow = field(default_factory=lambda: Flow({}))
    done: list[Any] = field(default_factory=list)
    tops: list[Any] = field(default_factory=list)
    used: dict[Any, set[Fragment]] = field(default_factory=dict)

    def take(self, op: Any) -> None:
        """Take an operation in."""
        name = op.name
        if name in STRUCTURED:
            self._note(op, None)
            return
        if name == "fly.memref_alloca":
            spec: MemRef = of_mlir(op.results[0].type)
            self.places[op.results[0]] = Place(Fragment(op, spec.dtype.mlir, cosize(spec.layout)))
        elif name == "fly.get_iter" and op.operands[0] in self.places:
            self.places[op.results[0]] = self.places[op.operands[0]]
        elif name == "fly.add_offset" and op.operands[0] in self.places:
            self.places[op.results[0]] = _moved(op, self.places[op.operands[0]])
        elif name == "fly.ptr_store" and _in_registers(op.operands[1]):
            self._note(op, self._access(op, op.operands[1], op.operands[0]))
        elif name == "fly.ptr_load" and _in_registers(op.operands[0]):
            self._note(op, self._access(op, op.operands[0], op.results[0]))
        else:
            return
        self.done.append(op)

    def _note(self, op: Any, access: Access | None) -> None:
        block = op.block
        inside = self.flow.inside.get(block)
        if inside is None:
            inside = self.flow.inside[block] = []
            self.used[block] = set()
            if op.parent.name not in STRUCTURED:
                self.tops.append(block)
        inside.append((op, access))
        if access is not None and access.place.fragment not in self.used[block]:
            self.used[block].add(access.place.fragment)
            _check_home(op, access.place.fragment)

    def _access(self, op: Any, pointer: Any, value: Any) -> Access:
        place = self.places.get(pointer)
        if place is None:
            raise CompileError(
                f"a fragment in registers is reached by way of {pointer.owner.name}",
                where=source_line(op.location),
                hint="this is a fault of flylab's passes: please report the kernel",
            )
        access = Access(place, shape_of(value)[0], op.name == "fly.ptr_store")
        if not access.elements:
            first = place.starts[0]
            raise CompileError(
                f"elements {first} to {first + access.count - 1} of a fragment of {place.fragment.count} elements",
                where=source_line(op.location),
                hint="give the fragment as many elements as the atom moves",
            )
        return access

    def block(self, block: Any) -> None:
        """Promote what one block does, and the blocks inside of it."""
        known: dict[Any, Any] = {}  # what was read in this block, by its lanes
        for op, access in self.flow.inside.get(block, ()):
            if access is not None and access.is_store:
                write(Builder(op), access.place, op.operands[0], access.count)
            elif access is not None:
                _check_written(op, access)
                op.results[0].replace_all_uses_with(_read(op, access, known))
            elif op.name in LOOPS:
                self._loop(op, self.flow.crossing[block_of(op)])
            else:
                self._branches(op, self.flow.crossing[block_of(op)])

    def _branches(self, op: Any, crossing: list[Piece]) -> None:
        changed = self.flow.stored(op)
        before = {fragment: list(fragment.lanes) for fragment in changed}
        after: list[dict[Fragment, list[Lane]]] = []
        for region in range(2):
            for fragment, lanes in before.items():
                fragment.lanes = list(lanes)
            if block_of(op, region) is not None:
                self.block(block_of(op, region))
            after.append({fragment: fragment.lanes for fragment in changed})
        if crossing:
            _complete(op)
        for region, states in enumerate(after):
            for fragment, lanes in states.items():
                fragment.lanes = lanes
            if crossing:
                _append(end_of(op, region), crossing)
        for fragment, lanes in before.items():
            fragment.lanes = lanes
        if crossing:
            _replace(op, op.operands, crossing)

    def _loop(self, op: Any, crossing: list[Piece]) -> None:
        # What an iteration stores may have been stored before the next one reads.
        before = {fragment: list(fragment.lanes) for fragment in self.flow.stored(op)}
        initial = _values(Builder(op), crossing)
        for region in range(len(op.regions)):
            block = block_of(op, region)
            for fragment, start, count in crossing:
                kind = vector_type(fragment.element, count)
                fragment.put(block.add_argument(kind, fragment.alloca.location), start, count)
            for fragment, lanes in before.items():
                fresh = self.flow.fresh(op, fragment)
                for i, lane in enumerate(lanes):
                    if lane is None and not fresh >> i & 1:  # the first one to read it finds nothing
                        fragment.lanes[i] = None
            self.block(block)
            if crossing:
                _append(end_of(op, region), crossing)
        for fragment, lanes in before.items():
            fragment.lanes = lanes
        if crossing:
            _replace(op, [*op.operands, *initial], crossing)


def _check_home(op: Any, fragment: Fragment) -> None:
    """Only control flow that is known may stand between a fragment and its accesses."""
    around, home = op.parent, fragment.alloca.parent
    while around != home:
        if around.name not in STRUCTURED:
            raise CompileError(
                f"a fragment in registers is used inside of {around.name}",
                where=source_line(op.location),
                hint="this is a fault of flylab's passes: please report the kernel",
            )
        around = around.parent


def _complete(op: Any) -> None:
    """Give an `scf.if` the else branch that it may lack."""
    from mlir import ir

    if block_of(op, 1) is None:
        with ir.InsertionPoint(op.regions[1].blocks.append()):
            ir.Operation.create("scf.yield", loc=op.location)


def _values(builder: Builder, pieces: list[Piece]) -> list[Any]:
    return [fragment.get(builder, start, count) for fragment, start, count in pieces]


def _read(op: Any, access: Access, known: dict[Any, Any]) -> Any:
    """What a load takes; at a known place, what was made of the same lanes before."""
    place, count = access.place, access.count
    if not access.is_certain:
        return read(Builder(op), place, count)
    start = place.within(count)[0]
    lanes = tuple(place.fragment.lanes[start : start + count])
    found = known.get(lanes)
    if found is None:
        found = known[lanes] = read(Builder(op), place, count)
    return found


def _append(end: Any, pieces: list[Piece]) -> None:
    """Hand pieces of fragments over at the end of a region too."""
    made_again(end, [*end.operands, *_values(Builder(end), pieces)], [])
    end.erase()


def _replace(op: Any, operands: Any, pieces: list[Piece]) -> None:
    """Make an operation again whose further results are what pieces of fragments are after it."""
    count = len(op.results)
    kinds = [vector_type(fragment.element, count) for fragment, _, count in pieces]
    made = made_again(op, operands, [*(r.type for r in op.results), *kinds])
    for old, new in zip(op.results, made.results, strict=False):
        old.replace_all_uses_with(new)
    for (fragment, start, size), value in zip(pieces, list(made.results)[count:], strict=True):
        fragment.put(value, start, size)
    op.erase()


_registers: dict[Any, bool] = {}


def _in_registers(value: Any) -> bool:
    found = _registers.get(value.type)
    if found is None:
        spec = of_mlir(value.type)
        found = _registers[value.type] = isinstance(spec, Ptr) and spec.space == "register"
    return found


def _moved(op: Any, place: Place) -> Place:
    """Where a pointer leads that is moved by a number, known or of the device."""
    offset = op.operands[1]
    known = known_integer(offset)
    if known is not None:
        return place.moved(known)
    steps = list(map(int, attribute(op, "steps").split())) if "steps" in op.attributes else None
    return place.moved_by_value(Builder(op), offset, steps)


def _check_written(op: Any, access: Access) -> None:
    fragment, count = access.place.fragment, access.count
    unset = [start + fragment.lanes[start : start + count].index(None) for start in access.place.within(count)
             if None in fragment.lanes[start : start + count]]
    if unset:
        where = source_line(fragment.alloca.location)
        made = f"it was made at {f'line {where.line}' if where else 'an unknown line'}"
        perhaps = "" if access.is_certain else "perhaps (its index is known only on the device) "
        raise CompileError(
            f"element {unset[0]} of a fragment in registers is {perhaps}read, and nothing was stored to it",
            where=source_line(op.location),
            hint=f"copy into the fragment or fill it first ({made})",
        )
