"""One instruction, or a few, on many rows of sources; and the rounding modes by name."""

from __future__ import annotations

import numpy as np

from flylab.emulator import Program
from tests.emulator.toolchain import assembly

NEAREST, UP, DOWN, ZERO = range(4)
MODES = {"nearest": NEAREST, "up": UP, "down": DOWN, "zero": ZERO}

ROWS = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshl_or_b32 v1, s2, 8, v0
  v_lshlrev_b32_e32 v2, 5, v1
  v_lshlrev_b32_e32 v3, 3, v1
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[4:7], v2, s[4:5]
  global_load_dwordx4 v[8:11], v2, s[4:5] offset:16
  s_waitcnt vmcnt(0)
  v_mov_b32_e32 v12, 0xaaaaaaaa
  v_mov_b32_e32 v13, 0xaaaaaaaa
  {}
  global_store_dwordx2 v3, v[12:13], s[6:7]
  s_endpgm
"""


def run(instruction: str, *sources: np.ndarray, result: str, chip: str = "gfx942", **descriptor: int) -> np.ndarray:
    """v12 (and v13) after instructions on rows of sources, which are in v4, v6, v8 and v10, two registers each."""
    count = -(-sources[0].size // 256) * 256
    rows = np.zeros((count, 8), "u4")
    for n, source in enumerate(sources):
        words = np.resize(source, count)
        if words.itemsize == 8:
            rows[:, 2 * n:2 * n + 2] = words.view("u4").reshape(-1, 2)
        else:
            rows[:, 2 * n] = words.view(f"u{words.itemsize}")
    found = np.zeros((count, 2), "u4")
    text = assembly(ROWS.format(instruction), chip, arguments=2, **descriptor)
    Program.from_assembly(text).launch(grid=count // 256, block=256, args=[rows, found])
    return found.view(result)[:sources[0].size, 0].copy()
