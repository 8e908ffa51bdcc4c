"""Rewriting a kernel's control flow before it is traced.

Tracing runs the function in Python, so a condition or a loop over a value of the device must not reach Python's own
`if` and `for`: each goes through a hook of `Hooks`, which decides. Every kind of statement is in one of the two tables
below; one that is in neither is an error, never passed on unseen.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flylab.compiler.source import Source
from flylab.errors import NotSupportedError, TraceError
from flylab.expr.numeric import Numeric
from flylab.expr.vector import Vector
from flylab.passes.recording import lines_of
from flylab.places import SourceLine

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
        lines: list[int | None] = [None] * len(lines_of(self.text))
        ours = [n for n in ast.walk(ast.parse(self.text).body[0]) if isinstance(n, ast.stmt)]
        theirs = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt)]
        for mine, original in zip(ours, theirs, strict=True):
            lines[mine.lineno - 1] = original.lineno
        return tuple(lines)

    def first_return(self) -> SourceLine | None:
        """The line of the first `return` with a value, those of nested functions aside."""
        found: list[ast.Return] = []
        todo: list[ast.AST] = list(self.tree.body)
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Return) and node.value is not None:
                found.append(node)
            if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
                todo.extend(ast.iter_child_nodes(node))
        if not found:
            return None
        first = min(found, key=lambda node: node.lineno)
        return SourceLine.of(self.source.file, first.lineno, first.col_offset, first.end_col_offset, self.source.name)

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
                hint=CONDITION_HINTS.get(kind, CHOOSE),
            )
        return value

    @staticmethod
    def iterate(iterable: Any) -> Any:
        """What a `for` goes over, where it is no direct call of `range`."""
        if isinstance(iterable, range):
            raise _device_loop()
        if _is_runtime(iterable) and not isinstance(iterable, Vector):
            raise TraceError("a `for` over a value of the device", hint="loop over fx.range_constexpr(n)")
        return iterable

    @staticmethod
    def iterate_call(function: Any, /, *args: Any, **named: Any) -> Any:
        """What a `for` over a call goes over; `range` itself means a loop on the device, whatever its bounds are."""
        if function is range:
            raise _device_loop()
        return Hooks.iterate(function(*args, **named))


CHOOSE = "choose without a branch: cond.select(a, b); or make the condition an fx.Constexpr"
CONDITION_HINTS = {"`and`": "combine conditions with &: (a < n) & (b < m)",
                   "`or`": "combine conditions with |: (a < n) | (b < m)",
                   "`not`": "turn a condition around with ~: ~(a < n)"}


def _device_loop() -> NotSupportedError:
    return NotSupportedError(
        "a runtime `for`: range(...) means a loop on the device, and this version of flylab has loops that unroll",
        hint="where the bounds are known while tracing: for i in fx.range_constexpr(n)",
    )


def _is_runtime(value: Any) -> bool:
    return isinstance(value, Vector) or (isinstance(value, Numeric) and not value.is_static)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, source: Source):
        self.source = source
        self.nesting = 0

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.stmt) and not isinstance(node, (*PLAIN, *HOOKED)):
            raise NotSupportedError(
                f"`{type(node).__name__}` statements cannot be traced",
                where=self._where(node),
                hint="write it with assignments, calls, if and for",
            )
        return super().visit(node)

    def _where(self, node: ast.stmt | ast.expr) -> SourceLine:
        return SourceLine.of(self.source.file, node.lineno, node.col_offset, node.end_col_offset, self.source.name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.nesting += 1
        node = self.generic_visit(node)  # type: ignore[assignment]
        self.nesting -= 1
        return node

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom | ast.Await) -> Any:
        # A generator inside of a kernel is plain Python; a kernel that yields is the reference's loop with `init=`.
        if not self.nesting:
            raise NotSupportedError(
                "`yield` of loop-carried values: this version of flylab has loops that unroll",
                where=self._where(node),
                hint="unroll the loop with fx.range_constexpr, and assign to plain variables",
            )
        return self.generic_visit(node)

    visit_YieldFrom = visit_Await = visit_Yield

    def _hooked(self, hook: str, value: ast.expr, *extra: str) -> ast.expr:
        call = ast.Call(
            ast.Attribute(ast.Name(HOOK, ast.Load()), hook, ast.Load()),
            [self.visit(value), *map(ast.Constant, extra)],
            [],
        )
        return ast.fix_missing_locations(ast.copy_location(call, value))

    def _hooked_call(self, hook: str, call: ast.Call) -> ast.expr:
        """A call through a hook, which sees the function and its arguments before the call is made."""
        call = self.generic_visit(call)  # type: ignore[assignment]
        function = ast.Attribute(ast.Name(HOOK, ast.Load()), hook, ast.Load())
        through = ast.Call(function, [call.func, *call.args], call.keywords)
        return ast.fix_missing_locations(ast.copy_location(through, call))

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
        if isinstance(node.iter, ast.Call):
            node.iter = self._hooked_call("iterate_call", node.iter)
        else:
            node.iter = self._hooked("iterate", node.iter)
        node.body = [self.visit(s) for s in node.body]
        node.orelse = [self.visit(s) for s in node.orelse]
        return node


def rewrite(source: Source) -> Rewritten:
    """The function with its control flow sent through the hooks, and its decorators taken off.

    Raises `NotSupportedError` for a kind of statement that tracing does not know, at its line.
    """
    try:
        tree = source.parse()
        tree.decorator_list = []
        tree.body = [_Rewriter(source).visit(statement) for statement in tree.body]
    except RecursionError:
        raise TraceError(
            f"an expression of '{source.name}' is nested too deeply for Python",
            where=SourceLine.of(source.file, source.first_line, function=source.name),
            hint="split it into several assignments, or build it in a loop over fx.range_constexpr(n)",
        ) from None
    return Rewritten(source, tree)


def to_function(rewritten: Rewritten, original: Callable[..., Any]) -> Callable[..., Any]:
    """The rewritten function as a callable with the original's globals, closure and defaults.

    Its code keeps the user's file and lines, so tracebacks and locations need no translation.
    """
    free = original.__code__.co_freevars
    # A function nested in a rewritten one has the hook among its free names already.
    factory = ast.parse(f"def __flylab_factory__({', '.join(dict.fromkeys((HOOK, *free)))}): pass").body[0]
    inside = _in_its_class(rewritten.tree, original.__qualname__)
    # A name of its own (or of its class) that it finds in its globals must not become a local of the factory.
    shared = [] if inside.name in free else [ast.Global([inside.name])]
    factory.body = [*shared, inside]  # type: ignore[attr-defined]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    flags = original.__code__.co_flags & __future__.annotations.compiler_flag
    compiled = compile(module, rewritten.source.file, "exec", flags, dont_inherit=True)
    code = _function_code(compiled, rewritten.tree.name)
    cells = dict(zip(free, original.__closure__ or (), strict=True))
    cells[HOOK] = types.CellType(Hooks)
    closure = tuple(cells[name] for name in code.co_freevars)
    code = code.replace(co_qualname=original.__code__.co_qualname)  # what a traceback calls it
    made = types.FunctionType(code, original.__globals__, original.__name__, original.__defaults__, closure)
    made.__kwdefaults__ = original.__kwdefaults__
    return made


def _in_its_class(tree: ast.FunctionDef, qualified: str) -> ast.FunctionDef | ast.ClassDef:
    """The function inside a class named as the one it was written in, which is what `self.__name` depends on."""
    parts = qualified.split(".")
    classes = [a for a, b in zip(parts, parts[1:], strict=False) if "<locals>" not in (a, b)]
    if not classes:
        return tree
    inside: ast.ClassDef = ast.parse(f"class {classes[-1]}: pass").body[0]  # type: ignore[assignment]
    inside.body = [tree]
    return inside


def _function_code(module: types.CodeType, name: str) -> types.CodeType:
    """The code object of the outermost function of that name in a module's code."""
    level = [module]
    while level:
        level = [c for code in level for c in code.co_consts if isinstance(c, types.CodeType)]
        for code in level:
            if code.co_name == name and code.co_flags & inspect.CO_OPTIMIZED:  # a class's code is not optimised
                return code
    raise TraceError(f"'{name}' was lost in rewriting")
