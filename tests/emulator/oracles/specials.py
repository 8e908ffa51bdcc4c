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
        words.append(wave.fetch(f"{file}{first + text.bit('op_sel', n)}", 1, "i32", WAVE))
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


SPECIAL: dict[str, Callable[[Any, Text], None]] = {
    "v_swap_b32": _swap, "v_pk_mov_b32": _move_pair, "v_bitop3_b32": _bitwise("b32"), "v_bitop3_b16": _bitwise("b16"),
    "v_readfirstlane_b32": _read_lane, "v_readlane_b32": _read_lane, "v_writelane_b32": _write_lane,
    "ds_bpermute_b32": _permute(True), "ds_permute_b32": _permute(False),
    "v_cvt_f32_fp8": _from_eight_bits("fp", 1), "v_cvt_f32_bf8": _from_eight_bits("bf", 1),
    "v_cvt_pk_f32_fp8": _from_eight_bits("fp", 2), "v_cvt_pk_f32_bf8": _from_eight_bits("bf", 2),
    "v_cvt_pk_fp8_f32": _to_eight_bits("fp"), "v_cvt_pk_bf8_f32": _to_eight_bits("bf"),
}
