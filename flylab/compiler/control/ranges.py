"""The numbers that a runtime `for` counts through: `range(...)` of known or runtime bounds, up or down."""

from __future__ import annotations

from math import gcd
from typing import Any

from flylab.errors import TraceError
from flylab.expr.arithmetic import compare
from flylab.expr.checks import device_check
from flylab.expr.emit import mlir_type
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, as_numeric, binary, divisor_of, interval, unify
from flylab.expr.promotion import integer_range, plain
from flylab.shown import a_kind

HINT = "give integers: range(stop), or range(start, stop, step) with a step that is not 0"


class Range:
    """`range(start, stop, step)` on the device; the loop variable has the bounds' common format, Int32 of plain ints.

    A known step may be negative; a runtime step must be 1 or more, which the device checks. Raises `TraceError` for a
    step of 0 and for bounds that are no integers.
    """

    def __init__(self, what: str, arguments: tuple[Any, ...]):
        start, stop, step = _normal(arguments)
        self.kind, numbers = _one_format(start, stop, step)
        self.start: Any
        self.stop: Any
        self.step: Any
        self.start, self.stop, self.step = numbers
        dtype = self.kind.dtype
        if self.step.is_static and self.step.value == 0:
            raise TraceError(f"range of {what} has the step 0", hint=HINT)
        if not self.step.is_static:
            device_check(self.step > 0, f"the step of range of {what} is 0 or less")
        down = self.step.is_static and self.step.value < 0
        (a, b), (c, d) = interval(self.start), interval(self.stop)
        self.runs = a > d if down else b < c
        self.is_empty = b <= c if down else a >= d
        self.bounds = (min(c + 1, b), b) if down else (a, max(d - 1, a))
        furthest = d + (interval(self.step)[1] - 1)
        self.counts = down or not dtype.signed or furthest > integer_range(dtype)[1]
        """Whether the loop counts its rounds, since its own variable could wrap, or counts down."""
        self.trip: Any = None
        if self.counts and not self.is_empty:
            self.trip = self._rounds(down)

    def _rounds(self, down: bool) -> Any:
        """How many rounds, an unsigned number."""
        unsigned = CLASSES["Uint" + self.kind.dtype.name.removeprefix("Uint").removeprefix("Int")]
        far, near = (self.start, self.stop) if down else (self.stop, self.start)
        distance = (far > near).select(binary("-", unsigned(far), unsigned(near)), unsigned(0))
        step = unsigned(-self.step if down else self.step)
        if step.is_static and step.value == 1:
            return distance
        return distance // step + (distance % step != 0).to(unsigned)

    def mlir(self) -> Any:
        """The type of the counter."""
        return mlir_type(self.kind.dtype)

    def operands(self) -> list[Any]:
        """Where the counter begins, the bound that it stays below, and its step."""
        if self.counts:
            return [self.kind(0).ir_value(), self.trip.ir_value(), self.kind(1).ir_value()]
        return [self.start.ir_value(), self.stop.ir_value(), self.step.ir_value()]

    def attributes(self) -> dict[str, Any]:
        """How `scf.for` compares: rounds are unsigned."""
        from mlir import ir

        return {"unsignedCmp": ir.UnitAttr.get()} if self.counts else {}

    def below(self, counter: Any, high: Any) -> Any:
        """Whether the counter is below its bound (MLIR values)."""
        from flylab.expr.formats import Boolean

        dtype = type(self.trip).dtype if self.counts else self.kind.dtype
        return Boolean(compare("<", counter, high, dtype))

    def index(self, counter: Any) -> Numeric:
        """The loop variable, of the counter."""
        found: Numeric = self.kind(counter)
        if self.counts:
            found = self.start + found * self.step
        step = divisor_of(self.step) if self.step.is_static else self.step.divisor
        divisor = gcd(divisor_of(self.start), step)
        result: Numeric = self.kind(found).with_facts(self.bounds, divisor)
        return result


def _normal(arguments: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    given = [plain(a) for a in arguments]
    for each in given:
        integer = isinstance(each, int) or isinstance(each, Numeric) and not each.dtype.is_float
        if not integer:
            shown = name_of(each, f"{a_kind(each)}")
            raise TraceError(f"range of {shown}", hint=f"convert it: fx.Int32(x); {HINT}")
    if not 1 <= len(given) <= 3:
        raise TraceError(f"range of {len(given)} arguments", hint=HINT)
    if len(given) == 1:
        return 0, given[0], 1
    return given[0], given[1], given[2] if len(given) == 3 else 1


def _one_format(*given: Any) -> tuple[type[Numeric], tuple[Numeric, ...]]:
    """The bounds in their common format."""
    common = CLASSES["Int32"].dtype
    numbers = [n for n in given if isinstance(n, Numeric)]
    if numbers:
        common = numbers[0].dtype
        for other in given:
            common = unify(CLASSES[common.name](0), other)[2]
        if common.bits < 32:
            common = CLASSES["Int32"].dtype
    elif not all(-(2**31) <= int(n) < 2**31 for n in given):
        common = CLASSES["Int64"].dtype
    kind = CLASSES[common.name]
    return kind, tuple(kind(as_numeric(n, common)) for n in given)
