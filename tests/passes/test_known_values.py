"""Whatever is known of the bits of values in branches and loops holds in every run of random programs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.dialect.context import entered
from flylab.layout import parse
from flylab.passes.int_swizzle_simplify import IntSwizzleSimplify
from flylab.passes.known_bits import Bits
from flylab.passes.known_values import KnownBits
from flylab.passes.regions import block_of, end_of
from flylab.passes.rewriter import operations
from tests.passes.integers import run, two

MOST_TURNS = 40  # of a loop: a longer one is left, and its run counts as far as it went


NUMBERS = st.sampled_from([0, 1, 3, 4, 7, 8, 12, 16, 48, 64, 255, -1, -8, 2**30, 2**31 - 1])


class Long(Exception):
    """The program runs longer than the test."""


class Text:
    """A program being drawn: its lines, and fresh names."""

    def __init__(self, draw: st.DrawFn):
        self.draw, self.lines, self.numbers = draw, list[str](), itertools.count()

    def name(self) -> str:
        return f"%v{next(self.numbers)}"

    def add(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: int) -> str:
        return self.add(f"arith.constant {value} : i32")

    def pick(self, names: list[str]) -> str:
        return str(self.draw(st.sampled_from([*names, *names[-3:]])))

    def several(self, names: list[str], count: int) -> str:
        return ", ".join(self.pick(names) for _ in range(count))

    def block(self, names: list[str], depth: int) -> list[str]:
        """Some steps; the names that can be used after them."""
        names = list(names)
        for _ in range(self.draw(st.integers(1, 3))):
            kind = self.draw(st.sampled_from(["flat", "flat", "constant", "swizzle", "if", "for", "while"]))
            if kind == "swizzle":
                spelling = self.draw(st.sampled_from(["S<3,3,3>", "S<2,0,3>", "S<1,4,-2>", "S<2,1,29>"]))
                operation = f'"fly.int_swizzle"({self.pick(names)}) {{swizzle = "{spelling}"}}'
                names.append(self.add(f"{operation} : (i32) -> i32"))
            elif kind == "constant":
                names.append(self.constant(self.draw(NUMBERS)))
            elif kind == "flat" or depth == 0:
                operation = self.draw(st.sampled_from(["addi", "addi", "muli", "andi", "ori", "xori", "subi", "minsi"]))
                names.append(self.add(f"arith.{operation} {self.pick(names)}, {self.pick(names)} : i32"))
            else:
                names += getattr(self, f"make_{kind}")(names, depth - 1)
        return names

    def moved(self, names: list[str]) -> list[str]:
        """The sum of one of the last two names, which a loop carries, and another: what a counter is."""
        first = self.draw(st.sampled_from(names[-2:]))
        return [self.add(f"arith.addi {first}, {self.pick(names)} : i32"), self.add(f"arith.addi {first}, %one : i32")]

    def make_if(self, names: list[str], depth: int) -> list[str]:
        condition = self.add(f"arith.cmpi slt, {self.pick(names)}, {self.pick(names)} : i32")
        result = self.name()
        self.lines.append(f"{result}:2 = scf.if {condition} -> (i32, i32) {{")
        self.lines.append(f"scf.yield {self.several(self.block(names, depth), 2)} : i32, i32")
        self.lines.append("} else {")
        self.lines.append(f"scf.yield {self.several(self.block(names, depth), 2)} : i32, i32")
        self.lines.append("}")
        return [f"{result}#0", f"{result}#1"]

    def make_for(self, names: list[str], depth: int) -> list[str]:
        steps = [self.constant(n) for n in (1, 2, 4, 8, 32, 2**30, 2**31 - 5)]
        result, i, a, b = (self.name() for _ in range(4))
        self.lines.append(
            f"{result}:2 = scf.for {'unsigned ' if self.draw(st.booleans()) else ''}{i} = {self.pick(names)} to "
            f"{self.pick(names)} step {self.pick([*steps, *names])} "
            f"iter_args({a} = {self.pick(names)}, {b} = {self.pick(names)}) -> (i32, i32) : i32 {{")
        inner = self.block([*names, i, a, b, *self.moved([*names, a, b])], depth)
        self.lines.append(f"scf.yield {self.several(inner, 2)} : i32, i32")
        self.lines.append("}")
        return [f"{result}#0", f"{result}#1"]

    def make_while(self, names: list[str], depth: int) -> list[str]:
        result, a, b, c, d = (self.name() for _ in range(5))
        self.lines.append(f"{result}:2 = scf.while ({a} = {self.pick(names)}, {b} = {self.pick(names)}) : "
                          "(i32, i32) -> (i32, i32) {")
        inner = self.block([*names, a, b], depth)
        condition = self.add(f"arith.cmpi ult, {self.pick(inner)}, {self.pick(inner)} : i32")
        self.lines.append(f"scf.condition({condition}) {self.several(inner, 2)} : i32, i32")
        self.lines.append(f"}} do {{\n^bb0({c}: i32, {d}: i32):")
        inner = self.block([*names, c, d, *self.moved([*names, c, d])], depth)
        self.lines.append(f"scf.yield {self.several(inner, 2)} : i32, i32")
        self.lines.append("}")
        return [f"{result}#0", f"{result}#1"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    text = Text(draw)
    names = text.block(["%x", "%y", *(text.constant(n) for n in (0, 1, 8, 16))], 2)
    for _ in range(2):
        names += getattr(text, draw(st.sampled_from(["make_for", "make_while"])))(names, 1)
    head = "func.func @f(%x: i32, %y: i32) -> (i32, i32) {\n%one = arith.constant 1 : i32\n"
    return head + "\n".join(text.lines) + f"\nreturn {text.several(names, 2)} : i32, i32\n}}"


class Machine:
    """Runs a program; `seen` gets each value that a value of the program had."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}
        self.seen: dict[Any, set[int]] = {}
        self.steps = 0

    def set(self, names: Any, values: list[int]) -> None:
        for name, value in zip(names, values, strict=True):
            self.values[name] = value
            self.seen.setdefault(name, set()).add(value)

    def get(self, names: Any) -> list[int]:
        return [self.values[name] for name in names]

    def block(self, block: Any) -> list[int]:
        """Run a block; what its end hands over."""
        for op in block.operations:
            op = op.operation
            self.steps += 1
            if self.steps > 4000:
                raise Long
            if op.name in ("scf.yield", "scf.condition", "func.return"):
                return self.get(op.operands)
            if op.name.startswith("scf."):
                self.set(op.results, getattr(self, f"run_{op.name[4:]}")(op))
            elif op.name == "arith.cmpi":
                signed = op.attributes["predicate"].value == 2
                a, b = (two(v, 32) if signed else v for v in self.get(op.operands))
                self.values[op.results[0]] = int(a < b)
            elif op.name == "fly.int_swizzle":
                swizzle = parse(op.attributes["swizzle"].value)
                self.set(op.results, [swizzle(two(self.get(op.operands)[0], 32)) % 2**32])
            else:
                self.set(op.results, [run(op, self.values)])
        return []

    def run_if(self, op: Any) -> list[int]:
        return self.block(block_of(op, 0 if self.get(op.operands)[0] else 1))

    def run_for(self, op: Any) -> list[int]:
        i, stop, step, *carried = self.get(op.operands)
        reading = (lambda v: v) if "unsignedCmp" in op.attributes else (lambda v: two(v, 32))
        for _ in turns():
            if reading(i) >= reading(stop):
                return carried
            self.set(block_of(op).arguments, [i, *carried])
            carried = self.block(block_of(op))
            i = (i + step) % 2**32
        return carried

    def run_while(self, op: Any) -> list[int]:
        carried = self.get(op.operands)
        for _ in turns():
            self.set(block_of(op, 0).arguments, carried)
            condition, *carried = self.block(block_of(op, 0))
            if not condition:
                return carried
            self.set(block_of(op, 1).arguments, carried)
            carried = self.block(block_of(op, 1))
        return carried


def turns() -> Iterator[int]:
    yield from range(MOST_TURNS)
    raise Long


ARGUMENTS = st.sampled_from([0, 1, 2, 7, 8, 64, 100, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 8])


@settings(max_examples=300)
@given(programs(), st.lists(st.tuples(ARGUMENTS, ARGUMENTS), min_size=3, max_size=6), st.booleans())
def test_every_claimed_bit_holds(text: str, runs: list[tuple[int, int]], backward: bool) -> None:
    from mlir import ir

    with entered():
        module = ir.Module.parse(text)
        function = module.body.operations[0].operation
        known = KnownBits()
        names = [v for op in operations(function) for v in op.results]
        names += [a for op in operations(function) for region in op.regions for a in region.blocks[0].arguments]
        claims = {v: known.of(v) for v in (reversed(names) if backward else names)}
        for arguments in runs:
            machine = Machine()
            machine.set(function.regions[0].blocks[0].arguments, list(arguments))
            with contextlib.suppress(Long):  # what it met until then counts
                machine.block(function.regions[0].blocks[0])
            for name, values in machine.seen.items():
                bits = claims.get(name)
                for value in values if bits else ():
                    assert bits.zeros & value == 0 and bits.ones & ~value == 0, (text, str(name), bits, value)


@settings(max_examples=200)
@given(programs(), st.lists(st.tuples(ARGUMENTS, ARGUMENTS), min_size=2, max_size=4))
def test_swizzles_simplified_in_branches_and_loops(text: str, runs: list[tuple[int, int]]) -> None:
    from mlir import ir

    with entered():
        modules = [ir.Module.parse(text), ir.Module.parse(text)]
        IntSwizzleSimplify().run(modules[1])
        modules[1].operation.verify()  # what is used is defined on every way to it
        assert "int_swizzle" not in str(modules[1])
        for arguments in runs:
            results = []
            for module in modules:
                block = module.body.operations[0].operation.regions[0].blocks[0]
                machine = Machine()
                machine.set(block.arguments, list(arguments))
                with contextlib.suppress(Long):
                    results.append(machine.block(block))
            assert len(results) < 2 or results[0] == results[1], text


def known_in(body: str, region: int = 0) -> list[Bits]:
    """What is known of the arguments and then the results of the last loop or branch of a function of %x and %n."""
    from mlir import ir

    with entered():
        module = ir.Module.parse(f"func.func @f(%x: i32, %n: i32, %p: i1) {{\n{CONSTANTS}{body}\nreturn\n}}")
        function = module.body.operations[0].operation
        op = next(op for op in reversed(operations(function)) if op.regions and op.parent == function)
        known = KnownBits()
        return [known.of(v) for v in (*(block_of(op, region).arguments), *op.results)]


CONSTANTS = "".join(f"%c{n} = arith.constant {n} : i32\n" for n in (0, 1, 3, 4, 7, 16, 64, 256, 1000))


@pytest.mark.parametrize("loop, most", [
    # A step of 64 leaves the bits below it; 256 bounds the number, the launch's number does not.
    ("scf.for %i = %c0 to %c256 step %c64 : i32 { }", [0xC0]),
    ("scf.for %i = %c0 to %n step %c64 : i32 { }", [0xFFFFFFC0]),
    ("scf.for %i = %c0 to %n step %c1 : i32 { }", [0x7FFFFFFF]),  # the last number below n, plus 1, does not wrap
    ("scf.for %i = %c16 to %c1000 step %c4 : i32 { }", [0x3FC]),
    ("scf.for %i = %x to %c1000 step %c4 : i32 { }", [0xFFFFFFFF]),
    # A counter modulo 4, and one that is moved by 16.
    ("%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c64) -> (i32, i32) : i32 {\n"
     "%s = arith.addi %a, %c1 : i32\n%m = arith.andi %s, %c3 : i32\n%d = arith.addi %b, %c16 : i32\n"
     "scf.yield %m, %d : i32, i32 }", [0x7FFFFFFF, 3, 0xFFFFFFF0, 3, 0xFFFFFFF0]),
    # A loop in a loop that carries the other's number on.
    ("%r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32) : i32 {\n"
     "%q = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (i32) : i32 {\n"
     "%s = arith.addi %b, %c4 : i32\n%m = arith.andi %s, %c7 : i32\nscf.yield %m : i32 }\n"
     "scf.yield %q : i32 }", [0x7FFFFFFF, 4, 4]),
    ("%r:2 = scf.while (%a = %c0, %b = %c4) : (i32, i32) -> (i32, i32) {\n"
     "%t = arith.cmpi ult, %a, %n : i32\n%e = arith.ori %b, %c1 : i32\nscf.condition(%t) %a, %e : i32, i32\n"
     "} do {\n^bb0(%c: i32, %d: i32):\n%s = arith.addi %c, %c64 : i32\nscf.yield %s, %d : i32, i32 }",
     [0xFFFFFFC0, 5, 0xFFFFFFC0, 5]),
    ("%r:2 = scf.if %p -> (i32, i32) { scf.yield %c16, %x : i32, i32 } else { scf.yield %c3, %c4 : i32, i32 }",
     [0x13, 0xFFFFFFFF]),
])  # fmt: skip
def test_what_is_found(loop: str, most: list[int]) -> None:
    assert [bits.most for bits in known_in(loop)] == most


def test_the_end_of_a_region_is_found() -> None:
    from mlir import ir

    with entered():
        module = ir.Module.parse("func.func @f(%p: i1) {\nscf.if %p { %x = arith.constant 1 : i32 }\nreturn\n}")
        op = module.body.operations[0].operation.regions[0].blocks[0].operations[0].operation
        assert end_of(op).name == "scf.yield" and block_of(op, 1) is None
