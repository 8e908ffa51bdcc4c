"""A plan on the software device: the arguments are known to fit, and so only their memory is looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flylab.compiler.signature import NUMBER
from flylab.emulator.arrays import Buffer
from flylab.emulator.windows import with_windows
from flylab.runtime.arguments import Bound
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import Device
from flylab.runtime.emulated import Reached, SoftwareDevice, buffer_of
from flylab.runtime.fast.binding import MISSED
from flylab.runtime.fast.plans import slots
from flylab.runtime.launch import execute


@dataclass(frozen=True)
class Place:
    """A tensor's memory without its address: where the binder passes that, and how far its bytes reach from there."""

    at: int
    low: int
    like: Buffer

    def buffer(self, values: Sequence[Any]) -> Buffer | None:
        """The memory in a call; None where it is not inside of what its owner has."""
        address, first, end = values[self.at : self.at + 3]
        start, like = address + self.low, self.like
        if not first <= start <= start + like.nbytes <= end:
            return None
        return Buffer(like.name, start, like.nbytes, like.writable, view=like.view, within=start - first)


def plan(device: Device, compiled: Compiled, bound: Sequence[Bound]) -> Callable[..., Any]:
    """What runs a compilation on the values that the binder passes."""
    given = slots(compiled.launcher.signature, bound)
    places = [Place(slot.at, memory.start - memory.address, buffer_of(memory))
              for slot in given if (memory := slot.bound.memory) is not None]
    # The key of a plan holds shapes and strides, and so the numbers of a runtime layout.
    order = [(None if slot.bound.memory else slot.at, slot.bound.leaves)
             for slot in given if slot.bound.memory or slot.bound.host.kind == NUMBER]
    backend = SoftwareDevice()

    def run(*values: Any) -> Any:
        buffers = []
        for place in places:
            buffer = place.buffer(values)
            if buffer is None:
                return MISSED
            buffers.append(buffer)
        held = Reached(with_windows(buffers))
        pointers = iter(held.pointers)
        operands = [value for at, leaves in order for value in (next(pointers) if at is None else values[at], *leaves)]
        return execute(device, backend, compiled, operands, held, None)

    return run
