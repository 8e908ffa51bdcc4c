"""Which names a piece of Python binds and reads, in the scope that it stands in."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
PLACED = (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias, ast.excepthandler)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


PASSED = frozenset({"ctx", "op", "ops", "type_comment", "type_ignores", "kwd_attrs"})
"""The fields of nodes that name nothing, or hold no nodes."""
TEXTS = frozenset({"id", "attr", "asname", "module", "level", "kind", "simple", "conversion", "is_async", "rest"})
"""The fields of nodes that hold a text or a number; of some kinds of nodes, others do."""
LEAVES = (ast.Constant, ast.Name, ast.Global, ast.Nonlocal)


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    """The fields of a kind of node that may hold nodes."""
    return () if kind in LEAVES else tuple([name for name in kind._fields if name not in PASSED | TEXTS])


def children(node: ast.AST) -> list[ast.AST]:
    """The statements, expressions and their parts right below a node, in their order."""
    found: list[ast.AST] = []
    kind: Any = type(node)
    for field in _fields(kind):
        value = getattr(node, field, None)
        if type(value) is list:
            found += value if None not in value else [each for each in value if each is not None]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(*nodes: ast.AST) -> Iterator[ast.AST]:
    """The nodes and all below them: `ast.walk`, but for what names nothing, which is half of them."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)


def fill_locations(node: ast.AST, line: int = 1, column: int = 0, end: tuple[int, int] = (1, 0)) -> None:
    """Give what has no place that of what it stands in: `ast.fix_missing_locations`, but for what has none."""
    if isinstance(node, PLACED):
        if not hasattr(node, "lineno"):
            node.lineno, node.col_offset = line, column
            node.end_lineno, node.end_col_offset = end
        line, column = node.lineno, node.col_offset
        end = node.end_lineno or line, node.end_col_offset or column
    for child in children(node):
        fill_locations(child, line, column, end)


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that belong to its own scope; of a nested scope only what is evaluated outside of it."""
    todo = children(node)
    while todo:
        child = todo.pop()
        yield child
        todo += outer_part(child) if isinstance(child, SCOPES) else children(child)


def outer_part(scope: ast.AST) -> list[ast.AST]:
    """What of a nested function or class is evaluated where it is defined: decorators, defaults, bases."""
    parts: list[ast.AST] = [*getattr(scope, "decorator_list", ()), *getattr(scope, "bases", ())]
    if isinstance(scope, Function):
        parts += [d for d in (*scope.args.defaults, *scope.args.kw_defaults) if d is not None]
    return parts


def bindings(statements: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """The names that statements bind in their own scope, each with its line: assignments, loop targets, imports."""
    todo = list(statements)
    while todo:
        node = todo.pop()
        yield from _bound_by(node)
        todo += outer_part(node) if isinstance(node, SCOPES) else children(node)


def certain(node: ast.stmt) -> set[str]:
    """The names that have a value once a statement has run: those of a plain assignment, or a definition."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value):
        targets = [node.target]
    return {n.id for n in walk(*targets) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _bound_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and not _is_of_comprehension(node):
        yield node.id, node.lineno
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        if node.name:
            yield node.name, node.lineno
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0], node.lineno


def mark_comprehensions(nodes: Iterable[ast.AST]) -> None:
    """Note the targets of comprehensions, whose names are their own."""
    for node in nodes:
        if isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                for target in walk(generator.target):
                    if isinstance(target, ast.Name):
                        target.is_of_comprehension = True  # type: ignore[attr-defined]


def name_targets(nodes: Iterable[ast.AST]) -> None:
    """Let loops bind names only: an item or an attribute as a target is assigned at the head of the body."""
    for node in nodes:
        if isinstance(node, ast.For) and any(isinstance(n, (ast.Attribute, ast.Subscript)) for n in walk(node.target)):
            name, like = f"__target_{node.lineno}_{node.col_offset}__", node.target
            value = ast.copy_location(ast.Name(name, ast.Load()), like)
            node.body.insert(0, ast.copy_location(ast.Assign([like], value), like))
            node.target = ast.copy_location(ast.Name(name, ast.Store()), like)


def _is_of_comprehension(name: ast.Name) -> bool:
    return getattr(name, "is_of_comprehension", False)


def reads(*nodes: ast.AST | None) -> set[str]:
    """Every name read in these nodes, in the scopes nested in them too."""
    return {
        n.id
        for node in nodes
        if node is not None
        for n in walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }


def captured(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that functions among the nodes of a scope read or rebind, their own aside: used at any time."""
    return {name for node in nodes if isinstance(node, SCOPES) for name in _free(node)}


def _free(scope: ast.AST) -> set[str]:
    """The names in a scope that are not its own."""
    if not isinstance(scope, Function):
        return {n.id for n in walk(scope) if isinstance(n, ast.Name)}
    nodes = list(inside(scope))
    shared = declared(nodes, ast.Nonlocal) | declared(nodes, ast.Global)
    own = parameters(scope) | ({n for n, _ in bindings(scope.body)} if not isinstance(scope, ast.Lambda) else set())
    return ({n.id for n in nodes if isinstance(n, ast.Name)} | captured(nodes)) - (own - shared) | shared


def declared(nodes: Iterable[ast.AST], kind: type[ast.Nonlocal] | type[ast.Global]) -> set[str]:
    """The names that `nonlocal`, or `global`, statements among the nodes declare."""
    return {name for node in nodes if isinstance(node, kind) for name in node.names}


def parameters(function: Function) -> set[str]:
    """The names of a function's parameters."""
    args = function.args
    given = (*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg)))
    return {a.arg for a in given}
