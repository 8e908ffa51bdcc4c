"""The symbols that the assembler itself keeps: how many registers the code has named so far, and the chip's generation.

Source: LLVM 22's AMDGPU usage guide, "Code Object V3 and Above Predefined Symbols".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flylab.codegen.assembly.symbols import Symbols
from flylab.targets import Target

PREFIX = ".amdgcn."
_NEXT_FREE = {"v": ".amdgcn.next_free_vgpr", "a": ".amdgcn.next_free_vgpr", "s": ".amdgcn.next_free_sgpr"}
_GENERATION = (".amdgcn.gfx_generation_number", ".amdgcn.gfx_generation_minor", ".amdgcn.gfx_generation_stepping")
_REGISTER = re.compile(r"(?<![\w.$])([vas])(?:(\d{1,3})|\[\d{1,3}:(\d{1,3})\])(?!\w)")


def define(symbols: Symbols, chip: Target | None) -> None:
    """The symbols before the first instruction."""
    symbols.numbers.update(dict.fromkeys(_NEXT_FREE.values(), 0))
    if chip is not None:
        major, minor, stepping = chip.arch[3:-2], chip.arch[-2], chip.arch[-1]
        symbols.numbers.update(zip(_GENERATION, (int(major), int(minor, 16), int(stepping, 16)), strict=True))


def count(symbols: Symbols, operands: Iterable[str]) -> None:
    """Counts the registers that an instruction names."""
    for file, end in register_ends(operands):
        symbols.numbers[_NEXT_FREE[file]] = max(symbols.number(_NEXT_FREE[file]), end)


def register_ends(operands: Iterable[str]) -> Iterable[tuple[str, int]]:
    """The file of each register that operands name, and the number after its last.

    >>> list(register_ends(["v[4:7]", "-s3", "a0"]))
    [('v', 8), ('s', 4), ('a', 1)]
    """
    for text in operands:
        for file, one, last in _REGISTER.findall(text):
            yield file, int(one or last) + 1
