"""y = A @ x for A in compressed sparse rows: how many lanes should share a row?

The elements of a row lie side by side, those of x that they meet do not. One lane a row reads its row an element at a
time, so the lanes of a wave read from 64 places, and wait for the longest of 64 rows. Several lanes a row read
neighbours together and add up their sums at the end, in registers; lanes beyond the elements of a row do nothing.
"""

from flylab.kernels.reduce.shares import BLOCK, WAVE, wave_sum
from flylab.kernels.sparse.rows import compressed, row_count

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError
from flylab.expr import gpu


@flyc.kernel
def spmv_kernel(starts: fx.Tensor, columns: fx.Tensor, values: fx.Tensor, x: fx.Tensor, y: fx.Tensor,
                lanes: fx.Constexpr[int]):
    """BLOCK / lanes rows a block."""
    tid, rows = gpu.thread_id("x"), y.shape[0]
    lane, row = tid % lanes, gpu.block_id("x") * (BLOCK // lanes) + tid // lanes
    inside = fx.min(row, rows - 1)                  # past the last row, that one once more, and nothing is stored
    total = fx.Float32(0.0)
    with fx.arith.fastmath("contract"):
        for i in range(starts[inside] + lane, starts[inside + 1], lanes):
            total += values[i] * x[columns[i]]
    total = wave_sum(total, lanes)
    if (lane == 0) & (row < rows):
        y[row] = total


@flyc.jit
def spmv(starts: fx.Tensor, columns: fx.Tensor, values: fx.Tensor, x: fx.Tensor, y: fx.Tensor,
         lanes: fx.Constexpr[int] = 8, stream: fx.Stream = fx.Stream(None)):
    """y = A @ x for A in compressed rows of Float32, with 1, 2, 4 ... 64 lanes a row.

    `starts` has the place of each row's first element and the number of all, `columns` the column of each element.

    >>> import numpy as np
    >>> from flylab.kernels.sparse.rows import compressed
    >>> a, x, y = np.diag(np.arange(5, dtype=np.float32)), np.full(5, 2, np.float32), np.empty(5, np.float32)
    >>> _ = spmv(*compressed(a), x, y)
    >>> y.tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    if y.shape != (row_count(starts, columns, values),):
        raise ArgumentError(f"'starts' has {starts.shape[0]} places, and 'y' {y.shape[0]} rows",
                            hint="pass the place of each row's first element, and behind them the number of all")
    if lanes not in [1 << n for n in range(WAVE.bit_length())]:
        raise ArgumentError(f"{lanes} lanes a row", hint="give 1, 2, 4, 8, 16, 32 or 64")
    grid = fx.ceildiv(y.shape[0], BLOCK // lanes)
    spmv_kernel(starts, columns, values, x, y, lanes).launch(grid=(grid,), block=(BLOCK,), stream=stream)


def flylab_arguments():
    """What `flylab compile` and `flylab run` call the launcher with."""
    import numpy as np

    return {"spmv": {**compressed(np.eye(64, dtype=np.float32))._asdict(), "x,y": "f32[64]"}}
