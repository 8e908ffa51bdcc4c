"""Vector add of 2**22 floats on the software device, beside numpy's in the same run. Run by hand.

    .venv/bin/python tests/benchmarks/bench_emulator_vector_add.py

Prints the median of 5 warm runs of each and their ratio (the goal: at most 12), for blocks of 256 threads with one and
four elements each; then what the first launch of a kernel adds to a process when its handlers are in the cache on disk
(the goal: at most 20 ms), the device's own start (imports, table, core) apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.timing import median_seconds

COUNT = 1 << 22
GOAL = 12.0


def assembly(type_: str, chip: str = "gfx942") -> str:
    """c[i] = a[i] + b[i] on elements of a type."""
    from tests.emulator.toolchain import compile_for, element, kernel

    body = "".join(element(f"%p{name}", type_, f"%{name}") for name in "abc")
    body += f"""  %x = load {type_}, ptr addrspace(1) %pa
  %y = load {type_}, ptr addrspace(1) %pb
  %z = fadd {type_} %x, %y
  store {type_} %z, ptr addrspace(1) %pc"""
    return compile_for(chip, kernel("ptr %a, ptr %b, ptr %c", body))


def main() -> None:
    """Measures and prints."""
    import numpy as np

    from flylab.emulator import Program

    random = np.random.default_rng(0)
    a, b = (random.random(COUNT, dtype=np.float32) for _ in range(2))
    c, wanted = np.zeros_like(a), a + b
    for type_, width in (("float", 1), ("<4 x float>", 4)):
        device = Program.from_assembly(assembly(type_))

        def launch(device: Program = device, width: int = width) -> object:
            return device.launch(grid=COUNT // 256 // width, block=256, args=[a, b, c])

        ours = median_seconds(launch) * 1e3
        assert np.array_equal(c, wanted)
        numpy_ms = median_seconds(lambda: np.add(a, b, out=c)) * 1e3
        ratio = f"ratio {ours / numpy_ms:.1f} (goal {GOAL:.0f})"
        print(f"{width} a thread: {ours:.2f} ms, np.add {numpy_ms:.2f} ms, {ratio}")
    # In a process of its own, which has llvmlite loaded as any that compiles, and no handler.
    script = f"""
import time, llvmlite.binding, numpy as np
a = np.zeros(256, "f4")
begin = time.perf_counter()
from flylab.emulator import Program
from flylab.emulator.program import core_addresses, device_tables
device_tables(), core_addresses()
start = time.perf_counter()
device = Program.from_assembly({assembly("float")!r})
device.launch(grid=1, block=256, args=[a, a, a])
first = time.perf_counter()
device.launch(grid=1, block=256, args=[a, a, a])
print((start - begin) * 1e3, (2 * first - start - time.perf_counter()) * 1e3)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          cwd=Path(__file__).resolve().parents[2])
    begin, first = (float(word) for word in done.stdout.split())
    print(f"the device starts in {begin:.1f} ms, and the first launch adds {first:.1f} ms (goal 20)")


if __name__ == "__main__":
    for name in [n for n in os.environ if n.startswith("OPENBLAS_")]:
        del os.environ[name]
    main()
