"""What watching costs on the software device: the GEMM and the vector add plain, checked, and counted. By hand.

    .venv/bin/python tests/benchmarks/bench_emulator_watched.py

For each chip and kernel prints the median of 5 warm runs on two threads, and the ratios to the plain run in the same
process (the goals: checks at most 5, counters at most 3).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.bench_emulator_gemm import THREADS, TILE, kernel_ir
from tests.benchmarks.bench_emulator_vector_add import COUNT, assembly
from tests.benchmarks.timing import median_seconds

SIZE = 1024
WATCHED: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("plain", {"check": None}, 1.0), ("checked", {"check": "all"}, 5.0),
    ("counted", {"check": None, "counters": True}, 3.0))


def gemm(chip: str) -> Callable[..., Any]:
    """A launch of the f16 GEMM of `bench_emulator_gemm.py`."""
    import numpy as np

    from flylab.emulator import Program
    from tests.emulator.toolchain import compile_for

    random, c = np.random.default_rng(0), np.zeros((SIZE, SIZE), np.float32)
    a, b = (random.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in range(2))
    device = Program.from_assembly(compile_for(chip, kernel_ir(chip, SIZE)))
    return lambda **watch: device.launch(grid=(SIZE // TILE, SIZE // TILE), block=256, args=[a, b, c], **watch)


def vector_add(type_: str, width: int, chip: str) -> Callable[..., Any]:
    """A launch of the vector add of `bench_emulator_vector_add.py`, on elements of a type that is so many floats."""
    import numpy as np

    from flylab.emulator import Program

    a, b, c = (np.ones(COUNT, np.float32) for _ in range(3))
    device = Program.from_assembly(assembly(type_, chip))
    return lambda **watch: device.launch(grid=COUNT // 256 // width, block=256, args=[a, b, c], **watch)


KERNELS: dict[str, Callable[[str], Callable[..., Any]]] = {
    "GEMM": gemm, "vector add": partial(vector_add, "float", 1),
    "vector add of four": partial(vector_add, "<4 x float>", 4)}


def main() -> None:
    """Measures and prints."""
    for chip in ("gfx942", "gfx950"):
        for kernel, make in KERNELS.items():
            launch, plain = make(chip), 0.0
            for name, watch, goal in WATCHED:
                seconds = median_seconds(lambda launch=launch, watch=watch: launch(**watch))
                plain = plain or seconds
                print(f"{chip} {kernel} {name}: {seconds * 1e3:.1f} ms, {seconds / plain:.2f} times the plain "
                      f"run (goal {goal})")


if __name__ == "__main__":
    os.environ["FLYLAB_EMULATOR_THREADS"] = str(THREADS)
    main()
