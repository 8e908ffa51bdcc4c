"""A lock that survives a fork."""

from __future__ import annotations

import os
import threading
from typing import Any


def fork_safe_lock() -> Any:
    """A re-entrant lock that a fork waits for, so that the child finds it free and what it guards whole.

    >>> with fork_safe_lock():
    ...     pass
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
