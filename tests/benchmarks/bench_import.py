"""How long the imports of flylab take, each in a new process. Run by hand; the goal is `import flylab` under 0.3 s.

    .venv/bin/python tests/benchmarks/bench_import.py
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

STATEMENTS = [
    "import flylab",
    "import flylab.layout",
    "from flylab import viz",
    "import flylab.compiler, flylab.expr",
    "import mlir.ir, mlir.dialects.gpu",
    "import llvmlite.binding",
]
TIMED = "import time; start = time.perf_counter(); {}; print((time.perf_counter() - start) * 1e3)"


def milliseconds(statement: str) -> float:
    """The time of one statement in a new interpreter, whose own start is not counted."""
    done = subprocess.run([sys.executable, "-c", TIMED.format(statement)], text=True, capture_output=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=9, help="processes for each line (9)")
    count = parser.parse_args().count
    for statement in STATEMENTS:
        milliseconds(statement)
        times = [milliseconds(statement) for _ in range(count)]
        print(f"{statement:36} median {statistics.median(times):6.1f} ms, {min(times):.1f} to {max(times):.1f}")


if __name__ == "__main__":
    main()
