"""A lock that survives a fork, and a cached property without a lock."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any


def fork_safe_lock() -> Any:
    """A re-entrant lock that a fork waits for, so that the child finds it free and what it guards whole.

    >>> with fork_safe_lock():
    ...     pass
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """A property that is computed once, or by each of two threads that ask at once.

        That of Python 3.11 holds a lock of all objects of the class meanwhile: a fork would leave it locked for ever in
        the child, and two threads could each wait for the other. That of Python 3.12 has none.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            if self.attrname not in instance.__dict__:
                instance.__dict__[self.attrname] = self.func(instance)
            return instance.__dict__[self.attrname]
