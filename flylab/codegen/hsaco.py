"""Linking an object into a loadable code object (`.hsaco`) with whatever lld is on the machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from flylab.codegen.tools import find_tool, run_tool
from flylab.errors import ToolchainError


def find_linker() -> list[str]:
    """The command of an `ld.lld`: on PATH, in ROCm (ROCM_PATH, /opt/rocm), or in the pip package ziglang.

    Raises `ToolchainError` where there is none.
    """
    return find_tool(["ld.lld"], "linker")


def link(object_code: bytes, debug_info: bool = False) -> bytes:
    """The loadable code object of a relocatable one; without `debug_info` the lines of the source stay behind.

    Raises `ToolchainError` where no lld is found or it fails.
    """
    command = find_linker()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.o", Path(folder) / "kernel.hsaco"
        source.write_bytes(object_code)
        leave = [] if debug_info else ["--strip-debug"]
        done = run_tool([*command, "-shared", *leave, str(source), "-o", str(target)])
        if done.returncode:
            raise ToolchainError(
                f"{' '.join(command)} failed: {done.stderr.strip()}", hint="check that it is an lld of LLVM 15 or later"
            )
        return target.read_bytes()
