"""One number from the elements of a vector: in the order that is said, with the NaN rules that are said."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flylab.expr as fx
from tests.expr.vectors import CHIPS, FLOATS, INTEGERS, bits, quietly, rows_on_device, sample

named = pytest.mark.parametrize
by_name = {"ids": lambda c: c.__name__}

def folded(rule: Callable[..., Any], a: np.ndarray) -> np.ndarray:
    """Joined from the left to the right, each step rounded to the format."""
    columns = [a[:, i] for i in range(a.shape[1])]
    return functools.reduce(lambda x, y: np.asarray(quietly(rule, x, y)).astype(a.dtype), columns)


@named("chip", CHIPS)
@named("cls", [*INTEGERS, *FLOATS], **by_name)
def test_reductions_join_from_the_left_to_the_right(cls: Any, chip: str) -> None:
    rules = {"ADD": operator.add, "MUL": operator.mul, "MAX": np.maximum, "MIN": np.minimum}
    extra = {"MAXNUM": np.fmax, "MINNUM": np.fmin}
    logic = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}
    rules |= extra if cls.dtype.is_float else logic
    for lanes in (1, 3, 4, 8):
        a = sample(cls, (64, lanes), lanes, ordinary=lanes == 4)
        got = rows_on_device(
            lambda v: [v.reduce(fx.ReductionOp[name]) for name in rules], a, out=a.dtype, columns=len(rules), chip=chip
        )
        for i, (name, rule) in enumerate(rules.items()):
            expected, mine = folded(rule, a), got[:, i]
            if name in ("MAX", "MIN", "MAXNUM", "MINNUM"):
                expected, mine = expected + a.dtype.type(0), mine + a.dtype.type(0)
            assert np.array_equal(bits(mine), bits(expected)), (name, lanes)


def test_a_sum_keeps_the_sign_of_zero() -> None:
    a = np.full((64, 4), -0.0, np.float32)
    sums = lambda v: [v.reduce("add"), v[0:1].reduce("add"), (-v).reduce("add")]  # noqa: E731
    got = rows_on_device(sums, a, out=np.float32, columns=3)
    assert np.signbit(got[0]).tolist() == [True, True, False]


@named("chip", CHIPS)
def test_l20_reductions_of_nan(chip: str) -> None:
    """L20: [nan, 6, 8] has sum nan, max nan and maxnum 8; of NaNs alone all are NaN; nothing raises."""
    nan = np.nan
    rows = [[nan, 6, 8], [6, nan, 8], [6, 8, nan], [nan, nan, nan], [6, 8, 7], [-np.inf, nan, np.inf]]
    by = ["ADD", "MAX", "MAXNUM", "MIN", "MINNUM", "MUL"]
    expected = [[nan, nan, 8, nan, 6, nan]] * 3 + [[nan] * 6, [21, 8, 8, 6, 6, 336]]
    expected.append([nan, nan, np.inf, nan, -np.inf, nan])
    for dtype in (np.float32, np.float16, np.float64):
        a = np.array(rows, dtype)
        got = rows_on_device(lambda v: [v.reduce(fx.ReductionOp[b]) for b in by], a, out=dtype, columns=6, chip=chip)
        assert np.array_equal(got, np.array(expected, dtype), equal_nan=True)


def test_booleans_any_all_and_counts() -> None:
    a = np.array([[i >> j & 1 for j in range(4)] for i in range(16)], np.int32)

    def mine(v: Any) -> list[Any]:
        mask = v != 0
        assert isinstance(mask.any(), fx.Boolean) and isinstance(mask.reduce("add"), fx.Int32)
        made = [mask.any(), mask.all(), mask.reduce("xor"), (~mask).all(), mask.reduce("add"), mask.reduce("max")]
        return [x.to(fx.Int32) for x in made]

    got = rows_on_device(mine, a, out=np.int32, columns=6)
    count = a.sum(1)
    assert np.array_equal(got, np.stack([count > 0, count == 4, count % 2, count == 0, count, count > 0], 1))


@named("chip", CHIPS)
def test_zero_is_above_negative_zero(chip: str) -> None:
    """In every largest and smallest, as for known numbers: MLIR's maximumf says so, numpy does not."""
    a = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0]], np.float32)
    by = [(fx.max, "MAX"), (fx.min, "MIN"), (fx.maxnumf, "MAXNUM"), (fx.minnumf, "MINNUM")]
    got = rows_on_device(
        lambda v: [x for rule, name in by for x in (v.reduce(name), rule(v[0], v[1]))],
        a, out=np.float32, columns=8, chip=chip,
    )  # fmt: skip
    for row, numbers in zip(got, a, strict=True):
        x, y = (fx.Float32(float(n)) for n in numbers)
        known = [np.signbit(rule(x, y).value) for rule, _ in by for _ in range(2)]
        assert np.signbit(row).tolist() == known
    assert np.signbit(got[:, ::2]).tolist() == [[False, True] * 2] * 2 + [[True] * 4, [False] * 4]


@named("chip", CHIPS)
@named("cls", FLOATS, **by_name)
def test_signalling_nans_are_passed_over_too(cls: Any, chip: str) -> None:
    """maxnumf and minnumf give the other operand beside any NaN, as for known numbers and as numpy's fmax and fmin."""
    rows = np.array([[6.0, 0.0, -3.0], [0.0, 6.0, -3.0], [6.0, -3.0, 0.0]]).astype(cls.dtype.to_numpy())
    integers = f"u{rows.itemsize}"
    least = np.array(np.inf).astype(rows.dtype).view(integers) | 1  # the least NaN, which signals
    a = np.where(rows == 0, least, rows.view(integers)).view(rows.dtype)
    pair = [(fx.maxnumf, "MAXNUM"), (fx.minnumf, "MINNUM")]

    def mine(v: Any) -> list[Any]:
        of_two = [x for rule, _ in pair for x in (rule(v[0], v[1]), rule(v, v[2])[1])]
        # Of the wider formats, LLVM joins two into an instruction of three operands, without quieting the second.
        return of_two + [v.reduce(name) if cls is fx.BFloat16 else v[0] for _, name in pair]

    got = quietly(rows_on_device(mine, a, out=a.dtype, columns=6, chip=chip).astype, float)
    assert got[:, :4].tolist() == [[6, -3, 6, -3], [6, 6, 6, -3], [6, -3, -3, -3]]
    assert cls is not fx.BFloat16 or got[:, 4:].tolist() == [[6, -3]] * 3
