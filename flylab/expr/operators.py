"""Python's operators, installed on a class of values from two functions: one for arithmetic, one for comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.expr.promotion import plain

ARITHMETIC = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "lshift",
    ">>": "rshift",
}
COMPARISON = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def install(
    cls: type,
    beside: tuple[type, ...],
    combine: Callable[[str, Any, Any], Any],
    compare: Callable[[str, Any, Any], Any],
) -> None:
    """Give `cls` each operator; with an operand that is not one of `beside`, Python asks the other operand."""

    def method(symbol: str, rule: Callable[[str, Any, Any], Any], reflected: bool) -> Callable[[Any, Any], Any]:
        def apply(self: Any, other: Any) -> Any:
            other = plain(other)
            if not isinstance(other, beside):
                return NotImplemented
            return rule(symbol, other, self) if reflected else rule(symbol, self, other)

        return apply

    # numpy's numbers and arrays leave an operator with one of ours to us.
    cls.__array_ufunc__ = None  # type: ignore[attr-defined]
    for symbol, name in ARITHMETIC.items():
        setattr(cls, f"__{name}__", method(symbol, combine, False))
        setattr(cls, f"__r{name}__", method(symbol, combine, True))
    for symbol, name in COMPARISON.items():
        setattr(cls, f"__{name}__", method(symbol, compare, False))
