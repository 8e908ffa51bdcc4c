"""What a piece of Python can change while it is traced: the variables of its frame, and the containers they lead to.

An arm or a body is traced once, or twice, for all threads; whatever it changed is put back, and then merged or carried.
"""

from __future__ import annotations

import types
from collections.abc import Collection
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flylab.compiler.control.containers import (
    HIDDEN,
    Fixed,
    Globals,
    contents_of,
    inside,
    names_of,
    rebound_by,
    refill,
    refuse_change,
    same_contents,
)
from flylab.compiler.users import PLAIN
from flylab.errors import TraceError


class Unbound:
    """The value of a variable that has none: reading it is an error that says why."""

    def __init__(self, name: str, reason: str, hint: str, is_partial: bool = False):
        self.name, self.reason, self.hint = name, reason, hint
        self.is_partial = is_partial
        """Whether it has one on some paths."""

    def error(self) -> UnboundVariable:
        """What reading it raises."""
        return UnboundVariable(f"'{self.name}' {self.reason}", hint=self.hint)


class UnboundVariable(TraceError, NameError):
    """A variable that is read, and has no value on every path that leads there."""


def variables(frame: FrameType, names: tuple[str, ...]) -> dict[str, Any]:
    """The values of variables in a frame; those with none are left out."""
    local, shared = frame.f_locals, frame.f_globals
    optimised = local is not shared
    found = {n: local[n] for n in names if n in local}
    if optimised:
        declared = frame.f_code.co_varnames + frame.f_code.co_cellvars + frame.f_code.co_freevars
        found.update({n: shared[n] for n in names if n not in found and n in shared and n not in declared})
    return found


@dataclass
class Container:
    """A list, dict or object, and what it held."""

    object: Any
    path: str
    held: Any

    def now(self) -> Any:
        """What it holds now, as `held` does."""
        return contents_of(self.object)

    def hold(self, contents: Any) -> None:
        """Make it hold this."""
        refill(self.object, contents)


class Heap:
    """The containers that a frame's variables lead to, with their contents.

    The variables of functions around a function count as containers too, since calling it may change them; those that
    a site assigns itself are among its `names`, and left out.
    """

    def __init__(self, frame: FrameType, names: tuple[str, ...] = (), mentioned: Collection[str] | None = None):
        """`mentioned` are the names through which alone something can change (None for any of the frame's)."""
        self.containers: dict[int, Container] = {}
        own = set(names).intersection(frame.f_code.co_cellvars + frame.f_code.co_freevars)
        todo: list[tuple[Any, str]] = [
            (v, n) for n, v in frame.f_locals.items()
            if not n.startswith(HIDDEN) and (mentioned is None or n in mentioned)]
        shared = frame.f_globals
        if rebound := rebound_by(frame.f_code) - set(names):
            todo.append((Globals.of(shared, rebound), ""))
        named = names_of(frame.f_code) if mentioned is None else mentioned
        todo += [(shared[n], n) for n in named if n in shared]
        seen: set[int] = set()
        while todo:
            value, path = todo.pop()
            if type(value) in PLAIN or id(value) in seen:
                continue
            seen.add(id(value))
            held = contents_of(value)
            if type(value) is types.CellType and path in own and _is_of(value, path, frame):
                continue
            if held is not None:
                self.containers[id(value)] = Container(value, path, held)
            todo += inside(value, held, path)

    def changes(self) -> dict[int, Any]:
        """The containers that hold something else now, with what they hold."""
        found = {}
        for key, container in self.containers.items():
            now = container.now()
            if not same_contents(container.held, now):
                if isinstance(now, Fixed):
                    refuse_change(container.object, container.path)
                found[key] = now
        return found

    def restore(self, changed: dict[int, Any]) -> None:
        """Make these containers hold what they held."""
        for key in changed:
            container = self.containers[key]
            container.hold(container.held)


def _is_of(cell: types.CellType, name: str, frame: FrameType) -> bool:
    """Whether a cell is that of a frame's own variable."""
    held = contents_of(cell)
    mark = object()
    cell.cell_contents = mark
    found = frame.f_locals.get(name) is mark
    refill(cell, held)
    return found
