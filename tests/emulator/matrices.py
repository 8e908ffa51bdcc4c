"""Matrices of codes for the tests of matrix instructions: their numbers by ml_dtypes, and registers from them."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from flylab.mfma import BITS, INSTRUCTIONS, Mfma, Operand

_SMALL = {
    "fp8": {"gfx942": ml_dtypes.float8_e4m3fnuz, "gfx950": ml_dtypes.float8_e4m3fn},
    "bf8": {"gfx942": ml_dtypes.float8_e5m2fnuz, "gfx950": ml_dtypes.float8_e5m2},
    "fp6": ml_dtypes.float6_e2m3fn, "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "xf32": np.float32, "f64": np.float64,
    "i8": np.int8, "i32": np.int32,
}


def numpy_type(kind: str, chip: str) -> Any:
    """The numpy type of what mnemonics call a type."""
    found = _SMALL[kind]
    return np.dtype(found[chip] if isinstance(found, dict) else found)


def values(codes: np.ndarray, kind: str, chip: str) -> np.ndarray:
    """The numbers of codes, as float64 (exact)."""
    dtype = numpy_type(kind, chip)
    return codes.astype(f"u{dtype.itemsize}").view(dtype).astype(np.float64)


def codes_of(numbers: np.ndarray, kind: str, chip: str) -> np.ndarray:
    """The codes of numbers that the type has."""
    dtype = numpy_type(kind, chip)
    return numbers.astype(dtype).view(f"u{dtype.itemsize}").astype(np.uint64)


def moderate(kind: str, shape: tuple[int, ...], chip: str, seed: int) -> np.ndarray:
    """Codes of numbers of both signs near 1, in all bits that the type has."""
    random = np.random.default_rng(seed)
    if kind == "i8" or BITS[kind] <= 8:
        codes = random.integers(0, 1 << BITS[kind], shape, dtype=np.uint64)
        return np.where(np.isfinite(values(codes, kind, chip)), codes, 0)
    return codes_of(random.normal(size=shape) * 2.0 ** random.integers(-3, 4, shape), kind, chip)


def registers(operand: Operand, codes: np.ndarray) -> np.ndarray:
    """The registers (…, registers, 64) of A, as codes (…, blocks, m, k), or of B, as codes (…, blocks, n, k)."""
    found = np.zeros((*codes.shape[:-3], operand.registers, 64), np.uint64)
    for item in range(operand.items):
        block, index, k = np.array([operand.element(lane, item) for lane in range(64)]).T
        put_bits(found, item * operand.bits, codes[..., block, index, k].astype(np.uint64), operand.bits)
    return found.astype(np.uint32)


def put_bits(words: np.ndarray, at: int, code: np.ndarray, bits: int) -> None:
    """Puts `bits` bits, a code for each lane, into the registers of `words` (…, registers, lanes) from bit `at` on."""
    done = 0
    while done < bits:
        word, shift = divmod(at + done, 32)
        size = min(32 - shift, bits - done)
        part = (code >> np.uint64(done)) & np.uint64((1 << size) - 1)
        words[..., word, :] |= part << np.uint64(shift)
        done += size


def result_registers(row: Mfma, matrix: np.ndarray) -> np.ndarray:
    """The registers (…, registers, 64) of C, from (…, blocks, m, n) in the result's type."""
    codes = matrix.view(f"u{matrix.dtype.itemsize}").reshape(*matrix.shape[:-3], -1)
    per_item = row.result_bits // 32
    found = np.zeros((*matrix.shape[:-3], row.result_registers, 64), np.uint32)
    item, lane = _result_places(row.name)
    for half in range(per_item):
        found[..., item * per_item + half, lane] = codes >> codes.dtype.type(32 * half) & codes.dtype.type(0xFFFFFFFF)
    return found


def result_matrix(row: Mfma, found: np.ndarray, chip: str) -> np.ndarray:
    """C or D (…, blocks, m, n) from registers (…, registers, 64)."""
    per_item = row.result_bits // 32
    dtype = numpy_type(row.result, chip)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    item, lane = _result_places(row.name)
    halves = [found[..., item * per_item + half, lane].astype(unsigned) << unsigned.type(32 * half)
              for half in range(per_item)]
    return sum(halves, np.zeros((), unsigned)).view(dtype).reshape(*found.shape[:-2], row.blocks, row.m, row.n)


@cache
def _result_places(name: str) -> Any:
    """The items and lanes of the elements of D, in the order of blocks, rows, columns."""
    row = INSTRUCTIONS[name]
    return np.array([row.result_place(*place) for place in np.ndindex(row.blocks, row.m, row.n)]).T
