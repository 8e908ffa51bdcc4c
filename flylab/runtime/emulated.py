"""Launching on the software device."""

from __future__ import annotations

from typing import Any

from flylab.runtime.arguments import Memory
from flylab.runtime.compiled import Compiled


def launch(
    compiled: Compiled,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    kernarg: bytes,
    memories: list[Memory],
    smem: int,
) -> Any:
    """Run one kernel over a grid; the device's report. Raises `DeviceError` for what goes wrong in it."""
    from flylab.emulator import Buffer

    buffers = [Buffer(m.name, m.start, m.nbytes, writable=m.writable) for m in memories]
    return compiled.program.launch_packed(kernel, grid, block, kernarg, buffers, shared=smem)
