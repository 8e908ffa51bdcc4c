"""The known bits of the values of a kernel: by its operations, its control flow and the bounds of its launch.

An index of MLIR has 64 bits here, as convert-gpu-to-rocdl makes it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Container, Iterator, MutableMapping, Sequence
from itertools import count
from typing import Any

from flylab.passes.known_bits import RULES, Bits, above, induction, joined, lowest
from flylab.passes.regions import LOOPS, STRUCTURED, Crossing, crossings
from flylab.passes.rewriter import axis_of

INDEX_WIDTH = 64
WIDEST = 64
"""Wider integers, and what is no integer, are not looked at: their width counts as 0."""


def _constant(width: int, op: Any) -> Bits:
    return Bits.constant(width, int(op.attributes["value"].value))


def _identifier(width: int, op: Any) -> Bits:
    """Zeros above an id of a thread or block, from its own bound or from those of its kernel."""
    bounds = []
    if "upper_bound" in op.attributes:
        bounds.append(int(op.attributes["upper_bound"].value))
    kernel = op.parent
    while kernel is not None and kernel.name != "gpu.func":
        kernel = kernel.parent
    attributes = {} if kernel is None else kernel.attributes
    sizes = "known_block_size" if op.name == "gpu.thread_id" else "known_grid_size"
    if sizes in attributes:
        bounds.append(list(attributes[sizes])[axis_of(op)])
    elif op.name == "gpu.thread_id" and MAX_BLOCK in attributes:
        bounds.append(int(attributes[MAX_BLOCK].value))
    return Bits(width, above(width, min(bounds) - 1) if bounds else 0)


MAX_BLOCK = "rocdl.max_flat_work_group_size"
"""What tracing puts on a kernel whose block is known only at launch."""

# By operation without operands: what is known of the result, from its width and the operation.
SOURCES: dict[str, Callable[[int, Any], Bits]] = {
    "arith.constant": _constant,
    "gpu.thread_id": _identifier,
    "gpu.block_id": _identifier,
}


def width_of(value: Any) -> int:
    """The bits of an integer or index value; 0 for any other, which has no known bits."""
    from mlir import ir

    kind = value.type
    if isinstance(kind, ir.IntegerType):
        return int(kind.width) if kind.width <= WIDEST else 0
    return INDEX_WIDTH if isinstance(kind, ir.IndexType) else 0


def maker(value: Any) -> Any:
    """The operation that a value is the result of, or None for an argument of a block."""
    owner = value.owner
    return owner.operation if hasattr(owner, "operation") else None


def known_integer(value: Any) -> int | None:
    """The number that a value is where it is a constant, or None."""
    op = maker(value)
    return int(op.attributes["value"].value) if op is not None and op.name == "arith.constant" else None


def in_order(value: Any, known: Container[Any], needs: Callable[[Any], Sequence[Any]]) -> Iterator[Any]:
    """The values that are missing in `known` to tell `value`, what each `needs` before it, and `value` as the last.

    Each must be in `known` before the next is asked for. No recursion: a chain of operations may be long.
    """
    waiting = [value]
    while waiting:
        top = waiting[-1]
        missing = [] if top in known else [v for v in needs(top) if v not in known]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if top not in known:
            yield top


class KnownBits:
    """The known bits of values, each computed once: no operation may be erased while this lives."""

    def __init__(self) -> None:
        self._known: MutableMapping[Any, Bits] = {}
        self._rows: dict[Any, tuple[Crossing, ...]] = {}

    def of(self, value: Any) -> Bits:
        """The known bits of a value."""
        for each in in_order(value, self._known, self._needs):
            self._known[each] = self._compute(each)
        return self._known[value]

    def _needs(self, value: Any) -> Sequence[Any]:
        """What is to be known before a value: of what a loop carries, also what the loops around it carry."""
        if not width_of(value):
            return []
        if (loop := _loop_of_induction(value)) is not None:
            return list(loop.operands)[:3]
        row, index, carried = self._crossing(value)
        if row is None:
            return operands_of(value)
        if not carried:
            return row.incoming(index)
        if maker(value) is not None:
            return [row.arguments[index]]
        found, around = [row.incoming(i)[0] for i in _integers(row)], row.sources[0][0].parent
        while around is not None:
            if around.name in LOOPS:
                outer = self._crossings(around)[0]
                found += [outer.arguments[i] for i in _integers(outer)]
            around = around.parent
        return found

    def _compute(self, value: Any) -> Bits:
        width, op = width_of(value), maker(value)
        if not width:
            return Bits(width)
        if (loop := _loop_of_induction(value)) is not None:
            start, stop, step = (self._known[v] for v in list(loop.operands)[:3])
            return induction(width, start, stop, step, "unsignedCmp" in loop.attributes)
        row, index, carried = self._crossing(value)
        if row is not None:
            if not carried:
                return joined(width, [self._known[v] for v in row.incoming(index)])
            if op is not None:
                return self._known[row.arguments[index]]
            self._solve(row)
            return self._known[value]
        if op is None:
            return Bits(width)
        if op.name in SOURCES:
            return SOURCES[op.name](width, op)
        operands = [self._known[v] for v in operands_of(value)]
        return RULES[op.name](width, *operands) if operands and all(b.width for b in operands) else Bits(width)

    def _crossings(self, op: Any) -> tuple[Crossing, ...]:
        if op not in self._rows:
            self._rows[op] = crossings(op)
        return self._rows[op]

    def _crossing(self, value: Any) -> tuple[Crossing | None, int, bool]:
        """The row and place of a value of structured control flow, and whether a loop carries it."""
        op = maker(value)
        if op is not None:
            rows = self._crossings(op) if op.name in STRUCTURED else ()
            return (rows[-1], value.result_number, op.name == "scf.for") if rows else (None, 0, False)
        parent = value.owner.owner.operation
        if parent.name not in LOOPS:
            return None, 0, False
        row = next(row for row in self._crossings(parent) if row.arguments and row.arguments[0].owner == value.owner)
        return row, value.arg_number - row.arguments[0].arg_number, row is self._crossings(parent)[0]

    def _solve(self, row: Crossing) -> None:
        """What is known of the values that a loop carries: what stays so from one turn to the next.

        A trial begins with what the values are at first, and is given up where a turn makes them less known.
        """
        outside = self._known
        found = {i: outside[row.incoming(i)[0]] for i in _integers(row)}
        for turn in count():
            trial: ChainMap[Any, Bits] = ChainMap({row.arguments[i]: bits for i, bits in found.items()}, outside)
            self._known = trial
            after = {i: joined(bits.width, [bits, self.of(row.incoming(i)[1])]) for i, bits in found.items()}
            if after == found:
                break
            found = {i: lowest(found[i], bits) for i, bits in after.items()} if turn >= MOST_TURNS else after
        self._known = outside
        outside.update(trial.maps[0])


MOST_TURNS = 6
"""A loop is gone through as often before bits that may change later count as unknown."""


def _integers(row: Crossing) -> list[int]:
    return [i for i, value in enumerate(row.values) if width_of(value)]


def _loop_of_induction(value: Any) -> Any:
    """The scf.for whose induction variable a value is, or None."""
    if maker(value) is not None or value.arg_number != 0:
        return None
    loop = value.owner.owner.operation
    return loop if loop.name == "scf.for" else None


def operands_of(value: Any) -> list[Any]:
    """The operands that a rule reads."""
    op = maker(value)
    return list(op.operands) if op is not None and op.name in RULES and width_of(value) else []
