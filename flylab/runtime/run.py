"""What a launch gives back: `Run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.errors import FlylabError
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import Device
from flylab.shown import Text


@dataclass(frozen=True)
class Run:
    """What a launch did: the device, the compilation, and the device's report of each kernel launched."""

    device: Device
    compiled: Compiled
    reports: tuple[Any, ...]

    @property
    def counters(self) -> Any:
        """What the software device counted, of a launch that was watched with `counters=True`.

        Raises `FlylabError` for another launch, and for one of several kernels: each of `reports` has its own.
        """
        return self._of_one("counters")

    @property
    def log(self) -> Any:
        """The accesses of memory that were kept, of a launch that was watched with `log=`; otherwise as `counters`."""
        return self._of_one("log")

    def _of_one(self, name: str) -> Any:
        if len(self.reports) != 1:
            raise FlylabError(f"this run launched {len(self.reports)} kernels, and each has {name} of its own",
                              hint=f"run.reports[0].{name} is of the first")
        found = getattr(self.reports[0], name, None)
        if found is None:
            how = f"with flylab.watch({name}=True): run = launch(...)"
            raise FlylabError(f"this launch of '{self.reports[0].kernel}' was not watched for {name}", hint=how)
        return found

    def show(self) -> Text:
        """One line a kernel: what was counted, with the word for where the numbers come from."""
        return Text("\n".join(f"{self.device}: {report}" for report in self.reports))

    __repr__ = show


observers: list[Callable[[Run, str | None], None]] = []
"""What is told of each launch, and of one that an error stopped also what stopped: `flylab run` lists them."""


def seen(run: Run, stopped: str | None = None) -> Run:
    """The same run, of which the observers know then; `stopped` names the kernel or launcher that did not end."""
    for observer in observers:
        observer(run, stopped)
    return run
