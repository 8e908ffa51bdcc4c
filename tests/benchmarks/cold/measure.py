"""Time one cold compile, in this process: `python measure.py add isa|hsaco|lazy|front`, in milliseconds.

It runs under either interpreter, beside cases.py, which says what is compiled, with the environment that peer.py gives.
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
import os
import sys
import time
from typing import Any

from cases import EVERY

AHEAD = ["llvmlite.binding", "flylab.passes.pipeline", "flylab.codegen.amdgpu", "flylab.runtime.launch"]
DIALECTS = ["arith", "builtin", "func", "gpu", "irdl", "llvm", "scf", "vector"]
MLIR = ["ir", "passmanager", "rewrite", *(f"dialects.{name}" for name in DIALECTS)]


def front(flyc: Any, launcher: Any, arguments: tuple[object, ...]) -> float:
    """The milliseconds of the front end."""
    spent = []
    if OURS:
        compiled = importlib.import_module("flylab.runtime.compiled")
        trace = compiled.trace

        def timed(*args: object) -> object:
            start = time.thread_time()
            traced = trace(*args)
            spent.append((time.thread_time() - start) * 1e3)
            return traced

        compiled.trace = timed
        flyc.compile(launcher, *arguments)
        return spent[0]
    for _ in range(5):
        start = time.thread_time()
        launcher(*arguments)
        spent.append((time.thread_time() - start) * 1e3)
    return min(spent[1:])


if __name__ == "__main__":
    case, mode = EVERY[sys.argv[1]], sys.argv[2]
    launcher, flyc = case.launcher, importlib.import_module(case.module).flyc
    OURS = flyc.__name__.startswith("flylab")
    if OURS and mode != "lazy":
        for name in [*AHEAD, *(f"mlir.{part}" for part in MLIR)]:
            importlib.import_module(name)
    arguments = case.arguments(os.environ["ARCH"])
    if mode == "front":
        print(front(flyc, launcher, arguments))
        sys.exit()
    start = time.perf_counter()
    made = flyc.compile(launcher, *arguments)
    size = 0
    if OURS:
        size = len(made.hsaco if mode == "hsaco" else made.code.assembly)
    print(size, (time.perf_counter() - start) * 1e3)
