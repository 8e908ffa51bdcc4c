"""Early exits made plain: `return`, `break` and `continue` inside of `if` and loops become flags and guards.

On the device no thread leaves a region early. So an exit sets a flag, what follows it is guarded by the flag, and a
loop goes on only while none of its flags is set. Where nothing around an exit is decided on the device, it happens as
in Python: each exit first asks whether tracing is still in the region where the function, or loop, began (`is_home`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from flylab.compiler.syntax.names import SCOPES

HOOK = "__flylab__"
RETURNED, RESULT, HOME = "__returned__", "__result__", "__home__"
Exit = ast.Return | ast.Break | ast.Continue
LOOPS = (ast.For, ast.While)


def hook(name: str, *arguments: ast.expr) -> ast.Call:
    """A call of a hook: `__flylab__.name(arguments)`."""
    return ast.Call(ast.Attribute(load(HOOK), name, ast.Load()), list(arguments), [])


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
    for node in ast.walk(made):
        if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
            ast.copy_location(node, like)
            if isinstance(node, ast.Attribute):  # Python places a call of a method where its name ends
                node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    return made


class Exits:
    """Rewrites the exits of one function; loops are numbered by `counter`."""

    def __init__(self, counter: Iterator[int]):
        self.counter = counter

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
                return [*done, *(self.exit(statement, loop) if returns or loop else [statement])]
            flags = self.flags(statement, loop)
            done += self.statement(statement, loop, returns)
            rest = body[i + 1:]
            if flags and rest:
                guarded = self.block(rest, loop, returns)
                return [*done, *placed([guard(flags, guarded)], statement)]
        return done

    def exit(self, node: Exit, loop: Loop | None) -> list[ast.stmt]:
        """One exit: its flag, and the exit itself where it may happen as in Python."""
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
        kinds = {type(e) for e in _exits(node)} if not isinstance(node, ast.Try) else set()
        names = [RETURNED] if ast.Return in kinds else []
        if loop is not None:
            names += [loop.broke] if ast.Break in kinds else []
            names += [loop.skipped] if ast.Continue in kinds else []
        return names

    def statement(self, node: ast.stmt, loop: Loop | None, returns: bool) -> list[ast.stmt]:
        """A statement with the exits inside of it made plain."""
        if isinstance(node, ast.If):
            node.body, node.orelse = self.block(node.body, loop, returns), self.block(node.orelse, loop, returns)
        elif isinstance(node, ast.With):
            node.body = self.block(node.body, loop, returns)
        elif isinstance(node, ast.Try):
            _check_each(node, loop, returns)
        elif isinstance(node, LOOPS):
            return self.loop(node, loop, returns)
        return [node]

    def loop(self, node: ast.For | ast.While, outer: Loop | None, returns: bool) -> list[ast.stmt]:
        """A loop: with exits, a home before it, guards inside, and its `else` behind it."""
        kinds = {type(e) for s in node.body for e in _exits(s)}
        orelse = self.block(node.orelse, outer, returns)
        node.orelse = []
        loop = Loop(next(self.counter))
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
            body = [*placed([ast.Assign([node.target], load(item))], node.target), *body]
            node.target = ast.copy_location(ast.Name(item, ast.Store()), node.target)
        if ast.Continue in kinds:
            body = [*placed([assign(loop.skipped, ast.Constant(False))], node), *body]
        before += [assign(flag, ast.Constant(False)) for flag in stops if flag != RETURNED]
        node.body = placed([guard(stops, body)], node) if stops else body
        node.stops = tuple(stops)  # type: ignore[union-attr]
        skipping = [flag for flag in stops if flag != loop.done]
        behind = placed([guard(skipping, orelse)], node) if orelse and skipping else orelse
        return [*placed(before, node), node, *behind]


class Loop:
    """The names of one loop's flags."""

    def __init__(self, number: int):
        self.number = number
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
        for child in ast.iter_child_nodes(node):
            yield from _all_exits(child)


def _exits(node: ast.AST) -> Iterator[Exit]:
    """The exits in a statement that leave it: of the body of a loop, only its returns."""
    if isinstance(node, LOOPS):
        yield from (e for s in node.body for e in _all_exits(s) if isinstance(e, ast.Return))
        for statement in node.orelse:
            yield from _exits(statement)
    elif isinstance(node, Exit):
        yield node
    elif not isinstance(node, SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _exits(child)


def _check_each(node: ast.Try, loop: Loop | None, returns: bool) -> None:
    """Exits from a `try` stay as they are, behind a check that nothing around them is decided on the device."""

    def checked(body: list[ast.stmt], inner: bool) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            home = HOME if isinstance(statement, ast.Return) else loop.home if loop and not inner else None
            if isinstance(statement, Exit) and home and (returns or home != HOME):
                check = hook("leaves_try", load(home), ast.Constant(type(statement).__name__.lower()))
                made += placed([ast.Expr(check)], statement)
            for block in ("body", "orelse", "finalbody"):
                if hasattr(statement, block) and not isinstance(statement, SCOPES):
                    setattr(statement, block, checked(getattr(statement, block), inner or isinstance(statement, LOOPS)))
            for handler in getattr(statement, "handlers", ()):
                handler.body = checked(handler.body, inner)
            made.append(statement)
        return made

    for part in (node, *node.handlers):
        for block in ("body", "orelse", "finalbody"):
            if hasattr(part, block):
                setattr(part, block, checked(getattr(part, block), False))
