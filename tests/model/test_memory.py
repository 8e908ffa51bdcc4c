"""Bank conflicts and coalescing against counting word by word and byte by byte, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.errors import FlylabError
from flylab.model import bank_conflicts, coalescing
from tests.emulator.toolchain import CHIPS

# Mnemonic, bytes; chip, banks, the lanes of the first phases, as the hardware guide has them.
GUIDE = {
    ("gfx942", "ds_read_b32", 4): (32, [range(32)]),
    ("gfx942", "ds_read_b64", 8): (32, [range(16)]),
    ("gfx942", "ds_read_b128", 16): (32, [(0, 1, 2, 3, 20, 21, 22, 23), (4, 5, 6, 7, 16, 17, 18, 19),
                                          (8, 9, 10, 11, 28, 29, 30, 31), (12, 13, 14, 15, 24, 25, 26, 27)]),
    ("gfx942", "ds_write_b128", 16): (32, [range(8)]),
    ("gfx950", "ds_read_b128", 16): (64, [(0, 1, 2, 3, 12, 13, 14, 15, *range(20, 28)),
                                          (*range(4, 12), 16, 17, 18, 19, 28, 29, 30, 31)]),
    ("gfx950", "ds_read_b64", 8): (64, [range(32)]),
    ("gfx950", "ds_write_b64", 8): (32, [range(16)]),
}


@pytest.mark.parametrize("chip, mnemonic, size", GUIDE, ids=lambda value: str(value))
@given(places=st.lists(st.none() | st.integers(0, 500), min_size=64, max_size=64),
       stride=st.sampled_from([0, 1, 2, 4, 8, 9, 16, 17]), strided=st.integers(0, 64))
def test_bank_cycles_word_by_word(chip: str, mnemonic: str, size: int, places: list[int | None], stride: int,
                                  strided: int) -> None:
    """The first lanes lie a stride apart, the others anywhere or nowhere, at multiples of the size."""
    banks, first = GUIDE[chip, mnemonic, size]
    chosen = [lane * stride for lane in range(strided)] + places[strided:]
    active = [None if place is None else place * size for place in chosen]
    step, wanted = sum(map(len, first)), []
    for start in range(0, 64, step):
        for lanes in first:
            words = {active[start + lane] // 4 + n for lane in lanes for n in range(size // 4)
                     if active[start + lane] is not None}
            by_bank = [sum(word % banks == bank for word in words) for bank in range(banks)]
            wanted.append(max(by_bank))
    found = bank_conflicts(mnemonic, chip, active)
    assert sorted(found.phases) == sorted(wanted)
    assert found.conflicts == sum(wanted) - sum(n > 0 for n in wanted)


def test_two_places_cost_both() -> None:
    near, far = [4 * lane for lane in range(64)], [128 * lane for lane in range(64)]
    assert bank_conflicts("ds_read2_b32", "gfx942", near, far).phases == (1, 1, 32, 32)


@given(st.lists(st.none() | st.integers(0, 5000), max_size=64), st.sampled_from([1, 2, 4, 8, 12, 16]))
def test_lines_byte_by_byte(addresses: list[int | None], size: int) -> None:
    found = coalescing(addresses, size)
    touched = [(lane, byte) for lane, address in enumerate(addresses) if address is not None
               for byte in range(address, address + size)]
    assert found.lines == len({byte // 128 for _, byte in touched})
    assert found.accesses == len({(lane // 4, byte // 128) for lane, byte in touched})
    assert found.ideal_accesses == len({lane // 4 for lane, _ in touched}) <= found.accesses
    assert found.unique_bytes == len({byte for _, byte in touched}) and found.bytes == len(touched)
    assert found.ideal_lines <= found.lines and 0 <= found.efficiency <= 1


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("mnemonic, places, message", [
    ("v_add_f32", [[0]], "'v_add_f32' does not read or write LDS"),
    ("ds_read2_b32", [[0]], "touches LDS at 2 place.s. a lane, and 1 are given"),
    ("ds_read_b32", [[0] * 65], "65 offsets for the 64 lanes"), ("ds_read_b32", [[-4]], "LDS has no byte -4")])
def test_refused_banks(chip: str, mnemonic: str, places: list[list[int]], message: str) -> None:
    with pytest.raises(FlylabError, match=message) as caught:
        bank_conflicts(mnemonic, chip, *places)
    assert caught.value.hint


@pytest.mark.parametrize("addresses, size", [([0] * 65, 4), ([-1], 4), ([0], 0)])
def test_refused_addresses(addresses: list[int], size: int) -> None:
    with pytest.raises(FlylabError) as caught:
        coalescing(addresses, size)
    assert caught.value.hint
