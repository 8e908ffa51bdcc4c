"""The beginning of a debugger: copies of the arguments, the workgroups before, and the one to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flylab.codegen.isa import IsaKernel
from flylab.emulator.arguments import pack, whole
from flylab.emulator.arrays import Buffer
from flylab.emulator.debugger.copies import Copies
from flylab.emulator.debugger.debugger import Debugger
from flylab.emulator.debugger.session import Session
from flylab.emulator.execution.faults import coordinates
from flylab.emulator.execution.geometry import Dims, Geometry
from flylab.emulator.execution.run import Run, finished
from flylab.emulator.watch import UNWATCHED, watched
from flylab.errors import DebugError, DeviceError

if TYPE_CHECKING:
    from flylab.emulator.program import Program


def debug(program: Program, kernel: IsaKernel, grid: int | Sequence[int], block: int | Sequence[int],
          args: Sequence[Any], shared: int, at_block: int | Sequence[int], check: Any,
          room: int) -> Debugger:
    """What `Program.debug` does."""
    segment, buffers, shared = pack(kernel, args, shared)
    geometry = Geometry.of(kernel, grid, block, shared)
    return begin(program, kernel.name, geometry, segment, Copies(buffers), at_block, check, room)


def begin(program: Program, kernel: str, geometry: Geometry, segment: bytes, copies: Copies,
          at_block: int | Sequence[int], check: Any, room: int, own: Sequence[Buffer] = (),
          printed: Callable[[], str] | None = None) -> Debugger:
    """A debugger of a launch with packed arguments, on copies of its arrays."""
    group, room = _group(at_block, geometry.grid), whole("room", room)
    watch = watched(check, False, False, geometry.threads * geometry.workgroups)
    if any(section.writable and section.size for section in program.isa.sections.values()):
        program = program.copy()  # its data is not that of other launches
    if group:
        before = program.prepare(kernel, geometry, segment, copies.buffers, own, UNWATCHED, 1)
        _run_before(before, group)
    run = program.prepare(kernel, geometry, segment, copies.buffers, own, watch, 1)
    writable = [b for b in (*run.given, *run.own) if b.writable and b.nbytes > 0]
    return Debugger(Session(program, run, group, writable, room), copies.arrays(), printed)


def _run_before(before: Run, group: int) -> None:
    """Runs the workgroups before one. Raises `DebugError` where they wait for it, or for one after it."""
    before.launch.total = group
    try:
        finished(before)
    except DeviceError as error:
        if not before.residents.still:
            raise
        block = coordinates(group, before.geometry.grid)
        raise DebugError(f"the blocks before block {block} do not end without it and those after it: {error.message}",
                         where=error.where, hint="the debugger runs one block after the other; at_block=0 begins at "
                         "the first") from error


def _group(at_block: int | Sequence[int], grid: Dims) -> int:
    """The number of a workgroup from its number or coordinates."""
    if not isinstance(at_block, list | tuple):
        group, total = whole("at_block", at_block), grid[0] * grid[1] * grid[2]
        if not 0 <= group < total:
            raise DebugError(f"there is no block {group}: the grid has {total}", hint=f"at_block is 0 to {total - 1}")
        return group
    place = tuple(whole("at_block", n) for n in at_block)
    if not 1 <= len(place) <= 3 or any(not 0 <= n < extent for n, extent in zip(place, grid, strict=False)):
        raise DebugError(f"there is no block {place}: the grid is {grid}",
                         hint="at_block is its number, or (x, y, z)")
    x, y, z = (*place, 0, 0)[:3]
    return (z * grid[1] + y) * grid[0] + x
