"""The page of numbers: it is what the data gives, and each cell of its matrix is what the device gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.dtypes import BOOL, DTYPES
from flylab.errors import TraceError
from flylab.expr import number_tables
from flylab.expr.numeric import CLASSES
from flylab.expr.promotion import literal, promote

PAGE = Path(__file__).parents[2] / "notebooks" / "reference" / "numbers.md"
KINDS = [CLASSES[d.name] for d in DTYPES.values() if not d.is_small_float]
names = {"ids": lambda value: getattr(value, "__name__", value)}


def test_the_page_is_what_the_data_gives(request: pytest.FixtureRequest) -> None:
    page = number_tables.page()
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "numbers.md changed; `make golden` writes it"


def cells(heading: str) -> dict[tuple[str, str], str]:
    """The cells of the table under a heading of the committed page, by row and column."""
    text = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip(" *`") for cell in line.strip("|").split("|")] for line in lines]
    head, _, *body = rows
    return {(row[0], column): cell for row in body for column, cell in zip(head[1:], row[1:], strict=True)}


def test_rows_of_the_committed_page() -> None:
    """Some cells by name: what a reader relies on."""
    matrix, beside = cells("Promotion"), cells("Python's numbers")
    assert matrix["Int32", "Uint32"] == "Uint32" and matrix["BFloat16", "Float16"] == "Float32"
    assert matrix["Int64", "BFloat16"] == "BFloat16" and matrix["Uint32", "Int64"] == "Int64"
    assert matrix["a float below 16 bits", "Float32"] == "error"
    assert beside["Int8", "1.5"] == "Float32" and beside["Int32", "2**40"] == "Int64"
    assert beside["Uint64", "-1"] == "error" and beside["a float", "1.5"] == "the float's"


LEFT, RIGHT = 3, 2


def expected(cls: Any, value: int) -> int:
    return int(bool(value)) if cls.dtype.kind == BOOL else value


@pytest.mark.parametrize("left", KINDS, **names)
def test_each_cell_is_what_the_device_gives(left: Any) -> None:
    """L18: scalars and vectors in each combination and order: the table's format, and the right sum."""
    matrix = cells("Promotion")
    N = np.array([LEFT, RIGHT], np.int32)
    R = np.zeros(8 * len(KINDS), np.float64)
    seen: list[tuple[Any, Any]] = []

    @flyc.kernel
    def cells_kernel(N: fx.Tensor, R: fx.Tensor):
        for k, right in enumerate(KINDS):
            a, b = left(N[0]), right(N[1])
            v, w = fx.Vector.filled(2, a, left), fx.Vector.filled(2, b, right)
            results = [a + b, b + a, a + w, w + a, v + b, b + v, v + w, w + v]
            for i, result in enumerate(results):
                seen.append((right, result.dtype if i < 2 else result.dtype.dtype))
                R[8 * k + i] = fx.Float64(result if i < 2 else result[1])

    @flyc.jit
    def launch(N: fx.Tensor, R: fx.Tensor):
        cells_kernel(N, R).launch(grid=1, block=1)

    launch(N, R)
    for i, (right, found) in enumerate(seen):
        common = matrix[left.__name__, right.__name__]
        # Two Booleans are added as Int32.
        assert found.name == ("Int32" if common == "Boolean" else common), (left, right, i)
        assert R[i] == expected(left, LEFT) + expected(right, RIGHT), (left, right, i)
        known = left(LEFT) + right(RIGHT)
        assert known.dtype == found and float(known.value) == R[i]


@pytest.mark.parametrize("kind", KINDS, **names)
def test_python_numbers_on_either_side(kind: Any) -> None:
    """L18: a literal takes the operand's format where it fits; BFloat16 * 1.5 stays a BFloat16."""
    values = [1, -1, 2.5, True, 100, 2**40]
    good = [v for v in values if _beside(v, kind) is not None]
    R = np.zeros((len(good), 4), np.float64)
    seen: list[Any] = []

    @flyc.kernel
    def literals_kernel(N: fx.Tensor, R: fx.Tensor):
        x = kind(N[0])
        v = fx.Vector.filled(2, x, kind)
        for i, value in enumerate(good):
            for j, result in enumerate((x + value, value + x, (v + value)[1], (value + v)[0])):
                seen.append((i, result.dtype))
                R[i, j] = fx.Float64(result)

    @flyc.jit
    def launch(N: fx.Tensor, R: fx.Tensor):
        literals_kernel(N, R).launch(grid=1, block=1)

    launch(np.array([LEFT], np.int32), R)
    for i, found in seen:
        value = good[i]
        common = promote(kind.dtype, literal(value, kind.dtype))
        assert found == (DTYPES["Int32"] if common.kind == BOOL else common)
        if kind.dtype.is_float or isinstance(value, float):
            assert found.name == (kind.__name__ if kind.dtype.is_float else "Float32")
        with np.errstate(all="ignore"):
            dtype = found.to_numpy() if found.numpy_name and found.bits > 4 else np.int64
            # A Python number rounds to the format first, as numpy's does.
            wanted = np.array([expected(kind, LEFT)]).astype(dtype) + np.array([value]).astype(dtype)
        assert (R[i] == float(wanted[0])).all(), (kind, value)
        assert float((kind(LEFT) + value).value) == float((value + kind(LEFT)).value) == R[i, 0]


def _beside(value: Any, kind: Any) -> Any:
    try:
        return literal(value, kind.dtype)
    except TraceError:
        return None
