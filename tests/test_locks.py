"""A lock that a fork waits for, and a cached property that two threads may compute at once."""

from __future__ import annotations

import os
import threading

import pytest

from flylab.locks import cached_property, fork_safe_lock


class Kept:
    def __init__(self) -> None:
        self.calls = 0
        self.meeting = threading.Barrier(2, timeout=30)

    @cached_property
    def value(self) -> int:
        """Both threads must be in here at once."""
        self.meeting.wait()
        self.calls += 1
        return 7

    @cached_property
    def other(self) -> int:
        self.calls += 1
        return 8


def test_two_threads_may_compute_a_property_at_once() -> None:
    one, two, found = Kept(), Kept(), []
    two.meeting = one.meeting
    threads = [threading.Thread(target=lambda kept=kept: found.append(kept.value)) for kept in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [7, 7] and one.calls == two.calls == 1


def test_a_property_is_computed_once() -> None:
    kept = Kept()
    assert [kept.other, kept.other, kept.calls] == [8, 8, 1]
    del kept.other
    assert [kept.other, kept.calls] == [8, 2]
    assert isinstance(Kept.other, cached_property) and isinstance(Kept.__dict__["other"], cached_property)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_a_lock_that_another_thread_holds() -> None:
    lock, held, leave = fork_safe_lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    threading.Timer(0.2, leave.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(blocking=False) else 1)
    assert leave.is_set() and os.waitpid(child, 0)[1] == 0
    thread.join()
