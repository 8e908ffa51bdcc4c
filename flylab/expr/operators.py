"""Python's operators, installed on a class of values from two functions: one for arithmetic, one for comparison."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from flylab.errors import TraceError

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
POWER = {"**": "pow"}
COMPARISON = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def install(
    cls: type,
    beside: tuple[type, ...],
    combine: Callable[[str, Any, Any], Any],
    compare: Callable[[str, Any, Any], Any],
) -> None:
    """Give `cls` each operator; with an operand that is not one of `beside`, Python asks the other operand.

    Raw MLIR values and numpy's numbers count as the numbers and vectors that they are.
    """

    def method(symbol: str, rule: Callable[[str, Any, Any], Any], reflected: bool) -> Callable[[Any, Any], Any]:
        def apply(self: Any, other: Any) -> Any:
            if not isinstance(other, beside):
                given, other = other, _typed(other)
                if not isinstance(other, beside):
                    if other is given:
                        return NotImplemented
                    whole = getattr(operator, f"__{(ARITHMETIC | COMPARISON)[symbol]}__")
                    return whole(other, self) if reflected else whole(self, other)
            return rule(symbol, other, self) if reflected else rule(symbol, self, other)

        return apply

    # numpy's numbers and arrays leave an operator with one of ours to us.
    cls.__array_ufunc__ = None  # type: ignore[attr-defined]
    for symbol, name in ARITHMETIC.items():
        setattr(cls, f"__{name}__", method(symbol, combine, False))
        setattr(cls, f"__r{name}__", method(symbol, combine, True))
    for symbol, name in COMPARISON.items():
        setattr(cls, f"__{name}__", method(symbol, compare, False))
    for name in ("__pow__", "__rpow__"):
        setattr(cls, name, _refusal("**", "multiply: x * x"))


def _typed(value: Any) -> Any:
    from flylab.expr.raw import typed

    return typed(value)


def refuse(cls: type, hint: str, but: tuple[str, ...] = ()) -> None:
    """Make the operators of `cls` errors with this hint, but those named, and `==` and `!=`, which compare identity."""
    cls.__array_ufunc__ = None  # type: ignore[attr-defined]
    for symbol, name in (ARITHMETIC | POWER).items():
        for full in (f"__{name}__", f"__r{name}__"):
            if full not in but:
                setattr(cls, full, _refusal(symbol, hint))
    for symbol, name in (("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")):
        setattr(cls, f"__{name}__", _refusal(symbol, hint))
    for symbol, name in (("-", "neg"), ("abs", "abs"), ("~", "invert")):
        setattr(cls, f"__{name}__", _refusal(symbol, hint))


def _refusal(symbol: str, hint: str) -> Callable[..., Any]:
    def refused(self: Any, *other: Any) -> Any:
        raise TraceError(f"{self!r} has no operator '{symbol}'", hint=hint)

    return refused
