"""LDS phases and bank-conflict cycles of every instruction on both chips against brute force over random accesses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.emulator.counters.accesses import (
    AT_M0,
    Accesses,
    Form,
    brute_force,
    by_copy,
    copies,
    form,
    mnemonics,
    random_accesses,
    run,
)
from tests.emulator.toolchain import CHIPS


@cache
def _wanted(chip: str, verb: str, size: int, seed: int, groups: bool, odd: int) -> tuple[np.ndarray, np.ndarray]:
    accesses = random_accesses(seed, groups)
    served, cycles = brute_force(chip, verb, size, Accesses(accesses.addresses + odd, accesses.active))
    return by_copy(served), by_copy(cycles)


def _check(chip: str, name: str, form_: Form, groups: bool = False, odd: int = 0) -> None:
    accesses = random_accesses(1, groups)
    report = run(chip, form_.text, Accesses(accesses.addresses + odd, accesses.active))
    served, cycles = _wanted(chip, form_.row, form_.size, 1, groups, odd)
    some = by_copy(accesses.active.any(axis=1))
    for figure, wanted in (("lds_accesses", some), ("lds_phases", served), ("lds_cycles", cycles)):
        assert np.array_equal(copies(report, figure, form_.text), form_.accesses * wanted), (name, figure)


@pytest.mark.parametrize("chip", CHIPS)
def test_every_instruction_costs_what_brute_force_says(chip: str) -> None:
    names = [name for name in mnemonics(chip) if not AT_M0.search(name)]
    assert len(names) > 90
    for name in names:
        _check(chip, name, form(name), groups="_tr_" in name)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("name", "odd"), [
    ("ds_read_u8", 3), ("ds_read_u16", 3), ("ds_read_b32", 1), ("ds_read_b64", 4), ("ds_read_b96", 4),
    ("ds_read_b128", 7), ("ds_write_b128", 2), ("ds_write2_b32", 2)])
def test_an_access_that_begins_within_a_word_touches_one_more(chip: str, name: str, odd: int) -> None:
    _check(chip, name, form(name), odd=odd)


@pytest.mark.parametrize("chip", CHIPS)
def test_the_instruction_that_aligns_its_addresses(chip: str) -> None:
    accesses, form_ = random_accesses(1, False), form("ds_condxchg32_rtn_b64")
    report = run(chip, form_.text, Accesses(accesses.addresses + np.arange(64) % 8, accesses.active))
    served, cycles = _wanted(chip, "write", 8, 1, False, 0)
    for figure, wanted in (("lds_phases", served), ("lds_cycles", cycles)):
        assert np.array_equal(copies(report, figure, form_.text), wanted)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", ["ds_append", "ds_consume", "ds_read_addtid_b32", "ds_write_addtid_b32"])
def test_an_access_at_m0_is_of_one_word_or_of_words_side_by_side(chip: str, name: str) -> None:
    accesses, form_ = random_accesses(1, False), form(name)
    first = np.broadcast_to(accesses.addresses[:, :1], (len(accesses.active), 64))  # the kernel puts lane 0's in M0
    steps = 4 * np.arange(64) * ("addtid" in name)
    served, cycles = brute_force(chip, form_.row, 4, Accesses(first + steps, accesses.active))
    report = run(chip, form_.text, accesses)
    for figure, wanted in (("lds_phases", served), ("lds_cycles", cycles)):
        assert np.array_equal(copies(report, figure, form_.text), by_copy(wanted))


@pytest.mark.parametrize("chip", CHIPS)
def test_loads_straight_to_lds_write_side_by_side(chip: str) -> None:
    name = {"gfx942": "global_load_lds_dword", "gfx950": "global_load_lds_dwordx4"}[chip]
    size = {"gfx942": 4, "gfx950": 16}[chip]
    accesses = random_accesses(1, False)
    text = f"{name} v[4:5], off"
    served, cycles = brute_force(chip, "write", size, Accesses(
        np.broadcast_to(np.arange(64) * size, (len(accesses.active), 64)), accesses.active))
    report = run(chip, text, accesses)
    for figure, wanted in (("lds_phases", served), ("lds_cycles", cycles)):
        assert np.array_equal(copies(report, figure, text), by_copy(wanted))
    lanes = by_copy(accesses.active.sum(axis=1))
    assert np.array_equal(copies(report, "bytes", text), size * lanes)
