"""The text of a debugger: where it stands, the next instruction, and what the last one did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flylab.emulator.state import WAVE_SIZE

if TYPE_CHECKING:
    from flylab.emulator.debugger.debugger import Debugger


def described(debugger: Debugger) -> str:
    """Where a debugger stands, in a few lines."""
    head = (f"block {debugger.block}, wave {debugger.wave} of kernel '{debugger.kernel}' at time {debugger.time} "
            f"(step {debugger.steps} of the wave)")
    lines = [head, *(f"    {text}" for text in _next(debugger))]
    if debugger.steps:
        lines += ["the last instruction changed", *(f"    {text}" for text in str(debugger.changes()).split("\n"))]
    if (error := debugger.error) is not None:
        lines += ["stopped before an error:", *(f"    {text}" for text in str(error).split("\n"))]
    if found := debugger.findings:
        more = [f"and {len(found) - 1} more in findings"] if len(found) > 1 else []
        lines += ["the checks have found", *(f"    {text}" for text in [*found[0].message.split("\n"), *more])]
    return "\n".join(lines)


def _next(debugger: Debugger) -> list[str]:
    instruction, line = debugger.instruction, debugger.line
    if instruction is None or line is None:
        return ["it has ended"]
    active = debugger.exec.bit_count()
    lanes = "all lanes" if active == WAVE_SIZE else f"{active} lane{'s' * (active != 1)}"
    waits = " (it waits at the barrier before)" if debugger.at_barrier else ""
    return [f"next: {instruction.index}  {instruction.text}  (byte {instruction.address:#x}){waits}",
            *str(line).split("\n"), f"exec {debugger.exec:#018x}: {lanes}"]
