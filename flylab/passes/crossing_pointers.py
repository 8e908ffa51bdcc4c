"""Pointers where control flow meets: results of branches, carried values of loops, and `arith.select`.

A part of convert-fly-to-rocdl. A global pointer goes on as `!llvm.ptr<1>`, a buffer pointer as a pair: its descriptor
(`!llvm.ptr<8>`) and its offset in bytes. They take the places after all other values of an operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.dialect.types import DESCRIPTOR, POINTERS, Ptr, of_mlir
from flylab.passes.regions import ENDS, STRUCTURED, Crossing, crossings, made_again
from flylab.passes.rewriter import Builder, parse_type


def widest(*offsets: Any) -> str:
    """i64 where one of the offsets is: tracing found that it may leave 32 bits. None stands for an offset of 0."""
    return "i64" if any(o is not None and o.type == parse_type("i64") for o in offsets) else "i32"


def wide(builder: Builder, offset: Any, kind: str) -> Any:
    """An offset in an integer type that is no narrower than its own."""
    if offset is None:
        return builder.constant(0, kind)
    return offset if offset.type == parse_type(kind) else builder.op("arith.extsi", [offset], kind)


def _pointer(value: Any) -> Ptr | None:
    spec = of_mlir(value.type)
    return spec if isinstance(spec, Ptr) else None


@dataclass(frozen=True)
class _Places:
    """Which values of a crossing are pointers, and the types that each goes on as."""

    kinds: dict[int, list[Any]]

    def rest(self, values: Any) -> list[Any]:
        """Those that are no pointers."""
        return [value for index, value in enumerate(values) if index not in self.kinds]

    @property
    def types(self) -> list[Any]:
        return [kind for kinds in self.kinds.values() for kind in kinds]

    def named(self, values: Any, address: dict[Any, Any], made: Any) -> None:
        """Note for each pointer of `values` which of the new values it is."""
        new = iter(made)
        for index, kinds in self.kinds.items():
            parts = [next(new) for _ in kinds]
            address[values[index]] = parts[0] if len(parts) == 1 else tuple(parts)


class CrossingPointers:
    """Converts the control flow among `ops`; `address` says what each Fly pointer has become.

    What is replaced is added to `done`, which is to be erased from its end, and then `erase_arguments` called.
    """

    def __init__(self, ops: list[Any], address: dict[Any, Any], done: list[Any]):
        self.address = address
        self.done = done
        # By the block that ends there: MLIR's hash of an operation changes with its operands.
        self.ends: dict[Any, tuple[int, _Places]] = {}
        self.old_arguments: list[Any] = []
        self.wide = _leaving_32_bits(ops)

    def take(self, op: Any) -> bool:
        """Convert an operation if it is one of control flow; True if it is."""
        if op.name in STRUCTURED:
            self._structured(op)
        elif op.name in ENDS:
            self._end(op)
        elif op.name == "arith.select" and (spec := _pointer(op.results[0])):
            self._select(op, spec)
        else:
            return False
        return True

    def erase_arguments(self) -> None:
        """Erase the block arguments that were replaced."""
        for argument in reversed(self.old_arguments):
            argument.owner.erase_argument(argument.arg_number)

    def _structured(self, op: Any) -> None:
        rows = [(row, self._places(row)) for row in crossings(op)]
        if not any(places.kinds for _, places in rows):
            return
        operands, types = list(op.operands), [result.type for result in op.results]
        for row, places in rows:
            for source, first in row.sources:
                if source == op:
                    operands = self._operands(Builder(op), operands, first, places)
                else:
                    self.ends[source.block] = (first, places)
            if row.arguments:
                self._arguments(row, places)
            if row.results:
                types = [*places.rest(types), *places.types]
        made = made_again(op, operands, types)
        for row, places in rows:
            if row.results:
                kept = places.rest(row.results)
                for old, new in zip(kept, made.results, strict=False):
                    old.replace_all_uses_with(new)
                places.named(row.results, self.address, list(made.results)[len(kept) :])
        self.done.append(op)

    def _places(self, row: Crossing) -> _Places:
        found: dict[int, list[Any]] = {}
        for index, value in enumerate(row.values):
            spec = _pointer(value)
            if spec and spec.space == "buffer":
                is_wide = any(name in self.wide for name in row.seen(index))
                found[index] = [parse_type(DESCRIPTOR), parse_type("i64" if is_wide else "i32")]
            elif spec:
                found[index] = [parse_type(POINTERS[spec.space])]
        return _Places(found)

    def _arguments(self, row: Crossing, places: _Places) -> None:
        block, old = row.arguments[0].owner, row.arguments[0].location
        made = [block.add_argument(kind, old) for kind in places.types]
        places.named(row.arguments, self.address, made)
        self.old_arguments += [row.arguments[index] for index in places.kinds]

    def _operands(self, builder: Builder, operands: list[Any], first: int, places: _Places) -> list[Any]:
        """The operands from `first` on, pointers last, as what they have become."""
        converted: list[Any] = []
        for index, kinds in places.kinds.items():
            found = self.address[operands[first + index]]
            if len(kinds) == 1:
                converted.append(found)
            else:
                converted += [found[0], wide(builder, found[1], str(kinds[1]))]
        return [*operands[:first], *places.rest(operands[first:]), *converted]

    def _end(self, op: Any) -> None:
        if op.block in self.ends:
            made_again(op, self._operands(Builder(op), list(op.operands), *self.ends[op.block]), [])
            op.erase()

    def _select(self, op: Any, spec: Ptr) -> None:
        builder = Builder(op)
        condition, a, b = op.operands[0], self.address[op.operands[1]], self.address[op.operands[2]]
        if spec.space == "buffer":
            kind = widest(a[1], b[1])
            descriptor = builder.op("arith.select", [condition, a[0], b[0]], DESCRIPTOR)
            offsets = [wide(builder, offset, kind) for offset in (a[1], b[1])]
            found: Any = (descriptor, builder.op("arith.select", [condition, *offsets], kind))
        else:
            found = builder.op("arith.select", [condition, a, b], POINTERS[spec.space])
        self.address[op.results[0]] = found
        self.done.append(op)


def _leaving_32_bits(ops: list[Any]) -> set[Any]:
    """The buffer pointers that cross a border with an offset of 64 bits: some offset on the way to them has as many."""
    leads: dict[Any, list[Any]] = {}
    found: list[Any] = []
    for op in ops:
        if op.name == "fly.add_offset":
            leads.setdefault(op.operands[0], []).append(op.results[0])
            if op.operands[1].type == parse_type("i64"):
                found.append(op.results[0])
        elif op.name == "arith.select":
            for value in list(op.operands)[1:]:
                leads.setdefault(value, []).append(op.results[0])
        elif op.name in STRUCTURED:
            for row in crossings(op):
                for index in range(len(row.values)):
                    for value in row.incoming(index):
                        leads.setdefault(value, []).extend(row.seen(index))
    seen: set[Any] = set()
    while found:
        value = found.pop()
        if value not in seen:
            seen.add(value)
            found += leads.get(value, ())
    return seen
