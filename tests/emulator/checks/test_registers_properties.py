"""The registers check against a plain interpreter on random programs, and against what matrix instructions compute."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.emulator import Program
from flylab.errors import CheckError
from flylab.mfma import INSTRUCTIONS, Mfma
from tests.emulator.checks.definedness_oracle import LANES, Wave, bits_of
from tests.emulator.checks.definedness_programs import ADDRESS, PAIRS, VECTORS, Programs
from tests.emulator.toolchain import assembly
from tests.emulator.waves import names

STEPS = 24
EVERY = (1 << LANES) - 1
START = f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v21, 2, v0
  v_lshlrev_b32_e32 {ADDRESS}, 3, v0
  s_waitcnt lgkmcnt(0)"""


def undefined(body: str, looks: Iterable[str], chip: str = "gfx942", **descriptor: int) -> dict[int, int]:
    """Runs a program, then looks at registers with all lanes active; by look the lanes (or bits) that are undefined."""
    text, ends = [START, body], []
    for look in looks:
        text.append("  s_mov_b64 exec, -1")
        ends.append(len("\n".join(text).splitlines()) + 1)
        text.append("  " + look)
    text.append("  s_endpgm")
    program = Program.from_assembly(assembly("\n".join(text), chip, **{"vgprs": 24} | descriptor))
    first = program.isa.kernels["k"].instructions[0].isa_line - 1
    by_line = {first + end - 1: n for n, end in enumerate(ends)}
    found: dict[int, int] = {}
    try:
        program.launch(grid=1, block=LANES, args=[np.zeros(LANES, np.uint32)], check=("registers",))
    except CheckError as error:
        for finding in error.findings:
            line = program.isa.kernels["k"].instructions[finding.instruction].isa_line
            assert line in by_line, str(finding)
            found[by_line[line]] = finding.details["lanes"]
    return found


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_random_programs(seed: int) -> None:
    """Every lane of every vector register, and every bit of every scalar pair, at the end of straight-line programs."""
    random = Random(seed)
    programs, wave = Programs(random), Wave()
    wave.vectors[0] = list(range(LANES))
    steps = [programs.step() for _ in range(STEPS)]
    wave.exec = EVERY
    for _, run in steps:
        run(wave)
    looks = [f"global_store_dword v21, {v}, s[4:5]" for v in VECTORS] + [f"s_mov_b64 exec, {p}" for p in PAIRS]
    wanted = [sum(1 << n for n, x in enumerate(wave.v(v)) if x is None) for v in VECTORS]
    wanted += [sum(1 << n for n, x in enumerate(wave.s(p, 64)) if x is None) for p in PAIRS]
    # A branch on SCC comes first: looking at the others changes it not.
    looks.insert(0, "s_cbranch_scc0 .Lnext\n.Lnext:")
    wanted.insert(0, EVERY if wave.scc is None else 0)
    body = "\n".join(f"  {text}" for text, _ in steps)
    found = undefined(body, looks, group_segment_fixed_size=1024)
    assert {n: lanes for n, lanes in enumerate(wanted) if lanes} == found, body


# What is put in lanes, by type: two numbers, both finite and above 0.
NUMBERS = {"f64": (0x3FF00000, 0x40000000), "f32": (0x3F800000, 0x40000000), "xf32": (0x3F800000, 0x40000000),
           "f16": (0x3C003C00, 0x40004000), "bf16": (0x3F803F80, 0x40004000), "i8": (0x01010101, 0x02020202),
           "i32": (1, 2), "fp8": (0x38383838, 0x40404040), "bf8": (0x38383838, 0x40404040)}
RESULT_NUMBERS = {"f64": (0x3FF00000, 0x40000000), "f32": (0x3F800000, 0x47000000), "i32": (1, 1 << 20)}
MATRICES = [(chip, name) for name, row in INSTRUCTIONS.items() for chip in row.chips if not row.scaled]


def _fill(first: int, count: int, masks: list[int], numbers: tuple[int, int], other: bool) -> str:
    """Registers with the first number in the lanes of a mask, and in the others the second, or nothing."""
    lines = []
    for n in range(count):
        for mask, number in ((masks[n], numbers[0]), (EVERY & ~masks[n], numbers[1]))[:1 + other]:
            if mask:
                lines += [f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}", f"s_mov_b32 exec_hi, {mask >> 32:#x}",
                          f"v_mov_b32_e32 v{first + n}, {number:#x}"]
    return "\n".join(f"  {line}" for line in lines)


def _masks(random: Random, count: int) -> list[int]:
    """The lanes that are defined: in most registers all."""
    return [EVERY & ~(1 << random.randrange(LANES)) if random.random() < 0.3 else EVERY for _ in range(count)]


def _modifiers(row: Mfma, random: Random) -> str:
    words = []
    if row.broadcasts:
        cbsz = random.randrange(row.blocks.bit_length())
        words += [f"cbsz:{cbsz}", f"abid:{random.randrange(1 << cbsz)}"]
    if row.permutes and not row.sparse:
        words.append(f"blgp:{random.randrange(8)}")
    return " " + " ".join(words) if words else ""


@pytest.mark.parametrize(("chip", "name"), MATRICES)
def test_matrix_instructions(chip: str, name: str) -> None:
    """An element of D is undefined exactly where it changes with the undefined elements of A, B and C."""
    row, random = INSTRUCTIONS[name], Random(f"{chip} {name}")
    a, b, d = row.a.registers, row.b.registers, row.result_registers
    masks = [_masks(random, count) for count in (a, b, d)]
    if row.sparse:  # elements of B that the index does not pick count for the check, and change nothing
        masks[1] = [EVERY] * b
    modifiers = _modifiers(row, random)

    def program(second: int, other: bool) -> str:
        kinds = [(32, a, NUMBERS[row.a_type]), (48, b, NUMBERS[row.b_type]), (64, d, RESULT_NUMBERS[row.result])]
        lines = [_fill(first, count, mask, (numbers[0], numbers[second]), other)
                 for (first, count, numbers), mask in zip(kinds, masks, strict=True)]
        operands = [names("v", 64, d), names("v", 32, a), names("v", 48, b)]
        # The indices of a sparse A: the first two of each four.
        lines += ["  s_mov_b64 exec, -1", "  v_mov_b32_e32 v30, 0x44444444"]
        operands.append("v30" if row.sparse else operands[0])
        return "\n".join([*lines, f"  {name} {', '.join(operands)}{modifiers}"])

    looks = [f"global_store_dword v21, v{64 + n}, s[4:5]" for n in range(d)]
    found = undefined(program(0, False), looks, chip, next_free_vgpr=128, accum_offset=128)
    one, two = (_values(program(second, True), d, chip) for second in (0, 1))
    if row.result == "f64":  # both halves of a number
        one, two = (x.view(np.uint32).reshape(d // 2, 2, LANES) for x in (one, two))
        changed = np.repeat((one != two).any(axis=1), 2, axis=0)
    else:
        changed = one != two
    wanted = {n: int(sum(1 << int(lane) for lane in np.flatnonzero(changed[n]))) for n in range(d)}
    assert {n: lanes for n, lanes in wanted.items() if lanes} == found


def _values(body: str, count: int, chip: str) -> np.ndarray:
    """The registers v64, v65 ... after a program, a row each."""
    stores = "\n".join(f"  global_store_dword v21, v{64 + n}, s[4:5]\n  s_add_u32 s4, s4, 256\n  s_addc_u32 s5, s5, 0"
                       for n in range(count))
    text = assembly(f"{START}\n{body}\n{stores}\n  s_endpgm", chip, next_free_vgpr=128, accum_offset=128)
    memory = np.zeros((count, LANES), np.uint32)
    Program.from_assembly(text).launch(grid=1, block=LANES, args=[memory], check=None)
    return memory


def test_the_oracle_knows_what_decides() -> None:
    """A 0 decides an `and` whatever the other bit is, as Memcheck has it; a sum is known below what is not."""
    wave = Wave()
    wave.set_s("s8", bits_of(0xFFFF0000))
    assert wave.s("s9") == [None] * 32
    programs = Programs(Random(0))
    text, run = next(step for step in iter(programs.logic, None) if step[0].startswith("s_and_b32 s8, s8, s9"))
    run(wave)
    assert wave.s("s8") == [0] * 16 + [None] * 16 and wave.scc is None, text
