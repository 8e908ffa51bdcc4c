"""Which bits of an integer are the same in every run: one rule for each operation of `arith`, and the launch's bounds.

An index of MLIR has 64 bits here, as convert-gpu-to-rocdl makes it. A shift by its width or more and a division by zero
have no value, so whatever is claimed of them holds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flylab.passes.host import wrap
from flylab.passes.rewriter import axis_of

INDEX_WIDTH = 64
WIDEST = 64
"""Wider integers, and what is no integer, are not looked at: their width counts as 0."""


@dataclass(frozen=True, slots=True)
class Bits:
    """An integer of `width` bits of which those in `zeros` are 0 and those in `ones` are 1, always.

    >>> Bits(8, zeros=0b11110000).most
    15
    """

    width: int
    zeros: int = 0
    ones: int = 0

    @classmethod
    def constant(cls, width: int, value: int) -> Bits:
        """A number of which every bit is known.

        >>> Bits.constant(8, -1).ones
        255
        """
        return cls(width, ~value & mask(width), value & mask(width))

    @property
    def most(self) -> int:
        """The bits that may be 1; read as a number, the greatest unsigned value."""
        return mask(self.width) & ~self.zeros

    @property
    def value(self) -> int | None:
        """The unsigned number, where every bit is known."""
        return self.ones if self.zeros | self.ones == mask(self.width) else None


def mask(width: int) -> int:
    """The lowest `width` bits set."""
    return (1 << width) - 1


def carries(a: Bits, b: Bits) -> int:
    """The bits into which a sum of two numbers may carry.

    >>> bin(carries(Bits(8, zeros=0b11111100), Bits.constant(8, 1)))
    '0b110'
    """
    # A carry into a bit only grows with the bits below it, so that the greatest numbers have all that may be.
    return (a.most + b.most ^ a.most ^ b.most) & mask(a.width)


def added(width: int, a: Bits, b: Bits, carry: int = 0) -> Bits:
    """What is known of a + b + carry: a bit where those of both numbers and the carry into it are."""
    most, least = a.most + b.most + carry, a.ones + b.ones + carry
    never_carried, carried = ~(most ^ a.most ^ b.most), least ^ a.ones ^ b.ones
    known = (a.zeros | a.ones) & (b.zeros | b.ones) & (never_carried | carried)
    return Bits(width, ~most & known & mask(width), least & known & mask(width))


def _subtracted(width: int, a: Bits, b: Bits) -> Bits:
    return added(width, a, Bits(width, b.ones, b.zeros), carry=1)


def multiplied(width: int, a: Bits, b: Bits) -> Bits:
    """What is known of a * b: the lowest bits that depend on known bits only, and zeros above the greatest product."""
    zeros_a, zeros_b = _trailing(a.zeros), _trailing(b.zeros)
    odd = min(_trailing(a.zeros | a.ones) - zeros_a, _trailing(b.zeros | b.ones) - zeros_b)
    low = mask(min(zeros_a + zeros_b + odd, width))
    product = a.ones * b.ones
    return Bits(width, low & ~product | _above(width, a.most * b.most), low & product)


def _trailing(bits: int) -> int:
    """How many of the lowest bits are set, without a gap."""
    return (~bits & bits + 1).bit_length() - 1


def _above(width: int, most: int) -> int:
    """The bits above those of the greatest value."""
    return mask(width) & ~mask(most.bit_length())


def _and(width: int, a: Bits, b: Bits) -> Bits:
    return Bits(width, a.zeros | b.zeros, a.ones & b.ones)


def _or(width: int, a: Bits, b: Bits) -> Bits:
    return Bits(width, a.zeros & b.zeros, a.ones | b.ones)


def _xor(width: int, a: Bits, b: Bits) -> Bits:
    return Bits(width, a.zeros & b.zeros | a.ones & b.ones, a.zeros & b.ones | a.ones & b.zeros)


def _left(width: int, a: Bits, n: int) -> Bits:
    return Bits(width, (a.zeros << n | mask(n)) & mask(width), a.ones << n & mask(width))


def _right(width: int, a: Bits, n: int) -> Bits:
    return Bits(width, a.zeros >> n | mask(width) & ~mask(width - n), a.ones >> n)


def _right_signed(width: int, a: Bits, n: int) -> Bits:
    return Bits(width, wrap(a.zeros, width) >> n & mask(width), wrap(a.ones, width) >> n & mask(width))


def _shift(rule: Callable[[int, Bits, int], Bits]) -> Callable[[int, Bits, Bits], Bits]:
    """The rule of a shift, by any count, from that of a shift by a known one."""

    def by_any(width: int, a: Bits, count: Bits) -> Bits:
        return Bits(width) if count.value is None or count.value >= width else rule(width, a, count.value)

    return by_any


def _quotient(width: int, a: Bits, b: Bits) -> Bits:
    if b.value and b.value & b.value - 1 == 0:
        return _right(width, a, b.value.bit_length() - 1)
    return Bits(width, _above(width, a.most // max(b.ones, 1)))


def _remainder(width: int, a: Bits, b: Bits) -> Bits:
    # Multiples of 2**k leave the lowest k bits as they are.
    low = mask(_trailing(b.zeros))
    return Bits(width, _above(width, min(a.most, max(b.most - 1, 0))) | a.zeros & low, a.ones & low)


def _unsigned(width: int, a: Bits) -> Bits:
    return Bits(width, (a.zeros | ~mask(a.width)) & mask(width), a.ones & mask(width))


def _signed(width: int, a: Bits) -> Bits:
    return Bits(width, wrap(a.zeros, a.width) & mask(width), wrap(a.ones, a.width) & mask(width))


def _either(width: int, a: Bits, b: Bits) -> Bits:
    return Bits(width, a.zeros & b.zeros, a.ones & b.ones)


def _least(width: int, a: Bits, b: Bits) -> Bits:
    either = _either(width, a, b)
    return Bits(width, either.zeros | _above(width, min(a.most, b.most)), either.ones)


# By operation: what is known of the result, from its width and what is known of each operand.
RULES: dict[str, Callable[..., Bits]] = {
    "arith.addi": added,
    "arith.subi": _subtracted,
    "arith.muli": multiplied,
    "arith.andi": _and,
    "arith.ori": _or,
    "arith.xori": _xor,
    "arith.shli": _shift(_left),
    "arith.shrui": _shift(_right),
    "arith.shrsi": _shift(_right_signed),
    "arith.divui": _quotient,
    "arith.remui": _remainder,
    "arith.extui": _unsigned,
    "arith.extsi": _signed,
    "arith.trunci": _unsigned,
    "arith.index_cast": _signed,
    "arith.index_castui": _unsigned,
    "arith.select": lambda width, condition, a, b: _either(width, a, b),
    "arith.minui": _least,
    "arith.maxui": _either,
    "arith.minsi": _either,
    "arith.maxsi": _either,
}


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
    return Bits(width, _above(width, min(bounds) - 1) if bounds else 0)


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
        self._known: dict[Any, Bits] = {}

    def of(self, value: Any) -> Bits:
        """The known bits of a value."""
        for each in in_order(value, self._known, operands_of):
            self._known[each] = self._compute(each)
        return self._known[value]

    def _compute(self, value: Any) -> Bits:
        width, op = width_of(value), maker(value)
        if not width or op is None:
            return Bits(width)
        if op.name in SOURCES:
            return SOURCES[op.name](width, op)
        operands = [self._known[v] for v in operands_of(value)]
        return RULES[op.name](width, *operands) if operands and all(b.width for b in operands) else Bits(width)


def operands_of(value: Any) -> list[Any]:
    """The operands that a rule reads."""
    op = maker(value)
    return list(op.operands) if op is not None and op.name in RULES and width_of(value) else []
