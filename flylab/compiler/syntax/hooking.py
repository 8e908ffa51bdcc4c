"""The hooks in a function's syntax: each `if`, loop, choice and call goes through `flylab.compiler.control`.

Every kind of statement is in one of the two tables below; one that is in neither is an error, never passed on unseen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from types import ModuleType
from typing import Any

from flylab.compiler.source import Source
from flylab.compiler.syntax.exits import Exits, assign, hook, is_hook, load, place, placed
from flylab.compiler.syntax.liveness import SEES_ALL, Liveness, Names
from flylab.compiler.syntax.names import bindings, certain, inside, parameters, walk
from flylab.errors import NotSupportedError, TraceError
from flylab.places import SourceLine

# Statements that mean while tracing what they mean in Python.
PLAIN = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass, ast.Return, ast.Delete, ast.Import, ast.ImportFrom,
    ast.Global, ast.Nonlocal, ast.FunctionDef, ast.ClassDef, ast.With, ast.Break, ast.Continue, ast.Try,
)  # fmt: skip
# Statements that branch, loop, or must not be passed on unseen where the device decides: they go through a hook.
HOOKED = (ast.If, ast.While, ast.For, ast.Assert, ast.Raise)


@dataclass(frozen=True)
class Site:
    """One `if`, `for` or `while`: what tracing must know of its place in the function."""

    kind: str
    line: int
    names: tuple[str, ...]
    """The names that it binds, in the order in which the rewritten code assigns them."""
    live: Names
    """Of these, the ones that may be read afterwards."""
    head: Names = frozenset()
    """Of a loop: the ones that may be read before its body binds them."""
    inner: tuple[str, ...] = ()
    """Of a loop: the names without its targets, which are assigned at the head of its body."""
    stops: tuple[str, ...] = ()
    """Of a loop: the flags that end it."""
    guards: tuple[str, ...] = ()
    """Of a guard: the flags that it asks."""
    lines: dict[str, tuple[int | None, int | None]] | None = None
    """The lines that bind each name: the last one before, and the last one inside."""
    has_else: bool = False
    reads: Names | None = None
    """The names that it mentions, through which alone it can change something; None for any."""
    first: Names = frozenset()
    """Of a loop: the names that its first round certainly binds, before any exit."""

    @property
    def what(self) -> str:
        """What an error calls it."""
        return f"the `{self.kind}` on line {self.line}"


class Hooking(ast.NodeTransformer):
    """Puts the hooks into one function, and through others of its kind into those nested in it."""

    def __init__(self, source: Source, counter: Iterator[int], sites: list[Site], space: Mapping[str, Any],
                 is_generator: bool = True, bound: Names = frozenset()):
        self.source = source
        self.counter = counter
        self.sites = sites
        self.space = space
        """The function's globals: a call of flylab's own needs no hook."""
        self.bound_names = bound
        """The names that it, and the functions around it, bind: these are no globals."""
        self.is_generator = is_generator
        """Whether it may be a generator of the user's, which runs in Python."""
        self.within: list[str] = []
        """The variables of the `if`s and loops around a statement, from the outermost on."""

    def function(self, node: ast.FunctionDef, outer: Names = frozenset()) -> None:
        """Rewrite a function in place; `outer` are the names of the functions around it that may have no value."""
        node.body = Exits(self.counter).function(node.name, node.body)
        self.body(node, outer)

    def body(self, node: ast.FunctionDef | ast.ClassDef, outer: Names) -> None:
        """Rewrite the statements of a function or class."""
        known = parameters(node) if isinstance(node, ast.FunctionDef) else set()
        nodes = list(inside(node))
        bound = [list(bindings([statement])) for statement in node.body]
        self.bound = sorted(chain(*bound), key=lambda pair: pair[1])
        self.first_line = node.lineno
        own = known.union(name for name, _ in self.bound)
        self.bound_names |= own
        self.deleted = _deleted(nodes)
        self.unsure = (outer - own) | _unsure(node.body, bound, known) | self.deleted
        self.liveness = Liveness.of(node, nodes)
        node.body = self.block(node.body)

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """A list of statements, each of which may become several."""
        made: list[ast.stmt] = []
        before = self.unsure
        for statement in statements:
            bound = certain(statement) - self.deleted if self.unsure else set()
            found = self.visit(statement)
            made += found if isinstance(found, list) else [found]
            self.unsure = self.unsure - bound  # for the rest of the block
        self.unsure = before
        return made

    def visit(self, node: ast.AST) -> Any:
        """Refuses kinds of statements that no table has."""
        if isinstance(node, ast.stmt) and not isinstance(node, (*PLAIN, *HOOKED)):
            raise NotSupportedError(
                f"`{type(node).__name__}` statements cannot be traced",
                where=self.where(node),
                hint="write it with assignments, calls, if and for",
            )
        return super().visit(node)

    def where(self, node: ast.stmt | ast.expr) -> SourceLine:
        """The place of a node in the user's source."""
        return SourceLine.of(self.source.file, node.lineno, node.col_offset, node.end_col_offset, self.source.name)

    # Nested scopes.
    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self._outer_parts(node)
        self._nested().function(node, self.unsure)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.bases = [self.visit(b) for b in node.bases]
        self._nested().body(node, self.unsure)
        return node

    def _nested(self) -> Hooking:
        return Hooking(self.source, self.counter, self.sites, self.space, bound=self.bound_names)

    def _outer_parts(self, node: ast.FunctionDef | ast.Lambda) -> None:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self._outer_parts(node)
        before, self.unsure = self.unsure, self.unsure - parameters(node)
        node.body = self.visit(node.body)
        self.unsure = before
        return node

    # Statements.
    def site(self, kind: str, node: ast.stmt, targets: Names = frozenset(), has_else: bool = False) -> int:
        """Note a site; its number."""
        written = {n for n, _ in bindings([node])}
        names = tuple(sorted(written))
        first, last = node.lineno, node.end_lineno or node.lineno
        lines = {n: (self._last(n, 0, first - 1), self._last(n, first, last)) for n in names}
        after, head = self.liveness.after.get(node, frozenset()), self.liveness.head.get(node, frozenset())
        inner = tuple(n for n in names if n not in targets)
        self.sites.append(Site(kind, first, names, after & written, head & written, inner,
                               getattr(node, "stops", ()), getattr(node, "guards", ()), lines, has_else,
                               mentioned(node), getattr(node, "first", frozenset())))
        return len(self.sites) - 1

    def _last(self, name: str, first: int, last: int) -> int | None:
        lines = [line for n, line in self.bound if n == name and first <= line <= last]
        return max(lines) if lines else self.first_line if not first and name not in dict(self.bound) else None

    def visit_If(self, node: ast.If) -> Any:
        if getattr(node, "is_plain", False):
            node.body = self.block(node.body)
            return node
        number = self.site(getattr(node, "kind", "if"), node, has_else=bool(node.orelse))
        names = self.sites[number].names
        name = f"__if_{next(self.counter)}__"
        test = self.visit(node.test)
        self.within.append(name)
        then, orelse = self.block(node.body), self.block(node.orelse)
        self.within.pop()
        made = [
            assign(name, hook("if_", ast.Constant(number), test)),
            ast.If(_attribute(name, "then"), _arm(name, then), []),
        ]
        if orelse:
            again = ast.If(_attribute(name, "runtime"), [_unpack(names, name, "other")], [])
            made.append(ast.If(_attribute(name, "orelse"), [again, *_arm(name, orelse)], []))
        made.append(ast.If(_attribute(name, "runtime"), [_unpack(names, name, "merged")], []))
        return placed(made, node.test)

    def visit_While(self, node: ast.While) -> Any:
        number = self.site("while", node)
        names = self.sites[number].names
        name = f"__loop_{next(self.counter)}__"
        start = hook("while_", ast.Constant(number))
        test = self.visit(node.test)
        self.within.append(name)
        body = self.block(node.body)
        self.within.pop()
        head = [_unpack(names, name, "head")]
        enter = [_unpack(names, name, "enter")]
        inner: list[ast.stmt] = [
            ast.If(_attribute(name, "runtime"), head, []),
            ast.If(_call(name, "test", test), [ast.If(_attribute(name, "runtime"), enter, []), *body], []),
        ]
        made = [
            assign(name, start),
            ast.While(_call(name, "goes_on"), [_within(name, inner)], []),
            ast.If(_attribute(name, "runtime"), [_unpack(names, name, "leave")], []),
        ]
        return [*placed(made, node), *self.block(node.orelse)]

    def visit_For(self, node: ast.For) -> Any:
        targets = frozenset(n.id for n in walk(node.target) if isinstance(n, ast.Name))
        results = self._yields(node)
        number = self.site("for", node, targets)
        site = self.sites[number]
        name = f"__loop_{next(self.counter)}__"
        start = self._start(node.iter, number)
        node.target = self.visit(node.target)
        before, self.unsure = self.unsure, self.unsure - targets
        self.within.append(name)
        body = self.block(node.body)
        self.within.pop()
        self.unsure = before
        if results is not None:
            statement, value = results
            body.append(ast.copy_location(ast.Expr(_call(name, "carry", self.visit(value))), statement))
        enter = ast.If(_attribute(name, "runtime"), [_unpack(site.inner, name, "enter")], [])
        made: list[ast.stmt] = [
            ast.copy_location(assign(name, start), node.iter),
            ast.copy_location(ast.For(node.target, load(name), [_within(name, [enter, *body])], []), node),
            ast.If(_attribute(name, "runtime"), [_unpack(site.names, name, "leave")], []),
        ]
        if results is not None and isinstance(results[0], ast.Assign):
            made += [ast.copy_location(ast.Assign(results[0].targets, _attribute(name, "results")), results[0])]
        return [*placed(made, node), *self.block(node.orelse)]

    def _start(self, iterable: ast.expr, number: int) -> Any:
        """The loop object. Of a call, the hook sees the function and its arguments before the call is made."""
        if not isinstance(iterable, ast.Call):
            return place(hook("for_", ast.Constant(number), self.visit(iterable)), iterable)
        args = [self.visit(a) for a in iterable.args]
        made = hook("for_call", ast.Constant(number), self.visit(iterable.func), *args)
        made.keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in iterable.keywords]
        return place(made, iterable)

    def _yields(self, node: ast.For) -> tuple[ast.stmt, ast.expr] | None:
        """The last statement of a `range(..., init=...)` loop, which yields what the next round gets; taken off."""
        call = node.iter
        is_carrying = isinstance(call, ast.Call) and any(k.arg == "init" for k in call.keywords)
        if not is_carrying:
            return None
        if any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in walk(node)):
            raise NotSupportedError(
                "`break`, `continue` or `return` in a loop with init=: what it carries would have no value",
                where=self.where(node.iter),
                hint="leave out init= and yield: what a loop assigns is carried by itself, with any exit",
            )
        last = node.body[-1]
        value = last.value if isinstance(last, (ast.Assign, ast.Expr)) else None
        if not isinstance(value, ast.Yield) or value.value is None:
            raise TraceError(
                "a loop with init= ends without a yield: what its next round gets is not said",
                where=self.where(last),
                hint="end its body with `results = yield [...]`, with as many values as init has",
            )
        node.body = node.body[:-1] or placed([ast.Pass()], last)
        return last, value.value

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom | ast.Await) -> Any:
        """Only reached where no loop takes it: in a generator nested in a kernel, or out of place."""
        if self.is_generator:
            node = self.generic_visit(node)  # type: ignore[assignment]
            if self.within:
                value = place(hook("yields", node.value or ast.Constant(None), *map(load, self.within)), node)
                node.value = value
            return node
        raise TraceError(
            "`yield` outside of a loop with init=, or not as its last statement",
            where=self.where(node),
            hint="`results = yield [...]` ends the body of `for i, state in range(..., init=[...])`",
        )

    visit_YieldFrom = visit_Await = visit_Yield

    def visit_Try(self, node: ast.Try) -> Any:
        """An exception that leaves an arm and is caught outside of it is refused there."""
        home = f"__try_{next(self.counter)}__"
        parts = {name: self.block(getattr(node, name)) for name in ("body", "orelse", "finalbody")}
        for name, body in parts.items():
            setattr(node, name, body)
        for handler in node.handlers:
            handler.type = handler.type and self.visit(handler.type)
            check = ast.Expr(hook("caught", load(home)))
            handler.body = [*placed([check], handler), *self.block(handler.body)]
        return [*placed([assign(home, hook("home"))], node), node] if node.handlers else node

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = ast.Lambda(_no_parameters(), self.visit(node.msg) if node.msg else ast.Constant(None))
        return placed([ast.Expr(hook("asserts", self.visit(node.test), message))], node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if not self.within:
            return node
        return [*placed([ast.Expr(hook("raises", *map(load, self.within)))], node), node]

    # Expressions.
    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.unsure:
            return place(hook("bound", node), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        node.value = self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id in self.unsure:
            check = ast.Expr(hook("bound", load(node.target.id)))
            return [*placed([check], node.target), node]
        node.target = self.visit(node.target)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if not is_hook(node) and not self._is_known(node.func):
            node.func = place(hook("callee", node.func), node.func)
        return node

    def _is_known(self, function: ast.expr) -> bool:
        """Whether a call is of flylab's own, by the globals that the function has now."""
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.bound_names:
            return False
        found = self.space.get(root.id)
        name = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", None)
        return str(name).startswith("flylab.") and not str(name).startswith("flylab.kernels")

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test, body, orelse = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        if _walrus(body) or _walrus(orelse):
            node.test, node.body, node.orelse = self._static("conditional expression", test), body, orelse
            return node
        return place(hook("choose", test, _later(body), _later(orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        kind = "and_" if isinstance(node.op, ast.And) else "or_"
        values = [self.visit(v) for v in node.values]
        if any(map(_walrus, values[1:])):
            node.values = [self._static(f"`{kind[:-1]}`", v) for v in values[:-1]] + values[-1:]
            return node
        return place(hook(kind, values[0], *map(_later, values[1:])), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        values = [self.visit(v) for v in (node.left, *node.comparators)]
        if len(node.ops) == 1 or any(map(_walrus, values[2:])):
            node.left, node.comparators = values[0], values[1:]
            return node
        rules = []
        for op in node.ops:  # each as a function of its two sides
            compared = ast.Compare(load("a"), [op], [load("b")])
            rules.append(ast.Lambda(_parameters("a", "b"), compared))
        rest = [part for rule, v in zip(rules, values[1:], strict=True) for part in (rule, _later(v))]
        return place(hook("compare", values[0], *rest), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        return place(hook("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def _static(self, kind: str, value: ast.expr) -> Any:
        return place(hook("decided", value, ast.Constant(kind)), value)


def mentioned(node: ast.AST) -> Names | None:
    """The names that a statement mentions; None where it may reach any: by `locals`, or by a `super` without arguments.
    """
    found = {n.id for n in walk(node) if isinstance(n, ast.Name)}
    return None if found & (SEES_ALL | {"super"}) else frozenset(found)


def _unsure(body: list[ast.stmt], bound: list[list[tuple[str, int]]], known: set[str]) -> set[str]:
    """The names whose first binding stands in an `if` or a loop, and that may have no value behind it."""
    sure, unsure = set(known), set()
    for statement, names in zip(body, bound, strict=True):
        found = {name for name, _ in names}
        if isinstance(statement, ast.With):
            inner = [list(bindings([each])) for each in statement.body]
            found_unsure = _unsure(statement.body, inner, sure)
            unsure |= found_unsure
            sure |= found - found_unsure
        elif isinstance(statement, (ast.If, ast.For, ast.While, ast.Try)):
            unsure |= found - sure
        else:
            sure |= found
    return unsure


def _deleted(nodes: list[ast.AST]) -> set[str]:
    """The names that `del` may leave without a value."""
    return {t.id for n in nodes if isinstance(n, ast.Delete) for t in n.targets if isinstance(t, ast.Name)}


def _attribute(name: str, attribute: str) -> ast.expr:
    return ast.Attribute(load(name), attribute, ast.Load())


def _call(name: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_attribute(name, method), list(arguments), [])


def _unpack(names: tuple[str, ...], name: str, method: str) -> ast.stmt:
    """`(a, b,) = name.method()`: gives each variable its value."""
    if not names:
        return ast.Expr(_call(name, method))
    return ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())], _call(name, method))


def _arm(name: str, body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of an arm, between `name.begin()` and `name.end()`. A `with` would do, but Python nests only 20."""
    return [ast.Expr(_call(name, "begin")), *body, ast.Expr(_call(name, "end"))]


def _within(name: str, body: list[ast.stmt]) -> ast.stmt:
    """`with name:` the body."""
    return ast.With([ast.withitem(load(name))], body or [ast.Pass()])


def _parameters(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _no_parameters() -> ast.arguments:
    return _parameters()


def _later(value: ast.expr) -> ast.expr:
    return ast.Lambda(_no_parameters(), value)


def _walrus(node: ast.AST) -> bool:
    return any(isinstance(n, ast.NamedExpr) for n in walk(node))
