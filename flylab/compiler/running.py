"""The trace that is running on this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flylab.compiler.trace import Trace

_active = threading.local()


def current_trace() -> Trace | None:
    """The trace that is running on this thread, or None."""
    return getattr(_active, "trace", None)


@contextmanager
def current(trace: Trace) -> Iterator[None]:
    """Make it the one that is running."""
    before = current_trace()
    _active.trace = trace
    try:
        yield
    finally:
        _active.trace = before
