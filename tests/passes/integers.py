"""Random integer arithmetic as MLIR text, and its value by plain Python numbers, which tests of passes compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

WIDTHS = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "index": 64}
ARGUMENTS = {"%a": "i32", "%b": "i32", "%c": "i64", "%d": "i8", "%p": "i1", "%t": "index", "%u": "index"}
IDS = {"%t": 256, "%u": 3}  # of a thread in a block of 256 by 3
HEAD = """gpu.module @kernels {
  gpu.func @f(%a: i32, %b: i32, %c: i64, %d: i8, %p: i1, %to: !fly.ptr<"f32, global">)
      kernel attributes {known_block_size = array<i32: 256, 3, 1>} {
    %t = gpu.thread_id x
    %u = gpu.thread_id y
"""
TAIL = "    gpu.return\n  }\n}\n"


class Undefined(Exception):
    """A division by zero or a shift past the width: the operation has no value."""


def two(value: int, width: int) -> int:
    """The number that the bits mean in two's complement."""
    return value - 2**width if value >= 2 ** (width - 1) else value


def _count(n: int, width: int) -> int:
    if n >= width:
        raise Undefined
    return n


def _divided(function: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    def divide(width: int, a: int, b: int) -> int:
        if b == 0:
            raise Undefined
        return function(a, b)

    return divide


# Of unsigned operands; the result is taken modulo 2**width.
BINARY: dict[str, Callable[[int, int, int], int]] = {
    "addi": lambda w, a, b: a + b,
    "subi": lambda w, a, b: a - b,
    "muli": lambda w, a, b: a * b,
    "andi": lambda w, a, b: a & b,
    "ori": lambda w, a, b: a | b,
    "xori": lambda w, a, b: a ^ b,
    "shli": lambda w, a, b: a << _count(b, w),
    "shrui": lambda w, a, b: a >> _count(b, w),
    "shrsi": lambda w, a, b: two(a, w) >> _count(b, w),
    "divui": _divided(lambda a, b: a // b),
    "remui": _divided(lambda a, b: a % b),
    "minui": lambda w, a, b: min(a, b),
    "maxui": lambda w, a, b: max(a, b),
    "minsi": lambda w, a, b: min(a, b, key=lambda x: two(x, w)),
    "maxsi": lambda w, a, b: max(a, b, key=lambda x: two(x, w)),
}
CASTS = {"extui": "<", "extsi": "<", "trunci": ">", "index_cast": "index", "index_castui": "index"}


def run(op: Any, values: Mapping[Any, int]) -> int:
    """The value of an operation's result, from those of its operands, all unsigned."""
    width = WIDTHS[str(op.results[0].type)]
    name = op.name.removeprefix("arith.")
    operands = [values[v] for v in op.operands]
    if name == "constant":
        result = int(op.attributes["value"].value)
    elif name in BINARY:
        result = BINARY[name](width, *operands)
    elif name == "select":
        result = operands[1] if operands[0] else operands[2]
    elif name in ("extsi", "index_cast"):
        result = two(operands[0], WIDTHS[str(op.operands[0].type)])
    else:
        assert name in ("extui", "trunci", "index_castui"), name
        result = operands[0]
    return result % 2**width


def body(module: Any) -> list[Any]:
    """The operations of the kernel, without its return."""
    (kernel,) = (op for op in module.body.operations[0].regions[0].blocks[0].operations if op.name != "gpu.module_end")
    return [op.operation for op in kernel.regions[0].blocks[0].operations][:-1]


def start(module: Any, arguments: Mapping[str, int]) -> dict[Any, int]:
    """The value of each argument and id of the kernel."""
    ops = body(module)
    given = [arguments[name] for name in ARGUMENTS]
    return dict(zip([*list(ops[0].block.arguments)[:5], ops[0].results[0], ops[1].results[0]], given, strict=True))


ARGUMENT_VALUES = st.fixed_dictionaries({
    name: st.one_of(
        st.integers(0, IDS[name] - 1) if name in IDS else st.integers(0, 2 ** WIDTHS[kind] - 1),
        st.sampled_from([0, 1] if name in IDS else [0, 1, 2 ** WIDTHS[kind] - 1, 2 ** (WIDTHS[kind] - 1)]),
    )
    for name, kind in ARGUMENTS.items()
})


@dataclass
class Program:
    """Lines of MLIR, and the names and types that they define."""

    lines: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=lambda: dict(ARGUMENTS))

    def add(self, kind: str, text: str) -> str:
        """Define a new name of a type; the name."""
        name = f"%{len(self.lines)}"
        self.lines.append(f"    {name} = {text}\n")
        self.kinds[name] = kind
        return name

    @property
    def text(self) -> str:
        return HEAD + "".join(self.lines) + TAIL


CONSTANTS = st.one_of(st.integers(0, 80), st.integers(0, 63).map(lambda n: 2**n), st.integers(-(2**63), 2**63 - 1))


@st.composite
def programs(draw: st.DrawFn, most: int = 10, last: str = "") -> Program:
    """Up to `most` operations; with `last`, a type, the last of them is of it."""
    program = Program()
    for _ in range(draw(st.integers(1, most))):
        _step(draw, program)
    if last and list(program.kinds.values())[-1] != last:
        _step(draw, program, last)
    return program


def _step(draw: st.DrawFn, program: Program, kind: str = "") -> None:
    kind = kind or draw(st.sampled_from(["i32", "i32", "i64", "index", "i8"]))

    def operand(kinds: tuple[str, ...], constants: bool = True) -> str:
        names = [n for n, k in program.kinds.items() if k in kinds]
        # The latest twice as often: longer chains.
        name = draw(st.sampled_from(names + names[-3:]))
        if constants and draw(st.booleans()):
            width = WIDTHS[kind]
            return program.add(kind, f"arith.constant {two(draw(CONSTANTS) % 2**width, width)} : {kind}")
        return str(name)

    name = draw(st.sampled_from([*BINARY, "addi", "addi", "muli", "andi", "select", *CASTS]))
    if name in CASTS:
        width = WIDTHS[kind]
        fits = {"<": lambda w: w < width, ">": lambda w: w > width}
        if CASTS[name] == "index":
            sources = tuple(k for k in WIDTHS if (k == "index") != (kind == "index"))
        else:
            sources = tuple(k for k, w in WIDTHS.items() if k != "index" and kind != "index" and fits[CASTS[name]](w))
        if not any(k in sources for k in program.kinds.values()):
            return _step(draw, program, kind)
        source = operand(sources, constants=False)
        program.add(kind, f"arith.{name} {source} : {program.kinds[source]} to {kind}")
    elif name == "select":
        program.add(kind, f"arith.select %p, {operand((kind,))}, {operand((kind,))} : {kind}")
    else:
        a = operand((kind,), constants=False)
        program.add(kind, f"arith.{name} {a}, {operand((kind,))} : {kind}")
    return None
