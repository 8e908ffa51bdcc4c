"""What a launcher does on the host, read from its IR: which kernels it launches, over which grid, with which arguments.

The launcher's arithmetic (grids computed from runtime integers) is turned into a Python expression once, so that a
launch costs no interpretation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.dialect.operations import attribute
from flylab.dtypes import DTYPES
from flylab.errors import CompileError
from flylab.passes import printf
from flylab.passes.rewriter import operations, source_line

Values = list[Any]


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel's symbol, and functions of the host arguments that give its extents and operands.

    `extents(values)` is (grid x, y, z, block x, y, z); `operands(values)` the kernel's arguments, where a tensor is
    its address. `smem` is dynamic LDS in bytes. A kernel that `prints` takes the buffer for it as the last argument.
    """

    kernel: str
    extents: Callable[[Values], tuple[int, ...]]
    operands: Callable[[Values], tuple[Any, ...]]
    smem: int
    prints: bool = False


@dataclass(frozen=True)
class HostLine:
    """A line that the launcher prints: the number of the call, and the words of its numbers."""

    site: int
    words: Callable[[Values], tuple[int, ...]]


@dataclass(frozen=True)
class HostCheck:
    """A check of the launcher: its number, and a function that gives (condition,)."""

    number: int
    condition: Callable[[Values], tuple[Any, ...]]


Step = Launch | HostLine | HostCheck
"""What a launcher does, one after the other."""


# The Python of each host operation on integers held as signed numbers of their width (so a true i1 is -1): `w` wraps to
# the result's width, `u` gives the unsigned reading.
EXPRESSIONS = {
    "arith.addi": "w({0} + {1}, {bits})",
    "arith.subi": "w({0} - {1}, {bits})",
    "arith.muli": "w({0} * {1}, {bits})",
    "arith.divsi": "w(div({0}, {1}), {bits})",
    "arith.remsi": "({0} - div({0}, {1}) * {1})",
    "arith.divui": "w(div(u({0}, {bits}), u({1}, {bits})), {bits})",
    "arith.remui": "w(u({0}, {bits}) - div(u({0}, {bits}), u({1}, {bits})) * u({1}, {bits}), {bits})",
    "arith.andi": "({0} & {1})",
    "arith.ori": "({0} | {1})",
    "arith.xori": "({0} ^ {1})",
    "arith.shli": "w({0} << shift({1}, {bits}), {bits})",
    "arith.shrsi": "({0} >> shift({1}, {bits}))",
    "arith.shrui": "w(u({0}, {bits}) >> shift({1}, {bits}), {bits})",
    "arith.maxsi": "max({0}, {1})",
    "arith.minsi": "min({0}, {1})",
    "arith.maxui": "w(max(u({0}, {bits}), u({1}, {bits})), {bits})",
    "arith.minui": "w(min(u({0}, {bits}), u({1}, {bits})), {bits})",
    "math.absi": "w(abs({0}), {bits})",
    "arith.select": "({1} if {0} else {2})",
    "arith.index_cast": "w({0}, {bits})",
    "arith.index_castui": "w(u({0}, {from_bits}), {bits})",
    "arith.extsi": "{0}",
    "arith.extui": "w(u({0}, {from_bits}), {bits})",
    "arith.trunci": "w({0}, {bits})",
    "llvm.ptrtoint": "w({0}, {bits})",
    "arith.bitcast": "w(bits({0}, '{from_type}'), {bits})",
}
PREDICATES = ("==", "!=", "<", "<=", ">", ">=")
UNSIGNED_PREDICATES = {6: "<", 7: "<=", 8: ">", 9: ">="}


def wrap(value: int, bits: int) -> int:
    """An integer as a signed number of so many bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    """The unsigned reading of a signed number of so many bits."""
    return value & ((1 << bits) - 1)


def divide(a: int, b: int) -> int:
    """Division towards zero. Raises `CompileError` for a divisor of 0."""
    if b == 0:
        raise CompileError("the launcher divides by zero", hint="check the extent that it divides by")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def shift(count: int, bits: int) -> int:
    """A shift count. Raises `CompileError` for one that the width does not have."""
    if not 0 <= count < bits:
        raise CompileError(f"the launcher shifts an integer of {bits} bits by {count}", hint="check the shift count")
    return count


def float_bits(value: float, kind: str) -> int:
    """The bits of a launcher's float argument in a format of MLIR's name."""
    import numpy

    dtype = next(d for d in DTYPES.values() if d.mlir == kind).to_numpy()
    with numpy.errstate(over="ignore"):
        return int(numpy.array(value).astype(dtype).view(f"u{dtype.itemsize}"))


NAMES = {
    "bits": float_bits,
    "w": wrap, "u": unsigned, "div": divide, "shift": shift, "max": max, "min": min, "abs": abs, "float": float
}


def _bits(value: Any) -> int:
    text = str(value.type)
    return int(text[1:]) if text[0] == "i" and text[1:].isdigit() else 64


def _argument(index: int, kind: str) -> str:
    """A launch argument: integers, which may come from an unsigned parameter, in their signed reading."""
    return f"w(a[{index}], {kind[1:]})" if kind[0] == "i" else f"a[{index}]"


class _Reader:
    """Host values as Python expressions over the list `a` of the launcher's arguments."""

    def __init__(self, function: Any):
        arguments = function.regions[0].blocks[0].arguments
        self.text = {argument: _argument(i, str(argument.type)) for i, argument in enumerate(arguments)}

    def read(self, op: Any) -> None:
        if not op.results:
            return
        inputs = [self.text[v] for v in op.operands]
        self.text[op.results[0]] = self._expression(op, inputs)

    def _expression(self, op: Any, inputs: list[str]) -> str:
        from mlir import ir

        if op.name == "arith.constant":
            value = op.attributes["value"]
            if isinstance(value, ir.FloatAttr):
                return f"float('{value.value!r}')"
            return str(wrap(int(value.value), _bits(op.results[0])))
        if op.name == "llvm.getelementptr":
            width = int(str(ir.TypeAttr(op.attributes["elem_type"]).value)[1:]) // 8
            offset = inputs[1] if len(inputs) > 1 else str(list(op.attributes["rawConstantIndices"])[0])
            return f"({inputs[0]} + {offset} * {width})"
        if op.name == "arith.cmpi":
            number = ir.IntegerAttr(op.attributes["predicate"]).value
            if number in UNSIGNED_PREDICATES:
                bits = _bits(op.operands[0])
                return f"-(u({inputs[0]}, {bits}) {UNSIGNED_PREDICATES[number]} u({inputs[1]}, {bits}))"
            return f"-({inputs[0]} {PREDICATES[number]} {inputs[1]})"
        rule = EXPRESSIONS.get(op.name)
        if rule is None:
            raise CompileError(
                f"the launcher computes with {op.name}, which only a kernel can",
                where=source_line(op.location),
                hint="a launcher computes grids from integers; move other arithmetic into the kernel",
            )
        from_bits = _bits(op.operands[0])
        return rule.format(*inputs, bits=_bits(op.results[0]), from_bits=from_bits, from_type=op.operands[0].type)

    def function(self, values: list[Any]) -> Callable[[Values], tuple[Any, ...]]:
        items = "".join(self.text[v] + ", " for v in values)
        return eval(f"lambda a: ({items})", dict(NAMES))  # type: ignore[no-any-return]


def read_launches(module: Any) -> list[Step]:
    """The launches of the module's launcher, and the lines it prints, in order.

    Raises `CompileError` for host code that is no launch plan.
    """
    launches: list[Step] = []
    for function in (op.operation for op in module.body.operations):
        if function.name != "func.func":
            continue
        reader = _Reader(function)
        for op in operations(function):
            if op.name == "fly.check":
                launches.append(HostCheck(int(attribute(op, "number")), reader.function([op.operands[0]])))
            elif op.name == printf.MARK:
                launches.append(HostLine(int(attribute(op, "site")), reader.function(list(op.operands))))
            elif op.name != "gpu.launch_func":
                reader.read(op)
            else:
                launches.append(_launch(reader, op))
    return launches


def _launch(reader: _Reader, op: Any) -> Launch:
    from mlir import ir

    operands = list(op.operands)
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    has_smem = segments[10]
    smem = int(eval(reader.text[operands[6]])) if has_smem else 0
    kernel = str(op.attributes["kernel"]).split("@")[-1]
    arguments = operands[6 + has_smem :]
    return Launch(kernel, reader.function(operands[:6]), reader.function(arguments), smem,
                  prints=printf.MARK in op.attributes)
