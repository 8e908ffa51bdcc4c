"""Which instructions have DPP and SDWA encodings: the device's data against LLVM's assembler."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from flylab.emulator.chips import chips_with
from flylab.emulator.encodings import DPP, has_dpp, has_sdwa
from flylab.emulator.program import device_tables
from tests.emulator.toolchain import CHIPS

ASSEMBLER = shutil.which("llvm-mc-22")
ABSENT = re.compile(r"<stdin>:(\d+):\d+: error: .*(?:invalid instruction|not supported)")
LLVM_ONLY = {"v_nop"}  # LLVM's table has encodings of it that would do nothing


def accepted(chip: str, mnemonics: list[str]) -> set[str]:
    """Those that the assembler knows, whatever it says of the missing operands."""
    assert ASSEMBLER is not None
    command = [ASSEMBLER, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"]
    said = subprocess.run(command, input="\n".join(mnemonics), capture_output=True, text=True, check=False).stderr
    absent = {int(found[1]) - 1 for found in map(ABSENT.match, said.splitlines()) if found}
    return {name for n, name in enumerate(mnemonics) if n not in absent}


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("suffix, has", [("_dpp", has_dpp), ("_sdwa", has_sdwa)])
def test_the_assembler_has_the_same_encodings(chip: str, suffix: str, has: object) -> None:
    assert callable(has)
    table, others = device_tables()
    # Of matrix instructions the assembler has aliases, with any suffix.
    names = sorted(n for n in {*table, *others, *DPP} - LLVM_ONLY
                   if re.match(r"v_(?!s?mfm)", n) and chip in chips_with(n))
    known = accepted(chip, [name + suffix for name in names])
    assert {name for name in names if has(name)} == {name.removesuffix(suffix) for name in known}
