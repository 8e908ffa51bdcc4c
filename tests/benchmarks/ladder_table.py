"""What flylab makes of the kernels whose results were published, step by step: a section of kernels/README.md.

`python tests/benchmarks/isa_table.py --write` writes it. Of the shapes of a step the last one is shown. A test holds
that the committed lines are those of the present compiler and model.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from flylab.codegen.assembly.effects import effects
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.model import occupancy
from flylab.model.calibration import predict
from flylab.model.path import loops_of
from tests.benchmarks.model_table import counted
from tests.benchmarks.published import Row, rows

PAGE = Path(__file__).resolve().parents[2] / "kernels/README.md"
ABOUT = """
## The ladders

Steps from a plain kernel to a quick one, compiled for the shape and the product for which others published a time.
Written by the same command. Of the main loop, which is the longest that has none inside, `of it` are instructions,
those on the matrix units and those of LDS and memory; LDS is in bytes; waves are those that a SIMD holds at once
(modelled). The time is **modelled**, at the clock that is named in
[notebooks/reference/model.md](../notebooks/reference/model.md), where it stands beside the published one.
"""
COLUMNS = ("kernel", "step", "shape", "product", "instructions", "main loop", "of it MFMA", "of it LDS",
           "of it memory", "VGPR", "AGPR", "SGPR", "LDS", "waves a SIMD", "spills", "scratch", "us, modelled")
ABSENT = "-"


def shown() -> list[Row]:
    """The last row of each step on each product, in the order of the steps."""
    last = {(row.op, row.variant, row.product): row for row in rows()}
    return list(last.values())


def main_loop(kernel: IsaKernel) -> Sequence[Instruction]:
    """The instructions of the longest loop that has none inside; none where there is no loop."""
    loops = loops_of(kernel, [effects(each, kernel.target) for each in kernel.instructions])
    inner = [(first, last) for first, last in loops
             if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in loops)]
    first, last = max(inner, key=lambda loop: loop[1] - loop[0], default=(0, -1))
    return kernel.instructions[first:last + 1]


def line(row: Row) -> str:
    """The line of a row."""
    (step,) = row.launches
    kernel = row.compiled.isa.kernels[step.kernel]
    loop = main_loop(kernel)
    kinds = [effects(each, kernel.target).kind for each in loop]
    of_loop = [sum(kind in names for kind in kinds) for names in (("mfma",), ("lds",), ("vmem", "flat"))]
    held = occupancy(kernel, row.block, step.smem)
    (modelled,) = [predict(each) for each in counted() if (each.op, each.shape, each.variant, each.product)
                   == (row.op, row.shape, row.variant, row.product)]
    figures = [len(kernel.instructions), *([len(loop), *of_loop] if loop else [ABSENT] * 4), kernel.vgprs, kernel.agprs,
               kernel.sgprs, held.needs.lds, held.waves_per_simd, kernel.spills, kernel.scratch_bytes,
               f"{modelled.microseconds:.4g}"]
    cells = (file_of(row), f"{row.op} {row.variant}", row.shape, row.product, *figures)
    return "| " + " | ".join(map(str, cells)) + " |"


def file_of(row: Row) -> str:
    """The file of a row's kernel, as a link from kernels/README.md."""
    module = row.launcher.__module__.removeprefix("flylab.kernels.")
    return f"[{module}]({module.replace('.', '/')}.py)"


def said(row: Row) -> str:
    """The first line of what the file of a row's kernel says of itself."""
    return (import_module(row.launcher.__module__).__doc__ or "").splitlines()[0]


def section(lines: Sequence[str], chosen: Sequence[Row]) -> str:
    """The section with these lines of these rows: what each file is, and the table."""
    files = {file_of(row): said(row) for row in chosen}
    return "\n".join([ABOUT, *(f"* {file}: {words}" for file, words in files.items()), "",
                      "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|", *lines, ""])
