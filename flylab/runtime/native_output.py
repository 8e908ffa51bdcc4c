"""What C libraries print, shown in the notebook cell that made them print it.

ipykernel reads the file descriptors 1 and 2, so that what is written there shows in the cell. But C keeps what goes to
its `stdout` back where that is no terminal, and a kernel ends without writing it: so it is written after each cell.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import time
from typing import Any

from flylab.places import ipython

LONGEST = 0.2
"""Seconds that the end of a cell waits for ipykernel to read what was written."""


@functools.cache
def shown_in_cells() -> None:
    """From now on C's `stdout` is written at the end of each cell; nothing where no notebook runs."""
    shell = ipython()
    if getattr(shell, "kernel", None) is not None and _c_stdout() is not None:
        shell.events.register("post_run_cell", _after_cell)


@functools.cache
def _c_stdout() -> tuple[Any, ctypes.c_void_p] | None:
    """C's `fflush` and its `stdout`; None on a system where they are not found."""
    try:
        library = ctypes.CDLL(None)
        name = "__stdoutp" if sys.platform == "darwin" else "stdout"
        return library.fflush, ctypes.c_void_p.in_dll(library, name)
    except (OSError, TypeError, AttributeError, ValueError):
        return None


def _after_cell(*_: Any) -> None:
    found = _c_stdout()
    if found is not None:
        flush, stdout = found
        flush(stdout)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        if hasattr(stream, "watch_fd_thread"):
            _wait_until_read(number)


def _wait_until_read(number: int) -> None:
    """Waits while bytes are in the pipe of a file descriptor, so that they count as this cell's."""
    end = time.monotonic() + LONGEST
    while _unread(number) and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(0.001)  # what ipykernel's thread has read it hands on before it waits again


def _unread(number: int) -> int:
    import fcntl
    import termios

    count = ctypes.c_int()
    try:
        fcntl.ioctl(number, termios.FIONREAD, count)
    except OSError:
        return 0
    return count.value
