"""Running a function of vectors on the software device: one vector of each input in each thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu
from flylab.expr.promotion import integer_range

CHIPS = ("gfx942", "gfx950")
INTEGERS = [fx.Int8, fx.Uint8, fx.Int16, fx.Uint16, fx.Int32, fx.Uint32, fx.Int64, fx.Uint64]
FLOATS = [fx.Float16, fx.BFloat16, fx.Float32, fx.Float64]


def rows_on_device(
    function: Callable[..., Any], *inputs: Any, out: Any, columns: int, chip: str = "gfx942"
) -> np.ndarray:
    """`function` of a row of each input, for all rows: an input of two dimensions gives a vector, of one a number.

    The result, a vector or number or a list of them, is `columns` numbers of numpy's dtype `out` in each row.
    """
    count = len(inputs[0])
    padding = -count % 64
    arrays = [np.concatenate([np.asarray(i), np.repeat(np.asarray(i)[-1:], padding, 0)]) for i in inputs]
    result = np.zeros((count + padding, columns), out)
    spare = np.zeros((count + padding, 1), np.int32)

    @flyc.kernel
    def rows_kernel(dimensions: fx.Constexpr, R: fx.Tensor, P: fx.Tensor, Q: fx.Tensor, S: fx.Tensor):
        i = gpu.block_id("x") * 64 + gpu.thread_id("x")
        given = [
            fx.slice(t, (i, None)).load() if rank == 2 else t[i]
            for t, rank in zip((P, Q, S), dimensions, strict=False)
        ]
        made = function(*given)
        numbers = [x for part in (made if isinstance(made, list) else [made]) for x in each(part)]
        assert len(numbers) == R.shape[1], f"give columns={len(numbers)}"
        for j, number in enumerate(numbers):
            R[i, j] = number

    @flyc.jit
    def launch(dimensions: fx.Constexpr, R: fx.Tensor, P: fx.Tensor, Q: fx.Tensor, S: fx.Tensor, n: fx.Constexpr[int]):
        rows_kernel(dimensions, R, P, Q, S).launch(grid=n // 64, block=64)

    given = [*arrays, spare, spare][:3]
    with flylab.use(chip):
        launch(tuple(a.ndim for a in arrays), result, *given, len(result))
    return result[:count]


def each(part: Any) -> list[Any]:
    """The elements of a vector; a number as one."""
    return list(part) if isinstance(part, fx.Vector) else [part]


def bits(array: Any) -> np.ndarray:
    """An array's bits, with every NaN the same (a NaN's payload is not promised)."""
    array = np.asarray(array)
    if array.dtype.kind in "iub":
        return array
    raw = array.view(f"u{array.dtype.itemsize}").copy()
    raw[np.isnan(array.astype(np.float64))] = np.iinfo(raw.dtype).max
    return raw


def sample(cls: Any, shape: tuple[int, ...], seed: int, ordinary: bool = False) -> np.ndarray:
    """Numbers of a format: its ends and, of floats, infinities, NaNs, denormals and both zeros among ordinary ones."""
    generator = np.random.default_rng(seed)
    dtype = cls.dtype.to_numpy()
    if not cls.dtype.is_float:
        low, high = integer_range(cls.dtype)
        ends = [v for v in (low, low + 1, -1, 0, 1, 2, 7, high - 1, high) if low <= v <= high]
        drawn = generator.integers(low, high, size=shape, dtype=dtype, endpoint=True)
        chosen = np.array(ends, dtype)[generator.integers(0, len(ends), shape)]
        return np.where(generator.random(shape) < 0.4, chosen, drawn)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, -1e-40, 65504.0, 3e38, 1.0, -2.5]).astype(np.float64)
    drawn = generator.normal(size=shape) * 4
    if not ordinary:
        drawn = np.where(generator.random(shape) < 0.3, special[generator.integers(0, len(special), shape)], drawn)
    with np.errstate(all="ignore"):
        return drawn.astype(dtype)


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*args)
