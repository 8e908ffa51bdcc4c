"""Compressed sparse rows (CSR): the elements that are not 0, row by row, their columns, and where each row begins."""

from typing import NamedTuple

import numpy as np

from flylab.errors import ArgumentError


class Rows(NamedTuple):
    """A matrix as `starts` (rows + 1) and `columns` (elements), both Int32, and `values` (elements)."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def compressed(dense):
    """The compressed rows of a matrix.

    >>> starts, columns, values = compressed(np.array([[0, 5, 6], [0, 0, 0], [7, 0, 0]], np.float32))
    >>> starts.tolist(), columns.tolist(), values.tolist()
    ([0, 2, 2, 3], [1, 2, 0], [5.0, 6.0, 7.0])
    """
    row, column = np.nonzero(dense)
    starts = np.searchsorted(row, np.arange(dense.shape[0] + 1))
    return Rows(starts.astype(np.int32), column.astype(np.int32), np.ascontiguousarray(dense[row, column]))


def row_count(starts, columns, values):
    """How many rows these have. Raises `ArgumentError` where columns and values differ in number."""
    if columns.shape != values.shape:
        raise ArgumentError(f"'columns' has shape {columns.shape} and 'values' {values.shape}",
                            hint="pass a column for each value")
    return starts.shape[0] - 1
