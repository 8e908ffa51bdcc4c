"""SDWA against brute force: every selection of sources and results, sign extension, modifiers, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from tests.emulator.oracles.device import Device
from tests.emulator.test_dpp import EXEC, EXECS, LANES, VCC, state, wide
from tests.emulator.toolchain import CHIPS, assembly

SELECTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")


def part(select: str) -> tuple[int, int]:
    """The first bit and the width of a selection."""
    kind, _, number = select.partition("_")
    size = {"BYTE": 8, "WORD": 16, "DWORD": 32}[kind]
    return size * int(number or 0), size


def selected(row: np.ndarray, select: str, signed: bool) -> np.ndarray:
    """A source as an instruction of 32 bits takes it."""
    first, size = part(select)
    found = []
    for bits in map(int, row):
        value = bits >> first & ((1 << size) - 1)
        found.append(value - (1 << size) if signed and value >> (size - 1) else value)
    return np.array(found, np.int64).astype(np.uint32)


def placed(result: np.ndarray, old: np.ndarray, select: str, unused: str) -> np.ndarray:
    """A result as it is written."""
    first, size = part(select)
    found = []
    for bits, before in zip(map(int, result), map(int, old), strict=True):
        field = (1 << size) - 1
        value = bits & field
        if unused == "UNUSED_PRESERVE":
            found.append(before & ~(field << first) | value << first)
        elif unused == "UNUSED_SEXT" and value >> (size - 1):
            found.append(((value - (1 << size)) << first) & 0xFFFFFFFF)
        else:
            found.append(value << first)
    return np.array(found, np.uint32)


def half(operation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """An operation on the halves in the low 16 bits."""
    def compute(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = operation(x.astype(np.uint16).view(np.float16), y.astype(np.uint16).view(np.float16))
        return found.view(np.uint16).astype(np.uint32)
    return compute


# Mnemonic, and what it computes of the two selected sources.
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "v_add_u32": lambda x, y: x + y, "v_and_b32": lambda x, y: x & y,
    "v_sub_u16": lambda x, y: (x - y) & 0xFFFF, "v_lshrrev_b32": lambda x, y: y >> (x & 31),
    "v_max_i32": lambda x, y: np.maximum(x.view(np.int32), y.view(np.int32)).view(np.uint32),
    "v_mul_u32_u24": lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF),
    "v_add_f16": half(np.add),
}


def operand(register: str, signed: bool) -> str:
    """A source, sign-extended or not."""
    return f"sext({register})" if signed else register


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", BINARY)
def test_every_selection(name: str, chip: str) -> None:
    random = np.random.default_rng(len(name))
    signs = [False] if "f16" in name else [False, True]
    sources = list(product(SELECTS, signs, SELECTS, signs))
    results = list(product(SELECTS, UNUSED))
    cases = [(*s, *results[random.integers(len(results))]) for s in sources]
    cases += [(*sources[random.integers(len(sources))], *r) for r in results]
    texts = [f"{name}_sdwa v2, {operand('v3', sx)}, {operand('v4', sy)} dst_sel:{d} dst_unused:{u} src0_sel:{x} "
             f"src1_sel:{y}" for x, sx, y, sy, d, u in cases]
    device = Device(chip, texts)
    for n, (x, sx, y, sy, d, u) in enumerate(cases):
        v, s = state(n, EXECS[n % 3])
        if "f16" in name:
            v[3:5] &= 0x77FF77FF  # no NaN, whose payload is not compared here
        active = np.array([EXECS[n % 3] >> lane & 1 for lane in LANES], bool)
        result = BINARY[name](selected(v[3], x, sx), selected(v[4], y, sy))
        found = device.run(n, v, s)[0]
        assert np.array_equal(found[2], np.where(active, placed(result, v[2], d, u), v[2])), texts[n]


@pytest.mark.parametrize("chip", CHIPS)
def test_one_source_scalars_and_constants(chip: str) -> None:
    cases = [(x, d, u, source) for x, d, u, source in product(SELECTS[::2], SELECTS[1::2], UNUSED, ("v3", "s3"))]
    device = Device(chip, [f"v_mov_b32_sdwa v2, {r} dst_sel:{d} dst_unused:{u} src0_sel:{x}" for x, d, u, r in cases])
    v, s = state(1)
    for n, (x, d, u, source) in enumerate(cases):
        row = v[3] if source == "v3" else np.full(64, s[3])
        assert np.array_equal(device.run(n, v, s)[0][2], placed(selected(row, x, False), v[2], d, u)), cases[n]
    # What is left out: the whole register, and the rest kept.
    device = Device(chip, ["v_add_u32_sdwa v2, v3, -5 src0_sel:WORD_1", "v_mov_b32_sdwa v2, v3 dst_sel:BYTE_2",
                           "v_mul_f32_sdwa v2, -|v3|, 2.0 dst_sel:DWORD src0_sel:DWORD src1_sel:DWORD",
                           "v_add_u32_sdwa v2, v3, v4 clamp dst_sel:WORD_1 dst_unused:UNUSED_PAD"])
    assert np.array_equal(device.run(0, v, s)[0][2], (v[3] >> 16) - np.uint32(5))
    assert np.array_equal(device.run(1, v, s)[0][2], placed(v[3], v[2], "BYTE_2", "UNUSED_PRESERVE"))
    v[3] = np.arange(64, dtype=np.float32).view(np.uint32)
    assert np.array_equal(device.run(2, v, s)[0][2].view(np.float32), np.arange(64) * -2.0)
    v[3], v[4] = 0xFFFFFFF0, np.arange(64)
    wanted = np.minimum(v[3].astype(np.uint64) + v[4], 0xFFFFFFFF).astype(np.uint32)
    assert np.array_equal(device.run(3, v, s)[0][2], (wanted & 0xFFFF) << 16)


@pytest.mark.parametrize("chip", CHIPS)
def test_comparisons(chip: str) -> None:
    cases = list(product(SELECTS, (False, True), SELECTS[::3], ("vcc", "s[10:11]"), ("v_cmp", "v_cmpx")))
    device = Device(chip, [f"{kind}_lt_i32_sdwa {to}, {operand('v3', sx)}, v4 src0_sel:{x} src1_sel:{y}"
                           for x, sx, y, to, kind in cases])
    for n, (x, sx, y, to, kind) in enumerate(cases):
        exec_ = EXECS[n % 3]
        v, s = state(n, exec_)
        less = selected(v[3], x, sx).view(np.int32) < selected(v[4], y, False).view(np.int32)
        wanted = sum(1 << lane for lane in LANES if less[lane]) & exec_
        vectors, scalars = device.run(n, v, s)
        assert wide(scalars, VCC if to == "vcc" else 10) == wanted
        assert wide(scalars, EXEC) == (wanted if kind == "v_cmpx" else exec_)
        assert np.array_equal(vectors, v)


def test_a_select_and_a_carry() -> None:
    device = Device("gfx942", [
        "v_cndmask_b32_sdwa v2, v3, v4, vcc dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_0",
        "v_addc_co_u32_sdwa v2, vcc, v3, v4, vcc dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD"])
    v, s = state(9)
    carry = np.array([wide(s, VCC) >> lane & 1 for lane in LANES], np.uint64)
    picked = np.where(carry, selected(v[4], "WORD_0", False), selected(v[3], "BYTE_1", False))
    assert np.array_equal(device.run(0, v, s)[0][2], picked.astype(np.uint32) << 16)
    total = selected(v[3], "WORD_1", False).astype(np.uint64) + v[4] + carry
    vectors, scalars = device.run(1, v, s)
    assert np.array_equal(vectors[2], total.astype(np.uint32))
    assert wide(scalars, VCC) == sum(1 << lane for lane in LANES if total[lane] >> np.uint64(32))


@pytest.mark.parametrize("text, why", [
    ("v_add_u32_e32 v1, v2, v3 src0_sel:BYTE_0", "has no room for 'src0_sel:BYTE_0'"),
    ("v_fmac_f32_sdwa v1, v2, v3 src0_sel:BYTE_0", "v_fmac_f32 has no SDWA encoding"),
    ("v_add_f64_sdwa v[2:3], v[4:5], v[6:7]", "v_add_f64 has no SDWA encoding"),
    ("v_cmp_eq_u64_sdwa vcc, v[4:5], v[6:7]", "v_cmp_eq_u64 has no SDWA encoding"),
    ("v_mov_b64_sdwa v[2:3], v[4:5]", "v_mov_b64 has no SDWA encoding"),
    ("v_mov_b32_sdwa v1, v2 src0_sel:WORD_2", "the modifier 'src0_sel:WORD_2'"),
    ("v_mov_b32_sdwa v1, v2 row_shl:1", "only an instruction with the suffix _dpp"),
])
def test_what_sdwa_cannot_do(text: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match="ISA line 6") as caught:
        Program.from_assembly(assembly(f"  {text}\n  s_endpgm")).load("k")
    assert why in str(caught.value)
