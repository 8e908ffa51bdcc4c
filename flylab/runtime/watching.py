"""What launches are watched for: `flylab.watch(check="all", counters=True, log=True)`."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Asked:
    """What is asked of launches on the software device; `Program.launch` says what each means."""

    check: Any = "auto"
    counters: bool = False
    log: int | bool = False


_PLAIN = Asked()
_asked: ContextVar[Asked] = ContextVar("flylab_watch", default=_PLAIN)


def asked() -> Asked:
    """What launches are watched for now."""
    return _asked.get()


class watch:
    """Watch the launches of a block on the software device: checks, counters, a log of accesses of memory.

        with flylab.watch(check="all", counters=True):
            run = launch(a, b)

    `check` is "auto" (every check, for launches of at most 65,536 threads; what holds without `watch`), "all" (for any
    launch; also an error is what a buffer's descriptor cuts off), None (no checks, at full speed), or a tuple of names
    of checks. `counters` and `log` (True, or how many accesses are kept) are of each report of the run: `run.counters`,
    `run.log`. Holds for this thread or task. Raises `DeviceError`, at the launch, for what is no check.
    """

    def __init__(self, check: Any = "auto", counters: bool = False, log: int | bool = False):
        self.asked = Asked(check, counters, log)

    def __enter__(self) -> None:
        self._token = _asked.set(self.asked)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _asked.reset(self._token)
