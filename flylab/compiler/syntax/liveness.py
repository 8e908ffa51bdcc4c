"""Which names are read after a piece of control flow, and at the head of a loop: only these are carried and merged.

A name that is bound anew before it is read needs no value at the head of a loop, and one that nothing reads afterwards
none behind it; so a temporary may hold another type each time, as in Python.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from flylab.compiler.syntax.names import captured, certain, declared, reads, walk

Names = frozenset[str]
NONE: Names = frozenset()
SEES_ALL = frozenset({"locals", "vars", "eval", "exec", "dir"})


@dataclass
class Liveness:
    """The live names of one function: after each `if`, `for` and `while`, and at the head of each loop."""

    always: Names
    """Names that may be read at any time: those of nested functions, and those declared global or nonlocal."""
    after: dict[ast.stmt, Names] = field(default_factory=dict)
    head: dict[ast.stmt, Names] = field(default_factory=dict)
    _loops: list[tuple[Names, Names]] = field(default_factory=list)

    @classmethod
    def of(cls, function: ast.FunctionDef | ast.ClassDef, nodes: list[ast.AST]) -> Liveness:
        """Of a function, or class, with these nodes in its scope."""
        if not any(isinstance(node, (ast.If, ast.For, ast.While)) for node in nodes):
            return cls(NONE)
        body = function.body
        always = captured(nodes) | declared(nodes, ast.Nonlocal) | declared(nodes, ast.Global)
        if isinstance(function, ast.ClassDef) or SEES_ALL & reads(*body):
            always |= {n.id for n in nodes if isinstance(n, ast.Name)}
        found = cls(frozenset(always))
        found._block(body, NONE)
        return found

    def _block(self, statements: list[ast.stmt], live: Names) -> Names:
        for statement in reversed(statements):
            live = self._statement(statement, live)
        return live

    def _statement(self, node: ast.stmt, live: Names) -> Names:
        if isinstance(node, ast.If):
            self.after[node] = live | self.always
            return self._block(node.body, live) | self._block(node.orelse, live) | reads(node.test)
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, live)
        if isinstance(node, ast.With):
            return self._block(node.body, live) | reads(*(i.context_expr for i in node.items))
        if isinstance(node, ast.Try):
            return self._try(node, live)
        if isinstance(node, ast.Return):
            return frozenset(reads(node.value))
        if isinstance(node, ast.Break):
            return self._loops[-1][0]
        if isinstance(node, ast.Continue):
            return self._loops[-1][1]
        return (live - certain(node)) | reads(node) | _updated(node)

    def _try(self, node: ast.Try, live: Names) -> Names:
        """An exception may leave any statement: what the handlers read is live throughout."""
        behind = live | self._block(node.finalbody, live)
        for handler in node.handlers:
            behind |= self._block(handler.body, behind)
        inner = self._block(node.body, behind | self._block(node.orelse, behind))
        return inner | behind | reads(*(h.type for h in node.handlers))

    def _loop(self, node: ast.For | ast.While, live: Names) -> Names:
        behind = self._block(node.orelse, live)
        head = behind
        while True:
            before = head
            self._loops.append((live, head))
            body = self._block(node.body, head)
            self._loops.pop()
            if isinstance(node, ast.For):
                body -= {n.id for n in walk(node.target) if isinstance(n, ast.Name)}
            head = behind | body | (frozenset(reads(node.test)) if isinstance(node, ast.While) else NONE)
            if head <= before:
                break
            head |= before
        broken = live if any(isinstance(n, ast.Break) for n in walk(*node.body)) else NONE  # past the `else`
        self.after[node], self.head[node] = behind | broken | self.always, head | self.always
        return head | (frozenset(reads(node.iter)) if isinstance(node, ast.For) else NONE)


def _updated(node: ast.stmt) -> set[str]:
    """The names that a statement reads and writes at once, and those that it deletes."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return {t.id for t in node.targets if isinstance(t, ast.Name)} if isinstance(node, ast.Delete) else set()
