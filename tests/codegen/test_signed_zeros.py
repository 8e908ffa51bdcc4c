"""0.0 - x keeps the sign of its zero, wherever the zero is seen and whatever uses the difference: as numpy computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
import flylab.expr as fx
from flylab.codegen.signed_zeros import keep_zero_minus
from tests.samples import kernel_of, on_device

FORMATS = {np.float32: fx.Float32, np.float16: fx.Float16, ml_dtypes.bfloat16: fx.BFloat16, np.float64: fx.Float64}
INPUTS = [0.0, -0.0, 1.0, -2.0]
USES: dict[str, Callable[[Any], Any]] = {
    "0 - x": lambda x: 0.0 - x,
    "0 + -x": lambda x: 0.0 + (-x),
    "-x + 0": lambda x: (-x) + 0.0,
    "-0 - x": lambda x: -0.0 - x,
    "a product": lambda x: (0.0 - x) * 3.0,
    "a product of the sum": lambda x: (0.0 + (-x)) * 3.0,
    "a square": lambda x: (0.0 - x) * x,
    "a quotient": lambda x: 1.0 / (0.0 - x),
    "a sum": lambda x: (0.0 - x) + (-0.0),
}


@pytest.fixture(params=["gfx942", "gfx950"])
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


@pytest.mark.parametrize("level", ["0", "2"])
def test_zero_minus_a_number(chip: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", level)
    for dtype, cls in FORMATS.items():
        given = np.array(INPUTS, dtype)

        def all_of(x: Any) -> Any:
            parts = [use(x) for use in USES.values()]
            return sum(((1.0 / p < 0.0).to(fx.Int32) << i for i, p in enumerate(parts)), fx.Int32(0))

        got = on_device(all_of, given, out=np.int32)
        with np.errstate(divide="ignore"):
            wanted = [sum(int(np.signbit(use(x))) << i for i, use in enumerate(USES.values())) for x in given]
        assert got.tolist() == wanted, (cls, [f"{w:b}" for w in wanted], [f"{g:b}" for g in got])
        assert [all_of(cls(x)).value for x in INPUTS] == wanted


def test_vectors_and_zeros_that_the_optimiser_finds(chip: str) -> None:
    launch = kernel_of(
        """
        t = fx.thread_idx.x
        v = fx.Vector.from_elements([A[t], A[t] + 1.0], fx.Float32)
        zero = fx.Float32(t // 64)
        A[t] = ((fx.Vector.from_elements([0.0, 1.0], fx.Float32) - v) * 3.0)[0]
        B[t] = ((fx.Vector.filled(2, 0.0, fx.BFloat16) - v.to(fx.BFloat16)) * 3.0)[0].to(fx.Float32)
        C[t] = 1.0 / (zero - v[0])
        """,
        "A: fx.Tensor, B: fx.Tensor, C: fx.Tensor",
    )["launch"]
    given = np.array(INPUTS * 16, np.float32)
    a, b, c = given.copy(), given.copy(), given.copy()
    launch(a, b, c)
    with np.errstate(divide="ignore"):
        wanted = (0.0 - given) * 3.0, 1.0 / (0.0 - given)
    assert a.tobytes() == b.tobytes() == wanted[0].tobytes() and c.tobytes() == wanted[1].tobytes()


def test_what_is_left_as_it_is() -> None:
    for line in (
        "  %2 = fsub float -0.000000e+00, %1",
        "  %2 = fsub nsz float 0.000000e+00, %1",
        "  %2 = fsub float %1, 0.000000e+00",
        "  %2 = fsub <2 x float> <float -0.000000e+00, float 1.000000e+00>, %1",
        "  %2 = fadd double 0.000000e+00, %1, !dbg !7",
    ):
        assert keep_zero_minus(line) == line
    kept = keep_zero_minus("  %r = fsub contract <2 x half> <half 0xH0000, half 0xH3C00>, %x, !dbg !7")
    assert kept.splitlines() == [
        '  %"of r" = fsub contract <2 x half> <half 0xH0000, half 0xH3C00>, %x, !dbg !7',
        '  %r = call <2 x half> @llvm.arithmetic.fence.v2f16(<2 x half> %"of r"), !dbg !7',
    ]
