"""The places that a function reads from besides its arguments: globals, builtins, closure cells, defaults.

Each place tells what stands in it now (called, it gives that), which of two are one place (`key`), and the tests by
identity that hold while the same objects stand in it (`tests`), from which `flylab.compiler.guards` writes its guards.
"""

from __future__ import annotations

import dis
import functools
import opcode
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flylab.compiler.meaning import MISSING

Test = tuple[str, tuple[Any, ...], Any]
"""An expression with `{0}`, `{1}` for its objects, the objects, and the value that it must be; NOTHING for a plain yes
or no."""
NOTHING = object()

_GLOBAL = {opcode.opmap[name] for name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
           if name in opcode.opmap}
"""The instructions that look a name up in the globals."""
_SHIFT = {"LOAD_GLOBAL": 1, "LOAD_ATTR": int(sys.version_info >= (3, 12)), "LOAD_SUPER_ATTR": 2}
_NAMED = {op: _SHIFT.get(opcode.opname[op], 0) for op in opcode.hasname}
"""The instructions with a name -> how far its number is shifted in their argument."""


class Unguarded(Exception):
    """What was read cannot be told to be the same by identity alone."""


@dataclass(frozen=True, eq=False)
class Global:
    """A name as a function looks it up: in its globals, then in the builtins."""

    name: str
    space: dict[str, Any]
    builtins: dict[str, Any]

    @property
    def key(self) -> Any:
        """Two functions of one module read one place."""
        return self.name, id(self.space)

    def __call__(self) -> Any:
        found = self.space.get(self.name, MISSING)
        return self.builtins.get(self.name, MISSING) if found is MISSING else found

    def tests(self) -> Iterator[Test]:
        """A name of the globals is still there; one of the builtins is still not hidden by one of the globals."""
        if type(self.space) is not dict or type(self.builtins) is not dict:
            raise Unguarded
        where = self.space
        if self.name not in where:
            yield f"{self.name!r} not in {{0}}", (where,), NOTHING
            where = self.builtins
        if self.name in where:
            yield f"{{0}}[{self.name!r}]", (where,), where[self.name]
        else:
            yield f"{self.name!r} not in {{0}}", (where,), NOTHING


@dataclass(frozen=True, eq=False)
class Cell:
    """A variable of a function around, in its cell."""

    name: str
    cell: types.CellType

    @property
    def key(self) -> Any:
        """Functions that were made in one call share its cells."""
        return self.name, id(self.cell)

    def __call__(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def tests(self) -> Iterator[Test]:
        """It holds the same."""
        found = self()
        yield ("{0}()", (self,), MISSING) if found is MISSING else ("{0}.cell_contents", (self.cell,), found)


@dataclass(frozen=True, eq=False)
class Defaults:
    """The default arguments of a function."""

    function: types.FunctionType

    @property
    def name(self) -> str:
        """What a report calls them."""
        return f"defaults of {self.function.__name__}"

    @property
    def key(self) -> Any:
        """Each function has its own."""
        return self.name, id(self.function)

    def __call__(self) -> Any:
        return self.function.__defaults__, self.function.__kwdefaults__

    def tests(self) -> Iterator[Test]:
        """Both are the same objects; what is in them is looked at as in any container."""
        yield "{0}.__defaults__", (self.function,), self.function.__defaults__
        yield "{0}.__kwdefaults__", (self.function,), self.function.__kwdefaults__


@dataclass(frozen=True, eq=False)
class Imported:
    """A module that a function imports when it runs, by its full name."""

    name: str

    @property
    def key(self) -> Any:
        """All see one table of modules."""
        return self.name, id(sys.modules)

    def __call__(self) -> Any:
        return sys.modules.get(self.name, MISSING)

    def tests(self) -> Iterator[Test]:
        """It is still the same module."""
        if self.name in sys.modules:
            yield f"{{0}}[{self.name!r}]", (sys.modules,), sys.modules[self.name]
        else:
            yield f"{self.name!r} not in {{0}}", (sys.modules,), NOTHING


@dataclass(frozen=True, eq=False)
class Given:
    """A constant among the arguments."""

    name: str
    value: Any

    @property
    def key(self) -> Any:
        """Arguments have names of their own."""
        return self.name, id(self.value)

    def __call__(self) -> Any:
        return self.value

    def tests(self) -> Iterator[Test]:
        """None: which object is given, the caller compares."""
        return iter(())


Place = Global | Cell | Defaults | Imported | Given


def cells(function: types.FunctionType) -> Iterator[Cell]:
    """The variables of functions around that a function has."""
    return map(Cell, function.__code__.co_freevars, function.__closure__ or ())


def places(function: types.FunctionType) -> Iterator[Place]:
    """Where a function, and those nested in it, read from."""
    yield from cells(function)
    package = str(function.__globals__.get("__package__") or "")
    for level, name in imports_in(function.__code__):
        yield from map(Imported, _modules(level, name, package))
    made: Any = function  # whether mypy knows of its __builtins__ depends on what it has in its cache
    for name in sorted(_globals_in(function.__code__)):
        yield Global(name, made.__globals__, made.__builtins__)
    yield Defaults(function)


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects nested directly in one."""
    return (c for c in code.co_consts if isinstance(c, types.CodeType))


@functools.lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> frozenset[str]:
    """The global names and attributes of a code object and of those nested in it, also those that stand in texts."""
    found = frozenset(code.co_names).union(*map(names_in, nested(code)))
    if found.isdisjoint(BY_TEXT):
        return found
    return found.union(text for text in code.co_consts if isinstance(text, str) and text.isidentifier())


BY_TEXT = ("getattr", "hasattr", "setattr", "vars", "__dict__", "attrgetter", "methodcaller")
"""What takes the name of an attribute as a text."""


@functools.lru_cache(maxsize=1024)
def imports_in(code: types.CodeType) -> tuple[tuple[int, str], ...]:
    """What a code object, and those nested in it, import: how many packages up, and the name from there."""
    found: list[tuple[int, str]] = []
    if opcode.opmap["IMPORT_NAME"] in code.co_code[::2]:
        steps = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
        for above, _, each in zip(steps, steps[1:], steps[2:], strict=False):
            if each.opname == "IMPORT_NAME":
                found.append((above.argval, each.argval))
    return (*found, *(row for inner in nested(code) for row in imports_in(inner)))


def _modules(level: int, name: str, package: str) -> Iterator[str]:
    """The full names of the modules that one import reads: of `a.b` also `a`."""
    above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
    parts = [part for part in (*above, *name.split(".")) if part]
    return (".".join(parts[: end + 1]) for end in range(max(0, len(above) - 1), len(parts)))


@functools.lru_cache(maxsize=1024)
def _globals_in(code: types.CodeType) -> frozenset[str]:
    """The names that a code object, and those nested in it, look up in the globals.

    Python leaves out what stands under `if False`, but not its names: those that no instruction has count as well.
    """
    found: set[str] = set()
    others: set[str] = set()
    wide = 0
    for op, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = wide << 8 | low
        wide = argument if op == opcode.EXTENDED_ARG else 0
        if op in _NAMED:
            (found if op in _GLOBAL else others).add(code.co_names[argument >> _NAMED[op]])
    return frozenset(found.union(code.co_names) - (others - found)).union(*map(_globals_in, nested(code)))
