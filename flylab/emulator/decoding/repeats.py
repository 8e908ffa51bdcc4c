"""Instructions that differ from an earlier one of their kernel in the numbers of registers alone.

Decoding one costs tens of microseconds, and most instructions of a long kernel are such repeats: the earlier one's
handler, and its slots with the new places of the registers.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from flylab.codegen.isa import Instruction
from flylab.emulator.state import NUMBERED_SGPRS, ROW_BYTES

if TYPE_CHECKING:
    from flylab.emulator.decoding.decode import Coded

_REGISTERS = re.compile(r"([vs])(?:(\d+)|\[(\d+):(\d+)\])")
# Registers side by side begin at a multiple of up to so much.
_ALIGNMENT = {"v": 2, "s": 4}
_STEPS = {"v": ROW_BYTES, "s": 4, "": 0}


class _Named(NamedTuple):
    """Registers that an operand names without modifiers; `file` is empty for any other operand.

    `shape` is what two operands must share to be read alike.
    """

    shape: Hashable
    file: str = ""
    first: int = 0
    end: int = 0


@lru_cache(maxsize=8192)
def _named(text: str) -> _Named:
    """
    >>> _named("v[4:5]").shape, _named("s[6:7]").shape, _named("v7").shape, _named("-v6").shape, _named("vcc").shape
    (('v', 2, 0), ('s', 2, 2), ('v', 1, 0), '-v6', 'vcc')
    """
    found = _REGISTERS.fullmatch(text)
    if not found:
        return _Named(text)
    file, first = found[1], int(found[2] or found[3])
    end = int(found[4] or first) + 1
    return _Named((file, end - first, first % _ALIGNMENT[file] if end - first > 1 else 0), file, first, end)


class Repeats:
    """What was decoded so far, by the shape of the text. `vectors` is how many registers v0, v1 ... there are."""

    def __init__(self, vectors: int):
        self.ends = {"v": vectors, "s": NUMBERED_SGPRS, "": 0}
        self._known: dict[Hashable, Coded] = {}

    def find(self, instruction: Instruction) -> Coded | None:
        """What an instruction decodes to, where one of its shape is known."""
        named = [_named(text) for text in instruction.operands]
        known = self._known.get(_key(instruction, named))
        if known is None or any(one.end > self.ends[one.file] for one in named):
            return None
        return _moved(known, named, 1)

    def keep(self, instruction: Instruction, coded: Coded) -> None:
        """Takes what was decoded from an instruction's own text."""
        named = [_named(text) for text in instruction.operands]
        self._known[_key(instruction, named)] = _moved(coded, named, -1)


def _key(instruction: Instruction, named: list[_Named]) -> Hashable:
    """What two instructions must share. Of scalar operands it matters which are the same one."""
    scalars = [one.first for one in named if one.file == "s"]
    alike = [scalars.index(first) for first in scalars] if len(scalars) > 1 else ()
    return instruction.mnemonic, instruction.modifiers, *[one.shape for one in named], *alike


def _moved(coded: Coded, named: list[_Named], sign: int) -> Coded:
    """The instruction with its registers as far on as the operands are from the first ones, or back to those."""
    slots = coded.slots.copy()
    for place, n in coded.registers:
        slots[place] += sign * _STEPS[named[n].file] * named[n].first
    return coded.with_slots(slots)
