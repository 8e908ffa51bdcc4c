"""Calls that no Ctrl-C can stop, made in a way that Ctrl-C does not have to wait for them."""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def interruptible(function: Callable[..., T], *arguments: Any) -> T:
    """What a call of native code gives, or raises, made by another thread while the main thread waits for it.

    >>> interruptible(divmod, 7, 2)
    (3, 1)

    Ctrl-C ends the wait at once; the call goes on to its end, and what it gives is dropped. Python waits at its own end
    for a call that goes on, since native code cannot be ended halfway. A thread that no Ctrl-C reaches makes the call
    itself.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    results: list[T] = []
    errors: list[BaseException] = []
    ended = allocate_lock()  # a plain lock: Ctrl-C cannot come in the middle of it
    ended.acquire()

    def work() -> None:
        try:
            results.append(function(*arguments))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.release()

    try:
        threading.Thread(target=work, name="flylab-native").start()
    except RuntimeError:  # Python is at its end, and starts no thread any more
        work()
    ended.acquire()
    if errors:
        raise errors.pop()
    return results[0]
