"""Errors of accesses outside of the memory that a kernel was given: which array is meant, which element, and a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.arrays import FIRST_ADDRESS, Buffer, View

# Bytes within which an access is next to a buffer, and from which it is far from it.
NEAR, FAR = 4096, 1 << 32
# Hidden arguments that point to what only a runtime has (`fill_hidden` leaves them null), and what needs them.
LEFT_NULL = {"hidden_hostcall_buffer": "printf and assert", "hidden_printf_buffer": "printf",
             "hidden_heap_v1": "malloc"}
DESCRIPTOR_HINT = "its buffer descriptor is longer than the array: make the descriptor with the array's size"
# By whether the instruction comes from a line of source.
OUTSIDE_HINTS = ("use buffer instructions, which read 0 beyond their descriptor's size and drop writes",
                 "compare the index with the tensor's shape first, in an if, or see the tensor through "
                 "fx.rocdl.make_buffer_tensor, which reads 0 outside and drops writes")
# By whether the descriptor asks for the arguments' address.
NULL_HINTS = ("the kernel's descriptor does not ask for its arguments: .amdhsa_user_sgpr_kernarg_segment_ptr 1",
              "an array argument is None, or its pointer was not passed on")
EMPTY_HINT = "launch only where there is data"
ADDRESS_HINT = "pass the address of memory: 0 is that of none"
HOLE_HINT = "step by the strides of the view, or pass a contiguous copy of it"
CUT_HINT = 'mask the access; check="auto" counts it as clamped and lets it be'


def outside(kernel: IsaKernel, address: int, size: int, instruction: Instruction, given: Sequence[Buffer],
            own: Sequence[Buffer]) -> tuple[str, str]:
    """What an access that lies in no buffer did wrong, and a hint."""
    access = _access(address, size, instruction)
    if address < FIRST_ADDRESS:
        empty = [b for b in given if not b.nbytes and b.start < FIRST_ADDRESS]
        if empty and empty[0].view is not None and not empty[0].view.shape:
            return f"{access}: '{empty[0].name}' is a null pointer", ADDRESS_HINT
        if empty:
            return f"{access} is out of bounds: '{empty[0].name}' is empty", EMPTY_HINT
        return f"{access}: a null pointer", _null_hint(kernel)
    given = [*given, *(replace(b, window=0) for b in given if b.window)]
    for buffer in (*given, *own) if _writes(instruction) else ():
        if not buffer.writable and _distance(buffer, address, size) == 0:
            hint = "pass a writable array, or a copy of it" if buffer in given else "store to an array argument"
            return f"{access} lies in '{buffer.name}', which is read-only", hint
    # What the device adds is named where an access is next to it; a wild address is told by the user's arrays alone.
    candidates = [*given, *(b for b in own if _distance(b, address, size) < NEAR)]
    if not candidates:
        return f"{access}, and the kernel was given no memory", "pass the arrays it touches"
    nearest = min(candidates, key=lambda b: (_distance(b, address, size), b.nbytes > 0))
    if not nearest.nbytes:
        return f"{access} is out of bounds: '{nearest.name}' is empty", EMPTY_HINT
    if _distance(nearest, address, size) >= FAR:
        return (f"{access} is far from all memory that the kernel was given: {_beyond(nearest, address, size)} of "
                f"'{nearest.name}', the nearest",
                "look at how the address comes about: an offset too large, negative, or of no pointer at all")
    hint = "launch no more threads than there is data, or " + OUTSIDE_HINTS[instruction.source is not None]
    if instruction.mnemonic.startswith(("buffer_", "tbuffer_")):
        hint = DESCRIPTOR_HINT
    if not _distance(nearest, address, size):
        hint = HOLE_HINT
    if nearest in own:
        hint = "look at the offset; what a launch adds has the size that the descriptor or the section gives it"
    return f"{access} is out of bounds: {_told(nearest, address, size)}", hint


def cut_off(address: int, size: int, base: int, instruction: Instruction,
            buffers: Sequence[Buffer]) -> tuple[str, str]:
    """What a buffer access did that its descriptor, which begins at the address `base`, cuts off, and a hint."""
    access = f"{_access(address, size, instruction)} is cut off by its buffer descriptor"
    meant = [b for b in buffers for b in (b, replace(b, window=0)) if b.start <= base < b.end]
    return (f"{access}: {_told(meant[0], address, size)}" if meant else access), CUT_HINT


def _writes(instruction: Instruction) -> bool:
    return "_store_" in instruction.mnemonic or "_atomic_" in instruction.mnemonic


def _access(address: int, size: int, instruction: Instruction) -> str:
    return f"a {'write' if _writes(instruction) else 'read'} of {size} byte{'s' * (size != 1)} at address {address:#x}"


def _null_hint(kernel: IsaKernel) -> str:
    """What a kernel that reads at a null pointer may lack."""
    absent = [f"{arg.kind} ({LEFT_NULL[arg.kind]} of the runtime)" for arg in kernel.args if arg.kind in LEFT_NULL]
    hint = NULL_HINTS[kernel.descriptor.get("user_sgpr_kernarg_segment_ptr", 0)]
    return f"{hint}; the device leaves null {', '.join(absent)}" if absent else hint


def _told(buffer: Buffer, address: int, size: int) -> str:
    """Where an access lies beside a buffer or within it, with the element that it would have been."""
    view = buffer.view
    what = f"'{buffer.name}' ({view if view else f'{buffer.nbytes} bytes'})"
    at = next((n for n in range(address - buffer.start, address + size - buffer.start)
               if not 0 <= n < buffer.nbytes or view and not view.holds(n)), None)
    if at is None:
        return f"it is within {what}"
    how = f"{_beyond(buffer, address, size)} of" if _distance(buffer, address, size) else "between the elements of"
    return f"{how} {what}{element_at(view, at) if view else ''}"


def element_at(view: View, at: int) -> str:
    """The element that byte `at` of an array would belong to, and where it is too far along; "" without strides.

    >>> element_at(View((4, 5), (20, 4), 4), 88), element_at(View((3,), (8,), 4), 4)
    (', at element (4, 2), and dimension 0 has 4', ', 4 bytes after the start of element 0')
    """
    if not any(view.strides):
        return ""
    index, rest = view.index(at)
    shown = index[0] if len(index) == 1 else index
    beyond = [f"dimension {n} has {extent}" for n, extent in enumerate(view.shape) if not 0 <= index[n] < extent]
    if not beyond:
        return f", {rest} bytes after the start of element {shown}"
    return f", at element {shown}, and {' and '.join(beyond)}"


def _beyond(buffer: Buffer, address: int, size: int) -> str:
    """Where an access lies that is not within a buffer."""
    if address < buffer.start:
        return f"{buffer.start - address} bytes before the start"
    if address > buffer.end:
        return f"{address - buffer.end} bytes after the end"
    if address == buffer.end:
        return "right after the end"
    return f"its last {address + size - buffer.end} bytes are after the end"


def _distance(buffer: Buffer, address: int, size: int) -> int:
    """How many bytes an access is away from a buffer; 0 where it is within what the buffer spans."""
    return max(buffer.start - address, address + size - buffer.end, 0)
