"""The integer arithmetic of a host program, made cheaper by what is known of its numbers.

Every value there is wrapped to its width by a call, and divided by another one, since nothing is known of it. In a plan
the ranges of the arguments are known, so most wraps do nothing, and a division by a known divisor is Python's own. What
is computed twice is computed once. The rules know the expressions of `flylab.passes.host.EXPRESSIONS`; any other one
stays as it is.

    v8 = v2 - div(v2, 256) * 256          v8 = v2 % 256 if v2 >= 0 else -(-v2 % 256)
    v25 = w(v8 + 1, 32)                   v25 = v8 + 1
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

Range = tuple[int, int]
"""The least and the greatest value."""

_BITWISE = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}


class Simplifier(ast.NodeTransformer):
    """Rewrites expressions, and remembers what it knows of names: those of `known`, and the variables assigned so far.

    Variables of branches and loops are assigned several times, and nothing is known of them.
    """

    def __init__(self, known: Mapping[str, Range | None], statements: Sequence[ast.stmt]):
        self._ranges: dict[str, Range | None] = dict(known)
        self._aliases: dict[str, ast.expr] = {}
        self._computed: dict[str, str] = {}
        inner = [node for each in statements if isinstance(each, ast.If | ast.While) for node in ast.walk(each)]
        self._unsteady = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}

    def assignment(self, node: ast.Assign) -> ast.stmt:
        """An assignment at the outermost level, simplified: `v3 = ...` or `v0, v1 = ..., ...`."""
        (target,) = node.targets
        several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        pairs = zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]  # type: ignore
        values = [self._known_as(each, self.visit(value)) for each, value in pairs]
        node.value = ast.Tuple(values, ast.Load()) if several else values[0]
        return node

    def _known_as(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value, or the name of a variable that holds it; from now on the target is known to be it."""
        assert isinstance(target, ast.Name)
        found = self.range_of(value)
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        if names & self._unsteady or target.id in self._unsteady:
            return value
        if found is not None:
            self._ranges[target.id] = found
        first = self._computed.setdefault(ast.dump(value), target.id)
        if first != target.id:
            value = ast.Name(first, ast.Load())
        if isinstance(value, ast.Name | ast.Constant):
            self._aliases[target.id] = value
        return value

    def range_of(self, node: ast.expr) -> Range | None:
        """What is known of an expression that is simplified, None where nothing is."""
        if isinstance(node, ast.Constant):
            return (node.value, node.value) if type(node.value) is int else None
        if isinstance(node, ast.Name):
            return self._ranges.get(node.id)
        if isinstance(node, ast.Compare):
            return 0, 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.range_of(node.operand)
            return inner and (-inner[1], -inner[0])
        if isinstance(node, ast.IfExp):
            either = self.range_of(node.body), self.range_of(node.orelse)
            return _hull(either)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
            ends = [self.range_of(each) for each in node.args]
            of = max if node.func.id == "max" else min
            return None if None in ends else (of(r[0] for r in ends if r), of(r[1] for r in ends if r))
        return self._of_operation(node) if isinstance(node, ast.BinOp) else None

    def _of_operation(self, node: ast.BinOp) -> Range | None:
        left, right = self.range_of(node.left), self.range_of(node.right)
        if isinstance(node.op, ast.Mod | ast.BitAnd) and right is not None and right[0] == right[1] > 0:
            return 0, right[1] - isinstance(node.op, ast.Mod)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left[0] + right[0], left[1] + right[1]
        if isinstance(node.op, ast.Sub):
            return left[0] - right[1], left[1] - right[0]
        if isinstance(node.op, ast.Mult):
            products = [a * b for a in left for b in right]
            return min(products), max(products)
        if isinstance(node.op, ast.FloorDiv) and right[0] == right[1] > 0:
            return left[0] // right[0], left[1] // right[0]
        if type(node.op) in _BITWISE:
            bits = max((end if end >= 0 else ~end).bit_length() for end in (*left, *right))
            return 0 if min(left[0], right[0]) >= 0 else -1 << bits, (1 << bits) - 1
        return None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A variable, or what it is another name of."""
        return self._aliases.get(node.id, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Arithmetic; the remainder `a - div(a, b) * b` as Python's own where the divisor is known."""
        taken = _remainder(node)
        found = taken and self._towards_zero(self.visit(taken[0]), self.visit(taken[1]), "%")
        if found:
            return found
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A wrap, an unsigned reading, a division or a shift count."""
        self.generic_visit(node)
        if _is(node, "div"):
            return self._towards_zero(node.args[0], node.args[1], "//") or node
        if not (_is(node, "w") or _is(node, "u") or _is(node, "shift")):
            return node
        value, bits = node.args[0], ast.literal_eval(node.args[1])
        low, high = (-1 << bits - 1, (1 << bits - 1) - 1) if _is(node, "w") else (0, (1 << bits) - 1)
        if _is(node, "shift"):
            high = bits - 1
        found = self.range_of(value)
        if found is not None and low <= found[0] and found[1] <= high:
            return value
        if _is(node, "u"):
            return _expression(f"({ast.unparse(value)}) & {high}")
        if _is(node, "w"):
            return _expression(f"(({ast.unparse(value)}) + {high + 1} & {2 * high + 1}) - {high + 1}")
        return node

    def _towards_zero(self, number: ast.expr, divisor: ast.expr, operator: str) -> ast.expr | None:
        """The quotient or remainder of a division towards zero; None where it is not simpler."""
        by, of = self.range_of(divisor), self.range_of(number)
        if by is None or by[0] != by[1] or by[0] < 1 or not isinstance(number, ast.Name):
            return None
        a, b = ast.unparse(number), by[0]
        if of is not None and of[0] >= 0:
            return _expression(f"{a} {operator} {b}")
        return _expression(f"{a} {operator} {b} if {a} >= 0 else -(-{a} {operator} {b})")


def _is(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == name


def _remainder(node: ast.BinOp) -> tuple[ast.expr, ast.expr] | None:
    """The number and the divisor where an expression is `a - div(a, b) * b`."""
    times = node.right
    if not (isinstance(node.op, ast.Sub) and isinstance(times, ast.BinOp) and isinstance(times.op, ast.Mult)):
        return None
    if not (isinstance(times.left, ast.Call) and _is(times.left, "div")):
        return None
    number, divisor = times.left.args
    same = ast.dump(number) == ast.dump(node.left) and ast.dump(divisor) == ast.dump(times.right)
    return (number, divisor) if same else None


def _hull(ranges: Sequence[Range | None]) -> Range | None:
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
