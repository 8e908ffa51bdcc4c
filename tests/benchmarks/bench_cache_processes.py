"""Processes that compile the same kernels into one empty folder of the disk cache. Run by hand.

    .venv/bin/python tests/benchmarks/bench_cache_processes.py

8 processes start at once, each with the same 20 kernels in an order of its own, and run each on the software device.
The store's log tells who compiled what: each kernel may be compiled at most twice. Then the times: all 8 with the
folder empty, all 8 with it full, and one process alone that compiles all 20, as a ratio.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, KERNELS, MOST = 8, 20, 2
MODULE = f"""
import numpy as np
import flylab.compiler as flyc
import flylab.expr as fx

def of(number):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        t = fx.thread_idx.x
        for _ in fx.range_constexpr(number + 1):
            if t < n:
                A[t] = A[t] + number

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=1, block=64)

    return launch

launches = [of(number) for number in range({KERNELS})]
"""
SCRIPT = f"""
import random, sys
import numpy as np
from numbered_kernels import launches
order = list(range({KERNELS}))
random.Random(int(sys.argv[1])).shuffle(order)
for number in order:
    array = np.zeros(64, "f4")
    launches[number](array, 50)
    assert array.tolist() == [number * (number + 1)] * 50 + [0] * 14, number
"""


def seconds(folder: Path, cache: Path, processes: int) -> float:
    """How long so many processes take, all of which end well."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
                                "FLYLAB_RUNTIME_CACHE_DIR": str(cache), "FLYLAB_RUNTIME_ENABLE_CACHE": "1"}
    start = time.perf_counter()
    started = [subprocess.Popen([sys.executable, "-W", "error", "-c", SCRIPT, str(n)], env=environment)
               for n in range(processes)]
    failed = [each.args for each in started if each.wait()]
    assert not failed, failed
    return time.perf_counter() - start


def main() -> None:
    """Print the counts and the times. Raises `AssertionError` where a kernel was compiled more than twice."""
    sys.path.insert(0, str(ROOT))
    from flylab.runtime.cache.store import Store

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "numbered_kernels.py").write_text(MODULE)
        alone = seconds(folder, folder / "alone", 1)
        empty, full = (seconds(folder, folder / "cache", PROCESSES) for _ in range(2))
        log = Store(folder / "cache", 1 << 30).log()
        times = Counter(words[2] for words in log)
        by = Counter(words[1] for words in log)
        print(f"{len(times)} kernels compiled {sum(times.values())} times, the most of one {max(times.values())}; "
              f"by {len(by)} processes: {sorted(by.values(), reverse=True)}")
        print(f"one process alone {alone:.2f} s; {PROCESSES} and an empty folder {empty:.2f} s "
              f"({empty / alone:.2f} of it), and a full one {full:.2f} s ({full / alone:.2f})")
        assert len(times) == KERNELS and max(times.values()) <= MOST
        assert not list((folder / "cache").rglob("*.partial"))


if __name__ == "__main__":
    main()
