"""Threads that help a launch: started once, kept, and begun anew in the child of a fork."""

from __future__ import annotations

import os
import threading
from _thread import allocate_lock
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class Task:
    """Work that a helper may take up, and that its owner may take back as long as none has.

    The locks are used once each: whoever acquires `_claimed` has the work, and `_ended` is free once it is done. Plain
    locks, since a Ctrl-C can come between any two lines of the thread that waits, and these stay whole.
    """

    def __init__(self, work: Work):
        self._work = work
        self._claimed, self._ended = allocate_lock(), allocate_lock()
        self._ended.acquire()

    def run(self) -> None:
        """Does the work, unless it was taken back; its errors are the work's own business."""
        if self._claimed.acquire(blocking=False):
            try:
                self._work()
            finally:
                self._ended.release()

    def wait(self) -> None:
        """Waits for the end of the work; Ctrl-C interrupts the wait."""
        self._ended.acquire()
        self._ended.release()

    def finish(self) -> None:
        """Takes the work back where no helper has begun it, else waits for its end."""
        if not self._claimed.acquire(blocking=False):
            self.wait()


class _Helpers:
    """Threads that take tasks from one queue, as many as were ever wanted at once."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[Task] = SimpleQueue()
        self.threads = 0

    def submit(self, task: Task, threads: int) -> None:
        self.tasks.put(task)
        if self.threads < threads and start(self._serve, f"flylab-helper-{self.threads + 1}"):
            self.threads += 1

    def _serve(self) -> None:
        while True:
            self.tasks.get().run()


def start(work: Work, name: str) -> bool:
    """A thread of its own for some work; False where Python is at its end, and starts no thread any more.

    Python does not wait for it at its end: `run` sees to that.
    """
    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except RuntimeError:
        return False
    return True


def submit(work: Work, threads: int) -> Task:
    """Gives work to the helpers, of which there are at least `threads` from then on."""
    task = Task(work)
    _helpers.submit(task, threads)
    return task


def _begin() -> None:
    global _helpers
    _helpers = _Helpers()


_helpers = _Helpers()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_begin)
