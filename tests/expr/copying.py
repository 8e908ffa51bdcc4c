"""Running a kernel of some lines over arrays, on a chip, for the tests of copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.targets import TARGETS
from tests.samples import cell

chips = pytest.mark.parametrize("chip", sorted(TARGETS))
FIRST_LINE = 4
"""The line of a cell that a body begins at."""


def run(body: str, *arrays: np.ndarray, chip: str, block: int = 64, rows: int = 1, grid: int = 1,
        **names: Any) -> list[str]:
    """Run a kernel of this body over `A`, `B` ...; `i` is the thread, `per(t, n)` its n elements of a tensor, and
    `atom(op, dtype)` makes an atom. The kernel's instructions."""
    parameters = ", ".join(f"{name}: fx.Tensor" for name in "ABCD"[: len(arrays)])
    given = parameters.replace(": fx.Tensor", "")
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    made = cell(
        f"@flyc.kernel\ndef k({parameters}):\n    i = fx.block_idx.x * {block} + fx.thread_idx.x\n{lines}\n\n"
        f"@flyc.jit\ndef launch({parameters}):\n    k({given}).launch(grid={grid}, block=({block}, {rows}))\n"
    )
    fx = made["fx"]
    made["atom"] = fx.make_copy_atom
    made["parts"] = lambda tensor, count: fx.logical_divide(tensor, fx.make_layout(count, 1))
    made["per"] = lambda tensor, count, thread: fx.slice(made["parts"](tensor, count), (None, thread))
    made["lds"] = lambda dtype, count: fx.SharedAllocator().allocate(fx.Array[dtype, count]).peek().view(
        fx.make_layout(count, 1))
    made.update(names)
    with flylab.use(chip):
        made["launch"](*arrays)
        compiled = flyc.compile(made["launch"], *arrays)
    return [str(instruction).strip() for instruction in compiled.isa.kernels["k"].instructions]


def of(instructions: list[str], *words: str) -> list[str]:
    """The mnemonics that begin with one of some words."""
    return [text.split()[0] for text in instructions if text.startswith(words)]
