"""Which device a launch runs on.

First that is given: `flylab.use(...)`, `FLYLAB_DEVICE`, `ARCH`, else the software device as a gfx942.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType

from flylab import settings
from flylab.errors import FlylabError, NotSupportedError
from flylab.targets import DEFAULT_ARCH, TARGETS, Target, target

EMULATED, HIP = "emulated", "hip"


@dataclass(frozen=True)
class Device:
    """A device: `emulated` (the software device, as one of the chips) or `hip` (an attached GPU)."""

    kind: str
    target: Target

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}"


_chosen: Device | None = None


def parse(spec: str) -> Device:
    """A device from its text: `gfx950`, `emulated`, `emulated:gfx950`.

    >>> print(parse("gfx950"), parse("emulated"))
    emulated:gfx950 emulated:gfx942

    Raises `FlylabError` for a text that names none, and `NotSupportedError` for `hip`, which this version lacks.
    """
    kind, _, detail = spec.partition(":")
    if kind in TARGETS and not detail:
        return Device(EMULATED, target(kind))
    if kind == EMULATED:
        return Device(EMULATED, target(detail or DEFAULT_ARCH))
    if kind == HIP:
        raise NotSupportedError(
            f"device {spec!r}: this version of flylab does not launch on an attached GPU yet",
            hint="use emulated or emulated:gfx950",
        )
    raise FlylabError(
        f"no device is called {spec!r}", hint="use emulated, emulated:gfx950, or a chip: " + ", ".join(TARGETS)
    )


def current() -> Device:
    """The device that a launch would run on now: `flylab.device()`.

    Raises `FlylabError`, naming the variable, where the environment names no device.
    """
    if _chosen is not None:
        return _chosen
    for name in (*settings.DEVICE.names, "ARCH"):
        spec = os.environ.get(name)
        if spec:
            try:
                return parse(spec)
            except FlylabError as error:
                error.message = f"{name}={spec!r} in the environment: {error.message}"
                raise
    return Device(EMULATED, target(DEFAULT_ARCH))


class use:
    """Choose the device of the launches that follow: `flylab.use("gfx950")`; `None` goes back to the environment's.

    As a context manager it holds for the block: `with flylab.use("gfx950"): ...`.
    """

    def __init__(self, spec: str | None):
        global _chosen
        self._before = _chosen
        _chosen = None if spec is None else parse(spec)
        self.device = current()

    def __enter__(self) -> Device:
        return self.device

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        global _chosen
        _chosen = self._before

    def __repr__(self) -> str:
        return f"<device {self.device}>"
