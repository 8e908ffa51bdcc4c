"""What `fx.math` promises, measured on the software device of both chips, and the page of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab
import flylab.expr as fx
from flylab.mathlib import coefficients
from flylab.mathlib.accuracy import APPROXIMATE, PROMISED
from flylab.mathlib.functions import FUNCTIONS
from flylab.mathlib.trigonometric import TWO_OVER_PI_BITS
from tests.mathlib.fit import ROWS
from tests.mathlib.measure import (
    CHIPS,
    EXACT,
    FORMATS,
    SHAPES,
    arguments,
    distance,
    measure,
    measure_approximation,
)
from tests.mathlib.off import off_by
from tests.mathlib.table import PAGE, instructions
from tests.samples import on_device


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", PROMISED)
def test_promises(name: str, chip: str) -> None:
    """Other arguments than the page's; of the 16-bit formats every number."""
    promise = PROMISED[name]
    for kind, bound in (("f32", promise.single), ("f16", promise.half), ("bf16", promise.half)):
        worst = measure(name, kind, chip, 5000, seed=7)
        assert worst.ulp <= bound, (kind, worst)


def hardest_angles() -> Any:
    """Every Float32 of at least 2**-7 that lies within 2**-22 quarter turns of a whole number of them."""
    turns = sum(word << 32 * n for n, word in enumerate(reversed(TWO_OVER_PI_BITS)))
    mantissas, found = np.arange(2**23, 2**24, dtype=np.uint64), []
    for exponent in range(-30, 105):
        # 64 bits of 2 / pi from the one that makes quarter turns of the mantissa's last place on.
        window = (turns >> (224 - 64 - exponent)) & (2**64 - 1)
        with np.errstate(over="ignore"):
            rest = (mantissas * np.uint64(window)).view(np.int64)
        found += [float(m) * 2.0**exponent for m in mantissas[(rest < 2**42) & (rest > -(2**42))]]
    return np.array(found, np.float32)


def test_angles_nearest_to_quarter_turns() -> None:
    """Where a reduction loses most: the rest is as small as 2**-30, and must be right in its own last places."""
    x = hardest_angles()
    assert len(x) > 400 and float(x.max()) > 2.0**120
    for name in ("sin", "cos", "tan"):
        found = on_device(getattr(fx.math, name), x, out=np.float32)
        assert np.max(distance(found, EXACT[name](x.astype(np.float64)), "f32")) <= PROMISED[name].single


def test_the_bits_of_two_over_pi() -> None:
    """Machin's formula in integers: pi / 4 = 4 atan(1/5) - atan(1/239)."""
    one, total = 1 << 300, 0
    for factor, n in ((4, 5), (-1, 239)):
        term, k = one // n, 0
        while term:
            total += factor * (-1) ** k * (term // (2 * k + 1))
            term, k = term // (n * n), k + 1
    two_over_pi = (one * one // (2 * total)) >> (300 - 224)
    assert [two_over_pi >> 32 * (6 - n) & 0xFFFFFFFF for n in range(7)] == list(TWO_OVER_PI_BITS)


@pytest.mark.parametrize("kind", FORMATS)
def test_sincos_is_sin_and_cos(kind: str) -> None:
    (x,) = arguments(PROMISED["sin"], kind, 3000)
    for part, name in enumerate(("sin", "cos")):
        found = on_device(lambda v, part=part: fx.math.sincos(v)[part], x, out=FORMATS[kind])
        alone = on_device(getattr(fx.math, name), x, out=FORMATS[kind])
        assert np.array_equal(found.astype(float), alone.astype(float), equal_nan=True)


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("name", PROMISED)
def test_no_bit_depends_on_the_hardware_tables(name: str, step: int) -> None:
    for kind in ("f32", "f16"):
        inputs = tuple(x[:40000] for x in arguments(PROMISED[name], kind, 4000, seed=3))
        usual = on_device(getattr(fx.math, name), *inputs, out=FORMATS[kind])
        with off_by(step):
            found = on_device(getattr(fx.math, name), *inputs, out=FORMATS[kind])
        assert np.array_equal(usual.astype(float), found.astype(float), equal_nan=True)


def test_the_device_that_is_off_is_off() -> None:
    x = np.linspace(0.1, 5, 1000).astype(np.float32)
    usual = on_device(lambda v: fx.math.exp2(v, fastmath="afn"), x, out=np.float32)
    with off_by(1):
        found = on_device(lambda v: fx.math.exp2(v, fastmath="afn"), x, out=np.float32)
    assert np.array_equal(found.view(np.int32), usual.view(np.int32) + 1)


@pytest.mark.parametrize("step", [-1, 0, 1])
@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations(name: str, step: int) -> None:
    assert measure_approximation(name, 10000, step, seed=5) <= APPROXIMATE[name].bound


def test_every_function_of_floats_promises_something() -> None:
    exact = {"absf", "copysign", "fma", "floor", "ceil", "trunc", "roundeven", "round", "clampf", "isnan", "isinf",
             "isfinite", "isnormal", "sincos"}
    assert set(PROMISED) == set(FUNCTIONS) - exact == set(EXACT)
    assert set(APPROXIMATE) | {"sincos"} == {name for name, row in FUNCTIONS.items() if row.native}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_polynomials_are_as_near_as_they_say(row: Any) -> None:
    found = getattr(coefficients, row.name)
    assert len(found) == row.degree + 1
    assert row.error(found) < 2.0**-row.bits
    assert np.allclose(found, row.coefficients(), rtol=1e-6)


def table_rows() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The cells of the page's two tables, by function."""
    first, second = PAGE.read_text(encoding="utf-8").split("## Under")
    tables = []
    for text in (first, second):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
        tables.append({row[0]: row[1:] for row in rows[2:]})
    return tables[0], tables[1]


def test_the_page_is_that_of_the_rows() -> None:
    promised, short = table_rows()
    assert list(promised) == list(PROMISED) and list(short) == list(APPROXIMATE)
    for name, (_, single, worst, _, half, *worst_half, _, _, _) in promised.items():
        promise = PROMISED[name]
        assert (float(single), float(half)) == (promise.single, promise.half)
        assert float(worst) <= promise.single and max(map(float, worst_half)) <= promise.half
        assert float(worst) > 0.45  # a page that was measured
    for name, (_, bound, worst, _) in short.items():
        assert float(bound.removesuffix(" ulp")) == APPROXIMATE[name].bound
        assert float(worst.removesuffix(" ulp")) <= APPROXIMATE[name].bound


@pytest.mark.parametrize("name", ["exp", "tanh", "sin"])
def test_the_page_counts_the_instructions_of_today(name: str) -> None:
    counts = [*(instructions(name, chip) for chip in CHIPS), instructions(name, CHIPS[0], lanes=4)]
    assert table_rows()[0][name][-3:] == [f"{count:.3g}" for count in counts]


@given(st.sampled_from(sorted(FORMATS)), st.floats(), st.integers(-3, 3))
def test_distance_counts_numbers_between(kind: str, value: float, steps: int) -> None:
    """The measure itself, against counting neighbours within a binade."""
    digits, lowest, _ = SHAPES[kind]
    with np.errstate(all="ignore"):
        near = np.array([value]).astype(FORMATS[kind])
    if not np.isfinite(near.astype(float)[0]) or near[0] == 0:
        assert distance(near, near.astype(float), kind)[0] == 0
        return
    bits = near.view(f"i{near.itemsize}") + near.view(f"i{near.itemsize}").dtype.type(steps)
    other = bits.view(FORMATS[kind])
    exact, moved = near.astype(float), other.astype(float)
    if np.isfinite(moved[0]) and np.frexp(moved)[1] == np.frexp(exact)[1] and moved[0] * exact[0] > 0:
        assert distance(other, exact, kind)[0] == abs(steps)


def test_chips_give_the_same_bits() -> None:
    found = []
    for chip in CHIPS:
        with flylab.use(chip):
            (x,) = arguments(PROMISED["erf"], "f32", 3000)
            found.append(on_device(fx.math.erf, x, out=np.float32))
    assert np.array_equal(*found, equal_nan=True)
