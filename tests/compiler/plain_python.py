"""Kernels run as plain Python, one thread after another: what their control flow means without any compiler.

The text of a kernel is executed with stand-ins for flylab: the integers wrap as the machine's do, `range` counts in
Int32, decorators leave functions as they are. Nothing of flylab is used.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

THREADS = 64


class Overflow(Exception):
    """A Python number left 32 bits: whether it wraps depends on where it became one of the device."""


class Number(int):
    """An integer of a number format; of none (`bits` 0) it is a literal, which takes the other's."""

    bits, signed = 0, True

    def __new__(cls, value: Any = 0) -> Number:
        value = int(value)
        if cls.bits:
            value &= (1 << cls.bits) - 1
            value -= (1 << cls.bits) if cls.signed and value >> (cls.bits - 1) else 0
        elif not -(2**31) <= value < 2**31:
            raise Overflow
        return super().__new__(cls, value)

    def __neg__(self) -> Number:
        return type(self)(-int(self))

    def __invert__(self) -> Number:
        return type(self)(~int(self))


class Literal(Number):
    """A number that is Python's own."""


class Int32(Number):
    """The machine's int."""

    bits = 32


class Uint32(Number):
    """The machine's unsigned int."""

    bits, signed = 32, False


class Int64(Number):
    """The machine's long."""

    bits = 64


def _operation(rule: Callable[[int, int], int], swapped: bool) -> Callable[[Any, Any], Any]:
    def method(a: Any, b: Any) -> Any:
        if not isinstance(b, int):
            return NotImplemented
        wide = max(type(a), type(b), key=lambda kind: (getattr(kind, "bits", 0), not getattr(kind, "signed", True)))
        x, y = (wide(v) if getattr(wide, "bits", 0) else v for v in (a, b))
        made = wide if issubclass(wide, Number) else Literal
        return made(rule(int(y), int(x)) if swapped else rule(int(x), int(y)))

    return method


def _comparison(rule: Callable[[int, int], bool]) -> Callable[[Any, Any], Any]:
    return lambda a, b: rule(int(a), int(b)) if isinstance(b, int) else NotImplemented


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    _rule = getattr(operator, f"__{_name}__")
    setattr(Number, f"__{_name}__", _operation(_rule, swapped=False))
    setattr(Number, f"__r{_name}__", _operation(_rule, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _comparison(getattr(operator, f"__{_name}__")))
Number.__hash__ = int.__hash__  # type: ignore[method-assign]


class _Literals(ast.NodeTransformer):
    """Makes each integer of the text a `Literal`."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not int:
            return node
        made = ast.Call(ast.Name("Literal", ast.Load()), [node], [])
        return ast.fix_missing_locations(ast.copy_location(made, node))


class _Loops(ast.NodeTransformer):
    """Makes the `range` of each `for` statement count in Int32; elsewhere it is Python's."""

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range":
            node.iter.func.id = "device_range"
        return node


def expected(text: str, name: str, size: int, n: int) -> np.ndarray[Any, Any]:
    """What the function called `name` in the text, given (A, t, n), leaves in A: `size` int32, -1 at first."""
    tree = _Literals().visit(_Loops().visit(ast.parse(text)))
    names: dict[str, Any] = {
        "Literal": Literal,
        "device_range": lambda *bounds: map(Int32, range(*map(int, bounds))),
        "range": lambda *bounds: map(Literal, range(*map(int, bounds))),
        "SimpleNamespace": SimpleNamespace,
        "fx": SimpleNamespace(
            Int32=Int32, Uint32=Uint32, Int64=Int64, Boolean=bool, Float32=lambda v: np.float32(float(v)),
            range_constexpr=lambda *bounds: map(Literal, range(*map(int, bounds))), const_expr=lambda v: v,
        ),
    }
    exec(compile(tree, "<plain Python>", "exec", dont_inherit=True), names)
    written = np.full(size, -1, np.int32)
    memory = _Memory(written)
    for thread in range(THREADS):
        names[name](memory, Int32(thread), Int32(n))
    return written


class _Memory:
    """A tensor of int32."""

    def __init__(self, items: np.ndarray[Any, Any]):
        self.items = items

    def __getitem__(self, at: Any) -> Int32:
        return Int32(int(self.items[int(at)]))

    def __setitem__(self, at: Any, value: Any) -> None:
        self.items[int(at)] = int(Int32(int(value)))
