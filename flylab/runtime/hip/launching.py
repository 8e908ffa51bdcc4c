"""Launching a loaded kernel, at the least cost.

The bindings turn whatever they are given into objects of their own types, for about 200 ns an argument. So all that
can be made once is: the function, streams, and for the arguments a `Packet`.

    packet = function.take()
    struct.pack_into("<QQi", packet.memory, 0, ...)
    function.enter(packet, gx, gy, gz, bx, by, bz, smem, stream_pointer(handle))
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from flylab.errors import DeviceError
from flylab.runtime.hip import aside, devices, library

# HIP's marks in the list that says where the packed arguments are, and how many bytes.
BUFFER_POINTER, BUFFER_SIZE, END = 1, 2, 3
MOST_STREAMS = 256
MOST_REMEMBERED = 64
# The errors that HIP reports later, of a kernel that ran.
WHILE_RUNNING = ("hipErrorIllegalAddress", "hipErrorLaunchFailure", "hipErrorLaunchTimeOut", "hipErrorAssert")

_streams: dict[int, Any] = {}


class Packet:
    """Memory for a kernel's packed arguments, and the list that tells HIP where it is. HIP copies it at a launch."""

    __slots__ = ("memory", "extra", "_list", "_size")

    def __init__(self, nbytes: int):
        from rocm.bindings._hip_helpers import HipModuleLaunchKernel_extra
        from rocm.bindings.util.types import Pointer

        self.memory = (ctypes.c_char * nbytes)()
        """To be filled with `struct.pack_into`, or whole through `.raw`."""
        self._size = ctypes.c_size_t(nbytes)
        parts = BUFFER_POINTER, ctypes.addressof(self.memory), BUFFER_SIZE, ctypes.addressof(self._size), END
        self._list = (ctypes.c_void_p * len(parts))(*parts)
        self.extra = HipModuleLaunchKernel_extra(Pointer(ctypes.addressof(self._list)))


class Function:
    """A kernel on a device.

    `failed_check` is the address on the device at which it writes which of its checks failed, 0 where it has none:
    whoever launches a kernel with checks, or one that prints, has to wait for it (`flylab.runtime.hip.backend`).
    """

    __slots__ = ("name", "pointer", "kernarg_bytes", "ordinal", "failed_check", "sent", "_packets", "_launch",
                 "_no_list")

    def __init__(self, name: str, pointer: Any, kernarg_bytes: int, ordinal: int, failed_check: int = 0):
        from rocm.bindings.util.types import ListOfPointer

        self.name, self.pointer, self.kernarg_bytes, self.ordinal = name, pointer, kernarg_bytes, ordinal
        self.failed_check, self.sent = failed_check, sent_to(ordinal)
        self._packets: list[Packet] = []
        self._launch = library.hip().hipModuleLaunchKernel
        self._no_list = ListOfPointer(None)

    def take(self) -> Packet:
        """A packet that no other thread has now; `enter` takes it back."""
        try:
            return self._packets.pop()
        except IndexError:
            return Packet(self.kernarg_bytes)

    def enter(self, packet: Packet, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, smem: int,
              stream: Any) -> None:
        """Launch with the arguments in `packet`; the device must be the thread's current one.

        Raises `DeviceError` for what HIP refuses.
        """
        try:
            (status,) = self._launch(self.pointer, gx, gy, gz, bx, by, bz, smem, stream, self._no_list, packet.extra)
        except library.UNKNOWN as error:
            doing = self._doing((gx, gy, gz), (bx, by, bz), smem)
            raise library.not_known("hipModuleLaunchKernel", error, doing) from None
        self._packets.append(packet)
        if status:
            raise failed_on(self.ordinal, status, self._doing((gx, gy, gz), (bx, by, bz), smem))
        self.sent.append((self.name, gx, gy, gz, bx, by, bz))

    def launch(self, grid: tuple[int, ...], block: tuple[int, ...], smem: int, stream: Any, kernarg: bytes) -> None:
        """Launch with these bytes as arguments, on a stream of `stream_pointer`. Otherwise as `enter`."""
        packet = self.take()
        packet.memory.raw = kernarg
        self.enter(packet, *grid, *block, smem, stream)  # type: ignore[call-arg]

    def _doing(self, grid: tuple[int, ...], block: tuple[int, ...], smem: int) -> str:
        lds = f", {smem} bytes of dynamic LDS" * bool(smem)
        return f"launch of '{self.name}' on hip:{self.ordinal}, grid {grid}, block {block}{lds}"


_sent: dict[int, deque[tuple[Any, ...]]] = {}


def sent_to(ordinal: int) -> deque[tuple[Any, ...]]:
    """The launches on a device since it was last found to be well: each a kernel's name, its grid and its block."""
    return _sent.setdefault(ordinal, deque(maxlen=MOST_REMEMBERED))


def failed_on(ordinal: int, status: Any, doing: str) -> DeviceError:
    """The error for a status of HIP; where a kernel went wrong while it ran, with the launches that it may be of."""
    error = library.failed(status, doing)
    if status.name in WHILE_RUNNING and (sent := sent_to(ordinal)):
        lines = [f"\n    {f'{count} x ' * (count > 1)}'{name}', grid {tuple(extents[:3])}, block {tuple(extents[3:])}"
                 for (name, *extents), count in _counted(sent)]
        most = f"the last {len(sent)} launches" if len(sent) == MOST_REMEMBERED else "launched"
        error.message += f"; {most} since the device was last known to be well:{''.join(lines)}"
    return error


def _counted(launches: Iterable[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], int]]:
    """Each launch with how often it is there in a row."""
    return [(launch, len(list(same))) for launch, same in groupby(launches)]


def synchronize(ordinal: int | None = None) -> None:
    """Wait until a device has done all that it was given; without a number, each device that was given something.

    Raises `DeviceError` where a kernel went wrong, with the launches that it may be of.
    """
    for each in sorted(_sent) if ordinal is None else [ordinal]:
        with devices.on(each):
            _wait(each, "hipDeviceSynchronize")
        sent_to(each).clear()
    aside.give_back()


def synchronize_stream(ordinal: int, handle: int) -> None:
    """Wait until a stream of a device, which is the current one, has done all that it was given. Otherwise the same."""
    _wait(ordinal, "hipStreamSynchronize", stream_pointer(handle))


def _wait(ordinal: int, function: str, *args: Any) -> None:
    doing = f"waiting for hip:{ordinal}"
    (status,) = library.answer(function, *args, doing=doing)
    if status:
        raise failed_on(ordinal, status, doing)


def stream_pointer(handle: int) -> Any:
    """What launches take for a stream of HIP's, by its handle (0: the default stream of the current device)."""
    found = _streams.get(handle)
    if found is None:
        from rocm.bindings.util.types import Pointer

        if len(_streams) >= MOST_STREAMS:
            _streams.clear()
        found = _streams[handle] = library.hip().ihipStream_t(Pointer(handle) if handle else None)
    return found


def forget() -> None:
    """Forget streams, and what was launched."""
    _streams.clear()
    for launches in _sent.values():
        launches.clear()
