"""Errors of a running kernel, in the user's terms: which thread of which block, which line and array, how far off."""

from __future__ import annotations

from collections.abc import Sequence

from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.arguments import Buffer
from flylab.emulator.decode import source_line
from flylab.emulator.run import Dims, Geometry
from flylab.emulator.state import DESCRIPTOR, MISALIGNED, PAST_END, TRAP, WAVE_SIZE, Worker
from flylab.errors import DeviceError, OutOfBounds


def coordinates(number: int, shape: Dims) -> Dims:
    """A flat number as (x, y, z), x fastest.

    >>> coordinates(7, (4, 2, 1))
    (3, 1, 0)
    """
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])


def fault_error(kernel: IsaKernel, geometry: Geometry, worker: Worker, number: int,
                buffers: Sequence[Buffer]) -> DeviceError:
    """The error for the fault that a worker met at instruction `number`."""
    if worker.fault_kind == PAST_END:
        return DeviceError(f"kernel '{kernel.name}' runs past its last instruction",
                           hint="it needs an s_endpgm at its end")
    instruction = kernel.instructions[number]
    where = source_line(kernel, instruction)
    block = coordinates(worker.group, geometry.grid)
    thread = coordinates(worker.wave * WAVE_SIZE + worker.fault_lane, geometry.block)
    place = f"\n    in block {block}, thread {thread} of kernel '{kernel.name}', at {_described(instruction)}"
    if worker.fault_kind == TRAP:
        return DeviceError(f"the kernel trapped (code {worker.fault_address}){place}", where=where)
    if worker.fault_kind == DESCRIPTOR:
        return DeviceError(f"the buffer descriptor has a stride or swizzle, and only raw ones are supported{place}",
                           where=where)
    if worker.fault_kind == MISALIGNED:
        return DeviceError(f"a scalar load of {worker.fault_size} bytes from address {worker.fault_address:#x}, "
                           f"which is no multiple of 4{place}", where=where)
    what, hint = _outside(worker.fault_address, worker.fault_size, instruction, buffers)
    return OutOfBounds(what + place, where=where, hint=hint)


def _described(instruction: Instruction) -> str:
    return f"'{instruction.text}' (byte {instruction.address:#x}, ISA line {instruction.isa_line})"


def _outside(address: int, size: int, instruction: Instruction, buffers: Sequence[Buffer]) -> tuple[str, str]:
    """What an access that lies in no buffer did wrong, and a hint."""
    writes = "_store_" in instruction.mnemonic
    verb = "write" if writes else "read"
    access = f"a {verb} of {size} bytes at address {address:#x}"
    if address < 4096:
        return f"{access}: a null pointer", "an array argument is None, or its pointer was not passed on"
    held = [b for b in buffers if b.address <= address and address + size <= b.end]
    if writes and held:
        return f"{access} lies in '{held[0].name}', which is read-only", "pass a writable array, or a copy of it"
    if not buffers:
        return f"{access}, and the kernel was given no memory", "pass the arrays it touches"
    nearest = min(buffers, key=lambda b: _distance(b, address, size))
    if address < nearest.address:
        how = f"{nearest.address - address} bytes before the start"
    elif address > nearest.end:
        how = f"{address - nearest.end} bytes after the end"
    elif address == nearest.end:
        how = "right after the end"
    else:
        how = f"its last {address + size - nearest.end} bytes are after the end"
    return (f"{access} is out of bounds: {how} of '{nearest.name}' ({nearest.nbytes} bytes)",
            "launch no more threads than there is data, or see the tensor through fx.rocdl.make_buffer_tensor, "
            "which reads 0 outside and drops writes")


def _distance(buffer: Buffer, address: int, size: int) -> int:
    """How many bytes an access is away from a buffer."""
    return max(buffer.address - address, address + size - buffer.end, 0)
