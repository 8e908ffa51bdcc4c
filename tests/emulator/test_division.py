"""LLVM's division sequences where they are hardest: quotients that lie half way between denormals, and next to that."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from flylab.emulator import Program
from tests.emulator.toolchain import CHIPS, element, kernel, program

COUNT = 1 << 14
# The numpy type, bits of the fraction, and the exponent of the smallest denormal.
TYPES: dict[str, tuple[Any, int, int]] = {"float": (np.float32, 23, -149), "double": (np.float64, 52, -1074)}


@cache
def division(chip: str, type_: str) -> Program:
    lines = "".join(element(f"%p{x}", type_, f"%{x}") + f"  %v{x} = load {type_}, ptr addrspace(1) %p{x}\n"
                    for x in "ab")
    lines += f"  %r = fdiv {type_} %va, %vb\n" + element("%pc", type_, "%c")
    return program(chip, kernel("ptr %a, ptr %b, ptr %c", f"{lines}  store {type_} %r, ptr addrspace(1) %pc"))


def check(chip: str, type_: str, numerators: np.ndarray, denominators: np.ndarray) -> None:
    """The device divides as numpy does, to the bit; some quotients are denormal."""
    found = np.zeros_like(numerators)
    division(chip, type_).launch(grid=COUNT // 256, block=256, args=[numerators, denominators, found])
    with np.errstate(all="ignore"):
        wanted = numerators / denominators
    wrong = np.flatnonzero(found.view(np.uint8).reshape(COUNT, -1) != wanted.view(np.uint8).reshape(COUNT, -1))
    assert not wrong.size, [(numerators[n], denominators[n], found[n], wanted[n]) for n in wrong[:3] // found.itemsize]
    assert np.count_nonzero(np.abs(wanted) < np.finfo(wanted.dtype).smallest_normal) > COUNT // 10


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("bits", [(2, 3), (5, 14), (11, 0), (0, 11)])
def test_quotients_half_way_between_denormals_are_rounded_to_even(bits: tuple[int, int], type_: str, chip: str) -> None:
    """(2 k + 1) m by 2 m, as multiples of the smallest denormal, both moved up by a power of two."""
    float_, fraction, least = TYPES[type_]
    random = np.random.default_rng(sum(bits))
    k, m = (random.integers(0, 1 << n * fraction // 23, COUNT) for n in bits)
    move = random.integers(0, 80, COUNT)
    numerators = np.ldexp(((2 * k + 1) * (m + 1)).astype(float), least + move).astype(float_)
    check(chip, type_, numerators, np.ldexp((m + 1).astype(float), 1 + move).astype(float_))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("type_", TYPES)
def test_quotients_next_to_half_way_between_denormals(type_: str, chip: str) -> None:
    """Half way times any denominator, rounded, and the numbers below and above: also where 1 / denominator is small."""
    float_, fraction, least = TYPES[type_]
    random = np.random.default_rng(3)
    largest = np.finfo(float_).maxexp
    parts = np.ldexp(random.integers(1 << fraction, 2 << fraction, COUNT).astype(float_), -fraction)
    powers = np.where(random.random(COUNT) < 0.3, largest - 1 - random.integers(0, 4, COUNT),
                      random.integers(0, largest, COUNT))
    k = random.integers(0, 1 << random.integers(1, fraction - 1, COUNT))
    half_ways = np.ldexp(k + 0.5, fraction).astype(float_)
    numerators = np.ldexp(half_ways * parts, powers + least - fraction).astype(float_)
    towards = random.choice(np.array([0, np.inf], float_), COUNT)
    numerators = np.where(random.random(COUNT) < 0.7, np.nextafter(numerators, towards), numerators)
    check(chip, type_, numerators, np.ldexp(parts, powers).astype(float_))
