"""What assembly of compilers on LLVM newer than ours holds: distilled from Triton 3.9 and IREE 3.13."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import OutOfBounds
from tests.emulator.toolchain import CHIPS, assembly

# The sum's constant is -0, so that where the product is -0 the sum is too.
WITH_SIGNS = """
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[2:3]
  s_waitcnt vmcnt(0)
  v_fma_mix_f32 v4, v2, v2, neg(0) op_sel:[0,1,0] op_sel_hi:[1,1,0]
  v_fma_mix_f32 v5, v2, v2, 0 op_sel:[0,1,0] op_sel_hi:[1,1,0]
  v_add_f32_e64 v6, neg(0), neg(|v2|)
  v_fma_f32 v7, 1.0, neg(abs(1.0)), -|4.0|
  global_store_dwordx4 v1, v[4:7], s[2:3]
  s_endpgm
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_signs_about_constants_that_the_encoding_has_codes_for(chip: str) -> None:
    """`neg(0)` is a code and a bit, and no 4 bytes more; -1 * 0 is -0, and stays so if it is added to -0."""
    device, found = Program.from_assembly(assembly(WITH_SIGNS, chip)), np.zeros((2, 4), "f4")
    found[0, :1] = np.array([-1, 0], "f2").view("f4")
    found[1, :1] = np.array([3, 2], "f2").view("f4")
    device.launch(grid=1, block=2, args=[found])
    assert np.array_equal(found[:, [0, 1, 3]], [[0, 0, -5], [6, 6, -5]])
    assert np.signbit(found[0]).tolist() == [True, False, True, True]
    assert found[1, 2] == -abs(np.array([3, 2], "f2").view("f4")[0])
    places = {i.mnemonic: i.address for i in device.isa.kernels["k"].instructions}
    assert places["global_store_dwordx4"] - places["v_add_f32_e64"] == 16


# Where clang and Triton print from a kernel, they ask the runtime for a buffer and begin by reading in it.
PRINTS = """
  s_load_dwordx2 s[2:3], s[0:1], 0x8
  v_mov_b32 v0, 0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx2 v[2:3], v0, s[2:3] offset:24 sc0 sc1
  s_waitcnt vmcnt(0)
  s_endpgm
"""


def test_a_kernel_that_prints_through_the_runtime_is_told_so() -> None:
    text = assembly(PRINTS, arguments=2)
    hidden = text.replace("        .name: a1\n", "").replace("""8
        .size: 8
        .value_kind: global_buffer""", """8
        .size: 8
        .value_kind: hidden_hostcall_buffer""")
    with pytest.raises(OutOfBounds, match="a read of 8 bytes at address 0x18: a null pointer") as caught:
        Program.from_assembly(hidden).launch(grid=1, block=64, args=[None])
    assert caught.value.hint is not None and caught.value.hint.endswith(
        "; the device leaves null hidden_hostcall_buffer (printf and assert of the runtime)")
    with pytest.raises(OutOfBounds) as caught:
        Program.from_assembly(text).launch(grid=1, block=64, args=[None, None])
    assert "hidden" not in str(caught.value)


# A descriptor of 2 GB - 2 bytes, as compilers make it that do not know the sizes of arrays.
LONG_DESCRIPTOR = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v0, 2, v0
  s_mov_b32 s6, 0x7ffffffe
  s_mov_b32 s7, 0x27000
  s_waitcnt lgkmcnt(0)
  s_and_b32 s5, s5, 0xffff
  buffer_load_dword v1, v0, s[4:7], 0 offen
  s_waitcnt vmcnt(0)
  buffer_store_dword v1, v0, s[4:7], 0 offen
  s_endpgm
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_beyond_an_array_whose_descriptor_is_longer(chip: str) -> None:
    device, found = Program.from_assembly(assembly(LONG_DESCRIPTOR, chip)), np.arange(64, dtype="f4")
    device.launch(grid=1, block=64, args=[found])
    assert np.array_equal(found, np.arange(64))
    with pytest.raises(OutOfBounds, match="right after the end of 'a0'") as caught:
        device.launch(grid=1, block=64, args=[found[:63]])
    assert caught.value.hint is not None and "its buffer descriptor is longer than the array" in caught.value.hint
