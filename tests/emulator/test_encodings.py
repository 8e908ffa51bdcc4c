"""Which instructions have DPP and SDWA encodings: the device's data against LLVM's assembler."""

from __future__ import annotations

import re

import pytest

from flylab.emulator.decoding.chips import chips_with
from flylab.emulator.decoding.encodings import DPP, has_dpp, has_sdwa
from flylab.emulator.program import device_tables
from tests.emulator.toolchain import ASSEMBLER, CHIPS, known_to

LLVM_ONLY = {"v_nop"}  # LLVM's table has encodings of it that would do nothing


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("suffix, has", [("_dpp", has_dpp), ("_sdwa", has_sdwa)])
def test_the_assembler_has_the_same_encodings(chip: str, suffix: str, has: object) -> None:
    assert callable(has)
    table, others = device_tables()
    # Of matrix instructions the assembler has aliases, with any suffix.
    names = sorted(n for n in {*table, *others, *DPP} - LLVM_ONLY
                   if re.match(r"v_(?!s?mfm)", n) and chip in chips_with(n))
    known = known_to(chip, [name + suffix for name in names])
    assert {name for name in names if has(name)} == {name.removesuffix(suffix) for name in known}
