"""Arithmetic on int tuples, leaf by leaf, with the language's own operators: `int_tuple_add((i, 1), (j, 2))`.

A runtime leaf follows the rules of its number format, as `a + b` does; `flylab.layout` has the same names for ints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial, reduce, wraps
from typing import Any

from flylab import layout as rules
from flylab.errors import LayoutError, TraceError
from flylab.expr.algebra import is_runtime, known
from flylab.expr.numeric import CLASSES, Numeric, compare
from flylab.layout.int_tuple import leaves, map_leaves, text

WRAPS = "Runtime leaves follow the rules of their number formats, as `a + b` does: they wrap."


def _leafwise(rule: Callable[..., Any], symbol: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @wraps(rule)
    def function(a: Any, b: Any) -> Any:
        a, b = known(a), known(b)
        if not is_runtime(a) and not is_runtime(b):
            return rule(a, b)
        if symbol in (operator.floordiv, operator.mod) and 0 in [leaf for leaf in leaves(b) if type(leaf) is int]:
            raise LayoutError(f"{rule.__name__} divides by {text(b)}, which holds a 0", hint="divide by other numbers")
        return map_leaves(symbol, a, b)

    function.__doc__ = f"{rule.__doc__}\n    {WRAPS}"
    return function


int_tuple_add = _leafwise(rules.int_tuple_add, operator.add)
int_tuple_sub = _leafwise(rules.int_tuple_sub, operator.sub)
int_tuple_mul = _leafwise(rules.int_tuple_mul, operator.mul)
int_tuple_div = _leafwise(rules.int_tuple_div, operator.floordiv)
int_tuple_mod = _leafwise(rules.int_tuple_mod, operator.mod)


def _everywhere(rule: Callable[..., Any], symbol: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @wraps(rule)
    def function(a: Any, b: Any) -> Any:
        a, b = known(a), known(b)
        if not is_runtime(a) and not is_runtime(b):
            return rule(a, b)
        if rule is rules.equal and not rules.congruent(a, b):
            return False
        found = list(leaves(map_leaves(symbol, a, b)))
        if False in [each for each in found if isinstance(each, bool)]:
            return False
        return reduce(operator.and_, found)

    return function


def _by_value(symbol: str, a: Any, b: Any) -> Any:
    """A comparison by value: a negative number is less than an unsigned one, and not equal to it."""
    signs = {number.dtype.signed for number in (a, b) if isinstance(number, Numeric)} | {
        True for number in (a, b) if type(number) is int and number < 0}
    if len(signs) == 1:
        return a < b if symbol == "<" else a == b
    if any([number.dtype.bits > 32 for number in (a, b) if isinstance(number, Numeric) and not number.dtype.signed]):
        raise TraceError(f"{a!r} {symbol} {b!r}: no format holds the values of both",
                         hint="convert one of them: .to(fx.Int64)")
    return compare(symbol, CLASSES["Int64"](a), CLASSES["Int64"](b))


elem_less = _everywhere(rules.elem_less, partial(_by_value, "<"))
equal = _everywhere(rules.equal, partial(_by_value, "=="))
