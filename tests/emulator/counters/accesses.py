"""Random accesses of LDS for the tests of its counters, the kernel that makes them, and their cost by brute force."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from flylab.emulator import Program, Report
from flylab.emulator.decoding.chips import chips_with
from flylab.emulator.instructions import lds, lds_atomic
from tests.emulator.toolchain import assembly
from tests.test_lds_banks import TABLE

COPIES, WAVES = 16, 125
"""Copies of an instruction in the kernel, and waves that execute each: 2,000 accesses."""
LDS_BYTES = 8192
DATA_BYTES, RECORDS = 8192, 4001
ROOM = 3072
"""Bytes behind the last random address, for offsets and data."""
AT_M0 = re.compile("append|consume|addtid")


class Form(NamedTuple):
    """An instruction as text, the width of the row that its accesses have, the bytes of one, and how many they are."""

    text: str
    row: str
    size: int
    accesses: int


def _registers(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def form(name: str) -> Form:
    """An instruction of LDS by its mnemonic, with the address in v2."""
    two = "2st64" in name or re.search(r"(read|write|wrxchg)2_", name)
    offsets = " offset0:1 offset1:3" if two else " offset:8"
    if AT_M0.search(name):
        return Form(f"{name} v10 offset:8", "read" if "read" in name else "write", 4, 1)
    if plain := re.match(r"ds_(read|write)(?:2|2st64)?_[biu](\d+)", name):
        size, verb = int(plain[2]) // 8, plain[1]
        count = -(-size // 4)
        if verb == "read":
            operands = f"{_registers(10, 2 * count if two else count)}, v2"
        else:
            operands = ", ".join(["v2", _registers(10, count), *([_registers(20, count)] if two else [])])
        return Form(f"{name} {operands}{offsets}", verb, size, 2 if two else 1)
    size = 8 if name.endswith("64") else 4
    data = 2 if two else lds_atomic.DECODERS[name].args[0].operands  # type: ignore[attr-defined]
    result = [_registers(30, size // 4 * (2 if two else 1))] if "rtn" in name else []
    operands = ", ".join([*result, "v2", *(_registers(10 * n, size // 4) for n in range(1, data + 1))])
    return Form(f"{name} {operands}{offsets}", "write", size, 2 if two else 1)


def mnemonics(chip: str) -> list[str]:
    """Every instruction that reads or writes LDS on a chip."""
    return [name for name in sorted({**lds.DECODERS, **lds_atomic.DECODERS}) if chip in chips_with(name)]


class Accesses(NamedTuple):
    """Byte addresses (accesses, 64) and the active lanes (accesses, 64) as booleans."""

    addresses: np.ndarray
    active: np.ndarray

    @property
    def masks(self) -> np.ndarray:
        """The active lanes as bits."""
        return np.packbits(self.active, axis=1, bitorder="little").view("<u8").ravel()


@cache
def random_accesses(seed: int, whole_groups: bool) -> Accesses:
    """Accesses of many kinds: strides, swizzled rows, few distinct words, anything; some like the one before, moved.

    They are multiples of 8, as atomics need. `whole_groups` makes each 16 lanes active together.
    """
    random = np.random.default_rng(seed)
    count, lanes = COPIES * WAVES, np.arange(64)
    most = (LDS_BYTES - ROOM) // 8
    found = np.empty((count, 64), np.int64)
    active = random.random((count, 64)) < random.choice([0.1, 0.5, 0.9, 1.1, 1.1], (count, 1))
    if whole_groups:
        active = np.repeat(active[:, ::16], 16, axis=1)
    for n in range(count):
        kind = random.integers(5)
        if kind == 0:
            found[n] = random.integers(0, most, 64)
        elif kind == 1:
            found[n] = random.integers(most) + lanes * random.integers(0, 40)
        elif kind == 2:
            found[n] = lanes // 8 * 16 + (lanes % 8 ^ lanes // 8 % random.integers(1, 9)) * random.integers(1, 3)
        elif kind == 3:
            found[n] = random.choice(random.integers(0, most, random.integers(1, 6)), 64)
        else:  # what the same copy of the instruction did in the wave before, moved
            found[n] = found[n - COPIES] + random.integers(0, 64) if n >= COPIES else lanes
            active[n] = active[n - COPIES] if n >= COPIES and random.integers(2) else active[n]
    return Accesses(found % most * 8, active)


def run(chip: str, text: str, accesses: Accesses, **watch: Any) -> Report:
    """The report, with counters, of a kernel with copies of an instruction.

    The copy's addresses are in v2, and with the address of a buffer of `DATA_BYTES` before them in v[4:5]. That address
    is in s[20:21], and a descriptor of the first `RECORDS` bytes in s[24:27]. M0 is the address of the first lane.
    """
    body = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_load_dwordx2 s[20:21], s[0:1], 0x10",
            "v_lshlrev_b32_e32 v1, 2, v0", "s_waitcnt lgkmcnt(0)"]
    for low, size in ((4, 256), (6, 8)):
        body += [f"s_mul_i32 s8, s2, {size * COPIES}", f"s_add_u32 s{low}, s{low}, s8",
                 f"s_addc_u32 s{low + 1}, s{low + 1}, 0"]
    body += ["s_mov_b32 s24, s20", "s_mov_b32 s25, s21", f"s_mov_b32 s26, {RECORDS}", "s_mov_b32 s27, 0x27000"]
    for n in range(COPIES):
        body += [f"s_load_dwordx2 s[10:11], s[6:7], {8 * n:#x}", f"global_load_dword v2, v1, s[4:5] offset:{256 * n}",
                 "s_waitcnt vmcnt(0) lgkmcnt(0)", "v_readfirstlane_b32 s12, v2", "s_mov_b32 m0, s12",
                 "v_mov_b32_e32 v5, s21", "v_add_co_u32_e32 v4, vcc, s20, v2", "v_addc_co_u32_e32 v5, vcc, 0, v5, vcc",
                 "s_mov_b64 exec, s[10:11]", text, "s_mov_b64 exec, -1", "s_waitcnt vmcnt(0) lgkmcnt(0)"]
    program = assembly("\n".join(f"  {line}" for line in [*body, "s_endpgm"]), chip, 3, vgprs=64,
                       group_segment_fixed_size=LDS_BYTES)
    return Program.from_assembly(program).launch(
        grid=WAVES, block=64, args=[accesses.addresses.astype("<u4"), accesses.masks, np.zeros(DATA_BYTES, np.uint8)],
        check=None, counters=True, **watch)


def copies(report: Report, figure: str, text: str) -> np.ndarray:
    """A figure of each copy of the instruction under test."""
    counters = report.counters
    assert counters is not None
    found = counters[figure][[n for n, other in enumerate(counters.texts) if other.strip() == text]]
    assert len(found) == COPIES
    return found


def by_copy(values: np.ndarray) -> np.ndarray:
    """The sum of what is given for each access, for each copy of the instruction."""
    return values.reshape(WAVES, COPIES).sum(axis=0)


def row_of(chip: str, verb: str, size: int) -> tuple[int, list[set[int]]]:
    """Banks and phases of the published row for a width, or of the nearest: the wider, or that of the other verb."""
    width = 8 * max(size, 4)
    for name in (f"ds_{verb}_b{width}", *([f"ds_{verb}_b128"] if width == 96 else []),
                 f"ds_{'read' if verb == 'write' else 'write'}_b{width}"):
        if (chip, name) in TABLE:
            return TABLE[chip, name][:2]
    raise KeyError(verb, width)


def brute_force(chip: str, verb: str, size: int, accesses: Accesses) -> tuple[np.ndarray, np.ndarray]:
    """The phases that serve a lane, and the cycles, of each access: word by word, by the words of the hardware page."""
    banks, phases = row_of(chip, verb, size)
    phase_of = np.array([next(n for n, phase in enumerate(phases) if lane in phase) for lane in range(64)])
    served = np.zeros(len(accesses.active), np.int64)
    cycles = np.zeros_like(served)
    for n, (addresses, active) in enumerate(zip(accesses.addresses.tolist(), accesses.active, strict=True)):
        words: list[list[set[int]]] = [[set() for _ in range(banks)] for _ in phases]
        for lane in np.flatnonzero(active).tolist():
            for byte in range(addresses[lane], addresses[lane] + size):
                words[phase_of[lane]][byte // 4 % banks].add(byte // 4)
        fullest = [max(map(len, phase)) for phase in words]
        served[n], cycles[n] = np.count_nonzero(fullest), sum(fullest)
    return served, cycles
