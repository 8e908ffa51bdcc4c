"""Operands that an instruction holds in itself, and so are known while tracing: integers within a range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flylab.errors import NotKnown, TraceError
from flylab.expr.emit import op
from flylab.expr.location import name_of
from flylab.expr.numeric import Integer
from flylab.expr.promotion import plain
from flylab.expr.state import require_kernel


def immediate(what: str, name: str, given: Any, low: int, high: int, hint: str | None = None) -> int:
    """A known integer from `low` to `high` (inclusive), as a Python int.

    Raises `TraceError` for what is no integer or lies outside, `NotKnown` for a number of the device.
    """
    number = plain(given)
    hint = hint or (f"give an int from {low} to {high}" if low < high else f"give {low}")
    if isinstance(number, Integer):
        if not number.is_static:
            raise NotKnown(
                f"{what}: the {name} is {name_of(given, 'a number')} of the device, and the instruction holds it in "
                "itself", hint="give a Python int, or pass it as an fx.Constexpr[int] parameter",
            )
        number = number.value
    if isinstance(number, bool) or not isinstance(number, int):
        raise TraceError(f"{what}: the {name} is {name_of(given, repr(given))}, and it takes an integer",
                         hint=hint)
    if not low <= number <= high:
        range_ = f"goes from {low} to {high}" if low < high else f"is always {low}"
        raise TraceError(f"{what}: a {name} of {number}, and it {range_}", hint=hint)
    return number


def emit(what: str, name: str, **attributes: tuple[int, int]) -> None:
    """An operation of MLIR's rocdl dialect without operands; its attributes as (value, bits)."""
    require_kernel(what)
    op(name, [], None, integers(attributes))


def integers(attributes: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """Integer attributes from their values and widths."""
    from mlir import ir

    return {name: ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), value)
            for name, (value, bits) in attributes.items()}
