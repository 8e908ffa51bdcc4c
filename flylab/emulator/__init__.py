"""The software device: executes AMDGPU assembly of gfx942 and gfx950, instruction by instruction, on this machine.

    program = Program.from_assembly(text)
    report = program.launch(grid=16, block=256, args=[a, b, c])

Each instruction of the operation table (`instructions/`) becomes a handler, generated as LLVM IR and compiled for the
host on first use; a kernel is an array of records, and each handler ends by jumping to the next record's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flylab.emulator.arrays import Buffer
    from flylab.emulator.execution.run import Report
    from flylab.emulator.program import Program

__all__ = ["Buffer", "Program", "Report"]
_HOMES = {"Buffer": "arrays", "Program": "program", "Report": "execution.run"}


def __getattr__(name: str) -> Any:
    """Imports a part on first use, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
