"""Integers of the device in the layout algebra: a RuntimeInt that knows how its value is computed.

Nothing is emitted before a value is asked for, so what the algebra computes in vain costs nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from flylab.layout.runtime_int import MOST, RuntimeInt, width
from flylab.passes.rewriter import Builder

SIMPLE = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "max": "arith.maxui", "min": "arith.minui"}
EQUAL, UNSIGNED_GREATER, SIGNED_LESS = 0, 8, 2  # predicates of arith.cmpi


class DeviceInt(RuntimeInt):
    """Facts of an integer, and its value: an MLIR value, or an operation on two numbers, emitted when it is asked for.

    The bits of an operation are those that its facts need, so it is exact as far as 64 bits go.
    """

    __slots__ = ("builder", "source", "_value", "_swizzled")

    def __init__(self, facts: RuntimeInt, builder: Builder, source: Any):
        super().__init__(facts.low, facts.high, facts.divisor, facts.bits, facts.term)
        self.builder = builder
        self.source = source
        self._value: Any = None
        self._swizzled: dict[Any, Any] = {}

    def made(self, operation: str, a: Any, b: Any, facts: RuntimeInt) -> RuntimeInt:
        """The operation on two numbers, not emitted yet."""
        return DeviceInt(facts, self.builder, (operation, a, b))

    def read_as(self, facts: RuntimeInt) -> RuntimeInt:
        """The same value with other facts."""
        return DeviceInt(facts, self.builder, self)

    def swizzled(self, swizzle: Any) -> Any:
        """The number through a swizzle. What is known of a sum and passes through is added after it, so that the
        elements of a tile have few swizzles, and constants beside them."""
        number, known = self.apart()
        passing = known // swizzle.reach * swizzle.reach
        key = (swizzle, known - passing)
        found = number._swizzled.get(key)
        if found is None:
            inside = number + key[1]
            found = swizzle(inside) if type(inside) is int else RuntimeInt.swizzled(inside, swizzle)
            number._swizzled[key] = found
        return found + passing

    def apart(self) -> tuple[DeviceInt, int]:
        """A number of the device and a known one, the sum of which this is."""
        number, known = self, 0
        while True:
            if isinstance(number.source, DeviceInt) and number.source.bits == number.bits:
                number = number.source
                continue
            operation, *terms = number.source if isinstance(number.source, tuple) else ("",)
            if operation != "add" or type(terms[0]) is not int and type(terms[1]) is not int:
                return number, known
            added, number = sorted(terms, key=lambda term: type(term) is not int)
            known += added

    @property
    def is_swizzle(self) -> bool:
        """Whether it is what a swizzle gives."""
        return isinstance(self.source, tuple) and self.source[0] == "swizzle"

    def multiple(self, value: Any, of: Any) -> bool:
        """Whether `value` is a product in which all factors of `of` occur."""
        (number, values), (other, needed) = _factors(value), _factors(of)
        return other != 0 and number % other == 0 and needed <= values

    def value(self, bits: int | None = None) -> Any:
        """The MLIR value, with its own or the given number of bits."""
        if self._value is None:
            self._value = self._computed()
        return converted(self.builder, self._value, self.low, bits or self.bits)

    def _computed(self) -> Any:
        if isinstance(self.source, (DeviceInt, int)):
            return number_value(self.builder, self.source, self.bits)
        if not isinstance(self.source, tuple):
            return converted(self.builder, self.source, self.low, self.bits)
        operation, a, b = self.source
        if operation == "swizzle":
            value = a.value(self.bits)
            return self.builder.fly("int_swizzle", [value], [value.type], swizzle=b)
        bits = max(self.bits, width(a), width(b))
        left, right = number_value(self.builder, a, bits), number_value(self.builder, b, bits)
        if operation in SIMPLE:
            return self.builder.op(SIMPLE[operation], [left, right], f"i{bits}")
        if operation == "abs":
            negative = self.builder.op("arith.subi", [right, left], f"i{bits}")
            return self.builder.op("arith.maxsi", [left, negative], f"i{bits}")
        if operation == "unless":
            zero = self.builder.constant(0, f"i{bits}")
            empty = _compare(self.builder, EQUAL, right, zero)
            return self.builder.op("arith.select", [empty, zero, left], f"i{bits}")
        if operation == "above":
            greater = _compare(self.builder, UNSIGNED_GREATER, left, right)
            return self.builder.op("arith.select", [greater, left, self.builder.constant(MOST[bits], f"i{bits}")],
                                   f"i{bits}")
        return self._division(operation, a, b, left, right, f"i{bits}")

    def _division(self, operation: str, a: Any, b: Any, left: Any, right: Any, kind: str) -> Any:
        """`div` or `rem`, rounded down, by a positive number. A runtime divisor of 0 counts as 1: LLVM takes a
        division as proof that the divisor is not 0, and would drop a program's own test of it."""
        builder = self.builder
        if isinstance(b, RuntimeInt) and b.low < 1:
            right = builder.op("arith.maxui", [right, builder.constant(1, kind)], kind)
        if (a if type(a) is int else a.low) >= 0:
            return builder.op("arith.divui" if operation == "div" else "arith.remui", [left, right], kind)
        if type(b) is int and b & (b - 1) == 0:
            if operation == "rem":
                return builder.op("arith.andi", [left, builder.constant(b - 1, kind)], kind)
            return builder.op("arith.shrsi", [left, builder.constant(b.bit_length() - 1, kind)], kind)
        rest = builder.op("arith.remsi", [left, right], kind)
        below = _compare(builder, SIGNED_LESS, rest, builder.constant(0, kind))
        if operation == "rem":
            return builder.op("arith.select", [below, builder.op("arith.addi", [rest, right], kind), rest], kind)
        quotient = builder.op("arith.divsi", [left, right], kind)
        lower = builder.op("arith.subi", [quotient, builder.constant(1, kind)], kind)
        return builder.op("arith.select", [below, lower, quotient], kind)


def _compare(builder: Builder, predicate: int, left: Any, right: Any) -> Any:
    from mlir import ir

    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return builder.op("arith.cmpi", [left, right], "i1", predicate=attribute)


def number_value(builder: Builder, number: Any, bits: int) -> Any:
    """A number of the algebra, known or of the device, as an MLIR value of so many bits."""
    return number.value(bits) if isinstance(number, DeviceInt) else builder.constant(number, f"i{bits}")


def converted(builder: Builder, value: Any, low: int, bits: int) -> Any:
    """A value in so many bits: extended as unsigned where it cannot be negative."""
    kind, found = f"i{bits}", int(str(value.type)[1:])
    if found == bits:
        return value
    if found > bits:
        return builder.op("arith.trunci", [value], kind)
    return builder.op("arith.extui" if low >= 0 else "arith.extsi", [value], kind)


def _factors(number: Any) -> tuple[int, Counter[Any]]:
    """A known factor of a number, and the device's values whose product with it the number is."""
    if isinstance(number, int):
        return number, Counter()
    if isinstance(number, DeviceInt):
        source = number.source
        if isinstance(source, tuple) and source[0] != "mul":
            return 1, Counter({number: 1})
        return _product(*map(_factors, source[1:])) if isinstance(source, tuple) else _factors(source)
    # A product of the program's own may have wrapped.
    return 1, Counter({number: 1})


def _product(a: tuple[int, Counter[Any]], b: tuple[int, Counter[Any]]) -> tuple[int, Counter[Any]]:
    return a[0] * b[0], a[1] + b[1]
