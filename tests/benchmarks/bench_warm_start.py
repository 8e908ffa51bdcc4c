"""How long a process whose compilations are on disk takes to run vector add. Run by hand.

    .venv/bin/python tests/benchmarks/bench_warm_start.py

Medians of fresh processes, in milliseconds, on the software device, and through HIP on the tests' stand-in for AMD's
library, which notes launches and does nothing: the first launch where all modules that it loads
are imported already, LLVM's library among them (the bound is 60 ms, and the ratio to it is printed); the first launch
right after `import flylab.compiler`, which imports the rest itself; for comparison the first launch with an empty disk
cache, and a second launch. Also what keeping a compilation adds to making it: the same process with the disk cache off.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 9
BOUND = 60.0
KERNEL = """
import flylab.compiler as flyc
import flylab.expr as fx

@flyc.kernel
def vector_add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        C[i] = A[i] + B[i]

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    vector_add(A, B, C, n).launch(grid=(fx.ceildiv(n, 256),), block=256)
"""
SCRIPT = """
import contextlib, importlib, json, sys, time
import numpy as np
from vector_add_kernel import launch
on_hip = contextlib.ExitStack()
if sys.argv[2] == "hip":
    from tests.runtime.hip.standin import MI300X, standing_in
    on_hip.enter_context(standing_in(MI300X)).idle = True
for name in json.loads(sys.argv[1]):
    with contextlib.suppress(ImportError):  # some modules of the bindings are made by others
        importlib.import_module(name)
A, B, C = np.arange(4096, dtype="f4"), np.ones(4096, "f4"), np.zeros(4096, "f4")
before = set(sys.modules)
start, cpu = time.perf_counter(), time.process_time()
run = launch(A, B, C, 4000)
first, used = time.perf_counter(), time.process_time()
launch(A, B, C, 4000)
second = time.perf_counter()
assert sys.argv[2] == "hip" or np.array_equal(C[:4000], A[:4000] + 1) and not C[4000:].any()
print(json.dumps({"first": (first - start) * 1e3, "cpu": (used - cpu) * 1e3, "second": (second - first) * 1e3,
                  "kept": run.compiled.kept, "modules": [name for name in sys.modules if name not in before]}))
"""


def measured(folder: Path, modules: list[str], device: str = "emulated:gfx942", **variables: str) -> dict[str, object]:
    """What a fresh process says of its first launch, with these modules imported before it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
        "FLYLAB_RUNTIME_CACHE_DIR": str(folder / "cache"),
        "FLYLAB_EMULATOR_CACHE_DIR": str(folder / "handlers"),
        "FLYLAB_DEVICE": device,
    } | variables
    done = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(modules), device], env=environment, check=True,
                          capture_output=True, text=True, cwd=folder)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def median(what: str, runs: list[dict[str, object]]) -> float:
    """The median of one number."""
    return statistics.median(float(str(run[what])) for run in runs)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "vector_add_kernel.py").write_text(KERNEL)
        for device in ("emulated:gfx942", "hip"):
            compare(folder, device)


def compare(folder: Path, device: str) -> None:
    """Print the table of a device."""
    def once(modules: list[str], **variables: str) -> dict[str, object]:
        return measured(folder, modules, device, **variables)

    once([])  # byte code, handlers, code objects
    needed = list(once([])["modules"])  # type: ignore[call-overload]
    rows: dict[str, list[dict[str, object]]] = {"all imported": [], "imports too": [], "empty": [], "off": []}
    for number in range(PROCESSES):
        rows["all imported"].append(once(needed))
        rows["imports too"].append(once([]))
        rows["empty"].append(once(needed, FLYLAB_RUNTIME_CACHE_DIR=str(folder / f"empty-{device}-{number}")))
        rows["off"].append(once(needed, FLYLAB_RUNTIME_ENABLE_CACHE="0"))
    assert {run["kept"] for run in rows["all imported"] + rows["imports too"]} == {"read from disk"}
    assert {run["kept"] for run in rows["empty"]} == {"kept on disk"}
    print(f"{device + ': first launch':34} {'ms':>8} {'cpu ms':>8}")
    for what, runs in rows.items():
        print(f"{what:34} {median('first', runs):8.1f} {median('cpu', runs):8.1f}")
    print(f"{'a second launch':34} {median('second', rows['all imported']):8.2f}")
    print(f"{len(needed)} modules; the first launch with a warm disk takes "
          f"{median('first', rows['all imported']) / BOUND:.2f} of the {BOUND:.0f} ms that it may\n")


if __name__ == "__main__":
    main()
