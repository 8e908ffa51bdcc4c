"""Calls, hardware registers, messages and debugger jumps."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import DeviceError, UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly

STORE = """
  v_lshlrev_b32_e32 v1, 2, v0
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_lshl_b32 s3, s2, {shift}
  v_add_u32_e32 v1, s3, v1
  v_mov_b32_e32 v2, {value}
  global_store_dword v1, v2, s[4:5]
  s_endpgm"""


def stored(body: str, chip: str = "gfx942", grid: int = 1, block: int = 64, value: str = "s20") -> np.ndarray:
    """What each thread has in `value` after a body, by workgroup."""
    found = np.zeros((grid, block), np.uint32)
    text = body + STORE.format(value=value, shift=(4 * block).bit_length() - 1)
    Program.from_assembly(assembly(text, chip)).launch(grid=grid, block=block, args=[found])
    return found


@pytest.mark.parametrize("chip", CHIPS)
def test_a_call_by_label_and_one_by_address_return(chip: str) -> None:
    body = """
  s_mov_b32 s20, 1
  s_call_b64 s[10:11], .Ltwice
  s_add_u32 s20, s20, 3
  s_getpc_b64 s[8:9]
.Lhere:
  s_add_u32 s8, s8, (.Ltwice-.Lhere)&4294967295
  s_addc_u32 s9, s9, (.Ltwice-.Lhere)>>32
  s_swappc_b64 s[10:11], s[8:9]
  s_swappc_b64 s[8:9], s[8:9]
  s_add_u32 s20, s20, 100
  s_branch .Lend_of_test
.Ltwice:
  s_lshl_b32 s20, s20, 1
  s_mov_b32 s21, s10
  s_cmp_gt_u32 s20, 15
  s_cbranch_scc1 .Lsecond
  s_setpc_b64 s[10:11]
.Lsecond:
  s_setpc_b64 s[8:9]
.Lend_of_test:"""
    # 1 -> 2, + 3, -> 10 by the address; the third call keeps its return in the register that held the target.
    assert np.all(stored(body, chip) == 120)


def test_a_call_to_nowhere_is_an_error() -> None:
    with pytest.raises(DeviceError, match="s_swappc_b64"):
        stored("  s_mov_b64 s[8:9], 64\n  s_swappc_b64 s[10:11], s[8:9]\n")
    with pytest.raises(UnknownInstruction, match="no label .Lnone"):
        stored("  s_call_b64 s[10:11], .Lnone\n")


@pytest.mark.parametrize("chip", CHIPS)
def test_where_a_wave_runs(chip: str) -> None:
    """Workgroups go round the eight dies, the waves of one round the four SIMDs."""
    dies = stored("  s_getreg_b32 s20, hwreg(HW_REG_XCC_ID)\n", chip, grid=19)
    assert np.array_equal(dies, np.repeat(np.arange(19)[:, None] % 8, 64, axis=1))
    assert np.array_equal(stored("  s_getreg_b32 s20, hwreg(20, 1, 2)\n", chip, grid=19), dies >> 1)
    place = stored("  s_getreg_b32 s20, hwreg(HW_REG_HW_ID)\n", chip, block=512)[0].reshape(8, 64)
    assert np.array_equal(place, np.repeat([[wave % 4 << 4 | wave // 4] for wave in range(8)], 64, axis=1))
    simd = stored("  s_getreg_b32 s20, 0x904\n", chip, block=512)[0].reshape(8, 64)  # HW_ID, bits 4 and 5
    assert np.array_equal(simd[:, 0], np.arange(8) % 4)


def test_what_has_no_effect() -> None:
    body = """
  s_mov_b32 s20, 7
  s_sendmsg sendmsg(MSG_INTERRUPT)
  s_sendmsg 1
  v_clrexcp
  s_cbranch_cdbgsys .Laway
  s_cbranch_cdbguser .Laway
  s_cbranch_cdbgsys_or_user .Laway
  s_cbranch_cdbgsys_and_user .Laway
  s_branch .Lstore
.Laway:
  s_mov_b32 s20, 8
.Lstore:"""
    assert np.all(stored(body) == 7)


@pytest.mark.parametrize("text, why", [
    ("s_sendmsg sendmsg(MSG_GS_DONE, GS_OP_NOP)", "MSG_INTERRUPT only"), ("s_sendmsg sendmsg(MSG_SAVEWAVE)", "only"),
    ("s_sendmsg", "MSG_INTERRUPT only"), ("s_sendmsghalt sendmsg(MSG_INTERRUPT)", "nothing here could wake"),
    ("s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS)", "MODE, HW_ID and XCC_ID only"),
    ("s_getreg_b32 s4, hwreg(HW_REG_LDS_ALLOC, 12, 9)", "MODE, HW_ID and XCC_ID only"),
    ("s_getreg_b32 s4, hwreg(HW_REG_NONE)", "is no hardware register"),
    ("s_getreg_b32 s4, s5", "is no hardware register"),
    ("s_getreg_b32 v4, hwreg(HW_REG_XCC_ID)", "a vector register stands"),
    ("s_setreg_b32 hwreg(HW_REG_HW_ID, 4, 2), s4", "only MODE can be written"),
    ("s_cbranch_i_fork s[4:5], .L", "no stack of forks"),
    ("s_rfe_b64 s[4:5]", "a trap handler"), ("s_setvskip s4, s5", "branch around them"),
    ("s_cbranch_cdbgsys .Lnone", "no label .Lnone"), ("s_call_b64 s[4:5]", "takes a result and a label"),
    ("s_swappc_b64 s[4:5], v[4:5]", "a vector register stands"), ("s_swappc_b64 s[4:5]", "1 operands, and takes 2"),
    ("v_screen_partition_4se_b32 v1, v2", "no document"),
])
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match="ISA line 6") as caught:
        Program.from_assembly(assembly(f"  {text}\n  s_endpgm")).load("k")
    assert why in str(caught.value)
