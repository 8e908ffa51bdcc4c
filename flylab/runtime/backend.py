"""What launches kernels on a device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from flylab.emulator.arrays import Buffer
from flylab.passes.host import Launch
from flylab.runtime.arguments import Bound
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import HIP, Device
from flylab.runtime.emulated import SoftwareDevice


class Held(AbstractContextManager["Held"], Protocol):
    """The memory of one call's tensors, as the device reaches it, until the call is over."""

    @property
    def pointers(self) -> Sequence[int]:
        """What a kernel gets for each tensor, in order: the address of its first element."""

    @property
    def buffers(self) -> Sequence[Buffer]:
        """The memory that a kernel may touch, where the device has to be told."""


class Backend(Protocol):
    """A device that launches."""

    def hold(self, bound: Sequence[Bound]) -> Held:
        """The tensors of a call, as the device reaches them. Raises `ArgumentError` for one that it cannot reach."""

    def launch(self, compiled: Compiled, launch: Launch, held: Held, stream: Any) -> Any:
        """Launch one kernel on a stream (of `fx.Stream`, or None); the report of it. What it prints is printed."""


def backend_of(device: Device) -> Backend:
    """What launches on a device."""
    if device.kind != HIP:
        return SoftwareDevice()
    from flylab.runtime.hip.backend import Gpu

    return Gpu(device.ordinal)
