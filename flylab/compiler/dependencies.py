"""What a compilation read besides its arguments: globals, closures, attributes of modules, classes and objects.

A compilation is used again only while each of them means the same (`flylab.compiler.meaning` says how each kind of
value counts, and what does not). Attributes count where a traced function, or a Python function that one reaches by
name, mentions them. So a kernel or helper that was defined anew in its cell, or a constant set anew in its module,
compiles anew.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flylab.compiler.kernel import TracedFunction
from flylab.compiler.meaning import (
    CONTENTS,
    MAX_DEPTH,
    attribute,
    attributes,
    contents,
    differences,
    is_watched,
    meaning,
)
from flylab.compiler.reads import Given, Place, cells, names_in, places
from flylab.compiler.users import PLAIN, is_library
from flylab.places import is_own


@dataclass(frozen=True)
class Dependency:
    """One name that was read: where it lives, which attributes of it count, and what it meant."""

    name: str
    read: Place
    names: set[str]
    was: Any

    @classmethod
    def of(cls, place: Place, names: set[str]) -> Dependency:
        """The place with what it means now."""
        return cls(place.name, place, names, meaning(place(), names))

    def is_same(self) -> bool:
        """True while it means the same."""
        return bool(self.was == meaning(self.read(), self.names))

    def changes(self) -> list[str]:
        """The names under this one, such as `config.tile`, that mean something else now."""
        return [name for name, _, _ in differences(self.name, self.was, meaning(self.read(), self.names))]


class Dependencies:
    """All of them, for one compilation: what it read, and the constants among its arguments."""

    def __init__(self, items: list[Dependency], constants: list[Dependency], names: set[str]):
        self.items = items
        self.constants = constants
        self.names = names
        """The attributes that are read anywhere."""

    @classmethod
    def of(cls, functions: list[TracedFunction], constants: dict[str, Any]) -> Dependencies:
        """What these functions, and the plain Python functions that they name, read; `constants` are arguments."""
        roots: list[Any] = [f.function for f in functions]
        names: set[str] = set()
        while True:
            found = _reached(roots, constants, names)
            more = names.union(*(names_in(f.__code__) for f in found if not is_library(f.__code__.co_filename)))
            if more == names:
                break
            names = more
        read = {place.key: place for f in found for place in _places(f)}
        items = [Dependency.of(place, names) for place in read.values()]
        return cls(items, [Dependency.of(Given(n, v), names) for n, v in constants.items()], names)

    @property
    def given(self) -> dict[str, Any]:
        """The constants of the compilation by their names."""
        return {c.name: c.read() for c in self.constants}

    def fit(self, constants: dict[str, Any]) -> bool:
        """True where these constants mean what those of the compilation did, and all that it read is the same."""
        return all(c.was == meaning(constants[c.name], c.names) for c in self.constants) and all(
            item.is_same() for item in self.items
        )

    def changed(self) -> list[str]:
        """The names that mean something else now."""
        return [name for item in (*self.items, *self.constants) for name in item.changes()]


def _reached(roots: list[Any], constants: dict[str, Any], names: set[str]) -> list[types.FunctionType]:
    """The roots and every function of the user's that they can reach by name, some through functions of libraries."""
    found: dict[int, types.FunctionType] = {}
    todo = [*roots, *(f for v in constants.values() for f in _functions(v, names))]
    while todo:
        function = todo.pop()
        if id(function) not in found:
            found[id(function)] = function
            todo += [inner for place in _places(function) for inner in _functions(place(), names)]
    return list(found.values())


def _places(function: types.FunctionType) -> Iterator[Place]:
    """Where a function reads from: one of a library's only from what was put into it, as `functools.singledispatch`
    keeps the functions that were registered."""
    file = function.__code__.co_filename
    if not is_library(file):
        yield from places(function)
    elif not is_own(file):
        yield from cells(function)


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
            todo += [(v, depth + 1) for _, v in attributes(value, names)]
            todo.append((attribute(value, "__wrapped__"), depth + 1))
