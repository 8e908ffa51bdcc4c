"""Launching on the software device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flylab.emulator.arrays import Buffer, View
from flylab.emulator.windows import PRINTED, with_windows
from flylab.runtime.arguments import Memory
from flylab.runtime.compiled import Compiled
from flylab.runtime.printing import PrintBuffer
from flylab.runtime.watching import asked


def launch(
    compiled: Compiled,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    kernarg: bytes,
    buffers: Sequence[Buffer],
    smem: int,
    printed: PrintBuffer | None = None,
) -> Any:
    """Run one kernel over a grid; the device's report. `buffers` is the memory of its arguments, `printed` where it
    prints, if it does.

    Raises `DeviceError` for what goes wrong in it.
    """
    wanted = asked()
    return compiled.program.launch_packed(kernel, grid, block, kernarg, buffers, smem, own_buffers(printed),
                                          check=wanted.check, counters=wanted.counters, log=wanted.log)


def own_buffers(printed: PrintBuffer | None) -> list[Buffer]:
    """The memory for what is printed, which a kernel sees at the address `PRINTED`."""
    return [Buffer("what is printed", printed.address, printed.nbytes, window=PRINTED)] if printed else []


def buffers_of(memories: Sequence[Memory]) -> list[Buffer]:
    """The memory of tensors as a kernel sees it. Raises `ArgumentError` where there are not enough addresses."""
    return with_windows([_buffer(memory) for memory in memories])


def _buffer(memory: Memory) -> Buffer:
    size = memory.dtype.bits // 8
    strides = tuple(stride * size for stride in memory.strides)
    view = View(memory.shape, strides, size, memory.address - memory.start, memory.dtype.numpy_name)
    return Buffer(memory.name, memory.start, memory.nbytes, memory.writable, view=view, within=memory.within)
