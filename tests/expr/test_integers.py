"""Integers of 4 to 128 bits on the device: every operator gives what Python's integers give, wrapped to the width."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr.promotion import integer_range
from flylab.targets import TARGETS

CHIPS = sorted(TARGETS)
WORDS = 2**64 - 1
names = {"ids": lambda value: getattr(value, "__name__", value)}


def wrap(value: int, cls: Any) -> int:
    """A Python integer as the format holds it."""
    bits = cls.dtype.bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if cls.dtype.signed and value >> (bits - 1) else value


def on_device(function: Callable[[Any, Any], Any], cls: Any, pairs: list[tuple[int, int]], vector: bool = False) -> Any:
    """`function` of each pair of integers of a format; the numbers are passed as pairs of 64-bit words."""
    padded = pairs + [(1, 1)] * (-len(pairs) % 64)
    words = np.array([[x & WORDS, x >> 64 & WORDS, y & WORDS, y >> 64 & WORDS] for x, y in padded], np.uint64)

    @flyc.kernel
    def pairs_kernel(W: fx.Tensor):
        i = fx.block_idx.x * 64 + fx.thread_idx.x
        given = fx.slice(W, (i, None)).load().bitcast(fx.Uint128)
        x, y = given[0].to(cls), given[1].to(cls)
        if vector:
            x = fx.Vector.from_elements([x, x, y], cls)
        result = function(x, y)
        wide = fx.Vector.from_elements([fx.Uint128(result[1] if vector else result)], fx.Uint128)
        fx.slice(W, (i, None)).store(fx.Vector.from_elements([*wide.bitcast(fx.Uint64)] * 2, fx.Uint64))

    @flyc.jit
    def launch(W: fx.Tensor, blocks: fx.Constexpr[int]):
        pairs_kernel(W).launch(grid=blocks, block=64)

    launch(words, len(padded) // 64)
    found = [low | high << 64 for low, high, *_ in words[: len(pairs)].tolist()]
    return found


def pairs_of(cls: Any) -> list[tuple[int, int]]:
    """All pairs of the ends of a format and of numbers between, or of all its numbers."""
    low, high = integer_range(cls.dtype)
    if cls.dtype.bits == 4:
        numbers = list(range(low, high + 1))
    else:
        between = (2**63, 2**64 - 1, 2**64, -(2**64), 2**100 + 5, 10**30, 3**60)
        numbers = [v for v in (low, low + 1, high - 1, high, 0, 1, -1, 2, 3, -7, 100, *between) if low <= v <= high]
    return list(product(numbers, numbers))


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "max": fx.max, "min": fx.min,
}  # fmt: skip
IN_PYTHON = OPERATORS | {"max": max, "min": min}
NARROW_AND_WIDE = [fx.Int4, fx.Int128, fx.Uint128]
chips = pytest.mark.parametrize("chip", CHIPS)


@chips
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("cls", NARROW_AND_WIDE, **names)
def test_operators(cls: Any, vector: bool, chip: str) -> None:
    pairs = pairs_of(cls)
    with flylab.use(chip):
        for symbol, rule in OPERATORS.items():
            found = on_device(rule, cls, pairs, vector)
            wanted = [wrap(IN_PYTHON[symbol](x, y), cls) for x, y in pairs]
            assert [wrap(v, cls) for v in found] == wanted, symbol
            assert [rule(cls(x), cls(y)).value for x, y in pairs[::7]] == wanted[::7], symbol


@chips
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("cls", NARROW_AND_WIDE, **names)
def test_division(cls: Any, vector: bool, chip: str) -> None:
    """L15, in every width (8 to 64 bits: test_on_device)."""
    pairs = [(x, y) for x, y in pairs_of(cls) if y]
    with flylab.use(chip):
        quotients = [wrap(v, cls) for v in on_device(operator.floordiv, cls, pairs, vector)]
        rests = [wrap(v, cls) for v in on_device(operator.mod, cls, pairs, vector)]
        up = [wrap(v, cls) for v in on_device(fx.ceildiv, cls, pairs, vector)]
    assert quotients == [wrap(x // y, cls) for x, y in pairs]
    assert rests == [x % y for x, y in pairs]
    # The least integer by -1 wraps, and so does what is rounded up from it.
    assert up == [wrap(-(-x // y), cls) for x, y in pairs]
    assert all(wrap(q * y + r, cls) == x for (x, y), q, r in zip(pairs, quotients, rests, strict=True))


@pytest.mark.parametrize("cls", NARROW_AND_WIDE, **names)
def test_comparisons_shifts_and_unary_operators(cls: Any) -> None:
    pairs = pairs_of(cls)
    for rule in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        found = on_device(lambda x, y, rule=rule: rule(x, y).to(fx.Uint8), cls, pairs)
        assert found == [int(rule(x, y)) for x, y in pairs]
    for rule in (operator.neg, operator.invert, abs):
        found = on_device(lambda x, y, rule=rule: rule(x), cls, pairs)
        assert [wrap(v, cls) for v in found] == [wrap(rule(x), cls) for x, _ in pairs]
    bits = cls.dtype.bits
    low, high = integer_range(cls.dtype)
    counts = [n for n in (0, 1, 2, bits - 1, bits, bits + 1, 2 * bits, -1, low) if low <= n <= high]
    shifted = [(x, n) for x, _ in pairs[:: len(counts)] for n in counts]
    for vector in (False, True):
        left = on_device(operator.lshift, cls, shifted, vector)
        right = on_device(operator.rshift, cls, shifted, vector)
        # A count that the format does not have moves every bit out.
        places = [n if 0 <= n < bits else 4 * bits for _, n in shifted]
        assert [wrap(v, cls) for v in left] == [wrap(x << n, cls) for (x, _), n in zip(shifted, places, strict=True)]
        assert [wrap(v, cls) for v in right] == [x >> n for (x, _), n in zip(shifted, places, strict=True)]


@pytest.mark.parametrize("cls", NARROW_AND_WIDE, **names)
def test_conversions(cls: Any) -> None:
    """To and from floats and the other integers, as known numbers have it (which test_numbers holds against numpy)."""
    pairs = pairs_of(cls)
    for target, bits in ((fx.Float64, fx.Uint64), (fx.Float32, fx.Uint32), (fx.BFloat16, fx.Uint16)):
        found = on_device(lambda x, y, t=target, b=bits: x.to(t).bitcast(b), cls, pairs)
        assert found == [cls(x).to(target).bitcast(bits).value for x, _ in pairs], target
        again = on_device(lambda x, y, t=target: x.to(t).to(cls), cls, pairs)
        assert [wrap(v, cls) for v in again] == [cls(x).to(target).to(cls).value for x, _ in pairs], target
    for target in (fx.Int8, fx.Uint8, fx.Int64, fx.Uint64, fx.Int128, fx.Int4):
        found = on_device(lambda x, y, t=target: x.to(t), cls, pairs)
        assert [wrap(v, target) for v in found] == [wrap(x, target) for x, _ in pairs], target


SPECIAL = [0.0, -0.0, 0.9, -0.9, 1.5, -7.0, 1e10, -1e10, 2.0**63, 2.0**64, 3 * 2.0**64, 2.0**126, -(2.0**127), 2.0**127,
           2.0**128 * (1 - 2.0**-53), 2.0**128, 1e300, -1e300, float("inf"), float("-inf"), float("nan")]  # fmt: skip


@chips
@pytest.mark.parametrize("cls", NARROW_AND_WIDE, **names)
def test_floats_become_the_nearest_integer(cls: Any, chip: str) -> None:
    low, high = integer_range(cls.dtype)
    wanted = [0 if v != v else low if v <= low else high if v >= high else int(v) for v in SPECIAL]
    bits = [(int(np.array(v).view(np.uint64)), 0) for v in SPECIAL]

    def from_bits(x: Any, y: Any) -> Any:
        return x.to(fx.Uint64).bitcast(fx.Float64).to(cls)

    with flylab.use(chip):
        found = on_device(from_bits, fx.Uint128, bits)
    assert [wrap(v, cls) for v in found] == wanted
    assert [cls(v).value for v in SPECIAL] == wanted
