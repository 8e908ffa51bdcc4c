"""What is being traced on this thread: the compiler sets it, the expressions read it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelState:
    """The kernel being traced: its name, and its block size where that is known."""

    name: str
    block: tuple[int, int, int] | None


_active = threading.local()


def current_kernel() -> KernelState | None:
    """The kernel being traced on this thread, or None (in a launcher, or outside of a trace)."""
    return getattr(_active, "kernel", None)


@contextmanager
def tracing(kernel: KernelState | None) -> Iterator[None]:
    """Mark `kernel` as the one being traced."""
    before = current_kernel()
    _active.kernel = kernel
    try:
        yield
    finally:
        _active.kernel = before
