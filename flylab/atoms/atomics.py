"""Atomic operations on memory that a chip does with one instruction: a table of operations, formats and spaces.

Source: the CDNA3 and CDNA4 ISA documents (opcodes of BUFFER, GLOBAL and DS atomics), and what LLVM 22 selects for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flylab.dtypes import DType, dtype_text
from flylab.targets import TARGETS

SCOPES = ("", "agent", "workgroup", "wavefront", "singlethread") + tuple(
    f"{scope}one-as" for scope in ("", "agent-", "workgroup-", "wavefront-", "singlethread-")
)
"""Who sees an atomic operation in order: LLVM's names for AMD's chips, "" for the whole system."""


class AtomicOp(Enum):
    """What an atomic operation does to the element in memory; `Inc` and `Dec` wrap: x >= n gives 0, and x = 0 or x > n
    gives n, compared as unsigned."""

    Add = "add"
    Max = "max"
    Min = "min"
    And = "and"
    Or = "or"
    Inc = "inc"
    Dec = "dec"
    Sub = "sub"
    Xor = "xor"


class AtomicOrdering(Enum):
    """How an atomic operation is ordered with other accesses of its thread: LLVM's names."""

    NotAtomic = "not_atomic"
    Unordered = "unordered"
    Monotonic = "monotonic"
    Acquire = "acquire"
    Release = "release"
    AcqRel = "acq_rel"
    SeqCst = "seq_cst"


@dataclass(frozen=True)
class Atomic:
    """One operation: what it does, to one element or to `lanes` of them side by side, and who sees it in order.

    >>> from flylab.dtypes import DTYPES
    >>> print(Atomic(AtomicOp.Add, DTYPES["Float16"], 2))
    add, vector<2xf16>
    """

    op: AtomicOp
    dtype: DType
    lanes: int = 1
    scope: str = ""

    @property
    def value(self) -> str:
        """The format of what it combines, as its text has it."""
        element = dtype_text(self.dtype)
        return element if self.lanes == 1 else f"vector<{self.lanes}x{element}>"

    def __str__(self) -> str:
        return f"{self.op.value}, {self.value}" + (f", {self.scope}" if self.scope else "")

    def chips(self, space: str) -> tuple[str, ...]:
        """The chips that have an instruction for it in a memory space.

        >>> from flylab.dtypes import DTYPES
        >>> Atomic(AtomicOp.Add, DTYPES["BFloat16"], 2).chips("buffer")
        ('gfx950',)
        """
        return CHIPS.get((self.op, self.dtype.name, self.lanes, space), ())


SPACES = ("global", "buffer", "shared")
_BOTH = tuple(TARGETS)
_INTEGERS = ("Int32", "Uint32", "Int64", "Uint64")
_ADD, _EXTREMES = (AtomicOp.Add,), (AtomicOp.Max, AtomicOp.Min)
# Operations, formats, elements side by side, spaces, chips.
_ROWS: tuple[tuple[tuple[AtomicOp, ...], tuple[str, ...], int, tuple[str, ...], tuple[str, ...]], ...] = (
    (tuple(AtomicOp), _INTEGERS, 1, SPACES, _BOTH),
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
