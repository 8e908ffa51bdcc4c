"""Cold compile of kernels beside the published `flydsl` wheel. Run by hand; it is no test.

    make peer

makes .venv-peer with the packages of the extra `peer` and runs this file with `--peer-python .venv-peer/bin/python`.

Each number is from a process of its own, caches off, the rows in turn, after an untimed process each. The clock runs
over `flyc.compile(launcher, *arguments)`, which executes nothing. The peer makes a linked code object; ours makes the
ISA, which the software device runs, and a linked code object when it is asked to (the row `hsaco`, with the peer's
lld). Imports are not counted, except in the row `lazy`, where MLIR and LLVM are imported by the call itself.
Both sides compile the text of cold/cases.py; see peer.py for how.
"""

from __future__ import annotations

import re
import statistics

from cold.cases import EVERY
from peer import Side, sides

INSTRUCTION = re.compile(r"^\s+(?:s|v|ds|global|buffer|flat|scratch)_\w+", re.MULTILINE)
TIMED = ["add", "add4", "tiled", "transpose", "mma", "preshuffle"]


def compare(ours: Side, peer: Side | None, case: str, count: int) -> None:
    """Measure one kernel in every mode of each side in turn, and print a line for each."""
    rows = [(ours, "isa"), (ours, "lazy"), *([(peer, "isa"), (ours, "hsaco")] if peer else [])]
    # An untimed run each, which warms the files as well.
    size = {side.name: len(INSTRUCTION.findall(side.listing(case))) for side, _ in rows}
    times: dict[tuple[str, str], list[float]] = {(side.name, mode): [] for side, mode in rows}
    for _ in range(count):
        for side, mode in rows:
            times[side.name, mode].append(side.milliseconds(case, mode))
    base = statistics.median(times[peer.name, "isa"]) if peer else None
    print(f"{EVERY[case].title}, gfx942, {count} processes a row")
    for (name, mode), values in times.items():
        median = statistics.median(values)
        what = "peer" if peer and name == peer.name else mode
        ratio = f", {median / base:.2f} of the peer's" if base and what != "peer" else ""
        print(f"  {name} {what:6} median {median:6.1f} ms ({min(values):.1f} to {max(values):.1f}){ratio}, "
              f"{size[name]} instructions")


def main() -> None:
    with sides(__doc__, TIMED) as (ours, peer, count, cases):
        for case in cases:
            compare(ours, peer, case, count)


if __name__ == "__main__":
    main()
