"""Whatever `known_bits` claims holds for random arithmetic on random numbers, and what it should find it finds."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.dialect.context import entered
from flylab.passes.known_bits import RULES, Bits, induction
from flylab.passes.known_values import KnownBits
from tests.passes.integers import (
    ARGUMENT_VALUES,
    BINARY,
    CASTS,
    HEAD,
    TAIL,
    Program,
    Undefined,
    body,
    programs,
    run,
    start,
    two,
)


@settings(max_examples=400)
@given(programs(), st.lists(ARGUMENT_VALUES, min_size=4, max_size=8))
def test_every_claimed_bit_holds(program: Program, runs: list[dict[str, int]]) -> None:
    from mlir import ir

    with entered():
        module = ir.Module.parse(program.text)
        known = KnownBits()
        claims = {op.results[0]: known.of(op.results[0]) for op in reversed(body(module))}
        for arguments in runs:
            values = start(module, arguments)
            for op in body(module)[2:]:
                try:
                    value = values[op.results[0]] = run(op, values)
                except Undefined:
                    break  # nothing after it has a value
                bits = claims[op.results[0]]
                assert bits.zeros & value == 0 and bits.ones & ~value == 0, (str(op), bits, value)
                assert bits.zeros & bits.ones == 0 and (bits.zeros | bits.ones) >> bits.width == 0


def masks(width: int) -> st.SearchStrategy[Bits]:
    """What may be known of a number: bits known 0, bits known 1, and the rest."""
    trits = st.lists(st.sampled_from("01?"), min_size=width, max_size=width)
    return trits.map(lambda t: Bits(width, *(sum(1 << i for i, c in enumerate(t) if c == known) for known in "01")))


def members(bits: Bits) -> list[int]:
    return [x for x in range(2**bits.width) if not x & bits.zeros and not ~x & bits.ones]


EXACT = ("addi", "subi", "andi", "ori", "xori")


@pytest.mark.parametrize("name", BINARY)
@given(masks(4), masks(4))
def test_rules_against_all_numbers_of_4_bits(name: str, a: Bits, b: Bits) -> None:
    """A rule claims nothing wrong; those of sums and of single bits claim all that is true."""
    claimed = RULES[f"arith.{name}"](4, a, b)
    zeros = ones = 15
    for x in members(a):
        for y in members(b):
            try:
                result = BINARY[name](4, x, y) % 16
            except Undefined:
                continue
            zeros, ones = zeros & ~result, ones & result
    assert claimed.zeros & ~zeros == 0 and claimed.ones & ~ones == 0
    if name in EXACT:
        assert (claimed.zeros, claimed.ones) == (zeros, ones)


@given(masks(4), masks(4), masks(4), st.booleans())
def test_induction_against_all_loops_of_4_bits(start: Bits, stop: Bits, step: Bits, unsigned: bool) -> None:
    """Of every number that a loop's variable has, even where it wraps around."""
    claimed = induction(4, start, stop, step, unsigned)

    def reading(x: int) -> int:
        return x if unsigned else two(x, 4)

    for first, last, by in itertools.product(members(start), members(stop), members(step)):
        for turn in range(16):
            i = (first + turn * by) % 16
            if reading(i) >= reading(last):
                break
            assert not claimed.zeros & i and not claimed.ones & ~i, (first, last, by, i)


def test_every_rule_is_tested_here() -> None:
    assert {name.removeprefix("arith.") for name in RULES} == {*BINARY, *CASTS, "select"}


def known(lines: str, head: str = HEAD) -> Bits:
    """The known bits of the last value of a kernel."""
    from mlir import ir

    with entered():
        module = ir.Module.parse(head + lines + TAIL)  # what ends with the module must not be read after it
        return KnownBits().of(body(module)[-1].results[0])


def ops(*lines: str) -> str:
    constants = "".join(f"%k{n} = arith.constant {n} : i32\n" for n in (1, 3, 7, 12, 16, 64))
    return constants + "%x = arith.index_cast %t : index to i32\n" + "".join(f"{line} : i32\n" for line in lines)


@pytest.mark.parametrize(
    "lines, most, ones",
    [
        ((), 255, 0),
        (("%0 = arith.muli %x, %k16",), 0xFF0, 0),
        (("%0 = arith.muli %x, %k12",), 0xFFC, 0),
        (("%0 = arith.muli %x, %k16", "%1 = arith.addi %0, %k7"), 0xFF7, 7),
        (("%0 = arith.remui %a, %k64",), 63, 0),
        (("%0 = arith.remui %a, %k12",), 15, 0),
        (("%0 = arith.muli %a, %k16", "%1 = arith.remui %0, %k64"), 0x30, 0),
        (("%0 = arith.divui %x, %k16",), 15, 0),
        (("%0 = arith.divui %x, %k12",), 31, 0),
        (("%0 = arith.andi %a, %k12", "%1 = arith.ori %0, %k3"), 15, 3),
        (("%0 = arith.shli %a, %k16", "%1 = arith.shrui %0, %k12"), 0xFFFF0, 0),
        (("%0 = arith.minui %a, %k12",), 15, 0),
    ],
)
def test_what_index_arithmetic_needs_is_found(lines: tuple[str, ...], most: int, ones: int) -> None:
    bits = known(ops(*lines))
    assert (bits.most, bits.ones) == (most, ones)


@pytest.mark.parametrize(
    "attributes, op, most",
    [
        ("known_block_size = array<i32: 256, 3, 1>", "gpu.thread_id y", 3),
        ("known_block_size = array<i32: 256, 3, 1>", "gpu.thread_id z", 0),
        ("known_block_size = array<i32: 256, 3, 1>", "gpu.thread_id x upper_bound 65", 127),
        ("known_grid_size = array<i32: 5, 1, 1>", "gpu.block_id x", 7),
        ("known_grid_size = array<i32: 5, 1, 1>", "gpu.thread_id x", 2**64 - 1),
        ("rocdl.max_flat_work_group_size = 1024 : i32", "gpu.thread_id x", 1023),
        ("rocdl.max_flat_work_group_size = 1024 : i32", "gpu.block_id x", 2**64 - 1),
    ],
)
def test_ids_are_bounded_by_the_kernel(attributes: str, op: str, most: int) -> None:
    head = f"gpu.module @kernels {{\n gpu.func @f() kernel attributes {{{attributes}}} {{\n"
    assert known(f"%x = {op}\n", head).most == most


def test_a_long_chain_and_what_is_no_integer() -> None:
    chain = "".join(f"%{i + 1} = arith.addi %{i}, %k16 : i32\n" for i in range(5000))
    assert known(ops("%0 = arith.muli %a, %k16") + chain).most == 2**32 - 16
    wide = "%w = arith.constant 5 : i128\n%0 = arith.trunci %w : i128 to i32\n"
    assert known(wide) == Bits(32)
    assert known("%f = arith.constant 1.0 : f32\n") == Bits(0)
    vector = "%v = arith.constant dense<4> : vector<4xi32>\n%0 = arith.addi %v, %v : vector<4xi32>\n"
    assert known(vector) == Bits(0)


def test_known_bits_of_nothing_more_than_types() -> None:
    values: Any = known("")
    assert values.width == 64 and values.most == 3  # %u, below 3
