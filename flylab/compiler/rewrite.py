"""Rewriting a kernel's control flow before it is traced.

Tracing runs the function in Python, so a condition or a loop over a value of the device must not reach Python's own
`if` and `for`: each goes through a hook of `Hooks`, which decides. Every kind of statement is in one of the two tables
below; one that is in neither is an error, never passed on unseen.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flylab.compiler.source import Source
from flylab.errors import NotSupportedError, SourceLine, TraceError
from flylab.expr.numeric import Numeric
from flylab.expr.vector import Vector

# Statements that mean while tracing what they mean in Python.
PLAIN = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Expr,
    ast.Pass,
    ast.Return,
    ast.Assert,
    ast.Raise,
    ast.Delete,
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
    ast.FunctionDef,
    ast.ClassDef,
    ast.With,
    ast.Break,
    ast.Continue,
    ast.Try,
)
# Statements that branch or loop: their conditions and iterables go through a hook.
HOOKED = (ast.If, ast.While, ast.For)

HOOK = "__flylab__"


@dataclass(frozen=True)
class Rewritten:
    """A rewritten function. Its text is only made when someone looks at it."""

    source: Source
    tree: ast.FunctionDef

    @cached_property
    def text(self) -> str:
        """The function as Python text."""
        return ast.unparse(self.tree)

    @cached_property
    def lines(self) -> tuple[int | None, ...]:
        """The user's line of each line of the text."""
        # Both trees have the same statements in the same order.
        lines: list[int | None] = [None] * len(self.text.splitlines())
        ours = [n for n in ast.walk(ast.parse(self.text).body[0]) if isinstance(n, ast.stmt)]
        theirs = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt)]
        for mine, original in zip(ours, theirs, strict=True):
            lines[mine.lineno - 1] = original.lineno
        return tuple(lines)

    def __str__(self) -> str:
        return self.text


class Hooks:
    """What the rewritten code calls. Static values pass through; runtime ones are refused by name."""

    @staticmethod
    def condition(value: Any, kind: str) -> Any:
        """The condition of an `if`, `while`, `and`, `or`, `not` or conditional expression."""
        if _is_runtime(value):
            raise NotSupportedError(
                f"a runtime {kind}: its condition is only known on the device, and this version of flylab has "
                "control flow decided while tracing",
                hint="choose without a branch: cond.select(a, b); or make the condition an fx.Constexpr",
            )
        return value

    @staticmethod
    def iterate(iterable: Any) -> Any:
        """What a `for` goes over. A plain `range` means a runtime loop, so only `range_constexpr` unrolls."""
        if isinstance(iterable, range):
            raise NotSupportedError(
                "a runtime `for` over range(...): this version of flylab has loops that unroll",
                hint="unroll it: for i in range_constexpr(n)",
            )
        if _is_runtime(iterable) and not isinstance(iterable, Vector):
            raise TraceError("a `for` over a value of the device", hint="loop over range_constexpr(n)")
        return iterable


def _is_runtime(value: Any) -> bool:
    return isinstance(value, Vector) or (isinstance(value, Numeric) and not value.is_static)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, source: Source):
        self.source = source

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.stmt) and not isinstance(node, (*PLAIN, *HOOKED)):
            raise NotSupportedError(
                f"`{type(node).__name__}` statements cannot be traced",
                where=SourceLine.of(
                    self.source.file, node.lineno, node.col_offset, node.end_col_offset, self.source.name
                ),
                hint="write it with assignments, calls, if and for",
            )
        return super().visit(node)

    def _hooked(self, hook: str, value: ast.expr, *extra: str) -> ast.expr:
        call = ast.Call(
            ast.Attribute(ast.Name(HOOK, ast.Load()), hook, ast.Load()),
            [self.visit(value), *map(ast.Constant, extra)],
            [],
        )
        return ast.fix_missing_locations(ast.copy_location(call, value))

    def visit_If(self, node: ast.If) -> Any:
        node.test = self._hooked("condition", node.test, "`if`")
        node.body = [self.visit(s) for s in node.body]
        node.orelse = [self.visit(s) for s in node.orelse]
        return node

    def visit_While(self, node: ast.While) -> Any:
        node.test = self._hooked("condition", node.test, "`while`")
        node.body = [self.visit(s) for s in node.body]
        node.orelse = [self.visit(s) for s in node.orelse]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        node.test = self._hooked("condition", node.test, "conditional expression")
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        kind = "`and`" if isinstance(node.op, ast.And) else "`or`"
        # The last operand decides nothing: it is the result.
        node.values = [self._hooked("condition", v, kind) for v in node.values[:-1]] + [self.visit(node.values[-1])]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            node.operand = self._hooked("condition", node.operand, "`not`")
            return node
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self._hooked("iterate", node.iter)
        node.body = [self.visit(s) for s in node.body]
        node.orelse = [self.visit(s) for s in node.orelse]
        return node


def rewrite(source: Source) -> Rewritten:
    """The function with its control flow sent through the hooks, and its decorators taken off.

    Raises `NotSupportedError` for a kind of statement that tracing does not know, at its line.
    """
    tree = source.parse()
    tree.decorator_list = []
    tree.body = [_Rewriter(source).visit(statement) for statement in tree.body]
    return Rewritten(source, tree)


def to_function(rewritten: Rewritten, original: Callable[..., Any]) -> Callable[..., Any]:
    """The rewritten function as a callable with the original's globals, closure and defaults.

    Its code keeps the user's file and lines, so tracebacks and locations need no translation.
    """
    free = original.__code__.co_freevars
    factory = ast.FunctionDef(
        name="__flylab_factory__",
        body=[rewritten.tree, ast.Return(ast.Name(rewritten.tree.name, ast.Load()))],
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(n) for n in (HOOK, *free)], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        decorator_list=[],
        type_params=[],
    )
    module = ast.fix_missing_locations(ast.Module([factory], []))
    code = _code_named(compile(module, rewritten.source.file, "exec"), rewritten.tree.name)
    cells = dict(zip(free, original.__closure__ or (), strict=True))
    cells[HOOK] = types.CellType(Hooks)
    # A function that refers to itself finds the decorated one, which is in its globals or closure.
    closure = tuple(cells[name] if name in cells else types.CellType(original) for name in code.co_freevars)
    made = types.FunctionType(code, original.__globals__, original.__name__, original.__defaults__, closure)
    made.__kwdefaults__ = original.__kwdefaults__
    return made


def _code_named(code: types.CodeType, name: str) -> types.CodeType:
    """The code object of a function, found among the constants of the module that holds it."""
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            if const.co_name == name:
                return const
            if const.co_name == "__flylab_factory__":
                return _code_named(const, name)
    raise TraceError(f"'{name}' was lost in rewriting")
