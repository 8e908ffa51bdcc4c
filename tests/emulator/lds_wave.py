"""One wave with registers and LDS as a test wants them, one instruction, and what it leaves of both."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from flylab.emulator import Program
from tests.emulator.toolchain import assembly

LDS_BYTES = 2048
ROWS = 10  # v2 to v11
ALL = (1 << 64) - 1


class Wave(NamedTuple):
    """Registers v2 to v11, one row of 64 lanes each, and the bytes of LDS."""

    registers: np.ndarray
    lds: np.ndarray

    def row(self, number: int) -> np.ndarray:
        """The lanes of register v<number>."""
        return self.registers[number - 2]


@cache
def _program(text: str, chip: str, exec_: int, m0: int, mode: int) -> Program:
    steps = range(0, LDS_BYTES, 256)
    lines = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "v_lshlrev_b32 v1, 2, v0", "s_waitcnt lgkmcnt(0)"]
    for at in steps:
        lines += [f"global_load_dword v2, v1, s[6:7] offset:{at}", f"ds_write_b32 v1, v2 offset:{at}"]
    lines += [f"global_load_dword v{2 + n}, v1, s[4:5] offset:{256 * n}" for n in range(ROWS)]
    lines += [f"s_mov_b32 m0, {m0:#x}", f"s_mov_b32 exec_lo, {exec_ & 0xFFFFFFFF:#x}",
              f"s_mov_b32 exec_hi, {exec_ >> 32:#x}", *text.split("\n"), "s_mov_b64 exec, -1"]
    lines += [f"global_store_dword v1, v{2 + n}, s[4:5] offset:{256 * n}" for n in range(ROWS)]
    for at in steps:
        lines += [f"ds_read_b32 v2, v1 offset:{at}", f"global_store_dword v1, v2, s[6:7] offset:{at}"]
    lines.append("s_endpgm")
    return Program.from_assembly(assembly("\n".join("  " + line for line in lines), chip, 2, vgprs=16,
                                          group_segment_fixed_size=LDS_BYTES, float_denorm_mode_32=mode,
                                          float_denorm_mode_16_64=mode))


def run(text: str, before: Wave, chip: str = "gfx942", exec_: int = ALL, m0: int = 0, mode: int = 3) -> Wave:
    """What instructions leave behind; v1 is 4 times the lane. `mode` is the denormal mode of all floats."""
    after = Wave(before.registers.astype("<u4"), before.lds.astype("u1"))
    _program(text, chip, exec_, m0, mode).launch(grid=1, block=64, args=[after.registers, after.lds])
    return after


def random_wave(seed: int, addresses: np.ndarray | None = None) -> Wave:
    """Random registers and LDS; v2 are `addresses`, by default any at which 16 bytes and more fit."""
    random = np.random.default_rng(seed)
    registers = random.integers(0, 1 << 32, (ROWS, 64), dtype=np.uint32)
    registers[0] = random.integers(0, LDS_BYTES - 128, 64) if addresses is None else addresses
    return Wave(registers, random.integers(0, 256, LDS_BYTES, dtype=np.uint8))


def active(exec_: int) -> list[int]:
    """The lanes that are on, lowest first."""
    return [lane for lane in range(64) if exec_ >> lane & 1]
