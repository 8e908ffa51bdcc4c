"""Registers before an instruction: special and random values of its operands' types in all lanes, partial EXEC."""

from __future__ import annotations

import zlib

import numpy as np

from flylab.emulator.state import EXEC, MODE, SCC, SGPR_COUNT, VCC, WAVE_SIZE
from tests.emulator.oracles.device import ROWS
from tests.emulator.oracles.forms import Case
from tests.emulator.snippets import values

# How the values of an operand type are drawn: the type of snippets.values, and how many fill a lane's registers.
DRAWN = {"b16": ("i16", 2), "b32": ("i32", 1), "b64": ("i64", 1), "f16": ("half", 2), "f16b": ("half", 2),
         "f16d": ("half", 2), "bf16": ("bfloat", 2), "f32": ("float", 1), "f64": ("double", 1)}
QUIET_BIT = {"half": 1 << 9, "float": 1 << 22, "double": 1 << 51}
NAN = {"half": 0x7C00, "float": 0x7F800000, "double": 0x7FF0000000000000}


def drawn(type_name: str, count: int, seed: int) -> np.ndarray:
    """The words of `count` operands of a type: (registers, count); some floats are signalling NaNs."""
    name, parts = DRAWN[type_name]
    found = values(name, count * parts, seed)
    if name in NAN:
        exponent, quiet = (np.array(bits[name], found.dtype) for bits in (NAN, QUIET_BIT))
        signalling = ((found & ~(exponent >> np.array(0, found.dtype))) | exponent | 1) & ~quiet
        found = np.where(np.random.default_rng(seed + 1).random(found.size) < 0.03, signalling, found)
    return np.ascontiguousarray(found).view(np.uint32).reshape(count, -1).T


def initial(case: Case, round_: int, mode: int) -> tuple[np.ndarray, np.ndarray]:
    """The vector and scalar registers that a case runs on, the same on each machine for the same round."""
    seed = zlib.crc32(case.text.encode()) + round_
    random = np.random.default_rng(seed)
    v = random.integers(0, 1 << 32, (ROWS, WAVE_SIZE), dtype=np.uint32)
    s = random.integers(0, 1 << 32, SGPR_COUNT, dtype=np.uint32)
    packed = case.mnemonic.startswith("v_pk_") and case.types[0][1:3] != "16"
    for n, type_name in enumerate(case.types):
        if type_name == "mask":
            continue
        for half in range(1 + packed):
            words = drawn(type_name, WAVE_SIZE, seed + 10 * n + 5 * half)
            for register, row in enumerate(words):
                v[4 + 2 * n + register + half] = row
                s[4 + 2 * n + register + half] = row[0]
    same = random.random(WAVE_SIZE) < 0.1  # comparisons and divisions are special where two sources are equal
    for n in range(1, len(case.types)):
        if case.types[n] == case.types[0] != "mask":
            v[4 + 2 * n:6 + 2 * n, same] = v[4:6, same]
            if random.random() < 0.3:
                s[4 + 2 * n:6 + 2 * n] = s[4:6]
    v[0:2] = np.where(random.random((2, WAVE_SIZE)) < 0.5, v[4:6], v[0:2])
    s[EXEC:EXEC + 2] = _exec(random, round_)
    s[VCC:VCC + 2] = random.integers(0, 1 << 32, 2)
    s[SCC], s[MODE] = random.integers(0, 2), mode
    return v, s


def _exec(random: np.random.Generator, round_: int) -> np.ndarray:
    """All lanes in even rounds; else some, one, or none."""
    if round_ % 2 == 0:
        return np.full(2, 0xFFFFFFFF, np.uint32)
    masks = (int(random.integers(0, 1 << 63)), 1 << int(random.integers(0, 64)), 0)
    mask = masks[min(int(random.integers(0, 10)), 2) if round_ % 4 == 3 else 0]
    return np.array([mask & 0xFFFFFFFF, mask >> 32], np.uint32)
