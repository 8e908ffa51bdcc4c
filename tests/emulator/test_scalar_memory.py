"""Scalar stores, atomics, scratch and clocks by hand; what llvm-mc takes of them for both chips is decoded."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import DeviceError, OutOfBounds, UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly


def by_hand(*lines: str, chip: str = "gfx942", data: np.ndarray | None = None) -> np.ndarray:
    """Runs lines with the argument, by default 0 to 63, at s[4:5], and its descriptor of 256 bytes at s[4:7]."""
    body = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_movk_i32 s6, 0x100",
            "s_mov_b32 s7, 0x27000", *(f"s_mov_b32 s{n}, {n}" for n in range(8, 16)), *lines, "s_endpgm"]
    data = np.arange(64, dtype="u4") if data is None else data
    Program.from_assembly(assembly("\n".join(f"  {x}" for x in body), chip)).launch(grid=1, block=64, args=[data])
    return data


@pytest.mark.parametrize("text, at, count", [
    ("s_store_dword s8, s[4:5], 0x14", 5, 1), ("s_store_dwordx2 s[8:9], s[4:5], s12", 3, 2),
    ("s_store_dwordx4 s[8:11], s[4:5], s12 offset:0x10", 7, 4), ("s_buffer_store_dwordx2 s[8:9], s[4:7], 0x10", 4, 2),
    ("s_buffer_store_dwordx4 s[8:11], s[4:7], 0xf8", 62, 2), ("s_buffer_store_dword s8, s[4:7], 0x100", 0, 0),
    ("s_mov_b32 s12, 2\n  s_scratch_store_dwordx4 s[8:11], s[4:5], s12", 32, 4),
    ("s_scratch_store_dword s8, s[4:5], 0x20", 8, 1),
])
def test_stores(text: str, at: int, count: int) -> None:
    wanted = np.arange(64)
    wanted[at:at + count] = np.arange(8, 8 + count)
    assert np.array_equal(by_hand(text), wanted)


def test_loads_of_scratch_count_registers_in_64_bytes() -> None:
    data = by_hand("s_mov_b32 s12, 3", "s_scratch_load_dwordx2 s[8:9], s[4:5], s12",
                   "s_store_dwordx2 s[8:9], s[4:5], 0x0")
    assert data[:3].tolist() == [48, 49, 2]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name, new", [("add", 18), ("sub", 2), ("swap", 8), ("smin", 8), ("umax", 10), ("and", 8),
                                       ("or", 10), ("xor", 2), ("inc", 0), ("dec", 8)])
@pytest.mark.parametrize("buffer", [False, True])
def test_atomics(chip: str, name: str, new: int, buffer: bool) -> None:
    """Element 10 and the operand 8; the value before is asked for by glc, and goes to element 0."""
    prefix, base = ("s_buffer_", "s[4:7]") if buffer else ("s_", "s[4:5]")
    data = by_hand(f"{prefix}atomic_{name} s8, {base}, 0x28 glc", "s_store_dword s8, s[4:5], 0x0", chip=chip)
    assert data[10] == new and data[0] == 10
    assert np.array_equal(np.delete(data, [0, 10]), np.delete(np.arange(64), [0, 10]))
    data = by_hand("s_mov_b32 s9, 0", f"{prefix}atomic_{name}_x2 s[8:9], {base}, 0x50", "s_store_dword s8, s[4:5], 0x0",
                   data=np.arange(32, dtype="u8"), chip=chip)
    assert data[10] == new and data[0] == 8


def test_compare_and_swap_and_what_is_out_of_range() -> None:
    assert by_hand("s_mov_b32 s9, 10", "s_atomic_cmpswap s[8:9], s[4:5], 0x28")[10] == 8
    assert by_hand("s_mov_b32 s9, 11", "s_atomic_cmpswap s[8:9], s[4:5], 0x28")[10] == 10
    data = by_hand("s_buffer_atomic_add s8, s[4:7], 0x100 glc", "s_store_dword s8, s[4:5], 0x14")
    assert data[5] == 0 and np.array_equal(np.delete(data, 5), np.delete(np.arange(64), 5))


def test_a_stride_scales_the_size_of_a_scalar_buffer() -> None:
    read = ("s_or_b32 s5, s5, 0x80000", "s_mov_b32 s6, 4", "s_buffer_load_dwordx2 s[8:9], s[4:7], 0x1c",
            "s_and_b32 s5, s5, 0xffff", "s_store_dwordx2 s[8:9], s[4:5], 0x0")
    assert by_hand(*read)[:2].tolist() == [7, 0]


@pytest.mark.parametrize("text, error, message", [
    ("s_store_dwordx4 s[8:11], s[4:5], 0xf8", OutOfBounds, "write of 16 bytes .*: its last 8 bytes are after the end"),
    ("s_store_dword s8, s[0:1], 0x0", OutOfBounds, "'the kernel arguments', which is read-only"),
    ("s_store_dword s8, s[4:5], 0x2", DeviceError, "no multiple of 4"),
    ("s_atomic_add_x2 s[8:9], s[4:5], 0x4", DeviceError, "an atomic of 8 bytes .* no multiple of 8"),
    ("s_buffer_load_dword s8, s[4:7], 0x0", None, ""),
    ("s_mov_b32 s7, 0xc0000000\n  s_buffer_load_dword s8, s[4:7], 0x0", DeviceError, "are no buffer descriptor"),
    ("s_store_dword s8, s[4:5], 0x200000", UnknownInstruction, "the offset 0x200000 is no number from"),
    ("s_atomic_cmpswap s8, s[4:5], 0x0", UnknownInstruction, "names 1 registers where the instruction takes 2"),
])
def test_refusals(text: str, error: type[Exception] | None, message: str) -> None:
    if error is None:
        by_hand(text)
        return
    with pytest.raises(error, match=message):
        by_hand(text, data=np.zeros(64, "u4") if "x2" not in text else np.zeros(32, "u8"))


CLOCK = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_memtime s[8:9]
  s_nop 0
  s_nop 0
  s_memrealtime s[10:11]
  s_waitcnt lgkmcnt(0)
  s_sub_u32 s10, s10, s8
  s_lshl_b32 s3, s2, 4
  s_add_u32 s4, s4, s3
  s_addc_u32 s5, s5, 0
  s_store_dwordx4 s[8:11], s[4:5], 0x0
  s_endpgm"""


def test_clocks_rise_with_the_instructions_and_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "3")
    for _ in range(2):
        data = np.zeros((50, 2, 2), "u4")
        Program.from_assembly(assembly(CLOCK)).launch(grid=50, block=64, args=[data])
        # The second instruction of each workgroup, and three more up to the fifth.
        assert np.array_equal(data, np.tile([[2, 0], [3, 0]], (50, 1, 1)))


@pytest.mark.skipif(not shutil.which("llvm-mc-22"), reason="llvm-mc-22 is not here")
@pytest.mark.parametrize("chip", CHIPS)
def test_llvm_takes_what_the_device_does(chip: str) -> None:
    from flylab.emulator.instructions.scalar_memory import DECODERS

    texts = []
    for name in DECODERS:
        width = 2 if name.endswith("x2") or "time" in name else 4 if name.endswith("x4") else 1
        width = {"x8": 8, "16": 16}.get(name[-2:], width) * (1 + ("cmpswap" in name))
        data = "s8" if width == 1 else f"s[8:{7 + width}]"
        base = "s[4:7]" if "buffer" in name else "s[4:5]"
        if not name.endswith("dwordx3"):
            texts.append(f"{name} {data}" if "time" in name else f"{name} {data}, {base}, s24 offset:0x10")
    done = subprocess.run(["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"], input="\n".join(texts),
                          text=True, capture_output=True)
    assert not done.stderr, done.stderr
    body = "\n".join(f"  {text}" for text in (*texts, "s_endpgm"))
    Program.from_assembly(assembly(body, chip)).load("k")
