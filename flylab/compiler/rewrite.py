"""Rewriting a function's control flow before it is traced.

Tracing runs the function in Python, so a condition or a loop over a value of the device must not reach Python's own
`if` and `for`: each goes through a hook of `flylab.compiler.control`, which decides. So does each call: a function of
the user's that a traced one calls is rewritten too, so that its branches are the device's as well.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from flylab.by_code import ByCode
from flylab.compiler.asking import explained
from flylab.compiler.control.hooks import Hooks
from flylab.compiler.in_place import code_of, module_around
from flylab.compiler.source import Source, read
from flylab.compiler.syntax.exits import HOOK
from flylab.compiler.syntax.hooking import Hooking, Site
from flylab.compiler.syntax.names import fill_locations, inside, mark_comprehensions, name_targets, walk
from flylab.compiler.users import is_library
from flylab.errors import TraceError
from flylab.expr.helpers import REWRITTEN, UNREAD
from flylab.locks import cached_property
from flylab.passes.recording import lines_of
from flylab.places import SourceLine


@dataclass(frozen=True)
class Rewritten:
    """A rewritten function. Its text is only made when someone looks at it."""

    source: Source
    tree: ast.FunctionDef
    sites: list[Site]
    """Its `if`s and loops, by the numbers in its text."""
    first_return: SourceLine | None
    """The line of the first `return` with a value, those of nested functions aside."""

    @cached_property
    def text(self) -> str:
        """The function as Python text."""
        return ast.unparse(self.tree)

    @cached_property
    def lines(self) -> tuple[int | None, ...]:
        """The user's line of each line of the text."""
        # Both trees have the same statements in the same order.
        lines: list[int | None] = [None] * len(lines_of(self.text))
        ours = [n for n in ast.walk(ast.parse(self.text).body[0]) if isinstance(n, ast.stmt)]
        theirs = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt)]
        for mine, original in zip(ours, theirs, strict=True):
            lines[mine.lineno - 1] = original.lineno
        return tuple(lines)

    def __str__(self) -> str:
        return self.text


def rewrite(source: Source, function: types.FunctionType, is_traced: bool = True) -> Rewritten:
    """The function with its control flow sent through the hooks, and its decorators taken off.

    `is_traced` says that it is a kernel or launcher, which is no generator. Raises `NotSupportedError` for a kind of
    statement that tracing does not know, at its line.
    """
    try:
        tree = source.parse()
        tree.decorator_list = []
        nodes = list(walk(tree))
        mark_comprehensions(nodes)
        name_targets(nodes)
        first = _first_return(tree, source)
        sites: list[Site] = []
        free = frozenset(function.__code__.co_freevars)
        Hooking(source, count(1), sites, function.__globals__, not is_traced, free).function(tree)
    except RecursionError:
        raise TraceError(
            f"an expression of '{source.name}' is nested too deeply for Python",
            where=SourceLine.of(source.file, source.first_line, function=source.name),
            hint="split it into several assignments, or build it in a loop over fx.range_constexpr(n)",
        ) from None
    return Rewritten(source, tree, sites, first)


def _first_return(tree: ast.FunctionDef, source: Source) -> SourceLine | None:
    found = [node for node in inside(tree) if isinstance(node, ast.Return) and node.value is not None]
    if not found:
        return None
    first = min(found, key=lambda node: node.lineno)
    return SourceLine.of(source.file, first.lineno, first.col_offset, first.end_col_offset, source.name)


@dataclass(frozen=True)
class Code:
    """The code of a rewritten function, and the hooks that it calls."""

    code: types.CodeType
    hooks: Hooks

    def bound(self, original: types.FunctionType) -> Callable[..., Any]:
        """The function with the original's globals, closure and defaults."""
        cells = dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))
        cells[HOOK] = types.CellType(self.hooks)
        closure = tuple(cells[name] for name in self.code.co_freevars)
        made = types.FunctionType(self.code, original.__globals__, original.__name__, original.__defaults__, closure)
        made.__kwdefaults__ = original.__kwdefaults__
        return made


_codes: ByCode[Code | None] = ByCode()
"""Of each function met, by its code: its rewritten code, or None where it stays as it is."""


def compiled(rewritten: Rewritten, original: types.FunctionType) -> Code:
    """The code of a rewritten function.

    It keeps the user's file and lines, so tracebacks and locations need no translation.
    """
    # A function nested in a rewritten one has the hook among its free names already.
    module = module_around(rewritten.tree, original, (HOOK,))
    fill_locations(module)
    code = code_of(module, rewritten.tree.name, original, rewritten.source.file)
    code = code.replace(co_qualname=original.__code__.co_qualname)  # what a traceback calls it
    _note(code)
    return Code(code, Hooks(rewritten.sites, callee))


def _note(code: types.CodeType) -> None:
    """Note a rewritten function, and those nested in it: they stay as they are."""
    _codes[code] = REWRITTEN[code] = None
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            _note(inner)


def callee(function: Any) -> Any:
    """What a call in a traced function calls: a function of the user's is rewritten, anything else stays."""
    if isinstance(function, types.FunctionType):
        code = _code_of(function)
        return function if code is None else code.bound(function)
    if isinstance(function, types.BuiltinFunctionType):
        return explained(function)
    if isinstance(function, types.MethodType):
        inner = callee(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        inner = callee(function.func)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, type):
        return _constructor(function)
    called = vars(type(function)).get("__call__")
    if isinstance(called, types.FunctionType):
        inner = callee(called)
        return function if inner is called else types.MethodType(inner, function)
    return function


def _constructor(kind: type) -> Any:
    """What makes an object of a class: with a rewritten `__init__`, where it has one of the user's and nothing else."""
    init = kind.__init__  # type: ignore[misc]
    ordinary = type(kind) is type and "__new__" not in {n for c in kind.__mro__[:-1] for n in vars(c)}
    inner = callee(init) if ordinary and isinstance(init, types.FunctionType) else init
    if inner is init:
        return kind

    def made(*args: Any, **named: Any) -> Any:
        new: Any = object.__new__(kind)
        inner(new, *args, **named)
        return new

    return made


def _code_of(function: types.FunctionType) -> Code | None:
    original = function.__code__
    if original not in _codes:
        _codes[original] = None
        if not is_library(original.co_filename) and original.co_name != "<lambda>":
            try:
                source = read(function)
            except TraceError as error:
                UNREAD[original] = error.message, error.hint or ""
            else:
                _codes[original] = compiled(rewrite(source, function, is_traced=False), function)
    return _codes.get(original)


def to_function(rewritten: Rewritten, original: Callable[..., Any]) -> Callable[..., Any]:
    """The rewritten function as a callable with the original's globals, closure and defaults."""
    return compiled(rewritten, original).bound(original)  # type: ignore[arg-type]
