"""What is given back later: code objects and streams that nobody holds any more.

The collector finds them at any moment, also while a stream is captured into a graph, and to wait for the device or to
unload a module breaks a capture off (https://github.com/ROCm/rocm-systems/issues/11698). So they are put aside, and
given back when another one is made, or when somebody waits for the device.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

_aside: deque[Callable[[], None]] = deque()


def put(give_back: Callable[[], None]) -> None:
    """Put something aside; `give_back` gives it back, and raises nothing."""
    _aside.append(give_back)


def give_back() -> None:
    """Give back what is aside."""
    while _aside:
        try:
            next_one = _aside.popleft()
        except IndexError:  # another thread was faster
            return
        next_one()


# A forked process has none of them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_aside.clear)
