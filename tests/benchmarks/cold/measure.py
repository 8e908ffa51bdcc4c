"""Time one cold compile, in this process: `python measure.py launch_scalar isa|hsaco|lazy`, printing milliseconds.

It runs under either interpreter, beside a copy of vector_add.py, with the environment that bench_cold_compile.py gives.
Importing is over before the clock starts. flylab imports MLIR, LLVM and its own compiler at the first compile, and the
peer when it is imported: so they are imported first here too, except for `lazy`, which times all of the first compile.
flylab generates what it is asked for: in the mode `hsaco` the linked code object, which the peer always makes, else the
ISA that the software device runs.
"""

from __future__ import annotations

import importlib
import sys
import time

import torch
import vector_add

AHEAD = ["llvmlite.binding", "flylab.passes.pipeline", "flylab.codegen.amdgpu", "flylab.runtime.launch"]
DIALECTS = ["arith", "builtin", "func", "gpu", "irdl", "llvm", "scf", "vector"]
MLIR = ["ir", "passmanager", "rewrite", *(f"dialects.{name}" for name in DIALECTS)]

if __name__ == "__main__":
    launcher, mode = getattr(vector_add, sys.argv[1]), sys.argv[2]
    if "flylab" in sys.modules and mode != "lazy":
        for name in [*AHEAD, *(f"mlir.{part}" for part in MLIR)]:
            importlib.import_module(name)
    a, b, c = (torch.ones(4096) for _ in range(3))
    start = time.perf_counter()
    made = vector_add.flyc.compile(launcher, a, b, c, 4096)
    size = 0
    if "flylab" in sys.modules:
        size = len(made.hsaco if mode == "hsaco" else made.code.assembly)
    print(size, (time.perf_counter() - start) * 1e3)
