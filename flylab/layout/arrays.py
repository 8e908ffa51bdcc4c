"""Layouts at many coordinates at once: numpy arrays of exact integers.

They are int64 where no sum or product can leave it, and else hold Python ints (dtype object). What would take too
much time or memory is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flylab.errors import LayoutError, Undecided
from flylab.layout.basis import Basis, coordinate
from flylab.layout.int_tuple import has_runtime, leaves, product
from flylab.layout.layout import Layout, paths_of
from flylab.layout.runtime import is_array

if TYPE_CHECKING:
    import numpy

_END = 1 << 63  # of int64
_LISTED = (1 << 24, 1 << 20)  # coordinates that are listed at most: as int64, as Python ints
_COMPARED = (1 << 22, 1 << 18)  # coordinates whose values an operation compares at most


def reach(layout: Layout, most: int = 0) -> int:
    """No index of the layout is further from 0 than this, if no number of the coordinate is further than `most`.

    >>> reach(Layout((4, 8), (-8, 1))), reach(Layout((4, 8), (-8, 1)), 100)
    (31, 900)
    """
    total = 0
    # Numbers of nested coordinates count each mode by itself, and not the merged ones.
    modes = zip(leaves(layout.shape), leaves(layout.stride), strict=True) if most else layout.modes()
    for extent, stride in modes:
        total += max(extent - 1, most) * abs(stride.scale if type(stride) is Basis else stride)
    return total


def comparable(count: int, most: int) -> bool:
    """Whether an operation may look at `count` values, which lie no further from 0 than `most`.

    >>> comparable(1 << 20, 1 << 40), comparable(1 << 20, 1 << 70)
    (True, False)
    """
    return count <= _COMPARED[most >= _END]


def dtype_for(most: int) -> Any:
    """The type of an array whose numbers lie no further from 0 than `most`.

    >>> dtype_for(100).__name__, dtype_for(1 << 63).__name__
    ('int64', 'object')
    """
    import numpy as np

    return np.int64 if most < _END else object


def multiples(begin: int, end: int, step: int) -> numpy.ndarray:
    """i * step for i from `begin` up to, not including, `end`.

    >>> multiples(2, 5, 2**62).tolist() == [2**63, 3 * 2**62, 2**64]
    True
    """
    import numpy as np

    return np.arange(begin, end, dtype=dtype_for(max(end, abs(step), (end - 1) * abs(step)))) * step


def exact(array: numpy.ndarray, layout: Layout) -> numpy.ndarray:
    """The array as a coordinate of `layout`, of a type in which its indices are exact.

    >>> import numpy as np
    >>> exact(np.arange(4), Layout(4, 1)).dtype, exact(np.arange(4), Layout(4, 2**62)).dtype
    (dtype('int64'), dtype('O'))
    """
    most = furthest(array)
    return array.astype(dtype_for(max(most, reach(layout, most))))


def roomy(number: Any, other: Any) -> Any:
    """A number of a coordinate, of a type to which `other`, another such number, can be added exactly.

    >>> import numpy as np
    >>> roomy(np.arange(4), 2**63).dtype
    dtype('O')
    """
    if not is_array(number):
        return number
    added = furthest(other) if is_array(other) else abs(other) if type(other) is int else 0
    return number.astype(dtype_for(furthest(number) + added), copy=False)


def furthest(array: numpy.ndarray) -> int:
    """The largest distance of a number from 0.

    >>> import numpy as np
    >>> furthest(np.array([3, -5]))
    5
    """
    return max(int(array.max(initial=0)), -int(array.min(initial=0)))


def _check_count(layout: Any, count: int, most: int) -> None:
    limit = _LISTED[most >= _END]
    if count > limit:
        why = "" if most < _END else ", as their numbers do not fit 64 bits"
        raise LayoutError(f"the indices of {layout} are {count} numbers, and at most {limit} are listed at once{why}",
                          hint="list a part of it, which slice(layout, coord) gives, or ask for single coordinates")


def check_known(layout: Layout) -> None:
    """Refuses a layout with runtime extents or strides: its indices cannot be listed.

    >>> check_known(Layout(4, 1))
    """
    if has_runtime((layout.shape, layout.stride)):
        raise Undecided(f"the indices of {layout} are known only while the kernel runs",
                        hint="put numbers in place of its runtime extents and strides")


def listed(layout: Layout) -> numpy.ndarray:
    """All indices of a layout of integer strides, in colexicographic order of the coordinates.

    >>> listed(Layout((2, 3), (3, 1))).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    import numpy as np

    check_known(layout)
    count, most = product(layout.shape), reach(layout)
    _check_count(layout, count, most)
    total = np.zeros(1 if count else 0, dtype=dtype_for(most))
    for extent, stride in layout.modes() if count else ():
        total = (multiples(0, extent, stride)[:, None] + total).reshape(-1)
    return total


def coordinates(layout: Layout) -> Any:
    """All coordinates that a layout of basis strides gives: nested as they are, with an array for each number.

    >>> [each.tolist() for each in coordinates(Layout((2, 2), (Basis(2, (1,)), Basis(1, (0,)))))]
    [[0, 0, 1, 1], [0, 2, 0, 2]]
    """
    check_known(layout)
    paths = paths_of(layout.stride)
    origin = coordinate([(0, Basis(1, path)) for path in paths])
    count = product(layout.shape)
    _check_count(layout, count * len(list(leaves(origin))), reach(layout))
    # All modes of more than one element, of which there are few: each leaf of the coordinate is a layout of them.
    flat = [mode for mode in zip(leaves(layout.shape), leaves(layout.stride), strict=True) if mode[0] != 1]
    shape = tuple([extent for extent, _ in flat]) or 1
    terms: list[tuple[Any, Any]] = []
    for path in paths:
        scales = tuple([s.scale if type(s) is Basis and s.path == path else 0 for _, s in flat]) or 0
        terms.append((listed(Layout(shape, scales)), Basis(1, path)))
    return coordinate(terms)


def stacked(value: Any, count: int) -> numpy.ndarray:
    """A result on `count` coordinates as one array: numbers as they are, coordinates with a column for each number.

    >>> stacked((5, (0, 1)), 2).tolist()
    [[5, 0, 1], [5, 0, 1]]
    """
    import numpy as np

    def column(each: Any) -> numpy.ndarray:
        array = np.asarray(each, dtype=None if type(each) is not int else dtype_for(abs(each)))
        if array.dtype == object:
            array = array.astype(dtype_for(furthest(array)))
        return np.broadcast_to(array, (count,))

    if isinstance(value, tuple):
        return np.stack([column(each) for each in leaves(value)], axis=1)
    return column(value).copy()
