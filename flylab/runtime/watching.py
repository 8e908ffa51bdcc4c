"""What launches are watched for: `flylab.watch(check="all", counters=True, log=True)`."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any

from flylab.emulator.watch import possible
from flylab.runtime.choices import Choices


@dataclass(frozen=True)
class Asked:
    """What is asked of launches on the software device; `Program.launch` says what each means."""

    check: Any = "auto"
    counters: bool = False
    log: int | bool = False


_PLAIN = Asked()
_choices: Choices[Asked] = Choices("flylab_watch")


def asked() -> Asked:
    """What launches are watched for now."""
    return _choices.current() or _PLAIN


class watch:
    """Watch the launches that follow on the software device: checks, counters, a log of accesses of memory.

    `check` is "auto" (every check, for launches of at most 65,536 threads: what holds without `watch`), "all" (for any
    launch, and strictly: what the descriptor of a buffer cuts off is an error too), None (no checks, at full speed), or
    names of checks ("bounds", "registers", "waits", "races", "barriers"), one or a tuple of them. `counters` and `log`
    (True, or how many accesses are kept) are then `run.counters` and `run.log` of what a launch returns.

        flylab.watch(check="all")                     # until the next call
        with flylab.watch(counters=True):             # for a block, in this thread or task
            run = launch(a, b)

    `flylab.watch()` goes back to the beginning. Raises `DeviceError` for what is no check.
    """

    def __init__(self, check: Any = "auto", counters: bool = False, log: int | bool = False):
        possible(check, counters, log)
        self.asked = Asked(check, counters, log)
        self._chosen = _choices.choose(self.asked)

    def __enter__(self) -> Asked:
        self._chosen.enter()
        return self.asked

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._chosen.leave()

    def __repr__(self) -> str:
        return f"<watch check={self.asked.check!r} counters={self.asked.counters} log={self.asked.log}>"
