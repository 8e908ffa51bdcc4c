"""What each chip has: the table's data against LLVM's assembler, and the refusal of what a chip lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from flylab.codegen.assembly.encoding import base_name
from flylab.emulator import Program, coverage
from flylab.emulator.decoding.chips import chips_with
from flylab.emulator.decoding.refused import REFUSED
from flylab.emulator.program import device_tables
from flylab.errors import UnknownInstruction
from tests.emulator.toolchain import ASSEMBLER, CHIPS, assembly, known_to, spelled_in_the_assembler

PAGE = Path(__file__).parents[2] / "notebooks" / "reference" / "instructions.md"


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_each_chip_has_what_the_assembler_has(chip: str) -> None:
    table, others = device_tables()
    names = sorted({*table, *others})
    ours = {name for name in names if chip in chips_with(name)}
    known = known_to(chip, names)
    assert ours ^ known == set()


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
def test_every_mnemonic_of_the_assembler_is_executed_or_refused_with_a_reason() -> None:
    table, others = device_tables()
    spelled = sorted(spelled_in_the_assembler())
    known = {base_name(name) for chip in CHIPS for name in known_to(chip, spelled)}
    assert len(known) > 1000
    assert known - {*table, *others} == REFUSED.keys()


def test_the_page_is_what_the_tables_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == coverage.page(), "write it anew: python -m flylab.emulator.coverage"


def test_what_a_chip_lacks_is_refused_there_alone() -> None:
    body = "  v_prng_b32_e32 v0, v0\n  s_endpgm"
    with pytest.raises(UnknownInstruction, match="v_prng.*gfx942 has no such instruction, gfx950 has"):
        Program.from_assembly(assembly(body)).load("k")
    Program.from_assembly(assembly(body, "gfx950")).load("k")
