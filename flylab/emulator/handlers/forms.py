"""What makes one handler of a row: the kinds of its operands and its modifiers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from flylab.emulator.decoding.table import Row
from flylab.emulator.numbers.float_mode import Mode
from flylab.emulator.state import WAVE_SIZE


class Source(NamedTuple):
    """A source as the handler sees it: where it comes from, the record's slot, modifiers.

    `select` is how much of the register is taken: "" for all, else BYTE_0 ... BYTE_3, WORD_0, WORD_1. `control` is
    which lane each lane reads, in the words of DPP: "" for its own.
    """

    kind: str
    slot: int
    negative: bool = False
    absolute: bool = False
    sign_extend: bool = False
    select: str = ""
    control: str = ""

    def __str__(self) -> str:
        marks = "-" * self.negative + "|" * self.absolute + "x" * self.sign_extend
        return f"{self.kind}{marks}{self.select}{self.control}"


@dataclass(frozen=True)
class Form:
    """What makes one handler of a row: the kinds of its operands and its modifiers; `key` names it.

    `lanes` are those that DPP's masks let through, `zero_fill` its `bound_ctrl`: a lane whose source is none or is
    inactive reads 0, where else it takes no part. `index_limit` is the slot with the end of the vector registers
    where the instruction's are numbered relative to M0 (VGPR indexing), else -1.
    """

    row: Row
    results: tuple[int, ...]
    sources: tuple[Source, ...]
    clamp: bool = False
    scale: float = 1.0
    select: str = ""
    unused: str = ""
    mode: Mode = Mode()
    lanes: int = (1 << WAVE_SIZE) - 1
    zero_fill: bool = False
    index_limit: int = -1

    @property
    def key(self) -> str:
        """The handler's name: two forms with the same key have the same code."""
        mode = self.mode if self.row.uses_floats or self.row.clamped else None
        return _key(self.row.mnemonic, self.row.sources, self.results, self.sources, self.clamp, self.scale,
                    self.select, self.unused, mode, self.lanes, self.zero_fill, self.index_limit)


@lru_cache(maxsize=4096)
def _key(mnemonic: str, types: tuple[str, ...], results: tuple[int, ...], sources: tuple[Source, ...],
         *rest: Any) -> str:
    return f"{mnemonic} {types} {results} {' '.join(f'{s}@{s.slot}' for s in sources)} {rest}"
