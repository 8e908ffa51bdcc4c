"""Which bits of an integer are the same in every run: one rule for each operation of `arith`, and for loops.

A shift by its width or more and a division by zero have no value, so whatever is claimed of them holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flylab.passes.host import wrap


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
    zeros_a, zeros_b = trailing(a.zeros), trailing(b.zeros)
    odd = min(trailing(a.zeros | a.ones) - zeros_a, trailing(b.zeros | b.ones) - zeros_b)
    low = mask(min(zeros_a + zeros_b + odd, width))
    product = a.ones * b.ones
    return Bits(width, low & ~product | above(width, a.most * b.most), low & product)


def trailing(bits: int) -> int:
    """How many of the lowest bits are set, without a gap."""
    return (~bits & bits + 1).bit_length() - 1


def above(width: int, most: int) -> int:
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
    return Bits(width, above(width, a.most // max(b.ones, 1)))


def _remainder(width: int, a: Bits, b: Bits) -> Bits:
    # Multiples of 2**k leave the lowest k bits as they are.
    low = mask(trailing(b.zeros))
    return Bits(width, above(width, min(a.most, max(b.most - 1, 0))) | a.zeros & low, a.ones & low)


def _unsigned(width: int, a: Bits) -> Bits:
    return Bits(width, (a.zeros | ~mask(a.width)) & mask(width), a.ones & mask(width))


def _signed(width: int, a: Bits) -> Bits:
    return Bits(width, wrap(a.zeros, a.width) & mask(width), wrap(a.ones, a.width) & mask(width))


def either(width: int, a: Bits, b: Bits) -> Bits:
    """What is known of a value that is one of two."""
    return Bits(width, a.zeros & b.zeros, a.ones & b.ones)


def _least(width: int, a: Bits, b: Bits) -> Bits:
    common = either(width, a, b)
    return Bits(width, common.zeros | above(width, min(a.most, b.most)), common.ones)


def joined(width: int, ways: Sequence[Bits]) -> Bits:
    """What is known of a number that is one of several."""
    first, *rest = ways
    for other in rest:
        first = either(width, first, other)
    return first


def lowest(before: Bits, after: Bits) -> Bits:
    """Of what is known after a turn, the bits below all that became unknown in it."""
    changed = (before.zeros | before.ones) & ~(after.zeros | after.ones)
    kept = (changed & -changed) - 1 if changed else -1
    return Bits(after.width, after.zeros & kept, after.ones & kept)


def induction(width: int, start: Bits, stop: Bits, step: Bits, unsigned: bool = False) -> Bits:
    """What is known of start, start + step ... below stop.

    >>> hex(induction(32, Bits.constant(32, 0), Bits.constant(32, 256), Bits.constant(32, 64)).most)
    '0xc0'
    """
    low = mask(min(trailing(step.zeros), width))
    zeros, limit = start.zeros & low, width if unsigned else width - 1
    # Where the last step may wrap, the next number may be any.
    last = (stop.most & mask(limit)) - 1
    if start.most <= mask(limit) and step.most <= mask(limit) and last + step.most <= mask(limit):
        zeros |= above(width, max(last, 0))
    return Bits(width, zeros, start.ones & low)


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
    "arith.select": lambda width, condition, a, b: either(width, a, b),
    "arith.minui": _least,
    "arith.maxui": either,
    "arith.minsi": either,
    "arith.maxsi": either,
}
