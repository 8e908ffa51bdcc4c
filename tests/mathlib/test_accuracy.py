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
    for name, (_, single, worst, _, half, *worst_half, _, _) in promised.items():
        promise = PROMISED[name]
        assert (float(single), float(half)) == (promise.single, promise.half)
        assert float(worst) <= promise.single and max(map(float, worst_half)) <= promise.half
        assert float(worst) > 0.45  # a page that was measured
    for name, (_, bound, worst, _) in short.items():
        assert float(bound.removesuffix(" ulp")) == APPROXIMATE[name].bound
        assert float(worst.removesuffix(" ulp")) <= APPROXIMATE[name].bound


@pytest.mark.parametrize("name", ["exp", "tanh", "sin"])
def test_the_page_counts_the_instructions_of_today(name: str) -> None:
    assert [int(cell) for cell in table_rows()[0][name][-2:]] == [instructions(name, chip) for chip in CHIPS]


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
