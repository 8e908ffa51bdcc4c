"""Constants of packed instructions: every kind LLVM folds into one, on both chips, against this machine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from tests.emulator.snippets import Snippet
from tests.emulator.test_differential import check, chip_text
from tests.emulator.toolchain import CHIPS, IDS, WAVES, assembly, compile_for

# Bits of halves: small integers of both signs, both halves of the inline floats in each format, and some of no kind.
HALVES = (0, 1, 2, 15, 64, 65, 0xFFFF, 0xFFF0, 0xFFEF, 0x3C00, 0xBC00, 0x3800, 0x3F80, 0xBF80, 0x3F00, 0x4000, 0xC080,
          0x4400, 0x3118, 0x3E22, 0xF983, 0x8000, 0x7FFF)
INTEGER_CALLS = ("smax", "smin", "umax", "umin", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat")
FLOAT_CALLS = {"maxnum": 2, "minnum": 2, "maximum": 2, "minimum": 2}
WIDE = ("0.0", "1.0", "-1.0", "2.0", "0x36A0000000000000", "0x3FC45F3060000000", "3.0")


def literal(type_: str, low: int, high: int) -> str:
    """A vector constant of two 16-bit elements."""
    write = "{} 0xH{:04X}" if type_ == "half" else "{} {}"
    return f"<{write.format(type_, low)}, {write.format(type_, high)}>"


def with_constant(type_: str, operation: str, low: int, high: int) -> Iterator[Snippet]:
    """An operation with a constant on either side, or three-operand ones with it in one place."""
    vector, constant = f"<2 x {type_}>", literal(type_, low, high)
    name = f"{operation} {low:#x} {high:#x}"
    if operation in ("shl", "lshr", "ashr"):
        if max(low, high) < 16:
            yield Snippet(name, (vector,), vector, f"  %r = {operation} {vector} %x0, {constant}")
        body = f"  %n = and {vector} %x0, splat (i16 15)\n  %r = {operation} {vector} {constant}, %n"
        yield Snippet(f"{name} first", (vector,), vector, body)
    elif operation in INTEGER_CALLS or operation in FLOAT_CALLS:
        full = f"llvm.{operation}.v2{'f16' if type_ == 'half' else type_}"
        yield Snippet(name, (vector,), vector, f"  %r = call {vector} @{full}({vector} %x0, {vector} {constant})",
                      f"declare {vector} @{full}({vector}, {vector})")
    else:
        yield Snippet(name, (vector,), vector, f"  %r = {operation} {vector} %x0, {constant}")
        if "sub" in operation:
            yield Snippet(f"{name} first", (vector,), vector, f"  %r = {operation} {vector} {constant}, %x0")


def snippets(seed: int) -> list[Snippet]:
    """Every operation with pairs of HALVES: the equal ones, those with 0, and a sample of the others."""
    pairs = list(itertools.product(HALVES, HALVES))
    chosen = [p for p in pairs if p[0] == p[1] or 0 in p or 0xFFFF in p or p in ((0xF983, 0x3E22), (0x3E22, 0xF983))]
    found = []
    operations = [("i16", o) for o in ("add", "sub", "mul", "shl", "lshr", "ashr", *INTEGER_CALLS)]
    operations += [("half", o) for o in ("fadd", "fsub", "fmul", *FLOAT_CALLS)]
    for number, (type_, operation) in enumerate(operations):
        for low, high in chosen[(seed + number) % 2::2]:
            numbers = [n & 0x7FFF for n in (low, high)]
            if type_ == "i16" or max(numbers) < 0x7C00:  # not the NaNs
                found += with_constant(type_, operation, low, high)
    return found


SNIPPETS = {chip: snippets(n) for n, chip in enumerate(CHIPS)}
BATCH = 200
BATCHES = [(chip, first) for chip in CHIPS for first in range(0, len(SNIPPETS[chip]), BATCH)]


@pytest.mark.parametrize("chip, first", BATCHES)
def test_packed_constants_as_on_this_machine(chip: str, first: int) -> None:
    check(chip, 2, SNIPPETS[chip][first:first + BATCH])


@pytest.mark.parametrize("chip", CHIPS)
def test_packed_floats_with_constants(chip: str) -> None:
    """Pairs of 32-bit floats."""
    found = [Snippet(f"{operation} {low} {high}", ("<2 x float>",), "<2 x float>",
                     f"  %r = {operation} <2 x float> %x0, <float {low}, float {high}>")
             for operation in ("fadd", "fmul", "fsub") for low, high in itertools.product(WIDE, WIDE)]
    check(chip, 2, found)


def test_the_constants_are_really_folded() -> None:
    """The batches above hold what they are for: packed constants of each kind, picked from each half."""
    some = SNIPPETS["gfx942"][::3]
    text = "".join(chip_text(n, s) for n, s in enumerate(some))
    declarations = "\n".join(sorted({s.declarations for s in some}))
    listing = compile_for("gfx942", IDS + WAVES + "\n" + declarations + text)
    kinds = {"integer": r"v_pk_\w+_[iub]16 .*, -?\d+( |$)", "float for integers": r"v_pk_\w+_[iub]16 .*, -?\d\.\d+",
             "float for halves": r"v_pk_\w+_f16 .*, -?\d\.\d+", "integer for halves": r"v_pk_\w+_f16 .*, \d+( |$)"}
    for name, pattern in kinds.items():
        lines = [line for line in listing.split("\n") if re.search(pattern, line)]
        assert any("op_sel:" in line for line in lines) and any("op_sel" not in line for line in lines), name


@pytest.mark.parametrize("operand, low, high", [
    ("1.0", 0x3C00, 0), ("-4.0", 0xC400, 0), ("3", 3, 0), ("-16", 0xFFF0, 0xFFFF), ("0.15915494", 0x3118, 0)])
def test_halves_of_a_constant(operand: str, low: int, high: int) -> None:
    """0 plus both halves of a constant in their order, then the other way round."""
    body = f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  v_mov_b32_e32 v2, 0
  v_pk_add_f16 v3, v2, {operand}
  v_pk_add_f16 v4, v2, {operand} op_sel:[0,1] op_sel_hi:[0,0]
  global_store_dword v1, v3, s[4:5]
  global_store_dword v1, v4, s[4:5] offset:256
  s_endpgm
"""
    found = np.zeros(128, "u4")
    Program.from_assembly(assembly(body)).launch(grid=1, block=64, args=[found])
    assert found[0] == low | high << 16 and found[64] == high | low << 16


@pytest.mark.parametrize("instruction, why", [
    ("v_pk_add_u16 v2, v2, 16256", "no room for the constant 16256"), ("v_pk_add_f16 v2, v2, 1.5", "the constant 1.5"),
    ("v_pk_add_f32 v[2:3], v[2:3], 1.0", "the upper half of a constant"),
    ("v_pk_mov_b32 v[2:3], v[2:3], 1 op_sel:[0,1]", "the upper half of a constant"),
    ("v_pk_mov_b32 v[2:3], v[2:3], 0x1234", "no room for the constant 0x1234"),
    ("v_pk_mov_b32 v[2:3], v[2:3], v[4:5] neg_lo:[1,0]", "it takes no 'neg_lo")])
def test_constants_that_no_packed_instruction_holds(instruction: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match=why):
        Program.from_assembly(assembly(f"  {instruction}\n  s_endpgm")).load("k")
