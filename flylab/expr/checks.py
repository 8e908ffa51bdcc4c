"""Checks of a running kernel: a condition that must hold, with what to say where it does not."""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import Check, TraceError
from flylab.expr.emit import fly, require_trace
from flylab.expr.lines import is_unfinished
from flylab.expr.location import name_of
from flylab.expr.numeric import as_numeric, compare
from flylab.expr.state import active
from flylab.expr.vector import Vector
from flylab.places import here


def device_check(condition: Any, message: str, hint: str | None = None) -> None:
    """Stop the launch where `condition` (a number; not 0 means true) is false for a thread that is switched on.

    On the software device that is a `CheckFailed` with the message, the user's line, the block and the thread; on a
    chip the wave traps. In a launcher the host checks where it stands among the launches. What is known to hold while
    tracing costs nothing; what is known to be false is a `TraceError` at once, or, inside of a runtime branch or loop,
    stops whoever gets there.

    Writes before the check are done, those after it are not, for every thread of the wave.
    """
    if isinstance(condition, Vector):
        raise TraceError(
            f"a check of {name_of(condition, 'a vector')}, which has {condition.numel} conditions",
            hint="check each element: for c in v: assert c",
        )
    if is_unfinished(message):
        raise TraceError(
            f"a check whose text shows numbers of the device: {message!r}",
            hint="the text is one for all threads: leave them out, and print them before: fx.printf(\"x = {}\", x)",
        )
    given = as_numeric(condition)
    if given.is_static:
        if given.value:
            return
        if not in_region():
            raise TraceError(message, hint=hint)
    require_trace("a check on the device")
    truth = given if given.dtype.kind == BOOL else compare("!=", given, 0)
    checks = active.function.checks  # type: ignore[union-attr]  # there is a trace
    checks.append(Check(message, here(), hint))
    fly("check", [truth.ir_value()], number=len(checks) - 1, message=message)


def in_region() -> bool:
    """True inside of a runtime branch or loop of the function that is traced."""
    from mlir import ir

    if active.function is None:
        return False
    owner = ir.InsertionPoint.current.block.owner
    return bool(owner.operation != active.function.operation)
