"""A lock that survives a fork, and a cached property without a lock."""

from __future__ import annotations

import functools
import logging  # noqa: F401  before a hook for forks is registered here: see there
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

_locks: list[Any] = []
_held: dict[int, list[Any]] = {}
"""By each thread that forks, the locks that it holds meanwhile."""


def fork_safe_lock() -> Any:
    """A re-entrant lock that a fork waits for, so that the child finds it free and what it guards whole.

    It is for one of a module: it is kept for good.

    >>> with fork_safe_lock():
    ...     pass
    """
    _locks.append(threading.RLock())
    return _locks[-1]


def _before_fork() -> None:
    held = _held[threading.get_ident()] = []
    while len(held) < len(_locks):  # what another thread imports meanwhile may make further ones
        lock = next(lock for lock in reversed(_locks) if lock not in held)
        lock.acquire()
        held.append(lock)


def _after_fork() -> None:
    for lock in _held.pop(threading.get_ident()):
        lock.release()


IMPORTING = fork_safe_lock()
"""Held while a call imports what the first one needs: the child of a fork would find the module locked for ever."""

if hasattr(os, "register_at_fork"):  # Windows has no fork
    # The hooks before a fork run in the reverse order of their registration, so that logging's lock, which a function
    # that is traced may take, is taken after those of flylab.
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


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
