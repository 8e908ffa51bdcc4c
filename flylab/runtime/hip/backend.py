"""An attached GPU as what launches."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flylab import settings
from flylab.codegen.failures import WORDS
from flylab.compiler.signature import STREAM
from flylab.errors import DeviceError
from flylab.passes.checks import LANES
from flylab.passes.host import Launch
from flylab.passes.printf import NEXT, START
from flylab.runtime.arguments import Bound
from flylab.runtime.compiled import Compiled
from flylab.runtime.hip import devices, library
from flylab.runtime.hip.launching import Function, stream_pointer, synchronize_stream
from flylab.runtime.hip.memory import Held, allocated, copy
from flylab.runtime.hip.modules import function_of
from flylab.runtime.hip.streams import handle_of
from flylab.runtime.packing import packed
from flylab.runtime.printing import PrintBuffer
from flylab.runtime.watching import Asked, asked


@dataclass(frozen=True)
class Launched:
    """A launch that a GPU was given. It may still run, and nothing of it was measured or counted."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    smem: int
    device: str

    def __str__(self) -> str:
        return f"{self.kernel}: grid {self.grid}, block {self.block} (launched, not measured)"


class Gpu:
    """An attached GPU as what launches: `flylab.runtime.backend.Backend`."""

    def __init__(self, ordinal: int):
        self.device = devices.find(ordinal)

    def hold(self, bound: Sequence[Bound]) -> Held:
        """The tensors of a call. Raises `ArgumentError` for one that the device cannot reach."""
        given = next((b.value for b in bound if b.host.kind == STREAM), None)
        memories = [b.memory for b in bound if b.memory is not None]
        return Held(self.device, memories, handle_of(given, self.device.ordinal))

    def launch(self, compiled: Compiled, launch: Launch, held: Any, stream: Any = None) -> Launched:
        """Launch one kernel, and do not wait for it, but for one that prints or checks.

        Raises `DeviceError` for what HIP refuses, and where an earlier kernel went wrong, `CheckFailed` for a check.
        """
        if asked() != Asked():
            raise DeviceError(f"a GPU counts and checks nothing, and this launch runs on {self.device}",
                              hint='watch it on the software device: with flylab.use("emulated"): ...; '
                              "flylab.watch() watches nothing")
        kernel, ordinal = launch.kernel, self.device.ordinal
        handle = handle_of(stream, ordinal)
        function = function_of(compiled, kernel, ordinal)
        with devices.on(ordinal):
            if launch.prints:
                _print(compiled, launch, function, handle)
            else:
                _launch(function, launch, packed(compiled, launch), handle)
            if function.failed_check:
                _check(compiled, launch, function, handle)
        return Launched(kernel, launch.extents[:3], launch.extents[3:], launch.smem, f"hip:{ordinal}")


def _launch(function: Function, launch: Launch, kernarg: bytes, handle: int) -> None:
    function.launch(launch.extents[:3], launch.extents[3:], launch.smem, stream_pointer(handle), kernarg)


def _print(compiled: Compiled, launch: Launch, function: Function, handle: int) -> None:
    """Launch a kernel that prints, wait for it, and print its lines."""
    from rocm.bindings.util.types import Pointer

    buffer = PrintBuffer()
    doing = f"making room for what '{launch.kernel}' prints ({settings.PRINTF_BYTES.names[0]}: {buffer.nbytes} bytes)"
    with allocated(buffer.nbytes, doing) as address:
        kernarg = packed(compiled, launch, address)
        library.call("hipMemsetAsync", Pointer(address), 0, buffer.nbytes, stream_pointer(handle), doing=doing)
        copy(address, buffer.address, START, "HostToDevice", handle, doing)
        _launch(function, launch, kernarg, handle)
        doing = f"fetching what '{launch.kernel}' prints"
        copy(buffer.address, address, START, "DeviceToHost", handle, doing)
        synchronize_stream(function.ordinal, handle)
        used = min(ctypes.c_uint64.from_address(buffer.address + NEXT).value, buffer.nbytes)
        copy(buffer.address + START, address + START, used - START, "DeviceToHost", handle, doing)
        synchronize_stream(function.ordinal, handle)
    print(buffer.text(compiled.lines[launch.kernel], launch.extents[:3], launch.extents[3:]), end="")
    buffer.check(launch.kernel)


def _check(compiled: Compiled, launch: Launch, function: Function, handle: int) -> None:
    """Wait for a kernel that checks. Raises `CheckFailed` for the first check that failed, by time."""
    from rocm.bindings.util.types import Pointer

    record = (ctypes.c_uint32 * WORDS)()
    doing = f"asking which check of '{launch.kernel}' failed"
    copy(ctypes.addressof(record), function.failed_check, ctypes.sizeof(record), "DeviceToHost", handle, doing)
    synchronize_stream(function.ordinal, handle)
    which, x, y, z, thread = record
    if not which:
        return
    library.call("hipMemsetAsync", Pointer(function.failed_check), 0, ctypes.sizeof(record), stream_pointer(handle),
                 doing=doing)
    at = thread & 1023, thread >> 10 & 1023, thread >> 20
    check = compiled.checks[launch.kernel][(which - 1) // LANES]
    raise check.failed(f"\n    in block {(x, y, z)}, thread {at} of kernel '{launch.kernel}'")
