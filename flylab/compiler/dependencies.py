"""What a compilation read besides its arguments: globals, closures, attributes of modules, classes and objects.

A compilation is used again only while each of them means the same: numbers, strings and containers by value, anything
else by identity. Attributes count where a traced function, or a plain Python function that one names, mentions them. So
a kernel or helper that was defined anew in its cell, or a constant set anew in its module, compiles anew. Contents of
arrays are not watched.
"""

from __future__ import annotations

import functools
import sysconfig
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flylab.compiler.kernel import Method, TracedFunction
from flylab.places import is_own

MISSING = object()
MAX_DEPTH = 4
"""How deep attributes of attributes are followed."""


@dataclass(frozen=True, eq=False)
class Identity:
    """An object that counts by identity, with those of its attributes that are read."""

    object: Any
    attributes: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.object is other.object and self.attributes == other.attributes

    __hash__ = object.__hash__


def exact(value: Any) -> Any:
    """A plain value as something that equals only the very same: `1`, `1.0` and `True` differ, and so do 0.0 and -0.0.

    >>> exact(1) == exact(1), exact(1) == exact(True), exact((0.0,)) == exact((-0.0,))
    (True, False, False)
    """
    if isinstance(value, tuple):
        return (type(value), *map(exact, value))
    return type(value), value.hex() if type(value) is float else value


def meaning(value: Any, names: set[str], depth: int = 0) -> Any:
    """What a value means now, as something to compare with later; `names` are the attributes that are read anywhere."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
        return exact(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        items = [meaning(v, names, depth + 1) if depth < MAX_DEPTH else Identity(v, {}) for v in value]
        return type(value), items
    if isinstance(value, dict):
        pairs = [part for pair in value.items() for part in pair]
        return dict, meaning(pairs, names, depth)
    if isinstance(value, (types.MethodType, Method)):
        return [Identity(part, {}) for part in _parts(value)]
    if depth >= MAX_DEPTH or not _is_watched(value):
        return Identity(value, {})
    found = ((n, _attribute(value, n)) for n in names)
    return Identity(value, {n: meaning(v, names, depth + 1) for n, v in found if v is not MISSING})


def _parts(method: Any) -> tuple[Any, Any]:
    if isinstance(method, Method):
        return method.traced, method.instance
    return method.__func__, method.__self__


def _is_watched(value: Any) -> bool:
    """Whether a value's attributes can change what is compiled: not those of functions, of flylab and of libraries."""
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, TracedFunction)):
        return False
    if isinstance(value, types.ModuleType):
        if _is_library(getattr(value, "__file__", None) or ""):
            return False
        module = value.__name__
    else:
        module = str((value if isinstance(value, type) else type(value)).__module__)
    return module == "flylab.kernels" or module.startswith("flylab.kernels.") or module.split(".")[0] != "flylab"


def _attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored, without running any code of the user's (a property is the property itself)."""
    own = getattr(value, "__dict__", {})
    if name in own:
        return own[name]
    if isinstance(value, types.ModuleType):
        return MISSING
    for cls in value.__mro__ if isinstance(value, type) else type(value).__mro__:
        if name in vars(cls):
            found = vars(cls)[name]
            return getattr(value, name, MISSING) if isinstance(found, types.MemberDescriptorType) else found
    return MISSING


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

    def changes(self) -> list[str]:
        """The names under this one, such as `config.tile`, that mean something else now."""
        return list(_differences(self.name, self.was, meaning(self.read(), self.names)))


def _differences(name: str, was: Any, now: Any) -> Iterator[str]:
    if was == now:
        return
    if not (isinstance(was, Identity) and isinstance(now, Identity) and was.object is now.object):
        yield name
        return
    for each in {**was.attributes, **now.attributes}:
        yield from _differences(f"{name}.{each}", was.attributes.get(each), now.attributes.get(each))


class Dependencies:
    """All of them, for one compilation."""

    def __init__(self, items: list[Dependency]):
        self.items = items

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
        items += [Dependency.of(n, functools.partial(_given, v), names) for n, v in constants.items()]
        return cls(items)

    def unchanged(self) -> bool:
        """True while all are the same."""
        return all(item.was == meaning(item.read(), item.names) for item in self.items)

    def changed(self) -> list[str]:
        """The names that mean something else now."""
        return [name for item in self.items for name in item.changes()]


def _given(value: Any) -> Any:
    return value


def _reached(roots: list[Any], constants: dict[str, Any], names: set[str]) -> list[types.FunctionType]:
    """The roots and every function of the user's that they can reach by name."""
    found: dict[int, types.FunctionType] = {}
    todo = [*roots, *(f for v in constants.values() for f in _functions(v, names))]
    while todo:
        function = todo.pop()
        if id(function) not in found and not _is_library(function.__code__.co_filename):
            found[id(function)] = function
            todo += [inner for _, _, read in _reads(function) for inner in _functions(read(), names)]
    return list(found.values())


def _functions(value: Any, names: set[str], depth: int = 0) -> Iterator[types.FunctionType]:
    """The functions in a value: itself, its items, its attributes called one of `names`."""
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, TracedFunction):
        yield from _functions(value.function, names)
    elif depth < MAX_DEPTH:
        for inner in _inside(value, names):
            yield from _functions(inner, names, depth + 1)


def _inside(value: Any, names: set[str]) -> list[Any]:
    if isinstance(value, (types.MethodType, Method)):
        return list(_parts(value))
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if value is None or isinstance(value, (bool, int, float, str, bytes)) or not _is_watched(value):
        return []
    return [_attribute(value, n) for n in names]


@functools.cache
def _is_library(file: str) -> bool:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return is_own(file) or file.startswith(("<frozen", *(folder + "/" for folder in folders)))


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
