"""What the rewritten code calls, as `__flylab__`: what Python decides passes through, the rest goes to the device."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence, Sized
from types import FrameType
from typing import Any

from flylab.compiler.control.branch import FAILS, HOLDS, Branch, Static
from flylab.compiler.control.loops import For, While
from flylab.compiler.control.ranges import Range
from flylab.compiler.control.regions import check_finished
from flylab.compiler.control.snapshot import Unbound, variables
from flylab.compiler.control.truth import is_runtime, truth
from flylab.compiler.control.values import NOTHING
from flylab.compiler.syntax.hooking import Site
from flylab.errors import NotSupportedError, TraceError
from flylab.expr.checks import device_check, in_region
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric
from flylab.expr.state import active
from flylab.expr.vector import Vector
from flylab.places import here

ENDLESS = 1_000
"""Rounds after which a loop over an iterator that the device ends is taken for endless."""


class Hooks:
    """The hooks of one rewritten function; `sites` are its `if`s and loops, by number."""

    NOTHING = NOTHING

    def __init__(self, sites: list[Site], callee: Callable[[Any], Any]):
        self.sites = sites
        self.callee = callee
        """The function that a call calls: itself, or rewritten too."""

    # Statements.
    def if_(self, number: int, condition: Any) -> Static | Branch:
        """An `if`: decided, or traced in both arms."""
        if is_runtime(condition):
            return Branch(truth(condition, "`if`"), self.sites[number], sys._getframe(1))
        return HOLDS if condition else FAILS

    def while_(self, number: int) -> While:
        """A `while`."""
        return While(self.sites[number], sys._getframe(1))

    def for_(self, number: int, iterable: Any) -> Any:
        """A `for` over anything but a call; over a `range` made before it is the device's."""
        if isinstance(iterable, range):
            bounds = Range(self.sites[number].what, (iterable.start, iterable.stop, iterable.step))
            return For(self.sites[number], sys._getframe(1), bounds, None)
        return Unrolled(iterable, self.sites[number], sys._getframe(1))

    def for_call(self, number: int, function: Any, /, *args: Any, **named: Any) -> Any:
        """A `for` over a call; `range` itself means a loop on the device, whatever its bounds are."""
        if function is not range:
            return Unrolled(self.callee(function)(*args, **named), self.sites[number], sys._getframe(1))
        site = self.sites[number]
        init = named.pop("init", None)
        if named:
            raise TraceError(f"range(..., {next(iter(named))}=...) of {site.what}", hint="range takes init= only")
        if init is not None and not isinstance(init, (list, tuple)):
            raise TraceError(f"init={init!r} of {site.what}", hint="give a list of what is carried: init=[x, y]")
        return For(site, sys._getframe(1), Range(site.what, args), None if init is None else list(init))

    def asserts(self, condition: Any, message: Callable[[], Any]) -> None:
        """An `assert`: of a runtime condition, or where the device decides who gets there, a check on the device."""
        runtime = is_runtime(condition)
        if runtime or not condition and in_region():
            text = message()
            holds = truth(condition, "`assert`") if runtime else False
            device_check(holds, "the assertion does not hold" if text is None else str(text))
        elif not condition:
            text = message()
            raise AssertionError(*([] if text is None else [text]))

    def raises(self, *around: Any) -> None:
        """A `raise` inside of `if`s and loops, which may be the device's."""
        _decided(around, "raise", "the device raises nothing: `assert condition, text` stops the launch where it does "
                 "not hold")

    def yields(self, value: Any, *around: Any) -> Any:
        """What a generator yields inside of `if`s and loops: on the device its user would run in their arms."""
        _decided(around, "yield", "make a list of the values and of conditions, and choose where they are used")
        return value

    # Early exits.
    def home(self) -> Any:
        """The region in which a function, or loop, begins."""
        return active.region

    def is_home(self, home: Any) -> bool:
        """Whether tracing still is in that region, so that an exit may happen as in Python."""
        region = active.region
        while region is not home and region is not None and region.block is not None and region.block.is_trial:
            region = region.parent
        return region is home

    def leaves_finally(self, home: Any, exit: str) -> None:
        """An exit from a `finally`, which must not lie in runtime control flow."""
        if not self.is_home(home):
            raise NotSupportedError(f"a `{exit}` in a `finally` inside of runtime control flow",
                                    hint=f"put the `{exit}` behind the `try`")

    def caught(self, home: Any) -> None:
        """An exception, caught where tracing was in the region `home`. It must not have left runtime control flow."""
        left = []
        while active.region is not home and active.region is not None and active.region.block is not None:
            left.append(active.region.block)
            active.region.block.leave(sys.exc_info()[1])
        if left:
            check_finished()

    def going_on(self, *flags: Any) -> Any:
        """Whether no flag of an early exit is set."""
        runtime = [f for f in flags if is_runtime(f)]
        if any(f for f in flags if not is_runtime(f)):
            return False
        result: Any = True
        for flag in runtime:
            result = ~flag if result is True else result & ~flag
        return result

    def result(self, returned: Any, value: Any, name: str) -> Any:
        """What a function with early returns gives at its end."""
        if is_runtime(returned) and value is not NOTHING and value is not None:
            raise TraceError(f"'{name}' returns a value on some paths, and nothing on others",
                             hint="end the function with a `return` of a value")
        return None if value is NOTHING else value

    # Expressions.
    def bound(self, value: Any) -> Any:
        """A variable that may have no value, read."""
        if isinstance(value, Unbound):
            raise value.error()
        return value

    def choose(self, condition: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """A conditional expression: one operand is evaluated, on the device too."""
        if is_runtime(condition):
            return _branch(truth(condition, "conditional expression"), "if", sys._getframe(1), then, orelse)
        return then() if condition else orelse()

    def and_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """`a and b and ...`: what follows a value that does not hold is not evaluated."""
        return _short(first, rest, True, sys._getframe(1))

    def or_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """`a or b or ...`: what follows a value that holds is not evaluated."""
        return _short(first, rest, False, sys._getframe(1))

    def compare(self, left: Any, *rest: Callable[..., Any]) -> Any:
        """`a < b < c`: each operand is evaluated once."""
        return _compared(left, rest, sys._getframe(1))

    def not_(self, value: Any) -> Any:
        """`not x`: of a runtime value, a Boolean of the device."""
        return ~truth(value, "`not`") if is_runtime(value) else not value

    def decided(self, value: Any, kind: str) -> Any:
        """A value that decides about a `:=`, which must be known while tracing."""
        if is_runtime(value):
            raise NotSupportedError(f"a `:=` in an operand of a runtime {kind}, which may not be evaluated",
                                    hint="assign before, in a statement of its own")
        return value


class Unrolled:
    """A `for` that Python unrolls."""

    runtime = False
    results = None

    def __init__(self, iterable: Any, site: Site, frame: FrameType):
        if is_runtime(iterable) and not isinstance(iterable, Vector):
            raise TraceError(f"a `for` over {name_of(iterable, 'a value of the device')}, a single value",
                             hint="loop over range(n), or over fx.range_constexpr(n)")
        self.iterable, self.site = iterable, site
        self.frame: FrameType | None = frame if site.stops else None

    def __iter__(self) -> Iterator[Any]:
        frame, self.frame = self.frame, None  # which has this object among its variables
        for rounds, item in enumerate(self.iterable):
            yield item
            if frame is not None:
                flags = variables(frame, self.site.stops).values()
                if any(f for f in flags if not is_runtime(f)):
                    return
                if rounds == ENDLESS and not isinstance(self.iterable, Sized):
                    raise TraceError(f"{self.site.what} is unrolled, and does not end in {ENDLESS} rounds",
                                     hint="what ends it is only known on the device: write a `while`")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


def _decided(around: tuple[Any, ...], statement: str, hint: str) -> None:
    """Refuse a statement in an `if` or a loop of the device."""
    for each in around:
        if each.runtime:
            raise NotSupportedError(f"a `{statement}` in {each.site.what}, which the device decides", hint=hint)


def _site(kind: str) -> Site:
    where = here()
    return Site(kind, where.line if where else 0, (), frozenset(), has_else=True)


def _branch(condition: Numeric, kind: str, frame: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    return Branch(condition, _site(kind), frame).value_of(then, orelse)


def _short(first: Any, rest: Sequence[Callable[[], Any]], holds: bool, frame: FrameType) -> Any:
    """`first and ...` (`holds`), or `first or ...`, in a frame: evaluated up to the value that decides."""
    for i, following in enumerate(rest):
        if is_runtime(first):
            return _both(first, functools.partial(_resumed, rest[i:], holds, frame), holds, frame)
        if bool(first) is not holds:
            return first
        first = following()
    return first


def _resumed(rest: Sequence[Callable[[], Any]], holds: bool, frame: FrameType) -> Any:
    return _short(rest[0](), rest[1:], holds, frame)


def _compared(left: Any, rest: Sequence[Callable[..., Any]], frame: FrameType) -> Any:
    rule, operand, *others = rest
    right = operand()
    first = rule(left, right)
    return _short(first, [functools.partial(_compared, right, others, frame)], True, frame) if others else first


def _both(first: Any, rest: Callable[[], Any], holds: bool, frame: Any) -> Any:
    """`first and rest`, or `first or rest`, of a runtime first."""
    kind = "and" if holds else "or"
    condition = truth(first, f"`{kind}`")

    def last() -> Any:
        value = rest()
        boolean = first is condition
        return truth(value, f"`{kind}`") if boolean and (is_runtime(value) or isinstance(value, bool)) else value

    arms = (last, lambda: first) if holds else (lambda: first, last)
    return _branch(condition, kind, frame, *arms)
