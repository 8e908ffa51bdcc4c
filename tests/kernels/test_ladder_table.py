"""The committed section on the ladders: its lines are those of the present compiler and model, one for each step."""

from __future__ import annotations

import pytest

from flylab.codegen.isa import Isa
from flylab.model import PRODUCTS
from tests.benchmarks.ladder_table import COLUMNS, PAGE, line, main_loop, section, shown
from tests.emulator.toolchain import assembly

SHOWN = shown()
WRITTEN = "\n## The ladders" + PAGE.read_text().partition("\n## The ladders")[2]
LINES = [text for text in WRITTEN.splitlines() if text.startswith("| [")]


def test_the_section_is_what_the_command_writes_of_its_lines() -> None:
    assert section(LINES, SHOWN) == WRITTEN and len(LINES) == len(SHOWN) > 50


@pytest.mark.parametrize("number", range(len(SHOWN)), ids=lambda n: f"{SHOWN[n].op} {SHOWN[n].variant}")
def test_a_line_is_that_of_the_present_compiler(number: int) -> None:
    assert line(SHOWN[number]) == LINES[number], "write it anew: tests/benchmarks/isa_table.py --write"


@pytest.mark.parametrize("text", LINES, ids=lambda text: text.split("|")[2].strip())
def test_figures_that_hang_together(text: str) -> None:
    """No spills, what a loop holds fits in it, and so many waves have room for their registers and their LDS."""
    cells = dict(zip(COLUMNS, [cell.strip() for cell in text.split("|")[1:-1]], strict=True))
    assert (cells["spills"], cells["scratch"]) == ("0", "0") and float(cells["us, modelled"]) > 0
    chip = PRODUCTS[cells["product"]].chip
    assert int(cells["waves a SIMD"]) * (int(cells["VGPR"]) + int(cells["AGPR"])) <= chip.vgprs_per_lane
    assert int(cells["LDS"]) <= chip.lds_bytes
    if cells["main loop"] != "-":
        assert sum(int(cells[f"of it {kind}"]) for kind in ("MFMA", "LDS", "memory")) < int(cells["main loop"])
        assert int(cells["main loop"]) < int(cells["instructions"])


def test_the_main_loop_is_the_longest_with_none_inside() -> None:
    listing = assembly("""
.Lout:
  s_nop 0
.Lshort:
  s_cbranch_scc1 .Lshort
.Llong:
  v_mov_b32_e32 v0, v1
  s_nop 1
  s_cbranch_scc1 .Llong
  s_cbranch_scc0 .Lout
  s_endpgm""", "gfx950")
    found = main_loop(Isa.parse(listing).kernels["k"])
    assert [each.mnemonic for each in found] == ["v_mov_b32_e32", "s_nop", "s_cbranch_scc1"]
    assert not main_loop(Isa.parse(assembly("  s_endpgm", "gfx950")).kernels["k"])
