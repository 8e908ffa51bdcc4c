"""The layout algebra in a trace: one function serves plain Python values and what holds runtime numbers.

With arguments that are known, a function of `flylab.layout` is computed at once. Where one holds a runtime number, the
function is computed on what is known of it (`RuntimeInt`), which gives the type of the result; the rest is left to the
device as one operation of the Fly dialect, `fly.zipped_divide` for `zipped_divide`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from math import lcm
from typing import Any

from flylab.dialect.types import INT_TUPLE, Algebra
from flylab.errors import LayoutError, NotSupportedError, TraceError
from flylab.expr.emit import fly, mlir_type
from flylab.expr.layout_value import LayoutValue, leaves_of, number, of_one_width
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, interval, is_mlir_value
from flylab.expr.promotion import plain
from flylab.expr.tensor import Tensor
from flylab.layout import ComposedLayout, Layout
from flylab.layout.runtime_int import MOST, RuntimeInt, Undecided, is_number
from flylab.layout.runtime_leaves import map_runtime, runtime_leaves


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
    return RuntimeInt(low, min(high, MOST[64]), number.divisor, bits)


def traced(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `flylab.layout` that also takes runtime numbers, and tensors, which stand for their layout."""
    signature = inspect.signature(rule)

    @functools.wraps(rule)
    def function(*args: Any, **named: Any) -> Any:
        if named:
            bound = signature.bind(*args, **named)
            bound.apply_defaults()
            args = bound.args
        args = tuple([known(arg) for arg in args])
        while args and args[-1] is None and len(args) > 1:
            args = args[:-1]
        if not any(map(is_runtime, args)):
            return rule(*args)
        return apply(rule, args)

    return function


def known(arg: Any) -> Any:
    """An argument with its static fx numbers as Python's, tensors as their layouts, and lists as tuples."""
    if isinstance(arg, (tuple, list)):
        return tuple([known(each) for each in arg])
    if isinstance(arg, Numeric):
        if arg.dtype.is_float:
            raise TraceError(f"{name_of(arg, 'a number')} in a layout is a {arg.dtype}, and layouts hold integers",
                             hint="convert it: fx.Int32(x)")
        return arg.value if arg.is_static else arg
    if is_mlir_value(arg):
        return CLASSES["Int64" if str(arg.type) == "i64" else "Int32"](arg)
    return arg.layout if isinstance(arg, Tensor) else plain(arg)


def apply(rule: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """`rule` of arguments that hold runtime numbers: its result, of which runtime parts are values of the device."""
    call = Arguments(args)
    name = rule.__name__
    try:
        result = rule(*call.facts)
    except Undecided as error:
        shown = ", ".join(str(Algebra.of(each)) for each in call.facts)
        raise LayoutError(f"{name}({shown}): {error.message}", hint=error.hint) from None
    return call.returned(name, result)


class Arguments:
    """The arguments of one call: the facts of each, and their values as operands."""

    def __init__(self, args: tuple[Any, ...]):
        self.args = args
        self.number: dict[int, Numeric] = {}
        self.facts = [self._known(arg) for arg in args]

    def _known(self, arg: Any) -> Any:
        if isinstance(arg, tuple):
            return tuple([self._known(each) for each in arg])
        if isinstance(arg, LayoutValue):
            return arg.form.value()
        if not isinstance(arg, Numeric):
            return arg
        # A number given twice is two leaves, as in the types from which the lowering decides.
        facts = facts_of(arg)
        self.number[id(facts)] = arg
        return facts

    def operands(self) -> list[Any]:
        """An operand for each argument: a value of the algebra, or a known one as `fly.static`."""
        return [operand(arg, facts) for arg, facts in zip(self.args, self.facts, strict=True)]

    def returned(self, name: str, result: Any) -> Any:
        """The result with values for its runtime leaves: numbers that were given as they are, else an operation's."""
        leaves = runtime_leaves(result)
        if not leaves:
            return result
        if isinstance(result, (tuple, RuntimeInt)) and all(id(leaf.origin) in self.number for leaf in leaves):
            return map_runtime(lambda leaf: self.number[id(leaf.origin)], result)
        return emitted(name, self.operands(), result)


def operand(arg: Any, facts: Any) -> Any:
    """One argument as an MLIR value of its type."""
    if isinstance(arg, LayoutValue):
        return arg.value
    kind = Algebra.of(facts)
    if not runtime_leaves(facts):
        return fly("static", [], [kind])
    values = of_one_width(_numbers(arg))
    return fly("make_int_tuple" if kind.NAME == INT_TUPLE else "make_tile", values, [kind])


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
        return number(fly(name, operands, [mlir_type(CLASSES[f"Int{result.bits}"].dtype)]), result)
    values = iter(leaves_of(fly(name, operands, [Algebra.of(result)]), result))
    return map_runtime(lambda leaf: next(values), result)


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else value is None or is_number(value)


def _signed(leaf: RuntimeInt) -> RuntimeInt:
    """A leaf as an integer of the language holds it, which is signed."""
    return leaf if leaf.high <= MOST[32] else RuntimeInt(leaf.low, leaf.high, leaf.divisor, 64)


def assume(value: Any, *, div: int = 1, low: int | None = None, high: int | None = None) -> Any:
    """The integer `value`, of which the program knows more: a divisor, the least, the greatest value (inclusive).

    Layouts with runtime extents need it where a decision hangs on them: `fx.assume(n, div=64)` can be tiled by 64
    without a rest. It is not checked on the device; of a number that is known, a `TraceError` says that it does not
    hold.
    """
    given = known(value)
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
