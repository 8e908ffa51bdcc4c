"""Launching on the software device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flylab.emulator.arrays import Buffer, View
from flylab.emulator.windows import PRINTED, with_windows
from flylab.errors import ArgumentError
from flylab.runtime.compiled import Compiled
from flylab.runtime.printing import PrintBuffer
from flylab.runtime.tensors import CPU, Memory
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
    """The memory of tensors and pointers as a kernel sees it.

    Raises `ArgumentError` for memory that is not the host's, or of a size that nobody knows, and where there are not
    enough addresses.
    """
    return with_windows([_buffer(_of_known_size(memory, memories)) for memory in memories])


def _of_known_size(memory: Memory, others: Sequence[Memory]) -> Memory:
    """The memory, where nobody says how far it reaches up to the end of another argument's that it lies in."""
    if memory.device != CPU:
        where = memory.device if isinstance(memory.device, str) else f"{memory.device[0]}:{memory.device[1]}"
        raise ArgumentError(f"'{memory.name}' is on {where.removesuffix(':-1')}, and the software device reads the "
                            "CPU's memory", hint=f"pass {memory.name}.cpu()")
    if memory.nbytes >= 0:
        return memory
    for other in others:
        if other.start <= memory.address < other.start + other.nbytes:
            nbytes = other.start + other.nbytes - memory.address
            size = max(memory.dtype.bits // 8, 1)
            return replace(memory, nbytes=nbytes, shape=(nbytes // size,), writable=other.writable)
    raise ArgumentError(f"'{memory.name}' is the address {memory.address:#x}, and nobody says how many bytes lie "
                        "there; the software device touches only what it knows to be memory",
                        hint="say so: flyc.from_c_void_p(fx.Float32, address, nbytes=...), or pass a tensor")


def _buffer(memory: Memory) -> Buffer:
    size = max(memory.dtype.bits // 8, 1)
    strides = tuple(stride * size for stride in memory.strides)
    view = View(memory.shape, strides, size, memory.address - memory.start, memory.dtype.numpy_name)
    return Buffer(memory.name, memory.start, memory.nbytes, memory.writable, view=view, within=memory.within)
