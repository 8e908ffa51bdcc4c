"""A launcher's host program written out for a plan: what is known folded, and each launch's arguments packed at once.

    v0, v1 = (_a0, w(_a3, 32))
    v2 = w(v1 // 256, 32)
    if True:
        if not (True and 1 <= v2 <= 8388607):
            return _missed
        _b0 = _f0.take()
        _p0(_b0.memory, 0, v0, v1)
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Sequence
from typing import Any

from flylab.dtypes import DType
from flylab.expr.gpu import MAX_GRID
from flylab.runtime.arguments import FORMATS, pack_number
from flylab.runtime.compiled import Compiled
from flylab.runtime.fast.arithmetic import Range, Simplifier


class Unplanned(Exception):
    """What a launcher does fits into no plan: it prints, checks, or launches in a loop or a branch."""


class Steps(ast.NodeTransformer):
    """The host program's statements with launches written out: `before` prepares them, `launches` is what is left.

    `operands` are the launcher's runtime arguments as text, with their ranges; `names` are those that the text
    needs. Raises `Unplanned`.
    """

    def __init__(self, compiled: Compiled, operands: Sequence[tuple[str, Range | None]]):
        self._compiled, self._operands = compiled, [text for text, _ in operands]
        self.kernels: list[str] = []
        self.launches: list[str] = []
        """For each of `kernels`, the arguments of `enter`, but the stream."""
        self.reports: list[str] = []
        """For each, what was launched: the kernel, its grid, block and dynamic LDS."""
        self.names: dict[str, Any] = {}
        (function,) = ast.parse(compiled.host.text).body
        assert isinstance(function, ast.FunctionDef)
        self._simpler = Simplifier(dict(operands), function.body)
        statements = [self._statement(statement) for statement in function.body if not _is_end(statement)]
        if any(isinstance(node, ast.Yield) for each in statements for node in ast.walk(each)):
            raise Unplanned
        self.before = "\n".join(map(ast.unparse, statements))

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        found: ast.stmt = self.visit(statement)
        return self._simpler.assignment(found) if isinstance(found, ast.Assign) else found

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """An operand of the launcher, `a[2]`. After the last comes the buffer for what is printed, which is none."""
        number = ast.literal_eval(node.slice)
        return _expression(self._operands[number] if number < len(self._operands) else "0")

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """A step: `yield Launch(kernel, extents, operands, smem, prints)` at the outermost level."""
        call = node.value.value if isinstance(node.value, ast.Yield) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Launch"):
            raise Unplanned
        kernel, extents, operands, smem, prints = (self._simpler.visit(each) for each in call.args)
        if ast.literal_eval(prints):
            raise Unplanned
        assert isinstance(kernel, ast.Constant) and isinstance(extents, ast.Tuple) and isinstance(operands, ast.Tuple)
        symbol, n = str(kernel.value), len(self.kernels)
        self.kernels.append(symbol)
        self.launches.append(f"_b{n}, {', '.join(map(ast.unparse, extents.elts))}, {ast.unparse(smem)}")
        grid, block = (", ".join(map(ast.unparse, each)) for each in (extents.elts[:3], extents.elts[3:]))
        self.reports.append(f"{symbol!r}, ({grid}), ({block}), {ast.unparse(smem)}")
        packing, values = self._packing(symbol, n, [ast.unparse(operand) for operand in operands.elts])
        self.names[f"_p{n}"] = packing.pack_into
        text = [f"if not ({self._possible(symbol, extents.elts)}):", " return _missed", f"_b{n} = _f{n}.take()",
                f"_p{n}({', '.join([f'_b{n}.memory', '0', *values])})"]
        # One statement, since a launch stands for one: all of it under a condition that holds.
        return ast.parse("if True:\n" + "\n".join(" " + line for line in text)).body[0]

    def visit_If(self, node: ast.If) -> ast.stmt:
        """A branch of the launcher, which must launch nothing."""
        return self._quiet(node)

    def visit_While(self, node: ast.While) -> ast.stmt:
        """A loop of the launcher, which must launch nothing."""
        return self._quiet(node)

    def _quiet(self, node: ast.stmt) -> ast.stmt:
        if any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):
            raise Unplanned
        self.generic_visit(node)
        return node

    def _possible(self, symbol: str, extents: Sequence[ast.expr]) -> str:
        """The condition under which the extents are possible: `flylab.runtime.packing.check_extents` of those that are
        known only at the launch."""
        grid, block = extents[:3], [_known(extent) for extent in extents[3:]]
        if None in block or self._compiled.blocks[symbol] not in (None, tuple(block)):
            raise Unplanned
        conditions = ["True"]
        for extent, threads, most in zip(grid, block, MAX_GRID, strict=True):
            limit = min(most, (2**32 - 1) // max(1, threads or 1))
            known = _known(extent)
            if known is None:
                conditions.append(f"1 <= {ast.unparse(extent)} <= {limit}")
            elif not 1 <= known <= limit:
                raise Unplanned
        return " and ".join(conditions)

    def _packing(self, symbol: str, n: int, operands: Sequence[str]) -> tuple[struct.Struct, list[str]]:
        """How a kernel's arguments are packed, and the values for it."""
        kernel, formats, values = self._compiled.isa.kernels[symbol], self._compiled.operand_types[symbol], []
        text, at = "<", 0
        slots = [slot for slot in kernel.args if not slot.hidden]
        if len(slots) != len(operands):
            raise Unplanned
        for i, (slot, operand, dtype) in enumerate(zip(slots, operands, formats, strict=True)):
            code, value = self._packed(operand, dtype, f"_t{n}_{i}")
            text += f"{slot.offset - at}x{code}"
            at = slot.offset + struct.calcsize("<" + code)
            values.append(value)
        return struct.Struct(text), values

    def _packed(self, operand: str, dtype: DType | None, name: str) -> tuple[str, str]:
        """The letter of a value's format, and the value; of a format that has no letter its bytes."""
        if dtype is None:
            return "Q", operand
        code = FORMATS.get((dtype.kind, dtype.bits))
        if code is None:
            self.names[name], self.names["_bytes"] = dtype, pack_number
            return f"{-(-dtype.bits // 8)}s", f"_bytes({operand}, {name})"
        return code.lower() if dtype.kind in ("int", "uint") else code, operand  # the host holds them as signed


def _is_end(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.YieldFrom)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _known(extent: ast.expr) -> int | None:
    return extent.value if isinstance(extent, ast.Constant) and isinstance(extent.value, int) else None
