"""Functions of Python's that ask numbers for a decision: where only the device can decide, what to write instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flylab.errors import NotKnown
from flylab.places import of_traceback

INSTEAD: dict[Callable[..., Any], str] = {
    max: "fx.max(a, b, ...) is computed on the device; of a vector v.reduce(fx.ReductionOp.MAX)",
    min: "fx.min(a, b, ...) is computed on the device; of a vector v.reduce(fx.ReductionOp.MIN)",
    any: "join the conditions: a | b | c; of a vector v.any()",
    all: "join the conditions: a & b & c; of a vector v.all()",
    sorted: "put two in order by a, b = fx.min(a, b), fx.max(a, b)",
}


def explained(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's own, with an error that names it where it asks for what only the device knows."""
    hint = INSTEAD.get(function)
    if hint is None:
        return function

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except NotKnown as error:
            if of_traceback(error.__traceback__) is not None:  # code of the user's asked, which the function calls
                raise
            message = f"Python's {function.__name__}() asks for the value of numbers that only the device knows"
            raise NotKnown(message, hint=hint) from None

    return call
