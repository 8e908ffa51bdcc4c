"""Swizzles as arithmetic: the values are those of `flylab.layout`, the operations as few as the index allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.dialect.context import entered
from flylab.dialect.operations import attribute
from flylab.errors import CompileError
from flylab.layout import Swizzle
from flylab.passes.int_swizzle_simplify import IntSwizzleSimplify, fields
from tests.passes.integers import (
    ARGUMENT_VALUES,
    HEAD,
    TAIL,
    WIDTHS,
    Program,
    Undefined,
    body,
    programs,
    run,
    start,
    two,
)


@st.composite
def swizzles(draw: st.DrawFn) -> Swizzle:
    bits, base = draw(st.integers(0, 4)), draw(st.one_of(st.integers(0, 6), st.integers(20, 36)))
    apart = draw(st.one_of(st.integers(bits, bits + 4), st.integers(bits, 64 - base - bits)))
    return Swizzle(bits, base, apart if draw(st.booleans()) else -apart)


def used(name: str, kind: str) -> str:
    """An operation that uses an offset, so that it stays."""
    return f'"fly.add_offset"(%to, {name}) : (!fly.ptr<"f32, global">, {kind}) -> !fly.ptr<"f32, global">'


def swizzled(program: Program, name: str, swizzle: Swizzle) -> str:
    """Add a swizzle and an operation that uses it; its name."""
    kind = program.kinds[name]
    result = program.add(kind, f'"fly.int_swizzle"({name}) {{swizzle = "{swizzle}"}} : ({kind}) -> {kind}')
    program.add("pointer", used(result, kind))
    return result


@st.composite
def arithmetic(draw: st.DrawFn) -> Program:
    """Any arithmetic, some of it swizzled, of which some is swizzled again."""
    program = draw(programs(6))
    for _ in range(draw(st.integers(1, 3))):
        names = [n for n, k in program.kinds.items() if k in ("i32", "i64")]
        swizzled(program, draw(st.sampled_from(names + names[-2:])), draw(swizzles()))
    return program


@st.composite
def indices(draw: st.DrawFn) -> Program:
    """Sums as index arithmetic has them: coordinates in their bounds by strides, and constants, swizzled alike."""
    program = Program()
    kind = draw(st.sampled_from(["i32", "i64"]))
    strides = st.one_of(st.integers(0, 11).map(lambda n: 2**n), st.integers(-20, 80))
    constants = st.one_of(st.integers(0, 11).map(lambda n: 2**n), st.integers(-600, 600), st.integers(0, 15))

    def constant(value: int) -> str:
        return program.add(kind, f"arith.constant {value} : {kind}")

    def binary(name: str, a: str, b: str) -> str:
        return program.add(kind, f"arith.{name} {a}, {b} : {kind}")

    sources = ["%a", "%b"] if kind == "i32" else ["%c"]
    names = [*sources, *(program.add(kind, f"arith.index_cast {n} : index to {kind}") for n in ("%t", "%u"))]
    swizzle = draw(swizzles())
    for _ in range(draw(st.integers(2, 5))):
        x = draw(st.sampled_from(names))
        if draw(st.booleans()):
            x = binary(draw(st.sampled_from(["remui", "divui", "andi"])), x, constant(2 ** draw(st.integers(0, 9))))
        if draw(st.booleans()):
            x = binary("addi", x, constant(draw(constants)))
        x = binary("muli", x, constant(draw(strides)))
        if draw(st.booleans()):
            x = binary("shli", x, constant(draw(st.integers(0, 5))))
        x = binary(draw(st.sampled_from(["addi", "addi", "ori", "xori"])), x, draw(st.sampled_from(names)))
        x = binary(draw(st.sampled_from(["addi", "addi", "addi", "xori"])), x, constant(draw(constants)))
        names.append(x)
        if draw(st.booleans()):
            names.append(swizzled(program, x, swizzle))
    swizzled(program, names[-1], swizzle)
    return program


def results(module: Any, arguments: dict[str, int]) -> list[int | None]:
    """What each `fly.add_offset` adds, None where it has no value."""
    values: dict[Any, int] = start(module, arguments)
    found: list[int | None] = []
    for op in body(module)[2:]:
        if op.name == "fly.add_offset":
            found.append(values.get(op.operands[1]))
        elif all(v in values for v in op.operands):
            try:
                values[op.results[0]] = _value(op, values)
            except Undefined:
                continue
    return found


def _value(op: Any, values: dict[Any, int]) -> int:
    if op.name != "fly.int_swizzle":
        return run(op, values)
    bits, base, shift = map(int, attribute(op, "swizzle")[2:-1].split(","))
    width = WIDTHS[str(op.results[0].type)]
    return int(Swizzle(bits, base, shift)(two(values[op.operands[0]], width))) % 2**width


def simplified(module: Any) -> Any:
    IntSwizzleSimplify().run(module)
    assert module.operation.verify()
    assert not [op for op in body(module) if op.name == "fly.int_swizzle"]
    return module


def check(program: Program, runs: list[dict[str, int]]) -> None:
    from mlir import ir

    with entered():
        before, after = ir.Module.parse(program.text), simplified(ir.Module.parse(program.text))
        for arguments in runs:
            expected, got = results(before, arguments), results(after, arguments)
            for want, have in zip(expected, got, strict=True):
                assert want is None or want == have, f"{program.text}\n{after}\n{arguments}: {have} for {want}"


RUNS = st.lists(ARGUMENT_VALUES, min_size=4, max_size=8)


@settings(max_examples=300)
@given(arithmetic(), RUNS)
def test_swizzles_of_any_arithmetic(program: Program, runs: list[dict[str, int]]) -> None:
    check(program, runs)


@settings(max_examples=400)
@given(indices(), RUNS)
def test_swizzles_of_index_sums(program: Program, runs: list[dict[str, int]]) -> None:
    check(program, runs)


@given(swizzles(), st.sampled_from([8, 32, 64]), st.integers(-(2**63), 2**63 - 1), st.integers(0, 63))
def test_fields(swizzle: Swizzle, width: int, value: int, bit: int) -> None:
    """Of an integer of so many bits nothing else is changed, and nothing else is read."""
    reads, changes = fields(swizzle, width)
    value, other = (two(v % 2**width, width) for v in (value, value ^ 1 << bit % width))
    flipped, also = ((swizzle(v) ^ v) % 2**width for v in (value, other))
    assert flipped & ~changes == 0
    assert (flipped != also) == bool(reads >> bit % width & 1)


# Lines before, and how many operations other than constants are left of them, those that use the results not counted.
X = "arith.index_cast %t : index to i32"
CASES: dict[str, tuple[str, int]] = {
    "any index": ("%0 = S<3,3,3> %a", 3),
    "to higher bits": ("%0 = S<3,3,-3> %a", 3),
    "nothing to mask": ("%x = remui %a, 8\n%y = muli %x, 64\n%0 = S<3,3,3> %y", 4),
    "nothing to mask to higher bits": (f"%x = muli %a, {2**28}\n%0 = S<2,28,-2> %x", 3),
    "no bits": ("%0 = S<0,3,3> %a", 0),
    "a constant": ("%x = 197\n%0 = S<3,3,3> %x", 0),
    "a negative constant": ("%x = -197\n%0 = S<3,3,3> %x", 0),
    "small": ("%x = remui %a, 64\n%0 = S<3,3,3> %x", 1),
    "a multiple": ("%x = muli %a, 512\n%0 = S<3,3,3> %x", 1),
    "masked": ("%x = andi %a, -449\n%0 = S<3,3,3> %x", 1),
    "read bits known": ("%x = andi %a, 63\n%y = ori %x, 320\n%0 = S<3,3,3> %y", 3),
    "smaller": (f"%x = {X}\n%0 = S<3,3,3> %x", 4),
    "unrolled": ("%0 = S<3,3,3> %a\n%x = addi %a, 512\n%1 = S<3,3,3> %x\n%y = addi %a, 1024\n%2 = S<3,3,3> %y", 5),
    "unrolled backward": ("%x = addi %a, -512\n%0 = S<3,3,3> %x\n%1 = S<3,3,3> %a", 4),
    "below": ("%x = muli %a, 8\n%0 = S<3,3,3> %x\n%y = addi %x, 5\n%1 = S<3,3,3> %y", 5),
    "below with a carry": ("%x = muli %a, 2\n%y = addi %x, 7\n%0 = S<3,3,3> %y", 5),
    "above and below": ("%x = muli %a, 8\n%0 = S<3,3,3> %x\n%y = addi %x, 517\n%1 = S<3,3,3> %y", 5),
    "above, and not below": ("%x = addi %a, 513\n%0 = S<3,3,3> %x\n%y = addi %a, 1\n%1 = S<3,3,3> %y", 5),
    "within, no carry": ("%x = muli %a, 64\n%0 = S<3,3,3> %x\n%y = addi %x, 24\n%1 = S<3,3,3> %y", 5),
    "within, with a carry": ("%x = addi %a, 24\n%0 = S<3,3,3> %x", 4),
    "a row later": (
        "%x = muli %a, 64\n%y = addi %x, %b\n%0 = S<3,3,3> %y\n"
        "%z = addi %a, 8\n%u0 = muli %z, 64\n%v = addi %u0, %b\n%1 = S<3,3,3> %v", 6),
    "a stage of a loop": ("%x = muli %b, 4096\n%y = addi %x, %a\n%0 = S<3,3,3> %y\n%1 = S<3,3,3> %a", 5),
    "xor": ("%x = xori %a, 72\n%0 = S<3,3,3> %x\n%1 = S<3,3,3> %a", 4),
    "twice": ("%x = S<3,3,3> %a\n%0 = S<3,3,3> %x", 3),
    "twice and a sum": ("%x = S<3,3,3> %a\n%y = addi %x, 512\n%0 = S<3,3,3> %y", 4),
    "twice, where the sign is read and changed": ("%x = S<1,31,1> %a\n%0 = S<1,31,1> %x", 6),
    "another swizzle of a swizzle": ("%x = S<3,3,3> %a\n%0 = S<2,3,3> %x", 6),
    "equal": ("%0 = S<3,3,3> %a\n%1 = S<3,3,3> %a", 3),
    "computed again": (
        "%x = muli %a, 64\n%y = addi %x, %b\n%0 = S<3,3,3> %y\n"
        "%z = muli %a, 64\n%u0 = addi %z, 512\n%v = addi %u0, %b\n%1 = S<3,3,3> %v", 6),
    "the first step of a loop": (
        "%x = addi %a, 0\n%0 = S<3,3,3> %x\n%y = addi %a, 512\n%1 = S<3,3,3> %y", 4),
    "the sign": ("%0 = S<3,3,28> %a", 3),
    "past the highest bit": ("%0 = S<3,3,40> %a", 3),
    "never negative, past the highest bit": (f"%x = {X}\n%0 = S<3,3,40> %x", 1),
}


def text_of(case: str) -> str:
    """The short lines of a case as MLIR: a number is a constant, and every swizzle is used."""
    lines = []
    for number, line in enumerate(CASES[case][0].splitlines()):
        name, _, rest = line.partition(" = ")
        operation, *operands = rest.split()
        if operation.startswith("S<"):
            lines.append(f'{name} = "fly.int_swizzle"({operands[0]}) {{swizzle = "{operation}"}} : (i32) -> i32')
            lines.append(f"%at{number} = {used(name, 'i32')}")
        elif operation.startswith("arith."):
            lines.append(line)
        elif not operands:
            lines.append(f"{name} = arith.constant {rest} : i32")
        else:
            if not operands[1].startswith("%"):
                lines.append(f"%c{number} = arith.constant {operands[1]} : i32")
                operands[1] = f"%c{number}"
            lines.append(f"{name} = arith.{operation} {operands[0]} {operands[1]} : i32")
    return HEAD + "".join(f"    {line}\n" for line in lines) + TAIL


def shown(module: Any) -> str:
    return "".join(f"  {op}\n" for op in body(module) if op.name != "gpu.thread_id")


def after(case: str) -> Any:
    """The case after the pass and the canonicalizer that follows it."""
    from mlir import ir
    from mlir.passmanager import PassManager

    module = simplified(ir.Module.parse(text_of(case)))
    PassManager.parse("builtin.module(canonicalize)").run(module.operation)
    return module


@pytest.mark.parametrize("case", CASES)
def test_number_of_operations(case: str) -> None:
    with entered():
        module = after(case)
        names = [op.name for op in body(module)]
    assert sum(n not in ("arith.constant", "gpu.thread_id", "fly.add_offset") for n in names) == CASES[case][1]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=20)
@given(runs=RUNS)
def test_values(case: str, runs: list[dict[str, int]]) -> None:
    from mlir import ir

    with entered():
        before, module = ir.Module.parse(text_of(case)), simplified(ir.Module.parse(text_of(case)))
        for arguments in runs:
            assert results(module, arguments) == results(before, arguments)


def test_texts(golden: Callable[[str, str], None]) -> None:
    from mlir import ir

    with entered():
        parts = [
            f"// ----- {case} -----\n{shown(ir.Module.parse(text_of(case)))}becomes\n{shown(after(case))}"
            for case in CASES
        ]
    golden("int_swizzle.txt", "\n".join(parts))


def test_across_blocks() -> None:
    """What was computed before a loop is used in it; what was computed in one is not used after it."""
    from mlir import ir

    loop = """
        %zero = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %step = arith.constant 4096 : i32
        {0}
        scf.for %i = %zero to %b step %one : i32 {{
          %x = arith.muli %i, %step : i32
          %y = arith.addi %x, %a : i32
          %1 = "fly.int_swizzle"(%y) {{swizzle = "S<3,3,3>"}} : (i32) -> i32
          %at = {2}
        }}
        {1}
    """
    swizzle = '%2 = "fly.int_swizzle"(%a) {swizzle = "S<3,3,3>"} : (i32) -> i32'
    with entered():
        for places, expected in (((swizzle, ""), 1), (("", swizzle), 2)):
            module = ir.Module.parse(HEAD + loop.format(*places, used("%1", "i32")) + TAIL)
            IntSwizzleSimplify().run(module)
            assert module.operation.verify()  # a use that its definition does not dominate is refused
            assert str(module).count("arith.shrui") == expected


def test_promises_are_not_spread() -> None:
    """A sum that has no value where it overflows does not stand for one that has."""
    from mlir import ir

    lines = "%x = arith.addi %a, %b overflow<nsw> : i32\n%y = arith.addi %a, %b : i32\n"
    for number, name in enumerate("xy"):
        lines += f'%{number} = "fly.int_swizzle"(%{name}) {{swizzle = "S<3,3,3>"}} : (i32) -> i32\n'
    with entered():
        assert str(simplified(ir.Module.parse(HEAD + lines + TAIL))).count("arith.shrui") == 2


def test_long_sums_and_chains() -> None:
    from mlir import ir

    def chain(operation: str, count: int) -> str:
        lines = ["%k = arith.constant 3 : i32", "%0 = arith.addi %a, %b : i32"]
        lines += [f"%{i + 1} = {operation.format(i)} : i32" for i in range(count)]
        lines += [f'%s = "fly.int_swizzle"(%{count}) {{swizzle = "S<3,3,3>"}} : (i32) -> i32']
        return HEAD + "\n".join(lines) + TAIL

    with entered():
        for operation in ("arith.addi %{0}, %k", "arith.addi %{0}, %a", "arith.xori %{0}, %k", "arith.addi %k, %{0}"):
            simplified(ir.Module.parse(chain(operation, 3000)))


@pytest.mark.parametrize(
    "attribute, kind, message",
    [
        ('"S<3,3>"', "i32", "unexpected"),
        ('"S<3,3,1>"', "i32", "overlap"),
        ('"(8,8):(1,8)"', "i32", "(8,8):(1,8) is no swizzle"),
        ("3 : i32", "i32", "3 : i32"),
        ('"S<3,3,3>"', "i16", "i16 to i16"),
        ('"S<3,3,3>"', "index", "index to index"),
    ],
)
def test_refusals(attribute: str, kind: str, message: str) -> None:
    from mlir import ir

    line = f'%s = "fly.int_swizzle"(%x) {{swizzle = {attribute}}} : ({kind}) -> {kind} loc("k.py":7:5)\n'
    with entered():
        module = ir.Module.parse(HEAD + f"%x = arith.constant 5 : {kind}\n" + line + TAIL)
        with pytest.raises(CompileError) as caught:
            IntSwizzleSimplify().run(module)
    assert "fly.int_swizzle" in caught.value.message and message in caught.value.message
    assert caught.value.hint and caught.value.where is not None and caught.value.where.line == 7
