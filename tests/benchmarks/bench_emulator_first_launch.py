"""What the first launch of a new kernel adds to a process whose handlers are on disk. Run by hand.

    .venv/bin/python tests/benchmarks/bench_emulator_first_launch.py

For kernels of about 10 to 600 instructions, the median of 5 fresh processes of: from `Program.from_assembly(text)` to
the end of a launch of one workgroup, less the time of a second launch. The goal is at most 20 ms. A process has
llvmlite imported, as any that compiles has, and has started the device (its imports, table and core), which is printed
apart. `--profile` prints where the time goes in the largest kernel.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
PROCESSES = 5
GOAL = 20.0

SCRIPT = """
import sys, time, llvmlite.binding, numpy as np
text = sys.stdin.read()
arrays = [np.ones(1 << 16, "u1") for _ in range(3)]
begin = time.perf_counter()
from flylab.emulator import Program
from flylab.emulator.program import core_addresses, device_tables
device_tables(), core_addresses()
start = time.perf_counter()
device = Program.from_assembly(text)
device.launch(grid=1, block=256, args=arrays)
first = time.perf_counter()
device.launch(grid=1, block=256, args=arrays)
end = time.perf_counter()
print((start - begin) * 1e3, (2 * first - start - end) * 1e3, (end - first) * 1e3)
"""
PROFILED = """
import cProfile, pstats, sys, llvmlite.binding, numpy as np
text = sys.stdin.read()
arrays = [np.ones(1 << 16, "u1") for _ in range(3)]
from flylab.emulator import Program
from flylab.emulator.program import core_addresses, device_tables
device_tables(), core_addresses()
def first():
    Program.from_assembly(text).launch(grid=1, block=256, args=arrays)
profile = cProfile.Profile()
profile.runcall(first)
pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
"""


def listings() -> dict[str, str]:
    """Assembly of element-wise kernels and of a GEMM through LDS, by what they compute."""
    from tests.benchmarks.bench_emulator_gemm import kernel_ir
    from tests.emulator.toolchain import compile_for, element, kernel

    def of(type_: str, body: str, declarations: str = "") -> str:
        loads = "".join(element(f"%p{name}", type_, f"%{name}") for name in "abc")
        loads += f"  %x = load {type_}, ptr addrspace(1) %pa\n  %y = load {type_}, ptr addrspace(1) %pb\n"
        text = loads + body + f"\n  store {type_} %z, ptr addrspace(1) %pc"
        return compile_for("gfx942", kernel("ptr %a, ptr %b, ptr %c", text, declarations))

    def call(function: str, type_: str) -> tuple[str, str, str]:
        mangled = f"llvm.{function}.{'v' + type_[1:].split()[0] if type_[0] == '<' else ''}f32"
        return type_, f"  %z = call {type_} @{mangled}({type_} %x)", f"declare {type_} @{mangled}({type_})"

    return {"GEMM of 128": compile_for("gfx942", kernel_ir("gfx942", 128)),
            "vector add": of("float", "  %z = fadd float %x, %y"),
            "exp": of(*call("exp", "float")),
            "sin of 4": of(*call("sin", "<4 x float>")), "exp of 16": of(*call("exp", "<16 x float>")),
            "division of 4 i64": of("<4 x i64>", "  %z = udiv <4 x i64> %x, %y"),
            "division of 16 f32": of("<16 x float>", "  %z = fdiv <16 x float> %x, %y")}


def measure(text: str) -> tuple[float, float, float]:
    """Milliseconds of the device's start, of what the first launch adds, and of a later launch."""
    found = []
    for _ in range(1 + PROCESSES):  # the first fills the cache
        done = subprocess.run([sys.executable, "-c", SCRIPT], input=text, capture_output=True, text=True, check=True,
                              cwd=ROOT)
        found.append([float(word) for word in done.stdout.split()])
    start, first, later = (statistics.median(column) for column in zip(*found[1:], strict=True))
    return start, first, later


def main() -> None:
    """Measures and prints."""
    from flylab.codegen.isa import Isa

    texts = listings()
    sizes = {name: len(next(iter(Isa.parse(text).kernels.values())).instructions) for name, text in texts.items()}
    for name, text in sorted(texts.items(), key=lambda item: sizes[item[0]]):
        start, first, later = measure(text)
        print(f"{name:20} {sizes[name]:4} instructions: the first launch adds {first:5.1f} ms (goal {GOAL:.0f}), "
              f"a later one takes {later:.2f} ms; the device started in {start:.0f} ms", flush=True)
    if "--profile" in sys.argv:
        largest = texts[max(sizes, key=lambda name: sizes[name])]
        subprocess.run([sys.executable, "-c", PROFILED], input=largest, text=True, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
