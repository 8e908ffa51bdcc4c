"""Atomic operations on memory that a chip does with one instruction: a table of operations, formats and spaces.

Source: the CDNA3 and CDNA4 ISA documents (opcodes of BUFFER, GLOBAL and DS atomics), and what LLVM 22 selects for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from flylab.dtypes import DType, dtype_text
from flylab.targets import TARGETS

OPERATIONS = ("add", "max", "min", "and", "or", "inc", "dec", "sub", "xor")
"""What an atomic operation does with the element x in memory, given n. `inc` and `dec` compare as unsigned and wrap:
x + 1, and 0 after n; x - 1, and n after 0 and for what is above n."""

RMW: dict[str, tuple[int, int, int | None]] = {
    "xchg": (0, 0, 0), "add": (1, 1, 11), "sub": (2, 2, 12), "and": (3, 3, None), "or": (5, 5, None),
    "xor": (6, 6, None), "max": (7, 9, 13), "min": (8, 10, 14), "inc": (15, 15, None), "dec": (16, 16, None),
}  # fmt: skip
"""An operation's number for signed and unsigned integers and for floats. Source: MLIR's LLVM dialect, AtomicBinOp."""
OWN_MEMORY = ("rocdl.no_fine_grained_memory", "rocdl.no_remote_memory", "rocdl.ignore_denormal_mode")
"""What says that memory is the GPU's own; without it LLVM makes a loop of compare-and-swap of float operations."""


@dataclass(frozen=True)
class Atomic:
    """One operation: what it does, to one element or to `lanes` side by side, and LLVM's name for who sees it in order.

    >>> from flylab.dtypes import DTYPES
    >>> print(Atomic("add", DTYPES["Float16"], 2))
    add, vector<2xf16>
    """

    op: str
    dtype: DType
    lanes: int = 1
    scope: str = ""

    @property
    def value(self) -> str:
        """The format of what it combines, as its text has it."""
        element = dtype_text(self.dtype)
        return element if self.lanes == 1 else f"vector<{self.lanes}x{element}>"

    def __repr__(self) -> str:
        return f"{self.op}, {self.value}" + (f", {self.scope}" if self.scope else "")

    def chips(self, space: str) -> tuple[str, ...]:
        """The chips that have an instruction for it in a memory space.

        >>> from flylab.dtypes import DTYPES
        >>> Atomic("add", DTYPES["BFloat16"], 2).chips("buffer")
        ('gfx950',)
        """
        return CHIPS.get((self.op, self.dtype.name, self.lanes, space), ())


SPACES = ("global", "buffer", "shared")
_BOTH = tuple(TARGETS)
_INTEGERS = ("Int32", "Uint32", "Int64", "Uint64")
_ADD, _EXTREMES = ("add",), ("max", "min")
# Operations, formats, elements side by side, spaces, chips.
_ROWS: tuple[tuple[tuple[str, ...], tuple[str, ...], int, tuple[str, ...], tuple[str, ...]], ...] = (
    (OPERATIONS, _INTEGERS, 1, SPACES, _BOTH),
    (_ADD, ("Float32", "Float64"), 1, SPACES, _BOTH),
    (_EXTREMES, ("Float64",), 1, SPACES, _BOTH),
    (_EXTREMES, ("Float32",), 1, ("shared",), _BOTH),
    (_ADD, ("Float16",), 2, SPACES, _BOTH),
    (_ADD, ("BFloat16",), 2, ("global", "shared"), _BOTH),
    (_ADD, ("BFloat16",), 2, ("buffer",), ("gfx950",)),
)
CHIPS = {
    (op, dtype, lanes, space): chips
    for ops, dtypes, lanes, spaces, chips in _ROWS
    for op in ops
    for dtype in dtypes
    for space in spaces
}
"""The chips that have (operation, format, elements side by side, space)."""
