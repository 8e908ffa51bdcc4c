"""LDS in convert-fly-to-rocdl: what a kernel allocates becomes variables of LLVM in address space 3.

The parts of a struct become a variable each, so that LLVM knows that what is written to one is not read from another;
where their places beside each other can be seen (a pointer to the whole is used, or an address is taken), they lie in
one variable at their offsets. LLVM gives each variable its place.
"""

from __future__ import annotations

from typing import Any

from flylab.dialect.operations import attribute, mlir_ir
from flylab.dialect.types import POINTERS, of_mlir
from flylab.passes.host import wrap
from flylab.passes.known_values import known_integer
from flylab.passes.rewriter import Builder, function_of, parse_type

SPACE = "shared"
DYNAMIC = "lds.dynamic"
"""The variable without a size that LLVM places behind all others: the dynamic LDS of a launch."""


class SharedMemory:
    """The variables of the module's kernels."""

    def __init__(self, ops: list[Any]):
        self.seen = {function_of(op) for op in ops
                     if op.name == "fly.ptrtoint" and of_mlir(op.operands[0].type).space == SPACE}
        """The kernels that take the address of something in LDS."""
        self.variables: dict[str, Any] = {}
        self.extents: dict[str, tuple[int, int]] = {}
        """The bytes and the alignment of each variable so far."""

    def static(self, op: Any, builder: Builder) -> Any:
        """The pointer of a `fly.shared_alloc`; None where each of its parts is a variable."""
        function, name = function_of(op), attribute(op, "symbol")
        parted = all(use.owner.operation.name == "fly.shared_part" for use in op.results[0].uses)
        if parted and function not in self.seen:
            return None
        return self._variable(builder, function, name, int(attribute(op, "bytes")), int(attribute(op, "align")))

    def part(self, op: Any, whole: Any, builder: Builder) -> Any:
        """The pointer of a `fly.shared_part` of what `static` gave."""
        if whole is not None:
            return _at(builder, whole, int(attribute(op, "offset")))
        align = of_mlir(op.results[0].type).known_align
        return self._variable(builder, function_of(op), "", int(attribute(op, "bytes")), align)

    def dynamic(self, op: Any, builder: Builder) -> Any:
        """The pointer of a `fly.shared_dynamic`."""
        base = self._address(builder, function_of(op), DYNAMIC, 0, int(attribute(op, "align")))
        return _at(builder, base, int(attribute(op, "offset")))

    def _variable(self, builder: Builder, function: Any, name: str, size: int, align: int) -> Any:
        # With a dot, which no kernel's name has.
        own = f"{_name(function)}.{f'smem.{name}' if name else f'lds.{len(self.variables)}'}"
        return self._address(builder, function, own, size, align)

    def _address(self, builder: Builder, function: Any, name: str, size: int, align: int) -> Any:
        """The address of a variable, which is made or grows as needed."""
        from mlir import ir

        if name not in self.variables:
            self.variables[name] = _global(function, name)
        variable = self.variables[name]
        before_size, before_align = self.extents.get(name, (0, 1))
        self.extents[name] = size, align = max(size, before_size), max(align, before_align)
        variable.attributes["global_type"] = ir.TypeAttr.get(parse_type(f"!llvm.array<{size} x i8>"))
        variable.attributes["alignment"] = ir.IntegerAttr.get(parse_type("i64"), align)
        return builder.op("llvm.mlir.addressof", [], POINTERS[SPACE], global_name=ir.FlatSymbolRefAttr.get(name))


def _name(function: Any) -> str:
    from mlir import ir

    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _global(function: Any, name: str) -> Any:
    """A variable beside the kernel, without a size yet.

    It is external: of a variable that it sees all uses of, LLVM drops what reads it before it was written.
    """
    from mlir import ir

    attributes = dict(
        sym_name=ir.StringAttr.get(name),
        global_type=ir.TypeAttr.get(parse_type("!llvm.array<0 x i8>")),
        linkage=ir.Attribute.parse("#llvm.linkage<external>"),
        addr_space=ir.IntegerAttr.get(parse_type("i32"), 3),
        dso_local=ir.UnitAttr.get(),
    )
    with ir.InsertionPoint(function):
        return ir.Operation.create("llvm.mlir.global", regions=1, attributes=attributes, loc=function.location)


def _at(builder: Builder, base: Any, offset: int) -> Any:
    ir = mlir_ir()
    if offset == 0:
        return base
    steps, byte = ir.DenseI32ArrayAttr.get([offset]), ir.TypeAttr.get(parse_type("i8"))
    return builder.op("llvm.getelementptr", [base], POINTERS[SPACE], rawConstantIndices=steps, elem_type=byte)


def moved_in_lds(builder: Builder, base: Any, offset: Any, width: int) -> Any:
    """The LDS pointer `base` moved by `offset` elements of `width` bytes, a power of 2.

    A known part of a sum is added last, where instructions take it as their offset and what is before it is shared by
    all atoms of a tile; `swizzle ^ 32` becomes one exclusive or of the bytes that are computed for `swizzle` anyway.
    Addresses have 32 bits and wrap, so products and sums may change places.
    """
    value, added = _apart(offset, "arith.addi")
    value, flipped = _apart(value, "arith.xori")
    if value is None:
        return _at(builder, base, wrap((flipped + added) * width, 32))
    kind = str(value.type)
    scaled = builder.op("arith.muli", [value, builder.constant(width, kind)], kind) if width > 1 else value
    if flipped:
        scaled = builder.op("arith.xori", [scaled, builder.constant(flipped * width, kind)], kind)
    return _at(builder, gep(builder, base, scaled, SPACE, 8), wrap(added * width, 32))


def _apart(value: Any, name: str) -> tuple[Any, int]:
    """A value without the known operand of an operation of this name; of a known value None and its number."""
    if value is None:
        return None, 0
    known = known_integer(value)
    if known is not None:
        return None, known
    made = value.owner
    if getattr(made, "name", "") == name and (known := known_integer(made.operands[1])) is not None:
        return made.operands[0], known
    return value, 0


def gep(builder: Builder, base: Any, index: Any, space: str, bits: int) -> Any:
    """The pointer `base` moved by a number of elements of so many bits."""
    ir = mlir_ir()
    steps, element = ir.DenseI32ArrayAttr.get([-(2**31)]), ir.TypeAttr.get(parse_type(f"i{bits}"))
    return builder.op("llvm.getelementptr", [base, index], POINTERS[space], rawConstantIndices=steps, elem_type=element)
