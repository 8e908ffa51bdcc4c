"""Arithmetic on int tuples, leaf by leaf, with the language's own operators: `int_tuple_add((i, 1), (j, 2))`.

A runtime leaf follows the rules of its number format, as `a + b` does; `flylab.layout` has the same names for ints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

from flylab import layout as rules
from flylab.expr.algebra import is_runtime, known
from flylab.layout.int_tuple import leaves, map_leaves


def _leafwise(rule: Callable[..., Any], symbol: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @wraps(rule)
    def function(a: Any, b: Any) -> Any:
        a, b = known(a), known(b)
        return map_leaves(symbol, a, b) if is_runtime(a) or is_runtime(b) else rule(a, b)

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
        if symbol is operator.eq and not rules.congruent(a, b):
            return False
        return reduce(operator.and_, leaves(map_leaves(symbol, a, b)))

    return function


elem_less = _everywhere(rules.elem_less, operator.lt)
equal = _everywhere(rules.equal, operator.eq)
