"""Registers moved between lanes: ds_bpermute_b32 and ds_permute_b32 against the ISA's own pseudo-code in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly

LANES = np.arange(64)


def moved(mnemonic: str, addresses: np.ndarray, exec_: int, offset: int, chip: str = "gfx942",
          result: str = "v5") -> np.ndarray:
    """The result of one instruction over one wave: data is 1000 + lane, and the result's register held 7."""
    body = f"""
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  v_add_u32 v3, 0x3e8, v0
  v_mov_b32 v5, 7
  s_mov_b32 exec_lo, {exec_ & 0xFFFFFFFF:#x}
  s_mov_b32 exec_hi, {exec_ >> 32:#x}
  {mnemonic} {result}, v2, v3 offset:{offset}
  s_mov_b64 exec, -1
  global_store_dword v1, {result}, s[6:7]
  s_endpgm"""
    found = np.zeros(64, "u4")
    Program.from_assembly(assembly(body, chip, 2)).launch(grid=1, block=64, args=[addresses.astype("u4"), found])
    return found


def by_the_document(mnemonic: str, addresses: np.ndarray, exec_: int, offset: int, before: np.ndarray) -> np.ndarray:
    """LDS_PERMUTE_B32 and LDS_BPERMUTE_B32 of the CDNA3 ISA document, line by line."""
    active = [exec_ >> lane & 1 for lane in range(64)]
    tmp = [0] * 64
    for lane in range(64):
        other = (int(addresses[lane]) + offset) // 4 % 64
        if mnemonic == "ds_permute_b32" and active[lane]:
            tmp[other] = 1000 + lane
        if mnemonic == "ds_bpermute_b32" and active[other]:
            tmp[lane] = 1000 + other
    return np.where(active, tmp, before)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("mnemonic", ["ds_bpermute_b32", "ds_permute_b32"])
@pytest.mark.parametrize("exec_", [2**64 - 1, 0x00FF_FFFF_0F0F_8001, 1 << 63, 0])
@pytest.mark.parametrize("offset", [0, 4, 252, 6, 65535])
def test_any_address(chip: str, mnemonic: str, exec_: int, offset: int) -> None:
    for seed, addresses in enumerate((LANES * 4, 252 - LANES * 4, LANES * 0 + 20, None)):
        if addresses is None:
            addresses = np.random.default_rng(seed).integers(0, 1 << 20, 64)
        found = moved(mnemonic, addresses, exec_, offset, chip)
        assert np.array_equal(found, by_the_document(mnemonic, addresses, exec_, offset, np.full(64, 7)))


@pytest.mark.parametrize("mnemonic", ["ds_bpermute_b32", "ds_permute_b32"])
@pytest.mark.parametrize("result", ["v2", "v3"])
def test_a_result_over_a_source(mnemonic: str, result: str) -> None:
    addresses = (LANES * 4 + 12) % 256
    found = moved(mnemonic, addresses, 2**64 - 1, 0, result=result)
    assert np.array_equal(found, by_the_document(mnemonic, addresses, 2**64 - 1, 0, LANES))


def test_another_modifier_is_refused() -> None:
    with pytest.raises(UnknownInstruction, match="the modifier 'gds'"):
        Program.from_assembly(assembly("  ds_bpermute_b32 v5, v2, v3 gds\n  s_endpgm")).launch(
            grid=1, block=64, args=[np.zeros(1, "i4")])
