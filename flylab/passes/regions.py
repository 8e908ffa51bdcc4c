"""Structured control flow: which values are one across the borders of a region, and making an operation again.

`scf.if`, `scf.for` and `scf.while` hand values over by position. A `Crossing` is one row of them: what comes in, from
which operands of which operations, and under which block arguments and results it is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flylab.passes.rewriter import Builder

LOOPS = ("scf.for", "scf.while")
STRUCTURED = ("scf.if", *LOOPS)
ENDS = ("scf.yield", "scf.condition")
"""What ends a region of these."""


@dataclass(frozen=True)
class Crossing:
    """Values that cross a border: `sources` are (operation, its first operand of them).

    Value `i` is operand `first + i` of one of the sources; inside it is seen as block argument `i` of `arguments`,
    after it as result `i` of `results`, where there are such.
    """

    sources: tuple[tuple[Any, int], ...]
    arguments: Sequence[Any] = ()
    results: Sequence[Any] = ()

    @property
    def values(self) -> Sequence[Any]:
        """The values under one of their names."""
        return self.arguments or self.results

    def incoming(self, index: int) -> list[Any]:
        """What value `index` may be."""
        return [op.operands[first + index] for op, first in self.sources]

    def seen(self, index: int) -> list[Any]:
        """The names of value `index`."""
        return [values[index] for values in (self.arguments, self.results) if values]


def block_of(op: Any, region: int = 0) -> Any:
    """The one block of a region, or None where it is empty."""
    blocks = op.regions[region].blocks
    return blocks[0] if len(blocks) else None


def end_of(op: Any, region: int = 0) -> Any:
    """The operation that ends a region."""
    operations = block_of(op, region).operations
    return operations[len(operations) - 1].operation


def _of_if(op: Any) -> tuple[Crossing, ...]:
    if not len(op.results):
        return ()
    return (Crossing(((end_of(op, 0), 0), (end_of(op, 1), 0)), results=list(op.results)),)


def _of_for(op: Any) -> tuple[Crossing, ...]:
    arguments = list(block_of(op).arguments)[1:]
    return (Crossing(((op, 3), (end_of(op), 0)), arguments, list(op.results)),)


def _of_while(op: Any) -> tuple[Crossing, ...]:
    before, after = list(block_of(op, 0).arguments), list(block_of(op, 1).arguments)
    return (
        Crossing(((op, 0), (end_of(op, 1), 0)), before),
        Crossing(((end_of(op, 0), 1),), after, list(op.results)),
    )


_CROSSINGS: dict[str, Callable[[Any], tuple[Crossing, ...]]] = {
    "scf.if": _of_if, "scf.for": _of_for, "scf.while": _of_while
}  # fmt: skip


def crossings(op: Any) -> tuple[Crossing, ...]:
    """The values that cross the borders of an operation's regions; none for an operation that is not of these.

    A loop's first row is of its carried values.
    """
    rule = _CROSSINGS.get(op.name)
    return rule(op) if rule else ()


def deciding(op: Any) -> list[Any]:
    """The values that decide which way, or how often, structured control flow goes."""
    if op.name == "scf.while":
        return [end_of(op).operands[0]]
    return list(op.operands)[: 3 if op.name == "scf.for" else 1]


def made_again(op: Any, operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """The same operation before an old one, with other operands and result types. It takes the regions over.

    The old operation stays, for its results to be replaced, and is to be erased.
    """
    from mlir import ir

    with ir.InsertionPoint(op):
        made = ir.Operation.create(
            op.name,
            results=list(results),
            operands=list(operands),
            attributes={name: op.attributes[name] for name in op.attributes},
            regions=len(op.regions),
            loc=op.location,
        )
    for old, new in zip(op.regions, made.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(new)
    return made


def branch(builder: Builder, condition: Any) -> tuple[Builder, Builder]:
    """An `scf.if` with two regions; what makes operations in each."""
    from mlir import ir

    with builder.point:
        made = ir.Operation.create("scf.if", operands=[condition], regions=2, loc=builder.before.location)
        ends = []
        for region in made.regions:
            with ir.InsertionPoint(region.blocks.append()):
                ends.append(ir.Operation.create("scf.yield", loc=builder.before.location))
    return Builder(ends[0]), Builder(ends[1])
