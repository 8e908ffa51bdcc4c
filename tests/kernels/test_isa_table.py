"""The committed table of what the compiler makes of the kernels: its own figures are those of the present compiler."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")  # the cases' arguments are its tensors

from tests.benchmarks import isa_table  # noqa: E402
from tests.benchmarks.isa_table import CASES, CHIPS, COLUMNS, PAGE, ours, page, read  # noqa: E402
from tests.benchmarks.peer import REFUSING, ROOT  # noqa: E402
from tests.house.imports import read_imports  # noqa: E402

TABLE = read(PAGE.read_text())


def test_the_page_is_what_the_command_writes_of_its_figures():
    assert page(TABLE) == PAGE.read_text().partition("\n## The ladders")[0]
    assert list(TABLE) == [(case.title, chip) for case in CASES.values() for chip in CHIPS]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("case", CASES)
def test_our_figures_are_those_of_the_present_compiler(case, chip):
    assert ours(case, chip) == TABLE[CASES[case].title, chip][0], "write it anew: tests/benchmarks/isa_table.py --write"


@pytest.mark.parametrize("row", TABLE, ids=" ".join)
def test_ours_are_no_more_than_the_wheels(row):
    mine, theirs = (dict(zip(COLUMNS, figures, strict=True)) for figures in TABLE[row])
    assert all(mine[column] <= theirs[column] for column in COLUMNS)
    assert (mine["spills"], mine["scratch"]) == (0, 0)


def test_counting_reads_a_listing():
    listing = """
        .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
        k:
          v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]
          s_endpgm
        .amdhsa_kernel k
          .amdhsa_next_free_vgpr 6
          .amdhsa_next_free_sgpr 10
          .amdhsa_accum_offset 8
        .end_amdhsa_kernel"""
    assert isa_table.count(listing)[:3] == (2, 1, 6)


def test_the_peers_copy_of_the_kernels_has_what_they_import():
    files = [*(ROOT / "kernels").rglob("*.py"), *(ROOT / "flylab" / name for name in REFUSING)]
    imported = {found.name.split(".")[1] for file in files for found in read_imports(file.read_text(), "flylab")
                if found.name.startswith("flylab.")}
    # The first are the peer's own under their names, and the kernels are all there.
    assert imported - {"compiler", "expr", "kernels"} == {name.removesuffix(".py") for name in REFUSING}
