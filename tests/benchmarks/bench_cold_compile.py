"""Cold compile of a vector add beside the published `flydsl` wheel. Run by hand; it is no test.

    make peer

makes .venv-peer with the packages of the extra `peer` and runs this file with `--peer-python .venv-peer/bin/python`.

Both compile the same text, cold/vector_add.py, with `flylab` replaced by `flydsl` in the imports of the peer's copy.
Each number is from a process of its own, caches off, the rows in turn, after an untimed process each. The clock runs
over `flyc.compile(launcher, *tensors, size)`, which executes nothing. The peer makes a linked code object; ours makes
the ISA, which the software device runs, and a linked code object when it is asked to (the row `hsaco`, with the peer's
lld). Imports are not counted, except in the row `lazy`, where MLIR and LLVM are imported by the call itself.

The peer compiles without a GPU when it is told the chip and finds an lld and two bitcode files in a ROCm folder: this
script lays such a folder, from the wheel `iree-base-compiler` of the peer's environment, in a temporary directory.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent / "cold"
LAUNCHERS = {"launch_scalar": "vector add, 1 element a thread", "launch_wide": "vector add, 4 elements a thread"}
INSTRUCTION = re.compile(r"^\s+(?:s|v|ds|global|buffer|flat|scratch)_\w+", re.MULTILINE)
IREE_FOLDER = "import importlib.util as u; print(u.find_spec('iree.compiler').submodule_search_locations[0])"


@dataclass(frozen=True)
class Side:
    """One of the two compilers: its interpreter, its package, a folder with the kernels, and its environment."""

    name: str
    python: str
    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str, **extra: str) -> str:
        """The standard output of measure.py in a new process."""
        done = subprocess.run([self.python, "measure.py", *arguments], cwd=self.folder, text=True, capture_output=True,
                              env={**os.environ, **self.environment, **extra}, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"{self.name} failed:\n{done.stderr[-3000:]}")
        return done.stdout

    def milliseconds(self, launcher: str, mode: str) -> float:
        """The time of one cold compile, which is the last word of the output."""
        return float(self.run(launcher, mode).split()[-1])

    def instructions(self, launcher: str) -> int:
        """The number of instructions in final_isa.s of an untimed run, which also shows that a compile takes place."""
        with tempfile.TemporaryDirectory() as dumps:
            prefix = self.name.upper()
            self.run(launcher, "isa", **{f"{prefix}_DUMP_IR": "1", f"{prefix}_DUMP_DIR": dumps})
            listings = list(Path(dumps).rglob("*final_isa.s"))
            if len(listings) != 1:
                sys.exit(f"{self.name} wrote {len(listings)} files final_isa.s for {launcher}, not one")
            return len(INSTRUCTION.findall(listings[0].read_text()))


def lay_side(name: str, python: str, root: Path, environment: dict[str, str]) -> Side:
    """The folder of one side: measure.py, the kernels with its package's name in the imports, a home of its own."""
    folder = root / name
    (folder / "home").mkdir(parents=True)
    (folder / "measure.py").write_text((HERE / "measure.py").read_text())
    for kernels in ("vector_add.py", "unrolled.py"):
        text = re.sub(r"^(import|from) flylab\.", rf"\1 {name}.", (HERE / kernels).read_text(), flags=re.MULTILINE)
        (folder / kernels).write_text(text)
    prefix = name.upper()
    own = {"ARCH": "gfx942", "COMPILE_ONLY": "1", "HOME": str(folder / "home"),
            f"{prefix}_RUNTIME_ENABLE_CACHE": "0", **environment}
    return Side(name, python, folder, own)


def lay_rocm(python: str, root: Path) -> Path:
    """A folder with what the peer wants of ROCm: llvm/bin/ld.lld and two bitcode files, from iree-base-compiler."""
    found = subprocess.run([python, "-c", IREE_FOLDER], text=True, capture_output=True, check=True).stdout.strip()
    libraries = Path(found) / "_mlir_libs"
    rocm = root / "rocm"
    (rocm / "llvm/bin").mkdir(parents=True)
    (rocm / "amdgcn/bitcode").mkdir(parents=True)
    linker = rocm / "llvm/bin/ld.lld"
    linker.write_text(f'#!/bin/sh\nexec "{libraries}/iree-lld" -flavor gnu "$@"\n')
    linker.chmod(0o755)
    for name in ("ocml.bc", "ockl.bc"):
        (rocm / "amdgcn/bitcode" / name).symlink_to(libraries / "iree_platform_libs/rocm" / name)
    return rocm


def compare(ours: Side, peer: Side | None, launcher: str, count: int) -> None:
    """Measure one kernel in every mode of each side in turn, and print a line for each."""
    rows = [(ours, "isa"), (ours, "lazy"), *([(peer, "isa"), (ours, "hsaco")] if peer else [])]
    # An untimed run each, which warms the files as well.
    size = {side.name: side.instructions(launcher) for side, _ in rows}
    times: dict[tuple[str, str], list[float]] = {(side.name, mode): [] for side, mode in rows}
    for _ in range(count):
        for side, mode in rows:
            times[side.name, mode].append(side.milliseconds(launcher, mode))
    base = statistics.median(times[peer.name, "isa"]) if peer else None
    print(f"{LAUNCHERS[launcher]}, gfx942, {count} processes a row")
    for (name, mode), values in times.items():
        median = statistics.median(values)
        what = "peer" if peer and name == peer.name else mode
        ratio = f", {median / base:.2f} of the peer's" if base and what != "peer" else ""
        print(f"  {name} {what:6} median {median:6.1f} ms ({min(values):.1f} to {max(values):.1f}){ratio}, "
              f"{size[name]} instructions")


@contextmanager
def sides(about: str | None) -> Iterator[tuple[Side, Side | None, int]]:
    """Ours, the peer's (None where it is not asked for) and how many processes, from the command line."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--peer-python", help="the interpreter of the environment that has flydsl")
    parser.add_argument("--count", type=int, default=15, help="processes of each side (15)")
    options = parser.parse_args()
    if options.count < 1:
        parser.error("--count counts processes, from 1")
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        peer, rocm = None, {}
        if options.peer_python:
            python = str(Path(options.peer_python).absolute())
            rocm = {"ROCM_PATH": str(lay_rocm(python, root))}
            peer = lay_side("flydsl", python, root, {"FLYDSL_GPU_ARCH": "gfx942", **rocm})
        else:
            print("no --peer-python: ours alone")
        here = {"FLYLAB_DEVICE": "emulated:gfx942", "PYTHONPATH": str(HERE.parents[2]), **rocm}
        yield lay_side("flylab", sys.executable, root, here), peer, options.count


def main() -> None:
    with sides(__doc__) as (ours, peer, count):
        for launcher in LAUNCHERS:
            compare(ours, peer, launcher, count)


if __name__ == "__main__":
    main()
