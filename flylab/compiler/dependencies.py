"""What a compilation read besides its arguments: globals, closures, attributes of modules, classes and objects.

A compilation is used again only while each of them means the same (`flylab.compiler.meaning` says how each kind of
value counts, and what does not). Attributes count where a traced function, or a Python function that one reaches by
name, mentions them. So a kernel or helper that was defined anew in its cell, or a constant set anew in its module,
compiles anew.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flylab.compiler.kernel import TracedFunction
from flylab.compiler.meaning import (
    CONTENTS,
    MAX_DEPTH,
    MISSING,
    attribute,
    contents,
    differences,
    is_watched,
    meaning,
    operations,
)
from flylab.compiler.users import PLAIN, is_library


@dataclass(frozen=True)
class Dependency:
    """One name that was read: where it lives, which attributes of it count, and what it meant."""

    name: str
    read: Callable[[], Any]
    names: set[str]
    was: Any

    @classmethod
    def of(cls, name: str, read: Callable[[], Any], names: set[str]) -> Dependency:
        """The name with what it means now."""
        return cls(name, read, names, meaning(read(), names))

    def is_same(self) -> bool:
        """True while it means the same."""
        return bool(self.was == meaning(self.read(), self.names))

    def changes(self) -> list[str]:
        """The names under this one, such as `config.tile`, that mean something else now."""
        return list(differences(self.name, self.was, meaning(self.read(), self.names)))


class Dependencies:
    """All of them, for one compilation: what it read, and the constants among its arguments."""

    def __init__(self, items: list[Dependency], constants: list[Dependency]):
        self.items = items
        self.constants = constants

    @classmethod
    def of(cls, functions: list[TracedFunction], constants: dict[str, Any]) -> Dependencies:
        """What these functions, and the plain Python functions that they name, read; `constants` are arguments."""
        roots: list[Any] = [f.function for f in functions]
        names: set[str] = set()
        while True:
            found = _reached(roots, constants, names)
            more = names.union(*(_names_in(f.__code__) for f in found))
            if more == names:
                break
            names = more
        reads = {(name, id(space)): read for f in found for name, space, read in _reads(f)}
        items = [Dependency.of(name, read, names) for (name, _), read in reads.items()]
        return cls(items, [Dependency.of(n, functools.partial(_given, v), names) for n, v in constants.items()])

    def fit(self, constants: dict[str, Any]) -> bool:
        """True where these constants mean what those of the compilation did, and all that it read is the same."""
        return all(c.was == meaning(constants[c.name], c.names) for c in self.constants) and all(
            item.is_same() for item in self.items
        )

    def changed(self) -> list[str]:
        """The names that mean something else now."""
        return [name for item in (*self.items, *self.constants) for name in item.changes()]


def _given(value: Any) -> Any:
    return value


def _reached(roots: list[Any], constants: dict[str, Any], names: set[str]) -> list[types.FunctionType]:
    """The roots and every function of the user's that they can reach by name."""
    found: dict[int, types.FunctionType] = {}
    todo = [*roots, *(f for v in constants.values() for f in _functions(v, names))]
    while todo:
        function = todo.pop()
        if id(function) not in found and not is_library(function.__code__.co_filename):
            found[id(function)] = function
            todo += [inner for _, _, read in _reads(function) for inner in _functions(read(), names)]
    return list(found.values())


def _functions(value: Any, names: set[str]) -> Iterator[types.FunctionType]:
    """The functions in a value: itself, its items, its special methods, its attributes called one of `names`."""
    todo, seen = [(value, 0)], set()
    while todo:
        value, depth = todo.pop()
        if type(value) in PLAIN or (id(value), depth) in seen:
            continue
        seen.add((id(value), depth))
        if isinstance(value, TracedFunction):
            value = value.function
        if isinstance(value, types.FunctionType):
            yield value
        inside = contents(value) or ()
        if not PLAIN.issuperset(map(type, inside)):
            todo += [(v, depth) for v in inside]
        if depth < MAX_DEPTH and type(value) not in CONTENTS and is_watched(value):
            todo += [(attribute(value, n), depth + 1) for n in (*names, *operations(value), "__wrapped__")]


def _reads(function: types.FunctionType) -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    """The names that a function reads: the name, where it lives (a cell, or a dict of globals), and how to read it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        yield name, cell, functools.partial(_cell_contents, cell)
    space = function.__globals__
    for name in _names_in(function.__code__):
        if name in space:
            yield name, space, functools.partial(space.get, name, MISSING)
    if function.__defaults__ or function.__kwdefaults__:
        name = f"defaults of {function.__name__}"
        yield name, function, functools.partial(_defaults, function)


def _defaults(function: types.FunctionType) -> Any:
    return function.__defaults__, function.__kwdefaults__


def _cell_contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


@functools.lru_cache(maxsize=1024)
def _names_in(code: types.CodeType) -> frozenset[str]:
    """The global names and attributes of a code object and of those nested in it."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return frozenset(code.co_names).union(*map(_names_in, inner))
