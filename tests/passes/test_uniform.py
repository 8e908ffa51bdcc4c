"""What is said to be the same for all lanes of a wave is: random programs, run for each of its lanes."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.dialect.context import entered
from flylab.passes.rewriter import operations
from flylab.passes.uniform import is_uniform, varying_bits
from tests.passes import test_known_values as control
from tests.passes.integers import ARGUMENT_VALUES, HEAD, IDS, TAIL, Program, Undefined, body, programs, run, start

WAVE = 64


@settings(max_examples=200)
@given(programs(), ARGUMENT_VALUES, st.integers(0, IDS["%t"] // WAVE - 1))
def test_other_bits_do_not_vary(program: Program, arguments: dict[str, int], wave: int) -> None:
    from mlir import ir

    with entered():
        module = ir.Module.parse(program.text)
        seen: dict[Any, list[int]] = {}
        for lane in range(WAVE):
            values = start(module, {**arguments, "%t": wave * WAVE + lane})
            with contextlib.suppress(Undefined):  # nothing after it has a value
                for op in body(module)[2:]:
                    values[op.results[0]] = run(op, values)
                    seen.setdefault(op.results[0], []).append(values[op.results[0]])
        for value, found in seen.items():
            differing = 0
            for each in found:
                differing |= each ^ found[0]
            assert differing & ~varying_bits(value) == 0, (program.text, str(value))
            assert not differing or not is_uniform(value), (program.text, str(value))


class Lane(control.Machine):
    """Runs a program; `met` has what each value was, by the turns of the blocks around it."""

    def __init__(self) -> None:
        super().__init__()
        self.met: dict[Any, int] = {}
        self.path: tuple[int, ...] = ()
        self.turns: Counter[Any] = Counter()

    def set(self, names: Any, values: list[int]) -> None:
        super().set(names, values)
        for name, value in zip(names, values, strict=True):
            # A block's arguments are set before it is entered.
            turn = (self.turns[self.path, name.owner],) if hasattr(name, "arg_number") else ()
            self.met[name, self.path + turn] = value

    def block(self, block: Any) -> list[int]:
        outside = self.path
        turn = self.turns[outside, block]
        self.turns[outside, block] += 1
        self.path = (*outside, turn)
        try:
            return super().block(block)
        finally:
            self.path = outside


THREAD = ("func.func @f(%x: i32) -> (i32, i32) attributes {known_block_size = array<i32: 256, 1, 1>} {\n"
          "%t = gpu.thread_id x\n%y = arith.index_cast %t : index to i32\n")


def values_of(root: Any) -> list[Any]:
    ops = operations(root)
    inner = [a for op in ops for region in op.regions for block in region.blocks for a in block.arguments]
    return [v for op in ops for v in op.results] + inner


@settings(max_examples=150)
@given(control.programs(), st.sampled_from([0, 1, 7, 64, 100]), st.sampled_from([0, 64, 192]))
def test_control_flow(text: str, x: int, first: int) -> None:
    """The program takes %y from the thread where claims are made, and as an argument where it is run."""
    from mlir import ir

    with entered():
        head, rest = text.split("{\n", 1)
        claimed = ir.Module.parse(THREAD + rest)
        claims = [is_uniform(v) for v in values_of(claimed.body.operations[0].operation)][2:]
        module = ir.Module.parse(f"{head}{{\n{rest}")
        function = module.body.operations[0].operation
        values = values_of(function)
        assert len(values) == len(claims)
        uniform = {v for v, claim in zip(values, claims, strict=True) if claim}
        met: dict[Any, int] = {}
        for lane in (0, 1, 2, 31, 62, 63):
            machine = Lane()
            machine.set(function.regions[0].blocks[0].arguments, [x, first + lane])
            with contextlib.suppress(control.Long):  # what it met until then counts
                machine.block(function.regions[0].blocks[0])
            for key, value in machine.met.items():
                if key[0] in uniform:
                    assert met.setdefault(key, value) == value, (text, str(key[0]))


# An i1 or integer, from %t of a block of 256 by 3 and the kernel's numbers, and whether it is found to be uniform.
FOUND = [
    ("arith.constant 64 : index", "arith.divui %t, %k : index", True),
    ("arith.constant 32 : index", "arith.divui %t, %k : index", False),
    ("arith.constant 6 : index", "arith.shrui %t, %k : index", True),
    ("arith.constant 192 : index", "arith.andi %t, %k : index", True),
    ("arith.constant 63 : index", "arith.andi %t, %k : index", False),
    ("arith.constant 128 : index", "arith.cmpi ult, %t, %k : index", True),
    ("arith.constant 128 : index", "arith.cmpi sge, %t, %k : index", True),
    ("arith.constant 128 : index", "arith.cmpi ugt, %t, %k : index", False),
    ("arith.constant 127 : index", "arith.cmpi ugt, %t, %k : index", True),
    ("arith.constant 128 : index", "arith.cmpi eq, %t, %k : index", False),
    ("arith.constant 100 : index", "arith.cmpi ult, %t, %k : index", False),
    ("arith.constant 3 : index", "arith.cmpi ult, %u, %k : index", True),
    ("arith.constant 3 : i32", "arith.cmpi slt, %a, %k : i32", True),
    ("arith.constant 0 : i32", 'llvm.call_intrinsic "llvm.amdgcn.mbcnt.lo"(%a, %k) : (i32, i32) -> i32', False),
    ("gpu.lane_id", "arith.index_cast %k : index to i32", False),
    ("arith.index_cast %t : index to i32", "rocdl.readfirstlane %k : i32", True),
]


@pytest.mark.parametrize("before, text, uniform", FOUND)
def test_found(before: str, text: str, uniform: bool) -> None:
    from mlir import ir

    with entered():
        module = ir.Module.parse(f"{HEAD}%k = {before}\n%r = {text}\n{TAIL}")
        assert is_uniform(body(module)[-1].results[0]) is uniform


def test_other_blocks() -> None:
    """A wave is 64 threads in a row: of 32 by 8 threads it has two rows, and of an unknown block nobody knows."""
    from mlir import ir

    known = "known_block_size = array<i32: 256, 3, 1>"
    lines = ("%k = arith.constant 64 : index\n%r = arith.divui %t, %k : index\n", "%r = arith.muli %u, %u : index\n")
    wanted = {"known_block_size = array<i32: 32, 8, 1>": (False, False), "": (False, False),
              "known_block_size = array<i32: 128, 2, 2>": (True, True),
              "known_block_size = array<i32: 96, 1, 1>": (True, True)}
    with entered():
        for block, expected in wanted.items():
            for line, uniform in zip(lines, expected, strict=True):
                module = ir.Module.parse(HEAD.replace(known, block) + line + TAIL)
                assert is_uniform(body(module)[-1].results[0]) is uniform, (block, line)
