"""Structured control flow made by hand inside of a traced kernel, for tests of what lies below the front end.

Values are what kernels have: numbers, vectors and pointers. The functions are called as Python runs them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import flylab.expr as fx
from flylab.expr.emit import op
from flylab.expr.numeric import Numeric
from flylab.expr.tensor import Pointer
from flylab.expr.vector import Vector

Values = tuple[Any, ...]


def raw(value: Any) -> Any:
    return value.ir_value() if isinstance(value, Numeric) else value.value


def like(value: Any, made: Any) -> Any:
    """A value of MLIR as what `value` is."""
    if isinstance(value, Pointer):
        return Pointer(made)
    return Vector(made, value.shape, value.dtype) if isinstance(value, Vector) else type(value)(made)


def tupled(value: Any) -> Values:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def place() -> Any:
    """The location of the line that called into this file."""
    from mlir import ir

    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return ir.Location.file(frame.f_code.co_filename, frame.f_lineno, 1)


def structured(name: str, operands: list[Any], results: Values, regions: int) -> Any:
    from mlir import ir

    types = [raw(value).type for value in results]
    return ir.Operation.create(name, results=types, operands=operands, regions=regions, loc=place())


def fill(operation: Any, region: int, arguments: Values, body: Callable[..., Any], kinds: Values,
         end: str = "scf.yield") -> None:
    """A region that runs `body` on its arguments (of the kinds given), and hands over what it returns, as `kinds`."""
    from mlir import ir

    types = [raw(value).type for value in arguments]
    block = operation.regions[region].blocks.append(*types, arg_locs=[place()] * len(types))
    with ir.InsertionPoint(block):
        made = tupled(body(*(like(v, a) for v, a in zip(arguments, block.arguments, strict=True))))
        op(end, [raw(type(k)(v) if isinstance(k, Numeric) else v) for k, v in zip(kinds, made, strict=True)])


def branch(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None,
           kinds: Values = ()) -> Any:
    """`scf.if`; the results, of the kinds of `kinds`, are what the branches return."""
    made = structured("scf.if", [raw(condition)], kinds, 2)
    fill(made, 0, (), then, kinds)
    if otherwise:
        fill(made, 1, (), otherwise, kinds)
    return returned(kinds, made)


def loop(start: Any, stop: Any, step: Any, body: Callable[..., Any], *carried: Any) -> Any:
    """`scf.for`: `body(i, *carried)` returns what is carried on."""
    bounds = [value if isinstance(value, Numeric) else fx.Int32(value) for value in (start, stop, step)]
    made = structured("scf.for", [raw(value) for value in (*bounds, *carried)], carried, 1)
    fill(made, 0, (bounds[0], *carried), body, carried)
    return returned(carried, made)


def repeat(test: Callable[..., Any], body: Callable[..., Any], *carried: Any) -> Any:
    """`scf.while`: while `test(*carried)`, carried = `body(*carried)`."""
    made = structured("scf.while", [raw(value) for value in carried], carried, 2)
    fill(made, 0, carried, lambda *values: (test(*values), *values), (fx.Boolean(True), *carried), "scf.condition")
    fill(made, 1, carried, body, carried)
    return returned(carried, made)


def returned(kinds: Values, made: Any) -> Any:
    values = tuple(like(v, r) for v, r in zip(kinds, made.results, strict=True))
    return values[0] if len(values) == 1 else values
