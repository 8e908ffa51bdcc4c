"""What differs between two times: registers by lane, bytes of LDS, elements of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flylab.codegen.assembly.registers import register_name
from flylab.emulator.debugger.names import Names
from flylab.emulator.debugger.snapshots import Writes
from flylab.emulator.state import EXEC, SINK, VCC

Array = np.ndarray[Any, Any]
# Lines that a text of changes has at most.
SHOWN = 6


@dataclass(frozen=True)
class State:
    """What can be seen of a workgroup at a time: registers of one wave, LDS, arrays by name."""

    time: int
    writes: Writes
    vectors: Array
    scalars: Array
    lds: Array
    memory: Mapping[str, Array]


@dataclass(frozen=True)
class Change:
    """One register, span of LDS or array that differs.

    `at` are the lanes of a vector register, the bytes of LDS, or the indices of an array's elements (a tuple each);
    empty for a scalar register. `before` and `after` are the values there, in the same order.
    """

    name: str
    at: tuple[Any, ...]
    before: Array
    after: Array

    def __str__(self) -> str:
        values = f"{_value(self.before[0])} -> {_value(self.after[0])}"
        if not self.at:
            return f"{self.name}: {values}"
        where = _runs(self.at) if isinstance(self.at[0], int) else _few(self.at)
        first = " at the first" if len(self.at) > 1 else ""
        return f"{self.name}[{where}]: {values}{first}"


class Changes(tuple[Change, ...]):
    """All that differs between two times, as text one line each."""

    def __str__(self) -> str:
        lines = [str(change) for change in self[:SHOWN]]
        return "\n".join([*lines, *([f"and {len(self) - SHOWN} more"] if len(self) > SHOWN else [])]) or "nothing"

    __repr__ = __str__


def difference(one: State, other: State, names: Names) -> Changes:
    """What is different in the later of two states."""
    found = [*_vectors(one.vectors, other.vectors, names), *_scalars(one.scalars, other.scalars)]
    if one.writes != other.writes:
        bytes_ = np.flatnonzero(one.lds != other.lds)
        if len(bytes_):
            found.append(Change("LDS", tuple(bytes_.tolist()), one.lds[bytes_], other.lds[bytes_]))
        for name, before in one.memory.items():
            found += _elements(name, before, other.memory[name])
    return Changes(found)


def _vectors(before: Array, after: Array, names: Names) -> Iterator[Change]:
    differs = before != after
    for row in np.flatnonzero(differs.any(axis=1)).tolist():
        lanes = np.flatnonzero(differs[row])
        yield Change(names.row_name(row), tuple(lanes.tolist()), before[row, lanes], after[row, lanes])


def _scalars(before: Array, after: Array) -> Iterator[Change]:
    pairs = {VCC: "vcc", EXEC: "exec"}
    done: set[int] = {SINK}
    for number in np.flatnonzero(before != after).tolist():
        first = next((pair for pair in pairs if number in (pair, pair + 1)), None)
        if number in done or first in done:
            continue
        done.add(number if first is None else first)
        if first is None:
            yield Change(register_name("s", number), (), before[[number]], after[[number]])
        else:
            yield Change(pairs[first], (), *(s[first:first + 2].copy().view("u8") for s in (before, after)))


def _elements(name: str, before: Array, after: Array) -> Iterator[Change]:
    size = before.dtype.itemsize
    raw = [np.ascontiguousarray(a).reshape(-1).view("u1").reshape(-1, size) for a in (before, after)]
    places = np.flatnonzero((raw[0] != raw[1]).any(axis=1))
    if len(places):
        found = np.stack(np.unravel_index(places, before.shape), axis=1) if before.ndim else np.zeros((1, 0), int)
        yield Change(name, tuple(map(tuple, found.tolist())), before.reshape(-1)[places], after.reshape(-1)[places])


def _value(value: Any) -> str:
    if value.dtype == np.uint8:
        return f"{int(value):#04x}"
    if value.dtype.kind != "u":
        return str(value)
    small = int(value) < 1 << 16 or value.dtype.itemsize != 4
    number = float(value.view(np.float32)) if not small else 0.0
    return f"{int(value):#x}" + (f" ({number:g})" if 1e-9 < abs(number) < 1e9 else "")


def _runs(numbers: tuple[int, ...]) -> str:
    """Rising numbers in short.

    >>> _runs((0, 1, 2, 5))
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{low}-{high}" if high > low else str(low) for low, high in runs]
    return ", ".join(texts[:SHOWN]) + (" ..." if len(texts) > SHOWN else "")


def _few(places: tuple[tuple[int, ...], ...]) -> str:
    texts = [", ".join(map(str, place)) if len(place) == 1 else str(place) for place in places[:2]]
    return " and ".join(texts) + (f" and {len(places) - 2} more" if len(places) > 2 else "")
