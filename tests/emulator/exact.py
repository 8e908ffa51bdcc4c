"""Rounding of rational numbers to IEEE formats, the oracle of float instructions; and one instruction on many rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from flylab.emulator import Program
from tests.emulator.toolchain import assembly

NEAREST, UP, DOWN, ZERO = range(4)
MODES = {"nearest": NEAREST, "up": UP, "down": DOWN, "zero": ZERO}


@dataclass(frozen=True)
class Format:
    """A format of `precision` significant bits whose exponents (of a significand below 2) end at `least` and `most`."""

    numpy: str
    precision: int
    least: int
    most: int

    @property
    def largest(self) -> Fraction:
        return Fraction(2) ** self.most * (2 - Fraction(2) ** (1 - self.precision))

    def rounded(self, value: Fraction, mode: int, negative_zero: bool = False) -> float:
        """A rational number in this format; `negative_zero` is the sign of a result that is exactly zero."""
        if value == 0:
            return -0.0 if negative_zero else 0.0
        size = abs(value)
        exponent = max(_floor_log2(size), self.least)
        unit = Fraction(2) ** (exponent - self.precision + 1)
        count, rest = divmod(size, unit)
        outwards = mode == (UP if value > 0 else DOWN)
        if mode == NEAREST:
            outwards = rest * 2 > unit or rest * 2 == unit and count % 2 == 1
        found = (count + (outwards and rest != 0)) * unit
        if found > self.largest:  # rounded to nearest it went beyond; rounded elsewhere, where that points
            infinite = mode in (NEAREST, UP if value > 0 else DOWN)
            found_float = float("inf") if infinite else float(self.largest)
        else:
            found_float = float(found)
        return found_float if value > 0 else -found_float


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


HALF, SINGLE, DOUBLE = Format("f2", 11, -14, 15), Format("f4", 24, -126, 127), Format("f8", 53, -1022, 1023)

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
