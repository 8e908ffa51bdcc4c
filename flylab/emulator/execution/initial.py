"""What a wave begins with: registers, the instruction, and the dispatch packet that it may read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from ctypes import c_uint32
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from flylab.codegen.isa import IsaKernel
from flylab.emulator.linking import END_OF_FUNCTION
from flylab.emulator.state import (
    APERTURES,
    MODE,
    PRIVATE_APERTURE,
    SGPR_COUNT,
    SHARED_APERTURE,
    SINK,
    WAVE_SIZE,
)
from flylab.emulator.windows import DISPATCH_PACKET, KERNEL_ARGUMENTS
from flylab.errors import DeviceError

if TYPE_CHECKING:
    from flylab.emulator.execution.geometry import Dims, Geometry

# Scalar registers that the descriptor asks for, in the order they are given, with how many each takes.
USER_SGPRS = (("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
              ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1))
MOST_USER_SGPRS = 16
PRELOADED_ENTRY = 256
PACKET_BYTES = 64


@lru_cache(maxsize=64)
def work_items(block: Dims, dimensions: int) -> tuple[bytes, bytes]:
    """The first vector register and EXEC of each wave: work-item ids packed x | y << 10 | z << 20."""
    x_count, y_count, _ = block
    total = math.prod(block)
    ids = bytearray()
    for thread in range(-(-total // WAVE_SIZE) * WAVE_SIZE):
        parts = (thread % x_count, thread // x_count % y_count, thread // (x_count * y_count))
        value = sum(part << (10 * n) for n, part in enumerate(parts[:dimensions])) if thread < total else 0
        ids += value.to_bytes(4, "little")
    masks = ((1 << min(WAVE_SIZE, total - first)) - 1 for first in range(0, total, WAVE_SIZE))
    return bytes(ids), b"".join(m.to_bytes(8, "little") for m in masks)


def user_sgprs(kernel: IsaKernel, kernarg: bytes, addresses: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """The scalar registers that every wave begins with, and the numbers of those for the three workgroup ids.

    `addresses` are of what pointers the descriptor may ask for. There is no HSA queue here: its pointer is null, and
    reading through it is an error. After what the descriptor names come the arguments that it wants preloaded, dwords
    of the segment as they lie. Source: LLVM 22's AMDGPU usage guide, the initial kernel execution state and kernarg
    preload. Raises `DeviceError` for a descriptor that asks for more than there is.
    """
    descriptor, name = kernel.descriptor, kernel.name
    user: list[int] = []
    for wanted, count in USER_SGPRS:
        if descriptor.get(f"user_sgpr_{wanted}", 0):
            user += [(addresses.get(wanted, 0) >> (32 * n)) & 0xFFFFFFFF for n in range(count)]
    first = descriptor.get("user_sgpr_kernarg_preload_offset", 0)
    for n in range(first, first + descriptor.get("user_sgpr_kernarg_preload_length", 0)):
        user.append(int.from_bytes(kernarg[4 * n:4 * n + 4], "little"))
    at = descriptor.get("user_sgpr_count", len(user))
    if at < len(user):
        raise DeviceError(f"the descriptor of kernel '{name}' has a user_sgpr_count of {at}, and what it asks for "
                          f"takes {len(user)}", hint="leave .amdhsa_user_sgpr_count out")
    if at > MOST_USER_SGPRS:
        raise DeviceError(f"the descriptor of kernel '{name}' asks for {at} user registers, and there are "
                          f"{MOST_USER_SGPRS}")
    places = []
    for axis in "xyz":
        used = descriptor.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x"))
        places.append(at if used else SINK)
        at += used
    return user, places


def initial_sgprs(kernel: IsaKernel, mode: int, kernarg: bytes) -> tuple[Any, list[int]]:
    """All scalar registers as every wave begins with them, and the numbers of those for the three workgroup ids.

    Raises `DeviceError` as `user_sgprs`.
    """
    user, places = user_sgprs(kernel, kernarg, {
        "kernarg_segment_ptr": KERNEL_ARGUMENTS, "dispatch_ptr": DISPATCH_PACKET})
    found = (c_uint32 * SGPR_COUNT)(*user)
    found[MODE] = mode
    low = (1 << 32) - 1
    found[APERTURES:APERTURES + 8] = [half for base in (SHARED_APERTURE, PRIVATE_APERTURE)
                                      for half in (0, base >> 32, low, base >> 32)]
    return found, places


def preloads(kernel: IsaKernel) -> bool:
    """Whether scalar registers begin with arguments."""
    return bool(kernel.descriptor.get("user_sgpr_kernarg_preload_length", 0))


def entry(kernel: IsaKernel) -> int:
    """The instruction that a wave begins with: at byte 256 where arguments are preloaded, else the first.

    Before that byte lies code for firmware that does not preload. Source: LLVM 22's AMDGPU usage guide.
    """
    if not preloads(kernel):
        return 0
    own = takewhile(lambda i: i.mnemonic != END_OF_FUNCTION, kernel.instructions)
    found = next((i.index for i in own if i.address == PRELOADED_ENTRY), None)
    if found is None:
        raise DeviceError(f"kernel '{kernel.name}' wants its arguments preloaded, so it begins at byte "
                          f"{PRELOADED_ENTRY}, where it has no instruction",
                          hint="put code that loads them before it, then .p2align 8")
    return found


def dispatch_packet(geometry: Geometry, lds_bytes: int, kernarg_address: int) -> bytes:
    """The AQL packet of the launch, as the HSA specification lays it out: sizes and the arguments' address."""
    packet = bytearray(PACKET_BYTES)
    for n in range(3):
        packet[4 + 2 * n:6 + 2 * n] = geometry.block[n].to_bytes(2, "little")
        packet[12 + 4 * n:16 + 4 * n] = (geometry.grid[n] * geometry.block[n]).to_bytes(4, "little")
    packet[28:32] = lds_bytes.to_bytes(4, "little")
    packet[40:48] = kernarg_address.to_bytes(8, "little")
    return bytes(packet)
