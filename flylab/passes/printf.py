"""Printing: `fly.printf` becomes the reservation of a record in a buffer, and the stores that fill it.

The buffer is an argument that this adds to the launcher and to each kernel that prints, the last one. It begins with
three words of 64 bits: where the next record begins, the bytes of the whole buffer, and the lines that found no room.
Behind them are the records, zero before the launch. A record is of words of 32 bits: the number of the call plus 1, the
thread (x | y << 10 | z << 20), the block's x, its y | z << 16, then the words of the numbers.

A thread reserves its record by one atomic addition, which LLVM makes one for each wave; so the records of a thread lie
in the order of its program.
"""

from __future__ import annotations

from typing import Any

from flylab.dialect.operations import attribute
from flylab.dialect.types import POINTERS
from flylab.passes.regions import branch
from flylab.passes.rewriter import Builder, erase, function_of, operations, parse_type

NEXT, CAPACITY, LOST, START = 0, 8, 16, 24
"""Offsets in the buffer in bytes."""
RECORD_WORDS = 4
"""Words of a record before those of its numbers."""
POINTER = POINTERS["global"]
ARGUMENT, MARK = "printf_buffer", "fly.printf"
ADD, MONOTONIC = 1, 2
"""The numbers of LLVM's atomic operation and ordering."""


def lower(op: Any, builder: Builder) -> Any:
    """Write the record of a `fly.printf` of a kernel; the kernel, which takes the buffer now."""
    function = function_of(op)
    buffer = _buffer(function)
    size = builder.constant(4 * (RECORD_WORDS + len(op.operands)), "i64")
    position = _add(builder, buffer, NEXT, size)
    capacity = builder.op("llvm.load", [_at(builder, buffer, CAPACITY)], "i64", alignment=_i64(8), invariant=_unit())
    end = builder.op("arith.addi", [position, size], "i64")
    fits = builder.op("arith.cmpi", [end, capacity], "i1", predicate=_i64(7))  # unsigned, less or equal
    inside, outside = branch(builder, fits)
    record = inside.op(
        "llvm.getelementptr", [buffer, position], POINTER, rawConstantIndices=_indices(-(2**31)), elem_type=_byte()
    )
    words = [inside.constant(int(attribute(op, "site")) + 1), *_place(inside), *op.operands]
    for number, word in enumerate(words):
        inside.op("llvm.store", [word, _at(inside, record, 4 * number)], alignment=_i64(4))
    _add(outside, buffer, LOST, outside.constant(1, "i64"))
    return function


def _place(builder: Builder) -> list[Any]:
    """The words that say which thread of which block it is."""
    x, y, z = (_id(builder, "gpu.thread_id", axis) for axis in "xyz")
    thread = _join(builder, _join(builder, x, y, 10), z, 20)
    x, y, z = (_id(builder, "gpu.block_id", axis) for axis in "xyz")
    return [thread, x, _join(builder, y, z, 16)]


def _id(builder: Builder, name: str, axis: str) -> Any:
    from mlir import ir

    index = builder.op(name, [], "index", dimension=ir.Attribute.parse(f"#gpu<dim {axis}>"))
    return builder.op("arith.index_castui", [index], "i32")


def _join(builder: Builder, low: Any, high: Any, shift: int) -> Any:
    return builder.op("arith.ori", [low, builder.op("arith.shli", [high, builder.constant(shift)], "i32")], "i32")


def _add(builder: Builder, buffer: Any, offset: int, value: Any) -> Any:
    """Add to a word of the buffer's head, for all of the device at once; the value before."""
    from mlir import ir

    return builder.op(
        "llvm.atomicrmw",
        [_at(builder, buffer, offset), value],
        "i64",
        bin_op=_i64(ADD),
        ordering=_i64(MONOTONIC),
        syncscope=ir.StringAttr.get("agent"),
        alignment=_i64(8),
    )


def _at(builder: Builder, pointer: Any, offset: int) -> Any:
    if not offset:
        return pointer
    return builder.op("llvm.getelementptr", [pointer], POINTER, rawConstantIndices=_indices(offset), elem_type=_byte())


def _buffer(function: Any) -> Any:
    """The argument of a function that is the buffer, added on first use."""
    from mlir import ir

    block = function.regions[0].blocks[0]
    if MARK not in function.attributes:
        function.attributes[MARK] = ir.UnitAttr.get()
        block.add_argument(parse_type(POINTER), ir.Location.name(ARGUMENT, function.location))
        types = ir.FunctionType.get([a.type for a in block.arguments], [])
        function.attributes["function_type"] = ir.TypeAttr.get(types)
    return block.arguments[len(block.arguments) - 1]


def pass_buffer(module: Any, kernels: set[str]) -> None:
    """Give the launcher the buffer, and make it pass it on to these kernels."""
    from mlir import ir

    old = []
    for launch in operations(module.operation):
        if launch.name != "gpu.launch_func" or str(launch.attributes["kernel"]).split("@")[-1] not in kernels:
            continue
        segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
        segments[-2] += 1
        Builder(launch).op(
            launch.name,
            [*launch.operands, _buffer(function_of(launch))],
            kernel=launch.attributes["kernel"],
            operandSegmentSizes=ir.DenseI32ArrayAttr.get(segments),
            **{MARK: ir.UnitAttr.get()},
        )
        old.append(launch)
    erase(old)


def _i64(value: int) -> Any:
    from mlir import ir

    return ir.IntegerAttr.get(parse_type("i64"), value)


def _indices(value: int) -> Any:
    from mlir import ir

    return ir.DenseI32ArrayAttr.get([value])


def _byte() -> Any:
    from mlir import ir

    return ir.TypeAttr.get(parse_type("i8"))


def _unit() -> Any:
    from mlir import ir

    return ir.UnitAttr.get()
