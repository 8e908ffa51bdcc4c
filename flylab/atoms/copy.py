"""Copy atoms: one row for each copy that one thread does with one instruction.

A copy operation moves `bits` consecutive bits between memory and registers. An atom is an operation on elements of one
number format. Source: the CDNA3 and CDNA4 ISA documents, chapters on global and buffer memory instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flylab.dtypes import DTYPES, DType
from flylab.errors import LayoutError
from flylab.layout import Layout, size


@dataclass(frozen=True)
class CopyOp:
    """A row: the family, the bits moved by one thread, and the memory spaces that it can reach."""

    family: str
    bits: int
    spaces: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.family}<{self.bits}>"


COPY_OPS = {
    (family, bits): CopyOp(family, bits, spaces)
    for family, spaces in (("universal_copy", ("global", "buffer", "shared", "register")), ("buffer_copy", ("buffer",)))
    for bits in (8, 16, 32, 64, 128)
}


def copy_op(family: str, bits: int) -> CopyOp:
    """The row of a copy operation.

    >>> print(copy_op("universal_copy", 128))
    universal_copy<128>

    Raises `LayoutError` for a width that no instruction has.
    """
    try:
        return COPY_OPS[family, bits]
    except (KeyError, TypeError):
        widths = ", ".join(str(b) for f, b in COPY_OPS if f == family)
        raise LayoutError(
            f"no {family} of {bits!r} bits",
            hint=f"a thread copies {widths} bits at a time; "
            "for more, copy a tensor whose first mode is several atoms wide",
        ) from None


@dataclass(frozen=True)
class CopyAtom:
    """A copy operation on elements of one format.

    >>> atom = CopyAtom(copy_op("universal_copy", 128), DTYPES["Float32"])
    >>> atom.num_values, str(atom.layout_src_tv)
    (4, '(1,4):(0,1)')
    """

    op: CopyOp
    dtype: DType

    def __post_init__(self) -> None:
        if self.op.bits % self.dtype.bits:
            raise LayoutError(
                f"a copy of {self.op.bits} bits does not hold whole {self.dtype} elements of {self.dtype.bits} bits",
                hint=f"use a multiple of {self.dtype.bits} bits",
            )
        for tv in (self.layout_src_tv, self.layout_dst_tv):
            if sorted(tv(i) for i in range(size(tv))) != list(range(self.num_values)):
                raise LayoutError(f"{self}: {tv} does not cover the {self.num_values} values once each")

    @property
    def num_values(self) -> int:
        """Elements that one thread moves."""
        return self.op.bits // self.dtype.bits

    @property
    def layout_src_tv(self) -> Layout:
        """(thread, value) -> element, on the source side: one thread, consecutive values."""
        return Layout((1, self.num_values), (0, 1))

    @property
    def layout_dst_tv(self) -> Layout:
        """(thread, value) -> element, on the destination side."""
        return self.layout_src_tv

    def __str__(self) -> str:
        return f"{self.op}, {self.dtype}"

    @classmethod
    def parse(cls, text: str) -> CopyAtom:
        """An atom from its text, as it stands in the IR.

        >>> CopyAtom.parse("buffer_copy<32>, Float32").op.spaces
        ('buffer',)
        """
        match = re.fullmatch(r"(\w+)<(\d+)>, (\w+)", text)
        if not match or match[3] not in DTYPES:
            raise LayoutError(f"{text!r} is no copy atom")
        return cls(copy_op(match[1], int(match[2])), DTYPES[match[3]])
