"""What the device decodes without a row of the table, lane by lane: moves between lanes and registers, 8-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.emulator.oracles.pcode_calls import EIGHT_BITS
from tests.emulator.oracles.text import Text, part_of

WAVE = 64


def _swap(wave: Any, text: Text) -> None:
    x, y = (wave.register(operand)[1] for operand in text.operands)
    a, b = wave.v[x].astype(np.uint64), wave.v[y].astype(np.uint64)
    wave.write(x, 1, b, wave.active)
    wave.write(y, 1, a, wave.active)


def _move_pair(wave: Any, text: Text) -> None:
    target, *sources = text.operands
    words = []
    for n, operand in enumerate(sources):
        file, first, _ = wave.register(operand) or ("", 0, 0)
        half = f"{file}{first + text.bit('op_sel', n)}" if file else operand
        words.append(wave.fetch(half, 1, "i32", WAVE))
    wave.write(wave.register(target)[1], 2, words[0] | words[1] << np.uint64(32), wave.active)


def _bitwise(name: str) -> Callable[[Any, Text], None]:
    def run(wave: Any, text: Text) -> None:
        target, *operands = text.operands
        entries = int(text.words.get("bitop3", "0"), 0)
        x, y, z = (wave.source(operand, name, WAVE, "WORD_1" if text.bit("op_sel", n) else "").array.astype(np.uint64)
                   for n, operand in enumerate(operands))
        result = np.zeros(WAVE, np.uint64)
        for bit in range(int(name[1:])):
            at = np.uint64(bit)
            number = (x >> at & np.uint64(1)) * np.uint64(4) + (y >> at & np.uint64(1)) * np.uint64(2) + (
                z >> at & np.uint64(1))
            result |= (np.uint64(entries) >> number & np.uint64(1)) << at
        first = wave.register(target)[1]
        wave.write(first, 1, wave.merged(text, name, first, result), wave.active)

    return run


def _read_lane(wave: Any, text: Text) -> None:
    target, source, *lane = text.operands
    first = np.flatnonzero(wave.active)
    at = int(wave.fetch(lane[0], 1, "i32", 1)[0]) & 63 if lane else int(first[0]) if first.size else 0
    wave.set_scalar(wave.register(target)[1], 1, int(wave.v[wave.register(source)[1]][at]))


def _write_lane(wave: Any, text: Text) -> None:
    target, value, lane = text.operands
    at = int(wave.fetch(lane, 1, "i32", 1)[0]) & 63
    wave.v[wave.register(target)[1]][at] = int(wave.fetch(value, 1, "i32", 1)[0])


def _permute(pull: bool) -> Callable[[Any, Text], None]:
    def run(wave: Any, text: Text) -> None:
        target, address, data = (wave.register(operand)[1] for operand in text.operands)
        other = (wave.v[address].astype(np.int64) + int(text.words.get("offset", "0"), 0)) // 4 % WAVE
        found, active = np.zeros(WAVE, np.uint64), wave.active
        for lane in np.flatnonzero(active):
            source, to = (other[lane], lane) if pull else (lane, other[lane])
            if active[source]:
                found[to] = wave.v[data][source]
        wave.write(target, 1, found, active)

    return run


def _from_eight_bits(kind: str, count: int) -> Callable[[Any, Text], None]:
    def run(wave: Any, text: Text) -> None:
        target, source = text.operands
        raw = part_of(wave.fetch(source, 1, "i32", WAVE), text.words.get("src0_sel", "DWORD"), False)
        if text.bit("op_sel", 0):
            raw = raw >> np.uint64(16)
        result = np.zeros(WAVE, np.uint64)
        for n in range(count):
            codes = (raw >> np.uint64(8 * n)).astype(np.uint8).view(EIGHT_BITS[wave.chip][kind])
            bits = wave.flushed(codes.astype(np.float32).view(np.uint32), "i32", 2) if count == 1 else (
                codes.astype(np.float32).view(np.uint32))
            result |= bits.astype(np.uint64) << np.uint64(32 * n)
        wave.write(wave.register(target)[1], count, result, wave.active)

    return run


def _to_eight_bits(kind: str) -> Callable[[Any, Text], None]:
    def run(wave: Any, text: Text) -> None:
        target, *sources = text.operands
        with np.errstate(all="ignore"):
            low, high = (wave.source(s, "f32", WAVE).array.astype(EIGHT_BITS[wave.chip][kind]).view(np.uint8)
                         for s in sources)
        bits = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(8)
        first = wave.register(target)[1]
        wave.write(first, 1, wave.merged(text, "b16+", first, bits), wave.active)

    return run


def _dot(half: str, adds_last: bool) -> Callable[[Any, Text], None]:
    """Two products of halves and a number, each sum rounded; the number is a third source, or the result as it was."""

    def run(wave: Any, text: Text) -> None:
        target, x, y, *rest = text.operands
        lists = ("neg_lo", "neg_hi")
        pairs = [[_half(wave, operand, half, part, bool(text.bit(lists[part], n))) for n, operand in enumerate((x, y))]
                 for part in range(2)]
        total = wave.source((rest or [target])[0], "f32", WAVE, negative=bool(text.bit("neg_lo", 2))).array
        with np.errstate(all="ignore"):
            low, high = (a * b for a, b in pairs)
            total = low + high + total if adds_last else total + low + high
        bits = wave.flushed(total.view(np.uint32), "i32", 2).astype(np.uint64)
        wave.write(wave.register(target)[1], 1, bits, wave.active)

    return run


def _half(wave: Any, operand: str, half: str, part: int, negative: bool) -> np.ndarray:
    """A half of a source as floats."""
    if half == "f16":
        found: np.ndarray = wave.source(operand, "f16", WAVE, f"WORD_{part}", negative).array
        return found
    bits = wave.source(operand, "b16", WAVE, f"WORD_{part}", negative).array
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _packed_onto(wave: Any, text: Text) -> None:
    wave.run(f"v_pk_fma_f16 {', '.join([*text.operands, text.operands[0]])}")


def _sums_of_differences(wave: Any, text: Text) -> None:
    """v_mqsad: |x - y| over the bytes where y has any, of four windows of x, each onto a number."""
    target, x, y, totals = (wave.register(operand)[1] for operand in text.operands)
    found = []
    window = wave.v[x].astype(np.uint64) | wave.v[x + 1].astype(np.uint64) << np.uint64(32)
    for n in range(4):
        total = wave.v[totals + n].astype(np.int64)
        for byte in range(4):
            a = (window >> np.uint64(8 * (n + byte)) & np.uint64(255)).astype(np.int64)
            b = (wave.v[y] >> np.uint32(8 * byte) & np.uint32(255)).astype(np.int64)
            total = total + np.where(b == 0, 0, np.abs(a - b))
        found.append(total.astype(np.uint64) & np.uint64(0xFFFFFFFF))
    for n, bits in enumerate(found):
        wave.write(target + n, 1, bits, wave.active)


def _swap_rows(rows: int) -> Callable[[Any, Text], None]:
    """The odd rows of the first register against the even rows of the second, where both lanes are active."""

    def run(wave: Any, text: Text) -> None:
        first, second = (wave.register(operand)[1] for operand in text.operands)
        before, active = wave.v.copy(), wave.active
        for lane in np.flatnonzero(active):
            other = lane ^ rows
            to, of = (first, second) if lane & rows else (second, first)
            if active[other]:
                wave.v[to][lane] = before[of][other]
            elif "bound_ctrl" in text.words:
                wave.v[to][lane] = 0

    return run


SPECIAL: dict[str, Callable[[Any, Text], None]] = {
    "v_swap_b32": _swap, "v_pk_mov_b32": _move_pair, "v_bitop3_b32": _bitwise("b32"), "v_bitop3_b16": _bitwise("b16"),
    "v_readfirstlane_b32": _read_lane, "v_readlane_b32": _read_lane, "v_writelane_b32": _write_lane,
    "ds_bpermute_b32": _permute(True), "ds_permute_b32": _permute(False),
    "v_dot2_f32_f16": _dot("f16", False), "v_dot2c_f32_f16": _dot("f16", False),
    "v_dot2_f32_bf16": _dot("bf16", True), "v_dot2c_f32_bf16": _dot("bf16", False),
    "v_pk_fmac_f16": _packed_onto, "v_mqsad_u32_u8": _sums_of_differences,
    "v_permlane16_swap_b32": _swap_rows(16), "v_permlane32_swap_b32": _swap_rows(32),
    "v_cvt_f32_fp8": _from_eight_bits("fp", 1), "v_cvt_f32_bf8": _from_eight_bits("bf", 1),
    "v_cvt_pk_f32_fp8": _from_eight_bits("fp", 2), "v_cvt_pk_f32_bf8": _from_eight_bits("bf", 2),
    "v_cvt_pk_fp8_f32": _to_eight_bits("fp"), "v_cvt_pk_bf8_f32": _to_eight_bits("bf"),
}
