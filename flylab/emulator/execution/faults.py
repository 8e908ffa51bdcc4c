"""Errors of a running kernel, in the user's terms: which thread of which block, which line and array, how far off."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.arrays import Buffer
from flylab.emulator.decoding.decode import source_line
from flylab.emulator.execution.outside import cut_off, outside
from flylab.emulator.memory.formats import names
from flylab.emulator.state import (
    BAD_FORMAT,
    CLAMPED,
    DESCRIPTOR,
    LDS_MISALIGNED,
    LDS_OUTSIDE,
    LDS_PARTIAL,
    LDS_UNALIGNED_BASE,
    MISALIGNED,
    NOWHERE,
    PAST_END,
    PRIVATE,
    SWIZZLED,
    TRAP,
    WAVE_SIZE,
    Worker,
)
from flylab.errors import Check, DeviceError, OutOfBounds

if TYPE_CHECKING:
    from flylab.emulator.execution.geometry import Dims, Geometry

CHECK_TRAP = 2  # LLVM's `llvm.trap` is an s_trap 2
# Where the compiler knew the size of private memory, and where it did not.
INDEX_HINTS = ("an index into memory of the thread's own is outside of it",
               "a recursion is too deep, an array of dynamic size too long, or an index outside of its array")
ALIGN_HINT = "begin at a multiple of what is moved at once: two Float16 at an even element, from an aligned array"
MISALIGNMENTS = (LDS_UNALIGNED_BASE, LDS_MISALIGNED, MISALIGNED)


def coordinates(number: int, shape: Dims) -> Dims:
    """A flat number as (x, y, z), x fastest.

    >>> coordinates(7, (4, 2, 1))
    (3, 1, 0)
    """
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])


def fault_error(kernel: IsaKernel, geometry: Geometry, worker: Worker, number: int,
                given: Sequence[Buffer], own: Sequence[Buffer], checks: Sequence[Check] = ()) -> DeviceError:
    """The error for the fault that a worker met at instruction `number`.

    `given` is the memory of the kernel's arguments, `own` what the device adds, `checks` what its traps stand for.
    """
    if worker.fault_kind == PAST_END:
        return DeviceError(f"kernel '{kernel.name}' runs past its last instruction",
                           hint="it needs an s_endpgm at its end")
    instruction = kernel.instructions[number]
    where = source_line(kernel, instruction)
    block = coordinates(worker.group, geometry.grid)
    # A trap shows M0, where a check leaves its number and the lane: `flylab/passes/checks.py`.
    which, lane = divmod(worker.fault_size, WAVE_SIZE)
    checked = worker.fault_kind == TRAP and worker.fault_address == CHECK_TRAP and which < len(checks)
    thread = coordinates(worker.wave * WAVE_SIZE + (lane if checked else worker.fault_lane), geometry.block)
    if checked:
        check: Check = checks[which]
        return check.failed(f"\n    in block {block}, thread {thread} of kernel '{kernel.name}'", where)
    place = f"\n    in block {block}, thread {thread} of kernel '{kernel.name}', at {described(instruction)}"
    if worker.fault_kind == TRAP:
        return DeviceError(f"the kernel trapped (code {worker.fault_address}){place}", where=where)
    if worker.fault_kind == DESCRIPTOR:
        return DeviceError(f"the four registers are no buffer descriptor, or one with a swizzle and used without an "
                           f"index{place}", where=where,
                           hint="make it with llvm.amdgcn.make.buffer.rsrc; fx.rocdl.make_buffer_tensor does")
    if worker.fault_kind == SWIZZLED:
        return DeviceError(f"an access of {worker.fault_size} bytes at byte {worker.fault_address} of a record reaches "
                           f"over the 4 bytes that lie together in a swizzled buffer{place}", where=where)
    if worker.fault_kind == BAD_FORMAT:
        what = f"store {worker.fault_size} components to" if "_store_" in instruction.mnemonic else "read"
        return DeviceError(f"the device cannot {what} the format {names(worker.fault_address)}{place}", where=where,
                           hint="a store needs all components of its format, and no floats of 10 or 11 bits")
    if worker.fault_kind in MISALIGNMENTS:
        return DeviceError(_misaligned(worker, instruction) + place, where=where, hint=ALIGN_HINT)
    if worker.fault_kind == NOWHERE:
        what = f"a jump to an address that is no instruction of the kernel, {worker.fault_address:#x}"
        return DeviceError(what + place, where=where)
    if worker.fault_kind == PRIVATE:
        offset = ctypes.c_int64(worker.fault_address).value
        hint = INDEX_HINTS[kernel.descriptor.get("uses_dynamic_stack", 0)]
        return OutOfBounds(f"an access of {worker.fault_size} bytes at byte {offset} of the "
                           f"thread's private memory, which has {kernel.scratch_bytes}{place}", where=where, hint=hint)
    if worker.fault_kind == LDS_OUTSIDE:
        what, hint = _outside_lds(kernel, geometry, worker, launched=where is not None)
        return OutOfBounds(what + place, where=where, hint=hint)
    if worker.fault_kind == LDS_PARTIAL:
        return DeviceError(f"a transposing read in which only some lanes of a group of {worker.fault_size} are active"
                           f"{place}", where=where, hint="the lanes exchange what they read, so all must take part")
    if worker.fault_kind == CLAMPED:
        what, hint = cut_off(worker.fault_address, worker.fault_size, worker.fault_base, instruction, [*given, *own])
        return OutOfBounds(what + place, where=where, hint=hint)
    what, hint = outside(kernel, worker.fault_address, worker.fault_size, instruction, given, own)
    return OutOfBounds(what + place, where=where, hint=hint)


def _misaligned(worker: Worker, instruction: Instruction) -> str:
    """What an access did whose address is no multiple of what it must be."""
    size, address = worker.fault_size, worker.fault_address
    if worker.fault_kind == LDS_UNALIGNED_BASE:
        return f"M0 and the offset make byte {address} of LDS, which is no multiple of 4"
    if worker.fault_kind == LDS_MISALIGNED:
        return f"an atomic of {size} bytes at byte {address} of LDS, which is no multiple of {size}"
    if "_atomic_" in instruction.mnemonic:
        return f"an atomic of {size} bytes at address {address:#x}, which is no multiple of {size}"
    return f"a scalar load of {size} bytes from address {address:#x}, which is no multiple of 4"


def _outside_lds(kernel: IsaKernel, geometry: Geometry, worker: Worker, launched: bool) -> tuple[str, str]:
    """What an access of LDS beyond the workgroup's bytes did wrong, and a hint; `launched` by a launcher, whose kernel
    has source lines, and not as assembly."""
    total = geometry.lds_bytes(kernel)
    has = f"{total} bytes ({kernel.lds_bytes} static + {geometry.shared} dynamic)" if total else "none"
    if launched:
        hint = "an index into LDS is too large or negative, or more is needed: " + (
            "a larger smem= of the launch" if geometry.shared else "allocate a larger array")
    else:
        hint = ("an index into LDS is too large or negative, or more dynamic LDS is needed: shared="
                if total else "launch it with dynamic LDS: shared= is its number of bytes")
    return f"an LDS access of {worker.fault_size} bytes at byte {worker.fault_address}, the workgroup has {has}", hint


def described(instruction: Instruction) -> str:
    """An instruction as errors name it: its text, its place in the code and in the listing."""
    return f"'{instruction.text}' (byte {instruction.address:#x}, ISA line {instruction.isa_line})"
