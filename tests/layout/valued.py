"""Runtime integers that have a value after all: what a kernel would compute, without one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from flylab.layout.runtime_int import MOST, RuntimeInt
from flylab.layout.runtime_leaves import map_runtime

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "max": max, "min": min,
    "div": lambda a, b: a // max(b, 1), "rem": lambda a, b: a % max(b, 1), "abs": lambda a, _: abs(a),
    "unless": lambda a, size: a if size else 0,
}  # fmt: skip


class Valued(RuntimeInt):
    """Facts, and a number that they allow; what is computed from it must be allowed by the facts of the result."""

    def __init__(self, facts: RuntimeInt, number: int):
        super().__init__(facts.low, facts.high, facts.divisor, facts.bits, facts.term)
        assert facts.low <= number <= facts.high and number % facts.divisor == 0, (facts, number)
        self.number = number

    def made(self, operation: str, a: Any, b: Any, facts: RuntimeInt) -> RuntimeInt:
        left = number_of(a)
        if operation == "swizzle":
            return Valued(facts, b(left))
        if operation == "above":
            return Valued(facts, left if left > number_of(b) else MOST[facts.bits])
        return Valued(facts, OPERATIONS[operation](left, number_of(b)))

    def read_as(self, facts: RuntimeInt) -> RuntimeInt:
        return Valued(facts, self.number)


def number_of(value: Any) -> int:
    """The number of a Valued, or an int."""
    return value.number if isinstance(value, Valued) else value  # type: ignore[no-any-return]


def revealed(value: Any) -> Any:
    """A value of the algebra with numbers in place of its Valued leaves."""
    return map_runtime(number_of, value)
