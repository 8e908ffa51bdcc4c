"""The published module of helpers for functions of the language: the user's line needs none here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flylab.expr.planned import missing

F = TypeVar("F", bound=Callable[..., Any])


def dsl_loc_tracing(fn: F) -> F:
    """The function as it is: every operation already has the line of the user's that made it."""
    return fn


def __getattr__(name: str) -> Any:
    raise missing("fx.meta", name, globals())
