"""What Python can change in place: lists, dicts, sets, objects of the user's, variables of functions around a function.

`contents_of` copies what one holds, `refill` puts it back. What can be seen to change but not put back, or not merged
(arrays of bytes, iterators), has a `Fixed` as its contents: a change of it is an error.
"""

from __future__ import annotations

import dis
import functools
import itertools
import operator
import types
import warnings
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from flylab.by_code import ByCode
from flylab.compiler.control.values import attributes_of, same, set_attributes
from flylab.compiler.users import PLAIN, file_of, is_library, is_users
from flylab.errors import NotSupportedError

HIDDEN = ("__flylab", "__if_", "__loop_", "__home", ".")
"""How names begin that hold nothing of the user's."""
_ITERABLE: tuple[Any, ...] = ([], (), {}, {}.items(), {}.values(), set(), "", range(0))
ITERATORS: tuple[type, ...] = (
    *(type(iter(each)) for each in _ITERABLE), enumerate, zip, map, filter, reversed, type(reversed([])))
BINDING = frozenset({dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]})
COMPARED = PLAIN | {range}
MOST = 1 << 16
"""Bytes of an array that are compared."""


@dataclass(frozen=True)
class Fixed:
    """The contents of what must not change on one path only."""

    state: Any


def contents_of(value: Any) -> Any:
    """A copy of what a container holds; None for anything that is none."""
    kind = type(value)
    if kind in PLAIN or kind is tuple:
        return None
    if isinstance(value, (list, dict)):
        return list(value) if isinstance(value, list) else dict(value)
    if isinstance(value, (deque, set)):
        return value.copy()
    if kind is types.CellType:
        try:
            return {"": value.cell_contents}
        except ValueError:
            return {}
    if kind is Globals:
        return {n: value.variables[n] for n in value.names if n in value.variables}
    if isinstance(value, types.FunctionType):
        return None if is_library(value.__code__.co_filename) else dict(vars(value))
    if isinstance(value, type):
        return _of_class(value) if is_users(value) else None
    if isinstance(value, types.ModuleType):
        return _of_class(value) if _is_users_module(value) else None
    attributes = attributes_of(value)
    return _fixed(value) if attributes is None else attributes


def _is_users_module(module: types.ModuleType) -> bool:
    """Whether a module is a file of the user's, or was made by hand."""
    file = file_of(module)
    return not is_library(file) if file else module.__spec__ is None


def _of_class(value: type | types.ModuleType) -> dict[str, Any]:
    """The attributes of a class, or module, that are no part of what it is: no methods, nothing of Python's own."""
    parts = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, types.MemberDescriptorType,
             types.GetSetDescriptorType, property, classmethod, staticmethod)
    return {n: v for n, v in vars(value).items() if not n.startswith("__") and not isinstance(v, parts)}


def _fixed(value: Any) -> Fixed | None:
    if isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        return Fixed(frame and (frame.f_lasti, {n: id(v) for n, v in frame.f_locals.items()}))
    if isinstance(value, ITERATORS):
        return Fixed(_position(value))
    if isinstance(value, itertools.count):
        return Fixed(repr(value))
    if isinstance(value, bytearray) or type(value).__module__ in ("numpy", "array") and hasattr(value, "tobytes"):
        size = getattr(value, "nbytes", None) or len(value)
        return Fixed(bytes(memoryview(value).cast("B") if isinstance(value, bytearray) else value.tobytes())
                     if size <= MOST else None)
    return None


def _position(value: Any) -> Any:
    """Where an iterator stands: what pickle would write, with the iterators inside of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = value.__reduce__()
    parts = made[1] if len(made) > 1 else ()
    inner = [_position(p) if isinstance(p, ITERATORS) else id(p) for p in parts if type(p) not in COMPARED]
    plain = [p for p in (*parts, *made[2:]) if type(p) in COMPARED]
    return inner, plain


def refill(value: Any, contents: Any) -> None:
    """Make a container hold these contents."""
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
    elif isinstance(value, Globals):
        for name in value.names:
            value.variables.pop(name, None)
        value.variables.update(contents)
    else:
        set_attributes(value, contents, contents_of(value).keys() - contents.keys())


def store(container: Any, key: Any, value: Any) -> None:
    """Put a value into a container under a key of `items`."""
    if isinstance(container, types.CellType):
        container.cell_contents = value
    elif isinstance(container, (list, dict, deque)):
        container[key] = value
    elif isinstance(container, Globals):
        container.variables[key] = value
    else:
        set_attributes(container, {key: value})


def items(contents: Any) -> list[tuple[Any, Any]]:
    """What a container holds, with the key of each."""
    return list(contents.items()) if isinstance(contents, dict) else list(enumerate(contents))


def shown(container: Any, key: Any) -> str:
    """How an error calls an item, behind its container's name."""
    if isinstance(container, types.CellType):
        return ""
    if isinstance(container, Globals):
        return str(key)
    return f".{key}" if isinstance(key, str) and not isinstance(container, dict) else f"[{key!r}]"


def refuse_change(value: Any, path: str) -> NoReturn:
    """Raises `NotSupportedError` for a change of what can neither be put back nor merged."""
    raise NotSupportedError(
        f"'{path}' ({type(value).__name__}) changes in control flow that the device decides",
        hint="on the device each thread goes its own way: use a list of numbers, or do it before",
    )


def same_contents(a: Any, b: Any) -> bool:
    """Whether a container holds the same things as before (what `contents_of` gave)."""
    if isinstance(a, dict):
        return list(a) == list(b) and _all_same(a.values(), b.values())
    if isinstance(a, (set, Fixed)) or a is None:
        return bool(a == b)
    return len(a) == len(b) and (all(map(operator.is_, a, b)) or _all_same(a, b))


def _all_same(a: Any, b: Any) -> bool:
    return all(x is y or same(x, y) for x, y in zip(a, b, strict=True))


def inside(value: Any, held: Any, path: str) -> Iterator[tuple[Any, str]]:
    """What a value leads to, with how an error calls it."""
    if isinstance(value, (list, tuple, deque)):
        if not PLAIN.issuperset(map(type, value)):
            yield from ((v, f"{path}[{i}]") for i, v in enumerate(value))
    elif isinstance(value, dict):
        yield from ((v, f"{path}[{k!r}]") for k, v in value.items())
    elif isinstance(value, (types.CellType, Globals)):
        yield from ((v, path or n) for n, v in held.items())
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, (UserDict, UserList)):
        yield value.data, f"{path}.data"
    elif isinstance(value, ChainMap):
        yield value.maps, f"{path}.maps"
    elif isinstance(held, dict):
        yield from ((v, f"{path}.{n}") for n, v in held.items())
        if not isinstance(value, (type, types.ModuleType)):
            yield type(value), type(value).__name__
    elif isinstance(value, types.MethodType):
        yield from ((value.__self__, f"{path}.__self__"), (value.__func__, path))
    elif isinstance(value, functools.partial):
        yield from ((v, path) for v in (value.func, value.args, value.keywords))


def _of_function(function: types.FunctionType) -> Iterator[tuple[Any, str]]:
    """What a function of the user's reads where it was defined: other functions' variables, globals, defaults."""
    if is_library(function.__code__.co_filename):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if not name.startswith(HIDDEN):
            yield cell, name
    shared = function.__globals__
    if rebound := rebound_by(function.__code__):
        yield Globals.of(shared, rebound), ""
    yield from ((shared[n], n) for n in names_of(function.__code__) if n in shared)
    yield from ((v, "a default") for v in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))


@dataclass(frozen=True, eq=False)
class Globals:
    """The global variables that functions of the user's bind, as a container."""

    variables: dict[str, Any]
    names: frozenset[str]
    made: ClassVar[dict[tuple[int, frozenset[str]], Globals]] = {}

    @classmethod
    def of(cls, variables: dict[str, Any], names: frozenset[str]) -> Globals:
        """The same one for the same variables."""
        return cls.made.setdefault((id(variables), names), cls(variables, names))


def rebound_by(code: types.CodeType) -> frozenset[str]:
    """The names that a code, or a function in it, declares `global` and binds."""
    known = _rebound.get(code)
    if known is None:
        inner = (rebound_by(c) for c in code.co_consts if isinstance(c, types.CodeType))
        has_own = not BINDING.isdisjoint(code.co_code[::2])  # taking a code apart is slow
        own = (i.argval for i in dis.get_instructions(code) if i.opcode in BINDING) if has_own else ()
        known = _rebound[code] = frozenset(own).union(*inner)
    return known


_rebound: ByCode[frozenset[str]] = ByCode()
_names: ByCode[frozenset[str]] = ByCode()


def names_of(code: types.CodeType) -> frozenset[str]:
    """The global names that a code, and the functions in it, may read."""
    known = _names.get(code)
    if known is None:
        inner = (names_of(c) for c in code.co_consts if isinstance(c, types.CodeType))
        known = _names[code] = frozenset(code.co_names).union(*inner)
    return known
