"""What a compilation read besides its arguments: globals and closures of the functions that were traced.

A compilation is used again only while every one of them is still the same object (or, for numbers, strings and tuples
of them, has the same value). So a kernel or helper that was defined anew in its cell is compiled anew.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.compiler.kernel import TracedFunction
from flylab.expr.location import is_own

VALUES = (bool, int, float, str, bytes, tuple, type(None))
MISSING = object()


@dataclass(frozen=True)
class Dependency:
    """One name that was read: where it lives, and what it was."""

    name: str
    read: Callable[[], Any]
    was: Any

    def unchanged(self) -> bool:
        """True while the name still means the same."""
        now = self.read()
        return now is self.was or (type(now) is type(self.was) and isinstance(now, VALUES) and now == self.was)


class Dependencies:
    """All of them, for one compilation."""

    def __init__(self, items: list[Dependency]):
        self.items = items

    @classmethod
    def of(cls, *functions: TracedFunction) -> Dependencies:
        """What these functions, and the plain Python functions that they name, read."""
        items: list[Dependency] = []
        seen: set[int] = set()
        todo: list[Any] = [f.function for f in functions]
        while todo:
            function = todo.pop()
            if id(function) in seen:
                continue
            seen.add(id(function))
            for item in _names(function):
                items.append(item)
                inner = item.was.function if isinstance(item.was, TracedFunction) else item.was
                if isinstance(inner, types.FunctionType) and not is_own(inner.__code__.co_filename):
                    todo.append(inner)
        return cls(items)

    def unchanged(self) -> bool:
        """True while all are the same."""
        return all(item.unchanged() for item in self.items)

    def changed(self) -> list[str]:
        """The names that mean something else now."""
        return [item.name for item in self.items if not item.unchanged()]


def _names(function: types.FunctionType) -> list[Dependency]:
    found = [
        _of_cell(name, cell)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    ]
    space = function.__globals__
    for name in sorted(_global_names(function.__code__)):
        if name in space:
            found.append(_of_global(name, space))
    for default in function.__defaults__ or ():
        if isinstance(default, types.FunctionType):
            found.append(Dependency("a default argument", lambda value=default: value, default))  # type: ignore[misc]
    return found


def _of_cell(name: str, cell: Any) -> Dependency:
    def read() -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING

    return Dependency(name, read, read())


def _of_global(name: str, space: dict[str, Any]) -> Dependency:
    def read() -> Any:
        return space.get(name, MISSING)

    return Dependency(name, read, read())


def _global_names(code: types.CodeType) -> set[str]:
    """The names of a code object (and of functions nested in it) that may be globals."""
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _global_names(const)
    return names
