"""Runtime values: what may stand for an integer in a coordinate, an offset or an index while a kernel is traced.

A runtime value is an object that is no number of Python's and knows `* int`, `+`, `// int` and `% int`. The algebra
uses these only where it must: nothing is multiplied by 0 or 1, and 0 is not added. Arrays of integers count as one.
"""

from __future__ import annotations

from numbers import Integral, Number
from typing import Any

ARITHMETIC = ("__mul__", "__add__", "__floordiv__", "__mod__")
BITWISE = ("__and__", "__xor__", "__lshift__", "__rshift__")


def index_leaf(value: Any, operations: tuple[str, ...] = ARITHMETIC) -> Any:
    """A Python int for any integer, a runtime value or numpy array of integers as it is, None for all else.

    >>> index_leaf(3), index_leaf(True), index_leaf("3"), index_leaf(1.5)
    (3, None, None, None)
    """
    kind = type(value)
    if kind is int:
        return value
    if isinstance(value, Number):
        return int(value) if isinstance(value, Integral) and kind is not bool else None
    if kind.__module__ == "numpy":
        if not is_array(value):
            return None
        whole = value.dtype.kind in "iu" or value.dtype.kind == "O" and all([type(n) is int for n in value.flat])
        return value if whole else None
    return value if all([hasattr(kind, name) for name in operations]) else None


def is_array(value: Any) -> bool:
    """Whether `value` is a numpy array.

    >>> import numpy as np
    >>> is_array(np.arange(4)), is_array(np.int64(4)), is_array([4])
    (True, False, False)
    """
    # numpy is imported by those alone who have an array already.
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def scaled(factor: Any, stride: int) -> Any:
    """factor * stride, not computed where the stride is 0 or 1: a runtime factor then costs nothing.

    >>> scaled(3, 8)
    24
    """
    if stride == 0:
        return 0
    return factor if stride == 1 else factor * stride


def add(a: Any, b: Any) -> Any:
    """a + b, where either may be a runtime value, which then stands on the left; 0 is not added.

    >>> add(3, 4)
    7
    """
    if type(a) is int:
        return b + a if a or type(b) is int else b
    return a if type(b) is int and b == 0 else a + b
