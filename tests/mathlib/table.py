"""The table of accuracies: `make math-table` measures, and writes `notebooks/reference/math_accuracy.md`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flylab
import flylab.compiler as flyc
from flylab.mathlib.accuracy import APPROXIMATE, PROMISED, Promise
from flylab.mathlib.functions import FUNCTIONS
from tests.mathlib.measure import CHIPS, measure, measure_approximation
from tests.samples import kernel_of

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "reference" / "math_accuracy.md"
COUNT = 100_000
HEAD = """# How accurate `fx.math` is

Made by `make math-table`; the promises are the rows of `flylab/mathlib/accuracy.py`. Numbers are emulated: measured on
the software device, which executes the ISA that is compiled for the chip.

An ulp is the distance of two neighbouring numbers of the result's format at the exact value (2**-149 for Float32 where
that is denormal). The exact value is Float64's. Arguments: special ones, {count} of all magnitudes, {count} in each of
the intervals where the function is interesting, and neighbours of its special points; of Float16 and BFloat16 all
numbers (pairs as for Float32). "any" says that the bound is for every argument, 0, -0, infinities, NaN and denormals
too, as C's Annex F has them: those of 16 bits are all measured; for Float32 it is what the recipes' errors come to (a
Float64 that is right to about 2**-35, rounded), and a measurement of samples. For angles the tests also try all
Float32 numbers that lie nearest to multiples of pi / 2, and `exp` and `exp2`, which compute in Float32, were tried on
every Float32 (`python -m tests.mathlib.every exp`). Denormals are kept.

No step of these functions depends on an instruction whose bits AMD does not publish (v_exp_f32, v_log_f32, v_sin_f32,
v_rcp_f32 ...: LLVM's divisions and square roots correct what they start from), so both chips, the software device and
numbers folded while tracing give the same bits; the tests check this with those instructions off by an ulp.
VALU: vector instructions for a runtime Float32 on gfx942 (and gfx950): of one call, the loading of its constants
included, and for each element of a vector of 4. Those of `sin`, `cos` and `tan` count about 45 in a branch that is
taken from 2**30 on.

| function | arguments | bound f32 | worst f32 | at | bound f16, bf16 | worst f16 | bf16 | VALU | gfx950 | each of 4 |
|---|---|---|---|---|---|---|---|---|---|---|
"""
TAIL = """
Exact, or rounded correctly, in every format they have (Float64 too): `absf`, `copysign`, `floor`, `ceil`, `trunc`,
`round`, `roundeven`, `clampf`, `isnan`, `isinf`, `isfinite`, `isnormal`, `fma` (but BFloat16's, which is rounded to
Float32 first: 0.51 ulp), `sqrt`, and the functions of integers. `sincos` has the accuracy of `sin` and `cos`, `fpowi`
that of `powf`; `rsqrt` of Float64 is two roundings.

## Under fast-math `afn`

These are the hardware's instructions, or LLVM's short forms with them. The bounds take each to be within 1 ulp, which
AMD states but for v_sin_f32 and v_cos_f32, and hold on the software device with each of them off by an ulp.

| function | arguments (Float32) | bound | worst | VALU gfx942 |
|---|---|---|---|---|
"""


def instructions(name: str, chip: str, flags: str = "", lanes: int = 1) -> float:
    """The vector instructions for each of `lanes` elements, in a kernel that loads, calls and stores."""
    def compiled(expression: str) -> int:
        with flylab.use(chip):
            part = f"fx.slice(fx.logical_divide(A, {lanes}), (None, fx.thread_idx.x))"
            launcher = kernel_of(f"x = {part}.load()\n{part}.store({expression})")["launch"]
            isa = flyc.compile(launcher, np.zeros(64 * lanes, np.float32)).isa.kernels["k"]
        return sum(i.mnemonic.startswith("v_") for i in isa.instructions)

    pair = FUNCTIONS[name].operands == 2
    flag = f", fastmath={flags!r}" if flags else ""
    # Compared with one instruction on the same operands.
    without = "x.bitcast(fx.Int32) + 1" if not pair else "(x.bitcast(fx.Int32) + (x * 0.75).bitcast(fx.Int32))"
    call = f"fx.math.{name}({'x, x * 0.75' if pair else 'x'}{flag})"
    return (compiled(call) - compiled(f"({without}).bitcast(fx.Float32)")) / lanes + 1


def row(promise: Promise, count: int = COUNT) -> str:
    """The row of a function, measured on both chips."""
    name = promise.name
    cells = [name, "any", f"{promise.single:g}"]
    found = {kind: max(measure(name, kind, chip, count) for chip in CHIPS) for kind in ("f32", "f16", "bf16")}
    cells += [f"{found['f32'].ulp:.4f}", ", ".join(f"{x:.9g}" for x in found["f32"].at), f"{promise.half:g}"]
    cells += [f"{found[kind].ulp:.4f}" for kind in ("f16", "bf16")]
    cells += [f"{instructions(name, chip):g}" for chip in CHIPS] + [f"{instructions(name, CHIPS[0], lanes=4):.3g}"]
    return "| " + " | ".join(cells) + " |\n"


def short_row(name: str, count: int = COUNT) -> str:
    """The row of a function under `afn`."""
    row = APPROXIMATE[name]
    unit = "" if row.absolute else " ulp"
    worst = max(measure_approximation(name, count, step) for step in (-1, 0, 1))
    cells = [name, f"{row.low:.4g} to {row.high:.4g}", f"{row.bound:g}{unit}", f"{worst:.3g}{unit}"]
    return "| " + " | ".join([*cells, f"{instructions(name, CHIPS[0], 'afn'):g}"]) + " |\n"


def page() -> str:
    """The whole page."""
    head = HEAD.format(count=f"{COUNT:,}")
    return head + "".join(map(row, PROMISED.values())) + TAIL + "".join(map(short_row, APPROXIMATE))


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE.name}")
