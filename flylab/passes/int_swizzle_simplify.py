"""fly-int-swizzle-simplify: an index through a swizzle becomes a shift, a mask and an exclusive or; or less.

What it is for: the accesses of an unrolled loop differ by a constant. S<3,3,3> reads bits 6 to 8 of an index and
changes bits 3 to 5, so a constant that is a multiple of 512 passes through it:

    swizzle(x), swizzle(x + 512), swizzle(x + 1024)   become   s = swizzle(x), s + 512, s + 1024

One swizzle is computed, and each constant can be the offset in an instruction. In the same way pass the parts of a sum
that are known only while the kernel runs and reach no bit of the swizzle, and constants below its bits where nothing
carries. A constant within its bits is worth an exclusive or, where nothing carries: swizzle(x + c) is swizzle(x) ^
swizzle(c). What is known of the bits of an index comes from `flylab.passes.known_values`. After this pass no
`fly.int_swizzle` is left.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flylab.dialect.operations import attribute
from flylab.errors import CompileError, LayoutError
from flylab.layout import Swizzle, parse
from flylab.passes.host import wrap
from flylab.passes.known_bits import RULES, Bits, added, carries, mask, multiplied
from flylab.passes.known_values import SOURCES, WIDEST, KnownBits, in_order, maker, operands_of, width_of
from flylab.passes.rewriter import Builder, Pass, attributes_of, erase, operations, source_line

MOST_TERMS = 16
"""A sum of more terms is looked at as one number, so that a long one costs no more than its length."""

NEUTRAL = {"arith.addi": 0, "arith.muli": 1}
"""The right operand that leaves the left one as it is: the first step of an unrolled loop often has it."""

NO_PROMISE = "#arith.overflow<none>"

Term = tuple[Any, int]
"""A value and the constant that it is multiplied by."""


@dataclass(frozen=True)
class IntSwizzleSimplify(Pass):
    """See the module's text."""

    name: str = "fly-int-swizzle-simplify"

    def run(self, module: Any) -> None:
        """Replace each swizzle, in program order."""
        swizzles = [op for op in operations(module.operation) if op.name == "fly.int_swizzle"]
        simplifier = _Simplifier()
        for op in swizzles:
            op.results[0].replace_all_uses_with(simplifier.replacement(op))
        erase(swizzles)


_parsed = functools.lru_cache(256)(parse)


def _swizzle_of(op: Any) -> Swizzle:
    """The swizzle of an operation that has its one form, or the refusal."""
    index, result = op.operands[0], op.results[0]
    try:
        if str(index.type) not in ("i32", "i64") or index.type != result.type:
            raise LayoutError(f"{index.type} to {result.type} instead of i32 or i64 to the same")
        swizzle = _parsed(attribute(op, "swizzle"))
        if not isinstance(swizzle, Swizzle):
            raise LayoutError(f"{swizzle} is no swizzle")
    except ValueError as error:  # a LayoutError, or MLIR's for an attribute that is no text
        raise CompileError(
            f"fly.int_swizzle {op.attributes['swizzle']} cannot be read: {getattr(error, 'message', error)}",
            where=source_line(op.location),
            hint='its attribute swizzle is a text such as "S<3,3,3>", its operand an i32 or i64',
        ) from None
    return swizzle


def fields(swizzle: Swizzle, width: int) -> tuple[int, int]:
    """The bits that a swizzle reads and those that it changes in a signed integer of `width` bits.

    Above the highest bit all bits are as the sign is.

    >>> [hex(bits) for bits in fields(Swizzle(3, 3, 3), 32)]
    ['0x1c0', '0x38']
    >>> [hex(bits) for bits in fields(Swizzle(3, 3, 28), 32)]
    ['0x80000000', '0x38']
    """
    if swizzle.shift < 0:
        changes = swizzle.mask << -swizzle.shift & mask(width)
        return changes >> -swizzle.shift, changes
    changes = swizzle.mask >> swizzle.shift & mask(width)
    reads = changes << swizzle.shift
    return reads & mask(width) | (1 << width - 1 if reads >> width else 0), changes


class _Simplifier:
    """What is known of the values met so far, and the arithmetic that was met or made, to be used again."""

    def __init__(self) -> None:
        self.bits = KnownBits()
        self.firsts: dict[Any, Any] = {}
        self.sums: dict[Any, tuple[tuple[Term, ...], int]] = {}
        self.made: dict[tuple[Any, ...], Any] = {}
        self.swizzled: dict[Any, tuple[Swizzle, Any]] = {}

    def replacement(self, op: Any) -> Any:
        """The value that the result of a swizzle is replaced by."""
        self.builder = Builder(op)
        self.swizzle = _swizzle_of(op)
        self.width = width_of(op.operands[0])
        self.reads, self.changes = fields(self.swizzle, self.width)
        value = self._first(op.operands[0])
        key = (op.name, self.swizzle, value)
        found = self._found(op, *key)
        if found is not None:
            return found
        layers: list[tuple[int, Sequence[Term], int]] = []
        while (result := self._known(value)) is None:
            peeled = self._peeled(value)
            if peeled is None:
                result = self._computed(value)
                break
            value = peeled[0]
            layers.append(peeled[1:])
        for flips, passed, offset in reversed(layers):
            if flips:
                result = self._binary("arith.xori", result, flips)
            result = self._total(passed, offset, result)
        return self._remembered(result, op, *key)

    def _known(self, value: Any) -> Any:
        """The value swizzled, where that takes no more than an exclusive or with a constant."""
        bits = self.bits.of(value)
        if not self.reads & ~(bits.zeros | bits.ones):
            flips = self._of_constant(bits.ones) ^ bits.ones
            if bits.value is not None:
                return self._constant(bits.value ^ flips)
            return self._binary("arith.xori", value, flips) if flips else value
        swizzle, source = self.swizzled.get(value, (None, None))
        # Swizzled twice is as before, unless the bits that are changed show in those that are read.
        return source if swizzle == self.swizzle and not self.reads & self.changes else None

    def _peeled(self, value: Any) -> tuple[Any, int, Sequence[Term], int] | None:
        """What is left to swizzle, and what the result needs: bits to flip, terms and a number to add."""
        terms, constant = self._sum_of(value)
        kept, inside, passed, offset = self._split(terms, constant)
        if inside and kept and not self._bits_of(kept).most & inside:
            return self._total(kept), self._of_constant(inside), passed, offset
        if passed or offset:
            return self._total(kept, inside), 0, passed, offset
        op = maker(value)
        if op is not None and op.name == "arith.xori":
            flips = self.bits.of(op.operands[1]).value
            return None if flips is None else (op.operands[0], self._of_constant(flips), (), 0)
        return None

    def _split(self, terms: Sequence[Term], constant: int) -> tuple[list[Term], int, list[Term], int]:
        """What of a sum must go through the swizzle, and what may be added after it: terms and a number of each."""
        touched = self.reads | self.changes
        kept, inside, passed, offset = list(terms), constant, [], 0
        for part in (constant & ~touched, constant & ~mask(touched.bit_length())):
            rest = constant ^ part
            # A negative number has all high bits: split in two it would be one operation more, and no offset.
            worth = part and (not rest or wrap(constant, self.width) > 0)
            if worth and self._passes(self._bits_of((), part), self._bits_of(terms, rest)):
                inside, offset = rest, part
                break
        for term in terms:
            rest_terms = list(kept)
            rest_terms.remove(term)
            if self._passes(self._bits_of([term]), self._bits_of(rest_terms, inside)):
                kept = rest_terms
                passed.append(term)
        return kept, inside, passed, offset

    def _passes(self, part: Bits, rest: Bits) -> bool:
        """Whether swizzle(rest + part) is swizzle(rest) + part: no bit of the swizzle is in part, or carried into."""
        return not (self.reads | self.changes) & (part.most | carries(rest, part))

    def _computed(self, value: Any) -> Any:
        """The swizzle as arithmetic. Bits are masked where they are lowest: small constants cost no register."""
        shift, most = self.swizzle.shift, self.bits.of(value).most
        if shift < 0:
            wanted, shifted = self.changes >> -shift, most << -shift & mask(self.width)
            low = self._binary("arith.andi", value, wanted & most) if shifted & ~self.changes else value
            picked = self._binary("arith.shli", low, -shift)
        else:
            # A signed shift brings in what is above the highest bit, where all bits are as the sign is.
            name = "arith.shrsi" if self.swizzle.mask >> self.width else "arith.shrui"
            picked = self._binary(name, value, min(shift, self.width - 1))
            shifted = self.bits.of(picked).most
            if shifted & ~self.changes:
                picked = self._binary("arith.andi", picked, shifted & self.changes)
        result = self._binary("arith.xori", value, picked)
        self.swizzled[result] = (self.swizzle, value)
        return result

    def _of_constant(self, value: int) -> int:
        return int(self.swizzle(wrap(value, self.width))) & mask(self.width)

    # Sums.

    def _sum_of(self, value: Any) -> tuple[tuple[Term, ...], int]:
        """A value as a sum of terms and a constant, modulo 2**width."""
        for each in in_order(value, self.sums, lambda v: [] if self._number(v) is not None else self._summands(v)):
            self.sums[each] = self._added_up(each)
        return self.sums[value]

    def _summands(self, value: Any) -> list[Any]:
        """The operands of which a value is the sum, or the one that it is a multiple of."""
        op = maker(value)
        if op is None or op.name not in SUMS and op.name not in MULTIPLES:
            return []
        a, b = map(self._first, op.operands)
        if op.name in MULTIPLES:
            return [a] if self._number(b) is not None else []
        disjoint = op.name == "arith.addi" or not self.bits.of(a).most & self.bits.of(b).most
        return [a, b] if disjoint else []

    def _added_up(self, value: Any) -> tuple[tuple[Term, ...], int]:
        itself, number, summands = ((value, 1),), self._number(value), self._summands(value)
        if number is not None:
            return (), number
        if not summands:
            return itself, 0
        op, limit = maker(value), mask(self.width)
        parts = [self.sums[v] for v in summands]
        if op.name in SUMS:
            terms, constant = parts[0][0] + parts[1][0], parts[0][1] + parts[1][1] & limit
            return (terms, constant) if len(terms) <= MOST_TERMS else (itself, 0)
        factor = MULTIPLES[op.name](self._number(op.operands[1]) or 0)
        terms, constant = parts[0]
        if not constant:
            return itself, 0
        return tuple((v, f * factor & limit) for v, f in terms), constant * factor & limit

    def _bits_of(self, terms: Sequence[Term], constant: int = 0) -> Bits:
        """What is known of a sum."""
        total = Bits.constant(self.width, constant)
        for value, factor in terms:
            product = multiplied(self.width, self.bits.of(value), Bits.constant(self.width, factor))
            total = added(self.width, total, product)
        return total

    def _total(self, terms: Sequence[Term], constant: int = 0, start: Any = None) -> Any:
        """The sum as a value, added to that of `start`."""
        total = start
        for value, factor in terms:
            term = value if factor == 1 else self._binary("arith.muli", value, factor)
            total = term if total is None else self._binary("arith.addi", total, term)
        if total is None:
            return self._constant(constant)
        return self._binary("arith.addi", total, constant) if constant else total

    def _number(self, value: Any) -> int | None:
        return self.bits.of(value).value

    # Operations: each is made once in a block or around it, and of equal ones the first is used.

    def _first(self, value: Any) -> Any:
        """The first of the values met that are computed alike."""
        for each in in_order(value, self.firsts, operands_of):
            self.firsts[each] = self._first_of(each)
        return self.firsts[value]

    def _first_of(self, value: Any) -> Any:
        op = maker(value)
        if op is None or op.name not in RULES and op.name not in SOURCES or not width_of(value):
            return value
        number = self._number(value)
        if number is not None:
            key: tuple[Any, ...] = (number, str(value.type))
        elif op.name in SOURCES:
            key = (op.name, attributes_of(op))
        else:
            if any(str(op.attributes[name]) != NO_PROMISE for name in op.attributes):
                return value  # it has no value where its promise is broken, and others are not to lose theirs
            numbers = [self._number(v) for v in op.operands]
            parts = [self.firsts[v] if n is None else n for v, n in zip(op.operands, numbers, strict=True)]
            if op.name in NEUTRAL and numbers[1] == NEUTRAL[op.name]:
                return parts[0]
            key = (op.name, *parts, str(value.type))
        found = self._found(op, *key)
        return self._remembered(value, op, *key) if found is None else found

    def _binary(self, name: str, a: Any, b: Any) -> Any:
        """An operation on a value and a value or number."""
        key, place = (name, a, b, f"i{self.width}"), self.builder.before
        found = self._found(place, *key)
        if found is None:
            operand = self._constant(b) if isinstance(b, int) else b
            found = self._remembered(self.builder.op(name, [a, operand], a.type), place, *key)
        return found

    def _constant(self, value: int) -> Any:
        kind, place = f"i{self.width}", self.builder.before
        found = self._found(place, value, kind)
        if found is None:
            made = self.builder.constant(wrap(value, self.width), kind)
            found = self._remembered(made, place, value, kind)
        return found

    def _remembered(self, value: Any, op: Any, *key: Any) -> Any:
        self.made[op.block, *key] = value
        return value

    def _found(self, op: Any, *key: Any) -> Any:
        """What was met or made in the block of an operation or around it. There it comes before the swizzle at work."""
        while op.parent is not None:
            found = self.made.get((op.block, *key))
            if found is not None:
                return found
            op = op.parent
        return None


SUMS = ("arith.addi", "arith.ori", "arith.xori")
"""Sums, the latter two where no bit may be 1 in both operands."""
MULTIPLES: dict[str, Callable[[int], int]] = {"arith.muli": lambda n: n, "arith.shli": lambda n: 1 << min(n, WIDEST)}
"""The factor that an operation with a constant multiplies by."""
