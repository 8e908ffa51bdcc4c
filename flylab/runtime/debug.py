"""The debugger on a launch: `flylab.debug(launch, A, B)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flylab.compiler.jit import Launcher
from flylab.emulator.debugger.begin import begin
from flylab.emulator.debugger.copies import Copies
from flylab.emulator.debugger.debugger import Debugger
from flylab.emulator.execution.geometry import Geometry
from flylab.emulator.watch import AUTO
from flylab.emulator.windows import PRINTED
from flylab.errors import ArgumentError, DebugError
from flylab.passes.host import Launch
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import EMULATED, current
from flylab.runtime.emulated import Reached, SoftwareDevice, buffers_of, own_buffers
from flylab.runtime.finding import find
from flylab.runtime.launch import bound_to, launches, operands, placed
from flylab.runtime.packing import packed
from flylab.runtime.printing import PrintBuffer
from flylab.runtime.watching import asked
from flylab.shown import a_kind

# Bytes for what a kernel prints under the debugger, which are part of its snapshots.
MOST_PRINTED = 1 << 20


def debug(launcher: Launcher, /, *args: Any, kernel: str | int = 0, at_block: int | Sequence[int] = 0,
          check: Any = AUTO, room: int = 32 << 20, **named: Any) -> Debugger:
    """A debugger at the start of a workgroup of what a launcher launches, on copies of its arrays.

        dbg = flylab.debug(launch, A, B, at_block=(1, 0, 0))
        dbg.run_to(line=12)
        dbg.back()

    `kernel` is the launch to look at, its number or the kernel's name; those before it run first. `at_block` is the
    workgroup, its number or (x, y, z); those before it run first, too. `check` is as for `flylab.watch`, whose choice
    holds where it is "auto"; `room` are the bytes that snapshots may take.
    Raises what the launch raises on the way there, and `DebugError` for a launch or a workgroup that is not there, or
    on another device than the software device.
    """
    if not isinstance(launcher, Launcher):
        raise ArgumentError(f"a launcher is needed, and {a_kind(launcher)} was given",
                            hint="pass the @flyc.jit function that launches the kernel, then its arguments")
    device = current()
    if device.kind != EMULATED:
        raise DebugError(f"the debugger is one of the software device, and this is {device}",
                         hint='choose it with flylab.use("emulated")')
    bound = bound_to(launcher, args, named)
    compiled, copies, seen = find(launcher, bound, device), Copies(buffers_of(bound)), list[str]()
    held = Reached(copies.buffers)
    for number, launch in enumerate(launches(compiled, operands(bound, held.pointers))):
        if kernel in (number, launch.kernel, compiled.functions[launch.kernel].name):
            check = asked().check if check == AUTO else check
            return _begin(compiled, launch, copies, (at_block, check, room))
        seen.append(launch.kernel)
        with placed(compiled, launch):
            SoftwareDevice().launch(compiled, launch, held)
    what = f"launch {kernel}" if isinstance(kernel, int) else f"launch of a kernel '{kernel}'"
    raise DebugError(f"'{launcher.name}' makes no {what}", hint=f"it launches {', '.join(seen) or 'nothing'}")


def _begin(compiled: Compiled, launch: Launch, copies: Copies, options: tuple[Any, Any, int]) -> Debugger:
    grid, block = launch.extents[:3], launch.extents[3:]
    buffer = PrintBuffer(MOST_PRINTED) if launch.prints else None
    with placed(compiled, launch):
        segment, own = packed(compiled, launch, PRINTED), own_buffers(buffer)
        geometry = Geometry.of(compiled.isa.kernels[launch.kernel], grid, block, launch.smem)

        def printed() -> str:
            if not buffer:
                return ""
            text = buffer.text(compiled.lines[launch.kernel], grid, block)
            lost = f"({buffer.lost} more lines: the debugger keeps {buffer.nbytes} bytes of them)\n"
            return text + lost if buffer.lost else text

        return begin(compiled.program, launch.kernel, geometry, segment, copies, *options, own, printed)
