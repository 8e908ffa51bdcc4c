"""Launching on the software device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from flylab.emulator.arrays import Buffer, View
from flylab.emulator.windows import PRINTED, with_windows
from flylab.errors import ArgumentError
from flylab.passes.host import Launch
from flylab.runtime.arguments import Bound
from flylab.runtime.compiled import Compiled
from flylab.runtime.packing import packed
from flylab.runtime.printing import PrintBuffer
from flylab.runtime.tensors import CPU, Memory
from flylab.runtime.watching import asked


class Reached:
    """Tensors as the software device sees them: where the host has them, each in an address window of its own."""

    def __init__(self, buffers: Sequence[Buffer]):
        self.buffers = buffers
        self.pointers = [buffer.pointer for buffer in buffers]

    def __enter__(self) -> Reached:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        pass


class SoftwareDevice:
    """The software device as what launches."""

    def hold(self, bound: Sequence[Bound]) -> Reached:
        """The memory of tensors. Raises `ArgumentError` where there are not enough addresses."""
        return Reached(buffers_of(bound))

    def launch(self, compiled: Compiled, launch: Launch, held: Any, stream: Any = None) -> Any:
        """Run one kernel over its grid; the device's report. It has no streams: every launch runs at once.

        Raises `DeviceError` for what goes wrong in it.
        """
        kernarg = packed(compiled, launch, PRINTED)
        if not launch.prints:
            return _run(compiled, launch, kernarg, held.buffers, None)
        grid, block = launch.extents[:3], launch.extents[3:]
        buffer, lines = PrintBuffer(), compiled.lines[launch.kernel]
        try:
            report = _run(compiled, launch, kernarg, held.buffers, buffer)
        except BaseException as error:
            # What it printed may tell why it failed, or why it did not end.
            print(buffer.text(lines, grid, block, getattr(error, "workgroup", None)), end="")
            raise
        print(buffer.text(lines, grid, block), end="")
        buffer.check(launch.kernel)
        return report


def _run(compiled: Compiled, launch: Launch, kernarg: bytes, buffers: Sequence[Buffer],
         printed: PrintBuffer | None) -> Any:
    wanted = asked()
    return compiled.program.launch_packed(launch.kernel, launch.extents[:3], launch.extents[3:], kernarg, buffers,
                                          launch.smem, own_buffers(printed), check=wanted.check,
                                          counters=wanted.counters, log=wanted.log)


def own_buffers(printed: PrintBuffer | None) -> list[Buffer]:
    """The memory for what is printed, which a kernel sees at the address `PRINTED`."""
    return [Buffer("what is printed", printed.address, printed.nbytes, window=PRINTED)] if printed else []


def buffers_of(bound: Sequence[Bound]) -> list[Buffer]:
    """The memory of tensors and pointers as a kernel sees it.

    Raises `ArgumentError` for memory that is not the host's, or of a size that nobody knows, and where there are not
    enough addresses.
    """
    memories = [b.memory for b in bound if b.memory is not None]
    return with_windows([buffer_of(_of_known_size(memory, memories)) for memory in memories])


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
                        hint=f"say so: flyc.from_c_void_p(fx.{memory.dtype}, address, nbytes=...), or pass a tensor")


def buffer_of(memory: Memory) -> Buffer:
    """The memory of a tensor or pointer, not yet in a window."""
    size = max(memory.dtype.bits // 8, 1)
    strides = tuple(stride * size for stride in memory.strides)
    view = View(memory.shape, strides, size, memory.address - memory.start, memory.dtype.numpy_name)
    return Buffer(memory.name, memory.start, memory.nbytes, memory.writable, view=view, within=memory.within)
