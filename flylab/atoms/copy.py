"""Copy atoms: the copies that one thread, or a group of 16, does with one instruction, as rows of checked data.

A copy operation moves `bits` consecutive bits for each thread between two memory spaces. An atom is an operation on
elements of one number format; its thread-value layouts map (thread, value) to an element of what all its threads move.

Source: the CDNA3 and CDNA4 ISA documents, chapters on global, buffer and LDS instructions. How `lds_read_trans`
transposes is derived from published code and was not tried on a chip.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from flylab.atoms.atomics import SPACES, Atomic
from flylab.dtypes import DTYPE_OF_TEXT, DType, dtype_text
from flylab.errors import LayoutError
from flylab.layout import Layout, size
from flylab.targets import TARGETS

UNIVERSAL_COPY = "fly.universal_copy"
BUFFER = "fly_rocdl.cdna3.buffer_copy"
BUFFER_LDS = "fly_rocdl.cdna3.buffer_copy_lds"
BUFFER_ASYNC_LDS = "fly_rocdl.cdna4.buffer_load_async_lds"
GLOBAL_ASYNC_LDS = "fly_rocdl.cdna4.global_load_async_lds"
LDS_TRANS = "fly_rocdl.cdna4.lds_read_trans"
BUFFER_ATOMIC = "fly_rocdl.cdna3.buffer_atomic"
UNIVERSAL_ATOMIC = "fly.universal_atomic"
"""The families, as their operations print."""

MOST_BITS = 512 * 32
"""A thread has 512 registers of 32 bits."""
CACHE_BITS = {1: "sc0", 2: "nt", 16: "sc1"}
"""The bits of a cache modifier, as buffer instructions have them on both chips."""
GROUP = 16
"""The threads that transpose together."""

_MEMORY = ("register", "global", "buffer", "shared")
_BOTH, _GFX950 = tuple(TARGETS), ("gfx950",)
Widths = Mapping[tuple[int, int], tuple[str, ...]]


@dataclass(frozen=True)
class Family:
    """A row: what a user calls it, the memory spaces that it moves from and to, and the chips that have each width.

    A width is (granularity of a transposing read, or 0; bits). None stands for every whole number of bytes, on all.
    """

    call: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    widths: Widths | None = field(default=None, hash=False)


_BUFFER_WIDTHS = {(0, bits): _BOTH for bits in (8, 16, 32, 64, 96, 128)}
_TO_LDS = {(0, 32): _BOTH, (0, 96): _GFX950, (0, 128): _GFX950}
_TRANSPOSED = dict.fromkeys([(4, 64), (8, 64), (16, 64), (6, 96)], _GFX950)
FAMILIES: dict[str, Family] = {
    UNIVERSAL_COPY: Family("fx.UniversalCopy", _MEMORY, _MEMORY),
    BUFFER: Family("fx.rocdl.BufferCopy", ("buffer", "register"), ("buffer", "register"), _BUFFER_WIDTHS),
    BUFFER_LDS: Family("fx.rocdl.BufferCopyLDS", ("buffer",), ("shared",), _TO_LDS),
    BUFFER_ASYNC_LDS: Family("fx.rocdl.cdna4.BufferLoadAsyncLDS", ("buffer",), ("shared",), _TO_LDS),
    GLOBAL_ASYNC_LDS: Family("fx.rocdl.cdna4.GlobalLoadAsyncLDS", ("global",), ("shared",), _TO_LDS),
    LDS_TRANS: Family("fx.rocdl.cdna4.LDSReadTrans", ("shared",), ("register",), _TRANSPOSED),
    BUFFER_ATOMIC: Family("fx.rocdl.BufferAtomic", ("register",), ("buffer",), {}),
    UNIVERSAL_ATOMIC: Family("fx.UniversalAtomic", ("register",), ("global", "shared"), {}),
}


@dataclass(frozen=True)
class CopyOp:
    """An operation of a family: the bits moved by one thread, and what else its instruction can be told.

    `trans` is the granularity of a transposing read in bits, `cache` the cache modifier, `atomic` how the elements are
    combined with those in memory.
    """

    family: str
    bits: int
    trans: int = 0
    cache: int = 0
    atomic: Atomic | None = None

    def __repr__(self) -> str:
        if self.atomic:
            return f"{self.family}<{self.atomic}>"
        before = f"trans = {self.trans}b, " if self.trans else ""
        return f"{self.family}<{before}{self.bits}{f', cache = {self.cache}' if self.cache else ''}>"

    @property
    def row(self) -> Family:
        """The row of its family."""
        return FAMILIES[self.family]

    @property
    def state(self) -> tuple[str, ...]:
        """The names of what it can be told besides: an offset of the whole wave, in elements, into a buffer."""
        return ("soffset",) if "buffer" in self.row.sources + self.row.targets and self.family != UNIVERSAL_COPY else ()

    @property
    def to_lds(self) -> bool:
        """Whether it moves from memory to LDS past the registers: lane i of a wave to place i from a common base."""
        return self.family in (BUFFER_LDS, BUFFER_ASYNC_LDS, GLOBAL_ASYNC_LDS)

    def chips(self, space: str) -> tuple[str, ...]:
        """The chips that have it; an atomic, in a memory space.

        >>> copy_op(BUFFER_LDS, 128).chips("shared")
        ('gfx950',)
        """
        if self.atomic:
            return self.atomic.chips(space)
        return _BOTH if self.row.widths is None else self.row.widths[self.trans, self.bits]


def copy_op(family: str, bits: int, trans: int = 0, cache: int = 0) -> CopyOp:
    """The copy operation of a family (those that are not atomic).

    >>> print(copy_op(UNIVERSAL_COPY, 128))
    fly.universal_copy<128>

    Raises `LayoutError` for a width that no instruction has.
    """
    row = FAMILIES[family]
    if not all(type(number) is int for number in (bits, trans)) or not _has(row, trans, bits):
        known = "8, 16, 24 ... bits (whole bytes)" if row.widths is None else _choices(row.widths)
        raise LayoutError(
            f"no {row.call} of " + (f"{trans!r}, {bits!r}" if trans else f"{bits!r} bits"),
            hint=f"a thread moves {known} at a time; for more, copy a tensor whose first mode is several atoms wide",
        )
    if type(cache) is not int or cache & ~sum(CACHE_BITS):
        names = ", ".join(f"{bit} ({name})" for bit, name in CACHE_BITS.items())
        raise LayoutError(f"{row.call}: a cache modifier of {cache!r}", hint=f"give a sum of some of {names}")
    return CopyOp(family, bits, trans, cache)


def _has(row: Family, trans: int, bits: int) -> bool:
    if row.widths is None:
        return not trans and bits % 8 == 0 and 8 <= bits <= MOST_BITS
    return (trans, bits) in row.widths


def _choices(widths: Widths) -> str:
    """Widths as a sentence has them, with the chips of those that not all have."""
    shown = []
    for (trans, bits), chips in widths.items():
        text = f"({trans}, {bits})" if trans else str(bits)
        shown.append(text if chips == _BOTH else f"{text} ({', '.join(chips)})")
    return ", ".join(shown) + " bits"


def atomic_op(family: str, op: str, dtype: DType, lanes: int = 1, scope: str = "") -> CopyOp:
    """The atomic operation of a family.

    >>> from flylab.dtypes import DTYPES
    >>> print(atomic_op(BUFFER_ATOMIC, "min", DTYPES["Int32"]))
    fly_rocdl.cdna3.buffer_atomic<min, i32>

    Raises `LayoutError` for one that no chip has an instruction for.
    """
    row, atomic = FAMILIES[family], Atomic(op, dtype, lanes, scope)
    if not any(map(atomic.chips, row.targets)):
        raise LayoutError(f"{row.call}: no chip has an atomic {op} of {atomic.value}",
                          hint=_instead(atomic, row.targets))
    return CopyOp(family, lanes * dtype.bits, atomic=atomic)


def _instead(atomic: Atomic, spaces: tuple[str, ...]) -> str:
    """What to do in place of an atomic that is not there."""
    if Atomic(atomic.op, atomic.dtype, 2).chips(spaces[0]):
        return "16-bit floats are added in pairs"
    if atomic.op == "sub" and Atomic("add", atomic.dtype, atomic.lanes).chips(spaces[0]):
        return "add the negated value"
    where = [space for space in SPACES if atomic.chips(space)]
    if where:
        return f"it is there in {' and '.join(where)} memory"
    found = [text for text, dtype in DTYPE_OF_TEXT.items() if Atomic(atomic.op, dtype).chips(spaces[0])]
    return f"there is one of {', '.join(found)}"


@dataclass(frozen=True)
class CopyAtom:
    """A copy operation on elements of one format.

    >>> from flylab.dtypes import DTYPES
    >>> atom = CopyAtom(copy_op(UNIVERSAL_COPY, 128), DTYPES["Float32"])
    >>> atom.num_values, str(atom.layout_src_tv), str(atom)
    (4, '(1,4):(0,1)', 'copy_atom<fly.universal_copy<128>, f32>')
    """

    op: CopyOp
    dtype: DType
    state: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What a kernel sets, by the names of `op.state`."""

    def __post_init__(self) -> None:
        op, dtype = self.op, self.dtype
        if op.bits % dtype.bits:
            raise LayoutError(
                f"a copy of {op.bits} bits does not hold whole {dtype} elements of {dtype.bits} bits",
                hint=f"use a multiple of {dtype.bits} bits",
            )
        if op.atomic and op.atomic.dtype != dtype:
            raise LayoutError(f"an atomic {op.atomic.op} of {op.atomic.dtype} on elements of {dtype}",
                              hint=f"make the atom for fx.{op.atomic.dtype}")
        if op.trans and op.trans != dtype.bits and not self.is_packed:
            raise LayoutError(
                f"{op.row.call}({op.trans}, {op.bits}) transposes elements of {op.trans} bits, {dtype} has "
                f"{dtype.bits}",
                hint=f"use LDSReadTrans({dtype.bits}, ...), or make the atom for a format of {op.trans} bits"
                + (", or for bytes that hold several" if op.trans < 8 else ""),
            )
        for tv in (self.layout_src_tv, *(() if self.is_packed else (self.layout_dst_tv, self.layout_ref_tv))):
            whole = self.num_threads * self.num_values
            if sorted(tv(i) for i in range(size(tv))) != list(range(whole)):
                raise LayoutError(f"{self}: {tv} does not cover the {whole} values once each")

    @property
    def num_values(self) -> int:
        """Elements that one thread moves."""
        return self.op.bits // self.dtype.bits

    @property
    def is_packed(self) -> bool:
        """Whether it transposes elements of less than a byte, held in bytes: what it makes of a byte is no byte."""
        return 0 < self.op.trans < 8 == self.dtype.bits

    @property
    def val_bits(self) -> int:
        """Bits of an element."""
        return self.dtype.bits

    @property
    def thr_layout(self) -> Layout:
        """The threads that move together."""
        return Layout(GROUP, 1) if self.op.trans else Layout(1, 0)

    @property
    def num_threads(self) -> int:
        """How many threads move together: 1, or the 16 of a transposing read."""
        return int(size(self.thr_layout))

    @property
    def layout_src_tv(self) -> Layout:
        """(thread, value) -> element, on the source side: consecutive values of each thread."""
        return Layout((self.num_threads, self.num_values), (self.num_values, 1))

    @property
    def layout_dst_tv(self) -> Layout:
        """(thread, value) -> element, on the destination side: as the source, or transposed."""
        if not self.op.trans:
            return self.layout_src_tv
        if self.is_packed:
            raise LayoutError(f"{self}: no layout tells where its bytes go, each to two or more threads",
                              hint=f"the layout is that of the atom for a format of {self.op.trans} bits")
        return Layout((GROUP, (1, self.num_values)), (1, (0, GROUP)))

    @property
    def layout_ref_tv(self) -> Layout:
        """(thread, value) -> element, by which a tile is divided among threads: that of the registers."""
        return self.layout_dst_tv

    def __repr__(self) -> str:
        return f"copy_atom<{self.op}, {dtype_text(self.dtype)}>"

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> CopyAtom:
        """An atom from its text, as it stands in the IR.

        >>> CopyAtom.parse("copy_atom<fly_rocdl.cdna3.buffer_copy<32, cache = 2>, f32>").op.cache
        2
        """
        match = re.fullmatch(r"copy_atom<([\w.]+)<(.+)>, (\w+)>", text)
        if not match or match[1] not in FAMILIES or match[3] not in DTYPE_OF_TEXT:
            raise LayoutError(f"{text!r} is no copy atom")
        return cls(_parse_op(match[1], match[2], text), DTYPE_OF_TEXT[match[3]])


def _parse_op(family: str, inside: str, text: str) -> CopyOp:
    plain = re.fullmatch(r"(?:trans = (\d+)b, )?(\d+)(?:, cache = (\d+))?", inside)
    if plain:
        return copy_op(family, int(plain[2]), int(plain[1] or 0), int(plain[3] or 0))
    atomic = re.fullmatch(r"(\w+), (?:vector<(\d+)x)?(\w+)>?(?:, ([\w-]+))?", inside)
    if not atomic or atomic[3] not in DTYPE_OF_TEXT:
        raise LayoutError(f"{text!r} is no copy atom")
    dtype = DTYPE_OF_TEXT[atomic[3]]
    return atomic_op(family, atomic[1], dtype, int(atomic[2] or 1), atomic[4] or "")
