"""Products with compressed rows on both chips: exact for small integers; empty rows and long ones."""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.sparse import spmm as spmm_file
from flylab.kernels.sparse.rows import compressed
from flylab.kernels.sparse.spmm import spmm
from flylab.kernels.sparse.spmv import spmv

import flylab
from flylab.errors import ArgumentError


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


def integers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


def sparse(rows, columns, part):
    """A matrix with this part of its elements, but none in row 1, and all in the last."""
    kept = np.random.default_rng(rows).random((rows, columns)) < part
    kept[1 % rows], kept[-1] = False, True
    return np.where(kept, integers(rows, columns), 0)


def check_nothing_is_spilled(launcher):
    for kernel in launcher.last.isa.kernels.values():
        assert (kernel.spills, kernel.scratch_bytes) == (0, 0)


def test_compressed_rows_are_those_of_the_matrix():
    dense = sparse(7, 20, 0.3)
    starts, columns, values = compressed(dense)
    rebuilt = np.zeros_like(dense)
    for row in range(7):
        for place in range(starts[row], starts[row + 1]):
            rebuilt[row, columns[place]] = values[place]
    np.testing.assert_array_equal(rebuilt, dense)
    assert len(values) == np.count_nonzero(dense) and starts[1] == starts[2]


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("rows, columns", [(256, 100), (5, 33), (300, 517), (1, 1)])
def test_spmv(lanes, rows, columns):
    a, x, y = sparse(rows, columns, 0.1), integers(columns), np.full(rows + 2, np.nan, np.float32)
    spmv(*compressed(a), x, y[:rows], lanes)
    np.testing.assert_array_equal(y[:rows], a.astype(np.int64) @ x.astype(np.int64))
    assert np.isnan(y[rows:]).all()
    check_nothing_is_spilled(spmv)


@pytest.mark.parametrize("variant", spmm_file.VARIANTS)
@pytest.mark.parametrize("rows, inner, columns", [(6, 100, 256), (5, 700, 68), (3, 300, 1100), (4, 9, 4)])
def test_spmm(variant, rows, inner, columns):
    a, b, c = sparse(rows, inner, 0.3), integers(inner, columns), np.full((rows + 1, columns), np.nan, np.float32)
    spmm(*compressed(a), b, c[:rows], variant)
    np.testing.assert_array_equal(c[:rows], a.astype(np.int64) @ b.astype(np.int64))
    assert np.isnan(c[rows:]).all()
    check_nothing_is_spilled(spmm)


def test_elements_of_the_row_that_all_threads_share_come_as_scalars():
    spmm(*compressed(sparse(3, 64, 0.5)), integers(64, 256), np.empty((3, 256), np.float32), "scalar")
    (kernel,) = spmm.last.isa.kernels.values()
    assert sum(i.mnemonic == "s_load_dword" for i in kernel.instructions) >= 2
    assert sum(i.mnemonic.startswith("global_load") for i in kernel.instructions) == 1


def test_what_does_not_fit_is_refused():
    rows = compressed(sparse(4, 10, 0.5))
    with pytest.raises(ArgumentError, match="'starts' has 5 places, and 'y' 3 rows"):
        spmv(*rows, integers(10), np.empty(3, np.float32))
    with pytest.raises(ArgumentError, match="5 lanes a row"):
        spmv(*rows, integers(10), np.empty(4, np.float32), 5)
    with pytest.raises(ArgumentError, match=r"'columns' has shape \(2,\) and 'values'"):
        spmm(rows.starts, rows.columns[:2], rows.values, integers(10, 8), np.empty((4, 8), np.float32))
    with pytest.raises(ArgumentError, match=r"A of 4 rows times B \(10, 8\) into C \(8, 8\)"):
        spmm(*rows, integers(10, 8), np.empty((8, 8), np.float32))
    with pytest.raises(ArgumentError, match="a row of B' has 10 elements, no whole number of tiles of 4"):
        spmm(*rows, integers(10, 10), np.empty((4, 10), np.float32))
