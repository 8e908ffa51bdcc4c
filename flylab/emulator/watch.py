"""What a launch is watched for: which checks, the counters, the log of accesses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from operator import index
from typing import TYPE_CHECKING, Any

from flylab import settings
from flylab.errors import DeviceError
from flylab.locks import IMPORTING

if TYPE_CHECKING:
    from flylab.emulator.probes.probe import Instrument

CHECKS: dict[str, str] = {
    "bounds": "",
    "registers": "checks.registers",
    "waits": "checks.waits",
    "races": "checks.races",
    "barriers": "checks.barriers",
}
"""Check -> the module of `flylab.emulator` with its `INSTRUMENT`, in the order of their pieces in a probe; "" where the
device checks without probes."""
COUNTERS, LOG = "counters.instrument", "counters.recorder"
AUTO, ALL, NONE = "auto", "all", "none"


@dataclass(frozen=True)
class Watch:
    """What a launch is watched for. `strict` makes errors of what is allowed and odd (`check="all"`).

    `log` is how many accesses of memory are kept, 0 for none.
    """

    checks: tuple[str, ...] = ()
    strict: bool = False
    counters: bool = False
    log: int = 0

    @property
    def instruments(self) -> tuple[Instrument, ...]:
        """The instruments that put probes in front of instructions."""
        modules = [CHECKS[name] for name in CHECKS if CHECKS[name] and name in self.checks]
        modules += [COUNTERS] * self.counters + [LOG] * bool(self.log)
        return tuple(instrument(module, self.strict) for module in modules)


UNWATCHED = Watch()


@cache
def instrument(module: str, strict: bool = False) -> Instrument:
    """The instrument of a module, or its `STRICT` one where it has one."""
    with IMPORTING:
        made = import_module(f"flylab.emulator.{module}")
    found: Instrument = getattr(made, "STRICT", made.INSTRUMENT) if strict else made.INSTRUMENT
    return found


def watched(check: Any, counters: bool, log: int | bool, threads: int) -> Watch:
    """What a launch of so many threads is watched for, from what its caller asks.

    `check` is "auto" (all checks for a launch of at most `settings.SMALL_LAUNCH` threads), "all" (for any, and
    strictly), None or "none", or the name of a check or several. Raises `DeviceError` for anything else.
    """
    if check == AUTO:
        check = _asked()
    possible(check, counters, log)
    if check is None or check == NONE or (check == AUTO and threads > settings.SMALL_LAUNCH):
        names: tuple[str, ...] = ()
    elif check in (AUTO, ALL):
        names = tuple(CHECKS)
    else:
        names = tuple(name for name in CHECKS if name in ([check] if isinstance(check, str) else check))
    return Watch(names, check == ALL, bool(counters), _entries(log))


def possible(check: Any, counters: Any, log: Any) -> None:
    """Raises `DeviceError` for what a launch cannot be watched for."""
    if isinstance(check, str):
        known = check in (AUTO, ALL, NONE, *CHECKS)
    else:
        names = check if isinstance(check, Collection) else [check]
        known = check is None or all(isinstance(name, str) and name in CHECKS for name in names)
    if not known:
        raise DeviceError(f"check is {check!r}", hint=f'it is "auto", "all", None, or a tuple of {", ".join(CHECKS)}')
    if not isinstance(counters, int) or counters not in (0, 1):
        raise DeviceError(f"counters is {counters!r}", hint="it is True or False")
    _entries(log)


def _asked() -> str:
    """What the environment says where the launch says nothing."""
    return settings.CHECK.value()


LOG_ENTRIES = 1 << 16
"""Accesses that `log=True` keeps."""


def _entries(log: int | bool) -> int:
    if log is True:
        return LOG_ENTRIES
    try:
        number = index(log)
    except TypeError:
        number = -1
    if number < 0:
        raise DeviceError(f"log is {log!r}", hint="it is True, False, or how many accesses are kept")
    return number
