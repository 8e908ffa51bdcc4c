"""The tensors of a call, as a device reaches them: in place where it can, else copied there and back.

In place is what lies on the device already, and the host's own memory where the device reads pageable memory (with
XNACK). Other memory of the host is copied to the device before the call, and back after it where it can be
written; arrays that overlap on the host overlap there. A call with memory of the host waits for its end: whoever has
such an array reads it next, and knows nothing of streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from flylab.emulator.arrays import Buffer
from flylab.errors import ArgumentError, FlylabError
from flylab.runtime.hip import devices, library
from flylab.runtime.hip.launching import stream_pointer, synchronize_stream
from flylab.runtime.tensors import CPU, Memory

ROCM = "rocm"
# A device's allocations begin at multiples of it; an array is as far behind one there as it is on the host.
ALIGNED = 256


@dataclass
class Staged:
    """A piece of the host's memory that is copied to the device: of one array, or of several that overlap."""

    start: int
    end: int
    names: list[str] = field(default_factory=list)
    written: list[tuple[int, int]] = field(default_factory=list)
    """The first byte and the end of what comes back."""
    allocation: Any = None
    address: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes from the first to the last."""
        return self.end - self.start


def pieces(memories: Sequence[Memory]) -> list[Staged]:
    """The pieces of the host's memory that arrays span, in order of their addresses; those that overlap are one."""
    found: list[Staged] = []
    for memory in sorted(memories, key=lambda m: m.start):
        end = memory.start + memory.nbytes
        if not found or memory.start >= found[-1].end:
            found.append(Staged(memory.start, end))
        piece = found[-1]
        piece.end = max(piece.end, end)
        piece.names.append(memory.name)
        if memory.writable:
            piece.written.append((memory.start, end))
    return found


def merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans without overlaps, in order.

    >>> merged([(0, 8), (4, 12), (20, 24)])
    [(0, 12), (20, 24)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


class Held:
    """The memory of one call's tensors until the call is over.

    Raises `ArgumentError` for a tensor that the device cannot reach, and `DeviceError` where it has no room for one.
    """

    buffers: Sequence[Buffer] = ()

    def __init__(self, device: devices.Attached, memories: Sequence[Memory], stream: int):
        self._device, self._stream = device, stream
        on_host = [_is_of_host(memory, device) for memory in memories]
        staged = [host and not device.pageable and memory.nbytes != 0
                  for host, memory in zip(on_host, memories, strict=True)]
        self._waits = any(on_host)
        self._pieces = pieces([m for m, copied in zip(memories, staged, strict=True) if copied and m.nbytes > 0])
        try:
            if self._pieces:
                with devices.on(device.ordinal):
                    for piece in self._pieces:
                        self._bring(piece)
            self.pointers = [self._staged(memory) if copied else memory.address
                             for memory, copied in zip(memories, staged, strict=True)]
        except BaseException:
            self._free()
            raise

    def _staged(self, memory: Memory) -> int:
        for piece in self._pieces:
            if piece.start <= memory.start < piece.end:
                return piece.address + memory.address - piece.start
        raise ArgumentError(f"'{memory.name}' is the address {memory.address:#x} of the host's memory, and nobody says "
                            f"how many bytes lie there, to be copied to {self._device}",
                            hint=f"say so: flyc.from_c_void_p(fx.{memory.dtype}, address, nbytes=...), or pass a "
                            "tensor")

    def _bring(self, piece: Staged) -> None:
        what = " and ".join(f"'{name}'" for name in piece.names)
        doing = f"copying {what} ({piece.nbytes} bytes) to hip:{self._device.ordinal}"
        before = piece.start % ALIGNED
        (piece.allocation,) = library.call("hipMalloc", before + piece.nbytes, doing=doing)
        piece.address = address_of(piece.allocation) + before
        copy(piece.address, piece.start, piece.nbytes, "HostToDevice", self._stream, doing)

    def __enter__(self) -> Held:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """What was copied comes back; that of a call that failed too, as far as it can."""
        if not self._waits:
            return
        try:
            with suppress(*((FlylabError,) if error else ())), devices.on(self._device.ordinal):
                self._bring_back()
        finally:
            self._free()

    def _bring_back(self) -> None:
        for piece in self._pieces:
            doing = f"copying {' and '.join(map(repr, piece.names))} back from hip:{self._device.ordinal}"
            for start, end in merged(piece.written):
                copy(start, piece.address + start - piece.start, end - start, "DeviceToHost", self._stream, doing)
        synchronize_stream(self._device.ordinal, self._stream)

    def _free(self) -> None:
        for piece in self._pieces:
            if piece.allocation is not None:
                with suppress(FlylabError):
                    library.call("hipFree", piece.allocation, doing="giving memory back")
                piece.allocation = None


def _is_of_host(memory: Memory, device: devices.Attached) -> bool:
    """Whether memory is the host's, and not the device's. Raises `ArgumentError` for that of another device."""
    kind, number = (memory.device, -1) if isinstance(memory.device, str) else memory.device
    if kind == CPU and (memory.within >= 0 or not memory.address):
        return True
    if kind not in (CPU, ROCM):
        raise ArgumentError(f"'{memory.name}' is on a device of kind {kind!r}, and the launch runs on {device}",
                            hint="pass a tensor of that device, or one of the CPU's, which is copied")
    if number < 0:  # an address alone, which may be of the host or of a device
        owner = owner_of(memory.address)
        if owner is None and kind == CPU:
            return True
        if owner is None:
            raise ArgumentError(f"'{memory.name}' is at the address {memory.address:#x}, which is memory of no AMD GPU",
                                hint="pass a tensor of the device, or one of the CPU's, which is copied")
        number = owner
    if number != device.ordinal:
        raise ArgumentError(
            f"'{memory.name}' is on device {number} (torch's cuda:{number}), and the launch runs on {device}",
            hint=f'flylab.use("hip:{number}") chooses its device; {memory.name}.to("cuda:{device.ordinal}") copies it')
    return False


def owner_of(address: int) -> int | None:
    """The number of the device whose memory an address is; None where it is of none."""
    from rocm.bindings.util.types import Pointer

    with suppress(FlylabError):
        (found,) = library.call("hipPointerGetAttributes", Pointer(address), doing="asking whose an address is")
        if found.type == library.hip().hipMemoryType.hipMemoryTypeDevice:
            return int(found.device)
    return None


def address_of(allocation: Any) -> int:
    """The address of what `hipMalloc` gave."""
    return int(allocation.as_c_void_p().value or 0)


def copy(to: int, source: int, nbytes: int, kind: str, stream: int, doing: str) -> None:
    """Copy bytes on a stream, by addresses; `kind` is "HostToDevice" or "DeviceToHost"."""
    from rocm.bindings.util.types import Pointer

    how = getattr(library.hip().hipMemcpyKind, "hipMemcpy" + kind)
    library.call("hipMemcpyAsync", Pointer(to), Pointer(source), nbytes, how, stream_pointer(stream), doing=doing)


@contextmanager
def allocated(nbytes: int, doing: str) -> Iterator[int]:
    """Memory of the current device for a block, by its address."""
    (allocation,) = library.call("hipMalloc", nbytes, doing=doing)
    try:
        yield address_of(allocation)
    finally:
        with suppress(FlylabError):
            library.call("hipFree", allocation, doing="giving memory back")
