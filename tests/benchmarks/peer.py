"""The published `flydsl` wheel beside flylab: each side compiles the same kernels in processes of its own.

Both compile the text of cold/ and of kernels/, with `flylab` replaced by `flydsl` in the imports of the peer's copy.
The peer compiles without a GPU when it is told the chip and finds an lld and two bitcode files in a ROCm folder: this
module lays such a folder, from the wheel `iree-base-compiler` of the peer's environment, in a temporary directory.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/benchmarks/cold"
IMPORT = re.compile(r"^(import|from) flylab\.(?=compiler|expr)", re.MULTILINE)
REFUSING = ("by_code.py", "errors.py", "places.py")
"""What kernels/ needs of flylab itself: what its launchers refuse is refused in the peer's copy too."""
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

    def milliseconds(self, case: str, mode: str) -> float:
        """The time of one cold compile, which is the last word of the output."""
        return float(self.run(case, mode).split()[-1])

    def listing(self, case: str) -> str:
        """final_isa.s of an untimed run, which also shows that a compile takes place."""
        with tempfile.TemporaryDirectory() as dumps:
            prefix = self.name.upper()
            self.run(case, "isa", **{f"{prefix}_DUMP_IR": "1", f"{prefix}_DUMP_DIR": dumps})
            listings = list(Path(dumps).rglob("*final_isa.s"))
            if len(listings) != 1:
                sys.exit(f"{self.name} wrote {len(listings)} files final_isa.s for {case}, not one")
            return listings[0].read_text()


def lay(source: Path, folder: Path) -> None:
    """A copy of the Python files below `source`, which import flydsl's compiler and language."""
    for file in source.rglob("*.py"):
        copy = folder / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(IMPORT.sub(r"\1 flydsl.", file.read_text()))


def lay_side(name: str, python: str, root: Path, chip: str, environment: dict[str, str]) -> Side:
    """The folder of one side: measure.py and the kernels (the peer's copy with its package's name), and a home."""
    folder = root / f"{name}-{chip}"
    (folder / "home").mkdir(parents=True)
    if name == "flydsl":
        lay(HERE, folder)
        lay(ROOT / "kernels", folder / "flylab/kernels")
        for module in REFUSING:
            (folder / "flylab" / module).write_text((ROOT / "flylab" / module).read_text())
    else:
        for file in HERE.glob("*.py"):
            (folder / file.name).write_text(file.read_text())
    prefix = name.upper()
    own = {"ARCH": chip, "COMPILE_ONLY": "1", "HOME": str(folder / "home"), f"{prefix}_RUNTIME_ENABLE_CACHE": "0"}
    return Side(name, python, folder, {**own, **environment})


def lay_rocm(python: str, root: Path) -> Path:
    """A folder with what the peer wants of ROCm: llvm/bin/ld.lld and two bitcode files, from iree-base-compiler."""
    rocm = root / "rocm"
    if rocm.exists():
        return rocm
    found = subprocess.run([python, "-c", IREE_FOLDER], text=True, capture_output=True, check=True).stdout.strip()
    libraries = Path(found) / "_mlir_libs"
    (rocm / "llvm/bin").mkdir(parents=True)
    (rocm / "amdgcn/bitcode").mkdir(parents=True)
    linker = rocm / "llvm/bin/ld.lld"
    linker.write_text(f'#!/bin/sh\nexec "{libraries}/iree-lld" -flavor gnu "$@"\n')
    linker.chmod(0o755)
    for name in ("ocml.bc", "ockl.bc"):
        (rocm / "amdgcn/bitcode" / name).symlink_to(libraries / "iree_platform_libs/rocm" / name)
    return rocm


def peer_side(python: str, root: Path, chip: str) -> Side:
    """The published wheel in the environment of this interpreter, compiling for a chip."""
    python = str(Path(python).absolute())
    own = {"FLYDSL_GPU_ARCH": chip, "ROCM_PATH": str(lay_rocm(python, root)), "PYTHONPATH": ""}
    return lay_side("flydsl", python, root, chip, own)


@contextmanager
def sides(about: str | None, cases: list[str]) -> Iterator[tuple[Side, Side | None, int, list[str]]]:
    """From the command line: ours, the peer's (None where it is not asked for), how many processes, and which cases."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", default=cases, help=f"keys of cold/cases.py ({' '.join(cases)})")
    parser.add_argument("--peer-python", help="the interpreter of the environment that has flydsl")
    parser.add_argument("--count", type=int, default=15, help="processes of each side (15)")
    options = parser.parse_args()
    if options.count < 1:
        parser.error("--count counts processes, from 1")
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        peer, rocm = None, {}
        if options.peer_python:
            peer = peer_side(options.peer_python, root, "gfx942")
            rocm = {"ROCM_PATH": peer.environment["ROCM_PATH"]}
        else:
            print("no --peer-python: ours alone")
        here = {"FLYLAB_DEVICE": "emulated:gfx942", "PYTHONPATH": str(ROOT), **rocm}
        yield lay_side("flylab", sys.executable, root, "gfx942", here), peer, options.count, options.cases
