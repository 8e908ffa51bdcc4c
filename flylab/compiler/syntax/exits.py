"""Early exits made plain: `return`, `break` and `continue` inside of `if` and loops become flags and guards.

On the device no thread leaves a region early. So an exit sets a flag, what follows it is guarded by the flag, and a
loop goes on only while none of its flags is set. Where nothing around an exit is decided on the device, it happens as
in Python: each exit first asks whether tracing is still in the region where the function, or loop, began (`is_home`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from flylab.compiler.syntax.names import SCOPES, certain, children

HOOK = "__flylab__"
RETURNED, RESULT, HOME = "__returned__", "__result__", "__home__"
Exit = ast.Return | ast.Break | ast.Continue
LOOPS = (ast.For, ast.While)
YIELDS = (ast.Yield, ast.YieldFrom)


def hook(name: str, *arguments: ast.expr) -> ast.Call:
    """A call of a hook: `__flylab__.name(arguments)`."""
    return ast.Call(ast.Attribute(load(HOOK), name, ast.Load()), list(arguments), [])


def is_hook(call: ast.Call) -> bool:
    """Whether a call is one of a hook."""
    function = call.func
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == HOOK


def load(name: str) -> ast.Name:
    """The name, read."""
    return ast.Name(name, ast.Load())


def assign(name: str, value: ast.expr) -> ast.stmt:
    """`name = value`."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def placed(statements: Iterable[ast.stmt], like: ast.AST) -> list[ast.stmt]:
    """Statements of ours, at the place of the user's that they stand for."""
    return [place(statement, like) for statement in statements]


def place(made: Any, like: ast.AST) -> Any:
    """A statement or an expression of ours, at the place of the user's that it stands for."""
    todo: list[ast.AST] = [made]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
            ast.copy_location(node, like)
            if isinstance(node, ast.Attribute):  # Python places a call of a method where its name ends
                node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
        elif node is not made and isinstance(node, (ast.stmt, ast.expr)):
            continue  # the user's own, placed as all that is in it
        todo += children(node)
    return made


class Exits:
    """Rewrites the exits of one function; loops are numbered by `counter`."""

    def __init__(self, counter: Iterator[int]):
        self.counter = counter
        self.finals = 0
        """In how many `finally` blocks a statement stands."""

    def function(self, name: str, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body with its exits made plain; the body itself where it only returns at its end."""
        early = [e for s in body if not isinstance(s, Exit) for e in _all_exits(s)]
        if not early:
            return body
        returns = any(isinstance(e, ast.Return) for e in early)
        inner = self.block(body, None, returns)
        if not returns:
            return inner
        home = [assign(HOME, hook("home")), assign(RETURNED, ast.Constant(False)),
                assign(RESULT, ast.Attribute(load(HOOK), "NOTHING", ast.Load()))]
        end = ast.Return(hook("result", load(RETURNED), load(RESULT), ast.Constant(name)))
        return [*placed(home, body[0]), *inner, *placed([end], body[-1])]

    def block(self, body: list[ast.stmt], loop: Loop | None, returns: bool) -> list[ast.stmt]:
        """A block in the body of a loop (None for the function's own)."""
        done: list[ast.stmt] = []
        for i, statement in enumerate(body):
            if isinstance(statement, Exit):
                # What follows an exit in its own block is never reached.
                left = body[i + 1:] if any(isinstance(n, YIELDS) for s in body[i + 1:] for n in ast.walk(s)) else []
                dead = placed([plain_if(ast.Constant(False), left)], statement) if left else []  # makes it a generator
                return [*done, *(self.exit(statement, loop) if returns or loop else [statement]), *dead]
            flags = self.flags(statement, loop)
            done += self.statement(statement, loop, returns)
            rest = body[i + 1:]
            if flags and rest:
                guarded = self.block(rest, loop, returns)
                return [*done, *placed([guard(flags, guarded)], statement)]
        return done

    def exit(self, node: Exit, loop: Loop | None) -> list[ast.stmt]:
        """One exit: its flag, and the exit itself where it may happen as in Python."""
        if self.finals > (0 if loop is None or isinstance(node, ast.Return) else loop.finals):
            home = HOME if loop is None or isinstance(node, ast.Return) else loop.home
            check = hook("leaves_finally", load(home), ast.Constant(type(node).__name__.lower()))
            return [*placed([ast.Expr(check)], node), node]
        if isinstance(node, ast.Return):
            value = node.value or ast.Constant(None)
            made = [assign(RESULT, value), assign(RETURNED, ast.Constant(True))]
            leave: ast.stmt = ast.Return(load(RESULT))
            home = HOME
        else:
            assert loop is not None  # Python's own parser refuses such an exit outside of a loop
            flag = loop.broke if isinstance(node, ast.Break) else loop.skipped
            made, leave, home = [assign(flag, ast.Constant(True))], node, loop.home
        return placed([*made, plain_if(hook("is_home", load(home)), [leave])], node)

    def flags(self, node: ast.stmt, loop: Loop | None) -> list[str]:
        """The flags that a statement may set for what follows it."""
        kinds = self.kinds([node])
        names = [RETURNED] if ast.Return in kinds else []
        if loop is not None:
            names += [loop.broke] if ast.Break in kinds else []
            names += [loop.skipped] if ast.Continue in kinds else []
        return names

    def kinds(self, statements: list[ast.stmt]) -> set[type[Exit]]:
        """The kinds of exits that leave these statements by flags: a `return` in a `finally` has none."""
        return {type(e) for s in statements for e in _exits(s)} - ({ast.Return} if self.finals else set())

    def statement(self, node: ast.stmt, loop: Loop | None, returns: bool) -> list[ast.stmt]:
        """A statement with the exits inside of it made plain."""
        if isinstance(node, ast.If):
            node.body, node.orelse = self.block(node.body, loop, returns), self.block(node.orelse, loop, returns)
        elif isinstance(node, ast.With):
            node.body = self.block(node.body, loop, returns)
        elif isinstance(node, ast.Try):
            self.tried(node, loop, returns)
        elif isinstance(node, LOOPS):
            return self.loop(node, loop, returns)
        return [node]

    def tried(self, node: ast.Try, loop: Loop | None, returns: bool) -> None:
        """A `try`: its `else` is left out after an exit; an exit from its `finally` stays as it is, behind a check."""
        flags = [flag for statement in node.body for flag in self.flags(statement, loop)]
        node.body, orelse = self.block(node.body, loop, returns), self.block(node.orelse, loop, returns)
        node.orelse = placed([guard(list(dict.fromkeys(flags)), orelse)], node) if flags and orelse else orelse
        for handler in node.handlers:
            handler.body = self.block(handler.body, loop, returns)
        self.finals += 1
        node.finalbody = self.block(node.finalbody, loop, returns)
        self.finals -= 1

    def loop(self, node: ast.For | ast.While, outer: Loop | None, returns: bool) -> list[ast.stmt]:
        """A loop: with exits, a home before it, guards inside, and its `else` behind it."""
        kinds = self.kinds(node.body)
        orelse = self.block(node.orelse, outer, returns)
        node.orelse = []
        loop = Loop(next(self.counter), self.finals)
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        if endless or isinstance(node, ast.For):
            node.first = _bound_first(node.body)  # type: ignore[union-attr]
        body = self.block(node.body, loop, returns)
        if not kinds:
            node.body = body
            return [node, *orelse]
        stops = [loop.broke] * (ast.Break in kinds) + [RETURNED] * (ast.Return in kinds)
        before: list[ast.stmt] = [assign(loop.home, hook("home"))]
        if isinstance(node, ast.While):
            stops.append(loop.done)
            end: list[ast.stmt] = [assign(loop.done, ast.Constant(True)),
                                   plain_if(hook("is_home", load(loop.home)), [ast.Break()])]
            body = placed([ast.If(node.test, body, placed(end, node.test))], node.test)
            node.test = ast.copy_location(ast.Constant(True), node.test)
        if isinstance(node, ast.For) and ast.Break in kinds:
            # The target keeps its value where the loop was left.
            item = f"__item_{loop.number}__"
            taken = placed([ast.Assign([node.target], load(item))], node.target)
            node.first |= certain(taken[0])  # type: ignore[attr-defined]
            body = [*taken, *body]
            node.target = ast.copy_location(ast.Name(item, ast.Store()), node.target)
        if ast.Continue in kinds:
            body = [*placed([assign(loop.skipped, ast.Constant(False))], node), *body]
        before += [assign(flag, ast.Constant(False)) for flag in stops if flag != RETURNED]
        node.body = placed([guard(stops, body)], node) if stops else body
        node.stops = tuple(stops)  # type: ignore[union-attr]
        skipping = [flag for flag in stops if flag != loop.done]
        behind = orelse
        if orelse and skipping:
            unless = guard(skipping, orelse)
            unless.kind = f"{type(node).__name__.lower()} ... else"  # type: ignore[attr-defined]
            behind = placed([unless], node)
        if endless and ast.Return in kinds and ast.Break not in kinds:  # only a return ends it
            behind = placed([assign(RETURNED, ast.Constant(True))], node)
        return [*placed(before, node), node, *behind]


def _bound_first(body: list[ast.stmt]) -> frozenset[str]:
    """The names that the first round of a loop certainly binds, before any exit."""
    names: set[str] = set()
    for statement in body:
        if any(_all_exits(statement)):
            break
        names |= certain(statement)
    return frozenset(names)


class Loop:
    """The names of one loop's flags."""

    def __init__(self, number: int, finals: int):
        self.number, self.finals = number, finals
        self.home, self.broke = f"__home_{number}__", f"__broke_{number}__"
        self.skipped, self.done = f"__skipped_{number}__", f"__done_{number}__"


def guard(flags: list[str], body: list[ast.stmt]) -> ast.If:
    """`if` none of the flags is set: the body."""
    made = ast.If(hook("going_on", *map(load, flags)), body, [])
    made.guards = tuple(flags)  # type: ignore[attr-defined]
    return made


def plain_if(test: ast.expr, body: list[ast.stmt]) -> ast.If:
    """An `if` of ours, which Python decides."""
    made = ast.If(test, body, [])
    made.is_plain = True  # type: ignore[attr-defined]
    return made


def _all_exits(node: ast.AST) -> Iterator[Exit]:
    """The exits of a function or loop that a statement holds, nested functions aside."""
    if isinstance(node, Exit):
        yield node
    elif not isinstance(node, SCOPES):
        for child in children(node):
            yield from _all_exits(child)


def _exits(node: ast.AST) -> Iterator[Exit]:
    """The exits in a statement that leave it: of the body of a loop, only its returns; none of a `finally`."""
    if isinstance(node, ast.Try):
        for part in (*node.body, *node.handlers, *node.orelse):
            yield from _exits(part)
    elif isinstance(node, LOOPS):
        yield from (e for s in node.body for e in _all_exits(s) if isinstance(e, ast.Return))
        for statement in node.orelse:
            yield from _exits(statement)
    elif isinstance(node, Exit):
        yield node
    elif not isinstance(node, SCOPES):
        for child in children(node):
            yield from _exits(child)
