"""Registers by name, as rows of the wave's memory: `v3`, `a0`, `s[4:5]`, `vcc`, `exec`, `scc`, `m0`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flylab.emulator.arguments import shown, whole
from flylab.emulator.state import EXEC, M0, NUMBERED_SGPRS, SCC, VCC
from flylab.errors import DebugError

if TYPE_CHECKING:
    from flylab.emulator.decoding.registers import Registers

# Named scalar registers: their number and how many 32-bit registers they take.
NAMED = {"vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "exec": (EXEC, 2), "exec_lo": (EXEC, 1),
         "exec_hi": (EXEC + 1, 1), "m0": (M0, 1), "scc": (SCC, 1), "flat_scratch": (102, 2), "xnack_mask": (104, 2)}
_NAME = re.compile(r"([vas])(?:(\d+)|\[(\d+):(\d+)\])$")


@dataclass(frozen=True)
class Named:
    """Registers that lie together: `file` is "v" (accumulators, too) or "s", `first` the row or the number there."""

    file: str
    first: int
    count: int


class Names:
    """The registers of one kernel."""

    def __init__(self, registers: Registers):
        self.vectors = min(registers.accumulators, registers.rows)
        self.accumulators = registers.rows - self.vectors

    def find(self, name: str) -> Named:
        """The registers of a name. Raises `DebugError` for one that the kernel has not."""
        if name in NAMED:
            return Named("s", *NAMED[name])
        found = _NAME.match(name) if isinstance(name, str) else None
        if found is None:
            raise DebugError(f"{shown(name)} is no register",
                             hint=f"registers are v0, a0, s0, s[0:1], {', '.join(NAMED)}")
        first = int(found[2] or found[3])
        last = int(found[4] or first)
        if last < first:
            raise DebugError(f"{name} ends before it begins")
        self.checked(found[1], first)
        return Named("s" if found[1] == "s" else "v", self.checked(found[1], last) - (last - first), last - first + 1)

    def checked(self, letter: str, number: int) -> int:
        """The row or number of a register. Raises `DebugError` where the kernel has not so many."""
        number = whole(f"the number of a register {letter}", number)
        count = {"v": self.vectors, "a": self.accumulators, "s": NUMBERED_SGPRS}[letter]
        if not 0 <= number < count:
            which = f"they are {letter}0 to {letter}{count - 1}" if count else f"it has no registers {letter}"
            raise DebugError(f"the kernel has no register {letter}{number}", hint=which)
        return number + (self.vectors if letter == "a" else 0)

    def row_name(self, row: int) -> str:
        """The name of a row of vector registers.

        >>> from types import SimpleNamespace
        >>> Names(SimpleNamespace(rows=16, accumulators=8)).row_name(9)
        'a1'
        """
        return f"v{row}" if row < self.vectors else f"a{row - self.vectors}"


def scalar_name(number: int) -> str:
    """The name of a scalar register by its hardware number.

    >>> scalar_name(5), scalar_name(VCC + 1), scalar_name(SCC)
    ('s5', 'vcc_hi', 'scc')
    """
    if number < NUMBERED_SGPRS:
        return f"s{number}"
    for name, (first, count) in NAMED.items():
        if count == 1 and first == number:
            return name
    return next((f"{name}_{'lo' if number == first else 'hi'}" for name, (first, count) in NAMED.items()
                 if first <= number < first + count), f"scalar {number}")
