"""Lines for accesses of memory that LLVM made of several: it gives them none where those stand in several lines.

* A store has the line of the last instruction before it in its block that wrote what it stores;
* a load that of the first instruction behind it in its block that reads what it loads: not the line of any of the
  loads, which LLVM does not keep, but one that needs them, where the line before may be that of a barrier or a loop;
* waits that have no line and stand before such an access have its line.

Where there is no such instruction that has a line, the rule of `codegen.lines` holds for these too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from flylab.codegen.assembly.effects import Effects, Span, effects
from flylab.codegen.assembly.listing import Instruction
from flylab.codegen.assembly.operand_text import fields
from flylab.errors import FlylabError
from flylab.targets import Target

P = TypeVar("P")
WAITS = ("s_waitcnt", "s_nop")
ACCESSES = ("ds_", "global_", "buffer_", "flat_", "scratch_", "s_load", "s_buffer_load")


def of_accesses(places: Sequence[P | None], starts: Sequence[bool], texts: Sequence[str],
                target: Target) -> Iterator[tuple[int, P]]:
    """The places of a function's accesses that have none, and of waits before them, by the rule above.

    `starts` says which of its instructions, of these texts, begin a block. Gives their numbers and places.

    >>> from flylab.targets import target
    >>> texts = ["global_load_dword v1, v0, s[0:1]", "s_add_i32 s4, s4, 1", "s_waitcnt vmcnt(0)", "ds_write_b32 v2, v1"]
    >>> list(of_accesses([8, 7, None, None], [True, False, False, False], texts, target("gfx942")))
    [(3, 8), (2, 8)]
    """
    for number, text in enumerate(texts):
        if places[number] is None and text.startswith(ACCESSES):
            others = (places[other] for other in _others(number, starts, texts, target))
            place = next((other for other in others if other is not None), None)
            while place is not None:
                yield number, place
                number -= 1
                if starts[number + 1] or places[number] is not None or not texts[number].startswith(WAITS):
                    break


def _others(number: int, starts: Sequence[bool], texts: Sequence[str], target: Target) -> Iterator[int]:
    """The instructions of its block that an access without a line may have that of, the first choice first."""
    access = _effects(texts[number], target)
    if access is None or access.atomic or access.load == access.store:
        return
    if access.store:
        while not starts[number]:
            number -= 1
            if (other := _effects(texts[number], target)) is None:
                return
            if _overlap(access.data, other.writes):
                yield number
        return
    for behind in range(number + 1, len(starts)):
        if starts[behind] or (other := _effects(texts[behind], target)) is None:
            return
        if _overlap(access.writes, other.reads):
            yield behind
        if _overlap(access.writes, other.writes):
            return


def _overlap(some: Sequence[Span], others: Sequence[Span]) -> bool:
    return any(a.file == b.file and a.first < b.first + b.count and b.first < a.first + a.count
               for a in some for b in others)


@lru_cache(maxsize=1 << 12)
def _effects(text: str, target: Target) -> Effects | None:
    """What an instruction reads and writes; None of text that is none, as the user's own assembly may be."""
    mnemonic, _, rest = text.partition(" ")
    try:
        return effects(Instruction(0, 0, text, mnemonic, *fields(rest.strip()), 0, None), target)
    except (FlylabError, ValueError):
        return None
