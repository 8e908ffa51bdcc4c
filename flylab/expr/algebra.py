"""The layout algebra in a trace: one function serves plain Python values and what holds runtime numbers.

With arguments that are known, a function of `flylab.layout` is computed at once. Where one holds a runtime number, the
function is computed on what is known of it (`RuntimeInt`), which gives the type of the result; the rest is left to the
device as one operation of the Fly dialect, `fly.zipped_divide` for `zipped_divide`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from math import lcm
from typing import Any

from flylab.dialect.types import INT_TUPLE, Algebra
from flylab.dtypes import BOOL
from flylab.errors import NotSupportedError, TraceError, Undecided
from flylab.expr.emit import fly
from flylab.expr.layout_value import LayoutValue, leaves_of, number, of_one_width, term_known
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, interval, is_mlir_value
from flylab.expr.promotion import plain
from flylab.expr.state import active
from flylab.expr.tensor import Tensor
from flylab.layout import ComposedLayout, Layout
from flylab.layout.runtime_int import MOST, RuntimeInt, is_number
from flylab.layout.runtime_leaves import map_runtime, runtime_leaves
from flylab.layout.terms import NAME, Term


def is_runtime(value: Any) -> bool:
    """Whether a number, a layout, or a leaf of a tuple is known only on the device."""
    if isinstance(value, (tuple, list)):
        return any(map(is_runtime, value))
    if isinstance(value, Numeric):
        return not value.is_static
    return isinstance(value, LayoutValue) or is_mlir_value(value)


def facts_of(number: Numeric) -> RuntimeInt:
    """What is known of a runtime integer."""
    low, high = interval(number)
    bits = 32 if number.dtype.bits <= 32 else 64
    return RuntimeInt(low, min(high, MOST[64]), number.divisor, bits, term_known(number))


def _name(number: Numeric) -> None:
    """Note which number it is: the user's name for it, which in one function stands for one value."""
    function = active.function
    if function is None or (number.value, number.dtype) in function.terms:
        return
    name = name_of(number, "").strip("'")
    term = Term(1, (function.reserved(name),)) if re.fullmatch(NAME, name) else None
    function.terms[number.value, number.dtype] = term


def traced(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `flylab.layout` that also takes runtime numbers, and tensors, which stand for their layout."""
    signature = inspect.signature(rule)

    @functools.wraps(rule)
    def function(*args: Any, **named: Any) -> Any:
        if named:
            args = positional(signature, args, named)
        args = tuple([known(arg) for arg in args])
        if not any(map(is_runtime, args)):
            return rule(*args)
        return apply(rule, args)

    return function


def positional(signature: inspect.Signature, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, without the defaults at the end."""
    bound = signature.bind(*args, **named)
    given = [list(signature.parameters).index(name) for name in bound.arguments]
    bound.apply_defaults()
    return bound.args[:max(given) + 1] if max(given) < len(signature.parameters) - 1 else bound.args


def known(arg: Any) -> Any:
    """An argument with its static fx numbers as Python's, tensors as their layouts, and lists as tuples."""
    if isinstance(arg, (tuple, list)):
        return tuple([known(each) for each in arg])
    if isinstance(arg, Numeric):
        if arg.dtype.is_float or arg.dtype.kind == BOOL or arg.dtype.bits > 64:
            raise TraceError(f"{name_of(arg, 'a number')} in a layout is a {arg.dtype}, and layouts hold integers of "
                             "at most 64 bits", hint="convert it: fx.Int32(x)")
        if arg.is_static:
            return arg.value
        _name(arg)
        return arg
    if is_mlir_value(arg):
        return CLASSES["Int64" if str(arg.type) == "i64" else "Int32"](arg)
    return arg.layout if isinstance(arg, Tensor) else plain(arg)


def apply(rule: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """`rule` of arguments that hold runtime numbers: its result, of which runtime parts are values of the device."""
    call = Arguments(args)
    return call.returned(rule.__name__, decided(rule, *call.facts))


def decided(rule: Callable[..., Any], *facts: Any) -> Any:
    """`rule` of facts; a decision that they do not allow is refused with the call that needs it."""
    try:
        return rule(*facts)
    except Undecided as error:
        shown = ", ".join(str(Algebra.of(each)) for each in facts)
        raise Undecided(f"{rule.__name__}({shown}): {error.message}", hint=error.hint) from None


class Arguments:
    """The arguments of one call: the facts of each, and their values as operands."""

    def __init__(self, args: tuple[Any, ...]):
        self.args = args
        self.given: dict[int, Any] = {}
        """The number, or layout, of which these are the facts."""
        self.facts = [self._known(arg) for arg in args]

    def _known(self, arg: Any) -> Any:
        if isinstance(arg, tuple):
            return tuple([self._known(each) for each in arg])
        if isinstance(arg, LayoutValue):
            facts = arg.form.value()
        elif isinstance(arg, Numeric):
            # A number given twice is two leaves, as in the types from which the lowering decides.
            facts = facts_of(arg)
        else:
            return arg
        self.given[id(facts)] = arg
        return facts

    def operands(self) -> list[Any]:
        """An operand for each argument: a value of the algebra, or a known one as `fly.static`."""
        return [operand(arg, facts) for arg, facts in zip(self.args, self.facts, strict=True)]

    def returned(self, name: str, result: Any) -> Any:
        """The result with values for its runtime leaves: what was given as it is, else an operation's."""
        if not runtime_leaves(result):
            return result
        try:
            return self._put_together(result)
        except KeyError:
            return emitted(name, self.operands(), result)

    def _put_together(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple([self._put_together(each) for each in result])
        if isinstance(result, RuntimeInt):
            return self.given[id(result.origin)]
        return self.given[id(result)] if runtime_leaves(result) else result


def operand(arg: Any, facts: Any) -> Any:
    """One argument as an MLIR value of its type."""
    if isinstance(arg, LayoutValue):
        return arg.value
    kind = Algebra.of(facts)
    if not runtime_leaves(facts):
        return fly("static", [], [kind])
    values = of_one_width(_numbers(arg))
    return fly("make_int_tuple" if kind.NAME == INT_TUPLE else "make_tile", values, [kind])


def map_numbers(function: Callable[[Numeric], Any], value: Any) -> Any:
    """A number or tuple with each fx number replaced by `function` of it."""
    if isinstance(value, tuple):
        return tuple([map_numbers(function, each) for each in value])
    return function(value) if isinstance(value, Numeric) else value


def _numbers(arg: Any) -> list[Any]:
    if isinstance(arg, tuple):
        return [value for each in arg for value in _numbers(each)]
    if isinstance(arg, LayoutValue):
        return arg.numbers()
    return [arg] if isinstance(arg, Numeric) else []


def emitted(name: str, operands: list[Any], result: Any) -> Any:
    """The operation `name`, and what it gives as a number, a tuple of numbers or a LayoutValue."""
    if isinstance(result, (Layout, ComposedLayout)):
        return LayoutValue(fly(name, operands, [Algebra.of(result)]))
    if not all(map(_is_plain, result if isinstance(result, tuple) else (result,))):
        raise NotSupportedError(f"{name} of runtime numbers gives {result}, which is no single value",
                                hint="call it with numbers that are known, or for one part at a time")
    result = map_runtime(_signed, result)
    if isinstance(result, RuntimeInt):
        return number(name, operands, result)
    values = iter(leaves_of(fly(name, operands, [Algebra.of(result)]), result))
    return map_runtime(lambda leaf: next(values), result)


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else value is None or is_number(value)


def _signed(leaf: RuntimeInt) -> RuntimeInt:
    """A leaf as an integer of the language holds it, which is signed."""
    return leaf if leaf.high <= MOST[32] else RuntimeInt(leaf.low, leaf.high, leaf.divisor, 64, leaf.term)


def assume(value: Any, *, div: int = 1, low: int | None = None, high: int | None = None) -> Any:
    """The integer `value`, of which the program knows more: a divisor, the least, the greatest value (inclusive).

    Layouts with runtime extents need it where a decision hangs on them: `fx.assume(n, div=64)` can be tiled by 64
    without a rest. It is not checked on the device; of a number that is known, a `TraceError` says that it does not
    hold.

    >>> assume(64, div=8, low=1)
    64
    """
    given = known(value)
    for what, fact in (("div", div), ("low", low), ("high", high)):
        if fact is not None and type(fact) is not int or what == "div" and div < 1:
            raise TraceError(f"assume({what}={fact!r})", hint="give ints known while tracing; a divisor is 1 or more")
    if div == 1 and low is None and high is None:
        raise TraceError("assume says nothing of its number", hint="say what is known: fx.assume(n, div=8, low=1)")
    if isinstance(given, int):
        if given % div or (low is not None and given < low) or (high is not None and given > high):
            raise TraceError(f"assume({given}, div={div}, low={low}, high={high}) does not hold",
                             hint="give a divisor and bounds that the number has")
        return value
    if not isinstance(given, Numeric):
        raise TraceError(f"assume of {value!r}, which is no integer", hint="assume what is known of an fx.Int32")
    before = facts_of(given)
    facts = RuntimeInt(before.low if low is None else max(low, before.low),
                       before.high if high is None else min(high, before.high), lcm(div, before.divisor), before.bits)
    return given.with_facts((facts.low, facts.high), facts.divisor)
