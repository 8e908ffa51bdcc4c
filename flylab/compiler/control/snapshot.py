"""What a piece of Python can change while it is traced: the variables of its frame, and the containers they lead to.

An arm or a body is traced once, or twice, for all threads; whatever it changed is put back, and then merged or carried.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flylab.compiler.control.values import attributes_of, same
from flylab.compiler.users import PLAIN
from flylab.errors import TraceError

HIDDEN = "__flylab"


class Unbound:
    """The value of a variable that has none: reading it is an error that says why."""

    def __init__(self, name: str, reason: str, hint: str):
        self.name, self.reason, self.hint = name, reason, hint

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
        return _contents(self.object)

    def hold(self, contents: Any) -> None:
        """Make it hold this."""
        _refill(self.object, contents)


class Heap:
    """The containers that a frame's variables lead to, with their contents.

    The variables of functions around a function count as containers too, since calling it may change them; those that
    a site assigns itself are among its `names`, and left out.
    """

    def __init__(self, frame: FrameType, names: tuple[str, ...] = ()):
        self.containers: dict[int, Container] = {}
        own = set(names).intersection(frame.f_code.co_cellvars + frame.f_code.co_freevars)
        todo: list[tuple[Any, str]] = [(v, n) for n, v in frame.f_locals.items() if not n.startswith(HIDDEN)]
        shared = frame.f_globals
        todo += [(shared[n], n) for n in frame.f_code.co_names if n in shared]
        seen: set[int] = set()
        while todo:
            value, path = todo.pop()
            if type(value) in PLAIN or id(value) in seen:
                continue
            seen.add(id(value))
            held = _contents(value)
            if isinstance(value, types.CellType) and path in own and _is_of(value, path, frame):
                continue
            if held is not None:
                self.containers[id(value)] = Container(value, path, held)
            todo += _inside(value, held, path)

    def changes(self) -> dict[int, Any]:
        """The containers that hold something else now, with what they hold."""
        found = {}
        for key, container in self.containers.items():
            now = container.now()
            if not _same_contents(container.held, now):
                found[key] = now
        return found

    def restore(self, changed: dict[int, Any]) -> None:
        """Make these containers hold what they held."""
        for key in changed:
            container = self.containers[key]
            container.hold(container.held)


def _contents(value: Any) -> Any:
    """A copy of what a container holds; None for anything that is none."""
    kind = type(value)
    if kind in PLAIN:
        return None
    if isinstance(value, (list, dict)):
        return list(value) if isinstance(value, list) else dict(value)
    if isinstance(value, (deque, set)):
        return value.copy()
    if isinstance(value, types.CellType):
        try:
            return {"": value.cell_contents}
        except ValueError:
            return {}
    return attributes_of(value)


def _refill(value: Any, contents: Any) -> None:
    if isinstance(value, list):
        value[:] = contents
    elif isinstance(value, deque):
        value.clear()
        value.extend(contents)
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(contents)
    elif isinstance(value, types.CellType):
        if contents:
            value.cell_contents = contents[""]
        else:
            del value.cell_contents
    else:
        store = vars(value)
        store.clear()
        store.update(contents)


def _same_contents(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, set):
        return bool(a == b)
    return len(a) == len(b) and all(map(same, a, b))


def _inside(value: Any, held: Any, path: str) -> Iterator[tuple[Any, str]]:
    """What a value leads to, with how an error calls it."""
    if isinstance(value, (list, tuple, deque)):
        if not PLAIN.issuperset(map(type, value)):
            yield from ((v, f"{path}[{i}]") for i, v in enumerate(value))
    elif isinstance(value, dict):
        yield from ((v, f"{path}[{k!r}]") for k, v in value.items())
    elif isinstance(value, types.CellType):
        yield from ((v, path) for v in held.values())
    elif isinstance(held, dict):
        yield from ((v, f"{path}.{n}") for n, v in held.items())
    elif isinstance(value, types.FunctionType):
        names = value.__code__.co_freevars
        for name, cell in zip(names, value.__closure__ or (), strict=True):
            if not name.startswith(HIDDEN):
                yield cell, name
        yield from ((v, name) for name, v in zip(("default",) * 99, value.__defaults__ or (), strict=False))
    elif isinstance(value, types.MethodType):
        yield value.__self__, f"{path}.__self__"
    elif isinstance(value, functools.partial):
        yield from ((v, path) for v in (value.func, value.args, value.keywords))


def _is_of(cell: types.CellType, name: str, frame: FrameType) -> bool:
    """Whether a cell is that of a frame's own variable."""
    held = _contents(cell)
    mark = object()
    cell.cell_contents = mark
    found = frame.f_locals.get(name) is mark
    _refill(cell, held)
    return found
