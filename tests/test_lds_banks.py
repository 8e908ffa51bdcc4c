"""The phases of LDS accesses against their published description, written out lane by lane, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.errors import FlylabError
from flylab.lds_banks import phases


def _runs(*bounds: int) -> set[int]:
    """The lanes of pairs of first and last."""
    return {lane for first, last in zip(bounds[::2], bounds[1::2], strict=True) for lane in range(first, last + 1)}


QUADS = [_runs(0, 3, 20, 23), _runs(4, 7, 16, 19), _runs(8, 11, 28, 31), _runs(12, 15, 24, 27)]
EIGHTS = [_runs(0, 3, 12, 15, 20, 27), _runs(4, 11, 16, 19, 28, 31)]


def _consecutive(count: int) -> list[set[int]]:
    return [set(range(first, first + count)) for first in range(0, 64, count)]


def _twice(half: list[set[int]]) -> list[set[int]]:
    return half + [{lane + 32 for lane in phase} for phase in half]


TABLE = {
    ("gfx942", "ds_read_b32"): (32, _consecutive(32), "S"), ("gfx942", "ds_write_b32"): (32, _consecutive(32), "S"),
    ("gfx942", "ds_read_b64"): (32, _consecutive(16), "S"), ("gfx942", "ds_read_b128"): (32, _twice(QUADS), "S"),
    ("gfx942", "ds_write_b128"): (32, _consecutive(8), "S"), ("gfx950", "ds_read_b128"): (64, _twice(EIGHTS), "M"),
    ("gfx950", "ds_read_b64"): (64, _consecutive(32), "M"), ("gfx950", "ds_read_b96"): (32, _twice(QUADS), "M"),
    ("gfx950", "ds_write_b64"): (32, _consecutive(16), "M"), ("gfx950", "ds_read_b32"): (32, _consecutive(32), "?"),
    ("gfx950", "ds_write_b128"): (32, _consecutive(8), "?"),
}


@pytest.mark.parametrize(("chip", "mnemonic"), TABLE)
def test_the_rows_are_what_was_published_and_measured(chip: str, mnemonic: str) -> None:
    rule = phases(chip, mnemonic)
    assert (rule.banks, [set(phase) for phase in rule.lanes], rule.mark) == TABLE[chip, mnemonic]


@pytest.mark.parametrize(("mnemonic", "like", "size", "accesses"), [
    ("ds_read2st64_b64", "ds_read_b64", 8, 2), ("ds_write2_b32", "ds_write_b32", 4, 2),
    ("ds_read_u16_d16_hi", "ds_read_b32", 2, 1), ("ds_write_b96", "ds_write_b128", 12, 1),
    ("ds_pk_add_rtn_bf16", "ds_write_b32", 4, 1), ("ds_wrxchg2_rtn_b64", "ds_read_b64", 8, 2),
    ("global_load_lds_dwordx4", "ds_write_b128", 16, 1), ("buffer_load_ubyte", "ds_write_b32", 4, 1)])
def test_what_no_row_names_has_the_nearest_rule_and_says_so(mnemonic: str, like: str, size: int, accesses: int) -> None:
    rule = phases("gfx942", mnemonic)
    assert (rule.like, rule.size, rule.accesses, rule.mark) == (like, size, accesses, "?")


@pytest.mark.parametrize("mnemonic", ["ds_bpermute_b32", "ds_swizzle_b32", "v_mov_b32_e32", "global_load_dwordx3_lds",
                                      "ds_gws_barrier"])
def test_what_does_not_touch_the_banks_is_refused(mnemonic: str) -> None:
    with pytest.raises(FlylabError, match=f"'{mnemonic}' does not read or write LDS") as raised:
        phases("gfx950", mnemonic)
    assert raised.value.hint


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("mnemonic", ["ds_read_b32", "ds_read_b64", "ds_write_b64", "ds_read_b128"])
def test_one_word_of_all_lanes_is_free_and_a_column_of_banks_is_not(chip: str, mnemonic: str) -> None:
    rule = phases(chip, mnemonic)
    assert rule.conflicts([64] * 64) == 0
    assert rule.conflicts(list(np.arange(64) * rule.size)) == 0
    apart = 4 * rule.banks  # every lane's words lie in the same banks
    assert rule.conflicts([apart * lane for lane in range(64)]) == 64 - len(rule.lanes)
