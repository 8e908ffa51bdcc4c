"""The text of a debugger: where it stands, the next instruction, and what the last one did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flylab.emulator.decoding.decode import source_line
from flylab.emulator.linking import END_OF_FUNCTION
from flylab.emulator.state import WAVE_SIZE
from flylab.places import SourceLine
from flylab.shown import Text

if TYPE_CHECKING:
    from flylab.codegen.isa import Instruction, IsaKernel
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


def listing(kernel: IsaKernel, now: Instruction | None, around: int) -> Text:
    """Instructions with their lines; of those that follow each other from one line, the first has it."""
    middle = now.index if now else 0
    shown = [i for i in kernel.instructions if abs(i.index - middle) <= around and i.mnemonic != END_OF_FUNCTION]
    width = max(len(i.text.strip()) for i in shown)
    several = len({i.source[0] for i in kernel.instructions if i.source}) > 1
    rows, before = [], None
    for instruction in shown:
        line = source_line(kernel, instruction)
        said = ""
        if line and _key(line) != before:
            said = f"  {f'{line.name}, ' * several}line {line.line}: {line.text.strip()}"
        before = _key(line) if line else before
        arrow = "->" if instruction is now else "  "
        rows.append(f"{arrow} {instruction.index:4}  {instruction.text.strip():{width}}{said}".rstrip())
    return Text("\n".join(rows))


def _key(line: SourceLine) -> tuple[str, int]:
    return line.file, line.line


def _next(debugger: Debugger) -> list[str]:
    instruction, line = debugger.instruction, debugger.line
    if instruction is None or line is None:
        return ["it has ended"]
    active = debugger.exec.bit_count()
    lanes = "all lanes" if active == WAVE_SIZE else f"{active} lane{'s' * (active != 1)}"
    waits = " (it waits at the barrier before)" if debugger.at_barrier else ""
    return [f"next: {instruction.index}  {instruction.text}  (byte {instruction.address:#x}){waits}",
            *str(line).split("\n"), f"exec {debugger.exec:#018x}: {lanes}"]
