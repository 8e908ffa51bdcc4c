"""What every pass of ours shares: the operations in order, and replacing them one by one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flylab.dialect.operations import build, mlir_ir
from flylab.dtypes import DType
from flylab.errors import CompileError
from flylab.locks import cached_property
from flylab.places import SourceLine
from flylab.targets import Target


@dataclass(frozen=True)
class Pass:
    """A pass: its name in the pipeline, and `run`, which changes a module in place."""

    name: str

    def for_chip(self, target: Target) -> Pass:
        """The pass as it is for a chip; most are the same for all."""
        return self

    def run(self, module: Any) -> None:
        """Run on a builtin.module."""
        raise CompileError(f"pass {self.name} does nothing")


def operations(root: Any) -> list[Any]:
    """Every operation inside `root`, outer before inner, in program order."""
    from mlir import ir

    found: list[Any] = []

    def take(op: Any) -> Any:
        found.append(op)
        return ir.WalkResult.ADVANCE

    # MLIR's own walk: four times as fast as one through the lists of regions, blocks and operations.
    root.walk(take, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def functions(module: Any) -> Iterator[Any]:
    """The `func.func`s and `gpu.func`s of a module."""
    return (op for op in operations(module.operation) if op.name in ("func.func", "gpu.func"))


def function_of(op: Any) -> Any:
    """The kernel or launcher that an operation is in."""
    while op.name not in ("gpu.func", "func.func"):
        op = op.parent.operation
    return op


def attributes_of(op: Any) -> tuple[tuple[str, Any], ...]:
    """The attributes of an operation as a key: names and values. (The text of MLIR's own map is its address.)"""
    found = op.attributes
    return tuple((name, found[name]) for name in found)


class Builder:
    """Makes operations just before a given one, with its location.

    With `shared`, the constants made so far, each is made once in a block: for a pass that goes in program order.
    """

    def __init__(self, before: Any, shared: dict[Any, Any] | None = None):
        self.before = before
        self.point = mlir_ir().InsertionPoint(before)
        self.shared = shared

    @cached_property
    def block(self) -> Any:
        """The block that the operations are made in."""
        return self.before.block

    def fly(self, name: str, operands: list[Any], results: list[Any], **attributes: Any) -> Any:
        """A Fly operation; its first result."""
        return build(f"fly.{name}", operands, results, attributes, loc=self.before.location, point=self.point)

    def op(self, name: str, operands: list[Any], result: Any = None, **attributes: Any) -> Any:
        """An operation of an upstream dialect with at most one result (given by type, or as text); its result."""
        ir = mlir_ir()
        types = [] if result is None else [result if isinstance(result, ir.Type) else parse_type(result)]
        made = ir.Operation.create(
            name, results=types, operands=operands, attributes=attributes, loc=self.before.location, ip=self.point
        )
        return made.results[0] if types else None

    def intrinsic(self, name: str, operands: list[Any], result: str | None = None) -> Any:
        """A call of an intrinsic of LLVM; its result, if it has one."""
        return self.op("llvm.call_intrinsic", operands, result, **_of_intrinsic(name, len(operands)))

    def constant(self, value: int, kind: str = "i32") -> Any:
        """An integer constant."""
        key = None if self.shared is None else (self.block, value, kind)
        found = self.shared.get(key) if self.shared else None
        if found is None:
            found = self.op("arith.constant", [], kind, value=mlir_ir().IntegerAttr.get(parse_type(kind), value))
            if self.shared is not None:
                self.shared[key] = found
        return found


@functools.cache
def _of_intrinsic(name: str, operands: int) -> dict[str, Any]:
    """The attributes of a call of an intrinsic."""
    ir = mlir_ir()
    return {"intrin": ir.StringAttr.get(name), "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([operands, 0])}


_types: dict[str, Any] = {}


def parse_type(text: str) -> Any:
    """An upstream type from its text (remembered: parsing costs more than anything else here)."""
    found = _types.get(text)
    if found is None:
        from mlir import ir

        found = _types[text] = ir.Type.parse(text)
    return found


def erase(ops: list[Any]) -> None:
    """Erase operations whose uses are only among themselves, last first."""
    for op in reversed(ops):
        op.erase()


def unused(op: Any) -> bool:
    """True where no result of an operation is used."""
    return all(next(iter(result.uses), None) is None for result in op.results)


def axis_of(op: Any) -> int:
    """The dimension that an operation such as `gpu.thread_id` asks for: 0 for x, 1 for y, 2 for z."""
    return "xyz".index(str(op.attributes["dimension"]).removeprefix("#gpu<dim ").removesuffix(">"))


def source_line(location: Any) -> SourceLine | None:
    """The user's line of an MLIR location, or None where it came from none."""
    while location.is_a_name():
        location = location.child_loc
    if location.is_a_fused():
        return next((line for line in map(source_line, location.locations) if line), None)
    if location.is_a_callsite():
        return source_line(location.callee)
    if location.is_a_file():
        return SourceLine.of(location.filename, location.start_line, location.start_col - 1)
    return None


def carrier(dtype: DType) -> str:
    """The MLIR type that holds an element in memory operations: LLVM has no floats below 16 bits, so their bits."""
    return f"i{dtype.bits}" if dtype.is_small_float else dtype.mlir
