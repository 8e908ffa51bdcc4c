"""A function compiled alone as if where it stands, in its class and with its free names; and codes compared."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterable, Iterator
from typing import Any

from flylab.compiler.cells import FUTURE
from flylab.errors import TraceError


def module_around(tree: ast.FunctionDef, original: types.FunctionType, more: Iterable[str] = ()) -> ast.Module:
    """A module in which the function has the free names of the original, and `more` of them.

    They are the parameters of a function around it.
    """
    free = original.__code__.co_freevars
    factory: Any = ast.parse(f"def __flylab_factory__({', '.join(dict.fromkeys((*more, *free)))}): pass").body[0]
    inside = _in_its_class(tree, original.__qualname__)
    # A name of its own (or of its class) that it finds in its globals must not become a local of the factory.
    shared = [] if inside.name in free else [ast.Global([inside.name], lineno=1, col_offset=0)]
    factory.body = [*shared, inside]
    return ast.Module([factory], [])


def imports_in(lines: list[str]) -> list[ast.stmt]:
    """The imports at the left edge of a file: Python calls `module.f()` differently where the file imports `module`."""
    found: list[str] = []
    for number, line in enumerate(lines):
        if line.startswith(("import ", "from ")):
            end = number + 1
            while line.count("(") > line.count(")") and end < len(lines):
                line, end = line + lines[end], end + 1
            found.append(line)
    try:
        return ast.parse("".join(found)).body
    except SyntaxError:  # an import that goes on after a backslash, or words of a text
        return []


def code_of(module: ast.Module, name: str, original: types.FunctionType, file: str) -> types.CodeType:
    """The code of the function of that name in a module made by `module_around`."""
    for code in codes_in(module, original, file):
        if code.co_name == name and code.co_flags & inspect.CO_OPTIMIZED:  # a class's code is not optimised
            return code
    raise TraceError(f"'{name}' was lost in rewriting")


def codes_in(text: str | ast.Module, original: types.FunctionType, file: str) -> Iterator[types.CodeType]:
    """The codes of all functions and classes in a module's text, outer ones first."""
    level: list[types.CodeType] = [compile(text, file, "exec", original.__code__.co_flags & FUTURE, dont_inherit=True)]
    while level:
        level = [c for code in level for c in code.co_consts if isinstance(c, types.CodeType)]
        yield from level


def _in_its_class(tree: ast.FunctionDef, qualified: str) -> ast.FunctionDef | ast.ClassDef:
    """The function inside a class named as the one it was written in, which is what `self.__name` depends on."""
    parts = qualified.split(".")
    classes = [a for a, b in zip(parts, parts[1:], strict=False) if "<locals>" not in (a, b)]
    if not classes:
        return tree
    inside: ast.ClassDef = ast.parse(f"class {classes[-1]}: pass").body[0]  # type: ignore[assignment]
    inside.body = [tree]
    return inside


def is_same_code(one: types.CodeType, two: types.CodeType) -> bool:
    """Whether two codes do the same, wherever they stand: instructions, names, constants, and the codes nested in them.

    >>> def_of = lambda text: compile(text, "", "exec").co_consts[0]
    >>> one = def_of("def f(x): return x + 1")
    >>> is_same_code(one, def_of("# A comment.\\ndef f(x): return x + 1"))
    True
    >>> is_same_code(one, def_of("def f(x): return x + 1.0"))
    False
    """
    return _told(one) == _told(two)


def _told(code: types.CodeType) -> tuple[Any, ...]:
    constants = [_told(c) if isinstance(c, types.CodeType) else _exact(c) for c in code.co_consts]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    kinds = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE)
    names = code.co_name, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
    return code.co_code, code.co_exceptiontable, constants, counts, kinds, names


def _exact(constant: Any) -> Any:
    """A constant as something that equals only the very same; the order of a set's items is not kept by a .pyc."""
    if isinstance(constant, (tuple, frozenset)):
        inside = map(_exact, constant)
        return type(constant), list(inside) if isinstance(constant, tuple) else sorted(inside)
    return repr(type(constant)), repr(constant)
