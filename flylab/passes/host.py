"""What a launcher does on the host: the kernels that it launches, in order, over which grid and with which arguments;
the lines that it prints, and what it checks.

A launcher is turned into a Python generator once: arithmetic becomes expressions, branches and loops Python's own, and
each launch, line and check a `yield`. So a launch costs no interpretation, and Ctrl-C ends a loop that does not end by
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from flylab.dialect.operations import attribute
from flylab.dtypes import DTYPES
from flylab.errors import CompileError
from flylab.passes import printf
from flylab.passes.regions import STRUCTURED, block_of
from flylab.passes.rewriter import source_line
from flylab.places import SourceLine

Values = list[Any]


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel's symbol, the grid's and the block's three extents, and the kernel's arguments, where a
    tensor is its address. `smem` is dynamic LDS in bytes. A kernel that `prints` takes the buffer for it as the last
    argument."""

    kernel: str
    extents: tuple[int, ...]
    operands: tuple[Any, ...]
    smem: int = 0
    prints: bool = False


@dataclass(frozen=True)
class HostLine:
    """A line that the launcher prints: the number of the call, and the words of its numbers."""

    site: int
    words: tuple[int, ...]


@dataclass(frozen=True)
class HostCheck:
    """A check of the launcher: its number, and whether it holds (not 0)."""

    number: int
    holds: int


Step = Launch | HostLine | HostCheck


@dataclass(frozen=True)
class HostProgram:
    """What a launcher does on the host. `text` is the Python that it became, `places` the user's line of each line."""

    text: str = ""
    places: tuple[SourceLine | None, ...] = ()
    generate: Callable[[Values], Iterator[Step]] = lambda values: iter(())

    def steps(self, values: Values) -> Iterator[Step]:
        """The launches, lines and checks for the values of the launcher's runtime arguments, one by one in order.

        Raises `CompileError`, placed at the launcher's line, for a division by zero, a shift that the width does not
        have, and a loop whose step is below 1.
        """
        try:
            yield from self.generate(values)
        except CompileError as error:
            raise error.at(self._where(error.__traceback__)) from None

    def _where(self, traceback: TracebackType | None) -> SourceLine | None:
        found = None
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == FILE:
                found = self.places[traceback.tb_lineno - 1]
            traceback = traceback.tb_next
        return found

    @classmethod
    def of(cls, text: str, places: Sequence[SourceLine | None]) -> HostProgram:
        """The program of a text that `read_host` wrote.

        Raises `SyntaxError` or `RecursionError` where it is too deep.
        """
        names: dict[str, Any] = dict(NAMES)
        exec(compile(text, FILE, "exec"), names)
        return cls(text, tuple(places), names["generate"])


FILE = "<flylab launcher>"

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
    "arith.bitcast": "w(bits({0}, '{from_type}'), {bits})",
    "llvm.ptrtoint": "w({0}, {bits})",
    "ub.poison": "0",
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


def positive(step: int) -> int:
    """The step of a loop. Raises `CompileError` for one below 1."""
    if step < 1:
        raise CompileError(f"a loop of the launcher has the step {step}", hint="a step known at launch is at least 1")
    return step


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
    "w": wrap, "u": unsigned, "div": divide, "shift": shift, "max": max, "min": min, "abs": abs, "float": float,
    "positive": positive, "bits": float_bits, "Launch": Launch, "HostLine": HostLine, "HostCheck": HostCheck,
}  # fmt: skip


def _bits(value: Any) -> int:
    text = str(value.type)
    return int(text[1:]) if text[0] == "i" and text[1:].isdigit() else 64


def _argument(index: int, kind: str) -> str:
    """A launch argument: integers, which may come from an unsigned parameter, in their signed reading."""
    return f"w(a[{index}], {kind[1:]})" if kind[0] == "i" else f"a[{index}]"


class _Writer:
    """Writes a launcher as Python: each value of MLIR is a variable, or a constant where it is one."""

    def __init__(self, function: Any):
        self.lines = ["def generate(a):"]
        self.places = [source_line(function.location)]
        self.names: dict[Any, str] = {}
        self.place: Any = function.location
        self.indent = 1
        block = block_of(function)
        self.assign(block.arguments, [_argument(i, str(v.type)) for i, v in enumerate(block.arguments)])
        self.block(block)
        self.line("yield from ()")  # a launcher without a launch is a generator too

    def line(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)
        self.places.append(source_line(self.place))

    def assign(self, values: Sequence[Any], texts: Sequence[str]) -> None:
        """All values at once, as the borders of regions hand them over."""
        for value in values:
            self.names.setdefault(value, f"v{len(self.names)}")
        if values:
            self.line(f"{', '.join(self.names[v] for v in values)} = {', '.join(texts)}")

    def texts(self, values: Sequence[Any]) -> list[str]:
        return [self.names[value] for value in values]

    def block(self, block: Any) -> list[str]:
        """The operations of a block; what its end hands over."""
        for each in block.operations:
            op = each.operation
            self.place = op.location
            if op.name in ("scf.yield", "scf.condition"):
                return self.texts(op.operands)
            if op.name in STRUCTURED:
                {"scf.if": self.branch, "scf.for": self.count, "scf.while": self.repeat}[op.name](op)
            elif op.name == "gpu.launch_func":
                self.launch(op)
            elif op.name == printf.MARK:
                self.line(f"yield HostLine({attribute(op, 'site')}, {_tuple(self.texts(op.operands))})")
            elif op.name == "fly.check":
                self.line(f"yield HostCheck({attribute(op, 'number')}, {self.names[op.operands[0]]})")
            elif op.name == "arith.constant":
                self.names[op.results[0]] = _constant(op)
            elif op.name != "func.return":
                self.assign(op.results, [_expression(op, self.texts(op.operands))])
        return []

    def branch(self, op: Any) -> None:
        self.line(f"if {self.names[op.operands[0]]}:")
        for region in range(2):
            if region:
                self.place = op.location
                self.line("else:")
            self.indent += 1
            if block_of(op, region) is not None:
                self.assign(op.results, self.block(block_of(op, region)))
            self.line("pass")
            self.indent -= 1

    def count(self, op: Any) -> None:
        start, stop, step, *carried = self.texts(op.operands)
        number, *arguments = block_of(op).arguments
        bits = _bits(number)
        if "unsignedCmp" in op.attributes:
            start, stop, step = (f"u({text}, {bits})" for text in (start, stop, step))
        # As `range` counts: a number beyond the width ends the loop, and does not wrap.
        counter = f"n{len(self.lines)}"
        self.line(f"{counter}, {counter}_by = {start}, positive({step})")
        self.assign(arguments, carried)
        self.line(f"while {counter} < {stop}:")
        self.indent += 1
        self.assign([number], [f"w({counter}, {bits})"])
        self.assign(arguments, self.block(block_of(op)))
        self.line(f"{counter} += {counter}_by")
        self.indent -= 1
        self.assign(op.results, self.texts(arguments))

    def repeat(self, op: Any) -> None:
        before, after = block_of(op, 0), block_of(op, 1)
        self.assign(before.arguments, self.texts(op.operands))
        self.line("while True:")
        self.indent += 1
        condition, *values = self.block(before)
        self.assign(op.results, values)
        self.line(f"if not {condition}: break")
        self.assign(after.arguments, self.texts(op.results))
        self.assign(before.arguments, self.block(after))
        self.line("pass")
        self.indent -= 1

    def launch(self, op: Any) -> None:
        from mlir import ir

        operands = self.texts(op.operands)
        has_smem = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[10]
        kernel = str(op.attributes["kernel"]).split("@")[-1]
        extents, arguments = operands[:6], operands[6 + has_smem :]
        smem = operands[6] if has_smem else "0"
        prints = printf.MARK in op.attributes
        self.line(f"yield Launch({kernel!r}, {_tuple(extents)}, {_tuple(arguments)}, {smem}, {prints})")


def _tuple(texts: Sequence[str]) -> str:
    return f"({''.join(text + ', ' for text in texts)})"


def _constant(op: Any) -> str:
    from mlir import ir

    value = op.attributes["value"]
    if isinstance(value, ir.FloatAttr):
        return f"float('{value.value!r}')"
    bits = _bits(op.results[0])
    # MLIR ends the process where it is asked for a value that 64 bits do not hold.
    return str(wrap(int(value.value) if bits <= 64 else int(str(value).split()[0]), bits))


def _expression(op: Any, inputs: list[str]) -> str:
    from mlir import ir

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
    source = op.operands[0] if op.operands else op.results[0]
    return rule.format(*inputs, bits=_bits(op.results[0]), from_bits=_bits(source), from_type=source.type)


def read_host(module: Any) -> HostProgram:
    """What the module's launcher does. Raises `CompileError` for host code that is no plan of launches."""
    function = next((op.operation for op in module.body.operations if op.operation.name == "func.func"), None)
    if function is None:
        return HostProgram()
    writer = _Writer(function)
    try:
        return HostProgram.of("\n".join(writer.lines) + "\n", writer.places)
    except (SyntaxError, RecursionError):  # Python takes 20 loops in one another, and 100 branches
        raise CompileError(
            "the launcher has too many branches and loops in one another",
            where=source_line(function.location),
            hint="let the launcher call fewer levels of them, or move some into the kernel",
        ) from None
