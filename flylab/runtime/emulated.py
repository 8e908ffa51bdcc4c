"""Launching on the software device."""

from __future__ import annotations

from typing import Any

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
    memories: list[Memory],
    smem: int,
    printed: PrintBuffer | None = None,
) -> Any:
    """Run one kernel over a grid; the device's report. `printed` is where it prints, if it does.

    Raises `DeviceError` for what goes wrong in it.
    """
    buffers, own = buffers_of(memories, printed)
    wanted = asked()
    return compiled.program.launch_packed(kernel, grid, block, kernarg, buffers, smem, own, check=wanted.check,
                                          counters=wanted.counters, log=wanted.log)


def buffers_of(memories: list[Memory], printed: PrintBuffer | None) -> tuple[list[Any], list[Any]]:
    """The memory of arguments, and that for what is printed, as the device takes it."""
    from flylab.emulator import Buffer

    own = [Buffer("what is printed", printed.address, printed.nbytes)] if printed else []
    return [Buffer(m.name, m.start, m.nbytes, writable=m.writable) for m in memories], own
