"""How the benchmarks of the software device measure."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

RUNS = 5


def median_seconds(function: Callable[[], object]) -> float:
    """The median time of `RUNS` runs after a first one."""
    function()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
