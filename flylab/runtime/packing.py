"""The bytes of a kernel's arguments, and the extents of its grid and block."""

from __future__ import annotations

import math
from typing import Any

from flylab.errors import CompileError, TraceError
from flylab.expr.gpu import MAX_GRID
from flylab.passes.host import Launch
from flylab.runtime.arguments import pack_number
from flylab.runtime.compiled import Compiled


def packed(compiled: Compiled, launch: Launch, printed: int = 0) -> bytes:
    """The kernel-argument bytes of a launch whose extents are possible; `printed` is where its lines go, if it prints.

    Raises `TraceError` for extents that are not.
    """
    check_extents(compiled, launch.kernel, launch.extents[:3], launch.extents[3:])
    return _pack(compiled, launch, printed)


def check_extents(compiled: Compiled, kernel: str, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    """Raises `TraceError` for a grid or a block that the hardware does not have, or that the kernel is not for."""
    for axis, extent, threads, most in zip("xyz", grid, block, MAX_GRID, strict=True):
        if not 1 <= extent <= most:
            raise TraceError(
                f"launch of '{kernel}': grid {grid}, extent {axis} must be 1 to {most}",
                hint="check how the launcher computes its grid",
            )
        if extent * threads >= 2**32:
            raise TraceError(
                f"launch of '{kernel}': grid {grid} of blocks {block} has {extent * threads} threads along {axis}, "
                "and the hardware counts them in 32 bits",
                hint="spread the blocks over the axes of the grid, or let a thread do more",
            )
    known = compiled.blocks[kernel]
    if known not in (None, block):
        raise TraceError(
            f"launch of '{kernel}': block {block}, declared known_block_size={known}",
            hint="launch with the declared block, or drop known_block_size",
        )
    threads = math.prod(block)
    if min(block) < 1 or threads > compiled.target.max_workgroup:
        raise TraceError(
            f"launch of '{kernel}': block {block} has {threads} threads",
            hint=f"a block has 1 to {compiled.target.max_workgroup} threads",
        )


def _pack(compiled: Compiled, launch: Launch, printed: int) -> bytes:
    """The kernel-argument bytes, laid out as the code object's metadata says.

    A kernel that prints gets the address `printed` for the launcher's last argument, which it passes on.
    """
    kernel, operands = launch.kernel, launch.operands
    info = compiled.isa.kernels[kernel]
    slots = [a for a in info.args if not a.hidden]
    kinds: list[Any] = compiled.operand_types[kernel]
    if launch.prints:
        kinds, operands = [*kinds, None], (*operands[:-1], printed)
    if len(slots) != len(operands):
        raise CompileError(f"kernel '{kernel}' takes {len(slots)} arguments, the launcher passes {len(operands)}")
    data = bytearray(info.kernarg_size)
    for slot, value, dtype in zip(slots, operands, kinds, strict=True):
        number = value.to_bytes(8, "little") if dtype is None else pack_number(value, dtype)
        data[slot.offset : slot.offset + len(number)] = number
    return bytes(data)
