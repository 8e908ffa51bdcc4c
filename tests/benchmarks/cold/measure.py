"""Time one cold compile, in this process: `python measure.py launch_scalar isa|hsaco|lazy|front`, in milliseconds.

It runs under either interpreter, beside copies of the kernels, with the environment that bench_cold_compile.py gives.
Importing is over before the clock starts. flylab imports MLIR, LLVM and its own compiler at the first compile, and the
peer when it is imported: so they are imported first here too, except for `lazy`, which times all of the first compile.
flylab generates what it is asked for: in the mode `hsaco` the linked code object, which the peer always makes, else the
ISA that the software device runs.

`front` times the front end. Ours, in the cold compile itself: reading, rewriting and tracing launcher and kernels. The
peer's, which shows no parts: the quickest of four calls of the launcher after the first, each of which traces again and
then finds the compilation. Both in the processor's time of this thread.
"""

from __future__ import annotations

import importlib
import sys
import time

import torch
import unrolled
import vector_add

AHEAD = ["llvmlite.binding", "flylab.passes.pipeline", "flylab.codegen.amdgpu", "flylab.runtime.launch"]
DIALECTS = ["arith", "builtin", "func", "gpu", "irdl", "llvm", "scf", "vector"]
MLIR = ["ir", "passmanager", "rewrite", *(f"dialects.{name}" for name in DIALECTS)]


def front(launcher: object, arguments: tuple[object, ...]) -> float:
    """The milliseconds of the front end."""
    spent = []
    if "flylab" in sys.modules:
        compiled = importlib.import_module("flylab.runtime.compiled")
        trace = compiled.trace

        def timed(*args: object) -> object:
            start = time.thread_time()
            traced = trace(*args)
            spent.append((time.thread_time() - start) * 1e3)
            return traced

        compiled.trace = timed
        vector_add.flyc.compile(launcher, *arguments)
        return spent[0]
    for _ in range(5):
        start = time.thread_time()
        launcher(*arguments)  # type: ignore[operator]
        spent.append((time.thread_time() - start) * 1e3)
    return min(spent[1:])


if __name__ == "__main__":
    module = vector_add if hasattr(vector_add, sys.argv[1]) else unrolled
    launcher, mode = getattr(module, sys.argv[1]), sys.argv[2]
    if "flylab" in sys.modules and mode != "lazy":
        for name in [*AHEAD, *(f"mlir.{part}" for part in MLIR)]:
            importlib.import_module(name)
    a, b, c = (torch.ones(4096) for _ in range(3))
    if mode == "front":
        print(front(launcher, (a, b, c, 4096)))
        sys.exit()
    start = time.perf_counter()
    made = vector_add.flyc.compile(launcher, a, b, c, 4096)
    size = 0
    if "flylab" in sys.modules:
        size = len(made.hsaco if mode == "hsaco" else made.code.assembly)
    print(size, (time.perf_counter() - start) * 1e3)
