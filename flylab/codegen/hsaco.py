"""Linking an object into a loadable code object (`.hsaco`) with whatever lld is on the machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from flylab.errors import ToolchainError

ROCM_ROOTS = ("ROCM_PATH", "HIP_PATH")


def find_linker() -> list[str]:
    """The command of an `ld.lld`: on PATH, in ROCm (ROCM_PATH, /opt/rocm), or in the pip package ziglang.

    Raises `ToolchainError` where there is none.
    """
    on_path = shutil.which("ld.lld")
    if on_path:
        return [on_path]
    roots = [os.environ[name] for name in ROCM_ROOTS if os.environ.get(name)] + ["/opt/rocm"]
    for root in roots:
        candidate = Path(root) / "llvm" / "bin" / "ld.lld"
        if candidate.exists():
            return [str(candidate)]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "ld.lld"]
    raise ToolchainError(
        "no linker for AMD code objects was found (looked for ld.lld on PATH, in ROCm and in the package ziglang)",
        hint="pip install 'flylab[aot]', or install lld or ROCm; everything but .hsaco files works without it",
    )


def link(object_code: bytes) -> bytes:
    """The loadable code object of a relocatable one. Raises `ToolchainError` where no lld is found or it fails."""
    command = find_linker()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.o", Path(folder) / "kernel.hsaco"
        source.write_bytes(object_code)
        try:
            done = subprocess.run([*command, "-shared", str(source), "-o", str(target)], capture_output=True, text=True)
        except OSError as error:
            raise ToolchainError(
                f"{' '.join(command)} cannot be run: {error}", hint="put another ld.lld on PATH, or remove this one"
            ) from None
        if done.returncode:
            raise ToolchainError(
                f"{' '.join(command)} failed: {done.stderr.strip()}", hint="check that it is an lld of LLVM 15 or later"
            )
        return target.read_bytes()
