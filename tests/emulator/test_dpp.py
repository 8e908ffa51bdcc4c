"""DPP against brute force: every control, under masks and any EXEC, on instructions of one and two sources.

The reference moves whole rows of lanes as Python lists; the device shuffles by the numbers of lanes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from tests.emulator.oracles.device import ROWS, Device
from tests.emulator.toolchain import CHIPS, assembly

LANES = range(64)
FULL = (1 << 64) - 1
EXECS = (FULL, 0x00FF_F0F0_8001_7FFE, 0x5555_5555_AAAA_AAAA, 1 << 33, 0)
CONTROLS = [*(f"row_{kind}:{n}" for kind in ("shl", "shr", "ror") for n in range(1, 16)),
            *(f"row_newbcast:{n}" for n in range(16)), *(f"wave_{kind}:1" for kind in ("shl", "shr", "rol", "ror")),
            "row_mirror", "row_half_mirror", "row_bcast:15", "row_bcast:31",
            *("quad_perm:[{},{},{},{}]".format(*p) for p in list(product(range(4), repeat=4))[::7])]
VCC, EXEC = 106, 126


def sources(control: str) -> list[int | None]:
    """The lane that each lane reads, by moving lists."""
    all_ = list(LANES)
    rows = [all_[at:at + 16] for at in range(0, 64, 16)]
    name, _, text = control.partition(":")
    none: list[int | None] = [None]
    if name == "quad_perm":
        return [lane // 4 * 4 + int(re.findall(r"\d", text)[lane % 4]) for lane in all_]
    n = int(text or 0)
    moved: dict[str, Callable[[], list[list[int | None]]]] = {
        "row_shl": lambda: [[*row[n:], *none * n] for row in rows],
        "row_shr": lambda: [[*none * n, *row[:-n]] for row in rows],
        "row_ror": lambda: [[*row[-n:], *row[:-n]] for row in rows],
        "row_newbcast": lambda: [[row[n]] * 16 for row in rows],
        "row_mirror": lambda: [[*row[::-1]] for row in rows],
        "row_half_mirror": lambda: [[*row[7::-1], *row[:7:-1]] for row in rows],
        "row_bcast": lambda: ([none * 16, [15] * 16, [31] * 16, [47] * 16] if n == 15 else [none * 32, [31] * 32]),
        "wave_shl": lambda: [[*all_[1:], None]], "wave_shr": lambda: [[None, *all_[:-1]]],
        "wave_rol": lambda: [[*all_[1:], 0]], "wave_ror": lambda: [[63, *all_[:-1]]],
    }
    return sum(moved[name](), [])


def moved(row: np.ndarray, control: str, row_mask: int, bank_mask: int, zero: bool,
          exec_: int) -> tuple[np.ndarray, np.ndarray]:
    """The source as each lane reads it, and which lanes take part."""
    values, takes_part = row.copy(), np.zeros(64, bool)
    for lane, source in enumerate(sources(control)):
        reached = source is not None and exec_ >> source & 1
        values[lane] = row[source] if reached else 0
        inside = row_mask >> lane // 16 & 1 and bank_mask >> lane % 16 // 4 & 1
        takes_part[lane] = exec_ >> lane & 1 and inside and (reached or zero)
    return values, takes_part


def state(seed: int, exec_: int = FULL) -> tuple[np.ndarray, np.ndarray]:
    """Registers of any bits: vector ones, and scalar ones with this EXEC."""
    random = np.random.default_rng(seed)
    v = random.integers(0, 1 << 32, (ROWS, 64), dtype=np.uint64).astype(np.uint32)
    s = random.integers(0, 1 << 32, 144, dtype=np.uint64).astype(np.uint32)
    s[EXEC:EXEC + 2] = exec_ & 0xFFFFFFFF, exec_ >> 32
    return v, s


def wide(s: np.ndarray, at: int) -> int:
    """A pair of scalar registers."""
    return int(s[at]) | int(s[at + 1]) << 32


def words(control: str, row_mask: int, bank_mask: int, zero: bool) -> str:
    """The modifiers as LLVM prints them."""
    return f"{control} row_mask:{row_mask:#x} bank_mask:{bank_mask:#x}" + " bound_ctrl:1" * zero


@pytest.mark.parametrize("chip", CHIPS)
def test_every_control_moves_lanes(chip: str) -> None:
    random = np.random.default_rng(7)
    cases = [(c, int(random.integers(16)), int(random.integers(16)), bool(random.integers(2))) for c in CONTROLS]
    cases += [(c, 15, 15, zero) for c in CONTROLS for zero in (False, True)]
    device = Device(chip, [f"v_mov_b32_dpp v2, v3 {words(*case)}" for case in cases])
    for n, case in enumerate(cases):
        exec_ = EXECS[n % len(EXECS)]
        v, s = state(n, exec_)
        values, takes_part = moved(v[3], *case, exec_)
        found = device.run(n, v, s)[0]
        assert np.array_equal(found[2], np.where(takes_part, values, v[2])), (case, hex(exec_))
        found[2] = v[2]
        assert np.array_equal(found, v)


def floats(v: np.ndarray) -> np.ndarray:
    """Registers made floats near 1, whose sums and products are exact in any order of evaluation."""
    return (v % 1024 - 512).astype(np.int32).astype(np.float32).view(np.uint32)


def _binary(operation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda x, y, old, carry: operation(x.view(np.float32), y.view(np.float32)).view(np.uint32)


# The text up to the modifiers, whether registers are floats, and the result of source, v4, the old v2 and VCC's bits.
OPERATIONS: dict[str, tuple[bool, Callable[..., np.ndarray]]] = {
    "v_add_u32_dpp v2, v3, v4": (False, lambda x, y, old, carry: x + y),
    "v_subrev_u32_dpp v2, v3, v4": (False, lambda x, y, old, carry: y - x),
    "v_lshlrev_b16_dpp v2, v3, v4": (False, lambda x, y, old, carry: (y << (x & 15)) & 0xFFFF),
    "v_cndmask_b32_dpp v2, v3, v4, vcc": (False, lambda x, y, old, carry: np.where(carry, y, x)),
    "v_add_f32_dpp v2, -v3, |v4|": (True, _binary(lambda x, y: np.abs(y) - x)),
    "v_max_f32_dpp v2, |v3|, -v4": (True, _binary(lambda x, y: np.maximum(np.abs(x), -y))),
    "v_min_f32_dpp v3, v3, v4": (True, _binary(np.minimum)),
    "v_fmac_f32_dpp v2, v3, v4": (True, lambda x, y, old, carry: (
        x.view(np.float32) * y.view(np.float32) + old.view(np.float32)).view(np.uint32)),
    "v_floor_f32_dpp v2, v3": (True, lambda x, y, old, carry: np.floor(x.view(np.float32)).view(np.uint32)),
    "v_xnor_b32_dpp v3, v3, v3": (False, lambda x, y, old, carry: ~(x ^ old)),
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("text", OPERATIONS)
def test_instructions_on_moved_lanes(text: str, chip: str) -> None:
    is_float, compute = OPERATIONS[text]
    result = int(text.split()[1].strip(",v"))
    cases = [(c, rows, 15, zero) for c, rows, zero in zip(
        CONTROLS[3::9], (15, 10, 12, 5) * 4, (True, False) * 8, strict=False)]
    cases += [("wave_shr:1", 15, 15, False), ("row_bcast:15", 15, 15, True)]
    device = Device(chip, [f"{text} {words(*case)}" for case in cases], ieee_mode=0)
    for n, case in enumerate(cases):
        exec_ = EXECS[n % 3]
        v, s = state(n, exec_)
        v = floats(v) if is_float else v
        values, takes_part = moved(v[3], *case, exec_)
        carry = np.array([wide(s, VCC) >> lane & 1 for lane in LANES], bool)
        wanted = np.where(takes_part, compute(values, v[4], v[result], carry), v[result])
        found = device.run(n, v, s)[0][result]
        zeros = is_float and np.logical_not((found | wanted) & 0x7FFFFFFF)  # of either sign
        assert np.array_equal(np.where(zeros, 0, found), np.where(zeros, 0, wanted)), (case, hex(exec_))


@pytest.mark.parametrize("text", ["v_add_f32_dpp v2, v3, v4", "v_sub_f32_dpp v2, -v3, v4",
                                  "v_subrev_f32_dpp v2, v3, v4", "v_subrev_f32_dpp v2, |v3|, -v4"])
def test_a_zero_from_beyond_a_row_makes_a_signalling_nan_quiet(text: str) -> None:
    """As any sum does with one, by IEEE 754: no lane has its operand back."""
    v, s = state(1)
    v[3], v[4] = 0x3F800000, 0x7F800001
    found = Device("gfx942", [f"{text} row_shl:9 row_mask:0xf bank_mask:0xf bound_ctrl:1"]).run(0, v, s)[0][2]
    assert set((found & 0x7FFFFFFF).tolist()) == {0x7FC00001}


def test_a_carry_of_lanes_that_take_no_part_is_zero() -> None:
    device = Device("gfx942", ["v_add_co_u32_dpp v2, vcc, v3, v4 row_shr:1 row_mask:0x6 bank_mask:0xf"])
    v, s = state(3, EXECS[1])
    values, takes_part = moved(v[3], "row_shr:1", 6, 15, False, EXECS[1])
    found, scalars = device.run(0, v, s)
    total = values.astype(np.uint64) + v[4]
    assert np.array_equal(found[2], np.where(takes_part, total.astype(np.uint32), v[2]))
    assert wide(scalars, VCC) == sum(1 << lane for lane in LANES if takes_part[lane] and total[lane] >> 32)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("zero", [False, True])
def test_64_bit_operands_have_row_newbcast(chip: str, zero: bool) -> None:
    case = ("row_newbcast:5", 7, 13, zero)
    device = Device(chip, [f"v_mov_b64_dpp v[2:3], v[4:5] {words(*case)}",
                           f"v_fmac_f64_dpp v[2:3], v[4:5], v[6:7] {words(*case)}",
                           f"v_cvt_f64_f32_dpp v[2:3], v4 {words(*case)}"])
    for exec_ in EXECS:
        v, s = state(5, exec_)
        low, takes_part = moved(v[4], *case, exec_)
        high = moved(v[5], *case, exec_)[0]
        found = device.run(0, v, s)[0]
        assert np.array_equal(found[2], np.where(takes_part, low, v[2]))
        assert np.array_equal(found[3], np.where(takes_part, high, v[3]))
        pairs = {at: np.arange(64) % 50 * 0.5 + at for at in (2, 4, 6)}
        for at, value in pairs.items():
            v[at], v[at + 1] = value.view(np.uint64) & 0xFFFFFFFF, value.view(np.uint64) >> 32
        first, takes_part = moved(pairs[4], *case, exec_)
        found = device.run(1, v, s)[0]
        total = found[2].astype(np.uint64) | found[3].astype(np.uint64) << np.uint64(32)
        assert np.array_equal(total.view(float), np.where(takes_part, first * pairs[6] + pairs[2], pairs[2]))
        v[4] = np.arange(64, dtype=np.float32).view(np.uint32)
        first, takes_part = moved(np.arange(64.0), *case, exec_)
        found = device.run(2, v, s)[0]
        total = found[2].astype(np.uint64) | found[3].astype(np.uint64) << np.uint64(32)
        assert np.array_equal(total.view(float), np.where(takes_part, first, pairs[2]))


@pytest.mark.parametrize("text, why", [
    ("v_mov_b32_dpp v2, v3", "it names no lanes"), ("v_mov_b32_dpp v2, s3 row_shl:1", "of a vector register only"),
    ("v_mov_b32_dpp v2, 1.0 row_shl:1", "of a vector register only"),
    ("v_mov_b32_dpp v2, v3 row_shl:0", "'row_shl:0' names no lanes"), ("v_mov_b32_dpp v2, v3 row_shl:16", "no lanes"),
    ("v_mov_b32_dpp v2, v3 row_bcast:16", "names no lanes"), ("v_mov_b32_dpp v2, v3 wave_shl:2", "names no lanes"),
    ("v_mov_b32_dpp v2, v3 row_mirror:1", "names no lanes"), ("v_mov_b32_dpp v2, v3 row_shl", "names no lanes"),
    ("v_mov_b32_dpp v2, v3 quad_perm:[0,1,2]", "names no lanes"), ("v_mov_b32_dpp v2, v3 row_shl:x", "names no lanes"),
    ("v_mov_b32_dpp v2, v3 quad_perm:[0,1,2,4]", "names no lanes"),
    ("v_mov_b32_dpp v2, v3 row_share:1", "the modifier 'row_share:1'"),
    ("v_mov_b32_dpp v2, v3 row_shl:1 fi:1", "the modifier 'fi:1'"),
    ("v_mov_b32_dpp v2, v3 row_shl:1 row_shr:1", "the modifier 'row_shr:1'"),
    ("v_mov_b32_dpp v2, v3 row_shl:1 row_mask:0x10", "the row_mask 0x10 is no number from 0 to 15"),
    ("v_mov_b32_dpp v2, v3 row_shl:1 bound_ctrl:2", "the bound_ctrl 2"),
    ("v_mov_b32_e32 v2, v3 row_shl:1", "has no room for 'row_shl:1'"),
    ("v_mov_b32_e32 v2, v3 row_mask:0x3", "has no room for 'row_mask:0x3'"),
    ("v_mov_b64_dpp v[2:3], v[4:5] row_shl:1", "row_newbcast only"),
    ("v_cvt_f64_f32_dpp v[2:3], v4 quad_perm:[0,0,0,0]", "row_newbcast only"),
    ("v_cmp_eq_u32_dpp vcc, v2, v3 row_shl:1", "v_cmp_eq_u32 has no DPP encoding"),
    ("v_mul_lo_u32_dpp v1, v2, v3 row_shl:1", "v_mul_lo_u32 has no DPP encoding"),
    ("v_readfirstlane_b32_dpp s1, v2 row_shl:1", "v_readfirstlane_b32 has no DPP encoding"),
])
def test_what_dpp_cannot_do(text: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match="ISA line 6") as caught:
        Program.from_assembly(assembly(f"  {text}\n  s_endpgm")).load("k")
    assert why in str(caught.value)
