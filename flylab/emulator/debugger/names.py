"""Registers by name: those that a kernel has, and where they lie among the rows of its wave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flylab.codegen.assembly.registers import NUMBERED_SGPRS, named_registers
from flylab.emulator.arguments import shown, whole
from flylab.errors import DebugError

if TYPE_CHECKING:
    from flylab.emulator.decoding.registers import Registers


@dataclass(frozen=True)
class Named:
    """Registers side by side: of file "v", "a" or "s" (by hardware number)."""

    file: str
    first: int
    count: int


class Names:
    """The registers of one kernel: so many of v0, v1 ... and of a0, a1 ..., whose rows come after those."""

    def __init__(self, registers: Registers):
        self.vectors = min(registers.accumulators, registers.rows)
        self.accumulators = registers.rows - self.vectors

    def find(self, name: str) -> Named:
        """The registers of a name, such as `v3`, `a0`, `s[4:5]`, `vcc`. Raises `DebugError` for none of the kernel."""
        found = named_registers(name) if isinstance(name, str) else None
        if found is None or found[2] < 1:
            raise DebugError(f"{shown(name)} is no register",
                             hint="registers are v0, v[2:3], a0, s0, vcc, exec, scc, m0 and their kin")
        file, first, count = found
        if file != "s" or first < NUMBERED_SGPRS:
            self.checked(file, first)
            self.checked(file, first + count - 1)
        return Named(file, first, count)

    def checked(self, file: str, number: int) -> int:
        """The row or number of a register. Raises `DebugError` where the kernel has not so many."""
        number = whole(f"the number of a register {file}", number)
        count = {"v": self.vectors, "a": self.accumulators, "s": NUMBERED_SGPRS}[file]
        if not 0 <= number < count:
            which = f"they are {file}0 to {file}{count - 1}" if count else f"it has no registers {file}"
            raise DebugError(f"the kernel has no register {file}{number}", hint=which)
        return number + (self.vectors if file == "a" else 0)

    def row_name(self, row: int) -> str:
        """The name of a row of vector registers.

        >>> from types import SimpleNamespace
        >>> Names(SimpleNamespace(rows=16, accumulators=8)).row_name(9)
        'a1'
        """
        return f"v{row}" if row < self.vectors else f"a{row - self.vectors}"
