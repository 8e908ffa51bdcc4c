"""The front end (reading, rewriting, tracing) beside that of the published `flydsl` wheel. Run by hand; it is no test.

    python tests/benchmarks/bench_tracing.py --peer-python .venv-peer/bin/python      (`make peer` makes it)

Both trace the same texts, cold/vector_add.py and cold/unrolled.py, the latter with a loop that carries values and a
body of 80 steps. Each number is from a process of its own, in turn, in processor time; cold/measure.py says what is
timed on either side: ours is cold, the peer's a repeated call, which favours the peer.
"""

from __future__ import annotations

import statistics

from cold.cases import EVERY
from peer import sides


def main() -> None:
    with sides(__doc__, ["add", "add4", "steps"]) as (ours, peer, count, cases):
        for case in cases:
            found: dict[str, list[float]] = {}
            for _ in range(count):
                for side in filter(None, (ours, peer)):
                    # The peer keeps compilations in memory alone here: each process is cold.
                    cache = {"FLYDSL_RUNTIME_ENABLE_CACHE": "1"} if side is peer else {}
                    time = float(side.run(case, "front", **cache))
                    found.setdefault(side.name, []).append(time)
            medians = {name: statistics.median(times) for name, times in found.items()}
            ratio = f", {medians['flylab'] / medians['flydsl']:.2f} of the peer's" if peer else ""
            shown = ", ".join(f"{name} {m:.1f} ms ({min(found[name]):.1f} to {max(found[name]):.1f})"
                              for name, m in medians.items())
            print(f"{EVERY[case].title}: {shown}{ratio}")


if __name__ == "__main__":
    main()
