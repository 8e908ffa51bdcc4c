"""Compile-time control: loops that unroll, and conditions that Python decides."""

from __future__ import annotations

from typing import Any

from flylab.errors import TraceError
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric


class range_constexpr:
    """A `range` that unrolls: the body is traced once for each number, which is a plain Python int.

    Raises `TraceError` for a bound that is only known on the device, and for a step of 0.
    """

    def __init__(self, *bounds: Any):
        for bound in bounds:
            if isinstance(bound, Numeric) and not bound.is_static:
                raise TraceError(
                    f"range_constexpr: {name_of(bound, 'a bound')} is only known on the device",
                    hint="make it an fx.Constexpr[int] parameter",
                )
        try:
            self.numbers = range(*bounds)
        except (TypeError, ValueError) as error:
            raise TraceError(
                f"range_constexpr{bounds}: {error}", hint="give integers: stop, or start, stop and a step that is not 0"
            ) from None

    def __iter__(self) -> Any:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def const_expr(x: Any) -> Any:
    """A value known while tracing, for `if const_expr(flag):`. Raises `TraceError` for one of the device."""
    if isinstance(x, Numeric):
        if not x.is_static:
            raise TraceError(
                f"const_expr: {name_of(x, 'the value')} is only known on the device",
                hint="leave const_expr out: a plain `if` is then decided on the device",
            )
        return x.value
    return x
