"""A lock between processes, which the system takes back from one that ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

fcntl: Any = None
with contextlib.suppress(ImportError):  # on Windows each process compiles for itself
    import fcntl

_held: set[int] = set()


def _forget() -> None:
    """A child of a fork holds no lock: its copy would keep the parent's until the child ends."""
    for file in _held:
        with contextlib.suppress(OSError):
            os.close(file)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextlib.contextmanager
def locked(path: str, wait: float) -> Iterator[bool]:
    """Holds the lock of a file, which is made; whether another process, or thread, had it before.

    Where the system cannot lock it, and where it is not free after `wait` seconds, the block runs all the same.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield False
        return
    _held.add(file)
    try:
        yield _acquire(file, wait)
    finally:
        if file in _held:  # not in a child of a fork, which closed it
            _held.discard(file)
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)  # closing would not do while a child has it, too
            os.close(file)


def _acquire(file: int, wait: float) -> bool:
    if fcntl is None:
        return False
    end, pause, waited = time.monotonic() + wait, 0.001, False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return waited
        except BlockingIOError:
            waited = True
        except OSError:  # a file system without locks
            return waited
        if time.monotonic() >= end:
            return waited
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
