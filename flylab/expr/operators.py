"""Python's operators, installed on a class of values from two functions: one for arithmetic, one for comparison.

What they do not take is an error of the family, where Python would say that it supports no such operand.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable
from typing import Any

from flylab.errors import TraceError
from flylab.expr.location import name_of
from flylab.expr.power import power
from flylab.shown import a_kind

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
SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
# Python's functions that round a number to an integer, by what they ask a number for; the same of fx.math.
ROUNDING = {"round": "roundeven", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
# Packages whose types know nothing of the language's numbers: they are not asked.
STRANGE = frozenset({"builtins", "numpy", "ml_dtypes", "torch", "decimal", "fractions"})
MATMUL = "multiply numbers with *, vectors too, element by element; (a * b).reduce(fx.ReductionOp.ADD) is a dot product"


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
        name = (ARITHMETIC | POWER | COMPARISON)[symbol]
        asked = "" if reflected else f"__{COMPARISON.get(SWAPPED.get(symbol, symbol), 'r' + name)}__"

        def apply(self: Any, other: Any) -> Any:
            if not isinstance(other, beside):
                given, other = other, _typed(other)
                if not isinstance(other, beside):
                    if other is given:
                        return _left_to(self, other, symbol, asked)
                    whole = getattr(operator, f"__{name}__")
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
    forward, backward = method("**", power, False), method("**", power, True)
    made: dict[str, Callable[..., Any]] = {
        "pow": lambda self, other, modulus=None: (
            forward(self, other) if modulus is None else forward(self, other) % modulus),
        "rpow": backward,
        "divmod": lambda self, other: (self // other, self % other),
        "rdivmod": lambda self, other: (other // self, other % self),
    }
    for name, function in made.items():
        setattr(cls, f"__{name}__", function)
    for name in ("__matmul__", "__rmatmul__"):
        setattr(cls, name, _refusal("@", MATMUL))
    for name, ours in ROUNDING.items():
        setattr(cls, f"__{name}__", _rounding(name, ours))


def _left_to(self: Any, other: Any, symbol: str, asked: str) -> Any:
    """NotImplemented where the other operand answers, or Python has a meaning for the two; else raises `TraceError`.

    `asked` is what Python would ask the other operand for, if anything.
    """
    kind, single = type(other), not hasattr(self, "__len__")
    answer = getattr(kind, asked, None) if asked else None
    if answer not in (None, getattr(object, asked, None)) and kind.__module__.partition(".")[0] not in STRANGE:
        return NotImplemented
    sequence, array = isinstance(other, (list, tuple)), hasattr(other, "__array__")
    if symbol in ("==", "!=") and not array and not isinstance(other, numbers.Number) and (single or not sequence):
        return NotImplemented  # they are not equal
    if symbol == "*" and single and self.is_static and isinstance(other, (list, tuple, str, bytes)):
        return NotImplemented  # which repeats it
    hint = "give a number or a vector"
    if sequence or array:
        hint = "make a vector of its numbers: fx.Vector.from_elements([x, y], fx.Float32)"
        hint += "; or pass it to the launch, and load from it" if array else ""
    elif isinstance(other, numbers.Number):
        hint = "give a number of Python's or of the language: float(x) of one that Python knows"
    raise TraceError(
        f"{self!r} has no '{symbol}' with {name_of(other, 'a value')}, {a_kind(other)}: no number and no vector",
        hint=hint,
    )


def _rounding(name: str, ours: str) -> Callable[..., Any]:
    """Python's `round` and its kin: of a known number, Python's integer; of an integer of the device, itself."""

    def rounded(self: Any, *digits: Any) -> Any:
        if getattr(self, "is_static", False):
            return getattr(self.value, f"__{name}__")(*digits)
        if not digits and not getattr(self.dtype, "dtype", self.dtype).is_float:
            return self
        raise TraceError(
            f"Python's {name}() of {name_of(self, repr(self))}, which only the device knows",
            hint=f"fx.math.{ours}(x) is a float, and .to(fx.Int32) of it an integer",
        )

    return rounded


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
