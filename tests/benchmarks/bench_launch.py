"""What a warm launch costs until the driver's function is entered, beside a bare ctypes call of it. Run by hand.

    .venv/bin/python tests/benchmarks/bench_launch.py

The launcher takes two tensors, an Int32 and a Constexpr, and computes its grid from the Int32, which changes from call
to call. The driver is the tests' stand-in for AMD's HIP library, through AMD's bindings: it notes when
`hipModuleLaunchKernel` is entered. The GPU is one that reads the host's memory in place (an MI300A), so that nothing is
copied. Prints medians of many calls, their goals and their ratios to a ctypes call of the same function with as many
arguments; then the software device's whole launch of 1024 elements, with and without checks.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

CALLS, COUNT = 20_000, 1024
JIT_GOAL, COMPILED_GOAL = 12.0, 5.0
LAUNCHER = """
@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int]):
    i = gpu.block_id("x") * block + gpu.thread_id("x")
    if i < n:
        B[i] = A[i] + B[i]

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, block: fx.Constexpr[int] = 256):
    add(A, B, n, block).launch(grid=(fx.ceildiv(n, block),), block=(block,))
"""


def median_us(call: Callable[[int], object], end: Callable[[], int], calls: int = CALLS) -> float:
    """The median microseconds from a call to `end`; the call gets a number that changes."""
    times = []
    for i in range(calls):
        start = time.perf_counter_ns()
        call(COUNT - i % 256)
        times.append(end() - start)
    return statistics.median(times) / 1e3


def to_the_driver(launch: Any, arrays: dict[str, Any]) -> None:
    """Calls through `@flyc.jit` and through the compiled callable, until the driver is entered."""
    import flylab
    import flylab.compiler as flyc
    from tests.runtime.hip.standin import MI300A, standing_in

    with standing_in(MI300A) as hip, flylab.use("hip"):
        function = hip.library.hipModuleLaunchKernel
        function.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
        hip.idle = True
        bare = median_us(lambda n: function(4096, n, 1, 1, 256, 1, 1, 0, None, None, 4096), lambda: hip.entered)
        hip.idle = False
        print(f"a bare ctypes call of hipModuleLaunchKernel: {bare:.2f} us")
        for library, (a, b) in arrays.items():
            compiled = flyc.compile(launch, a, b, COUNT)
            for how, call, goal in (("@flyc.jit", launch, JIT_GOAL), ("flyc.compile", compiled, COMPILED_GOAL)):
                hip.idle = False
                call(a, b, COUNT)  # the first call, which runs
                hip.idle = True
                took = median_us(lambda n, call=call, a=a, b=b: call(a, b, n), lambda: hip.entered)
                print(f"{library} through {how}: {took:.2f} us (goal {goal:.0f}), ratio {took / bare:.1f}")


def on_the_software_device(launch: Any, arrays: dict[str, Any]) -> None:
    """Whole launches on the software device."""
    import flylab

    with flylab.use("emulated"):
        for check in (None, "auto"):
            with flylab.watch(check=check):
                for library, (a, b) in arrays.items():
                    launch(a, b, COUNT)
                    took = median_us(lambda n, a=a, b=b: launch(a, b, n), time.perf_counter_ns, CALLS // 10)
                    print(f"{library} on the software device, {'checked' if check else 'no checks'}: {took:.0f} us")


def main() -> None:
    """Measures and prints."""
    import numpy as np
    import torch

    from tests.samples import cell

    launch = cell(LAUNCHER)["launch"]
    arrays = {"numpy": tuple(np.ones(COUNT, np.float32) for _ in "ab"),
              "torch": tuple(torch.ones(COUNT) for _ in "ab")}
    to_the_driver(launch, arrays)
    on_the_software_device(launch, arrays)


if __name__ == "__main__":
    main()
