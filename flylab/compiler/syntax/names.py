"""Which names a piece of Python binds and reads, in the scope that it stands in."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that belong to its own scope; of a nested scope only what is evaluated outside of it."""
    for child in ast.iter_child_nodes(node):
        yield child
        yield from outer_part(child) if isinstance(child, SCOPES) else inside(child)


def outer_part(scope: ast.AST) -> Iterator[ast.AST]:
    """What of a nested function or class is evaluated where it is defined: decorators, defaults, bases."""
    parts: list[ast.AST] = [*getattr(scope, "decorator_list", ()), *getattr(scope, "bases", ())]
    if isinstance(scope, Function):
        parts += [d for d in (*scope.args.defaults, *scope.args.kw_defaults) if d is not None]
    for part in parts:
        yield part
        yield from inside(part)


def bindings(statements: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """The names that statements bind in their own scope, each with its line: assignments, loop targets, imports."""
    for statement in statements:
        for node in (statement, *inside(statement)):
            yield from _bound_by(node)


def _bound_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and not _is_of_comprehension(node):
        yield node.id, node.lineno
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        if node.name:
            yield node.name, node.lineno
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0], node.lineno


def mark_comprehensions(tree: ast.AST) -> None:
    """Note the targets of comprehensions, whose names are their own."""
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                for target in ast.walk(generator.target):
                    if isinstance(target, ast.Name):
                        target.is_of_comprehension = True  # type: ignore[attr-defined]


def _is_of_comprehension(name: ast.Name) -> bool:
    return getattr(name, "is_of_comprehension", False)


def reads(*nodes: ast.AST | None) -> set[str]:
    """Every name read in these nodes, in the scopes nested in them too."""
    return {
        n.id
        for node in nodes
        if node is not None
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }


def captured(function: ast.AST) -> set[str]:
    """The names that functions nested in this one read, write or declare: they may be used at any time."""
    found: set[str] = set()
    for node in inside(function):
        if isinstance(node, SCOPES):
            found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            found |= declared(ast.walk(node), ast.Nonlocal)
    return found


def declared(nodes: Iterable[ast.AST], kind: type[ast.Nonlocal] | type[ast.Global]) -> set[str]:
    """The names that `nonlocal`, or `global`, statements among the nodes declare."""
    return {name for node in nodes if isinstance(node, kind) for name in node.names}


def parameters(function: Function) -> set[str]:
    """The names of a function's parameters."""
    args = function.args
    given = (*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg)))
    return {a.arg for a in given}
