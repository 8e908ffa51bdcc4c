"""The thread of a slice of a tiled copy or MMA: what it may be, and whether a kernel takes all threads' slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr.gpu import Tuple3D
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric, as_numeric, interval
from flylab.expr.promotion import integer_range
from flylab.expr.state import KernelState, current_kernel, require_kernel
from flylab.places import SourceLine, here


@dataclass(frozen=True)
class Taken:
    """A slice that a kernel takes: of which threads, where, and what the user calls the tiled copy or MMA and the
    thread."""

    low: int
    high: int
    where: SourceLine | None
    name: str
    thread: str = ""


def thread_index(tiled: Any, kind: str, thread: Any, wraps: bool) -> Any:
    """The thread of a slice, checked: a Python int, or an integer of the device.

    The threads of a tiled MMA wrap, so that each wave may do a tile of its own. Raises `TraceError` for what is no
    integer, and for one that can lie outside of the threads of a tiled copy.
    """
    name = name_of(tiled, kind)
    if isinstance(thread, (Tuple3D, bool, float, str, tuple, list, type(None))):
        raise TraceError(f"get_slice({thread!r}) of {name}",
                         hint=f"give the thread's number: {name.strip(chr(39))}.get_slice(fx.thread_idx.x)")
    number = as_numeric(thread)
    if number.dtype.is_float or number.dtype.kind == BOOL or number.dtype.bits > 64:
        raise TraceError(f"get_slice of {name} with {name_of(thread, 'a number')}, a {number.dtype}",
                         hint="a thread's number is an integer: fx.Int32(x)")
    low, high = interval(number)
    count = tiled.num_threads
    if number.is_static:
        if low < 0 or low >= count and not wraps:
            raise TraceError(f"get_slice({low}) of {name}, which has the threads 0 to {count - 1}",
                             hint=f"it is made for {count} threads")
        return low
    kernel = require_kernel("get_slice of a number of the device")
    bounded = (low, high) != integer_range(number.dtype) and kernel.block is not None
    if bounded and not wraps and (low < 0 or high >= count):
        raise TraceError(
            f"get_slice({name_of(thread, 'thread')}) of {name}, which has the threads 0 to {count - 1}: the number "
            f"can be {low if low < 0 else high}",
            hint=f"let the threads beyond do the same: get_slice(thread % {count}); or, in a branch that they do not "
            f"take, say so: fx.assume(thread, low=0, high={count - 1})",
        )
    return number


def note_slice(tiled: Any, kind: str, thread: Any) -> Taken | None:
    """What a kernel takes of the threads of a tiled copy or MMA by one get_slice."""
    if current_kernel() is None:
        return None
    low, high = interval(as_numeric(thread))
    if not isinstance(thread, Numeric):
        return Taken(low, high, None, "")
    return Taken(low, high, here(), name_of(tiled, kind), name_of(thread, "the thread's number"))


def take(tiled: Any, taken: Taken | None) -> None:
    """Note that memory was partitioned for a slice."""
    kernel = current_kernel()
    if kernel is not None and taken is not None:
        kernel.slices.setdefault(tiled, []).append(taken)


def check_slices(kernel: KernelState) -> None:
    """Refuse a kernel in whose block some threads' slices of a tiled copy or MMA are never taken.

    Raises `TraceError` at the first get_slice.
    """
    if kernel.block is None:
        return
    for tiled, slices in kernel.slices.items():
        first = next((taken for taken in slices if taken.where is not None), None)
        missing = None if first is None else _first_missing(slices, tiled.num_threads)
        if first is not None and missing is not None:
            raise _not_taken(kernel, tiled, first, missing)


def _not_taken(kernel: KernelState, tiled: Any, first: Taken, missing: int) -> TraceError:
    """The error for a thread of a tiled copy or MMA whose part nobody does."""
    assert kernel.block is not None
    x, y, z = kernel.block
    count, nobody = x * y * z, f"nobody does the part of thread {missing}"
    text = f"{first.name} is made for {tiled.num_threads} threads, and"
    if count < tiled.num_threads:
        return TraceError(f"{text} the block {kernel.block} of '{kernel.name}' has {count}: {nobody}",
                          where=first.where,
                          hint=f"launch with block={tiled.num_threads}, or make it of {count} threads")
    number = "fx.thread_idx.x"
    if y * z > 1:
        row = "fx.thread_idx.y" if z == 1 else f"(fx.thread_idx.z * {y} + fx.thread_idx.y)"
        number = f"{row} * {x} + {number}"
    return TraceError(f"{text} {first.thread} goes from {first.low} to {first.high} only in the block {kernel.block} "
                      f"of '{kernel.name}': {nobody}",
                      where=first.where, hint=f"number the threads: get_slice({number})")


def _first_missing(slices: list[Taken], count: int) -> int | None:
    """The first of the threads 0 to count - 1 that no slice is of."""
    reached = 0
    for taken in sorted(slices, key=lambda each: each.low):
        if taken.high - taken.low >= count - 1:
            return None
        if taken.low > reached:
            break
        reached = max(reached, taken.high + 1)
    return reached if reached < count else None
