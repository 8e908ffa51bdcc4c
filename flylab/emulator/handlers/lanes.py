"""Which lane each lane of a wave reads, in the words of DPP (`row_shl:1`, `quad_perm:[1,0,3,2]` ...).

A row is 16 lanes, a bank four. Source: CDNA3 ISA, "Data parallel processing (DPP)". It leaves open what the first row
of `row_bcast:15` and the first two of `row_bcast:31` read; here they have no source, as the ends of a shift have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from flylab.codegen.assembly.encoding import integer
from flylab.emulator.decoding.operands import OperandError
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.state import WAVE_SIZE

NONE = -1
ROW, BANK = 16, 4
Sources = tuple[int, ...]
Moved = dict[tuple[int, int], Value]
_QUAD = re.compile(r"quad_perm:\[([0-3]),([0-3]),([0-3]),([0-3])\]")


def _within_row(lane: int, source: int) -> int:
    return source if source // ROW == lane // ROW else NONE


def _within_wave(source: int) -> int:
    return source if 0 <= source < WAVE_SIZE else NONE


# Each control: the numbers it takes (None: no number), and the lane that a lane reads.
CONTROLS: dict[str, tuple[range | tuple[int, ...] | None, Callable[[int, int], int]]] = {
    "row_shl": (range(1, ROW), lambda lane, n: _within_row(lane, lane + n)),
    "row_shr": (range(1, ROW), lambda lane, n: _within_row(lane, lane - n)),
    "row_ror": (range(1, ROW), lambda lane, n: lane // ROW * ROW + (lane - n) % ROW),
    "row_newbcast": (range(ROW), lambda lane, n: lane // ROW * ROW + n),
    "row_mirror": (None, lambda lane, _: lane ^ 15),
    "row_half_mirror": (None, lambda lane, _: lane ^ 7),
    "row_bcast": ((15, 31), lambda lane, n: lane // (n + 1) * (n + 1) - 1 if lane > n else NONE),
    "wave_shl": ((1,), lambda lane, n: _within_wave(lane + n)),
    "wave_shr": ((1,), lambda lane, n: _within_wave(lane - n)),
    "wave_rol": ((1,), lambda lane, n: (lane + n) % WAVE_SIZE),
    "wave_ror": ((1,), lambda lane, n: (lane - n) % WAVE_SIZE),
}


def is_control(word: str) -> bool:
    """True for a word that says which lane is read."""
    return word.partition(":")[0] in (*CONTROLS, "quad_perm")


@lru_cache
def sources_of(control: str) -> Sources:
    """The lane that each of the 64 lanes reads, -1 where there is none.

    >>> sources_of("row_shr:1")[:3], sources_of("row_bcast:31")[30:34], sources_of("quad_perm:[3,3,0,0]")[4:8]
    ((-1, 0, 1), (-1, -1, 31, 31), (7, 7, 4, 4))

    Raises `OperandError` for a control that the chips lack.
    """
    quad = _QUAD.fullmatch(control)
    if quad:
        return tuple(lane // BANK * BANK + int(quad[1 + lane % BANK]) for lane in range(WAVE_SIZE))
    name, colon, text = control.partition(":")
    numbers, source = CONTROLS.get(name, ((), _within_row))
    number = integer(text) if colon else 0
    if number is not None and (number in numbers if numbers is not None else not colon):
        return tuple(source(lane, number) for lane in range(WAVE_SIZE))
    raise OperandError(f"'{control}' names no lanes that these chips can read")


@lru_cache
def lanes_of(row_mask: int, bank_mask: int) -> int:
    """The lanes that both masks let through: a bit for each row, and one for each bank of every row.

    >>> hex(lanes_of(0x5, 0x3))
    '0xff000000ff'
    """
    return sum(1 << lane for lane in range(WAVE_SIZE)
               if row_mask >> (lane // ROW) & 1 and bank_mask >> (lane % ROW // BANK) & 1)


def moved_mask(mask: Value, sources: Sources) -> Value:
    """A lane mask of which every lane reads the bit of its source; lanes without one read 0."""
    steps: dict[int, int] = {}
    for lane, source in enumerate(sources):
        if source != NONE:
            steps[lane - source] = steps.get(lane - source, 0) | 1 << source
    # A source may have several readers, but only one at each distance.
    parts = [(mask & signed(bits), distance) for distance, bits in steps.items()]
    return reduce(or_, (part.shl(n) if n > 0 else part.shr(-n) if n else part for part, n in parts))


def signed(bits: int) -> int:
    """64 bits as the signed number that LLVM's text has for them."""
    return bits - (1 << 64) if bits >> 63 else bits


def moved_lanes(value: Value, sources: Sources) -> Value:
    """A vector of 64 lanes of which every lane reads its source; lanes without one read lane 0."""
    return value.shuffle(value, [max(source, 0) for source in sources])


def move(b: Builder, sources: Sequence[tuple[Any, Any]], row: Callable[[int, int], str], exec_: Value, lanes: int,
         zero_fill: bool) -> tuple[Moved, Value]:
    """The registers that a DPP instruction reads of other lanes, by slot and register, and the lanes that take part.

    `sources` are those of its form with their types, `row` gives the pointer to a register. A source that is none or
    inactive reads as 0 under `zero_fill`; else its reader takes no part.
    """
    moved: Moved = {}
    for source, type_ in sources:
        if not source.control or (source.slot, 0) in moved:
            continue
        order = sources_of(source.control)
        reached = moved_mask(exec_, order)
        for register in range(type_.registers):
            value = moved_lanes(b.load(row(source.slot, register), "i32", WAVE_SIZE, 64), order)
            moved[source.slot, register] = reached.recast("i1", WAVE_SIZE).select(value, 0) if zero_fill else value
        exec_ = exec_ if zero_fill else exec_ & reached
    return moved, exec_ & signed(lanes)
