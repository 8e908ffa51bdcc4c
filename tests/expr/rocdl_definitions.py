"""What the rows of `fx.rocdl` compute, in numpy: written from the chips' ISA documents, not from flylab.

A definition takes an array (elements, 64 lanes), or (64 lanes) of a scalar, for each operand, and immediates as ints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

LANES = np.arange(64)
FP8 = {"gfx942": {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz},
       "gfx950": {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}}
SMALL = {"fp8": (ml_dtypes.float8_e4m3fn, 8, 3), "bf8": (ml_dtypes.float8_e5m2, 8, 2),
         "fp6": (ml_dtypes.float6_e2m3fn, 6, 3), "bf6": (ml_dtypes.float6_e3m2fn, 6, 2),
         "fp4": (ml_dtypes.float4_e2m1fn, 4, 1)}
"""The OCP formats of the conversions with a scale: numpy's dtype, bits, and bits of the mantissa."""


def u32(x: Any) -> Any:
    """Words read without a sign, with room."""
    return np.asarray(x).astype(np.uint32).astype(np.uint64)


def word(x: Any) -> Any:
    """The low 32 bits as a word."""
    return (np.asarray(x).astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def parts(x: Any, bits: int, signed: bool = False) -> Any:
    """The fields of a word, lowest first: an array (fields, lanes)."""
    found = np.stack([(u32(x) >> np.uint64(at)).astype(np.int64) & ((1 << bits) - 1) for at in range(0, 32, bits)])
    return np.where(signed & (found >> (bits - 1) == 1), found - (1 << bits), found)


def signed(x: Any, bits: int) -> Any:
    """The low bits of a word, read with a sign."""
    low = u32(x).astype(np.int64) & ((1 << bits) - 1)
    return np.where(low >> (bits - 1), low - (1 << bits), low)


def joined(fields: Any, bits: int) -> Any:
    """Fields as a word, lowest first."""
    return word(sum((np.asarray(f).astype(np.int64) & ((1 << bits) - 1)) << at * bits for at, f in enumerate(fields)))


def perm(high: Any, low: Any, selector: Any) -> Any:
    both = np.concatenate([parts(low, 8), parts(high, 8)])
    table = np.concatenate([both, [np.where(both[i] >> 7, 255, 0) for i in (1, 3, 5, 7)], [np.zeros(64)],
                            np.full((243, 64), 255)]).astype(np.int64)
    return joined([table[select, LANES] for select in parts(selector, 8)], 8)


def field(x: Any, offset: Any, width: Any) -> tuple[Any, Any]:
    width = u32(width).astype(np.int64) & 31
    return (u32(x) >> (u32(offset) & 31)).astype(np.int64) & ((1 << width) - 1), width


def sbfe(x: Any, offset: Any, width: Any) -> Any:
    found, width = field(x, offset, width)
    negative = (width > 0) & (found >> np.maximum(width - 1, 0) & 1 == 1)
    return word(np.where(negative, found - (1 << width), found))


def dot(bits: int, sign: bool) -> Callable[..., Any]:
    low, high = (-(2**31), 2**31 - 1) if sign else (0, 2**32 - 1)

    def rule(a: Any, b: Any, total: Any, clamp: int) -> Any:
        split = [np.asarray(x).astype(np.int64) & 0xFFFF if bits == 16 else parts(x, bits, sign) for x in (a, b)]
        if bits == 16 and sign:
            split = [np.where(x >> 15, x - 65536, x) for x in split]
        start = signed(total, 32) if sign else u32(total).astype(np.int64)
        found = (split[0] * split[1]).sum(0) + start
        return word(np.clip(found, low, high) if clamp else found)

    return rule


def fdot(a: Any, b: Any, total: Any, clamp: int) -> Any:
    found = (a.astype(np.float64) * b.astype(np.float64)).sum(0) + total.astype(np.float64)
    return np.clip(found, 0, 1) if clamp else found


def toward_zero(x: Any) -> Any:
    near = x.astype(np.float16)
    return np.where(np.abs(near.astype(np.float32)) > np.abs(x), np.nextafter(near, np.float16(0)), near)


def put(old: Any, value: Any, at: int, bits: int) -> Any:
    """A field of a word replaced."""
    fields = parts(old, bits)
    fields[at] = np.asarray(value).astype(np.int64)
    return joined(fields, bits)


def code8(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype).view(np.uint8)


def with_seed(x: Any, seed: Any, cut: int) -> Any:
    """A Float32 with the top bits of the seed added to the `cut` bits of its mantissa that are cut off."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.int64) + (u32(seed).astype(np.int64) >> (32 - cut))
    return (bits >> cut << cut).astype(np.uint32).view(np.float32)


def _half(old: Any, value: Any, high: int) -> Any:
    found = old.copy()
    found[high] = value.astype(old.dtype)
    return found


PLAIN: dict[str, Callable[..., Any]] = {
    "rcp": lambda x: 1 / x, "rsq": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt, "log": np.log2, "exp2": np.exp2,
    "sin": lambda x: np.sin(2 * np.pi * x.astype(float)), "cos": lambda x: np.cos(2 * np.pi * x.astype(float)),
    "fract": lambda x: x - np.floor(x), "frexp_mant": lambda x: np.frexp(x)[0],
    "fmed3": lambda a, b, c: np.sort(np.stack([a, b, c]), 0)[1],
    "perm": perm,
    "alignbit": lambda h, lo, n: word(((u32(h) << np.uint64(32)) | u32(lo)) >> (u32(n) & 31) & 0xFFFFFFFF),
    "alignbyte": lambda h, lo, n: word(((u32(h) << np.uint64(32)) | u32(lo)) >> (u32(n) & 3) * 8 & 0xFFFFFFFF),
    "sad_u8": lambda a, b, c: word(np.abs(parts(a, 8) - parts(b, 8)).sum(0) + u32(c).astype(np.int64)),
    "sad_hi_u8": lambda a, b, c: word((np.abs(parts(a, 8) - parts(b, 8)).sum(0) << 16) + u32(c).astype(np.int64)),
    "sad_u16": lambda a, b, c: word(np.abs(parts(a, 16) - parts(b, 16)).sum(0) + u32(c).astype(np.int64)),
    "msad_u8": lambda a, b, c: word(np.where(parts(b, 8) != 0, np.abs(parts(a, 8) - parts(b, 8)), 0).sum(0)
                                    + u32(c).astype(np.int64)),
    "lerp": lambda a, b, c: joined((parts(a, 8) + parts(b, 8) + (parts(c, 8) & 1)) >> 1, 8),
    "ubfe": lambda x, offset, width: word(field(x, offset, width)[0]), "sbfe": sbfe,
    "mul_u24": lambda a, b: word((u32(a) & 0xFFFFFF) * (u32(b) & 0xFFFFFF) & np.uint64(0xFFFFFFFF)),
    "mul_i24": lambda a, b: word(signed(a, 24) * signed(b, 24)),
    "mbcnt_lo": lambda m, c: word(np.array([int(x & ((1 << min(i, 32)) - 1)).bit_count()
                                            for i, x in enumerate(u32(m).tolist())]) + u32(c).astype(np.int64)),
    "mbcnt_hi": lambda m, c: word(np.array([int(x & ((1 << max(i - 32, 0)) - 1)).bit_count()
                                            for i, x in enumerate(u32(m).tolist())]) + u32(c).astype(np.int64)),
    "sdot2": dot(16, True), "udot2": dot(16, False), "sdot4": dot(8, True), "udot4": dot(8, False),
    "sdot8": dot(4, True), "udot8": dot(4, False), "fdot2": fdot, "fdot2_f32_bf16": fdot,
    "cvt_off_f32_i4": lambda x: signed(x, 4) / 16,
    "cvt_pkrtz": lambda a, b: np.stack([toward_zero(a), toward_zero(b)]),
    "cvt_pknorm_i16": lambda *ab: np.stack([np.rint(np.clip(x, -1, 1).astype(float) * 32767) for x in ab]),
    "cvt_pknorm_u16": lambda *ab: np.stack([np.rint(np.clip(x, 0, 1).astype(float) * 65535) for x in ab]),
    "cvt_pk_i16": lambda *ab: np.stack([np.clip(signed(x, 32), -32768, 32767) for x in ab]),
    "cvt_pk_u16": lambda *ab: np.stack([np.minimum(u32(x), 65535) for x in ab]),
    "cvt_pk_u8_f32": lambda x, at, old: np.where(
        np.arange(4)[:, None] == (u32(at).astype(np.int64) & 3), np.clip(np.rint(x), 0, 255), parts(old, 8)),
    "prng_b32": lambda x: word(u32(x) << np.uint64(1)) ^ np.where(u32(x) >> np.uint64(31) == 1, 197, 0),
    "bitop3": lambda a, b, c, table: joined(
        [(table >> (x << 2 | y << 1 | z)) & 1
         for x, y, z in zip(parts(a, 1), parts(b, 1), parts(c, 1), strict=True)], 1),
    "ashr_pk_i8_i32": lambda a, b, n: joined(
        [np.clip(signed(x, 32) >> (signed(n, 32) & 31), -128, 127) for x in (a, b)], 8),
    "ashr_pk_u8_i32": lambda a, b, n: joined(
        [np.clip(signed(x, 32) >> (signed(n, 32) & 31), 0, 255) for x in (a, b)], 8),
    "cvt_sr_bf16_f32": lambda old, x, seed, high: _half(old, with_seed(x, seed, 16), high),
    "cvt_sr_f16_f32": lambda old, x, seed, high: _half(old, with_seed(x, seed, 13), high),
}


def definitions(chip: str) -> dict[str, Callable[..., Any]]:
    """The rows without a scale, on a chip."""
    fp8, bf8 = FP8[chip]["fp8"], FP8[chip]["bf8"]

    def unpacked(dtype: Any, n: int) -> Callable[..., Any]:
        def rule(x: Any, at: int) -> Any:
            found = parts(x, 8)[at * n:at * n + n].astype(np.uint8).view(dtype).astype(np.float32)
            return found if n > 1 else found[0]
        return rule

    def packed(dtype: Any) -> Callable[..., Any]:
        return lambda a, b, old, at: put(old, code8(a, dtype).astype(int) | code8(b, dtype).astype(int) << 8, at, 16)

    def by_chance(dtype: Any, cut: int) -> Callable[..., Any]:
        return lambda a, seed, old, at: put(old, code8(with_seed(a, seed, cut), dtype), at, 8)

    return {
        **PLAIN,
        "cvt_pk_fp8_f32": packed(fp8), "cvt_pk_bf8_f32": packed(bf8),
        "cvt_sr_fp8_f32": by_chance(fp8, 20), "cvt_sr_bf8_f32": by_chance(bf8, 21),
        "cvt_f32_fp8": unpacked(fp8, 1), "cvt_f32_bf8": unpacked(bf8, 1),
        "cvt_pk_f32_fp8": unpacked(fp8, 2), "cvt_pk_f32_bf8": unpacked(bf8, 2),
    }


def scaled(name: str) -> Callable[..., Any]:
    """The definition of a conversion with a scale, from its name: `cvt_scalef32_[sr_][pk..]to_from`."""
    way, target, source = name.removeprefix("cvt_scalef32_").rpartition("_")[0], *name.split("_")[-2:]
    pieces = way.split("_")[:-1]
    count = 32 if pieces and pieces[-1] in ("pk32", "2xpk16") else 2 if "pk" in pieces else 1
    if target in SMALL:
        return _packing(target, count, "sr" in pieces, "2xpk16" in pieces)
    return _unpacking(source, count, target)


def power(scale: Any) -> Any:
    """The power of two that a Float32's exponent stands for."""
    return 2.0 ** ((scale.view(np.uint32) >> 23 & 255).astype(np.float64) - 127)


def _unpacking(source: str, count: int, target: str) -> Callable[..., Any]:
    dtype, bits, _ = SMALL[source]

    def rule(*given: Any) -> Any:
        old = given[0] if len(given) == 5 else None  # to one half of a pair: the rest is kept
        x, scale, *at = given[1:] if old is not None else given
        codes = _codes(x, bits)
        first = at[0] * count if at else 0
        found = codes[first:first + count].view(dtype).astype(np.float64) * power(scale)
        if old is not None:
            return _half(old, found[0], at[1])
        return found if count > 1 else found[0]

    return rule


def _codes(x: Any, bits: int) -> Any:
    """Fields of words that lie one after the other, lowest first: (fields, lanes)."""
    words = np.atleast_2d(x)
    wide = [sum(int(w) << 32 * i for i, w in enumerate(column)) for column in words.T.tolist()]
    count = len(words) * 32 // bits
    return np.array([[lane >> bits * i & ((1 << bits) - 1) for lane in wide] for i in range(count)], np.uint8)


def _packing(target: str, count: int, by_chance: bool, interleaved: bool) -> Callable[..., Any]:
    dtype, bits, _ = SMALL[target]

    def rule(*given: Any) -> Any:
        operands = list(given)
        at = operands.pop() if count < 32 and isinstance(operands[-1], int) else None
        scale = operands.pop()
        seed = operands.pop() if by_chance else None
        old = operands.pop(0) if at is not None else None
        x = np.concatenate([np.atleast_2d(o.astype(np.float64)) for o in operands])
        if interleaved:
            x = x.reshape(2, 16, 64).swapaxes(0, 1).reshape(32, 64)
        codes = _rounded(x / power(scale), dtype, seed).astype(np.int64)
        if old is None:
            total = [sum(int(c) << bits * i for i, c in enumerate(column)) for column in codes.T]
            return np.array([[lane >> 32 * i & 0xFFFFFFFF for lane in total] for i in range(6)], np.uint32)
        field = sum(c << bits * i for i, c in enumerate(codes))
        if old.dtype == np.uint16:  # a pair of words
            found = old.copy()
            found[at] = field
            return found
        return put(old, field, at, bits * count)

    return rule


def _rounded(x: Any, dtype: Any, seed: Any) -> Any:
    """The codes of numbers: nearest even, or with a seed of 0 towards 0, with one of all bits away from it."""
    largest = float(ml_dtypes.finfo(dtype).max)
    near = np.clip(x, -largest, largest).astype(dtype)
    if seed is None:
        return near.view(np.uint8)
    value, code = np.abs(near.astype(np.float64)), near.view(np.uint8).astype(int)
    down = np.where(value > np.abs(x), code - 1, code)
    up = np.where((value < np.abs(x)) & (value < largest), code + 1, code)
    return np.where(seed == 0, down, up)
