"""How a wave's access of LDS is served: its banks, and the lanes of each phase, one row for each chip and width.

A phase serves some lanes of the wave. It takes as many cycles as there are *distinct* 4-byte words in its fullest bank:
the same word read by several lanes is a broadcast, which costs nothing. Word w lies in bank w modulo the banks.

Marks: "S" published by AMD, "M" measured on the chip by others, "?" not known: the rule of the nearest row.
Sources: for gfx942 what AMD published; for gfx950 what others measured on MI350X and MI355X, as far as that goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from flylab.errors import FlylabError
from flylab.targets import WAVE_SIZE, target

WORD = 4
"""Bytes of a bank's words."""
UNKNOWN = "?"


@dataclass(frozen=True)
class Phases:
    """How one access of a wave is served: the lanes of each phase, and the banks that they share.

    An instruction makes `accesses` of them, each of `size` bytes a lane. `like` is the instruction whose published or
    measured rule this is.
    """

    arch: str
    like: str
    banks: int
    lanes: tuple[tuple[int, ...], ...]
    mark: str
    size: int = 0
    accesses: int = 1

    def __post_init__(self) -> None:
        if sorted(lane for phase in self.lanes for lane in phase) != list(range(WAVE_SIZE)):
            raise ValueError(f"the phases of {self.like} on {self.arch} are not each lane once")

    @property
    def masks(self) -> tuple[int, ...]:
        """The lanes of each phase as 64 bits."""
        return tuple(sum(1 << lane for lane in phase) for phase in self.lanes)

    def words(self, offset: int) -> range:
        """The words that a lane touches at a byte offset of LDS."""
        return range(offset // WORD, (offset + self.size - 1) // WORD + 1)

    def cycles(self, offsets: Sequence[int], active: int = (1 << WAVE_SIZE) - 1) -> tuple[int, ...]:
        """The cycles of each phase of one access; `offsets` are byte offsets of 64 lanes, `active` the lanes as bits.

        A phase takes as many as its fullest bank has distinct words, and none where no lane of it is active.

        >>> rule = phases("gfx942", "ds_read_b32")
        >>> rule.cycles([4 * lane for lane in range(64)]), rule.cycles([128 * lane for lane in range(64)])
        ((1, 1), (32, 32))
        >>> rule.cycles([0] * 64, active=0xFF)
        (1, 0)
        """
        found = []
        for phase in self.lanes:
            touched = {word for lane in phase if active >> lane & 1 for word in self.words(offsets[lane])}
            banks = [word % self.banks for word in touched]
            found.append(max((banks.count(bank) for bank in set(banks)), default=0))
        return tuple(found)

    def conflicts(self, offsets: Sequence[int], active: int = (1 << WAVE_SIZE) - 1) -> int:
        """The cycles of one access beyond the least: one for each phase that has an active lane.

        >>> phases("gfx942", "ds_read_b128").conflicts([64 * lane for lane in range(64)])
        24
        """
        cycles = self.cycles(offsets, active)
        return sum(cycles) - sum(c > 0 for c in cycles)


# Chip, instructions, banks, the lanes of the first phases (the others follow in the same order), mark.
_ROWS = (
    ("gfx942", "ds_read_b32 ds_write_b32", 32, "0-31", "S"),
    ("gfx942", "ds_read_b64", 32, "0-15", "S"),
    ("gfx942", "ds_read_b128", 32, "0-3,20-23 4-7,16-19 8-11,28-31 12-15,24-27", "S"),
    ("gfx942", "ds_write_b128", 32, "0-7", "S"),
    ("gfx950", "ds_read_b32", 32, "0-31", UNKNOWN),
    ("gfx950", "ds_read_b64", 64, "0-31", "M"),
    ("gfx950", "ds_read_b96", 32, "0-3,20-23 4-7,16-19 8-11,28-31 12-15,24-27", "M"),
    ("gfx950", "ds_read_b128", 64, "0-3,12-15,20-27 4-11,16-19,28-31", "M"),
    ("gfx950", "ds_write_b64", 32, "0-15", "M"),
    ("gfx950", "ds_write_b128", 32, "0-7", UNKNOWN),
)
# Of what has no row of its own on a chip: the nearest that has one.
NEAREST = {"ds_read_b96": "ds_read_b128", "ds_write_b96": "ds_write_b128", "ds_write_b64": "ds_read_b64",
           "ds_write_b32": "ds_read_b32"}


def _all_lanes(text: str) -> tuple[tuple[int, ...], ...]:
    """The lanes of every phase, from those of the first ones."""
    first = [[n for piece in phase.split(",") for a, _, b in [piece.partition("-")] for n in range(int(a), int(b) + 1)]
             for phase in text.split()]
    step = sum(map(len, first))
    return tuple(tuple(start + lane for lane in phase) for start in range(0, WAVE_SIZE, step) for phase in first)


ROWS = {(arch, name): Phases(arch, name, banks, _all_lanes(lanes), mark)
        for arch, names, banks, lanes, mark in _ROWS for name in names.split()}

# What mnemonics say: how data goes, one place or two, and the bits (or the dwords) that a lane moves at each.
_PLAIN = re.compile(r"ds_(read|write)(2|2st64)?(_addtid)?_[biu](\d+)")
_ATOMIC = re.compile(r"ds_(?:(?:pk_)?[a-z]+?)(2|2st64)?(?:32)?(?:_rtn)?_b?[fiub](\d+)$")
_TO_LDS = re.compile(r"(?:buffer|global|scratch)_load_(?:lds_)?([us]byte|[us]short|dword(?:x(\d))?)$")
_NO_MEMORY = re.compile(r"ds_(swizzle|b?permute|gws|nop|bvh|ordered)")


def _parts(mnemonic: str) -> tuple[str, int, int] | None:
    """Whether an instruction reads or writes LDS, the accesses that it makes, and the bytes of a lane at each."""
    if _NO_MEMORY.match(mnemonic):
        return None
    if mnemonic in ("ds_append", "ds_consume"):
        return "write", 1, WORD
    if plain := _PLAIN.match(mnemonic):
        return plain[1], 2 if plain[2] else 1, int(plain[4]) // 8
    if moved := _TO_LDS.match(mnemonic):  # a byte or half is extended to a word
        return "write", 1, WORD * int(moved[2] or 1)
    if atomic := _ATOMIC.match(mnemonic):
        bits = int(atomic[2])
        return "write", 2 if atomic[1] else 1, max(bits // 8, WORD)
    return None


@cache
def phases(arch: str, mnemonic: str) -> Phases:
    """The phases of an instruction that reads or writes LDS, on gfx942 or gfx950.

    An instruction at two places makes two accesses. An atomic counts as a write, and so does a load straight to LDS.
    What no row names has the rule of the nearest row, and the mark "?".

    >>> rule = phases("gfx950", "ds_read_b128")
    >>> rule.banks, rule.mark, rule.lanes[0]
    (64, 'M', (0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27))
    >>> rule = phases("gfx942", "ds_add_rtn_u64")
    >>> rule.like, rule.mark, rule.size
    ('ds_read_b64', '?', 8)

    Raises `FlylabError` for an instruction that does not touch the banks of LDS.
    """
    chip, found = target(arch).arch, _parts(mnemonic)
    width = f"ds_{found[0]}_b{8 * -(-found[2] // WORD) * WORD}" if found else ""
    if found is None or width not in NEAREST and (chip, width) not in ROWS:
        raise FlylabError(f"'{mnemonic}' does not read or write LDS",
                          hint="ds_read_*, ds_write_*, atomics of LDS and loads to LDS do")
    _, accesses, size = found
    row = ROWS.get((chip, width)) or ROWS[chip, NEAREST[width]]
    return replace(row, mark=row.mark if row.like == mnemonic else UNKNOWN, size=size, accesses=accesses)
